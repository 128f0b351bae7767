"""The contracts of the three policy kinds of a queue, and the view that they see.

Theory of operation
-------------------
A policy is one class in one file. Its parameters are the fields of a dataclass, its state (if
any) are fields with ``init=False``; both carry plain types, so that the compiled engine can
run the same source. It imports nothing that has a clock, a thread or a random generator.

A policy sees `QueueView` and nothing else: what a real server could know at that moment. True
service times of queued work, the future, and other models' queues are out of sight.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from gesim.core.decisions import Admit, Dispatch, Drop, Reject, Wait
from gesim.core.request import Request

__all__ = ["AdmissionPolicy", "BatchingPolicy", "OrderingPolicy", "QueueView"]


class QueueView(Protocol):
    """What a policy can see of one model's queue and instances. Times are int ns.

    Position 0 is the head: the request that would be taken first.
    """

    @property
    def count(self) -> int:
        """Requests queued."""

    @property
    def items(self) -> int:
        """Items (rows) queued: the sum of the requests' sizes."""

    @property
    def head_enqueue_ns(self) -> int:
        """Enqueue time of the head, or ``NEVER_NS`` when empty."""

    @property
    def oldest_enqueue_ns(self) -> int:
        """Enqueue time of the request that has waited longest, or ``NEVER_NS`` when empty."""

    @property
    def idle_instances(self) -> int:
        """Instances that could start a batch at this instant."""

    @property
    def instances(self) -> int:
        """Instances of the model."""

    @property
    def free_since_ns(self) -> int:
        """Since when the instance that would run the next batch has been free (0 at first)."""

    @property
    def last_dispatch_ns(self) -> int:
        """When this model's latest batch started, or -1 before the first."""

    @property
    def last_finish_ns(self) -> int:
        """When this model's latest batch finished, or -1 before the first."""

    @property
    def gears(self) -> tuple[int, ...]:
        """Compiled batch sizes, increasing; empty where the model runs any size."""

    def fit(self, max_items: int) -> int:
        """Count how many requests from the head fit into `max_items` (no skipping)."""

    def items_of(self, count: int) -> int:
        """Items in the first `count` requests."""

    def level_count(self, level: int) -> int:
        """Count the requests of one priority level."""

    def level_oldest_ns(self, level: int) -> int:
        """Enqueue time of the oldest request of a level, or ``NEVER_NS``."""

    def enqueue_ns(self, position: int) -> int:
        """Enqueue time of the request at a position."""

    def deadline_ns(self, position: int) -> int:
        """Deadline of the request at a position, ``NEVER_NS`` for none."""

    def level(self, position: int) -> int:
        """Priority level of the request at a position."""

    def size(self, position: int) -> int:
        """Items of the request at a position."""

    def length(self, position: int) -> int:
        """Length class of the request at a position."""

    def gear_up(self, items: int) -> int:
        """Smallest gear that holds `items`; `items` itself without gears; 0 if none does."""

    def gear_down(self, items: int) -> int:
        """Largest gear of at most `items`; `items` itself without gears; 0 if none is."""

    def service_ns(self, items: int) -> int:
        """Profile's mean time of a batch of `items` (host and transfer included)."""


class BatchingPolicy:
    """Decides when a batch starts and how many requests it takes.

    Subclass it with a dataclass, set `name`, and write `decide`.

    Attributes
    ----------
    name : str
        The name in scenario files.
    max_batch_size : int
        Largest batch, in items. Every batching policy has it.
    eager : bool
        False (usual): asked only while an instance is free. True: asked at every event of the
        model, also when ``queue.idle_instances`` is 0 (then `Dispatch` is illegal). For
        batchers that form batches ahead of the device, as Triton's does.
    work_conserving : bool
        A promise that the checker enforces: never waits while an instance is free.
    """

    name: ClassVar[str] = ""
    eager: ClassVar[bool] = False
    work_conserving: ClassVar[bool] = False
    max_batch_size: int

    def decide(self, now_ns: int, queue: QueueView) -> Dispatch | Wait | Drop:
        """Answer for this instant; see the contract in `gesim.core.decisions`.

        Parameters
        ----------
        now_ns : int
            The instant. All its completions, expiries and arrivals are already applied.
        queue : QueueView
            The model's queue, never empty when asked.
        """
        raise NotImplementedError

    def observe(self, now_ns: int, count: int, gear: int, exec_ns: int) -> None:
        """Learn that a batch of `count` requests at `gear` took `exec_ns`. Optional."""


class OrderingPolicy:
    """Gives each request a key when it is queued; lower keys go first.

    Ties go to the earlier arrival, then the smaller id.

    Attributes
    ----------
    by_level : bool
        A promise that the key depends on the request's level alone; lets the core queue many
        requests at once.
    """

    name: ClassVar[str] = ""
    by_level: ClassVar[bool] = False

    def key(self, request: Request) -> int:
        """Return the key. It is asked once and may use only the request's public fields."""
        raise NotImplementedError


class AdmissionPolicy:
    """Lets a request in or turns it away, once, when it reaches the queue."""

    name: ClassVar[str] = ""

    def admit(self, now_ns: int, request: Request, queue: QueueView) -> Admit | Reject:
        """Answer for one request; `queue` does not contain it yet."""
        raise NotImplementedError
