"""First come, first served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gesim.core.policy import OrderingPolicy
from gesim.core.request import Request

__all__ = ["Fifo"]


@dataclass
class Fifo(OrderingPolicy):
    """Requests go in order of arrival, whatever their level.

    Long requests block short ones behind them. Checked against family A.
    """

    name: ClassVar[str] = "fifo"
    by_level: ClassVar[bool] = True

    def key(self, request: Request) -> int:
        """One key for all."""
        return 0
