"""One request a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gesim.core.decisions import Dispatch
from gesim.core.policy import BatchingPolicy, QueueView

__all__ = ["NoBatching"]


@dataclass
class NoBatching(BatchingPolicy):
    """Every request runs alone, as soon as an instance is free.

    Triton without a `dynamic_batching` block; the GE article's latency recipe. Capacity is
    1/S(1) for each instance, whatever the card could do with more. Checked against M/M/1,
    M/G/1, M/D/1 and M/D/c.

    Parameters
    ----------
    max_batch_size : int, default 1
        Most items of one request (a request is never split, and never joined).
    """

    name: ClassVar[str] = "none"
    work_conserving: ClassVar[bool] = True

    max_batch_size: int = 1

    def decide(self, now_ns: int, queue: QueueView) -> Dispatch:
        """Take the head."""
        return Dispatch(1)
