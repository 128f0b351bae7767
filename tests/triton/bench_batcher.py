"""A few requests through one model under `preferred_size`: what started when, what left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gesim.core.decisions import NEVER_NS
from gesim.core.scheduler import ModelConfig, Scheduler
from gesim.policies.batching.preferred_size import PreferredSize
from gesim.policies.ordering.strict_priority import StrictPriority
from gesim.scenario.system import System
from gesim.sim.driver import simulate
from gesim.workload.base import Chunk

MS = 1_000_000
GAP_MS = 0.05
"""Between two requests that a client sends "at once"; gRPC on one machine."""


def at_once(count, start_ms=0.0, gap_ms=GAP_MS):
    return [start_ms + gap_ms * i for i in range(count)]


@dataclass
class _Given:
    times_ns: np.ndarray
    level: np.ndarray
    items: np.ndarray
    timeout_ns: np.ndarray

    def chunks(self):
        zero = np.zeros(len(self.times_ns), np.int64)
        yield Chunk(
            self.times_ns, zero, self.level, self.items, zero, zero + NEVER_NS, self.timeout_ns,
            zero,
        )  # fmt: skip


@dataclass
class _Affine:
    setup_ns: int
    item_ns: int

    def mean_ns(self, items, length=0):
        return self.setup_ns + self.item_ns * items

    def time(self, batch):
        batch.compute_ns = self.mean_ns(batch.items)
        batch.finish_ns = batch.start_ns + batch.compute_ns


@dataclass
class Seen:
    """Batches as (start ms, items), and requests that left as (id, ms)."""

    batches: list = field(default_factory=list)
    left: list = field(default_factory=list)

    def arrivals(self, chunk):
        pass

    def batch(self, batch):
        self.batches.append(batch)

    def gone(self, request):
        self.left.append((request.id, request.finish_ns / MS))

    @property
    def sizes(self):
        return [b.items for b in self._by_start]

    @property
    def starts_ms(self):
        return [b.start_ns / MS for b in self._by_start]

    @property
    def ids(self):
        return [[r.id for r in b.requests] for b in self._by_start]

    @property
    def last_answer_ms(self):
        return max(b.finish_ns for b in self.batches) / MS

    @property
    def _by_start(self):
        return sorted(self.batches, key=lambda b: (b.start_ns, b.id))


def run(
    policy: PreferredSize,
    times_ms,
    *,
    levels=1,
    items=1,
    timeouts_ms=0,
    instances=1,
    setup_ms=8.57,
    item_ms=1.6,
    admission=(),
) -> Seen:
    """Send one request at each time; scalars hold for all of them."""
    n = len(times_ms)

    def column(values, scale=1):
        return np.rint(np.broadcast_to(np.asarray(values, float), n) * scale).astype(np.int64)

    service = _Affine(round(setup_ms * MS), round(item_ms * MS))
    model = ModelConfig(
        name="m",
        batching=policy,
        ordering=StrictPriority(),
        devices=(0,) * instances,
        service_ns=service.mean_ns,
        admission=admission,
    )
    system = System(
        scheduler=Scheduler([model], [instances]),
        services=[service],
        workload=_Given(
            column(times_ms, MS), column(levels), column(items), column(timeouts_ms, MS)
        ),
        receive_ns=0,
        respond_ns=0,
        models=["m"],
        devices=["d"],
    )
    seen = Seen()
    simulate(system, seen)
    return seen
