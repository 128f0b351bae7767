"""Recorder: what a driver reports becomes columns, a chunk at a time."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.request import Batch, Outcome, Request
from gesim.metrics.records import Facts, Records
from gesim.workload.base import Chunk

__all__ = ["Recorder"]

Int = NDArray[np.int64]

_FLUSH_EVERY = 8192
_ID = attrgetter("id")
_BATCH_FIELDS = (
    "model", "instance", "device", "items", "gear", "length", "start_ns", "host_ns", "input_ns",
    "compute_ns", "output_ns", "finish_ns",
)  # fmt: skip


class Recorder:
    """Keeps everything, in columns.

    Parameters
    ----------
    facts : Facts
        Only the layout of the instances is used here.
    """

    def __init__(self, facts: Facts) -> None:
        self.requests = 0
        self._first_instance = _first_instances(facts)
        self._chunks: list[Chunk] = []
        self._batches: list[Batch] = []
        self._lost: list[Request] = []
        self._flushed: list[dict[str, Int]] = []
        self._ids: list[Int] = []
        self._reasons: dict[str, int] = {"": 0}
        self._gone: list[tuple[Int, Int, Int, Int]] = []

    def arrivals(self, chunk: Chunk) -> None:
        """Take the next arrivals."""
        self._chunks.append(chunk)
        self.requests += len(chunk)

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

    def _flush_batches(self) -> None:
        batches = self._batches
        columns = {
            name: np.fromiter(map(attrgetter(name), batches), np.int64, len(batches))
            for name in _BATCH_FIELDS
        }
        counts = np.fromiter((len(b.requests) for b in batches), np.int64, len(batches))
        columns["count"] = counts
        columns["instance"] += self._first_instance[columns["model"]]
        ids = map(_ID, (request for b in batches for request in b.requests))
        self._ids.append(np.fromiter(ids, np.int64, int(counts.sum())))
        self._flushed.append(columns)
        self._batches = []

    def _flush_lost(self) -> None:
        lost, n = self._lost, len(self._lost)
        for request in lost:
            self._reasons.setdefault(request.reason, len(self._reasons))
        self._gone.append(
            (
                np.fromiter(map(_ID, lost), np.int64, n),
                np.fromiter((r.finish_ns for r in lost), np.int64, n),
                np.fromiter((int(r.outcome) for r in lost), np.int64, n),
                np.fromiter((self._reasons[r.reason] for r in lost), np.int64, n),
            )
        )
        self._lost = []

    def records(self, end_ns: int) -> Records:
        """Put the columns together.

        Parameters
        ----------
        end_ns : int
            When the run ended: requests still under way get it as their end.
        """
        self._flush_batches()
        self._flush_lost()
        n = self.requests
        arrived = {
            name: _joined([getattr(chunk, name) for chunk in self._chunks])
            for name in ("model", "level", "items", "length", "arrival_ns", "deadline_ns")
        }
        start, finish = np.full(n, end_ns), np.full(n, end_ns)
        batch = np.full(n, -1)
        outcome = np.full(n, int(Outcome.UNFINISHED))
        reason = np.zeros(n, np.int64)
        columns = {name: _joined([part[name] for part in self._flushed]) for name in
                   (*_BATCH_FIELDS, "count")}  # fmt: skip
        ids = _joined(self._ids)
        of = np.repeat(np.arange(len(columns["count"])), columns["count"])
        start[ids] = columns["start_ns"][of]
        finish[ids] = columns["finish_ns"][of]
        batch[ids] = of
        outcome[ids] = int(Outcome.OK)
        for gone, at_ns, what, why in self._gone:
            start[gone] = finish[gone] = at_ns
            outcome[gone] = what
            reason[gone] = why
        return Records(
            **arrived,
            start_ns=start,
            finish_ns=finish,
            batch=batch,
            outcome=outcome,
            reason=reason,
            batch_model=columns["model"],
            batch_instance=columns["instance"],
            batch_device=columns["device"],
            batch_count=columns["count"],
            batch_items=columns["items"],
            batch_gear=columns["gear"],
            batch_length=columns["length"],
            batch_start_ns=columns["start_ns"],
            host_ns=columns["host_ns"],
            input_ns=columns["input_ns"],
            compute_ns=columns["compute_ns"],
            output_ns=columns["output_ns"],
            batch_finish_ns=columns["finish_ns"],
            reasons=list(self._reasons),
        )


def _first_instances(facts: Facts) -> Int:
    """Return the number of each model's first instance among all."""
    models = [model for model, _ in facts.instances]
    return np.asarray([models.index(m) for m in range(len(facts.models))], np.int64)


def _joined(parts: list[Any]) -> Int:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
