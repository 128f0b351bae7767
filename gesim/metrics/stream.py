"""A run without a record of every request: bounded memory over any horizon.

Theory of operation
-------------------
Requests under way stand in a table, those that leave it are folded into `Blocks` (sums and
histograms by arrival) and `TimeBins` (rates, queues, busy time by clock) and forgotten. Memory
depends on the number of models, levels and instances and on how many requests are under way,
not on how many there were. Sums and counts are exact, quantiles carry
`gesim.metrics.histogram.RELATIVE_ERROR`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.blocks import STREAMED, Blocks
from gesim.metrics.histogram import BUCKETS, bucket_of, sums
from gesim.metrics.measures import due_ns
from gesim.metrics.records import Facts
from gesim.metrics.timebins import TimeBins

if TYPE_CHECKING:
    from gesim.workload.base import Chunk

__all__ = ["Stream"]

Int = NDArray[np.int64]


class Stream:
    """Folds requests and batches into sums.

    Parameters
    ----------
    facts : Facts

    Attributes
    ----------
    requests : int
        That left, however they did.
    sojourns_ns : int
        Sum over them of the time from arrival to leaving (on the device).
    last_arrival_ns, last_ns : int
        Of a request that left; when the last one left.
    by_latency_ns : array, (bucket, part)
        Sums of the parts of the answered requests, by bucket of their latency.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.groups = len(facts.models) * facts.levels
        self.blocks = Blocks(self.groups, len(facts.models))
        self.bins = TimeBins(
            dict.fromkeys(("arrived", "answered", "good", "entered", "left"), self.groups)
            | dict.fromkeys(("started", "finished"), len(facts.instances))
            | {"gone": 1}
        )
        self.requests = 0
        self.sojourns_ns = 0
        self.last_arrival_ns = 0
        self.last_ns = 0
        self.by_latency_ns = np.zeros((BUCKETS, len(STREAMED)), np.int64)
        self._under_way = _UnderWay()

    # ---- taking ------------------------------------------------------------------------

    def arrivals(self, chunk: Chunk) -> None:
        """Take the next arrivals."""
        self._under_way.add(chunk)

    def batches(self, ids: Int, columns: dict[str, Int]) -> None:
        """Take finished batches.

        Parameters
        ----------
        ids : array
            Requests, batch by batch.
        columns : dict
            By batch: ``model, instance, count, items, gear, start_ns, host_ns, input_ns,
            compute_ns, output_ns, finish_ns``; instances numbered over all models.
        """
        if not len(ids):
            return
        group, arrival_ns, due = self._take(ids)
        count = columns["count"]
        start_ns = np.repeat(columns["start_ns"], count)
        finish_ns = np.repeat(columns["finish_ns"], count)
        answer_ns = finish_ns + self.facts.respond_ns
        parts = [
            answer_ns - arrival_ns,
            start_ns - arrival_ns - self.facts.receive_ns,
            np.repeat(columns["host_ns"], count),
            np.repeat(columns["input_ns"] + columns["output_ns"], count),
            np.repeat(columns["compute_ns"], count),
        ]
        outcome = np.full(len(ids), int(Outcome.OK))
        self._leave(ids, group, arrival_ns, due, start_ns, finish_ns, outcome)
        self.blocks.parts(ids, group, parts)
        bucket = bucket_of(parts[0])
        for part, values in enumerate(parts):
            self.by_latency_ns[:, part] += sums(bucket, values, BUCKETS)
        first = np.concatenate([[0], np.cumsum(count)[:-1]])
        self.blocks.batches(ids[first], columns["model"], columns["items"], columns["gear"])
        self.bins.add("answered", group, answer_ns)
        good = (answer_ns <= due) & (due < NEVER_NS)
        self.bins.add("good", group[good], answer_ns[good])
        self.bins.add("started", columns["instance"], columns["start_ns"])
        self.bins.add("finished", columns["instance"], columns["finish_ns"])
        self.bins.add("gone", np.zeros(len(count), np.int64), columns["finish_ns"], count)

    def lost(self, ids: Int, at_ns: Int, outcome: Int, reason: Int) -> None:
        """Take requests that left without an answer; `reason` is a code."""
        if not len(ids):
            return
        self.lose_rows(ids, *self._take(ids), at_ns, outcome, reason)

    def lose_rows(
        self,
        ids: Int,
        group: Int,
        arrival_ns: Int,
        due: Int,
        at_ns: Int,
        outcome: Int,
        reason: Int,
    ) -> None:
        """Take lost requests whose group, arrival and due time the caller knows."""
        self.blocks.reach(int(ids.max()))
        self._leave(ids, group, arrival_ns, due, at_ns, at_ns, outcome)
        self.blocks.reasons(ids[reason > 0], group[reason > 0], reason[reason > 0])
        self.bins.add("gone", np.zeros(len(ids), np.int64), at_ns)

    def forget(self) -> None:
        """Forget which requests are under way: the caller knows them from now on."""
        self._under_way = _UnderWay()

    def close(self, end_ns: int) -> None:
        """End the run: what has arrived and is still under way is unfinished."""
        ids, arrival_ns = self._under_way.rest()
        ids = ids[arrival_ns <= end_ns]
        unfinished = np.full(len(ids), int(Outcome.UNFINISHED))
        self.lost(ids, np.full(len(ids), end_ns), unfinished, np.zeros(len(ids), np.int64))

    def _take(self, ids: Int) -> tuple[Int, Int, Int]:
        """Group, arrival and due time of requests that leave the table."""
        model, level, arrival_ns, deadline_ns = self._under_way.take(ids)
        group = model * self.facts.levels + np.clip(level, 1, self.facts.levels) - 1
        self.blocks.reach(int(ids.max()))
        return group, arrival_ns, due_ns(model, arrival_ns, deadline_ns, self.facts)

    def _leave(
        self,
        ids: Int,
        group: Int,
        arrival_ns: Int,
        due: Int,
        start_ns: Int,
        finish_ns: Int,
        outcome: Int,
    ) -> None:
        """Count requests that leave, answered or not."""
        ok = outcome == Outcome.OK
        good = ok & (finish_ns + self.facts.respond_ns <= due) & (due < NEVER_NS)
        targeted = due < NEVER_NS
        self.blocks.left(
            ids, group, arrival_ns, outcome, targeted.astype(np.int64), good.astype(np.int64)
        )
        entered_ns = arrival_ns + self.facts.receive_ns
        self.bins.add("arrived", group, arrival_ns)
        self.bins.add("entered", group, entered_ns)
        self.bins.add("left", group, np.maximum(start_ns, entered_ns))
        self.requests += len(ids)
        self.sojourns_ns += int((finish_ns - arrival_ns).sum())
        self.last_arrival_ns = max(self.last_arrival_ns, int(arrival_ns.max()))
        self.last_ns = max(self.last_ns, int(finish_ns.max()))


class _UnderWay:
    """Requests that have arrived and not left: id, model, level, arrival, deadline."""

    def __init__(self) -> None:
        self._next_id = 0
        self._rows = np.empty((5, 0), np.int64)
        self._new: list[Int] = []

    def add(self, chunk: Chunk) -> None:
        """Add arrivals."""
        ids = np.arange(self._next_id, self._next_id + len(chunk))
        self._next_id += len(chunk)
        columns = (ids, chunk.model, chunk.level, chunk.arrival_ns, chunk.deadline_ns)
        self._new.append(np.stack(columns))

    def _settle(self) -> Int:
        if self._new:
            self._rows = np.concatenate([self._rows, *self._new], axis=1)
            self._new = []
        return self._rows

    def take(self, ids: Int) -> tuple[Int, Int, Int, Int]:
        """Remove requests; return their model, level, arrival and deadline."""
        rows = self._settle()
        where = np.searchsorted(rows[0], ids)
        taken = rows[:, where]
        keep = np.ones(rows.shape[1], np.bool_)
        keep[where] = False
        self._rows = rows[:, keep]
        return taken[1], taken[2], taken[3], taken[4]

    def rest(self) -> tuple[Int, Int]:
        """Ids and arrivals of those left."""
        rows = self._settle()
        return rows[0], rows[3]
