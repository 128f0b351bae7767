"""The compiled engine completes every request at the same nanosecond as the SimPy engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from gesim.core.decisions import Dispatch, Drop, Wait
from gesim.core.policy import BatchingPolicy
from gesim.errors import ContractError, ScenarioError
from gesim.experiment.run import run
from gesim.scenario.scenario import Scenario

pytest.importorskip("numba", reason="the compiled engine needs numba")

COLUMNS = ("start_ns", "finish_ns", "outcome", "batch", "batch_items", "batch_gear",
           "batch_instance", "compute_ns")  # fmt: skip
LOADS = {"light": 100, "medium": 900, "heavy": 1600}  # capacity is about 1,330/s at batch 8
N = 3000

BATCHING = {
    "none": {"policy": "none"},
    "fixed": {"policy": "fixed", "max_batch_size": 8},
    "fixed_flush": {"policy": "fixed", "max_batch_size": 8, "flush": "5ms"},
    "greedy": {"policy": "greedy", "max_batch_size": 8},
    "greedy_min": {"policy": "greedy", "max_batch_size": 8, "min_batch_size": 3},
    "window": {"policy": "delay_window", "max_batch_size": 8, "max_queue_delay": "3ms"},
    "pick": {"policy": "delay_window", "max_batch_size": 8, "max_queue_delay": "3ms",
             "timer_origin": "server_pick"},
    "previous": {"policy": "delay_window", "max_batch_size": 8, "max_queue_delay": "3ms",
                 "timer_origin": "previous_get"},
    "sealed": {"policy": "delay_window", "max_batch_size": 8, "max_queue_delay": "3ms",
               "collect": "sealed"},
    "preferred": {"policy": "preferred_size", "max_batch_size": 8, "max_queue_delay": "3ms",
                  "preferred_batch_size": [4]},
    "dual": {"policy": "dual_queue", "max_batch_size": 8},
    "dual_literal": {"policy": "dual_queue", "max_batch_size": 8, "literal": True},
    "gear_theta": {"policy": "gear", "max_batch_size": 8, "rule": "theta"},
    "gear_floor": {"policy": "gear", "max_batch_size": 8, "rule": "floor"},
}  # fmt: skip


def scenario(batching, rate=900, *, levels=1, instances=1, cost=None, gears=None, n=N, **top):
    model = {
        "name": "m",
        "cost": cost or {"kind": "affine", "setup": "2ms", "per_item": "0.5ms"},
        "host": {"dispatch": "100us", "per_item": "10us"},
        "transfer": {"input": "100KiB", "output": "1KiB", "bandwidth": "4GiB/s", "latency": "5us"},
        "priority_levels": levels,
    }
    if gears:
        model["gears"] = gears
    workload = {"arrivals": {"process": "poisson", "rate": f"{rate}/s"}}
    if levels > 1:
        workload["mix"] = [{"priority": k + 1, "weight": k + 1} for k in range(levels)]
    return Scenario.from_dict(
        {
            "schema": 1,
            "name": "engines",
            "requests": n,
            "devices": [{"name": "d", "count": instances}],
            "models": [model],
            "batching": batching,
            "workload": workload,
            "frontend": {"receive": "30us", "respond": "20us"},
            **top,
        }
    )


def same(data, seed=1):
    slow = run(data, seed=seed, engine="simpy")
    assert slow.engine == "simpy"
    a = slow.runs[0].records
    for engine in ("interpreted", "compiled"):
        fast = run(data, seed=seed, engine=engine)
        assert fast.engine in (engine, "called")
        b = fast.runs[0].records
        for name in COLUMNS:
            assert np.array_equal(getattr(a, name), getattr(b, name)), (engine, name)
        assert [a.reasons[code] for code in a.reason] == [b.reasons[code] for code in b.reason]
        assert slow.summary_dict == fast.summary_dict
    return fast


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("batching", BATCHING)
def test_every_batching_policy(batching, load, seed):
    extra = {}
    if batching.startswith("dual"):
        extra = {"levels": 2, "ordering": "strict_priority"}
    if batching.startswith("gear"):
        extra = {"gears": [1, 2, 4, 8]}
    same(scenario(BATCHING[batching], LOADS[load], **extra), seed)


QUEUES = {
    "priority": {"levels": 3, "ordering": "strict_priority"},
    "fifo_levels": {"levels": 3, "ordering": "fifo"},
    "bounded": {"admission": {"policy": "bounded_queue", "max_queue_size": 5}},
    "loss": {"admission": {"policy": "bounded_queue", "max_queue_size": 0}},
    "bounded_levels": {
        "levels": 3,
        "ordering": "fifo",
        "admission": {"policy": "bounded_queue", "max_queue_size": 3},
    },
    "timeout": {"admission": {"policy": "queue_timeout", "timeout": "4ms"}},
    "both": {
        "levels": 2,
        "admission": [
            {"policy": "bounded_queue", "max_queue_size": 6},
            {"policy": "queue_timeout", "timeout": "4ms"},
        ],
    },
}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("instances", [1, 3])
@pytest.mark.parametrize("queue", QUEUES)
def test_every_ordering_and_admission(queue, instances, load, seed):
    rate = LOADS[load] * instances
    same(scenario(BATCHING["window"], rate, instances=instances, **QUEUES[queue]), seed)


JITTERED = {
    "lognormal": {"kind": "affine", "setup": "2ms", "per_item": "0.5ms",
                  "jitter": {"law": "lognormal", "cv": 0.4}},
    "exponential": {"kind": "table", "points": {1: "1ms", 8: "4ms"},
                    "jitter": {"law": "exponential"}},
}  # fmt: skip


@pytest.mark.parametrize("instances", [1, 2])
@pytest.mark.parametrize("cost", JITTERED)
def test_jitter_uses_the_same_draws(cost, instances):
    data = scenario(BATCHING["greedy"], 900, instances=instances, cost=JITTERED[cost], n=40_000)
    same(data)


def test_requests_with_work_of_their_own():
    data = scenario(BATCHING["none"], 300, levels=2).resolved()
    data["models"][0]["cost"] = {"kind": "work"}
    for entry in data["workload"]["mix"]:
        entry["work"] = {"law": "exponential", "mean": "2ms"}
    same(Scenario.from_dict(data))


def test_ties_of_traces_and_bursts():
    """Arrivals, completions and timers on one grid: every instant is a tie."""
    at = [f"{k // 3}ms" for k in range(600)]
    data = scenario(
        {"policy": "delay_window", "max_batch_size": 4, "max_queue_delay": "1ms"},
        cost={"kind": "affine", "setup": "1ms", "per_item": "0ms"},
    ).resolved()
    data["workload"]["arrivals"] = {"process": "bursts", "at": at, "size": 2}
    data["models"][0]["host"] = {"dispatch": "0us"}
    del data["models"][0]["transfer"]
    same(Scenario.from_dict(data))


@dataclass
class Remembering(BatchingPolicy):
    """Compiles: plain state, a helper, a drop.

    Parameters
    ----------
    max_batch_size : int
        Most items.
    """

    name: ClassVar[str] = "remembering"
    max_batch_size: int = 8
    mean: float = field(default=1.0, init=False)
    turns: int = field(default=0, init=False)

    def decide(self, now_ns, queue):
        self.turns += 1
        if self.turns % 50 == 0 and queue.count > 3:
            return Drop(2, "tired")
        wanted = self.wanted()
        if queue.items >= wanted or queue.oldest_enqueue_ns + 2_000_000 <= now_ns:
            count = queue.fit(self.max_batch_size)
            self.mean += 0.1 * (count - self.mean)
            return Dispatch(count)
        return Wait(queue.oldest_enqueue_ns + 2_000_000, wanted)

    def wanted(self):
        return max(1, min(self.max_batch_size, int(self.mean) + 1))


@dataclass
class Dictionary(Remembering):
    """Does not compile: it keeps a dict."""

    name: ClassVar[str] = "dictionary"
    seen: dict = field(default_factory=dict, init=False)

    def wanted(self):
        self.seen[self.turns % 3] = self.turns
        return 1 + len(self.seen)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("policy", [Remembering, Dictionary])
def test_own_policies_compiled_or_called(policy, load):
    fast = same(scenario(policy, LOADS[load]))
    if policy is Dictionary:
        assert "test_compiled_engine.py:" in fast.engine_why
        assert "seen" in fast.engine_why
    else:
        assert "compiled from its own source" in fast.engine_why


@dataclass
class Greedier(BatchingPolicy):
    """Takes more than there is, after a while."""

    name: ClassVar[str] = "greedier"
    max_batch_size: int = 8

    def decide(self, now_ns, queue):
        return Dispatch(queue.count + (1 if now_ns > 1_000_000_000 else 0))


@dataclass
class Raiser(Greedier):
    """Raises, called from the compiled loop."""

    name: ClassVar[str] = "raiser"
    why: dict = field(default_factory=dict, init=False)

    def decide(self, now_ns, queue):
        if now_ns > 1_000_000_000:
            return {}["no such key"]
        return Dispatch(queue.fit(8))


def test_an_illegal_answer_is_explained_by_the_simpy_engine():
    with pytest.raises(ContractError, match=r"greedier.*count must be an int in"):
        run(scenario(Greedier, 100), engine="compiled")


def test_an_exception_of_a_called_policy_is_the_policys_fault():
    with pytest.raises(Exception, match=r"raiser.*no such key"):
        run(scenario(Raiser, 100), engine="compiled")


def test_what_it_does_not_know_is_said_and_runs_on_simpy():
    closed = scenario(BATCHING["greedy"]).set(
        "workload.arrivals", {"process": "closed", "clients": 4}
    )
    with pytest.raises(ScenarioError, match="closed loop"):
        run(closed, engine="compiled")
    assert (
        run(closed.set("requests", 400_000).set("requests", 500), engine="auto").engine == "simpy"
    )


def test_auto_takes_the_compiled_engine_for_long_runs():
    long = scenario(BATCHING["greedy"], n=400_000)
    result = run(long, engine="auto")
    assert result.engine == "compiled"
    assert result.summary_dict["little"]["equal"]
    assert run(scenario(BATCHING["greedy"]), engine="auto").engine == "simpy"


def test_ties_between_levels_go_by_arrival():
    """Of requests that come in one instant the first gets the free place, whatever its level."""
    data = scenario(
        BATCHING["none"], levels=3, admission={"policy": "bounded_queue", "max_queue_size": 0}
    )
    data = data.resolved()
    at = [f"{5 * k}ms" for k in range(200)]
    data["workload"]["arrivals"] = {"process": "bursts", "at": at, "size": 3}
    fast = same(Scenario.from_dict(data))
    levels = fast.runs[0].records.level[fast.runs[0].records.outcome == 1]
    assert len(set(levels.tolist())) == 3
