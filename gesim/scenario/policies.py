"""Which policies rule a model: its own, those for every model, or the defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy
from gesim.registry import build_policy
from gesim.rng import derived_seed
from gesim.scenario.problems import effective

if TYPE_CHECKING:
    from gesim.scenario.scenario import Scenario

__all__ = ["build_policies", "specs"]


def specs(scenario: Scenario, index: int) -> dict[str, Any]:
    """Return what the scenario says about a model's policies, defaults filled in.

    Without a word in the scenario: no batching, admission open, and first come first served,
    or by level where the model has several priority levels.
    """
    model = scenario.models[index]
    ordering = effective(model.ordering, scenario.ordering)
    if ordering is None:
        ordering = "strict_priority" if model.priority_levels > 1 else "fifo"
    batching = effective(model.batching, scenario.batching)
    admission = model.admission if model.admission is not None else scenario.admission
    return {
        "batching": "none" if batching is None else batching,
        "ordering": ordering,
        "admission": admission or (),
    }


def build_policies(
    scenario: Scenario, index: int, seed: int, given: dict[str, Any] | None = None
) -> tuple[BatchingPolicy, OrderingPolicy, list[AdmissionPolicy]]:
    """Build a model's policies afresh.

    Parameters
    ----------
    scenario : Scenario
        Says which.
    index : int
        Of the model.
    seed : int
        The run's; policies that draw get one of their own derived from it.
    given : dict, optional
        Kind to policy, instead of what the scenario says.
    """
    name = scenario.models[index].name
    chosen = {**specs(scenario, index), **(given or {})}

    def make(kind: str, spec: Any, number: str = "") -> Any:
        where = f"models[{index}].{kind}"
        own_seed = derived_seed(seed, f"policy/{name}/{kind}{number}")
        return build_policy(kind, spec, where, base=scenario.base, seed=own_seed)

    admission = chosen["admission"]
    if not isinstance(admission, list | tuple):
        admission = (admission,)
    return (
        make("batching", chosen["batching"]),
        make("ordering", chosen["ordering"]),
        [make("admission", s, str(i) if i else "") for i, s in enumerate(admission)],
    )
