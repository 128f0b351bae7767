"""Arrival processes of open loops: endless, sorted int64 times in blocks.

Theory of operation
-------------------
Two constructions cover all of them. *Renewal*: gaps drawn from a law, rounded to ns, summed in
integers, so that no error builds up over a long run. *Rate*: a rate that is constant on
segments; unit exponentials are summed into a hazard, and each arrival is where the integral of
the rate reaches it (inversion, exact for such a rate). `mmpp` and `on_off` draw their segments,
`diurnal` has fixed ones.

Every process uses its own named streams and draws in blocks of a fixed size, so a longer run
starts with the very same arrivals. What is yielded is bounded too, whatever a burst or a bulk
holds and however long a silence lasts: memory stays flat over any horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, lgamma, pi, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.laws import Draws, Law

__all__ = [
    "batch_poisson",
    "bursts",
    "constant",
    "diurnal_segments",
    "mmpp_segments",
    "on_off_segments",
    "rate_process",
    "renewal",
]

Times = NDArray[np.int64]
Segments = Iterator[tuple[int, float]]
"""(duration in ns, arrivals per ns), without end."""

_BLOCK = Draws.BLOCK

_MOST = 65_536
"""Most arrivals in a yielded array, and most segments looked at for one."""


def renewal(law: Law, rng: Generator) -> Iterator[Times]:
    """Independent gaps from a law (in ns); the first arrival is one gap after 0."""
    draws = Draws(law, rng)
    now_ns = 0
    while True:
        times = np.cumsum(np.rint(draws.block()).astype(np.int64))
        times += now_ns
        now_ns = int(times[-1])
        yield times


def batch_poisson(gap: Law, size: Law, rng: Generator, size_rng: Generator) -> Iterator[Times]:
    """Repeat the times of a renewal process: groups of a random size, each in one instant."""
    sizes = Draws(size, size_rng)
    for times in renewal(gap, rng):
        ends = np.cumsum(sizes.block().astype(np.int64))
        for rows in _rows(int(ends[-1])):
            yield times[np.searchsorted(ends, rows, side="right")]


def constant(period_ns: float, burst: int) -> Iterator[Times]:
    """`burst` arrivals at 0, period, 2 periods, ..."""
    first = 0
    while True:
        numbers = np.arange(first, first + _BLOCK, dtype=np.int64) // burst
        first += _BLOCK
        yield np.rint(numbers * period_ns).astype(np.int64)


def bursts(at_ns: tuple[int, ...], size: int, spacing_ns: int) -> Iterator[Times]:
    """`size` arrivals from each of some times on, `spacing_ns` apart."""
    starts = np.sort(np.asarray(at_ns, np.int64))
    apart = len(starts) < 2 or int(np.diff(starts).min()) >= (size - 1) * spacing_ns
    if not apart:  # they mix
        times = starts[:, None] + np.arange(size, dtype=np.int64) * spacing_ns
        starts, size = np.sort(times, axis=None), 1
    for rows in _rows(len(starts) * size):
        yield starts[rows // size] + rows % size * spacing_ns


def _rows(count: int) -> Iterator[Times]:
    """Count from 0 to `count`, a bounded array at a time."""
    for first in range(0, count, _MOST):
        yield np.arange(first, min(first + _MOST, count), dtype=np.int64)


def rate_process(segments: Segments, rng: Generator, end_ns: int = NEVER_NS) -> Iterator[Times]:
    """Poisson arrivals with a rate that is constant on segments; all those before `end_ns`."""
    start_ns, hazard, last_ns = 0, 0.0, 0  # the first two of the segment reached
    duration_ns, rate = next(segments)
    while True:
        targets = np.cumsum(rng.standard_exponential(_BLOCK))
        target = float(targets[-1])
        while len(targets):
            starts, hazards, rates = [start_ns], [hazard], [rate]
            reached = hazard + duration_ns * rate
            while reached < target and len(starts) < _MOST and start_ns < end_ns:
                hazard = reached
                start_ns += duration_ns
                duration_ns, rate = next(segments)
                starts.append(start_ns)
                hazards.append(hazard)
                rates.append(rate)
                reached = hazard + duration_ns * rate
            inside = len(targets) if reached >= target else int(np.searchsorted(targets, reached))
            if inside:
                times = _located(targets[:inside], starts, hazards, rates)
                times[0] = max(int(times[0]), last_ns)
                np.maximum.accumulate(times, out=times)
                last_ns = int(times[-1])
                yield times
            if start_ns >= end_ns:
                return
            targets = targets[inside:]
        hazard -= target  # keep the numbers small: precision must not fade over a long run


def _located(
    targets: NDArray[np.float64], starts: list[int], hazards: list[float], rates: list[float]
) -> Times:
    """Where the integral of the rate reaches the targets."""
    at = np.searchsorted(np.asarray(hazards), targets, side="right") - 1
    inside = (targets - np.asarray(hazards)[at]) / np.asarray(rates)[at]
    times: Times = np.asarray(starts, np.int64)[at] + np.rint(inside).astype(np.int64)
    return times


def mmpp_segments(
    rates_rps: tuple[float, ...], dwell_ns: tuple[int, ...], rng: Generator
) -> Segments:
    """Markov-modulated Poisson: states in turn by uniform choice among the others.

    Starts in the stationary phase: a state with probability proportional to its mean stay
    (every state is entered equally often), and the memoryless rest of its stay.
    """
    states = len(rates_rps)
    shares = np.cumsum(dwell_ns) / sum(dwell_ns)
    state = int(np.searchsorted(shares, rng.random(), side="right"))
    while True:
        yield max(1, round(rng.standard_exponential() * dwell_ns[state])), rates_rps[state] / 1e9
        step = 1 if states == 2 else 1 + int(rng.integers(states - 1))
        state = (state + step) % states


def on_off_segments(rate_rps: float, on_ns: int, off_ns: int, law: str, rng: Generator) -> Segments:
    """Poisson while on, silent while off; exponential stays start in the stationary phase."""
    if law == "exponential" and off_ns:
        yield from mmpp_segments((rate_rps, 0.0), (on_ns, off_ns), rng)
    while True:
        if law == "exponential":
            yield max(1, round(rng.standard_exponential() * on_ns)), rate_rps / 1e9
        else:
            yield on_ns, rate_rps / 1e9
            if off_ns:
                yield off_ns, 0.0


def diurnal_segments(
    rate_rps: float, peak: float, period_ns: int, weekly: tuple[float, ...] | None
) -> Segments:
    """Day curve ``peak * ((1 - cos) / 2) ** p`` around the mean, 1,440 steps a period.

    `p` makes the mean come out (p = 1, a raised cosine, at peak 2). The night is at the start.
    `weekly` multiplies seven periods in turn; the mean over the week stays `rate_rps`.
    """
    power = _power(peak)
    steps = 1440
    edges = [period_ns * i // steps for i in range(steps + 1)]
    middle = (np.arange(steps) + 0.5) / steps
    shape = ((1 - np.cos(2 * pi * middle)) / 2) ** power
    shape /= shape.mean()
    factors = np.ones(1) if weekly is None else np.asarray(weekly) / np.mean(weekly)
    while True:
        for factor in factors.tolist():
            for i, value in enumerate(shape.tolist()):
                if edges[i + 1] > edges[i]:
                    yield edges[i + 1] - edges[i], rate_rps * factor * value / 1e9


def _power(peak: float) -> float:
    """Solve ``mean(((1 - cos) / 2) ** p) = 1 / peak`` for p."""

    def mean(p: float) -> float:
        return exp(lgamma(p + 0.5) - lgamma(p + 1)) / sqrt(pi)

    low, high = 0.0, 1.0
    while mean(high) > 1 / peak:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) > 1 / peak else (low, middle)
    return (low + high) / 2
