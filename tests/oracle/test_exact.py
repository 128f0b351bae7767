"""Rows that must come out to the nanosecond: constant patterns, and Little's law on a window."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rows import ms, rows

from gesim.experiment.run import run
from gesim.scenario.scenario import Scenario

ROWS = [
    pytest.param(row, id=f"{row['id']}-{row['case']}-{row['metric']}") for row in rows("A16", "H6")
]


def ns(value):
    return f"{value}ns"


def a16(p):
    at = [ms(i * p["period_ms"]) for i in range(p["bursts"])]
    return {
        "schema": 1,
        "warmup": "0%",
        "models": [
            {"name": "m", "cost": {"kind": "table", "points": {1: ms(p["service_ms"])}}}
        ],
        "workload": {"arrivals": {"process": "bursts", "at": at, "size": p["burst"]}},
    }  # fmt: skip


def h6(p):
    points = {n + 1: ns(v) for n, v in enumerate(p["batch_ns"])}
    return {
        "schema": 1,
        "warmup": "0%",
        "models": [{"name": "m", "cost": {"kind": "table", "points": points}}],
        "batching": {"policy": "greedy", "max_batch_size": len(points)},
        "workload": {"arrivals": {"process": "bursts", "at": [ns(t) for t in p["arrival_ns"]]}},
    }


@pytest.mark.skipif(not ROWS, reason="the oracle's file is not here (../shared/oracle)")
@pytest.mark.parametrize("row", ROWS)
def test_exact_row(row):
    data = (a16 if row["id"] == "A16" else h6)(row["params"])
    result = run(Scenario.from_dict({"name": "exact", **data}))
    records = result.runs[0].records
    little = result.summary_dict["little"]
    assert little["equal"]
    metric, value = row["metric"], json.loads(row["value"])
    sojourn = records.finish_ns - records.arrival_ns
    measured = {
        "mean_sojourn_ms": lambda: float(np.mean(sojourn)) / 1e6,
        "mean_wait_ms": lambda: float(np.mean(records.start_ns - records.arrival_ns)) / 1e6,
        "makespan_ms": lambda: int(records.finish_ns.max()) / 1e6,
        "area_ns": lambda: little["area_ns"],
        "last_completion_ns": lambda: int(records.finish_ns.max()),
        "busy_ns": lambda: int((records.batch_finish_ns - records.batch_start_ns).sum()),
        "batch_sizes": lambda: records.batch_items[np.argsort(records.batch_start_ns)].tolist(),
    }
    if metric not in measured:
        pytest.skip(f"{metric} is not a number of the product")
    assert measured[metric]() == pytest.approx(value, rel=1e-12)


CONSERVED = [
    row for row in rows("B4") if row["params"].get("discipline") in ("fifo", "reverse_priority")
]


@pytest.mark.skipif(not CONSERVED, reason="the oracle's file is not here (../shared/oracle)")
@pytest.mark.parametrize("row", [pytest.param(r, id=r["case"]) for r in CONSERVED])
def test_conservation_law(row):
    """The load-weighted sum of waits is the same for every rule that never idles."""
    from rows import Sample, interval
    from test_stations import classes

    reverse = row["case"] == "reverse_priority"
    ordering = "fifo" if row["case"] == "fifo" else "strict_priority"
    params = row["params"]
    loads = [c["rate_rps"] * c["service"]["mean_ms"] / 1e3 for c in params["classes"]]
    for seed, requests in ((1, 1_000_000), (2, 4_000_000)):
        sample = Sample(classes(params, requests, ordering, reverse), seed)
        ids = sample.answered
        waits = (sample.records.start_ns[ids] - sample.records.arrival_ns[ids]) / 1e6
        total = sum(c["rate_rps"] for c in params["classes"])
        levels = sample.records.level[ids]
        # Weight each request so that the mean over requests is sum rho_k * mean wait of class k.
        weight = np.zeros(len(ids))
        for k, (load, c) in enumerate(zip(loads, params["classes"], strict=True)):
            level = len(loads) - k if reverse else k + 1
            weight[levels == level] = load * total / c["rate_rps"]
        low, high = interval(weight * waits)
        if low <= float(row["value"]) <= high:
            break
    assert low <= float(row["value"]) <= high
    assert high - low < 0.1 * float(row["value"])
