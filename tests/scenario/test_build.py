"""Building systems: policies, instances, streams, workload, seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from gesim.core.decisions import NEVER_NS, Dispatch
from gesim.core.policy import BatchingPolicy
from gesim.core.request import Batch, Request
from gesim.errors import ProfileError, ScenarioError, WorkloadError
from gesim.rng import derived_seed
from gesim.scenario.build import build
from gesim.scenario.load import Scenario

COST = {"kind": "affine", "setup": "2ms", "per_item": "1ms"}
DATA = {
    "schema": 1,
    "requests": 1000,
    "slo": "50ms",
    "frontend": {"receive": "5us", "respond": "7us"},
    "devices": [{"name": "npu", "count": 2, "streams": 2}, {"name": "cpu"}],
    "models": [
        {
            "name": "a",
            "cost": {"kind": "table", "points": {1: "2ms", 8: "9ms"}},
            "gears": [1, 8],
            "host": {"dispatch": "100us"},
            "transfer": {"input": "1MiB", "bandwidth": "1GiB/s", "latency": "10us"},
            "instance_group": {"count": 2, "devices": ["npu0", "cpu"]},
            "priority_levels": 3,
            "default_priority_level": 2,
            "queue_bound": 500,
        },
        {"name": "b", "cost": COST, "slo": "20ms", "batching": "none"},
    ],
    "batching": {"policy": "greedy", "max_batch_size": 8},
    "workload": {
        "arrivals": {"process": "poisson", "rate": "100/s"},
        "mix": [
            {"model": "a", "weight": 3, "items": 2, "timeout": "3ms"},
            {"model": "a", "weight": 1, "priority": 1, "deadline": "4ms"},
            {"model": "b", "weight": 1},
        ],
    },
}


@dataclass
class Drawing(BatchingPolicy):
    """Has a seed."""

    name = "drawing"
    max_batch_size: int = 4
    seed: int = 0

    def decide(self, now_ns, queue):
        return Dispatch(1)


@pytest.fixture(scope="module")
def scenario():
    return Scenario.from_dict(DATA)


def configs(system):
    return [model.config for model in system.scheduler.models]


def rows(system):
    chunks = list(system.workload.chunks())
    return {key: np.concatenate([getattr(c, key) for c in chunks]) for key in vars(chunks[0])}


def test_names_devices_and_instances(scenario):
    system = build(scenario)
    assert system.models == ["a", "b"]
    assert system.devices == ["npu0", "npu1", "cpu"]
    assert system.scheduler._instances.streams_free == [2, 2, 1]
    a, b = configs(system)
    assert a.devices == (0, 0, 2, 2)
    assert b.devices == (0, 1, 2)
    assert (a.gears, b.gears) == ((1, 8), ())
    assert (a.queue_bound, b.queue_bound) == (500, 1_000_000)
    assert (system.receive_ns, system.respond_ns) == (5_000, 7_000)
    assert system.expected_requests == 1000


def test_policies_are_fresh_for_every_model_and_run(scenario):
    first, second = build(scenario), build(scenario)
    assert configs(first)[0].batching is not configs(second)[0].batching
    assert [c.batching.name for c in configs(first)] == ["greedy", "none"]
    assert [c.ordering.name for c in configs(first)] == ["strict_priority", "fifo"]


def test_service_has_all_terms(scenario):
    system = build(scenario)
    request = Request(0, 0, 0, 0, items=2)
    batch = Batch(0, 0, 0, 0, [request], 2, 8, 0, 1000)
    system.services[0].time(batch)
    transfer_ns = 8 * 2**20 * 10**9 // 2**30 + 10_000
    assert (batch.host_ns, batch.compute_ns, batch.output_ns) == (100_000, 9_000_000, 0)
    assert batch.input_ns == pytest.approx(transfer_ns, abs=1)
    total_ns = batch.host_ns + batch.input_ns + batch.compute_ns
    assert batch.finish_ns == 1000 + total_ns
    assert configs(system)[0].service_ns(2) == total_ns


def test_mix_fills_in_from_model_and_scenario(scenario):
    data = rows(build(scenario))
    assert len(data["arrival_ns"]) == 1000
    first = data["items"] == 2
    assert set(data["level"][first]) == {2}
    assert set(data["timeout_ns"][first]) == {3_000_000}
    deadline_ns = data["deadline_ns"] - data["arrival_ns"]
    assert set(deadline_ns[first]) == {50_000_000}
    assert set(deadline_ns[data["level"] == 1][data["model"][data["level"] == 1] == 0]) == {
        4_000_000
    }
    assert set(deadline_ns[data["model"] == 1]) == {20_000_000}
    assert 0.5 < first.mean() < 0.7


def test_no_slo_no_deadline():
    scenario = Scenario.from_dict(
        {
            "schema": 1,
            "requests": 10,
            "models": [{"name": "m", "cost": COST}],
            "workload": {"arrivals": {"process": "constant", "rate": "10/s"}},
        }
    )
    assert set(rows(build(scenario))["deadline_ns"]) == {NEVER_NS}


def test_seeds(scenario):
    def arrivals(*args):
        return rows(build(scenario, *args))["arrival_ns"].tolist()

    assert arrivals() == arrivals(1) != arrivals(2)
    drawing = scenario.set("models[a].batching", Drawing)
    assert configs(build(drawing, 5))[0].batching.seed == derived_seed(5, "policy/a/batching")
    assert "seed" not in drawing.resolved()["models"][0]["batching"]
    fixed = drawing.set("models[a].batching.seed", 9)
    assert configs(build(fixed, 5))[0].batching.seed == 9
    assert fixed.resolved()["models"][0]["batching"]["seed"] == 9


def test_policies_from_outside(scenario):
    system = build(scenario, policies={"batching": Drawing(max_batch_size=2)})
    a, b = configs(system)
    assert a.batching is not b.batching
    assert a.batching.max_batch_size == b.batching.max_batch_size == 2
    system = build(scenario, policies={"batching": "none", "b": {"batching": Drawing}})
    assert [c.batching.name for c in configs(system)] == ["none", "drawing"]
    system = build(
        scenario, policies={"admission": {"policy": "bounded_queue", "max_queue_size": 4}}
    )
    assert configs(system)[0].admission[0].max_queue_size == 4
    with pytest.raises(ScenarioError, match="did you mean 'batching'"):
        build(scenario, policies={"batchng": "none"})


def test_queue_policy_is_told_to_policies_that_ask():
    base = {
        "schema": 1,
        "requests": 10,
        "models": [
            {
                "name": "m",
                "cost": COST,
                "batching": {"policy": "preferred_size", "max_batch_size": 4},
            }
        ],
        "workload": {"arrivals": {"process": "poisson", "rate": "10/s"}},
    }
    plain = Scenario.from_dict(base)
    assert not configs(build(plain))[0].batching.queue_policy
    for key, value in (
        ("models[0].priority_levels", 1),
        ("admission", {"policy": "bounded_queue", "max_queue_size": 4}),
    ):
        queued = plain.set(key, value)
        assert configs(build(queued))[0].batching.queue_policy
        again = Scenario.from_dict(queued.resolved())
        assert again == queued
        assert configs(build(again))[0].batching.queue_policy
    assert Scenario.from_dict(plain.resolved()) == plain
    assert not configs(build(Scenario.from_dict(plain.resolved())))[0].batching.queue_policy


ARRIVALS = {
    "poisson": ({"rate": "100/s"}, 200),
    "constant": ({"rate": "100/s", "burst": 2}, 200),
    "gamma": ({"rate": "100/s", "cv": 3}, 200),
    "renewal": ({"gap": {"law": "erlang", "mean": "10ms", "stages": 4}}, 200),
    "mmpp": ({"rates": ["150/s", "50/s"], "dwell": ["20ms", "20ms"]}, 200),
    "diurnal": ({"rate": "100/s", "peak": 3, "period": "1s"}, 200),
    "on_off": ({"rate": "200/s", "on": "10ms", "off": "10ms", "law": "constant"}, 200),
    "bursts": ({"at": ["0ms", "50ms"], "size": 20, "spacing": "10us"}, 40),
    "batch_poisson": ({"rate": "50/s", "size": {"law": "geometric", "mean": 2}}, 200),
}


@pytest.mark.parametrize("process", ARRIVALS)
def test_every_open_process_builds(process):
    parameters, expected = ARRIVALS[process]
    scenario = Scenario.from_dict(
        {
            "schema": 1,
            "duration": "2s",
            "models": [{"name": "m", "cost": COST}],
            "workload": {"arrivals": {"process": process, **parameters}},
        }
    )
    system = build(scenario)
    assert system.expected_requests == expected
    times = rows(system)["arrival_ns"]
    assert (np.diff(times) >= 0).all()
    assert times[-1] < 2_000_000_000
    assert Scenario.from_dict(scenario.resolved()) == scenario


@pytest.mark.parametrize(
    ("arrivals", "first"),
    [
        ({"process": "closed", "clients": 8}, 8),
        ({"process": "closed", "clients": 3, "think": "5ms"}, 3),
        ({"process": "closed", "clients": 3, "think": {"law": "exponential", "mean": "5ms"}}, 3),
        ({"process": "mlperf", "scenario": "single_stream"}, 1),
        ({"process": "mlperf", "scenario": "multi_stream", "samples_per_query": 4}, 4),
    ],
)
def test_closed_loops_build(arrivals, first):
    scenario = Scenario.from_dict(
        {
            "schema": 1,
            "requests": 100,
            "models": [{"name": "m", "cost": COST}],
            "workload": {"arrivals": arrivals},
        }
    )
    assert len(build(scenario).workload.start()) == first
    assert Scenario.from_dict(scenario.resolved()) == scenario


COSTS = {
    "table": {"points": {1: "2ms", 4: "5ms"}, "extrapolate": "linear"},
    "lengths": {"kind": "table", "lengths": {64: {1: "1ms"}, 128: {1: "2ms"}}},
    "affine": {"setup": "1ms", "per_item": "1ms", "jitter": {"law": "gamma", "cv": 0.5}},
    "empirical": {"quantiles": {1: {"p0": "1ms", "p50": "2ms", "p99.9": "9ms"}}},
    "work": {"setup": "1ms"},
}


@pytest.mark.parametrize("kind", COSTS)
def test_every_cost_builds(kind):
    entry = {"lengths": {"length": 100}, "work": {"work": "3ms"}}.get(kind, {})
    scenario = Scenario.from_dict(
        {
            "schema": 1,
            "requests": 10,
            "models": [{"name": "m", "cost": {"kind": kind, **COSTS[kind]}}],
            "workload": {"arrivals": {"process": "poisson", "rate": "1/s"}, "mix": [entry]},
        }
    )
    system = build(scenario)
    work_ns = 3_000_000 if kind == "work" else 0
    request = Request(0, 0, 0, 0, length=entry.get("length", 0), work_ns=work_ns)
    batch = Batch(0, 0, 0, 0, [request], 1, 1, request.length, 0)
    system.services[0].time(batch)
    assert batch.compute_ns > 0
    if kind == "lengths":
        assert batch.compute_ns == 2_000_000
    if kind == "work":
        assert batch.compute_ns == 4_000_000
    assert Scenario.from_dict(scenario.resolved()) == scenario


PROFILE = """\
profile: 1
name: mine
model: M
device: D
curves:
  - {source: nowhere, throughput: {1: 500/s, 8: 1000/s}}
"""


def profiled(tmp_path, **model):
    (tmp_path / "mine.yaml").write_text(PROFILE)
    data = {
        "schema": 1,
        "requests": 10,
        "models": [{"name": "m", "profile": "mine.yaml", **model}],
        "batching": {"policy": "greedy", "max_batch_size": 8},
        "workload": {"arrivals": {"process": "poisson", "rate": "1/s"}},
    }
    return Scenario.from_dict(data, base=tmp_path)


def test_profiles(tmp_path):
    scenario = profiled(tmp_path)
    service = build(scenario).services[0]
    assert service.gears == (1, 8)
    assert (service.mean_ns(1), service.mean_ns(3)) == (2_000_000, 8_000_000)
    resolved = scenario.resolved()
    assert resolved["models"][0]["profile"] == str(tmp_path / "mine.yaml")
    assert resolved["models"][0]["gears"] == [1, 8]
    assert Scenario.from_dict(resolved) == scenario
    free = profiled(tmp_path, gears="any")
    assert build(free).services[0].gears == ()
    jittery = profiled(tmp_path, jitter={"law": "lognormal", "cv": 0.1})
    assert build(jittery).services[0].jitter is not None
    assert Scenario.from_dict(jittery.resolved()) == jittery


def test_profiles_that_do_not_fit(tmp_path):
    with pytest.raises(ProfileError, match="16 can happen, but profile mine"):
        profiled(tmp_path, gears=[16])
    assert build(profiled(tmp_path, gears=[16], extrapolate="linear"))
    with pytest.raises(ProfileError, match=r"models\[0\]\.profile: there is no profile file"):
        profiled(tmp_path, profile="yours.yaml")
    with pytest.raises(ProfileError, match="did you mean 'resnet101_310p3'"):
        profiled(tmp_path, profile="resnet101_310p")
    with pytest.raises(ScenarioError, match="jitter goes with a profile; write it inside cost"):
        profiled(tmp_path, profile=None, cost=COST, jitter={"law": "exponential"})


def test_trace_files_are_looked_for_at_once(tmp_path):
    (tmp_path / "trace.csv").write_text("arrival_ns\n1\n")
    data = {
        "schema": 1,
        "models": [{"name": "m", "cost": COST}],
        "workload": {"arrivals": {"process": "trace", "file": "trac.csv"}},
    }
    with pytest.raises(WorkloadError, match=r"there is no file .*did you mean 'trace\.csv'"):
        Scenario.from_dict(data, base=tmp_path)
    data["workload"]["arrivals"]["file"] = "trace.csv"
    scenario = Scenario.from_dict(data, base=tmp_path)
    assert scenario.resolved()["workload"]["arrivals"]["file"] == str(tmp_path / "trace.csv")
