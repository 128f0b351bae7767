"""Policies handed to a run instead of the scenario's: they become part of the scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gesim.errors import ScenarioError
from gesim.registry import KINDS
from gesim.scenario.scenario import Scenario
from gesim.units import suggest

__all__ = ["with_policies"]


def with_policies(scenario: Scenario, policies: Mapping[str, Any]) -> Scenario:
    """Return the scenario with other policies.

    Parameters
    ----------
    scenario : Scenario
    policies : mapping
        Kind to policy, for every model; or model name to such a mapping, which goes first.
        A policy is what `Scenario.set` takes; for admission it may be a list of them.

    Raises
    ------
    ScenarioError
        If a key is neither a kind of policy nor a model.
    PolicyError
        If a policy cannot be built.
    """
    names = [model.name for model in scenario.models]
    if not isinstance(policies, Mapping):
        raise ScenarioError(
            f"policies is {policies!r}; write a mapping, like {{'batching': MyPolicy}}"
        )
    changes: dict[str, Any] = {}
    for kind, policy in policies.items():
        if kind in KINDS:
            for index in range(len(names)):
                _put(changes, index, kind, policy)
    for name, own in policies.items():
        if name in KINDS:
            continue
        if name not in names or not isinstance(own, Mapping):
            raise ScenarioError(
                f"policies: {name!r} is neither a kind of policy ({', '.join(KINDS)}) nor a model "
                f"with such a mapping{suggest(str(name), [*KINDS, *names])}"
            )
        for kind, policy in own.items():
            if kind not in KINDS:
                raise ScenarioError(
                    f"policies of model {name!r}: {kind!r} is no kind of policy"
                    f"{suggest(str(kind), KINDS)} ({', '.join(KINDS)})"
                )
            _put(changes, names.index(name), kind, policy)
    return scenario.set_many(changes)


def _put(changes: dict[str, Any], index: int, kind: str, policy: Any) -> None:
    """Note the change of one model; a later one of the same kind goes first."""
    key = f"models[{index}].{kind}"
    for known in (key, f"{key}.policy"):
        changes.pop(known, None)
    if kind == "admission":
        changes[key] = list(policy) if isinstance(policy, list | tuple) else [policy]
    elif isinstance(policy, str | type):
        changes[f"{key}.policy"] = policy  # keeps the parameters that both have
    else:
        changes[key] = policy
