"""The bounded queue of one model, and the view of it that policies get.

Theory of operation
-------------------
Requests with the same ordering key form a *lane*: a FIFO of unexpired requests followed by a
FIFO of delayed ones (requests whose timeout passed with action DELAY run only when their lane
has no unexpired request). The queue's order is: lanes by key, inside a lane unexpired before
delayed, inside each the order of arrival. `fifo` has one lane, `strict_priority` one a level,
`edf` one a deadline. So the head is found in O(1) and a whole batch is taken in O(batch).

The queue answers every question of `gesim.core.policy.QueueView`; the methods that change it
are for the scheduler alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Request

__all__ = ["RequestQueue"]

_LANES_KEPT = 64
"""Empty lanes kept for reuse: plenty for priority levels, few enough for deadline keys."""


class _Lane:
    """Requests of one key: unexpired first, then delayed."""

    __slots__ = ("delayed", "live")

    def __init__(self) -> None:
        self.live: deque[Request] = deque()
        self.delayed: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self.live) + len(self.delayed)

    def head(self) -> Request:
        return self.live[0] if self.live else self.delayed[0]

    def pop(self) -> Request:
        return self.live.popleft() if self.live else self.delayed.popleft()

    def oldest_ns(self) -> int:
        oldest = self.live[0].enqueue_ns if self.live else NEVER_NS
        if self.delayed:
            oldest = min(oldest, min(r.enqueue_ns for r in self.delayed))
        return oldest


class RequestQueue:
    """Queue of one model: lanes by ordering key, counts by priority level.

    Parameters
    ----------
    gears : tuple of int
        Compiled batch sizes, increasing; empty for any size.
    instances : int
        Instances of the model.
    service_ns : callable
        ``items -> int``, the profile's mean batch time.
    """

    __slots__ = (
        "_by_level", "_keys", "_lanes", "_level", "_only", "_service_ns", "count",
        "free_since_ns", "gears", "head_enqueue_ns", "idle_instances", "instances", "items",
        "last_dispatch_ns", "last_finish_ns", "oldest_enqueue_ns",
    )  # fmt: skip

    def __init__(
        self, gears: tuple[int, ...], instances: int, service_ns: Callable[[int], int]
    ) -> None:
        self.gears = gears
        self.instances = instances
        self.idle_instances = instances
        self.count = 0
        self.items = 0
        self.head_enqueue_ns = NEVER_NS
        self.oldest_enqueue_ns = NEVER_NS
        self.free_since_ns = 0
        self.last_dispatch_ns = -1
        self.last_finish_ns = -1
        self._service_ns = service_ns
        self._level = 1  # the level of every queued request while `_by_level` is None
        self._by_level: dict[int, int] | None = None
        self._lanes: dict[int, _Lane] = {}
        self._keys: list[int] = []  # keys of non-empty lanes, increasing
        self._only: _Lane | None = None  # the one non-empty lane, where there is just one

    # ---- what policies ask -------------------------------------------------------------

    def fit(self, max_items: int) -> int:
        """Count requests from the head that fit into `max_items`, skipping none."""
        if self.items == self.count:  # all of size 1
            return min(self.count, max_items)
        taken = 0
        for request in self:
            max_items -= request.items
            if max_items < 0:
                break
            taken += 1
        return taken

    def items_of(self, count: int) -> int:
        """Items in the first `count` requests."""
        if self.items == self.count:
            return min(count, self.count)
        total = 0
        for request in self:
            if count <= 0:
                break
            total += request.items
            count -= 1
        return total

    def level_count(self, level: int) -> int:
        """Count the requests of one priority level."""
        if self._by_level is None:
            return self.count if level == self._level else 0
        return self._by_level.get(level, 0)

    def level_oldest_ns(self, level: int) -> int:
        """Enqueue time of the oldest request of a level, ``NEVER_NS`` if there is none."""
        if not self.level_count(level):
            return NEVER_NS
        return min(r.enqueue_ns for r in self if r.level == level)

    def enqueue_ns(self, position: int) -> int:
        """Enqueue time at a position."""
        return self._at(position).enqueue_ns

    def deadline_ns(self, position: int) -> int:
        """Deadline at a position."""
        return self._at(position).deadline_ns

    def level(self, position: int) -> int:
        """Priority level at a position."""
        return self._at(position).level

    def size(self, position: int) -> int:
        """Items at a position."""
        return self._at(position).items

    def length(self, position: int) -> int:
        """Length class at a position."""
        return self._at(position).length

    def gear_up(self, items: int) -> int:
        """Smallest gear of at least `items`, 0 if none; `items` without gears."""
        if not self.gears:
            return items
        i = bisect_left(self.gears, items)
        return self.gears[i] if i < len(self.gears) else 0

    def gear_down(self, items: int) -> int:
        """Largest gear of at most `items`, 0 if none; `items` without gears."""
        if not self.gears:
            return items
        i = bisect_right(self.gears, items)
        return self.gears[i - 1] if i else 0

    def service_ns(self, items: int) -> int:
        """Mean time of a batch of `items` by the profile."""
        return self._service_ns(items)

    def __iter__(self) -> Iterator[Request]:
        """Walk the requests in queue order."""
        for key in self._keys:
            lane = self._lanes[key]
            yield from lane.live
            yield from lane.delayed

    def _at(self, position: int) -> Request:
        if 0 <= position < self.count:
            for key in self._keys:
                lane = self._lanes[key]
                if position < len(lane.live):
                    return lane.live[position]
                position -= len(lane.live)
                if position < len(lane.delayed):
                    return lane.delayed[position]
                position -= len(lane.delayed)
        raise IndexError(f"position {position} in a queue of {self.count} requests")

    # ---- what the scheduler does -------------------------------------------------------

    def push(self, request: Request) -> None:
        """Append a request to its lane (`request.key` is set)."""
        key = request.key
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        live = lane.live
        live.append(request)
        if len(live) == 1:
            if not lane.delayed:
                insort(self._keys, key)
                self._only = lane if len(self._keys) == 1 else None
            if self._keys[0] == key:
                self.head_enqueue_ns = request.enqueue_ns
        if request.enqueue_ns < self.oldest_enqueue_ns:
            self.oldest_enqueue_ns = request.enqueue_ns
        by_level = self._by_level
        if by_level is not None:
            by_level[request.level] = by_level.get(request.level, 0) + 1
        elif request.level != self._level:
            self._second_level(request.level)
        self.count += 1
        self.items += request.items

    def push_many(self, requests: list[Request]) -> None:
        """Append requests of one key and one level, each of one item, in order of arrival."""
        self.push(requests[0])
        if len(requests) > 1:
            first = requests[0]
            self._lanes[first.key].live.extend(requests[1:])
            self.count += len(requests) - 1
            self.items += len(requests) - 1
            if self._by_level is not None:
                self._by_level[first.level] += len(requests) - 1

    def _second_level(self, level: int) -> None:
        """Count by level from now on: a second level was seen (or the first, when empty)."""
        if not self.count:
            self._level = level
        else:
            self._by_level = {self._level: self.count, level: 1}

    def take(self, count: int) -> list[Request]:
        """Remove and return the first `count` requests."""
        only = self._only
        if only is not None and not only.delayed:
            live = only.live
            if count == len(live):
                taken = list(live)
                live.clear()
            else:
                popleft = live.popleft
                taken = [popleft() for _ in range(count)]
        else:
            taken = []
            for key in list(self._keys):
                lane = self._lanes[key]
                while len(lane) and len(taken) < count:
                    taken.append(lane.pop())
                if len(taken) == count:
                    break
        self._removed(taken)
        return taken

    def take_level(self, level: int, count: int) -> list[Request]:
        """Remove and return the first `count` requests of one level."""
        taken = list(islice((r for r in self if r.level == level), count))
        self.discard(taken)
        return taken

    def discard(self, requests: list[Request]) -> None:
        """Remove requests wherever they are."""
        for request in requests:
            lane = self._lanes[request.key]
            where = lane.live if request in lane.live else lane.delayed
            where.remove(request)
        self._removed(requests)

    def delay(self, request: Request) -> None:
        """Move an expired request behind its lane's unexpired ones."""
        lane = self._lanes[request.key]
        lane.live.remove(request)
        lane.delayed.append(request)
        self._refresh()

    def _removed(self, taken: list[Request]) -> None:
        if self.items == self.count:
            self.items -= len(taken)
        else:
            for request in taken:
                self.items -= request.items
        self.count -= len(taken)
        by_level = self._by_level
        if by_level is not None:
            for request in taken:
                by_level[request.level] -= 1
        self._refresh()

    def _refresh(self) -> None:
        """Bring the head and the oldest up to date after a removal; forget empty lanes."""
        only = self._only
        if only is not None and only.live and not only.delayed:  # the common case, O(1)
            self.head_enqueue_ns = self.oldest_enqueue_ns = only.live[0].enqueue_ns
            return
        lanes = self._lanes
        if not self.count:
            self._keys.clear()
            self._only = None
            self.head_enqueue_ns = self.oldest_enqueue_ns = NEVER_NS
            if len(lanes) > _LANES_KEPT:
                lanes.clear()
            return
        self._keys = [key for key in self._keys if len(lanes[key])]
        if len(lanes) > _LANES_KEPT:
            self._lanes = lanes = {key: lanes[key] for key in self._keys}
        self._only = lanes[self._keys[0]] if len(self._keys) == 1 else None
        self.head_enqueue_ns = lanes[self._keys[0]].head().enqueue_ns
        self.oldest_enqueue_ns = min(lanes[key].oldest_ns() for key in self._keys)
