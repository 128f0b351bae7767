"""Compiled code folds a long run into the very sums that the recorder's stream makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from test_compiled_engine import BATCHING, QUEUES, scenario

from gesim.experiment.run import run
from gesim.metrics.blocks import BLOCKS
from gesim.sim.fast import ahead, sinks

pytest.importorskip("numba", reason="the compiled engine needs numba")

N = 60_000
TIGHT = {"slo": "6ms", "warmup": "10%"}
SYSTEMS = {
    "plain": {},
    "slo": TIGHT,
    "instances": {"instances": 3, "rate": 2500, **TIGHT},
    "priority": {"levels": 3, "ordering": "strict_priority", **TIGHT},
    "fifo_levels": {"levels": 3, "ordering": "fifo", **TIGHT},
    "bounded": {**QUEUES["bounded"], "rate": 1600, **TIGHT},
    "timeout": {**QUEUES["timeout"], "rate": 1600},
    "both": {**QUEUES["both"], "instances": 2, "rate": 3200},
    "jitter": {
        "cost": {
            "kind": "affine", "setup": "2ms", "per_item": "0.5ms",
            "jitter": {"law": "lognormal", "cv": 0.4},
        },
        **TIGHT,
    },
    "overload": {"rate": 1600, "duration": "40s", "n": None},
}  # fmt: skip


def both(data, monkeypatch, rows=1000):
    monkeypatch.setattr(ahead, "ROWS", rows)
    folded = []
    original = sinks.Folding.take
    monkeypatch.setattr(
        sinks.Folding, "take", lambda self: (folded.append(self._loop.rows.started), original(self))
    )
    slow = run(data, engine="simpy", max_records=10_000)
    fast = run(data, engine="compiled", max_records=10_000)
    assert sum(folded) or rows > N, "nothing was folded by compiled code"
    return slow, fast


@pytest.mark.parametrize("system", SYSTEMS)
def test_same_summary_as_the_stream_of_the_simpy_engine(system, monkeypatch):
    spec = dict(SYSTEMS[system])
    data = scenario(BATCHING["window"], **{"rate": 900, "n": N, **spec})
    slow, fast = both(data, monkeypatch)
    assert slow.summary_dict == fast.summary_dict
    a, b = slow.runs[0].records, fast.runs[0].records
    for name in a.REQUEST_COLUMNS:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in vars(a.curves):
        assert np.array_equal(getattr(a.curves, name), getattr(b.curves, name)), name
    assert np.array_equal(a.stream.by_latency_ns, b.stream.by_latency_ns)


def test_deadlines_of_their_own(monkeypatch):
    data = scenario(BATCHING["window"], 900, levels=2, n=N).resolved()
    data["workload"]["mix"][0]["deadline"] = "5ms"
    slow, fast = both(type(scenario(BATCHING["none"])).from_dict(data), monkeypatch)
    assert slow.summary_dict == fast.summary_dict
    assert 0 < fast.summary_dict["levels"]["level1"]["goodput_ratio"] < 1


def test_small_blocks_are_merged_while_requests_are_under_way(monkeypatch):
    """A queue as long as many blocks: rows of the dense tables start, shift and merge."""
    data = scenario(BATCHING["window"], 4000, n=4 * 1024 * BLOCKS)
    slow, fast = both(data, monkeypatch)
    assert slow.summary_dict == fast.summary_dict


def test_what_is_queued_at_the_end_is_unfinished(monkeypatch):
    data = scenario({"policy": "fixed", "max_batch_size": 8}, 500, n=30_003)
    slow, fast = both(data, monkeypatch)
    assert slow.summary_dict == fast.summary_dict
    assert fast.summary_dict["all"]["unfinished"] == 30_003 % 8


def test_folding_that_begins_at_the_very_end(monkeypatch):
    slow, fast = both(scenario(BATCHING["window"], 900, n=N), monkeypatch, rows=1 << 20)
    assert slow.summary_dict == fast.summary_dict
