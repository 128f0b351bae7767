"""Where the rows of a kernel call go: to a recorder, or folded into a stream by compiled code."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.blocks import BLOCKS, STREAMED
from gesim.metrics.histogram import BUCKETS
from gesim.metrics.recorder import Recorder
from gesim.metrics.stream import Stream
from gesim.sim.fast import tally
from gesim.sim.fast.loop import Loop, Rows
from gesim.workload.base import Chunk

__all__ = ["Folding", "Recording", "Sink"]

Int = NDArray[np.int64]


class Sink(Protocol):
    """Takes the rows of the kernel's last call."""

    def arrivals(self, chunk: Chunk) -> None:
        """Take arrivals before they are fed."""

    def take(self) -> None:
        """Take the rows of the last call."""

    def close(self) -> None:
        """Take what is still queued at the end."""


class Recording:
    """Hands every batch and every loss to a recorder."""

    def __init__(self, loop: Loop, recorder: Recorder) -> None:
        self._loop = loop
        self._recorder = recorder

    def arrivals(self, chunk: Chunk) -> None:
        """Take arrivals before they are fed."""
        self._recorder.arrivals(chunk)

    def take(self) -> None:
        """Take the rows of the last call."""
        loop = self._loop
        rows = loop.rows
        columns = rows.batches[: rows.started].T.copy()
        start_ns, instance, count, gear, compute_ns, finish_ns = columns
        self._recorder.take(
            loop.ids(),
            {
                "id": np.arange(loop.all_started - len(start_ns), loop.all_started),
                "model": np.zeros_like(start_ns),
                "instance": instance,
                "device": np.asarray(loop.config.devices, np.int64)[instance],
                "items": count,
                "gear": gear,
                "length": np.zeros_like(start_ns),
                "start_ns": start_ns,
                "host_ns": loop.host[count],
                "input_ns": loop.input[gear],
                "compute_ns": compute_ns,
                "output_ns": loop.output[gear],
                "finish_ns": finish_ns,
                "count": count,
            },
        )
        gone = rows.gone[: rows.lost]
        if len(gone):
            for code, (outcome, reason) in loop.outcomes().items():
                mine = gone[gone[:, 2] == code]
                if len(mine):
                    self._recorder.lose(mine[:, 0].copy(), mine[:, 1].copy(), outcome, reason)

    def close(self) -> None:
        """Take what is still queued at the end."""
        left = self._loop.lanes.waiting()["ids"]
        if len(left):
            at_ns = np.full(len(left), self._loop.now_ns)
            self._recorder.lose(left, at_ns, Outcome.UNFINISHED, "end_of_run")


class Folding:
    """Folds batches into a stream by compiled code, in a thread beside the kernel.

    Parameters
    ----------
    loop : Loop
        Compiled. Nothing that the recorder has not seen may have left it yet.
    recorder : Recorder
        Streaming. It is told nothing more; only its count of requests goes on.
    expected : int
        Requests of the whole run, about; 0 if unknown.
    """

    def __init__(self, loop: Loop, recorder: Recorder, expected: int) -> None:
        assert recorder.stream is not None
        self._loop = loop
        self._recorder = recorder
        self._stream: Stream = recorder.stream
        self._facts = recorder.facts
        self._slo_ns = (recorder.facts.slo_ns or (0,))[0]
        sizes, groups = len(loop.compute), loop.flags.GROUPS
        self._stream.forget()
        # Blocks as large as they will become: nothing need be merged on the way.
        self._stream.blocks.reach(max(recorder.requests - 1, expected * 9 // 10))
        self._base = self._oldest() // self._stream.blocks.size
        self._parts = np.zeros((1, groups, len(STREAMED), BUCKETS), np.int64)
        self._items = np.zeros((1, sizes), np.int64)
        self._gears = np.zeros((1, sizes), np.int64)
        self._totals = np.zeros(4, np.int64)
        self._thread = ThreadPoolExecutor(1, "gesim-fold")
        self._job: Future[None] | None = None
        self._before = self._oldest()

    def _oldest(self) -> int:
        """Lowest id that may still come out of the loop."""
        oldest = self._loop.lanes.oldest_id()
        return self._recorder.requests if oldest is None else oldest

    def arrivals(self, chunk: Chunk) -> None:
        """Take arrivals before they are fed."""
        self._recorder.requests += len(chunk)

    def take(self) -> None:
        """Take the rows of the last call; they must stay as they are until the next."""
        self.wait()
        loop = self._loop
        low, self._before = self._before, self._oldest()
        newest = self._recorder.requests - 1
        lanes, start = loop.lanes.columns, loop.lanes.start.copy()
        self._job = self._thread.submit(self._fold, loop.rows, lanes, start, low, newest)

    def wait(self) -> None:
        """Wait until the rows taken are folded."""
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def _reach(self, oldest: int, newest: int) -> None:
        """Make room for the blocks of these requests."""
        blocks = self._stream.blocks
        if newest >= BLOCKS * blocks.size:
            self._flush(None)
            blocks.reach(newest)
            self._base = oldest // blocks.size
        low = oldest // blocks.size
        if low > self._base:
            self._flush(low)
        rows = newest // blocks.size - self._base + 1
        if rows > len(self._parts):
            self._parts, self._items, self._gears = (
                np.concatenate([each, np.zeros((rows - len(each), *each.shape[1:]), np.int64)])
                for each in (self._parts, self._items, self._gears)
            )

    def _flush(self, low: int | None) -> None:
        """Hand blocks below `low` (all if None) to the stream, and start at `low`."""
        blocks = self._stream.blocks
        rows = len(self._parts) if low is None else min(low - self._base, len(self._parts))
        if rows > 0:
            for name in ("_parts", "_items", "_gears"):
                table = getattr(self, name)
                blocks.put(name.strip("_"), self._base, table[:rows])
                rest = np.zeros_like(table[: max(1, len(table) - rows)])
                rest[: len(table) - rows] = table[rows:]
                setattr(self, name, rest)
        if low is not None:
            self._base = low

    def _fold(
        self, rows: Rows, columns: dict[str, Int], lane_start: Int, oldest: int, newest: int
    ) -> None:
        self._reach(oldest, newest)
        loop, stream, facts = self._loop, self._stream, self._facts
        blocks, bins = stream.blocks, stream.bins
        if rows.started:
            bins.reach(int(rows.batches[: rows.started, 5].max()) + facts.respond_ns)
        if rows.lost:
            self._lose(rows.gone[: rows.lost])
        series = (
            (bins.series[name].count, bins.series[name].offset)
            for name in ("arrived", "answered", "good", "entered", "left", "started", "finished",
                         "gone")
        )  # fmt: skip
        loop.module.tally(
            rows.started, rows.first, columns["times"], columns["ids"], columns["levels"],
            columns["due"], lane_start, rows.order, rows.batches, loop.host, loop.transfer,
            facts.receive_ns, facts.respond_ns, self._slo_ns, blocks.size.bit_length() - 1,
            self._base, blocks.outcomes, blocks.targeted, blocks.good, blocks.sums,
            blocks.largest, blocks.first_ns, self._parts.reshape(-1), self._items, self._gears,
            stream.by_latency_ns, bins.width_ns.bit_length() - 1, *series, self._totals,
        )  # fmt: skip
        self._add_totals()

    def _add_totals(self) -> None:
        stream, totals = self._stream, self._totals
        stream.requests += int(totals[tally.REQUESTS])
        stream.sojourns_ns += int(totals[tally.SOJOURNS])
        stream.last_arrival_ns = max(stream.last_arrival_ns, int(totals[tally.LAST_ARRIVAL]))
        stream.last_ns = max(stream.last_ns, int(totals[tally.LAST]))
        totals[:] = 0

    def _lose(self, gone: Int) -> None:
        for code, (outcome, reason) in self._loop.outcomes().items():
            mine = gone[gone[:, 2] == code]
            if len(mine):
                ids, at_ns, _, entered_ns, level, due = mine.T.copy()
                self._leave(ids, at_ns, entered_ns, level, due, outcome, reason)

    def _leave(
        self, ids: Int, at_ns: Int, entered_ns: Int, level: Int, due: Int, outcome: Outcome,
        reason: str,
    ) -> None:  # fmt: skip
        arrival_ns = entered_ns - self._facts.receive_ns
        if not self._loop.flags.DUE:
            due = arrival_ns + self._slo_ns if self._slo_ns else np.full(len(ids), NEVER_NS)
        n = len(ids)
        code = self._recorder.reason_code(reason)
        group = np.clip(level, 1, self._loop.flags.GROUPS) - 1
        outcomes, reasons = np.full(n, int(outcome)), np.full(n, code)
        self._stream.lose_rows(ids, group, arrival_ns, due, at_ns, outcomes, reasons)

    def close(self) -> None:
        """Take what is still queued at the end."""
        self.wait()
        self._thread.shutdown()
        self._reach(self._before, self._recorder.requests - 1)
        loop, receive_ns = self._loop, self._facts.receive_ns
        left = loop.lanes.waiting()
        here = left["times"] - receive_ns <= loop.now_ns
        ids = left["ids"][here]
        if len(ids):
            level = left["levels"] if loop.flags.LEVELLED else left["lane"] + 1
            due = left["due"] if loop.flags.DUE else left["times"]
            self._leave(
                ids, np.full(len(ids), loop.now_ns), left["times"][here], level[here], due[here],
                Outcome.UNFINISHED, "end_of_run",
            )  # fmt: skip
        self._flush(None)
