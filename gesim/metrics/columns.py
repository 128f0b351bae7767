"""Arrivals, batches and losses kept as lists of column pieces until they are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.request import Outcome
from gesim.metrics.records import Records

if TYPE_CHECKING:
    from gesim.workload.base import Chunk

__all__ = ["BATCH_FIELDS", "Columns"]

Int = NDArray[np.int64]

BATCH_FIELDS = (
    "id", "model", "instance", "device", "count", "items", "gear", "length", "start_ns",
    "host_ns", "input_ns", "compute_ns", "output_ns", "finish_ns",
)  # fmt: skip
_ARRIVED = ("model", "level", "items", "length", "arrival_ns", "deadline_ns")
_BATCH = ("model", "instance", "device", "count", "items", "gear", "length")
_TIMES = ("host_ns", "input_ns", "compute_ns", "output_ns")


class Columns:
    """The pieces, in the order in which they came.

    Attributes
    ----------
    chunks : list of Chunk
    ids, batches : list
        Requests of the batches, and the batches' fields; pieces of both belong together.
    lost : list of tuple
        Ids, times, outcomes and codes of reasons.
    requests : int
    """

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.ids: list[Int] = []
        self.batches: list[dict[str, Int]] = []
        self.lost: list[tuple[Int, Int, Int, Int]] = []
        self.requests = 0
        self._limit: int | None = None

    def add_arrivals(self, chunk: Chunk) -> None:
        """Keep the next arrivals."""
        if self._limit is None:
            self.chunks.append(chunk)
            self.requests += len(chunk)

    def add_batches(self, ids: Int, columns: dict[str, Int]) -> None:
        """Keep finished batches and the ids of their requests, batch by batch."""
        if self._limit is not None:
            ids, columns = _some(ids, columns, self._limit)
        if len(ids):
            self.ids.append(ids)
            self.batches.append(columns)

    def add_lost(self, ids: Int, at_ns: Int, outcome: Int, reason: Int) -> None:
        """Keep requests that left without an answer."""
        if self._limit is not None:
            mine = ids < self._limit
            ids, at_ns, outcome, reason = ids[mine], at_ns[mine], outcome[mine], reason[mine]
        if len(ids):
            self.lost.append((ids, at_ns, outcome, reason))

    def trim(self, limit: int) -> None:
        """Keep the first `limit` requests, their batches and losses; of what comes, too."""
        self._limit = limit
        first: list[Chunk] = []
        rows = 0
        for chunk in self.chunks:
            first.append(chunk)
            rows += len(chunk)
            if rows >= limit:
                break
        self.chunks = first
        self.requests = limit
        kept, lost = list(zip(self.ids, self.batches, strict=True)), self.lost
        self.ids, self.batches, self.lost = [], [], []
        for ids, columns in kept:
            self.add_batches(ids, columns)
        for piece in lost:
            self.add_lost(*piece)

    def records(self, end_ns: int, interrupted: bool, reasons: list[str]) -> Records:
        """Put the columns together; batches in order of start."""
        n = self.requests
        arrived = {
            name: _joined([getattr(chunk, name) for chunk in self.chunks])[:n] for name in _ARRIVED
        }
        columns = {name: _joined([piece[name] for piece in self.batches]) for name in BATCH_FIELDS}
        ids = _joined(self.ids)
        order = np.argsort(columns["id"], kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        of = np.repeat(place, columns["count"])
        columns = {name: column[order] for name, column in columns.items()}
        of, ids = of[ids < n], ids[ids < n]
        start, finish = np.full(n, end_ns), np.full(n, end_ns)
        batch = np.full(n, -1)
        outcome = np.full(n, int(Outcome.UNFINISHED))
        reason = np.zeros(n, np.int64)
        start[ids] = columns["start_ns"][of]
        finish[ids] = columns["finish_ns"][of]
        batch[ids] = of
        outcome[ids] = int(Outcome.OK)
        for gone, at_ns, what, why in self.lost:
            start[gone] = finish[gone] = at_ns
            outcome[gone] = what
            reason[gone] = why
        rows: dict[str, Any] = {
            **arrived,
            "start_ns": start,
            "finish_ns": finish,
            "batch": batch,
            "outcome": outcome,
            "reason": reason,
        }
        if interrupted:  # arrivals are drawn beforehand: some lie after the end
            there = arrived["arrival_ns"] <= end_ns
            rows = {name: column[there] for name, column in rows.items()}
        named: dict[str, Any] = {
            f"batch_{name}": columns[name] for name in (*_BATCH, "start_ns", "finish_ns")
        }
        stages: dict[str, Any] = {name: columns[name] for name in _TIMES}
        return Records(
            **rows,
            **named,
            **stages,
            reasons=reasons,
            interrupted_ns=end_ns if interrupted else 0,
        )


def _some(ids: Int, columns: dict[str, Int], limit: int) -> tuple[Int, dict[str, Int]]:
    """Keep the batches that hold a request below `limit`."""
    count = columns["count"]
    if not len(ids) or int(ids.min()) >= limit:
        return ids[:0], columns
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    keep = np.minimum.reduceat(ids, starts) < limit
    return ids[np.repeat(keep, count)], {name: column[keep] for name, column in columns.items()}


def _joined(parts: list[Any]) -> Int:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
