"""What a summary measures: rules, and the arithmetic that both kinds of records share.

*Warm-up* is cut by arrival: the first share of the requests, or those that arrive before a
time. Latencies are those of the requests left that were answered. *Rates and shares of time*
are taken over the window from the first arrival that counts to the last arrival (or the end of
the scenario's duration, where it has one; or the last answer, where working off takes more than
a tenth of that, as after a burst): throughput counts the answers inside it, goodput those of
them that are on time. *On time* is within the request's own deadline, or else within its
model's latency target; without either there is no goodput.
*Percentiles* are the smallest value with at least that share of the sample not above it.
*Utilisation* is the share of what a device can run at once, averaged over the window; of a
model, the share of time that its instances are busy. Times in the summary are ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.records import Facts
from gesim.metrics.statistics import BATCH_MIN, BATCHES, needed_samples, percentile

__all__ = [
    "CONFIDENCE",
    "ESTIMATED",
    "GOODPUT_RULE",
    "LOST",
    "PARTS",
    "PERCENTILES",
    "PERCENTILE_RULE",
    "Window",
    "batch_sizes",
    "device_shares",
    "due_ns",
    "histogram",
    "missing_reason",
    "points",
    "steps",
    "window",
]

Int = NDArray[np.int64]
Window = tuple[int, int]
"""Start and end, in ns."""

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
CONFIDENCE = 0.95
PARTS = ("latency", "queue", "host", "transfer", "compute", "frontend")
ESTIMATED = ("latency", "queue")
"""Parts that get intervals."""
LOST = {
    "rejected": Outcome.REJECTED,
    "expired": Outcome.EXPIRED,
    "dropped": Outcome.DROPPED,
    "failed": Outcome.FAILED,
    "unfinished": Outcome.UNFINISHED,
}
PERCENTILE_RULE = "smallest value with at least that share of the sample not above it"
GOODPUT_RULE = "on time: within the request's own deadline, else its model's target (slo_ns)"


def due_ns(model: Int, arrival_ns: Int, deadline_ns: Int, facts: Facts) -> Int:
    """Time by which each answer is on time: own deadline, else the model's target."""
    target = np.asarray(facts.slo_ns or (0,) * len(facts.models), np.int64)[model]
    by_target = np.where(target > 0, arrival_ns + target, NEVER_NS)
    due: Int = np.where(deadline_ns < NEVER_NS, deadline_ns, by_target)
    return due


def window(facts: Facts, arrivals_ns: Window, last_ns: int, interrupted_ns: int) -> Window:
    """Return start and end of the time that rates are taken over.

    Parameters
    ----------
    facts : Facts
    arrivals_ns : (int, int)
        First and last arrival behind the warm-up.
    last_ns : int
        When the last request left.
    interrupted_ns : int
        When the run was stopped, 0 if it was not.
    """
    start = facts.warmup_ns or (arrivals_ns[0] if facts.warmup_ratio else 0)
    if interrupted_ns:
        return start, max(start, interrupted_ns)
    end = facts.duration_ns or arrivals_ns[1]
    if not facts.duration_ns and last_ns - end > 0.1 * (end - start):
        end = last_ns  # a burst: most of the work comes after the last arrival
    return start, end


def points(sample: Int, ordered: Int) -> dict[str, float | None]:
    """Each statistic of a sample."""
    n = len(sample)
    if not n:
        return dict.fromkeys(("mean", *PERCENTILES, "max"))
    quantiles = {name: percentile(ordered, p) for name, p in PERCENTILES.items()}
    return {"mean": int(sample.sum()) / n, **quantiles, "max": float(ordered[-1])}


def missing_reason(name: str, samples: int) -> str:
    """Say why there is no interval."""
    needed = BATCHES * BATCH_MIN
    if samples >= needed and name in PERCENTILES:
        needed = max(needed, needed_samples(PERCENTILES[name], CONFIDENCE))
        if samples >= needed:
            return (
                f"{samples} answers are worth fewer than {needed} independent ones, "
                "so that an end lies beyond the largest value"
            )
    return f"needs at least {needed} answers, has {samples}"


def steps(entered_ns: Int, left_ns: Int) -> tuple[Int, Int]:
    """Count those present after each event: times, numbers. At one instant leaving goes first."""
    both = np.concatenate([entered_ns * 2 + 1, left_ns * 2])  # the last bit breaks the tie
    both.sort()
    return both >> 1, np.cumsum((both & 1) * 2 - 1)


def histogram(values: Int) -> dict[int, int]:
    """Count the values."""
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def batch_sizes(items: dict[int, int], gears: dict[int, int]) -> dict[str, Any]:
    """Metrics of batches from how many there were of each size and gear."""
    batches = sum(items.values())
    total = sum(size * n for size, n in items.items())
    run = sum(gear * n for gear, n in gears.items())
    return {
        "batches": batches,
        "mean_batch": total / batches if batches else None,
        "request_mean_batch": sum(size * size * n for size, n in items.items()) / total
        if total
        else None,
        "padding_ratio": (run - total) / run if run else None,
        "batch_histogram": {str(size): n for size, n in sorted(items.items())},
        "gear_histogram": {str(gear): n for gear, n in sorted(gears.items())},
    }


def device_shares(facts: Facts, running: list[float]) -> dict[str, Any]:
    """Use of every device, from the batches running on it on average."""
    return {
        name: {"utilisation": number / capacity, "mean_running": number}
        for name, number, capacity in zip(facts.devices, running, facts.capacity(), strict=True)
    }
