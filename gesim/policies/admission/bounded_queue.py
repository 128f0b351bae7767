"""A queue of limited length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gesim.core.decisions import ADMIT, Admit, Reject
from gesim.core.policy import AdmissionPolicy, QueueView
from gesim.core.request import Request
from gesim.policies.checks import at_least

__all__ = ["BoundedQueue"]


@dataclass
class BoundedQueue(AdmissionPolicy):
    """Reject (`queue_full`) when `max_queue_size` requests of the level are waiting.

    Requests that run do not count, as in Triton. A large bound gives late answers instead of
    rejections, one below the batch size caps the batches. Checked against M/M/c/K, M/D/1/K,
    the loss system and the bounded chain (A6-A8, C7).

    Parameters
    ----------
    max_queue_size : int
        Waiting requests per priority level. 0 is the loss system: only a request that can
        start at once gets in. (In Triton's own files 0 means no bound: use `open` for that.)
    """

    name: ClassVar[str] = "bounded_queue"

    max_queue_size: int

    def __post_init__(self) -> None:
        at_least("bounded_queue", "max_queue_size", self.max_queue_size, 0)

    def admit(self, now_ns: int, request: Request, queue: QueueView) -> Admit | Reject:
        """Count what waits."""
        if self.max_queue_size == 0:
            # Those that came in this very instant will take an instance each.
            return ADMIT if queue.idle_instances > queue.count else Reject("queue_full")
        if queue.level_count(request.level) >= self.max_queue_size:
            return Reject("queue_full")
        return ADMIT
