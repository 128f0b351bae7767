"""Sums and histograms by arrival, in a bounded number of equal blocks that double in size.

Theory of operation
-------------------
Block b holds the requests with ids in ``[b * size, (b + 1) * size)``; when the last block is
full, blocks are merged in pairs. So a warm-up can be cut at the end of the run, when its
length is known, and what is left comes as runs of equal length for batch means.

Requests are told apart by *group*: model and priority level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gesim.core.request import Outcome
from gesim.metrics.histogram import BUCKETS, Counts, bucket_of, sums

__all__ = ["BLOCKS", "STREAMED", "Blocks"]

Int = NDArray[np.int64]

BLOCKS = 64
STREAMED = ("latency", "queue", "host", "transfer", "compute")
"""Parts that have histograms; the front end's is the same for all."""

_FIRST_SIZE = 1024
_REASONS = 1 << 10
_SIZES = 1 << 24
_OUTCOMES = len(Outcome)


class Blocks:
    """What is summed by block and group.

    Attributes
    ----------
    size : int
        Requests of a block.
    outcomes : array, (block, group, outcome)
    targeted, good : array, (block, group)
        Requests that have a latency target; those that were answered within it.
    sums, largest : array, (block, group, part)
        Of the answered requests' parts, in ns.
    first_ns : array, (block,)
        Earliest arrival.
    """

    def __init__(self, groups: int, models: int) -> None:
        self.size = _FIRST_SIZE
        self.groups = groups
        self.models = models
        self.outcomes = np.zeros((BLOCKS, groups, _OUTCOMES), np.int64)
        self.targeted = np.zeros((BLOCKS, groups), np.int64)
        self.good = np.zeros((BLOCKS, groups), np.int64)
        self.sums = np.zeros((BLOCKS, groups, len(STREAMED)), np.int64)
        self.largest = np.zeros((BLOCKS, groups, len(STREAMED)), np.int64)
        self.first_ns = np.full(BLOCKS, np.iinfo(np.int64).max)
        self._parts = Counts()
        self._reasons = Counts()
        self._batches = Counts()

    # ---- taking ------------------------------------------------------------------------

    def reach(self, id: int) -> None:
        """Make the blocks large enough for a request id."""
        while id >= BLOCKS * self.size:
            for name in ("outcomes", "targeted", "good", "sums"):
                column = getattr(self, name)
                pairs = column.reshape(BLOCKS // 2, 2, *column.shape[1:]).sum(axis=1)
                setattr(self, name, np.concatenate([pairs, np.zeros_like(pairs)]))
            pairs = self.largest.reshape(BLOCKS // 2, 2, *self.largest.shape[1:]).max(axis=1)
            self.largest = np.concatenate([pairs, np.zeros_like(pairs)])
            first = self.first_ns.reshape(BLOCKS // 2, 2).min(axis=1)
            self.first_ns = np.concatenate([first, np.full(BLOCKS // 2, np.iinfo(np.int64).max)])
            self._parts.fold(self.groups * len(STREAMED) * BUCKETS)
            self._reasons.fold(self.groups * _REASONS)
            self._batches.fold(self.models * 2 * _SIZES)
            self.size *= 2

    def left(
        self, ids: Int, group: Int, arrival_ns: Int, outcome: Int, targeted: Int, good: Int
    ) -> None:
        """Take requests that left, answered or not."""
        block = ids // self.size
        flat = block * self.groups + group
        shape, size = self.targeted.shape, self.targeted.size
        outcomes = np.bincount(flat * _OUTCOMES + outcome, minlength=size * _OUTCOMES)
        self.outcomes += outcomes.reshape(self.outcomes.shape)
        self.targeted += np.bincount(flat[targeted > 0], minlength=size).reshape(shape)
        self.good += np.bincount(flat[good > 0], minlength=size).reshape(shape)
        earlier = arrival_ns < self.first_ns[block]
        np.minimum.at(self.first_ns, block[earlier], arrival_ns[earlier])

    def parts(self, ids: Int, group: Int, parts_ns: list[Int]) -> None:
        """Take the latencies of answered requests and their parts, as in `STREAMED`."""
        block = ids // self.size
        where = block * self.groups + group
        for part, values in enumerate(parts_ns):
            shape, size = self.targeted.shape, self.targeted.size
            self.sums[:, :, part] += sums(where, values, size).reshape(shape)
            larger = values > self.largest[block, group, part]
            np.maximum.at(self.largest[:, :, part], (block[larger], group[larger]), values[larger])
            self._parts.add((where * len(STREAMED) + part) * BUCKETS + bucket_of(values))

    def reasons(self, ids: Int, group: Int, code: Int) -> None:
        """Take why requests were lost."""
        block = ids // self.size
        self._reasons.add((block * self.groups + group) * _REASONS + code)

    def batches(self, first_id: Int, model: Int, items: Int, gear: Int) -> None:
        """Take batches; they belong to the block of their first request."""
        where = (first_id // self.size * self.models + model) * 2
        self._batches.add(where * _SIZES + np.minimum(items, _SIZES - 1))
        self._batches.add((where + 1) * _SIZES + np.minimum(gear, _SIZES - 1))

    def put(self, name: str, base: int, table: Int) -> None:
        """Add dense counts by block, from block `base` on.

        Parameters
        ----------
        name : {"parts", "items", "gears"}
        table : array, (block, group, part, bucket) or (block, size)
            Sizes are of batches of the only model.
        """
        found = np.nonzero(table)
        block = found[0] + base
        if name == "parts":
            where = (block * self.groups + found[1]) * len(STREAMED) + found[2]
            self._parts.add(where * BUCKETS + found[3], table[found])
        else:
            where = block * self.models * 2 + (name == "gears")
            self._batches.add(where * _SIZES + found[1], table[found])

    # ---- reading -----------------------------------------------------------------------

    def histogram(self, block: int, group: int, part: int) -> tuple[Int, Int]:
        """Buckets and counts of one part."""
        self._parts.settle()
        low = ((block * self.groups + group) * len(STREAMED) + part) * BUCKETS
        return self._parts.within(low, low + BUCKETS)

    def dense(self, block: int, groups: list[int], part: int) -> Int:
        """Count one part of some groups in all buckets."""
        counts = np.zeros(BUCKETS, np.int64)
        for group in groups:
            buckets, found = self.histogram(block, group, part)
            counts[buckets] += found
        return counts

    def reason_counts(self, blocks: range, groups: list[int]) -> dict[int, int]:
        """Count lost requests by the code of their reason."""
        self._reasons.settle()
        counts: dict[int, int] = {}
        for block in blocks:
            for group in groups:
                low = (block * self.groups + group) * _REASONS
                _add(counts, *self._reasons.within(low, low + _REASONS))
        return counts

    def batch_counts(self, blocks: range, models: list[int], gears: bool) -> dict[int, int]:
        """Count batches by items, or by gear."""
        self._batches.settle()
        counts: dict[int, int] = {}
        for block in blocks:
            for model in models:
                low = ((block * self.models + model) * 2 + gears) * _SIZES
                _add(counts, *self._batches.within(low, low + _SIZES))
        return counts


def _add(counts: dict[int, int], keys: Int, numbers: Int) -> None:
    for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
        counts[key] = counts.get(key, 0) + number
