"""Expectations: reading them, and whether they hold."""

import math

import pytest

from gesim.errors import ScenarioError
from gesim.scenario.expect import METRICS, parse_expectation


def expectation(text):
    return parse_expectation(text, ["resnet", "bert.base"], 2)


@pytest.mark.parametrize(
    ("text", "scope", "metric", "op", "value", "tolerance"),
    [
        ("latency_p99 <= 15ms", "", "latency_p99", "<=", 15e6, 0),
        ("queue_mean<1us", "", "queue_mean", "<", 1e3, 0),
        ("throughput >= 6000/min", "", "throughput", ">=", 100.0, 0),
        ("loss_ratio == 0", "", "loss_ratio", "==", 0.0, 0),
        ("goodput_ratio > 99%", "", "goodput_ratio", ">", 0.99, 0),
        ("mean_batch ~ 8 +- 5%", "", "mean_batch", "~", 8.0, 0.4),
        ("mean_batch ~ 8 ± 0.5", "", "mean_batch", "~", 8.0, 0.5),
        ("latency_mean ~ 10ms +/- 200us", "", "latency_mean", "~", 10e6, 200e3),
        ("latency_mean ~ 10ms +- 2%", "", "latency_mean", "~", 10e6, 200e3),
        ("utilisation ~ 80% +- 2%", "", "utilisation", "~", 0.8, 0.02),
        ("resnet.latency_p50 < 5ms", "resnet", "latency_p50", "<", 5e6, 0),
        ("bert.base.rejected == 0", "bert.base", "rejected", "==", 0.0, 0),
        ("level2.goodput > 5/s", "level2", "goodput", ">", 5.0, 0),
    ],
)
def test_reading(text, scope, metric, op, value, tolerance):
    read = expectation(text)
    assert (read.scope, read.metric, read.op) == (scope, metric, op)
    assert read.value == pytest.approx(value)
    assert read.tolerance == pytest.approx(tolerance)
    assert read.text == text


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("latency_p99", "is not an expectation; write it like latency_p99 <= 15ms"),
        ("latency_p99 = 5ms", "operators: <= < >= > == ~"),
        ("latency_p99 != 5ms", "operators: <= < >= > == ~"),
        ("latency_p98 < 5ms", "no metric 'latency_p98'; did you mean 'latency_p9"),
        ("zzz < 5ms", "no metric 'zzz' (such as latency_p99"),
        ("latency_p99 < 5", "'5' has no unit"),
        ("latency_p99 < -5ms", "negative"),
        ("throughput > 5ms", "not a rate"),
        ("mean_batch > 5ms", "'5ms' is not a number"),
        ("mean_batch ~ 8", "operator ~ needs a tolerance"),
        ("mean_batch < 8 +- 5%", "operator < takes no tolerance"),
        ("mean_batch ~ 8 +- many", "'many' is not a number"),
        ("level3.latency_p99 < 5ms", "no model or level 'level3'"),
        ("resnt.latency_p99 < 5ms", "did you mean 'resnet'?"),
    ],
)
def test_bad_expectations(text, fragment):
    with pytest.raises(ScenarioError) as caught:
        expectation(text)
    assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("mean_batch <= 8", [7, 8], [8.1, math.nan]),
        ("mean_batch < 8", [7.9], [8]),
        ("mean_batch >= 8", [8, 9], [7.9, math.nan]),
        ("mean_batch > 8", [8.1], [8]),
        ("mean_batch == 8", [8], [8.0001]),
        ("mean_batch ~ 8 +- 5%", [7.6, 8.4], [7.5, 8.5, math.nan]),
    ],
)
def test_holding(text, good, bad):
    read = expectation(text)
    assert all(read.holds(value) for value in good)
    assert not any(read.holds(value) for value in bad)


def test_showing():
    assert expectation("latency_p99 < 5ms").show(14_230_000) == "14.2 ms"
    assert expectation("throughput > 5/s").show(150.0) == "150/s"
    assert expectation("loss_ratio < 5%").show(0.0123) == "1.23%"
    assert expectation("mean_batch < 5").show(4.25) == "4.25"


def test_metric_names_are_distinct_from_scopes():
    assert not [name for name in METRICS if "." in name]
