"""The GE article's dual-queue loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gesim.core.decisions import NEVER_NS, Dispatch, Wait
from gesim.core.policy import BatchingPolicy, QueueView
from gesim.errors import PolicyError
from gesim.policies.checks import at_least, share

__all__ = ["DualQueue"]


@dataclass
class DualQueue(BatchingPolicy):
    """High priority first, in batches of its own; normal work when `low_when` allows.

    Level 1 is high, every other level is normal. The article's own loop (`literal`) gets one
    request, sorts it into a queue, and then runs a batch of high ones, or else of normal ones:
    so every high batch is a single request, and normal work that was held back waits for the
    *next arrival*, because the get blocks. Repaired (default), both look at what is there.
    Normal work can starve either way. Use it with ordering `strict_priority`. Checked against
    the two-class priority queue at batch size 1 (B1).

    Parameters
    ----------
    max_batch_size : int
        Most items in a batch.
    low_when : {"always", "high_idle", "time_share"}
        When normal work may run while no high work is queued: always; once no high batch has
        started for `high_idle_ns`; or while normal batches have had less than
        `low_share_ratio` of the batches' time so far.
    high_idle_ns : int, default 0
        For high_idle.
    low_share_ratio : float, default 0.5
        For time_share.
    literal : bool, default False
        Keep the article's defects.
    """

    name: ClassVar[str] = "dual_queue"

    max_batch_size: int
    low_when: Literal["always", "high_idle", "time_share"] = "always"
    high_idle_ns: int = 0
    low_share_ratio: float = 0.5
    literal: bool = False
    last_high_ns: int = field(default=-1, init=False)
    high_busy_ns: int = field(default=0, init=False)
    low_busy_ns: int = field(default=0, init=False)
    got_low: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        at_least("dual_queue", "max_batch_size", self.max_batch_size, 1)
        at_least("dual_queue", "high_idle", self.high_idle_ns, 0)
        share("dual_queue", "low_share_ratio", self.low_share_ratio)
        if self.low_when == "time_share" and self.low_share_ratio == 0.0:
            raise PolicyError("dual_queue: low_share_ratio 0 never runs normal work")

    def decide(self, now_ns: int, queue: QueueView) -> Dispatch | Wait:
        """Run high work, or normal work if it may run, or wait."""
        high = queue.level_count(1)
        if self.literal:
            return self.one_turn(now_ns, queue, high)
        if high > 0:
            return self.run_high(now_ns, queue, min(high, queue.fit(self.max_batch_size)))
        if self.may_run_low(now_ns):
            return self.run_low(queue, queue.fit(self.max_batch_size))
        if self.low_when == "high_idle":
            return Wait(self.last_high_ns + self.high_idle_ns, queue.items + 1)
        return self.run_low(queue, queue.fit(self.max_batch_size))

    def one_turn(self, now_ns: int, queue: QueueView, high: int) -> Dispatch | Wait:
        """Take one turn of the article's loop: get one request, then run one batch."""
        low = queue.count - high
        if low <= self.got_low and high == 0:
            return Wait(NEVER_NS, queue.items + 1)  # the get blocks
        if high > 0 and (
            low <= self.got_low or queue.enqueue_ns(0) <= queue.enqueue_ns(high + self.got_low)
        ):
            return self.run_high(now_ns, queue, 1)
        self.got_low = self.got_low + 1
        if not self.may_run_low(now_ns):
            return self.one_turn_later(now_ns, queue, high)
        taken = min(self.got_low, self.max_batch_size)
        self.got_low = self.got_low - taken
        self.low_busy_ns = self.low_busy_ns + queue.service_ns(taken)
        return Dispatch(taken, 0, 2)

    def one_turn_later(self, now_ns: int, queue: QueueView, high: int) -> Dispatch | Wait:
        """Go on with the next turn: normal work may not run, so the loop gets again."""
        low = queue.count - high
        if high > 0:
            return self.run_high(now_ns, queue, 1)
        self.got_low = low
        return Wait(NEVER_NS, queue.items + 1)

    def run_high(self, now_ns: int, queue: QueueView, count: int) -> Dispatch:
        """Start a batch of high requests."""
        self.last_high_ns = now_ns
        self.high_busy_ns = self.high_busy_ns + queue.service_ns(queue.items_of(count))
        return Dispatch(count)

    def run_low(self, queue: QueueView, count: int) -> Dispatch:
        """Start a batch of normal requests (no high one is queued)."""
        self.low_busy_ns = self.low_busy_ns + queue.service_ns(queue.items_of(count))
        return Dispatch(count)

    def may_run_low(self, now_ns: int) -> bool:
        """Tell whether normal work may run now, no high work being in hand."""
        if self.low_when == "high_idle":
            return self.last_high_ns < 0 or now_ns >= self.last_high_ns + self.high_idle_ns
        if self.low_when == "time_share":
            total_ns = self.high_busy_ns + self.low_busy_ns
            return self.low_busy_ns <= self.low_share_ratio * total_ns
        return True
