"""The discrete-event driver: SimPy keeps the event list, the decision core decides.

Theory of operation
-------------------
The driver is batch-granular. SimPy's heap holds completions (and, in a closed loop, clients
that think); arrivals of an open loop are drawn beforehand and merged in time order, and the
core's own wake-up is one number. The loop takes the earliest of the three, applies everything
that happens at that instant in the core's order (completions, expiries, arrivals), and polls
once. Arrivals while every instance is busy need no decision, so they are fed in one go, each
with its own time (`Scheduler.arrive` says when a decision is due).

So a request costs one object and one call, and only batches cost SimPy events. The times are
those of the process-per-request model of the same system, to the nanosecond (tests/sim).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Batch, Outcome, Request
from gesim.core.scheduler import Start
from gesim.metrics.sink import Sink
from gesim.scenario.system import System
from gesim.sim.interrupt import Interrupt, interrupts
from gesim.workload.base import Chunk, ClosedLoop

__all__ = ["SimInfo", "simulate"]

Progress = Callable[[int, int], None]
"""Called with (requests done, simulated ns) every few thousand decisions."""

_PROGRESS_EVERY = 4096

_Arrivals = tuple[list[Request], list[int], bool]
"""Requests of a chunk, their enqueue times, and whether they are all of one kind."""


@dataclass(frozen=True)
class SimInfo:
    """What a run did.

    Attributes
    ----------
    end_ns : int
        Time of the last event.
    requests, batches : int
        Requests that reached a queue or were turned away; batches that finished.
    events : int
        Instants at which the core was polled.
    """

    end_ns: int
    requests: int
    batches: int
    events: int


class _Event(simpy.Event):
    """A triggered event with a ready list of callbacks: one allocation less than a Timeout."""

    def __init__(self, env: simpy.Environment, callbacks: list[Any], value: object) -> None:
        self.env = env
        self.callbacks = callbacks
        self._value = value
        self._ok = True


class _Run:
    """State of one run; `loop` is the whole of it."""

    def __init__(
        self, system: System, sink: Sink, on_progress: Progress | None, interrupt: Interrupt
    ) -> None:
        self.system = system
        self.interrupt = interrupt
        self.sink = sink
        self.on_progress = on_progress
        self.env = simpy.Environment(0)
        self.done = [self._on_finished]
        self.resent = [self._on_resent]
        self.sent: list[Request] = []  # closed loop: requests that reach their queue now
        self.clients: ClosedLoop | None = None
        self.requests = 0
        self.answered = 0
        self.batches = 0
        self.events = 0
        self.now_ns = 0

    # ---- SimPy callbacks ---------------------------------------------------------------

    def _on_finished(self, event: simpy.Event) -> None:
        batch: Batch = event._value
        self.system.scheduler.finished(batch, batch.finish_ns)
        self.batches += 1
        self.answered += len(batch.requests)
        self.sink.batch(batch)
        if self.clients is not None:
            answered_ns = batch.finish_ns + self.system.respond_ns
            for request in batch.requests:
                self._send_again(request.client, answered_ns)

    def _on_resent(self, event: simpy.Event) -> None:
        self.sent.append(event._value)

    # ---- closed loop -------------------------------------------------------------------

    def _send(self, chunk: Chunk, first_client: int) -> None:
        """Schedule the requests of a chunk, one a client, to reach their queues."""
        self.sink.arrivals(chunk)
        for request in _requests(chunk, self.requests, self.system.receive_ns):
            request.client = first_client
            first_client += 1
            self.requests += 1
            event = _Event(self.env, self.resent, request)
            self.env.schedule(event, delay=request.enqueue_ns - self.env.now)

    def _send_again(self, client: int, answered_ns: int) -> None:
        assert self.clients is not None
        chunk = self.clients.again(client, answered_ns)
        if chunk is not None:
            self._send(chunk, client)

    # ---- the loop ----------------------------------------------------------------------

    def run(self) -> SimInfo:
        workload = self.system.workload
        arrivals: Iterator[_Arrivals] = iter(())
        if hasattr(workload, "chunks"):
            arrivals = self._open(workload.chunks())
        else:
            self.clients = workload
            self._send(workload.start(), 0)
        self._loop(arrivals)
        self._close()
        return SimInfo(self.now_ns, self.requests, self.batches, self.events)

    def _open(self, chunks: Iterator[Chunk]) -> Iterator[_Arrivals]:
        for chunk in chunks:
            if len(chunk):
                self.sink.arrivals(chunk)
                requests = _requests(chunk, self.requests, self.system.receive_ns)
                self.requests += len(requests)
                times_ns = (chunk.arrival_ns + self.system.receive_ns).tolist()
                yield requests, times_ns, _is_uniform(chunk)

    def _loop(self, arrivals: Iterator[_Arrivals]) -> None:
        """Advance from instant to instant until nothing is left that could happen."""
        scheduler, step = self.system.scheduler, self.env.step
        events: list[Any] = self.env._queue  # (time, priority, number, event), time an int here
        feed, poll, sent = scheduler.feed, scheduler.poll, self.sent
        none: _Arrivals = ([], [], True)
        requests, times_ns, uniform = next(arrivals, none)
        i, next_ns = 0, times_ns[0] if times_ns else NEVER_NS
        while True:
            event_ns = events[0][0] if events else NEVER_NS
            now_ns = scheduler.wake_ns
            if event_ns < now_ns:
                now_ns = event_ns
            # Arrivals before that: feed them until one asks for a decision.
            while next_ns < now_ns:
                i = feed(requests, times_ns, i, now_ns, uniform)
                if scheduler.due:
                    now_ns = times_ns[i - 1]
                if i == len(times_ns):
                    requests, times_ns, uniform = next(arrivals, none)
                    i = 0
                next_ns = times_ns[i] if times_ns else NEVER_NS
            if now_ns >= NEVER_NS:
                break
            # The instant itself: completions and clients' requests, arrivals, the decision.
            if event_ns == now_ns:
                while events and events[0][0] == now_ns:
                    step()
                if sent:
                    for request in sent:
                        scheduler.arrive(request, now_ns)
                    sent.clear()
            while next_ns == now_ns:
                i = feed(requests, times_ns, i, now_ns + 1, uniform)
                if i == len(times_ns):
                    requests, times_ns, uniform = next(arrivals, none)
                    i = 0
                next_ns = times_ns[i] if times_ns else NEVER_NS
            actions = poll(now_ns)
            if actions:
                self._carry_out(actions)
            self.now_ns = now_ns
            self.events += 1
            if not self.events % _PROGRESS_EVERY and self.on_progress is not None:
                self.on_progress(self.answered, now_ns)
            if self.interrupt.pending:
                raise KeyboardInterrupt

    def _carry_out(self, actions: list[Any]) -> None:
        env, services = self.env, self.system.services
        for action in actions:
            if type(action) is Start:
                batch = action.batch
                services[batch.model].time(batch)
                env.schedule(_Event(env, self.done, batch), delay=batch.finish_ns - env.now)
            else:
                request = action.request
                self.sink.gone(request)
                self.answered += 1
                if self.clients is not None:
                    self._send_again(request.client, request.finish_ns + self.system.respond_ns)

    def _close(self) -> None:
        """Hand over what is still queued: no event will ever move it."""
        for model in self.system.scheduler.models:
            for request in list(model.queue):
                request.outcome = Outcome.UNFINISHED
                request.reason = "end_of_run"
                request.finish_ns = self.now_ns
                self.sink.gone(request)


def _requests(chunk: Chunk, first_id: int, receive_ns: int) -> list[Request]:
    """Make the requests of a chunk. Columns become lists once: numpy scalars are slow."""
    arrival_ns = chunk.arrival_ns.tolist()
    columns: list[Iterable[int]] = [
        range(first_id, first_id + len(arrival_ns)),
        _values(chunk.model),
        arrival_ns,
        (chunk.arrival_ns + receive_ns).tolist() if receive_ns else arrival_ns,
    ]
    attributes = [
        (chunk.level, 1),
        (chunk.items, 1),
        (chunk.length, 0),
        (chunk.deadline_ns, NEVER_NS),
        (chunk.timeout_ns, 0),
        (chunk.work_ns, 0),
    ]
    while attributes and _is_all(*attributes[-1]):  # what `Request` says by itself
        attributes.pop()
    columns += [_values(column) for column, _ in attributes]
    return list(map(Request, *columns))


def _is_all(column: NDArray[np.int64], value: int) -> bool:
    return column.strides == (0,) and int(column[0]) == value


def _values(column: NDArray[np.int64]) -> Iterable[int]:
    """Return the values of a column; one that repeats a single number costs nothing."""
    return repeat(int(column[0])) if column.strides == (0,) else column.tolist()


def _is_uniform(chunk: Chunk) -> bool:
    """Tell whether all rows are of one model and level, one item each."""
    return bool(
        (chunk.model == chunk.model[0]).all()
        and (chunk.level == chunk.level[0]).all()
        and (chunk.items == 1).all()
    )


def simulate(system: System, sink: Sink, on_progress: Progress | None = None) -> SimInfo:
    """Run a system to its end.

    Parameters
    ----------
    system : System
        Fresh from `gesim.scenario.build`; a run uses it up.
    sink : Sink
        Receives finished batches and requests that left without an answer.
    on_progress : callable, optional
        ``(requests done, simulated ns)``, called every few thousand decisions.

    Returns
    -------
    SimInfo
        End time and counts.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, between two instants, so that `sink` holds a consistent partial record.
    """
    # A run keeps hundreds of thousands of live objects and makes no cycles: collecting as
    # often as the interpreter does by default costs a sixth of the time and frees nothing.
    thresholds = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        with interrupts() as interrupt:
            return _Run(system, sink, on_progress, interrupt).run()
    finally:
        gc.set_threshold(*thresholds)
