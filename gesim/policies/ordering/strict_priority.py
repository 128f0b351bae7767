"""The most urgent level first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gesim.core.policy import OrderingPolicy
from gesim.core.request import Request

__all__ = ["StrictPriority"]


@dataclass
class StrictPriority(OrderingPolicy):
    """Lower levels first (1 is the most urgent), inside a level in order of arrival.

    A batch may mix levels: urgent ones first, others fill it. A running batch is never
    interrupted. Under sustained urgent load the last level starves: there is no ageing.
    Triton's `priority_levels`. Checked against Cobham's formula (B1, B3) and the conservation
    law (B4).
    """

    name: ClassVar[str] = "strict_priority"
    by_level: ClassVar[bool] = True

    def key(self, request: Request) -> int:
        """Return the level."""
        return request.level
