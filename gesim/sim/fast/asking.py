"""An interpreted policy for the fast lane: its view over the loop's arrays, its answers as ints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gesim.core.decisions import NEVER_NS, Dispatch, Drop, Wait
from gesim.core.policy import BatchingPolicy

__all__ = ["ArrayView", "callback"]


class ArrayView:
    """The queue view of the interpreted policy, over the loop's own arrays.

    Parameters
    ----------
    gears : tuple of int
    instances : int
    service_ns : callable
    """

    def __init__(
        self, gears: tuple[int, ...], instances: int, service_ns: Callable[[int], int]
    ) -> None:
        self._times: Any = ()
        self._head: Any = ()
        self._tail: Any = ()
        self._levels: Any = None
        self.gears = gears
        self.instances = instances
        self.service_ns = service_ns
        self.count = self.items = self.idle_instances = 0
        self.head_enqueue_ns = self.oldest_enqueue_ns = NEVER_NS
        self.free_since_ns = 0
        self.last_dispatch_ns = self.last_finish_ns = -1

    def attach(self, times: Any, head: Any, tail: Any, levels: Any = None) -> None:
        """Look at these arrays from now on, as `gesim.sim.fast.kernel` has them.

        `levels` where one lane holds requests of several.
        """
        self._times, self._head, self._tail, self._levels = times, head, tail, levels

    def fit(self, max_items: int) -> int:
        """Count the requests that fit: all are of one item."""
        return min(self.count, max_items)

    def items_of(self, count: int) -> int:
        """Items of the first `count`."""
        return min(self.count, count)

    def size(self, position: int) -> int:
        """Items at a position."""
        self._find(position)
        return 1

    def length(self, position: int) -> int:
        """Length class at a position: none in the fast lane."""
        self._find(position)
        return 0

    def deadline_ns(self, position: int) -> int:
        """Deadline at a position: none in the fast lane."""
        self._find(position)
        return NEVER_NS

    def level_count(self, level: int) -> int:
        """Count the requests of a level."""
        if self._levels is not None:
            return sum(each == level for each in self._levels[self._head[0] : self._tail[0]])
        if not 1 <= level <= len(self._head):
            return 0
        return int(self._tail[level - 1] - self._head[level - 1])

    def level_oldest_ns(self, level: int) -> int:
        """Enqueue time of a level's oldest request."""
        if self._levels is not None:
            places = range(int(self._head[0]), int(self._tail[0]))
            oldest = next((j for j in places if self._levels[j] == level), None)
            return NEVER_NS if oldest is None else int(self._times[oldest])
        if not self.level_count(level):
            return NEVER_NS
        return int(self._times[self._head[level - 1]])

    def enqueue_ns(self, position: int) -> int:
        """Enqueue time at a position."""
        return int(self._times[self._find(position)[1]])

    def level(self, position: int) -> int:
        """Priority level at a position."""
        lane, place = self._find(position)
        return lane + 1 if self._levels is None else int(self._levels[place])

    def gear_up(self, items: int) -> int:
        """Smallest gear that holds `items`."""
        if not self.gears:
            return items
        return next((gear for gear in self.gears if gear >= items), 0)

    def gear_down(self, items: int) -> int:
        """Largest gear of at most `items`."""
        if not self.gears:
            return items
        return max((gear for gear in self.gears if gear <= items), default=0)

    def _find(self, position: int) -> tuple[int, int]:
        """Lane and index of a position."""
        left = position
        for lane in range(len(self._head)):
            queued = int(self._tail[lane] - self._head[lane])
            if 0 <= left < queued:
                return lane, int(self._head[lane]) + left
            left -= queued
        raise IndexError(f"position {position} in a queue of {self.count} requests")


def callback(
    policy: BatchingPolicy, view: ArrayView, reasons: list[str]
) -> Callable[..., tuple[int, int, int, int]]:
    """Wrap `policy.decide` for `call_decide`: numbers in, four ints out.

    `reasons` collects the texts of `Drop` answers; an answer carries the index.
    """
    decide = policy.decide

    def call(
        now_ns: int,
        count: int,
        head_ns: int,
        oldest_ns: int,
        idle: int,
        since_ns: int,
        dispatch_ns: int,
        finish_ns: int,
    ) -> tuple[int, int, int, int]:
        view.count = view.items = count
        view.head_enqueue_ns = head_ns
        view.oldest_enqueue_ns = oldest_ns
        view.idle_instances = idle
        view.free_since_ns = since_ns
        view.last_dispatch_ns = dispatch_ns
        view.last_finish_ns = finish_ns
        answer = decide(now_ns, view)
        if type(answer) is Dispatch:
            return 1, answer.count, answer.gear, answer.level
        if type(answer) is Wait:
            return 2, answer.until_ns, answer.count, 0
        if type(answer) is Drop:
            if answer.reason not in reasons:
                reasons.append(answer.reason)
            return 3, answer.count, reasons.index(answer.reason), 0
        return 0, 0, 0, 0

    return call
