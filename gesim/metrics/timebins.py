"""Events over time in a bounded number of bins that double in width as the run gets longer.

Theory of operation
-------------------
A series counts events per bin, and sums how far into the bin they lie. From the two, the area
under "events so far" is known exactly at the bin edges; the difference of two such areas is an
integral over time in whole ns: of a queue's length (entered less left), of an instance's busy
time (started less finished). Nothing has to arrive in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gesim.metrics.histogram import sums

__all__ = ["BINS", "Series", "TimeBins"]

Int = NDArray[np.int64]

BINS = 2048
_FIRST_WIDTH_NS = 1 << 16


class Series:
    """Events of one kind, in one column for each thing they happen to."""

    def __init__(self, columns: int) -> None:
        self.count = np.zeros((BINS, columns), np.int64)
        self.offset = np.zeros((BINS, columns), np.int64)

    def fold(self, width_ns: int) -> None:
        """Merge bins in pairs; `width_ns` is their width before."""
        count = self.count.reshape(BINS // 2, 2, -1)
        offset = self.offset.reshape(BINS // 2, 2, -1)
        right = offset[:, 1] + width_ns * count[:, 1]
        self.offset = np.concatenate([offset[:, 0] + right, np.zeros_like(right)])
        self.count = np.concatenate([count.sum(axis=1), np.zeros_like(right)])


class TimeBins:
    """Series that share their bins.

    Parameters
    ----------
    columns : dict of str to int
        Series by name, and how many columns each has.

    Attributes
    ----------
    width_ns : int
        Of a bin.
    """

    def __init__(self, columns: dict[str, int]) -> None:
        self.width_ns = _FIRST_WIDTH_NS
        self.series = {name: Series(number) for name, number in columns.items()}

    def reach(self, time_ns: int) -> None:
        """Make the bins wide enough for a time."""
        while time_ns >= BINS * self.width_ns:
            for series in self.series.values():
                series.fold(self.width_ns)
            self.width_ns *= 2

    def add(self, name: str, column: Int, times_ns: Int, weight: Int | None = None) -> None:
        """Count events, each `weight` times."""
        if not len(times_ns):
            return
        self.reach(int(times_ns.max()))
        series = self.series[name]
        bins = times_ns // self.width_ns
        flat = bins * series.count.shape[1] + column
        offset = times_ns - bins * self.width_ns
        if weight is None:
            series.count += np.bincount(flat, minlength=series.count.size).reshape(
                series.count.shape
            )
        else:
            series.count += sums(flat, weight, series.count.size).reshape(series.count.shape)
            offset = offset * weight
        series.offset += sums(flat, offset, series.count.size).reshape(series.count.shape)

    def events(self, name: str, first: int, end: int) -> Int:
        """Events in the bins ``[first, end)``, by column."""
        events: Int = self.series[name].count[first:end].sum(axis=0)
        return events

    def areas(self, entered: str, left: str) -> Int:
        """Integral of the number that entered and has not left, by bin and column."""
        more, less = self.series[entered], self.series[left]
        change = more.count - less.count
        before = np.cumsum(change, axis=0) - change
        areas: Int = (before + change) * self.width_ns - (more.offset - less.offset)
        return areas
