"""Everybody gets in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gesim.core.decisions import ADMIT, Admit
from gesim.core.policy import AdmissionPolicy, QueueView
from gesim.core.request import Request

__all__ = ["Open"]


@dataclass
class Open(AdmissionPolicy):
    """Admit every request; only the queue's hard bound remains.

    At a load of 1 or more the queue grows until that bound.
    """

    name: ClassVar[str] = "open"

    def admit(self, now_ns: int, request: Request, queue: QueueView) -> Admit:
        """Say yes."""
        return ADMIT
