"""Measured runs of a real Triton, and gesim's prediction of each.

    python tests/triton/reference_runs.py            # three tables, a few seconds
    python tests/triton/reference_runs.py --lost-wakeup always
    python tests/triton/reference_runs.py --version fixed

The runs: tritonserver 2.51.0, a model that sleeps 8 + 1.5 n ms, max_batch_size 8, client and
server on one machine of 2 cores (README beside the data). All constants are below; none belongs
to one row, and none was fitted to a measured latency or batch size of a row with a batcher.

- Service times: open loop from the row's own server statistics by batch size; closed loop,
  where there are none, the line through the server's compute times of batches of 1 and of 8.
- HOST_MS, from taking a payload to the model's first instruction: the server's queue time of
  the closed-loop rows with one client and no delay, 0.05 to 0.32, median 0.14.
- CLOSED, perf_analyzer: 0.3 ms of client, gRPC and front end in all, and 0.1 ms, exponential,
  until it sends again. Guessed.
- OPEN, one Python thread: 1.2 ms in all. Latency less queue less service of the four rows
  without batching is 0.81 to 1.38, mean 1.2.
- Share of lost wake-ups: 0.4. Fitted to the answers a second of `mqs16_load110` (68, and 83
  when replayed); it matters for the rows with a queue policy only.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from gesim.scenario.build import build
from gesim.scenario.scenario import Scenario
from gesim.sim.driver import simulate

DATA = Path(__file__).parents[3] / "shared" / "data" / "triton"
HOST_MS = 0.15
CLOSED = {"receive": "0.15ms", "respond": "0.15ms"}
THINK = {"law": "exponential", "mean": "0.1ms"}
OPEN = {"receive": "0.6ms", "respond": "0.6ms"}
CLOSED_REQUESTS = 3000


@dataclass
class Prediction:
    """What gesim says about one row, beside what was measured."""

    row: str
    policy_row: bool
    batches: bool
    measured: dict[str, float]
    predicted: dict[str, float]

    def error(self, metric):
        return self.predicted[metric] / self.measured[metric] - 1


class Seen:
    """Keeps what the comparison needs."""

    def __init__(self):
        self.latency_ns = []
        self.sizes = []
        self.first_ns = None
        self.last_ns = 0

    def arrivals(self, chunk):
        if self.first_ns is None:
            self.first_ns = int(chunk.arrival_ns[0])

    def batch(self, batch):
        self.sizes.append(len(batch.requests))
        self.last_ns = batch.finish_ns
        self.latency_ns += [(batch.finish_ns - r.arrival_ns, r.arrival_ns) for r in batch.requests]

    def gone(self, request):
        pass

    def metrics(self, respond_ns, cut=0.0):
        """Mean and percentiles in ms, mean batch, answers a second."""
        ms = np.array([latency for latency, _ in sorted(self.latency_ns, key=lambda x: x[1])])
        ms = (ms[int(len(ms) * cut) :] + respond_ns) / 1e6
        p50, p99 = np.percentile(ms, [50, 99])
        return {
            "p50": float(p50),
            "mean": float(ms.mean()),
            "p99": float(p99),
            "batch": float(np.mean(self.sizes[int(len(self.sizes) * cut) :])),
            "share_of_5": self.sizes.count(5) / len(self.sizes),
            "rps": len(self.latency_ns) / (self.last_ns - self.first_ns) * 1e9,
        }


def run(document: dict, cut=0.0) -> dict[str, float]:
    system = build(Scenario.from_dict({"schema": 1, **document}))
    seen = Seen()
    simulate(system, seen)
    return seen.metrics(system.respond_ns, cut)


def model(instances, cost, batching, **more):
    return {
        "name": "sleep",
        "cost": cost,
        "gears": "any",
        "host": {"dispatch": f"{HOST_MS}ms"},
        "instance_group": {"count": instances},
        "batching": batching,
        **more,
    }


def devices(instances):
    return [{"name": "cpu", "streams": instances}]


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


# ---- closed loop -------------------------------------------------------------------------

_CLOSED_BATCHING = {
    "none": {"policy": "none"},
    "d0": {"policy": "preferred_size", "max_batch_size": 8, "version": "2.51"},
    "d5": {
        "policy": "preferred_size",
        "max_batch_size": 8,
        "max_queue_delay": "5ms",
        "version": "2.51",
    },
    "p4d5": {
        "policy": "preferred_size",
        "max_batch_size": 8,
        "preferred_batch_size": [4],
        "max_queue_delay": "5ms",
        "version": "2.51",
    },
}


def _histogram(text):
    return {int(size): count for size, count in json.loads(text).items()}


def _mean_batch(histogram):
    return sum(s * n for s, n in histogram.items()) / sum(histogram.values())


@cache
def closed_service():
    """Line through the compute times of rows that ran batches of 1, and of 8, alone."""
    ms = {1: [], 8: []}
    for row in rows("reference_closed_loop.csv"):
        histogram = _histogram(row["batch_histogram_json"])
        for size, times in ms.items():
            if histogram.get(size, 0) >= 0.9 * sum(histogram.values()):
                times.append(
                    (int(row["server_compute_infer_us"]) + int(row["server_compute_output_us"]))
                    / 1e3
                )
    one, eight = np.median(ms[1]), np.median(ms[8])
    per = (eight - one) / 7
    return {"kind": "affine", "setup": f"{one - per:.3f}ms", "per_item": f"{per:.3f}ms"}


def closed_loop(greedy=False, **more) -> list[Prediction]:
    """Predict all 24 rows; `greedy` takes that policy for the rows with delay 0."""
    found = []
    for row in rows("reference_closed_loop.csv"):
        config, instances = row["model"].removeprefix("m_").split("_i")
        batching = _CLOSED_BATCHING[config]
        if config != "none":
            batching = {**batching, **more}
        if greedy and config == "d0":
            batching = {"policy": "greedy", "max_batch_size": 8}
        predicted = run(
            {
                "requests": CLOSED_REQUESTS,
                "devices": devices(int(instances)),
                "models": [model(int(instances), closed_service(), batching)],
                "workload": {
                    "arrivals": {
                        "process": "closed",
                        "clients": int(row["concurrency"]),
                        "think": THINK,
                    }
                },
                "frontend": CLOSED,
            },
            cut=0.05,
        )
        histogram = _histogram(row["batch_histogram_json"])
        measured = {
            "p50": int(row["client_p50_us"]) / 1e3,
            "p99": int(row["client_p99_us"]) / 1e3,
            "batch": _mean_batch(histogram),
            "share_of_5": histogram.get(5, 0) / sum(histogram.values()),
        }
        name = f"{config}_i{instances} c={row['concurrency']}"
        found.append(Prediction(name, False, config != "none", measured, predicted))
    return found


# ---- open loop ---------------------------------------------------------------------------


def _batching(row, **more):
    if row["dynamic_batching"] == "0":
        return {"policy": "none"}
    return {
        "policy": "preferred_size",
        "max_batch_size": 8,
        "preferred_batch_size": [int(p) for p in row["preferred"].split()],
        "max_queue_delay": f"{int(row['delay_us'])}us",
        "version": "2.51",
        **more,
    }


def _queue_policy(row):
    said = {}
    if row["priority_levels"] != "0":
        said["priority_levels"] = int(row["priority_levels"])
    if row["max_queue_size"] != "0":
        said["admission"] = [
            {"policy": "bounded_queue", "max_queue_size": int(row["max_queue_size"])}
        ]
    if row["default_timeout_us"] != "0":
        timeout = f"{int(row['default_timeout_us'])}us"
        said["admission"] = [{"policy": "queue_timeout", "timeout": timeout, "expiry": "lazy"}]
    return said


def _open(row, **batching) -> Prediction:
    instances = int(row["instances"])
    points = {int(s): f"{ms}ms" for s, ms in json.loads(row["service_ms_by_batch"]).items()}
    cost = {"kind": "table", "points": points}
    if len(points) > 1:
        cost["extrapolate"] = "linear"
    columns = {"arrival": "arrival_ns", "unit": "ns"}
    if row["priority_levels"] != "0":
        columns["priority"] = "priority"
    policy = _queue_policy(row)
    predicted = run(
        {
            "devices": devices(instances),
            "models": [model(instances, cost, _batching(row, **batching), **policy)],
            "workload": {
                "arrivals": {
                    "process": "trace",
                    "file": str(DATA / row["arrivals"]),
                    "columns": columns,
                    "dither": "none",
                }
            },
            "frontend": OPEN,
        }
    )
    measured = {key: float(row[f"{key}_ms"]) for key in ("p50", "mean", "p99")}
    measured["batch"] = float(row["mean_batch"])
    measured["rps"] = float(row["throughput_rps"])
    return Prediction(
        row["config"], bool(policy), row["dynamic_batching"] != "0", measured, predicted
    )


def open_loop(policy_rows: bool, only: str = "", **batching) -> list[Prediction]:
    """Predict the rows with, or those without, a queue policy."""
    return [
        _open(row, **batching)
        for row in rows("reference_open_loop.csv")
        if bool(_queue_policy(row)) == policy_rows and row["config"].startswith(only)
    ]


def median_error(found: list[Prediction], metric: str, batching_only=False) -> float:
    return float(np.median([abs(p.error(metric)) for p in found if p.batches or not batching_only]))


# ---- tables ------------------------------------------------------------------------------


def table(title, found, metrics):
    print(f"\n### {title}\n")
    print("| run | " + " | ".join(f"{m}: real | gesim | error" for m in metrics) + " |")
    print("|---" * (1 + 3 * len(metrics)) + "|")
    for p in found:
        cells = [
            f"{p.measured[m]:.2f} | {p.predicted[m]:.2f} | {100 * p.error(m):+.1f} %"
            for m in metrics
        ]
        print(f"| {p.row} | " + " | ".join(cells) + " |")
    medians = [f" | | {100 * median_error(found, m):.1f} %" for m in metrics]
    print("| **median of absolute errors** | " + " | ".join(medians) + " |")
    print(
        "\nMean batch, rows with a batcher only:",
        f"{100 * median_error(found, 'batch', True):.1f} %",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", default="2.51", choices=["2.42", "2.51", "fixed"])
    parser.add_argument(
        "--lost-wakeup", default="probability", choices=["never", "always", "probability"]
    )
    parser.add_argument("--ratio", type=float, default=0.4)
    args = parser.parse_args()
    version = {"version": args.version}
    lost = {"lost_wakeup": args.lost_wakeup, "lost_wakeup_ratio": args.ratio}
    table("Closed loop", closed_loop(**version), ["p50", "batch"])
    table(
        "Open loop, no queue policy", open_loop(False, **version), ["p50", "mean", "p99", "batch"]
    )
    said = f"lost wake-ups: {args.lost_wakeup}"
    table(
        f"Open loop, queue policy, {said}",
        open_loop(True, **version, **lost),
        ["p50", "mean", "batch", "rps"],
    )


if __name__ == "__main__":
    main()
