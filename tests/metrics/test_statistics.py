"""Percentiles and intervals: definitions, exact ranks, and whether intervals cover the truth."""

import csv
import json
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from gesim.metrics.histogram import RELATIVE_ERROR, buckets_needed
from gesim.metrics.statistics import (
    early_stopping_queries,
    mean_interval,
    needed_samples,
    percentile,
    percentile_band,
    percentile_interval,
    quantile_ranks,
    ratio_error,
    replication_interval,
    student,
)

ORACLE = Path(__file__).parents[3] / "shared" / "oracle" / "cases_abch.csv"


def oracle_rows(family):
    if not ORACLE.exists():
        return []
    with ORACLE.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["id"] == family]


def sojourns(rng, n, load):
    """Sojourn times of an M/M/1 queue with mean service 1, by Lindley's recursion."""
    gaps, services = rng.exponential(1 / load, n), rng.exponential(1, n)
    walk = np.concatenate([[0], np.cumsum(services[:-1] - gaps[1:])])
    waits = walk - np.minimum.accumulate(walk)
    return (waits + services) * 1e6


@pytest.mark.parametrize(
    ("probability", "expected"), [(0.5, 3), (0.6, 3), (0.61, 4), (1.0, 5), (0.0, 1), (0.2, 1)]
)
def test_percentile_is_the_smallest_value_with_that_share_below(probability, expected):
    assert percentile(np.array([1, 2, 3, 4, 5]), probability) == expected


def test_percentile_is_not_fooled_by_binary_fractions():
    ordered = np.arange(1, 21)
    assert percentile(ordered, 0.95) == 19
    assert percentile(ordered, 0.9) == 18
    assert percentile(np.arange(1, 1001), 0.999) == 999


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.5, 0.9, 0.99])
def test_percentile_equals_numpys_inverted_cdf(probability):
    sample = np.random.default_rng(4).integers(0, 10**9, 1237)
    expected = np.quantile(sample, probability, method="inverted_cdf")
    assert percentile(np.sort(sample), probability) == expected


@pytest.mark.skipif(not ORACLE.exists(), reason="the oracle's table is not beside this checkout")
class TestOracle:
    def test_logarithmic_buckets(self):
        for row in oracle_rows("H1"):
            params = json.loads(row["params"])
            growth, buckets = buckets_needed(
                params["relative_error"], params["low_ms"], params["high_ms"]
            )
            found = {
                "growth": growth,
                "buckets": buckets,
                "worst_relative_error": (growth - 1) / (growth + 1),
            }
            assert found[row["metric"]] == pytest.approx(float(row["value"]), rel=1e-10)

    def test_student_and_band(self):
        found = 0
        for row in oracle_rows("H3"):
            params = json.loads(row["params"])
            if row["metric"] == "student_quantile":
                value = student(params["samples"], params["confidence"])
                assert value == pytest.approx(float(row["value"]), rel=1e-9)
                found += 1
        assert found

    def test_rank_intervals(self):
        for row in oracle_rows("H4"):
            params = json.loads(row["params"])
            lower, upper, coverage = quantile_ranks(
                params["samples"], params["quantile"], params["confidence"]
            )
            found = {
                "lower_rank": lower,
                "upper_rank": upper,
                "coverage": coverage,
                "samples_for_upper_end": needed_samples(params["quantile"], params["confidence"]),
            }
            assert found[row["metric"]] == pytest.approx(float(row["value"]), rel=1e-9), row

    def test_early_stopping(self):
        for row in oracle_rows("H5"):
            params = json.loads(row["params"])
            queries = early_stopping_queries(
                params["percentile"], params["over_latency"], params["confidence"]
            )
            found = {"queries": queries, "fast_queries": queries - params["over_latency"]}
            assert found[row["metric"]] == int(float(row["value"])), row

    def test_spread_of_mean_waits(self):
        """The spread that batch means find is the true one, not that of independent values."""
        row = next(r for r in oracle_rows("H2") if r["metric"] == "sd_asymptotic_ms")
        params = json.loads(row["params"])
        load, n = params["arrival_rate_rps"] / 1e3 * params["service_ms"], params["requests"]
        rng = np.random.default_rng(7)
        errors = []
        for _ in range(100):
            gaps, services = rng.exponential(1 / load, n), rng.exponential(1, n)
            walk = np.concatenate([[0], np.cumsum(services[:-1] - gaps[1:])])
            waits = (walk - np.minimum.accumulate(walk)) * params["service_ms"]
            interval = mean_interval(waits)
            errors.append((interval.high - interval.low) / 2 / student(25))
        assert np.mean(errors) == pytest.approx(float(row["value"]), rel=0.1)


@pytest.mark.parametrize(("load", "n"), [(0.3, 4000), (0.6, 20000), (0.75, 40000)])
def test_intervals_cover_the_truth(load, n):
    """Nominal 95 % intervals on M/M/1 sojourns cover in at least 90 % of 200 runs.

    The law of the sojourn is exponential with mean 1 / (1 - load).
    """
    rng = np.random.default_rng(11)
    truth = {p: -log(1 - p) / (1 - load) * 1e6 for p in (0.5, 0.9, 0.95)}
    hits = dict.fromkeys([*truth, "mean"], 0)
    for _ in range(200):
        values = sojourns(rng, n + n // 20, load)[n // 20 :].astype(np.int64)
        ordered = np.sort(values)
        low, high = mean_interval(values)
        hits["mean"] += low <= 1e6 / (1 - load) <= high
        for probability, true in truth.items():
            interval = percentile_interval(values, ordered, probability)
            hits[probability] += interval is not None and interval.low <= true <= interval.high
    assert min(hits.values()) >= 180, hits
    assert max(hits.values()) <= 200


def test_a_naive_interval_would_not_cover():
    """The control: treating successive sojourns as independent fails the same test."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(100):
        values = sojourns(rng, 21000, 0.6)[1000:]
        half = 1.96 * values.std() / sqrt(len(values))
        hits += abs(values.mean() - 1e6 / 0.4) <= half
    assert hits < 60


def test_tail_percentiles_cover_or_say_nothing():
    rng = np.random.default_rng(5)
    true = log(100) / 0.4 * 1e6
    outcomes = []
    for _ in range(200):
        values = sojourns(rng, 42000, 0.6)[2000:]
        interval = percentile_interval(values, np.sort(values), 0.99)
        outcomes.append(None if interval is None else interval.low <= true <= interval.high)
    given = [outcome for outcome in outcomes if outcome is not None]
    assert len(given) >= 190
    assert sum(given) >= 0.9 * len(given)


def test_intervals_of_independent_samples_are_not_wasteful():
    rng = np.random.default_rng(3)
    widths = []
    for _ in range(50):
        values = rng.exponential(1, 10_000)
        interval = mean_interval(values)
        widths.append(interval.high - interval.low)
    ideal = 2 * 1.96 / 100
    assert 0.95 * ideal < np.mean(widths) < 1.35 * ideal


def test_too_few_samples_give_no_interval():
    short = np.arange(99)
    assert mean_interval(short) is None
    assert percentile_interval(short, short, 0.5) is None
    enough = np.random.default_rng(1).permutation(360)
    assert percentile_interval(enough, np.sort(enough), 0.9) is not None
    assert percentile_interval(enough, np.sort(enough), 0.99) is None  # needs 368
    assert needed_samples(0.99) == 368
    assert replication_interval(np.array([1.0])) is None


def test_constant_samples_have_intervals_of_no_width():
    same = np.full(1000, 7)
    assert mean_interval(same) == (7, 7)
    assert percentile_interval(same, same, 0.5) == (7, 7)


def test_replications():
    low, high = replication_interval(np.array([1.0, 2.0, 3.0]))
    assert (low + high) / 2 == pytest.approx(2)
    assert (high - low) / 2 == pytest.approx(4.30265 / sqrt(3), rel=1e-5)


def test_ratio_error_of_equal_runs_is_the_textbooks():
    runs = [3.0, 5.0, 1.0, 7.0, 4.0, 4.0]  # neighbours are negatively correlated: no widening
    expected = np.std(runs, ddof=1) / sqrt(len(runs)) / 10
    assert ratio_error(runs, [10] * 6) == pytest.approx(expected)
    assert ratio_error([1.0], [1]) is None
    assert ratio_error([0, 0], [0, 0]) is None


def test_ratio_error_grows_with_correlation():
    trend = [float(i) for i in range(20)]
    assert ratio_error(trend, [1] * 20) > 2 * np.std(trend, ddof=1) / sqrt(20)


def test_a_band_needs_independent_worth():
    assert percentile_band(10_000, 0.99, 0.001, 25) is not None
    assert percentile_band(10_000, 0.99, 0.02, 25) is None
    assert percentile_band(1000, 0.5, 0.0, 25) == quantile_ranks(1000, 0.5)[:2]


def test_buckets_are_not_many_more_than_the_least():
    _, least = buckets_needed(RELATIVE_ERROR, 1e5, 1e12)
    octaves = log(1e7) / log(2)
    assert least < 128 * octaves < 1.45 * least
