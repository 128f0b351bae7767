"""A slow, independent reference: one event at a time, no batching of arrivals, no SimPy."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gesim.core.decisions import NEVER_NS, Dispatch, Wait
from gesim.core.policy import BatchingPolicy, OrderingPolicy
from gesim.workload.base import Chunk


@dataclass
class Window(BatchingPolicy):
    """Dispatch at `max_batch_size` or when the oldest has waited `delay_ns`."""

    name: ClassVar[str] = "window"
    max_batch_size: int = 8
    delay_ns: int = 0

    def decide(self, now_ns, queue):
        if queue.items >= self.max_batch_size:
            return Dispatch(queue.fit(self.max_batch_size))
        late_ns = queue.oldest_enqueue_ns + self.delay_ns
        if late_ns <= now_ns:
            return Dispatch(queue.count)
        return Wait(late_ns, self.max_batch_size)


@dataclass
class ByLevel(OrderingPolicy):
    name: ClassVar[str] = "by_level"
    by_level: ClassVar[bool] = True

    def key(self, request):
        return request.level


@dataclass
class Fixed:
    """Service of setup + per_item * gear, as a stand-in for gesim.cost.service.Service."""

    setup_ns: int
    per_item_ns: int

    def time(self, batch):
        batch.compute_ns = self.setup_ns + self.per_item_ns * batch.gear
        batch.finish_ns = batch.start_ns + batch.compute_ns


@dataclass
class Given:
    """Open-loop workload of given times and levels, in chunks of a given size."""

    times: np.ndarray
    levels: np.ndarray
    chunk: int = 1000

    def chunks(self):
        for k in range(0, len(self.times), self.chunk):
            times = self.times[k : k + self.chunk]
            zero = np.zeros(len(times), np.int64)
            yield Chunk(
                times, zero, self.levels[k : k + self.chunk], zero + 1, zero, zero + NEVER_NS,
                zero, zero,
            )  # fmt: skip


@dataclass
class Collect:
    """Sink that keeps everything."""

    batches: list = field(default_factory=list)
    lost: list = field(default_factory=list)

    def arrivals(self, chunk):
        pass

    def batch(self, batch):
        self.batches.append(batch)

    def gone(self, request):
        self.lost.append(request)

    def finish_ns(self, n):
        done = np.full(n, -1, np.int64)
        for batch in self.batches:
            for request in batch.requests:
                done[request.id] = batch.finish_ns
        return done


def window_reference(times, levels, instances, size, delay_ns, service):
    """Finish time of every request under `Window`, strict priority, `instances` servers.

    Written from the rules: of one instant first completions, then arrivals, then decisions; the
    free instance with the lowest index; a wait that nobody cancelled ends at its time.
    """
    queue: list[tuple[int, int, int]] = []  # (level, time, id)
    busy: list[tuple[int, int]] = []  # (finish, instance)
    free = list(range(instances))
    done = np.full(len(times), -1, np.int64)
    i = 0
    wake = None
    while i < len(times) or busy or queue:
        moments = [t for t in (times[i] if i < len(times) else None, wake) if t is not None]
        moments += [busy[0][0]] if busy else []
        if not moments:
            break
        now = min(moments)
        while busy and busy[0][0] == now:
            heapq.heappush(free, heapq.heappop(busy)[1])
        while i < len(times) and times[i] == now:
            heapq.heappush(queue, (int(levels[i]), int(times[i]), i))
            i += 1
        wake = None
        while queue and free:
            oldest = min(t for _, t, _ in queue)
            if len(queue) < size and oldest + delay_ns > now:
                wake = oldest + delay_ns
                break
            taken = [heapq.heappop(queue) for _ in range(min(size, len(queue)))]
            finish = now + service(len(taken))
            heapq.heappush(busy, (finish, heapq.heappop(free)))
            for _, _, k in taken:
                done[k] = finish
    return done
