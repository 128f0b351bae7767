"""How bursty arrivals are, to tell whether a made-up workload resembles a trace.

Theory of operation
-------------------
Gaps alone do not say it: a process with the right rate and CV can still lack the slow swings
that fill a queue. So arrivals are also counted in windows of 1, 10 and 60 s from the first one
on; the index of dispersion (IDC, variance / mean of the counts) is 1 for Poisson at every
window and grows with it where bursts last. A last window that is not whole is left out.

One pass, a chunk at a time: memory grows with the seconds covered, not with the arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

from gesim.errors import WorkloadError
from gesim.workload.base import Chunk, Workload

__all__ = ["WINDOWS_S", "ArrivalStatistics", "describe"]

Int = NDArray[np.int64]

WINDOWS_S = (1, 10, 60)
"""Windows in which arrivals are counted."""

_SECOND_NS = 1_000_000_000
_LONGEST_S = 2**28


@dataclass(frozen=True)
class ArrivalStatistics:
    """What `describe` finds.

    Attributes
    ----------
    requests : int
    span_s : float
        From the first arrival to the last.
    rate_rps : float
        Requests / span.
    cv : float
        Coefficient of variation of the gaps: 1 for Poisson.
    idc : dict of int to float
        Variance / mean of the counts, by window in s. NaN where fewer than two windows fit.
    peak_ratio : dict of int to float
        Highest / mean count, by window in s. NaN where none fits.
    notes : tuple of str
        What a trace had done to its times.
    """

    requests: int
    span_s: float
    rate_rps: float
    cv: float
    idc: dict[int, float]
    peak_ratio: dict[int, float]
    notes: tuple[str, ...] = ()


def describe(workload: Workload, requests: int | None = None) -> ArrivalStatistics:
    """Measure the arrivals of an open workload, which uses it up.

    Parameters
    ----------
    workload : Workload
        As ``gesim.scenario.build(scenario).workload`` has it.
    requests : int, optional
        Look at the first ones only; needed where arrivals never end.

    Returns
    -------
    ArrivalStatistics

    Raises
    ------
    WorkloadError
        For a closed loop, whose arrivals depend on the answers, and for fewer than two arrivals.
    """
    if not hasattr(workload, "chunks"):
        raise WorkloadError(
            "a closed loop has no arrivals of its own to describe: they depend on the answers"
        )
    seen = _Seen()
    for chunk in workload.chunks():
        seen.add(chunk, requests)
        if requests is not None and seen.count >= requests:
            break
    if seen.count < 2:
        raise WorkloadError(f"{seen.count} arrivals are too few to describe; two have a gap")
    return seen.statistics(tuple(getattr(workload, "notes", ())))


class _Seen:
    """Sums over the arrivals so far."""

    def __init__(self) -> None:
        self.count = 0
        self._first_ns = self._last_ns = 0
        self._squares = 0.0  # of the gaps, in s
        self._seconds = np.zeros(1024, np.int64)

    def add(self, chunk: Chunk, most: int | None) -> None:
        """Add a chunk, up to a total of `most`."""
        times = chunk.arrival_ns if most is None else chunk.arrival_ns[: most - self.count]
        if not self.count:
            self._first_ns = self._last_ns = int(times[0])
        gaps = np.diff(times, prepend=self._last_ns) / _SECOND_NS
        self._squares += float(gaps @ gaps)
        self._last_ns = int(times[-1])
        self.count += len(times)
        seconds = (times - self._first_ns) // _SECOND_NS
        last = int(seconds[-1])
        if last >= _LONGEST_S:
            raise WorkloadError(
                f"arrivals go on for {last:,} s, too long to count them second by second; "
                "describe fewer requests"
            )
        if last >= len(self._seconds):
            grown = np.zeros(2 * last, np.int64)
            grown[: len(self._seconds)] = self._seconds
            self._seconds = grown
        first = int(seconds[0])
        self._seconds[first : last + 1] += np.bincount(seconds - first)

    def statistics(self, notes: tuple[str, ...]) -> ArrivalStatistics:
        """Put the sums together."""
        span_s = (self._last_ns - self._first_ns) / _SECOND_NS
        gaps = self.count - 1
        mean = span_s / gaps
        variance = max(0.0, self._squares / gaps - mean**2)
        whole = self._seconds[: int(span_s)]
        counts = {window: _windows(whole, window) for window in WINDOWS_S}
        return ArrivalStatistics(
            requests=self.count,
            span_s=span_s,
            rate_rps=self.count / span_s if span_s else nan,
            cv=sqrt(variance) / mean if mean else nan,
            idc={
                window: float(n.var() / n.mean()) if len(n) > 1 else nan
                for window, n in counts.items()
            },
            peak_ratio={
                window: float(n.max() / n.mean()) if n.any() else nan
                for window, n in counts.items()
            },
            notes=notes,
        )


def _windows(seconds: Int, window: int) -> Int:
    """Sum counts of seconds to counts of whole windows."""
    number = len(seconds) // window
    sums: Int = seconds[: number * window].reshape(number, window).sum(axis=1)
    return sums
