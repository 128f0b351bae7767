"""Counting values in buckets whose width grows with the value: quantiles with a known error.

Theory of operation
-------------------
Bucket 0 holds 0. The others are the leading bits of a value: its power of two and the next
`BITS` bits, read off the binary form of a float. So the layout is the same on every machine,
which a logarithm is not, and a bucket is at most one part in 128 wide. The value reported for
a bucket is 2 lo hi / (lo + hi), lo and hi its ends: never off by more than `RELATIVE_ERROR`
(Masson, Rim and Lee 2019), and exact below 2 ** (BITS + 1) ns. Exact logarithmic buckets of
that error would need log 2 times as many.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BITS",
    "BUCKETS",
    "RELATIVE_ERROR",
    "Counts",
    "bucket_of",
    "buckets_needed",
    "highest",
    "lowest",
    "middle",
    "sums",
]

Int = NDArray[np.int64]

BITS = 7
RELATIVE_ERROR = 1 / (2 ** (BITS + 1) + 1)
BUCKETS = 1 << 13
"""More than any int64 number of ns needs."""

_SHIFT = 52 - BITS
_FIRST = (1023 << BITS) - 1


def bucket_of(values: Int) -> Int:
    """Return the bucket of each value (an integer of at least 0)."""
    leading = np.asarray(values, np.float64).view(np.int64) >> _SHIFT
    bucket: Int = np.where(values > 0, leading - _FIRST, 0)
    return bucket


def lowest(bucket: Int) -> Int:
    """Return the least integer in each bucket."""
    octave = np.maximum(bucket - 1, 0) >> BITS
    leading = (1 << BITS) + (np.maximum(bucket - 1, 0) & ((1 << BITS) - 1))
    down = np.maximum(BITS - octave, 0)
    value = np.where(octave >= BITS, leading << np.maximum(octave - BITS, 0), -(-leading >> down))
    low: Int = np.where(bucket > 0, value, 0)
    return low


def highest(bucket: Int) -> Int:
    """Return the greatest integer in each bucket."""
    high: Int = np.where(bucket > 0, lowest(bucket + 1) - 1, 0)
    return high


def middle(bucket: Int) -> NDArray[np.float64]:
    """Return the value reported for each bucket."""
    low, high = lowest(bucket).astype(np.float64), highest(bucket).astype(np.float64)
    value: NDArray[np.float64] = np.where(
        high > low, 2 * low * high / np.maximum(low + high, 1.0), low
    )
    return value


def buckets_needed(relative_error: float, low: float, high: float) -> tuple[float, int]:
    """Growth and number of exact logarithmic buckets of that error between two values."""
    growth = (1 + relative_error) / (1 - relative_error)
    return growth, ceil(log(high / low) / log(growth) - 1e-12)


def sums(index: Int, values: Int, size: int) -> Int:
    """Sum `values` (at least 0) by `index` exactly."""
    if len(values) and int(values.max()) * len(values) < 1 << 53:  # floats are exact up to there
        return np.bincount(index, weights=values, minlength=size).astype(np.int64)
    exact = np.zeros(size, np.int64)
    np.add.at(exact, index, values)
    return exact


class Counts:
    """Sparse counts of many histograms at once, by integer key.

    Added counts are kept aside and sorted in when they have become as many as the table, so
    that adding costs a constant amortised time however large the table is.

    Attributes
    ----------
    keys, counts : array
        The table, keys increasing. Call `settle` before reading.
    """

    def __init__(self) -> None:
        self.keys = np.empty(0, np.int64)
        self.counts = np.empty(0, np.int64)
        self._aside: list[tuple[Int, Int]] = []
        self._aside_rows = 0

    def add(self, keys: Int, counts: Int | None = None) -> None:
        """Count each key once, or so often."""
        if counts is None:
            keys, found = np.unique(keys, return_counts=True)
            counts = found.astype(np.int64)
        self._aside.append((keys, counts))
        self._aside_rows += len(keys)
        if self._aside_rows > max(1 << 18, len(self.keys)):
            self.settle()

    def settle(self) -> None:
        """Sort what was added into the table."""
        if self._aside:
            keys = np.concatenate([self.keys, *(keys for keys, _ in self._aside)])
            counts = np.concatenate([self.counts, *(counts for _, counts in self._aside)])
            self._aside, self._aside_rows = [], 0
            self._set(keys, counts)

    def fold(self, size: int) -> None:
        """Merge histograms in pairs: the highest part of every key, above `size`, is halved."""
        self.settle()
        self._set((self.keys // size >> 1) * size + self.keys % size, self.counts)

    def _set(self, keys: Int, counts: Int) -> None:
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        self.keys = keys[first]
        self.counts = np.add.reduceat(counts, first) if len(first) else counts

    def within(self, low: int, high: int) -> tuple[Int, Int]:
        """Keys in ``[low, high)`` less `low`, and their counts."""
        start, end = np.searchsorted(self.keys, [low, high])
        return self.keys[start:end] - low, self.counts[start:end]
