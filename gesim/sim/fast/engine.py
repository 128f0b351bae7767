"""The fast lane: feed a system's arrivals through the kernel, hand on what comes out.

Theory of operation
-------------------
`plan` says what a system needs of the kernel, or in one sentence why it cannot run there; then
the SimPy engine runs it, never an approximation. The policy is compiled from its own source,
or else interpreted and called from the compiled loop; without a compiler the loop runs in
plain Python. Every request completes at the same nanosecond as on the SimPy engine.

The beginning goes to the recorder request by request. When that is streaming, and the requests
it keeps one by one have left, compiled code folds the rest into the recorder's stream.

If a policy answers something illegal the run starts again on the SimPy engine, whose error
says what was wrong and when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from numpy import int64
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.metrics.measures import due_ns
from gesim.metrics.recorder import Recorder
from gesim.scenario.system import System
from gesim.sim.driver import SimInfo
from gesim.sim.fast.ahead import ahead
from gesim.sim.fast.check import Check
from gesim.sim.fast.lanes import NO_ARRIVALS, Arrivals
from gesim.sim.fast.loop import Loop
from gesim.sim.fast.plan import Plan, UnsupportedError
from gesim.sim.fast.sinks import Folding, Recording, Sink
from gesim.sim.interrupt import Interrupt
from gesim.workload.base import Chunk

__all__ = ["simulate_fast"]

Int = NDArray[int64]


def simulate_fast(
    system: System,
    recorder: Recorder,
    made: Plan,
    *,
    interrupt: Interrupt,
    on_progress: Callable[[int, int], None] | None = None,
) -> SimInfo:
    """Run a planned system; see `gesim.sim.driver.simulate`.

    Raises
    ------
    IllegalAnswerError
        If the policy answered something illegal: run it on the SimPy engine to learn what.
    DifferentError
        If the compiled policy does not do what its source does.
    UnsupportedError
        If a request turns out to have what the kernel does not know (several items, a length,
        or a timeout of its own).
    """
    return _Run(system, recorder, made, interrupt, on_progress).run()


class _Run:
    """State of one run."""

    def __init__(
        self,
        system: System,
        recorder: Recorder,
        made: Plan,
        interrupt: Interrupt,
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self.system = system
        self.recorder = recorder
        self.made = made
        self.interrupt = interrupt
        self.on_progress = on_progress
        self.folds = False
        self.requests = 0

    def _start(self, first: Chunk | None) -> None:
        """Make the loop, now that the first arrivals tell whether requests have deadlines."""
        due = first is not None and _any_but(first.deadline_ns, NEVER_NS)
        self.made = made = replace(self.made, flags=replace(self.made.flags, DUE=due))
        config, service = self.system.scheduler.models[0].config, self.system.services[0]
        self.check = Check(config, service, made) if made.source is not None else None
        self.loop = Loop(config, service, made)
        self.sink: Sink = Recording(self.loop, self.recorder)

    def run(self) -> SimInfo:
        """Feed all arrivals, then none."""
        chunks = self.system.workload.chunks()  # type: ignore[union-attr]
        with ahead(chunks, threaded=not self.made.flags.CALLED) as feed:
            first = next(feed, None)
            self._start(first)
            for chunk in chain([first] if first is not None else [], feed):
                self.interrupt.check()
                self._refuse(chunk)
                self.sink.arrivals(chunk)
                hold_ns = int(chunk.arrival_ns[-1]) + self.system.receive_ns
                self._step(self._arrivals(chunk), hold_ns)
                if self.on_progress is not None:
                    self.on_progress(self.requests, self.loop.now_ns)
        self._step(NO_ARRIVALS, NEVER_NS)
        self.sink.close()
        loop = self.loop
        return SimInfo(loop.now_ns, self.requests, loop.all_started, loop.all_started)

    def _refuse(self, chunk: Chunk) -> None:
        """Refuse requests that the kernel does not know how to treat."""
        for column, plain, what in (
            (chunk.items, 1, "requests of several items"),
            (chunk.length, 0, "requests with a length"),
            (chunk.timeout_ns, 0, "requests with a timeout of their own"),
        ):
            if _any_but(column, plain):
                raise UnsupportedError(what)
        if self.folds and not self.made.flags.DUE and _any_but(chunk.deadline_ns, NEVER_NS):
            raise UnsupportedError("deadlines that only later requests have")

    def _arrivals(self, chunk: Chunk) -> Arrivals:
        self.requests += len(chunk)
        receive_ns = self.system.receive_ns
        times = chunk.arrival_ns + receive_ns if receive_ns else chunk.arrival_ns
        arrivals = {"times": times, "levels": chunk.level, "work": chunk.work_ns}
        if self.made.flags.DUE:
            arrivals["due"] = due_ns(
                chunk.model, chunk.arrival_ns, chunk.deadline_ns, self.recorder.facts
            )
        return arrivals

    def _step(self, arrivals: Arrivals, hold_ns: int) -> None:
        check = self.check
        if check is not None:
            check.feed(arrivals)
        self.loop.lanes.append(arrivals)
        for _ in self.loop.advance(hold_ns):
            self.sink.take()
            if check is not None:
                check.keep(self.loop)
        if check is not None and (check.full or hold_ns == NEVER_NS):
            check.compare(hold_ns)
            self.check = None
        if not self.folds and self._may_fold():
            expected = self.system.expected_requests
            self.sink, self.folds = Folding(self.loop, self.recorder, expected), True

    def _may_fold(self) -> bool:
        """Whether the requests that are kept one by one have all left."""
        recorder = self.recorder
        if self.made.flags.PLAIN or not recorder.streams(self.system.expected_requests):
            return False
        oldest = self.loop.lanes.oldest_id()
        return self.requests >= recorder.kept and (oldest is None or oldest >= recorder.kept)


def _any_but(column: Int, value: int) -> bool:
    """Whether any row differs; a column that repeats one number is looked at once."""
    if column.strides == (0,):
        return int(column[0]) != value
    return bool((column != value).any())
