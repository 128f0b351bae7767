"""The summary of a run: plain numbers with intervals, the same bytes for the same run.

Rules
-----
*Warm-up* is cut by arrival: the first share of the requests, or those that arrive before a
time. Latencies are those of the requests left that were answered. *Rates and shares of time*
are taken over the window from the first arrival that counts to the last arrival (or the end of
the scenario's duration, where it has one; or the last answer, where working off takes more than
a tenth of that, as after a burst): throughput counts the answers inside it.
*Percentiles* are the smallest value with at least that share of the sample not above it.
Times in the summary are ns.
"""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.records import Facts, Records
from gesim.metrics.statistics import (
    BATCHES,
    mean_interval,
    percentile,
    percentile_interval,
)

__all__ = ["CONFIDENCE", "PERCENTILES", "summarise"]

Int = NDArray[np.int64]
Mask = NDArray[np.bool_]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
CONFIDENCE = 0.95
_LOST = {
    "rejected": Outcome.REJECTED,
    "expired": Outcome.EXPIRED,
    "dropped": Outcome.DROPPED,
    "failed": Outcome.FAILED,
    "unfinished": Outcome.UNFINISHED,
}


def summarise(records: Records, facts: Facts) -> dict[str, Any]:
    """Summarise a recorded run.

    Parameters
    ----------
    records : Records
    facts : Facts

    Returns
    -------
    dict
        JSON-able. ``all``, ``models`` (by name) and ``levels`` (``level1``, ...) each hold
        the metrics of `gesim.scenario.expect.METRICS` with their unit appended (``_ns``,
        ``_rps``) and ``intervals``; ``devices`` and ``instances`` hold utilisations.
    """
    counted = _counted(records, facts)
    window = _window(records, facts, counted)
    everything = np.ones(len(records), np.bool_)
    every_batch = np.ones(len(records.batch_model), np.bool_)
    summary: dict[str, Any] = {
        "all": _section(
            records, facts, counted, window, everything, every_batch, len(facts.instances)
        ),
        "models": {
            name: _section(
                records,
                facts,
                counted,
                window,
                records.model == i,
                records.batch_model == i,
                sum(model == i for model, _ in facts.instances),
            )
            for i, name in enumerate(facts.models)
        },
        "levels": {
            f"level{level}": _section(records, facts, counted, window, records.level == level, None)
            for level in range(1, facts.levels + 1)
        },
        "devices": _shares(records, facts, window, by_device=True),
        "instances": _shares(records, facts, window, by_device=False),
        "little": _little(records),
        "rules": {
            "records": "exact",
            "warmup": _warmup_rule(facts, counted),
            "window_ns": list(window),
            "percentile": "smallest value with at least that share of the sample not above it",
            "confidence": CONFIDENCE,
            "interval": f"batch means ({BATCHES} runs in order of arrival), Student; percentiles "
            "by the same on the indicator, read off the order statistics; null if too few",
        },
    }
    return summary


def _warmup_rule(facts: Facts, counted: Mask) -> str:
    cut = int(len(counted) - counted.sum())
    if facts.warmup_ns:
        return f"requests that arrive before {facts.warmup_ns} ns are cut ({cut})"
    return f"the first {facts.warmup_ratio:g} of the requests by arrival are cut ({cut})"


def _counted(records: Records, facts: Facts) -> Mask:
    """Mark the requests behind the warm-up."""
    n = len(records)
    if facts.warmup_ns:
        return records.arrival_ns >= facts.warmup_ns
    order = np.argsort(records.arrival_ns, kind="stable")
    counted = np.zeros(n, np.bool_)
    counted[order[int(n * facts.warmup_ratio) :]] = True
    return counted


def _window(records: Records, facts: Facts, counted: Mask) -> tuple[int, int]:
    """Return start and end of the time that rates are taken over."""
    if not counted.any():
        return 0, 0
    arrivals = records.arrival_ns[counted]
    start = facts.warmup_ns or (int(arrivals.min()) if facts.warmup_ratio else 0)
    end = facts.duration_ns or int(arrivals.max())
    last = int(records.finish_ns.max())
    if not facts.duration_ns and last - end > 0.1 * (end - start):
        end = last  # a burst: most of the work comes after the last arrival
    return start, end


def _section(
    records: Records,
    facts: Facts,
    counted: Mask,
    window: tuple[int, int],
    mine: Mask,
    batches: Mask | None,
    instances: int = 0,
) -> dict[str, Any]:
    """Summarise some of the requests, and the batches that are all theirs if there are any."""
    chosen = np.flatnonzero(mine & counted)
    outcome = records.outcome[chosen]
    answered = chosen[outcome == Outcome.OK]
    answered = answered[np.argsort(records.arrival_ns[answered], kind="stable")]
    length_s = (window[1] - window[0]) / 1e9
    lost = {name: int((outcome == code).sum()) for name, code in _LOST.items()}
    section: dict[str, Any] = {
        "requests": len(chosen),
        "answered": len(answered),
        **lost,
        "reasons": _reasons(records, chosen),
        "loss_ratio": (len(chosen) - len(answered) - lost["unfinished"]) / len(chosen)
        if len(chosen)
        else None,
        "offered_rps": _rate(records.arrival_ns[mine], window),
        "throughput_rps": _rate(
            records.finish_ns[mine & (records.outcome == Outcome.OK)] + facts.respond_ns, window
        ),
    }
    section |= _latencies(records, facts, answered)
    section |= _goodput(records, facts, chosen, answered, length_s)
    section |= _queue(records, facts, window, mine)
    if batches is not None:
        section |= _batches(records, window, batches, instances)
    return section


def _reasons(records: Records, chosen: Int) -> dict[str, int]:
    codes, counts = np.unique(records.reason[chosen], return_counts=True)
    found = {records.reasons[c]: int(n) for c, n in zip(codes, counts, strict=True) if c}
    return dict(sorted(found.items()))


def _rate(times: Int, window: tuple[int, int]) -> float | None:
    """Events inside the window, a second."""
    start, end = window
    if end <= start:
        return None
    return float(((times > start) & (times <= end)).sum() / ((end - start) / 1e9))


def _latencies(records: Records, facts: Facts, answered: Int) -> dict[str, Any]:
    """Latency and its parts: mean, percentiles, maximum, with intervals."""
    batch = records.batch[answered]
    enqueue = records.arrival_ns[answered] + facts.receive_ns
    frontend = facts.receive_ns + facts.respond_ns
    parts = {
        "latency": records.finish_ns[answered] + facts.respond_ns - records.arrival_ns[answered],
        "queue": records.start_ns[answered] - enqueue,
        "host": records.host_ns[batch],
        "transfer": records.input_ns[batch] + records.output_ns[batch],
        "compute": records.compute_ns[batch],
        "frontend": np.full(len(answered), frontend),
    }
    values: dict[str, Any] = {}
    intervals: dict[str, Any] = {}
    for part, sample in parts.items():
        ordered = np.sort(sample)
        for name, value, interval in _points(sample, ordered):
            values[f"{part}_{name}_ns"] = value
            if part in ("latency", "queue") and name != "max":
                intervals[f"{part}_{name}_ns"] = list(interval) if interval else None
    return {**values, "intervals": intervals}


def _points(sample: Int, ordered: Int) -> list[tuple[str, float | None, Any]]:
    """Name, value and interval of each statistic of a sample."""
    if not len(sample):
        return [(name, None, None) for name in ("mean", *PERCENTILES, "max")]
    points: list[tuple[str, float | None, Any]] = [
        ("mean", float(np.sum(sample, dtype=np.float64) / len(sample)), mean_interval(sample))
    ]
    for name, probability in PERCENTILES.items():
        interval = percentile_interval(sample, ordered, probability)
        points.append((name, percentile(ordered, probability), interval))
    points.append(("max", float(ordered[-1]), None))
    return points


def _goodput(
    records: Records, facts: Facts, chosen: Int, answered: Int, length_s: float
) -> dict[str, Any]:
    """Count answers within the request's own deadline, or else its model's target."""
    slo = np.asarray(facts.slo_ns or (0,) * len(facts.models), np.int64)

    def due(ids: Int) -> Int:
        target = slo[records.model[ids]]
        by_slo = np.where(target > 0, records.arrival_ns[ids] + target, NEVER_NS)
        own = records.deadline_ns[ids]
        return np.where(own < NEVER_NS, own, by_slo)

    with_target = chosen[due(chosen) < NEVER_NS]
    if not len(with_target) or length_s <= 0:
        return {"goodput_rps": None, "goodput_ratio": None}
    good = answered[records.finish_ns[answered] + facts.respond_ns <= due(answered)]
    good = good[due(good) < NEVER_NS]
    return {
        "goodput_rps": len(good) / length_s,
        "goodput_ratio": len(good) / len(with_target),
    }


def _queue(records: Records, facts: Facts, window: tuple[int, int], mine: Mask) -> dict[str, Any]:
    """Measure how many requests wait: time average over the window, and maximum."""
    start, end = window
    entered = records.arrival_ns[mine] + facts.receive_ns
    left = np.maximum(records.start_ns[mine], entered)
    if end <= start:
        return {"mean_queue_length": None, "max_queue_length": None}
    overlap = np.minimum(left, end) - np.maximum(entered, start)
    waited = float(np.sum(np.maximum(overlap, 0), dtype=np.float64))
    times = np.concatenate([entered, left])
    steps = np.concatenate([np.ones(len(entered), np.int64), -np.ones(len(left), np.int64)])
    order = np.lexsort((steps, times))  # at one instant those that leave go first
    longest = int(np.cumsum(steps[order]).max()) if len(order) else 0
    return {"mean_queue_length": waited / (end - start), "max_queue_length": longest}


def _batches(
    records: Records, window: tuple[int, int], batches: Mask, instances: int
) -> dict[str, Any]:
    """Batches that start behind the warm-up: sizes, gears, padding."""
    chosen = batches & (records.batch_start_ns >= window[0])
    items = records.batch_items[chosen]
    gears = records.batch_gear[chosen]
    n = len(items)
    run = int(gears.sum())
    return {
        "batches": n,
        "mean_batch": float(items.sum() / n) if n else None,
        "request_mean_batch": float((items * items).sum() / items.sum()) if n else None,
        "padding_ratio": (run - int(items.sum())) / run if run else None,
        "batch_histogram": _histogram(items),
        "gear_histogram": _histogram(gears),
        "utilisation": _utilisation(records, window, batches, instances),
    }


def _histogram(values: Int) -> dict[str, int]:
    sizes, counts = np.unique(values, return_counts=True)
    return {str(int(size)): int(count) for size, count in zip(sizes, counts, strict=True)}


def _busy_ns(records: Records, window: tuple[int, int], batches: Mask) -> Int:
    start, end = window
    overlap = np.minimum(records.batch_finish_ns[batches], end) - np.maximum(
        records.batch_start_ns[batches], start
    )
    busy: Int = np.maximum(overlap, 0)
    return busy


def _utilisation(
    records: Records, window: tuple[int, int], batches: Mask, instances: int
) -> float | None:
    """Busy share of the time, averaged over the instances."""
    if window[1] <= window[0]:
        return None
    busy = _busy_ns(records, window, batches)
    return fsum(busy.tolist()) / (window[1] - window[0]) / instances


def _shares(
    records: Records, facts: Facts, window: tuple[int, int], *, by_device: bool
) -> dict[str, Any]:
    """Busy share of the window: of every instance, or summed over each device's instances."""
    if window[1] <= window[0]:
        return {}
    every = np.ones(len(records.batch_model), np.bool_)
    busy = _busy_ns(records, window, every).astype(np.float64)
    where = records.batch_device if by_device else records.batch_instance
    count = len(facts.devices) if by_device else len(facts.instances)
    sums = np.bincount(where, weights=busy, minlength=count)
    if by_device:
        names = list(facts.devices)
    else:
        names = [
            f"{facts.models[m]}.{facts.devices[d]}.{i}" for i, (m, d) in enumerate(facts.instances)
        ]
    length = window[1] - window[0]
    return {name: {"utilisation": float(s) / length} for name, s in zip(names, sums, strict=True)}


def _little(records: Records) -> dict[str, Any]:
    """Little's law on the whole run, in integers: area under the number in system = sojourns."""
    start, end = records.arrival_ns, records.finish_ns
    sojourns = int(np.sum(end - start))
    times = np.concatenate([start, end])
    steps = np.concatenate([np.ones(len(start), np.int64), -np.ones(len(end), np.int64)])
    order = np.argsort(times, kind="stable")
    number = np.cumsum(steps[order])
    area = int(np.sum(number[:-1] * np.diff(times[order]))) if len(order) else 0
    return {"area_ns": area, "sojourns_ns": sojourns, "equal": area == sojourns}
