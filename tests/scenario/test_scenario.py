"""Scenarios: defaults, changing one, writing one out in full, warnings."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import yaml

from gesim.core.decisions import Dispatch
from gesim.core.policy import BatchingPolicy
from gesim.errors import PolicyError, ScenarioError
from gesim.scenario.load import Scenario, load

SMALL = {
    "schema": 1,
    "requests": 1000,
    "models": [{"name": "m", "cost": {"kind": "affine", "setup": "2ms", "per_item": "1ms"}}],
    "workload": {"arrivals": {"process": "poisson", "rate": "100/s"}},
}

FULL = """\
schema: 1
name: full
description: Everything at once.
seed: 7
duration: 60s
requests: 5000
warmup: 2s
slo: 50ms
devices:
  - {name: npu, count: 2, streams: 2}
  - {name: cpu}
models:
  - name: a
    cost: {kind: table, points: {1: 2ms, 8: 9ms}, jitter: {law: lognormal, cv: 0.1}}
    gears: [1, 8]
    host: {dispatch: 150us, per_item: 5us, jitter: {law: exponential}}
    transfer: {input: 588KiB, output: 4KiB, bandwidth: 8GiB/s, latency: 20us}
    instance_group: {count: 2, devices: [npu0, cpu]}
    priority_levels: 2
    slo: 20ms
  - name: b
    cost: {kind: work, setup: 1ms}
    batching: none
    admission: []
batching: {policy: delay_window, max_batch_size: 8, max_queue_delay: 5ms}
admission: {policy: bounded_queue, max_queue_size: 64}
workload:
  arrivals: {process: mmpp, rates: [800/s, 40/s], dwell: [20ms, 480ms]}
  mix:
    - {model: a, weight: 0.7, priority: 1, deadline: 30ms, timeout: 10ms}
    - {model: b, weight: 0.3, work: {law: erlang, mean: 10ms, stages: 3}}
frontend: {receive: 50us, respond: 10us}
expect:
  - a.latency_p99 <= 15ms
"""


@dataclass
class Own(BatchingPolicy):
    """A policy of a notebook cell."""

    max_batch_size: int = 4
    patience_ns: int = 1_000_000

    def decide(self, now_ns, queue):
        return Dispatch(queue.fit(self.max_batch_size))


@pytest.fixture
def small():
    return Scenario.from_dict(SMALL)


@pytest.fixture
def full(tmp_path):
    path = tmp_path / "full.yaml"
    path.write_text(FULL)
    return load(path)


def test_defaults(small):
    assert small.seed == 1
    assert small.warmup == (0.05, 0)
    assert small.slo_ns is None
    assert small.expect == ()
    model = small.resolved()["models"][0]
    assert model["gears"] == "any"
    assert model["batching"]["policy"] == "none"
    assert model["ordering"] == {"policy": "fifo"}
    assert model["admission"] == []
    assert model["instance_group"] == {"count": 1, "devices": ["device"]}
    assert small.resolved()["workload"]["mix"] == [
        {"model": "m", "priority": 1, "weight": 1.0, "items": 1}
    ]


def test_levels_are_served_by_urgency_unless_told_otherwise(small):
    levels = small.set("models[0].priority_levels", 2)
    assert levels.resolved()["models"][0]["ordering"] == {"policy": "strict_priority"}
    assert levels.resolved()["models"][0]["default_priority_level"] == 2
    flat = levels.set("ordering", "fifo")
    assert any("ordering fifo ignores levels" in w for w in flat.warnings())


def test_immutable(small):
    with pytest.raises(Exception, match="frozen"):
        small.seed = 3


@pytest.mark.parametrize("which", ["small", "full"])
def test_resolved_again_is_the_same(which, request, tmp_path):
    scenario = request.getfixturevalue(which)
    resolved = scenario.resolved()
    text = yaml.safe_dump(resolved, sort_keys=False)
    path = tmp_path / "elsewhere" / "scenario.yaml"
    path.parent.mkdir()
    path.write_text(text)
    again = load(path)
    assert again.resolved() == resolved
    assert again == scenario
    assert hash(again) == hash(scenario)
    assert Scenario.from_dict(json.loads(json.dumps(resolved))) == scenario
    assert scenario != scenario.set("seed", 99)


def test_resolved_full(full):
    resolved = full.resolved()
    a, b = resolved["models"]
    assert a["batching"]["max_queue_delay"] == "5ms"
    assert a["admission"][0]["max_queue_size"] == 64
    assert b["admission"] == []
    assert b["slo"] == "50ms"
    assert a["slo"] == "20ms"
    assert a["transfer"]["input"] == "588KiB"
    assert resolved["warmup"] == "2s"
    assert resolved["workload"]["arrivals"]["rates"] == ["800/s", "40/s"]
    assert "batching" not in resolved


def test_set_reads_text_as_yaml(small):
    changed = small.set("requests", "50").set("workload.arrivals.rate", "2/s")
    assert (changed.requests, changed.workload.arrivals.rate_rps) == (50, 2.0)
    assert small.requests == 1000
    assert small.set("requests", np.int64(5)).requests == 5
    assert small.set("models[m].slo", "5ms").models[0].slo_ns == 5_000_000
    assert small.set("devices[0].streams", 2).devices[0].streams == 2
    assert small.set("workload.mix[0].items", 1).workload.mix[0].items == 1
    both = small.set_many({"requests": None, "duration": "1s"})
    assert (both.requests, both.duration_ns) == (None, 10**9)
    assert small.set("expect", "[throughput >= 1/s]").expect == ("throughput >= 1/s",)


def test_set_policies(small):
    greedy = small.set("batching", {"policy": "greedy", "max_batch_size": 4})
    assert greedy.set("batching.max_batch_size", 8).resolved()["models"][0]["batching"] == {
        **greedy.resolved()["models"][0]["batching"],
        "max_batch_size": 8,
    }
    window = small.set(
        "batching", "{policy: delay_window, max_batch_size: 4, max_queue_delay: 5ms}"
    )
    switched = window.set("batching.policy", "greedy")
    assert switched.resolved()["models"][0]["batching"]["max_batch_size"] == 4
    assert any("drops max_queue_delay" in w for w in switched.warnings())
    # The only model's own policy is what `batching` means.
    own = Scenario.from_dict({**SMALL, "models": [{**SMALL["models"][0], "batching": "none"}]})
    assert own.set("batching", {"policy": "greedy", "max_batch_size": 3}).models[0].batching
    renamed = own.set_many({"batching.policy": "greedy", "batching.max_batch_size": 2})
    assert renamed.models[0].batching == {"policy": "greedy", "max_batch_size": 2}


def test_policies_of_ones_own(small):
    for value in (Own, Own(6), f"{__name__}:Own"):
        for key in ("batching", "batching.policy"):
            changed = small.set(key, value)
            described = changed.resolved()["models"][0]["batching"]
            assert described["policy"] == f"{__name__}:Own"
            assert described["patience"] == "1ms"
            assert described["max_batch_size"] == (6 if isinstance(value, Own) else 4)
            assert Scenario.from_dict(changed.resolved()) == changed
    assert (
        small.set("batching", Own)
        .set("batching.max_batch_size", 9)
        .resolved()["models"][0]["batching"]["max_batch_size"]
        == 9
    )


def test_models_change_parameters_of_the_shared_policy(full):
    own = full.set("models[a].batching", {"max_batch_size": 4})
    batching = own.resolved()["models"][0]["batching"]
    assert (batching["policy"], batching["max_batch_size"]) == ("delay_window", 4)
    assert batching["max_queue_delay"] == "5ms"
    with pytest.raises(ScenarioError, match=r"max_batchsize: unknown parameter"):
        full.set("models[a].batching", {"max_batchsize": 4})


@pytest.mark.parametrize(
    ("key", "value", "fragment"),
    [
        ("requsts", 5, "requsts: unknown key; did you mean 'requests'?"),
        ("requests", "-5", "requests: -5 must be 1 or more"),
        ("models[3].slo", "5ms", "models has 1 entries, counted from 0: no [3]"),
        ("models[mm].slo", "5ms", "models has no entry named 'mm'; did you mean 'm'?"),
        ("models.slo", "5ms", "models is a list: say which entry, like models[0].slo"),
        ("requests.x", 1, "requests is 1000, so it has no x"),
        ("requests[0]", 1, "requests is not a list"),
        ("a..b", 1, "'a..b' is not a key"),
        ("", 1, "'' is not a key"),
        ("[0]", 1, "'[0]' is not a key"),
        ("requests", "[1", "is not a YAML value"),
        ("workload.arrivals.rate", 5, "workload.arrivals.rate: 5 has no unit"),
        ("batching.max_batch_size", 8, "batching: names no policy"),
        ("slo", "5", "slo: 5 has no unit"),
    ],
)
def test_bad_set(small, key, value, fragment):
    with pytest.raises(ScenarioError) as caught:
        small.set(key, value)
    assert fragment in str(caught.value)
    assert f"scenario with {key}={value}" in str(caught.value)


def test_set_of_an_unknown_policy(small):
    with pytest.raises(PolicyError, match="did you mean 'greedy'"):
        small.set("batching", "gredy")


def test_set_that_no_model_hears():
    models = [
        {"name": n, "cost": SMALL["models"][0]["cost"], "batching": "none"} for n in ("m", "k")
    ]
    mix = [{"model": "m"}, {"model": "k"}]
    data = {**SMALL, "models": models, "workload": {**SMALL["workload"], "mix": mix}}
    with pytest.raises(ScenarioError, match=r"no effect: .* set models\[m\]\.batching\.max"):
        Scenario.from_dict(data).set("batching.max_batch_size", 8)
    shadowed = Scenario.from_dict({**data, "batching": "none"})
    assert any("batching at the top has no effect" in w for w in shadowed.warnings())


def test_warnings(small, full):
    assert small.warnings() == []
    crowded = small.set("models[0].instance_group.count", 3)
    assert any("3 instances and runs 1 batch at once" in w for w in crowded.warnings())
    closed = small.set_many(
        {
            "workload.arrivals": {"process": "closed", "clients": 4},
            "batching": {"policy": "greedy", "max_batch_size": 8},
        }
    )
    assert any("out of reach: 4 clients" in w for w in closed.warnings())
    bounded = small.set_many(
        {
            "admission": [{"policy": "bounded_queue", "max_queue_size": 4}],
            "batching": {"policy": "greedy", "max_batch_size": 8},
        }
    )
    assert any("its queue holds 4 requests" in w for w in bounded.warnings())
    unasked = full.set("workload.mix[1].weight", 0)
    assert any("no request asks for model 'b'" in w for w in unasked.warnings())


def test_from_dict_leaves_its_argument_alone():
    data = json.loads(json.dumps(SMALL))
    Scenario.from_dict(data).set("workload.arrivals.rate", "5/s")
    assert data == SMALL
    with pytest.raises(ScenarioError, match="a scenario is a mapping"):
        Scenario.from_dict([1])


def test_repr(small):
    assert repr(small) == "<Scenario 'scenario': m; poisson>"


def test_stored_scenarios_open_without_what_they_name(small, tmp_path):
    stored = small.set("batching", Own).resolved()
    stored["models"][0]["batching"]["policy"] = "gone_notebook:Own"
    with pytest.raises(PolicyError):
        Scenario.from_dict(stored)
    opened = Scenario.from_stored(stored, "scenario.yaml", tmp_path)
    assert opened.resolved() == stored
    assert opened.name == small.name
    with pytest.raises(PolicyError, match="gone_notebook"):
        opened.set("seed", 3)
    assert Scenario.from_stored(small.resolved(), "scenario.yaml", tmp_path) == small
    with pytest.raises(ScenarioError, match=r"scenario\.yaml: requests: 'x' is not"):
        Scenario.from_stored({**stored, "requests": "x"}, "scenario.yaml", tmp_path)
