"""What figures show, as arrays: from the records of a run, or from the curves of a streamed one.

A streamed run keeps only the beginning of its records; its distributions and series come from
`gesim.metrics.curves.Curves` and cover all of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gesim.core.request import Outcome
from gesim.metrics.measures import steps
from gesim.metrics.records import Facts, Records

__all__ = [
    "BANDS",
    "PARTS",
    "QueueView",
    "batch_sizes",
    "latency_tail",
    "part_means",
    "queue_over_time",
    "waiting",
]

Int = NDArray[np.int64]
Float = NDArray[np.float64]

POINTS = 2000
"""Most points of a curve: more cannot be seen and make files large."""

PARTS = ("frontend", "queue", "host", "transfer", "compute")
BANDS = (
    ("fastest half", 0.0, 0.5), ("p50 to p90", 0.5, 0.9), ("p90 to p99", 0.9, 0.99),
    ("slowest 1 %", 0.99, 1.0),
)  # fmt: skip
"""Name and limits of the bands of requests by latency."""


def latency_tail(records: Records, facts: Facts) -> tuple[Float, Float]:
    """Latencies in ms, decreasing, and the share of answered requests at or above each."""
    if records.curves is not None:
        values, counts = records.curves.latency_ns, records.curves.latency_count
        if not len(counts):
            return np.empty(0), np.empty(0)
        together = np.cumsum(counts[::-1]).astype(np.float64)
        return values[::-1] / 1e6, together / together[-1]
    answered = records.outcome == Outcome.OK
    latency = records.finish_ns[answered] + facts.respond_ns - records.arrival_ns[answered]
    ordered = np.sort(latency)
    n = len(ordered)
    if not n:
        return np.empty(0), np.empty(0)
    above = np.unique(np.geomspace(1, n, min(n, POINTS)).astype(np.int64))  # dense in the tail
    return ordered[n - above] / 1e6, above / n


def batch_sizes(records: Records) -> tuple[Int, Int]:
    """Items in a batch, and how many batches had that many."""
    if records.curves is not None:
        return records.curves.batch_items, records.curves.batch_count
    sizes, counts = np.unique(records.batch_items, return_counts=True)
    return sizes, counts.astype(np.int64)


def waiting(records: Records, facts: Facts, model: int | None = None) -> tuple[Int, Int]:
    """Queue length after each event: times, requests waiting from then on."""
    entered = records.arrival_ns + facts.receive_ns
    left = np.maximum(records.start_ns, entered)
    if model is not None:
        mine = records.model == model
        entered, left = entered[mine], left[mine]
    return steps(entered, left)


class QueueView(NamedTuple):
    """Queue length over time.

    Attributes
    ----------
    edges_s : array, (bins + 1,)
    mean, lowest, highest : array, (bins,)
        In each bin; the last two are None of a streamed run.
    """

    edges_s: Float
    mean: Float
    lowest: Int | None
    highest: Int | None


def queue_over_time(records: Records, facts: Facts, bins: int = 400) -> QueueView | None:
    """Queue length over the whole run; None for a run without requests."""
    curves = records.curves
    if curves is not None:
        together = max(1, -(-len(curves.queue) // bins))
        starts = np.arange(0, len(curves.queue), together)
        sizes = np.diff(np.append(starts, len(curves.queue)))
        width = curves.time_ns[1] - curves.time_ns[0] if len(curves.time_ns) > 1 else 1
        edges = np.append(curves.time_ns[starts], curves.time_ns[-1] + width) / 1e9
        return QueueView(edges, np.add.reduceat(curves.queue, starts) / sizes, None, None)
    times, length = waiting(records, facts)
    if not len(times) or times[-1] <= times[0]:
        return None
    edges = np.linspace(times[0], times[-1], bins + 1)
    area = np.concatenate([[0.0], np.cumsum(length[:-1] * np.diff(times).astype(np.float64))])
    mean = np.diff(np.interp(edges, times, area)) / np.diff(edges)
    # Extremes: the length that a bin begins with, and those after the events inside it.
    first = np.searchsorted(times, edges[:-1], side="right")
    begins = length[np.maximum(first - 1, 0)]
    starts = np.minimum(first, len(length) - 1)
    inside = np.diff(np.append(first, len(length))) > 0
    low = np.where(inside, np.minimum(np.minimum.reduceat(length, starts), begins), begins)
    high = np.where(inside, np.maximum(np.maximum.reduceat(length, starts), begins), begins)
    return QueueView(edges / 1e9, mean, low, high)


def part_means(records: Records, facts: Facts) -> dict[str, list[float]]:
    """Mean of each part in ms, in each of `BANDS`; empty without answers."""
    frontend = (facts.receive_ns + facts.respond_ns) / 1e6
    if records.curves is not None:
        columns, weights = records.curves.parts_ns, records.curves.latency_count.astype(np.float64)
    else:
        columns, weights = _parts(records, facts)
    if not len(weights):
        return {}
    share = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    means: dict[str, list[float]] = {part: [] for part in PARTS}
    for _, low, high in BANDS:
        # How much of each row, in order of latency, lies inside the band.
        inside = np.clip(share[1:], low, high) - np.clip(share[:-1], low, high)
        total = inside.sum()
        means["frontend"].append(frontend)
        for i, part in enumerate(PARTS[1:]):
            means[part].append(float((columns[:, i] * inside).sum() / total) / 1e6)
    return means


def _parts(records: Records, facts: Facts) -> tuple[Float, Float]:
    """Queue, host, transfer and compute time of the answered requests, in order of latency."""
    answered = np.flatnonzero(records.outcome == Outcome.OK)
    batch = records.batch[answered]
    latency = records.finish_ns[answered] - records.arrival_ns[answered]
    columns: list[Any] = [
        records.start_ns[answered] - records.arrival_ns[answered] - facts.receive_ns,
        records.host_ns[batch],
        records.input_ns[batch] + records.output_ns[batch],
        records.compute_ns[batch],
    ]
    order = np.argsort(latency, kind="stable")
    return np.stack(columns, axis=1)[order].astype(np.float64), np.ones(len(answered))
