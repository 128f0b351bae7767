"""Expectations: reading them, and whether they hold."""

import math

import pytest

from gesim.errors import ScenarioError
from gesim.metrics.recorder import Recorder
from gesim.metrics.records import Facts
from gesim.metrics.summary import summarise
from gesim.scenario.build import build
from gesim.scenario.expect import METRICS, check_expectations, parse_expectation
from gesim.scenario.load import Scenario


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
        ("level1.mean_batch > 5", "batches have no priority level"),
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


DATA = {
    "schema": 1,
    "requests": 10,
    "slo": "5ms",
    "models": [{"name": "m", "cost": {"kind": "affine", "setup": "2ms", "per_item": "1ms"}}],
    "workload": {"arrivals": {"process": "constant", "rate": "100/s"}},
}


def run(data):
    scenario = Scenario.from_dict(data)
    system = build(scenario)
    facts = Facts(models=("m",), devices=("device",), instances=((0, 0),), slo_ns=(5_000_000,))
    recorder = Recorder(facts)
    chunks = list(system.workload.chunks())
    for chunk in chunks:
        recorder.arrivals(chunk)
    return scenario, summarise(recorder.records(10**9), facts)


def test_every_metric_is_in_the_summary():
    expect = [
        f"{scope}{name} >= {({'time': '0ms', 'rate': '0/s', 'share': '0%', 'number': '0'})[kind]}"
        for name, kind in METRICS.items()
        for scope in ("", "m.")
    ]
    scenario, summary = run({**DATA, "expect": expect})
    for scope in (summary["all"], summary["models"]["m"]):
        for name, kind in METRICS.items():
            assert name + {"time": "_ns", "rate": "_rps"}.get(kind, "") in scope
    checked = check_expectations(scenario, summary)
    assert [c.text for c in checked] == expect


def test_checking():
    expect = [
        "latency_p99 <= 15ms",
        "m.latency_p99 > 15ms",
        "level1.throughput ~ 99/s +- 2%",
        "mean_batch == 2",
    ]
    scenario = Scenario.from_dict({**DATA, "expect": expect})
    section = {"latency_p99_ns": 14_230_000, "throughput_rps": 100.0, "mean_batch": None}
    summary = {"all": section, "models": {"m": section}, "levels": {"level1": section}}
    assert check_expectations(scenario, summary) == [
        (expect[0], True, "14.2 ms"),
        (expect[1], False, "14.2 ms"),
        (expect[2], True, "100/s"),
        (expect[3], False, "no value"),
    ]


def test_goodput_needs_a_target():
    data = {**DATA, "expect": ["goodput_ratio > 99%"]}
    assert Scenario.from_dict(data).expect
    del data["slo"]
    with pytest.raises(ScenarioError, match="goodput_ratio needs a latency target"):
        Scenario.from_dict(data)
    for where in ({"models": [{**DATA["models"][0], "slo": "5ms"}]},):
        assert Scenario.from_dict({**data, **where}).expect
