"""What the scheduler tells its driver to do."""

from __future__ import annotations

from typing import NamedTuple

from gesim.core.request import Batch, Request

__all__ = ["Action", "Gone", "Start"]


class Start(NamedTuple):
    """Run `batch` now on ``batch.instance``."""

    batch: Batch


class Gone(NamedTuple):
    """`request` left without being run; ``request.outcome`` and ``request.reason`` say why."""

    request: Request
    at_ns: int


Action = Start | Gone
