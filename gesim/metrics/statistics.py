"""Estimates with their errors: percentiles, batch means, intervals.

Successive latencies are not independent: an interval that treats them so covers the truth in
a third of runs at load 0.6. Here the spread comes from *batch means*: the sample, in order of
arrival, is cut into equal runs long enough that their means are nearly independent, and
Student's quantile does the rest. What correlation r each mean still has with the next one
multiplies their variance by (1 + r) / (1 - r) (as in Skart, Tafazzoli et al. 2011).

For a percentile the same is done with the indicator "not above it", and the resulting band of
probabilities is read off the order statistics. The band is never narrower than that of
independent samples (`quantile_ranks`); where that needs a value beyond the largest one, there
is no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil, fsum, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BATCHES",
    "Interval",
    "early_stopping_queries",
    "mean_interval",
    "needed_samples",
    "percentile",
    "percentile_band",
    "percentile_interval",
    "quantile_ranks",
    "ratio_error",
    "replication_interval",
    "student",
]

Numbers = NDArray[np.float64] | NDArray[np.int64]

BATCHES = 25
"""Runs that a sample is cut into; 20 to 30 is the textbook's advice."""

BATCH_MIN = 4
"""Values that a run must have."""


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@lru_cache(maxsize=256)
def student(samples: int, confidence: float = 0.95) -> float:
    """Two-sided Student quantile for the mean of `samples` values."""
    from scipy.special import stdtrit

    return float(stdtrit(samples - 1, (1 + confidence) / 2))


def percentile(ordered: Numbers, probability: float) -> float:
    """Smallest value x with at least `probability` of the sample not above it.

    Parameters
    ----------
    ordered : array
        The sample, increasing, not empty.
    """
    return float(ordered[rank(len(ordered), probability) - 1])


def rank(samples: int, probability: float) -> int:
    """Rank, from 1, of the order statistic that is the percentile."""
    # The small term undoes binary fractions: 0.95 * 20 is a little above 19.
    return min(samples, max(1, ceil(probability * samples - 1e-9)))


def ratio_error(sums: Sequence[float], counts: Sequence[float]) -> float | None:
    """Estimate the standard error of ``sum(sums) / sum(counts)`` from consecutive runs.

    Parameters
    ----------
    sums, counts : sequence of float
        One value a run, in order of time; the counts may differ.

    Returns
    -------
    float or None
        None for fewer than two runs or no counts.
    """
    n = len(sums)
    total = fsum(counts)
    if n < 2 or total <= 0:
        return None
    ratio = fsum(sums) / total
    left = [s - ratio * c for s, c in zip(sums, counts, strict=True)]  # their sum is 0
    squares = fsum(x * x for x in left)
    if squares == 0:
        return 0.0
    next_to = fsum(a * b for a, b in pairwise(left)) / squares
    next_to = min(max(next_to, 0.0), 0.8)
    widened = (1 + next_to) / (1 - next_to)
    return sqrt(squares / (n - 1) / n * widened) / (total / n)


def replication_interval(values: Numbers, confidence: float = 0.95) -> Interval | None:
    """Student interval of the mean of independent values; None for fewer than two."""
    n = len(values)
    if n < 2:
        return None
    numbers = values.tolist()
    mean = fsum(numbers) / n
    spread = sqrt(fsum((x - mean) ** 2 for x in numbers) / (n - 1) / n)
    half = student(n, confidence) * spread
    return Interval(mean - half, mean + half)


def _batch_sums(values: NDArray[Any]) -> list[int] | list[float] | None:
    """Sum equal consecutive runs (what does not divide is left off the front)."""
    size = len(values) // BATCHES
    if size < BATCH_MIN:
        return None
    runs = values[len(values) - size * BATCHES :].reshape(BATCHES, size)
    kind = np.float64 if values.dtype.kind == "f" else np.int64
    sums: list[int] | list[float] = runs.sum(axis=1, dtype=kind).tolist()
    return sums


def mean_interval(values: Numbers, confidence: float = 0.95) -> Interval | None:
    """Interval of the mean of a correlated sample in order of time, by batch means.

    Returns
    -------
    Interval or None
        None for fewer than ``BATCHES * BATCH_MIN`` values.
    """
    sums = _batch_sums(values)
    if sums is None:
        return None
    error = ratio_error(sums, [len(values) // BATCHES] * BATCHES)
    assert error is not None
    total = fsum(values.tolist()) if values.dtype.kind == "f" else int(values.sum())
    half = student(BATCHES, confidence) * error
    return Interval(total / len(values) - half, total / len(values) + half)


def percentile_band(
    samples: int, probability: float, error: float, runs: int, confidence: float = 0.95
) -> tuple[int, int] | None:
    """Ranks, from 1, whose order statistics bound a percentile of a correlated sample.

    Parameters
    ----------
    samples : int
    probability : float
    error : float
        Standard error of the share of the sample that is not above the percentile.
    runs : int
        That the error was estimated from.

    Returns
    -------
    (lower, upper) or None
        None if the sample is too short: a rank would lie outside of it.
    """
    independent = float(samples)
    if error > 0:
        stretch = student(runs, confidence) / student(10**6, confidence)
        independent = probability * (1 - probability) / (error * stretch) ** 2
    worth = min(samples, int(independent))
    lower, upper, _ = quantile_ranks(worth, probability, confidence)
    if lower < 1 or upper > worth:
        return None
    # A rank among `worth` samples stands for a share of all of them.
    return max(1, lower * samples // worth), min(samples, -(-upper * samples // worth))


def percentile_interval(
    values: Numbers, ordered: Numbers, probability: float, confidence: float = 0.95
) -> Interval | None:
    """Interval of a percentile of a correlated sample.

    Parameters
    ----------
    values : array
        The sample in order of time.
    ordered : array
        The same, increasing.
    probability : float

    Returns
    -------
    Interval or None
        None if the sample is too short: an end would lie beyond the largest value.
    """
    sums = _batch_sums(values <= percentile(ordered, probability))
    if sums is None:
        return None
    error = ratio_error(sums, [len(values) // BATCHES] * BATCHES)
    assert error is not None
    band = percentile_band(len(values), probability, error, BATCHES, confidence)
    if band is None:
        return None
    return Interval(float(ordered[band[0] - 1]), float(ordered[band[1] - 1]))


@lru_cache(maxsize=1024)
def quantile_ranks(
    samples: int, probability: float, confidence: float = 0.95
) -> tuple[int, int, float]:
    """Ranks of the order statistics that bound a quantile of independent samples.

    Each side errs with at most half of ``1 - confidence`` (David and Nagaraja 2003).

    Returns
    -------
    lower, upper : int
        1-based; 0 or ``samples + 1`` where there is none: too few samples.
    coverage : float
        Probability that the interval holds the quantile.
    """
    tail = (1 - confidence) / 2
    lower = _first(lambda k: _at_most(k, samples, probability) > tail, 0, samples)
    upper = _first(lambda k: 1 - tail <= _at_most(k, samples, probability), 0, samples) + 1
    inside = _at_most(upper - 1, samples, probability) - _at_most(lower - 1, samples, probability)
    return lower, upper, inside


def _at_most(k: int, samples: int, probability: float) -> float:
    """Probability that at most `k` of `samples` are below the quantile: a binomial law's."""
    from scipy.special import betainc

    if k < 0 or k >= samples:
        return float(k >= 0)
    return float(betainc(samples - k, k + 1, 1 - probability))


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Find the least integer from `low` on for which a monotone property holds, as for `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def needed_samples(probability: float, confidence: float = 0.95) -> int:
    """Independent samples from which on the interval of a percentile above the median exists."""
    return ceil(log((1 - confidence) / 2) / log(probability))


def early_stopping_queries(
    probability: float, over_latency: int, confidence: float = 0.99, tolerance: float = 0.0
) -> int:
    """MLPerf's early stopping: queries needed with `over_latency` of them above the target.

    The smallest n for which at most `over_latency` slow queries among n show, at the given
    confidence, that a share `probability` is fast enough.
    """
    slow = 1 - probability + tolerance
    low = over_latency + 1

    def shown(queries: int) -> bool:
        return _at_most(over_latency, queries, slow) <= 1 - confidence

    step = 1
    while not shown(low + step):
        step *= 2
    return _first(shown, low, low + step)
