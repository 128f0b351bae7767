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


def queue_policy(scenario: Scenario, index: int) -> bool:
    """Tell whether a model has a queue policy in Triton's sense: levels, bounds or timeouts.

    As there, ``priority_levels: 1`` written out is one; leaving it out is none.
    """
    model = scenario.models[index]
    admission = specs(scenario, index)["admission"]
    plain = all(build_one(scenario, "admission", spec).name == "open" for spec in admission)
    return "priority_levels" in model.model_fields_set or not plain


def build_one(scenario: Scenario, kind: str, spec: Any, where: str = "", **context: object) -> Any:
    """Build one policy; `context` fills parameters that `spec` leaves open."""
    return build_policy(kind, spec, where, base=scenario.base, context={"seed": 0, **context})


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
    queued = queue_policy(scenario, index)

    def make(kind: str, spec: Any, number: str = "") -> Any:
        own_seed = derived_seed(seed, f"policy/{name}/{kind}{number}")
        where = f"models[{index}].{kind}"
        return build_one(scenario, kind, spec, where, seed=own_seed, queue_policy=queued)

    admission = chosen["admission"]
    if not isinstance(admission, list | tuple):
        admission = (admission,)
    return (
        make("batching", chosen["batching"]),
        make("ordering", chosen["ordering"]),
        [make("admission", s, str(i) if i else "") for i, s in enumerate(admission)],
    )
