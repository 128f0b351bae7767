"""The summary of a run that was streamed: the same keys as `gesim.metrics.summary`.

What differs is stated in ``rules``: the warm-up is cut at a block's end, the window of rates at
bin edges (inside it the rates are exact), quantiles have the histograms' error, and the longest
queue is not known, because events are not kept in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.request import Outcome
from gesim.metrics.blocks import STREAMED
from gesim.metrics.histogram import BUCKETS, RELATIVE_ERROR, highest, lowest, middle
from gesim.metrics.measures import (
    CONFIDENCE,
    ESTIMATED,
    GOODPUT_RULE,
    LOST,
    PARTS,
    PERCENTILE_RULE,
    PERCENTILES,
    batch_sizes,
    device_shares,
    missing_reason,
    window,
)
from gesim.metrics.records import Facts, Records
from gesim.metrics.statistics import Interval, percentile_band, rank, ratio_error, student
from gesim.metrics.stream import Stream

__all__ = ["summarise_stream"]

Int = NDArray[np.int64]


def summarise_stream(stream: Stream, facts: Facts, records: Records) -> dict[str, Any]:
    """Summarise a streamed run; `records` is its kept beginning."""
    summing = _Streamed(stream, facts, records)
    levels = range(1, facts.levels + 1)
    cut = summing.cut * stream.blocks.size
    return {
        "all": summing.section(None, None),
        "models": {name: summing.section(i, None) for i, name in enumerate(facts.models)},
        "levels": {f"level{level}": summing.section(None, level) for level in levels},
        "devices": summing.devices(),
        "instances": summing.instances(),
        "little": summing.little(),
        "rules": {
            "records": f"streamed: above the bound on records; the first {len(records)} of "
            f"{stream.requests} requests are kept one by one",
            "quantile_relative_error": RELATIVE_ERROR,
            "max_queue_length": "not known of a streamed run",
            "warmup": f"the first {cut} requests by arrival are cut (whole blocks of "
            f"{stream.blocks.size}; {_wanted(facts)} asked for)",
            "window_ns": list(summing.window),
            "percentile": PERCENTILE_RULE,
            "goodput": GOODPUT_RULE,
            "slo_ns": dict(zip(facts.models, facts.slo_ns or [0] * len(facts.models), strict=True)),
            "confidence": CONFIDENCE,
            "interval": f"batch means ({len(summing.runs)} blocks in order of arrival, widened by "
            "their correlation), Student; percentiles by the same on the indicator, read off the "
            "histogram and widened by its error; null with a reason where the sample is too short",
        },
    }


def _wanted(facts: Facts) -> str:
    return f"{facts.warmup_ns} ns" if facts.warmup_ns else f"{facts.warmup_ratio:g} of them"


class _Streamed:
    """A stream with its warm-up cut off."""

    def __init__(self, stream: Stream, facts: Facts, records: Records) -> None:
        self.stream = stream
        self.facts = facts
        self.reasons = records.reasons
        self.cut = self._cut()
        self.end = -(-stream.requests // stream.blocks.size)
        self.runs = range(self.cut, self.end)
        width = stream.bins.width_ns
        start, end = 0, 0
        if len(self.runs):
            arrivals = int(stream.blocks.first_ns[self.cut :].min()), stream.last_arrival_ns
            start, end = window(facts, arrivals, stream.last_ns, records.interrupted_ns)
        self.bins = slice(-(-start // width), end // width)
        self.window = (self.bins.start * width, self.bins.stop * width)
        self.length_s = max(0, self.window[1] - self.window[0]) / 1e9

    def _cut(self) -> int:
        """Blocks of the warm-up."""
        blocks, facts = self.stream.blocks, self.facts
        if facts.warmup_ns:
            return int((blocks.first_ns < facts.warmup_ns).sum())
        return -(-int(self.stream.requests * facts.warmup_ratio) // blocks.size)

    # ---- sections ----------------------------------------------------------------------

    def section(self, model: int | None, level: int | None) -> dict[str, Any]:
        """Summarise the requests of one model or level; batches only where all are theirs."""
        blocks, facts = self.stream.blocks, self.facts
        models = range(len(facts.models)) if model is None else [model]
        levels = range(1, facts.levels + 1) if level is None else [level]
        groups = [m * facts.levels + each - 1 for m in models for each in levels]
        outcomes = blocks.outcomes[self.cut :, groups].sum(axis=(0, 1)).tolist()
        lost = {name: outcomes[code] for name, code in LOST.items()}
        n, answered = sum(outcomes), outcomes[Outcome.OK]
        section: dict[str, Any] = {
            "requests": n,
            "answered": answered,
            **lost,
            "reasons": self._reasons(groups),
            "loss_ratio": (n - answered - lost["unfinished"]) / n if n else None,
            "offered_rps": self._rate("arrived", groups),
            "throughput_rps": self._rate("answered", groups),
        }
        targeted = int(blocks.targeted[self.cut :, groups].sum())
        good = int(blocks.good[self.cut :, groups].sum())
        section["goodput_rps"] = self._rate("good", groups) if targeted else None
        section["goodput_ratio"] = good / targeted if targeted else None
        section |= self._latencies(groups)
        waited = self.stream.bins.areas("entered", "left")[self.bins][:, groups]
        length = self.window[1] - self.window[0]
        section["mean_queue_length"] = int(waited.sum()) / length if length > 0 else None
        section["max_queue_length"] = None
        return section if level is not None else section | self._batches(model)

    def _reasons(self, groups: list[int]) -> dict[str, int]:
        counts = self.stream.blocks.reason_counts(self.runs, groups)
        return dict(sorted((self.reasons[code], n) for code, n in counts.items()))

    def _rate(self, name: str, groups: list[int]) -> float | None:
        if self.length_s <= 0:
            return None
        events = self.stream.bins.events(name, self.bins.start, self.bins.stop)[groups]
        return int(events.sum()) / self.length_s

    def _latencies(self, groups: list[int]) -> dict[str, Any]:
        blocks = self.stream.blocks
        values: dict[str, Any] = {}
        intervals: dict[str, Any] = {}
        missing: dict[str, str] = {}
        answered = blocks.outcomes[self.cut :, groups, Outcome.OK].sum(axis=1)
        total = int(answered.sum())
        for part in PARTS:
            if part == "frontend":
                same = float(self.facts.receive_ns + self.facts.respond_ns) if total else None
                names = ("mean", *PERCENTILES, "max")
                values |= {f"{part}_{name}_ns": same for name in names}
                continue
            sample = _Sample(self, groups, STREAMED.index(part), answered)
            for name in ("mean", *PERCENTILES, "max"):
                key = f"{part}_{name}_ns"
                values[key] = sample.value(name) if total else None
                if part in ESTIMATED and name != "max":
                    interval = sample.interval(name) if total else None
                    intervals[key] = list(interval) if interval else None
                    if interval is None:
                        missing[key] = missing_reason(name, total)
        return {**values, "intervals": intervals, "intervals_missing": missing}

    # ---- batches -----------------------------------------------------------------------

    def _batches(self, model: int | None) -> dict[str, Any]:
        blocks, facts = self.stream.blocks, self.facts
        models = list(range(len(facts.models))) if model is None else [model]
        utilisation = None
        if self.length_s > 0:
            mine = [share for (m, _), share in zip(facts.instances, self._running(), strict=True)
                    if m in models]  # fmt: skip
            servers = sum(facts.capacity()) if model is None else len(mine)
            utilisation = sum(mine) / servers
        items = blocks.batch_counts(self.runs, models, False)
        gears = blocks.batch_counts(self.runs, models, True)
        return {**batch_sizes(items, gears), "utilisation": utilisation}

    def _running(self) -> list[float]:
        """Busy share of every instance in the window."""
        busy = self.stream.bins.areas("started", "finished")[self.bins].sum(axis=0)
        return [b / (self.window[1] - self.window[0]) for b in busy.tolist()]

    def devices(self) -> dict[str, Any]:
        """Use of every device."""
        if self.length_s <= 0:
            return {}
        running = [0.0] * len(self.facts.devices)
        for (_, device), share in zip(self.facts.instances, self._running(), strict=True):
            running[device] += share
        return device_shares(self.facts, running)

    def instances(self) -> dict[str, Any]:
        """Busy share of every instance."""
        if self.length_s <= 0:
            return {}
        names = self.facts.instance_names()
        return {n: {"utilisation": s} for n, s in zip(names, self._running(), strict=True)}

    def little(self) -> dict[str, Any]:
        """Little's law on the whole run, as in `gesim.metrics.summary.little`."""
        bins = self.stream.bins
        arrived, gone = bins.series["arrived"], bins.series["gone"]
        change = (arrived.count.sum(axis=1) - gone.count[:, 0]).tolist()
        offset = (arrived.offset.sum(axis=1) - gone.offset[:, 0]).tolist()
        present = area = 0
        for number, into in zip(change, offset, strict=True):
            present += number
            area += present * bins.width_ns - into
        sojourns = self.stream.sojourns_ns
        return {"area_ns": area, "sojourns_ns": sojourns, "equal": area == sojourns}


class _Sample:
    """One part of the latency of some groups, in blocks."""

    def __init__(self, run: _Streamed, groups: list[int], part: int, answered: Int) -> None:
        blocks = run.stream.blocks
        self.answered = answered.tolist()[: len(run.runs)]
        self.total = sum(self.answered)
        self.sums = blocks.sums[run.cut :, groups, part].sum(axis=1).tolist()[: len(run.runs)]
        self.largest = int(blocks.largest[run.cut :, groups, part].max(initial=0))
        self.counts = np.stack(
            [blocks.dense(block, groups, part) for block in run.runs]
            or [np.zeros(BUCKETS, np.int64)]
        )
        self.below = np.cumsum(self.counts.sum(axis=0))

    def value(self, name: str) -> float:
        """Mean, percentile or maximum."""
        if name == "mean":
            return float(sum(self.sums) / self.total)
        if name == "max":
            return float(self.largest)
        bucket = self._bucket(rank(self.total, PERCENTILES[name]))
        return min(float(middle(bucket)), float(self.largest))

    def _bucket(self, rank: int) -> Int:
        return np.asarray(np.searchsorted(self.below, rank), np.int64)

    def interval(self, name: str) -> Interval | None:
        """Confidence interval of the mean or a percentile."""
        n = len(self.answered)
        if name == "mean":
            error = ratio_error(self.sums, self.answered)
            if error is None:
                return None
            half = student(n, CONFIDENCE) * error
            return Interval(self.value(name) - half, self.value(name) + half)
        probability = PERCENTILES[name]
        at = self._bucket(rank(self.total, probability))
        error = ratio_error(self.counts[:, : at + 1].sum(axis=1).tolist(), self.answered)
        if error is None:
            return None
        band = percentile_band(self.total, probability, error, n, CONFIDENCE)
        if band is None:
            return None
        low, high = self._bucket(band[0]), self._bucket(band[1])
        return Interval(float(lowest(low)), min(float(highest(high)), float(self.largest)))
