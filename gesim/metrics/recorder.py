"""Recorder: what a driver reports becomes columns, a chunk at a time.

Theory of operation
-------------------
Finished batches and lost requests are collected as objects and turned into numpy columns some
thousand at a time. As long as there are at most `max_records` requests all columns are kept
(`Columns`). When there are more, everything so far is folded into a `Stream`, whose memory does
not depend on the length of the run, and only the first `KEPT` requests stay one by one, for
traces and timelines.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gesim.core.request import Batch, Outcome, Request
from gesim.metrics.columns import BATCH_FIELDS, Columns
from gesim.metrics.curves import curves_of
from gesim.metrics.records import Facts, Records
from gesim.metrics.stream import Stream

if TYPE_CHECKING:
    from gesim.workload.base import Chunk

__all__ = ["KEPT", "MAX_RECORDS", "Recorder"]

Int = NDArray[np.int64]

MAX_RECORDS = 2_000_000
"""Requests up to which every one is recorded: some 200 bytes each."""

KEPT = 100_000
"""Requests of a longer run that are recorded nevertheless."""

_FLUSH_EVERY = 8192
_ID = attrgetter("id")
_REQUESTS = attrgetter("requests")
_FIELDS = tuple((name, attrgetter(name)) for name in BATCH_FIELDS if name != "count")


class Recorder:
    """Records a run; above a bound it sums up instead.

    Parameters
    ----------
    facts : Facts
    max_records : int, default `MAX_RECORDS`
        Requests up to which every one is recorded.

    Attributes
    ----------
    requests : int
        That arrived so far.
    facts : Facts
    stream : Stream or None
        What everything is folded into above the bound.
    kept : int
        Requests that a run above the bound keeps one by one.
    """

    def __init__(self, facts: Facts, max_records: int = MAX_RECORDS) -> None:
        self.requests = 0
        self.max_records = max_records
        self.kept = min(KEPT, max_records)
        self.facts = facts
        self._first_instance = _first_instances(facts)
        self._batches: list[Batch] = []
        self._lost: list[Request] = []
        self._reasons: dict[str, int] = {"": 0}
        self._columns = Columns()
        self.stream: Stream | None = None
        self._last_ns = 0

    def arrivals(self, chunk: Chunk) -> None:
        """Take the next arrivals."""
        self.requests += len(chunk)
        self._columns.add_arrivals(chunk)
        if self.stream is not None:
            self.stream.arrivals(chunk)
        elif self.requests > self.max_records:
            self._overflow()

    def batch(self, batch: Batch) -> None:
        """Take a finished batch."""
        self._batches.append(batch)
        if len(self._batches) >= _FLUSH_EVERY:
            self._flush_batches()

    def gone(self, request: Request) -> None:
        """Take a request that left without an answer."""
        self._lost.append(request)
        if len(self._lost) >= _FLUSH_EVERY:
            self._flush_lost()

    def take(self, ids: Int, columns: dict[str, Int]) -> None:
        """Take many finished batches at once.

        Parameters
        ----------
        ids : array
            Ids of the requests that ran, batch by batch.
        columns : dict
            Of the batches: the fields of `gesim.core.request.Batch` and ``count``, requests in
            each; ``instance`` counts within the model.
        """
        if not len(ids):
            return
        instance = columns["instance"] + self._first_instance[columns["model"]]
        columns = {**columns, "instance": instance}
        self._last_ns = max(self._last_ns, int(columns["finish_ns"].max()))
        self._columns.add_batches(ids, columns)
        if self.stream is not None:
            self.stream.batches(ids, columns)

    def lose(self, ids: Int, at_ns: Int, outcome: Outcome, reason: str) -> None:
        """Take many requests that left for one reason."""
        n = len(ids)
        self._lose(ids, at_ns, np.full(n, int(outcome)), np.full(n, self.reason_code(reason)))

    def reason_code(self, reason: str) -> int:
        """Return the code of a reason."""
        return self._reasons.setdefault(reason, len(self._reasons))

    def streams(self, expected_requests: int) -> bool:
        """Whether the run is, or certainly will be, above the bound; then stream from now on.

        Parameters
        ----------
        expected_requests : int
            Of the whole run, about; 0 if unknown.
        """
        if self.stream is None and expected_requests > 1.5 * self.max_records:
            self._overflow()
        return self.stream is not None

    def _lose(self, ids: Int, at_ns: Int, outcome: Int, reason: Int) -> None:
        if not len(ids):
            return
        self._last_ns = max(self._last_ns, int(at_ns.max()))
        self._columns.add_lost(ids, at_ns, outcome, reason)
        if self.stream is not None:
            self.stream.lost(ids, at_ns, outcome, reason)

    def _flush_batches(self) -> None:
        batches, self._batches = self._batches, []
        n = len(batches)
        columns = {name: np.fromiter(map(get, batches), np.int64, n) for name, get in _FIELDS}
        columns["count"] = np.fromiter((len(b.requests) for b in batches), np.int64, n)
        ids = map(_ID, chain.from_iterable(map(_REQUESTS, batches)))
        self.take(np.fromiter(ids, np.int64, int(columns["count"].sum())), columns)

    def _flush_lost(self) -> None:
        lost, self._lost = self._lost, []
        n = len(lost)
        for request in lost:
            self.reason_code(request.reason)
        self._lose(
            np.fromiter(map(_ID, lost), np.int64, n),
            np.fromiter((r.finish_ns for r in lost), np.int64, n),
            np.fromiter((int(r.outcome) for r in lost), np.int64, n),
            np.fromiter((self._reasons[r.reason] for r in lost), np.int64, n),
        )

    def _overflow(self) -> None:
        """Fold what there is into a stream; keep the beginning."""
        self._flush_batches()
        self._flush_lost()
        kept = self._columns
        stream = Stream(self.facts)
        for chunk in kept.chunks:
            stream.arrivals(chunk)
        for ids, columns in zip(kept.ids, kept.batches, strict=True):
            stream.batches(ids, columns)
        for piece in kept.lost:
            stream.lost(*piece)
        kept.trim(self.kept)
        self.stream = stream

    def records(self, end_ns: int, interrupted: bool = False) -> Records:
        """Put the columns together.

        Parameters
        ----------
        end_ns : int
            When the run ended: requests still under way get it as their end.
        interrupted : bool
            The run was stopped: arrivals drawn beforehand that lie after its end are left out.
        """
        self._flush_batches()
        self._flush_lost()
        end_ns = max(end_ns, self._last_ns)
        records = self._columns.records(end_ns, interrupted, list(self._reasons))
        if self.stream is not None:
            self.stream.close(end_ns)
            records.stream = self.stream
            records.curves = curves_of(self.stream)
        return records


def _first_instances(facts: Facts) -> Int:
    """Return the number of each model's first instance among all."""
    models = [model for model, _ in facts.instances]
    return np.asarray([models.index(m) for m in range(len(facts.models))], np.int64)
