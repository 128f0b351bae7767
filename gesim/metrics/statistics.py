"""Estimates with their errors: percentiles, batch means, intervals.

Successive latencies are not independent: an interval that treats them so covers the truth in
a third of runs at load 0.6. Here the spread comes from *batch means*: the sample, in order of
arrival, is cut into equal runs long enough that their means are nearly independent, and
Student's quantile does the rest. For a percentile the same is done with the indicator "not
above it", and the resulting band of probabilities is read off the order statistics.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BATCHES",
    "early_stopping_queries",
    "mean_interval",
    "percentile",
    "percentile_interval",
    "quantile_ranks",
    "replication_interval",
    "student",
]

Numbers = NDArray[np.float64] | NDArray[np.int64]
Interval = tuple[float, float] | None

BATCHES = 25
"""Runs that a sample is cut into; 20 to 30 is the textbook's advice."""


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
    return float(ordered[max(0, ceil(probability * len(ordered) - 1e-9) - 1)])


def _batch_means(values: NDArray[Any], batches: int = BATCHES) -> NDArray[np.float64] | None:
    """Means of equal consecutive runs (what does not divide is left off the front)."""
    size = len(values) // batches
    if size < 4:
        return None
    means: NDArray[np.float64] = (
        values[len(values) - size * batches :].reshape(batches, size).mean(axis=1)
    )
    return means


def replication_interval(values: Numbers, confidence: float = 0.95) -> Interval:
    """Student interval of the mean of independent values; None for fewer than two."""
    if len(values) < 2:
        return None
    mean = float(np.mean(values))
    half = student(len(values), confidence) * float(np.std(values, ddof=1)) / sqrt(len(values))
    return mean - half, mean + half


def mean_interval(values: Numbers, confidence: float = 0.95) -> Interval:
    """Interval of the mean of a correlated sample in order of time, by batch means."""
    means = _batch_means(values)
    if means is None:
        return None
    centre = float(np.mean(values))
    half = student(len(means), confidence) * float(np.std(means, ddof=1)) / sqrt(len(means))
    return centre - half, centre + half


def percentile_interval(
    values: Numbers, ordered: Numbers, probability: float, confidence: float = 0.95
) -> Interval:
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
    (low, high) or None
        None if the sample is too short: an end would lie beyond the largest value.
    """
    below = values <= percentile(ordered, probability)
    means = _batch_means(below)
    if means is None:
        return None
    half = student(len(means), confidence) * float(np.std(means, ddof=1)) / sqrt(len(means))
    half = max(half, 0.5 / len(values))
    if probability + half >= 1 or probability - half <= 0:
        return None
    return percentile(ordered, probability - half), percentile(ordered, probability + half)


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
    from scipy.stats import binom

    tail = (1 - confidence) / 2
    law = binom(samples, probability)
    lower = int(law.ppf(tail))
    while lower > 0 and law.cdf(lower - 1) > tail:
        lower -= 1
    upper = int(law.ppf(1 - tail)) + 1
    while upper <= samples and law.sf(upper - 1) > tail:
        upper += 1
    return lower, upper, float(law.cdf(upper - 1) - (law.cdf(lower - 1) if lower else 0.0))


def early_stopping_queries(
    probability: float, over_latency: int, confidence: float = 0.99, tolerance: float = 0.0
) -> int:
    """MLPerf's early stopping: queries needed with `over_latency` of them above the target.

    The smallest n for which at most `over_latency` slow queries among n show, at the given
    confidence, that a share `probability` is fast enough.
    """
    from scipy.stats import binom

    slow = 1 - probability + tolerance
    n = over_latency + 1
    step = 1
    while binom.cdf(over_latency, n + step, slow) > 1 - confidence:
        step *= 2
    low, high = n, n + step
    while low < high:
        middle = (low + high) // 2
        if binom.cdf(over_latency, middle, slow) <= 1 - confidence:
            high = middle
        else:
            low = middle + 1
    return low
