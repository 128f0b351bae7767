"""A tiny event loop around the decision core: pure Python, no simulator, no scenario.

Theory of operation
-------------------
`play` walks from instant to instant: completions, arrivals, then one poll, as the contract of
`gesim.core.scheduler` says. It is slow and short on purpose, so that a test of a policy
depends on little else::

    played = play([model(Greedy(8))], requests_at([0, 10, 20]), service_ns=lambda batch: 100)
    assert played.sizes == [1, 2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from gesim.core.actions import Gone, Start
from gesim.core.decisions import NEVER_NS
from gesim.core.invariants import CheckedScheduler
from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy
from gesim.core.request import Batch, Request
from gesim.core.scheduler import ModelConfig, Scheduler
from gesim.errors import InternalError

__all__ = ["Played", "model", "play", "requests_at"]


class _InOrder(OrderingPolicy):
    """First come, first served; here so that the harness needs no policy package."""

    name = "in_order"
    by_level = True

    def key(self, request: Request) -> int:
        """One key for all."""
        return 0


@dataclass
class Played:
    """What happened.

    Attributes
    ----------
    batches : list of Batch
        In order of start; `start_ns` and `finish_ns` are filled in.
    gone : list of Request
        Left without an answer, in order.
    waiting : list of Request
        Still queued when nothing more could happen.
    end_ns : int
        The last instant.
    """

    batches: list[Batch] = field(default_factory=list)
    gone: list[Request] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)
    end_ns: int = 0

    @property
    def sizes(self) -> list[int]:
        """Requests in each batch, in order of start."""
        return [len(batch.requests) for batch in self.batches]

    @property
    def starts_ns(self) -> list[int]:
        """Start times, in order."""
        return [batch.start_ns for batch in self.batches]

    @property
    def served(self) -> list[list[int]]:
        """Ids of the requests in each batch."""
        return [[request.id for request in batch.requests] for batch in self.batches]

    def log(self) -> list[tuple[int, ...]]:
        """All decisions as plain numbers, for comparing two runs."""
        lines: list[tuple[int, ...]] = [
            (b.start_ns, b.model, b.instance, b.gear, *(r.id for r in b.requests))
            for b in self.batches
        ]
        lines += [(r.finish_ns, -1, int(r.outcome), r.id) for r in self.gone]
        return lines


def model(
    batching: BatchingPolicy,
    ordering: OrderingPolicy | None = None,
    admission: Sequence[AdmissionPolicy] = (),
    *,
    devices: tuple[int, ...] = (0,),
    gears: tuple[int, ...] = (),
    service_ns: Callable[[int], int] = lambda items: 1_000_000 + 100_000 * items,
    queue_bound: int = 1_000_000,
    name: str = "model",
) -> ModelConfig:
    """Configure one model; the defaults are one instance, FIFO and no gears."""
    return ModelConfig(
        name=name,
        batching=batching,
        ordering=ordering or _InOrder(),
        devices=devices,
        service_ns=service_ns,
        admission=admission,
        gears=gears,
        lengths=True,
        queue_bound=queue_bound,
    )


def requests_at(
    times_ns: Iterable[int],
    *,
    model: int = 0,
    levels: Sequence[int] = (1,),
    items: Sequence[int] = (1,),
    timeout_ns: int = 0,
) -> list[Request]:
    """Make requests that arrive at these times (int ns); levels and sizes are cycled through."""
    return [
        Request(
            i, model, t, t, levels[i % len(levels)], items[i % len(items)], timeout_ns=timeout_ns
        )
        for i, t in enumerate(times_ns)
    ]


def play(
    models: Sequence[ModelConfig],
    requests: Sequence[Request],
    *,
    streams: Sequence[int] | None = None,
    service_ns: Callable[[Batch], int] | None = None,
    checked: bool = True,
    scheduler: Scheduler | None = None,
    instants_max: int = 1_000_000,
) -> Played:
    """Run requests through a scheduler until nothing more can happen.

    Parameters
    ----------
    models : sequence of ModelConfig
        See `model`.
    requests : sequence of Request
        In order of `enqueue_ns`.
    streams : sequence of int, optional
        Batches each device runs at once; as many as it has instances by default.
    service_ns : callable, optional
        Time of a batch, at least 0; by default what the model's `service_ns` says of its gear.
    checked : bool
        Check all invariants (`CheckedScheduler`).
    scheduler : Scheduler, optional
        Use this one instead of making one of `models`.
    instants_max : int
        Take a run of more instants to be endless (timers without end).

    Raises
    ------
    PolicyError, InternalError
        From the scheduler; also when a run does not end.
    """
    if streams is None:
        used = [device for config in models for device in config.devices]
        streams = [max(1, used.count(device)) for device in range(max(used) + 1)]
    if scheduler is None:
        scheduler = (CheckedScheduler if checked else Scheduler)(models, streams)
    running: list[tuple[int, int, Batch]] = []
    played = Played()
    sent = 0
    for _ in range(instants_max):
        next_ns = requests[sent].enqueue_ns if sent < len(requests) else NEVER_NS
        now_ns = min(running[0][0] if running else NEVER_NS, next_ns, scheduler.wake_ns)
        if now_ns >= NEVER_NS:
            break
        while running and running[0][0] == now_ns:
            scheduler.finished(heappop(running)[2], now_ns)
        while sent < len(requests) and requests[sent].enqueue_ns == now_ns:
            scheduler.arrive(requests[sent], now_ns)
            sent += 1
        played.end_ns = now_ns
        for action in scheduler.poll(now_ns):
            if type(action) is Start:
                batch = action.batch
                config = models[batch.model]
                taken_ns = service_ns(batch) if service_ns else config.service_ns(batch.gear)
                batch.compute_ns = taken_ns
                batch.finish_ns = now_ns + taken_ns
                heappush(running, (batch.finish_ns, batch.id, batch))
                played.batches.append(batch)
            elif type(action) is Gone:
                played.gone.append(action.request)
    else:
        raise InternalError(f"the run does not end: {instants_max} instants, now {now_ns} ns")
    played.waiting = [request for queue in scheduler.models for request in queue.queue]
    if isinstance(scheduler, CheckedScheduler):
        scheduler.audit()
    return played
