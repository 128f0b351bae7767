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
        started for `high_idle_ns`; or while normal batches have had at most `low_share_ratio`
        of the time since the start, by the profile, so that the rest stays free for high work.
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
            return self.run_high(now_ns, queue, high)
        until_ns = self.low_from_ns()
        if now_ns < until_ns:
            return Wait(until_ns, queue.items + 1)
        count = queue.fit(self.max_batch_size)
        self.low_busy_ns = self.low_busy_ns + queue.service_ns(queue.items_of(count))
        return Dispatch(count)

    def low_from_ns(self) -> int:
        """When normal work may run, no high work being in hand."""
        if self.low_when == "high_idle":
            if self.last_high_ns < 0:
                return 0
            return self.last_high_ns + self.high_idle_ns
        if self.low_when == "time_share":
            return int(self.low_busy_ns / self.low_share_ratio)
        return 0

    def run_high(self, now_ns: int, queue: QueueView, most: int) -> Dispatch:
        """Start a batch of at most so many high requests."""
        self.last_high_ns = now_ns
        return Dispatch(self.fitting(queue, 1, most), 0, 1)

    def fitting(self, queue: QueueView, level: int, most: int) -> int:
        """Count requests of a level, at most so many, that fit into a batch."""
        if queue.items == queue.count:
            return min(most, queue.level_count(level), self.max_batch_size)
        items = 0
        taken = 0
        position = 0
        while position < queue.count and taken < most:
            if queue.level(position) == level:
                items = items + queue.size(position)
                if items > self.max_batch_size:
                    return max(1, taken)
                taken = taken + 1
            position = position + 1
        return taken

    def one_turn(self, now_ns: int, queue: QueueView, high: int) -> Dispatch | Wait:
        """Take turns of the article's loop: get one request, then run a batch if any may run."""
        low = queue.count - high
        self.got_low = min(self.got_low, low)
        if high > 0 and self.high_is_next(queue, high, low):
            return self.run_high(now_ns, queue, 1)
        if self.got_low < low:
            self.got_low = self.got_low + 1
            if now_ns >= self.low_from_ns():
                return self.run_got(queue, high)
            if high > 0:  # it gets on, past normal work that may not run, up to the high one
                return self.run_high(now_ns, queue, 1)
            self.got_low = low
        return Wait(NEVER_NS, queue.items + 1)  # the get blocks

    def high_is_next(self, queue: QueueView, high: int, low: int) -> bool:
        """Tell whether the next request that the loop gets is a high one (strict_priority)."""
        if self.got_low >= low:
            return True
        return queue.enqueue_ns(0) <= queue.enqueue_ns(high + self.got_low)

    def run_got(self, queue: QueueView, high: int) -> Dispatch:
        """Start a batch of the normal requests that the loop has got, all of one level."""
        first = high
        if queue.level(first) == 1:  # not in order of level: look for one
            first = 0
            while queue.level(first) == 1:
                first = first + 1
        level = queue.level(first)
        count = self.fitting(queue, level, self.got_low)
        self.got_low = self.got_low - count
        self.low_busy_ns = self.low_busy_ns + queue.service_ns(count)
        return Dispatch(count, 0, level)
