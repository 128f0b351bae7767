"""From what a scenario says to the cost and workload objects that say it to a driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gesim.scenario.schema import Model

__all__ = ["Costs", "costs_of", "shipped"]


class Costs:
    """PLACEHOLDER until gesim.cost is here."""

    def __init__(self, model: Model) -> None:
        cost: Any = model.cost
        self.cost = cost
        self.kind: str = cost.kind
        self.gears: tuple[int, ...] = () if model.gears in ("any", None) else model.gears
        self.lengths: tuple[int, ...] = ()

    def mean_ns(self, items: int, length: int = 0) -> int:
        from gesim.errors import ProfileError

        if self.kind == "affine":
            return int(self.cost.setup_ns + items * self.cost.per_item_ns)
        if self.kind == "table":
            if items > max(self.cost.points) and self.cost.extrapolate == "never":
                raise ProfileError(f"has no point for {items}")
            return 1
        return 1

    def written(self) -> dict[str, Any]:
        return {}


def costs_of(model: Model, base: Path) -> Costs:
    """Make the cost side of a model."""
    return Costs(model)


def shipped(name: str) -> bool:
    """Tell whether `name` is a shipped profile."""
    return "/" not in name and not name.endswith((".yaml", ".yml"))
