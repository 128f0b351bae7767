"""From a row of the oracle to a scenario, and from its result to the row's metric.

The oracle's `params` describe the scenario; see its README ("How to use a row").
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np

from gesim.core.request import Outcome
from gesim.experiment.run import facts_of
from gesim.metrics.recorder import Recorder
from gesim.metrics.statistics import student
from gesim.scenario.build import build
from gesim.scenario.scenario import Scenario
from gesim.sim.engine import choose_engine

FILE = Path(__file__).parents[2].parent / "shared" / "oracle" / "cases_abch.csv"


def rows(*ids):
    if not FILE.is_file():
        return []
    with FILE.open(newline="", encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["id"] in ids]
    for row in found:
        row["params"] = json.loads(row["params"])
    return found


def ms(value):
    return f"{value!r}ms"


def law(spec):
    """A law of the oracle as one of a scenario; a bare number is exponential with that mean."""
    if not isinstance(spec, dict):
        return {"law": "exponential", "mean": ms(spec)}
    kind = spec["kind"]
    if kind == "deterministic":
        return {"law": "constant", "value": ms(spec["mean_ms"])}
    made = {"law": kind}
    for key, value in spec.items():
        if key == "means_ms":
            made["means"] = [ms(v) for v in value]
        elif key.endswith("_ms"):
            made[key[:-3]] = ms(value)
        elif key != "kind":
            made[key] = value
    return made


def batch_cost(service, size, distribution="deterministic"):
    """A batch time of the oracle as a cost."""
    if "table_ms" in service:
        points = {n + 1: ms(v) for n, v in enumerate(service["table_ms"])}
        cost = {"kind": "table", "points": points}
    else:
        cost = {
            "kind": "affine",
            "setup": ms(service["setup_ms"]),
            "per_item": ms(service["per_item_ms"]),
        }
    if distribution == "exponential":
        cost["jitter"] = {"law": "exponential"}
    return cost


def station(rate, work, servers=1, requests=200_000, arrivals=None, **extra):
    """A single station: jobs that bring their own service time, any idle server."""
    data = {
        "schema": 1,
        "name": "oracle",
        "requests": requests,
        "devices": [{"name": "server", "count": servers}],
        "models": [{"name": "m", "cost": {"kind": "work"}}],
        "workload": {
            "arrivals": arrivals or {"process": "poisson", "rate": f"{rate}/s"},
            "mix": [{"work": law(work)}],
        },
    }
    return {**data, **extra}


def batcher(rate, cost, batching, requests=200_000, **model):
    """A batching station under Poisson arrivals."""
    return {
        "schema": 1,
        "name": "oracle",
        "requests": requests,
        "models": [{"name": "m", "cost": cost, **model}],
        "batching": batching,
        "workload": {"arrivals": {"process": "poisson", "rate": f"{rate}/s"}},
    }


class Sample:
    """The records of one run behind the warm-up, in order of arrival."""

    def __init__(self, data, seed):
        scenario = Scenario.from_dict(data)
        system = build(scenario, seed)
        self.facts = facts_of(scenario, system)
        recorder = Recorder(self.facts, max_records=10_000_000)  # all of them
        engine = choose_engine("auto", system, self.facts.levels)
        self.records = recorder.records(engine.simulate(system, recorder).end_ns)
        n = len(self.records)
        self.ids = np.argsort(self.records.arrival_ns, kind="stable")[n // 20 :]
        self.answered = self.ids[self.records.outcome[self.ids] == Outcome.OK]

    def rate(self, metric):
        """Share of time that instances are busy, or answers a second, behind the warm-up."""
        records = self.records
        start, end = (int(records.arrival_ns[self.ids[k]]) for k in (0, -1))
        if metric == "throughput_rps":
            finish = records.finish_ns[records.outcome == Outcome.OK]
            return ((finish > start) & (finish <= end)).sum() / ((end - start) / 1e9)
        busy = np.minimum(records.batch_finish_ns, end) - np.maximum(records.batch_start_ns, start)
        return np.maximum(busy, 0).sum() / (end - start) / len(self.facts.instances)

    def of(self, metric):
        """Samples of a metric in order, whose mean is the metric."""
        records, answered = self.records, self.answered
        base = metric.replace("_lower_ms", "_ms").replace("_upper_ms", "_ms")
        level = None
        by_class = re.fullmatch(r"(mean_\w+|loss_ratio)_([123])(_ms)?", base)
        if by_class:
            base, level = by_class[1] + (by_class[3] or ""), int(by_class[2])
        everybody = ("loss_ratio", "mean_wait_all_ms", "wait_probability")
        ids = self.ids if base in everybody else answered
        if level is not None:
            ids = ids[records.level[ids] == level]
        wait = (records.start_ns[ids] - records.arrival_ns[ids]) / 1e6
        if base in ("mean_wait_ms", "mean_wait_served_ms", "mean_wait_all_ms"):
            return wait
        if base in ("mean_sojourn_ms", "mean_sojourn_served_ms"):
            return (records.finish_ns[ids] - records.arrival_ns[ids]) / 1e6
        if base == "wait_probability":
            return (wait > 0).astype(float)
        if base == "loss_ratio":
            return (records.outcome[ids] != Outcome.OK).astype(float)
        if base == "request_mean_batch":
            return records.batch_items[records.batch[ids]].astype(float)
        if base == "mean_compute_ms":
            return records.compute_ns[records.batch[ids]] / 1e6
        first = records.batch_start_ns >= records.arrival_ns[self.ids[0]]
        items = records.batch_items[first]
        if base == "mean_batch":
            return items.astype(float)
        if base.startswith("batch_share_"):
            return (items == int(base.rsplit("_", 1)[1])).astype(float)
        raise AssertionError(f"no metric {metric}")


def interval(values, confidence=0.99, batches=25):
    """Student interval of batch means."""
    size = len(values) // batches
    means = values[len(values) - size * batches :].reshape(batches, size).mean(axis=1)
    half = student(batches, confidence) * means.std(ddof=1) / np.sqrt(batches)
    return means.mean() - half, means.mean() + half


def check(row, sample):
    """Compare one row with a run.

    Returns
    -------
    text : str or None
        What is wrong: the 99 % interval of the metric does not hold the value.
    width : float
        Width of the interval relative to the value.
    """
    metric, value = row["metric"], float(row["value"])
    percentile = re.search(r"(\w+)_p(\d+)_ms", metric)
    if percentile:
        kind = "mean_wait_ms" if percentile[1] == "wait" else "mean_sojourn_ms"
        below = (sample.of(kind) <= value).astype(float)
        low, high = interval(below)
        value = float(f"0.{percentile[2]}")
    elif metric in ("utilisation", "throughput_rps"):
        measured = sample.rate(metric)
        low, high = 0.98 * measured, 1.02 * measured
    else:
        low, high = interval(sample.of(metric))
    if row["exactness"] == "bound-lower":
        ok = high >= value
    elif row["exactness"] == "bound-upper":
        ok = low <= value
    else:
        ok = low <= value <= high
    text = None if ok else f"{metric}: {low}..{high} does not hold {value}"
    return text, (high - low) / value
