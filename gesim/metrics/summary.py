"""The summary of a run: plain numbers with intervals, the same bytes for the same run.

`gesim.metrics.measures` states the rules. A run above the recorder's bound is summarised by
`gesim.metrics.stream_summary`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.measures import (
    CONFIDENCE,
    ESTIMATED,
    GOODPUT_RULE,
    LOST,
    PARTS,
    PERCENTILE_RULE,
    PERCENTILES,
    Window,
    batch_sizes,
    device_shares,
    due_ns,
    histogram,
    missing_reason,
    points,
    steps,
    window,
)
from gesim.metrics.records import Facts, Records
from gesim.metrics.statistics import BATCHES, Interval, mean_interval, percentile_interval

__all__ = ["CONFIDENCE", "PERCENTILES", "summarise"]

Int = NDArray[np.int64]
Mask = NDArray[np.bool_]


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
        ``_rps``), ``intervals``, and ``intervals_missing`` with the reason where an interval is
        null; ``devices`` and ``instances`` hold utilisations; ``little`` checks Little's law on
        the whole run in integers; ``rules`` say how all this was measured.
    """
    if records.stream is not None:
        from gesim.metrics.stream_summary import summarise_stream

        return summarise_stream(records.stream, facts, records)
    exact = _Exact(records, facts)
    levels = range(1, facts.levels + 1)
    return {
        "all": exact.section(None, None),
        "models": {name: exact.section(i, None) for i, name in enumerate(facts.models)},
        "levels": {f"level{level}": exact.section(None, level) for level in levels},
        "devices": exact.devices(),
        "instances": exact.instances(),
        "little": little(records),
        "rules": {
            "records": "exact",
            "warmup": exact.warmup_rule(),
            "window_ns": list(exact.window),
            "percentile": PERCENTILE_RULE,
            "goodput": GOODPUT_RULE,
            "slo_ns": dict(zip(facts.models, facts.slo_ns or [0] * len(facts.models), strict=True)),
            "confidence": CONFIDENCE,
            "interval": f"batch means ({BATCHES} runs in order of arrival, widened by their "
            "correlation), Student; percentiles by the same on the indicator, read off the order "
            "statistics; null with a reason where the sample is too short",
        },
    }


class _Exact:
    """A run with its derived columns."""

    def __init__(self, records: Records, facts: Facts) -> None:
        self.records = records
        self.facts = facts
        self.order = np.argsort(records.arrival_ns, kind="stable")
        self.counted = self._counted()
        self.window = self._window()
        self.ok = records.outcome == Outcome.OK
        self.answer_ns = records.finish_ns + facts.respond_ns
        self.entered_ns = records.arrival_ns + facts.receive_ns
        self.left_ns = np.maximum(records.start_ns, self.entered_ns)
        self._all: dict[str, Any] | None = None
        self.due_ns = due_ns(records.model, records.arrival_ns, records.deadline_ns, facts)

    # ---- what counts -------------------------------------------------------------------

    def _counted(self) -> Mask:
        """Mark the requests behind the warm-up."""
        if self.facts.warmup_ns:
            return self.records.arrival_ns >= self.facts.warmup_ns
        counted = np.zeros(len(self.order), np.bool_)
        counted[self.order[int(len(self.order) * self.facts.warmup_ratio) :]] = True
        return counted

    def _window(self) -> Window:
        """Return start and end of the time that rates are taken over."""
        if not self.counted.any():
            return 0, 0
        arrivals = self.records.arrival_ns[self.counted]
        return window(
            self.facts,
            (int(arrivals.min()), int(arrivals.max())),
            int(self.records.finish_ns.max()),
            self.records.interrupted_ns,
        )

    def warmup_rule(self) -> str:
        """Say what was cut."""
        cut = int(len(self.counted) - self.counted.sum())
        if self.facts.warmup_ns:
            return f"requests that arrive before {self.facts.warmup_ns} ns are cut ({cut})"
        return f"the first {self.facts.warmup_ratio:g} of the requests by arrival are cut ({cut})"

    # ---- sections ----------------------------------------------------------------------

    def section(self, model: int | None, level: int | None) -> dict[str, Any]:
        """Summarise the requests of one model or level; batches only where all are theirs."""
        records = self.records
        if model is None and level is None:
            mine = np.ones(len(records), np.bool_)
        else:
            mine = records.level == level if model is None else records.model == model
        section = self._requests(mine)
        return section if level is not None else {**section, **self._batches(model)}

    def _requests(self, mine: Mask) -> dict[str, Any]:
        """Summarise some of the requests; all of them only once."""
        all_of_them = bool(mine.all())
        if all_of_them and self._all is not None:
            return self._all
        records = self.records
        in_order = self.order[(mine & self.counted)[self.order]]
        outcome = records.outcome[in_order]
        answered = in_order[outcome == Outcome.OK]
        lost = {name: int((outcome == code).sum()) for name, code in LOST.items()}
        n = len(in_order)
        section: dict[str, Any] = {
            "requests": n,
            "answered": len(answered),
            **lost,
            "reasons": self._reasons(in_order),
            "loss_ratio": (n - len(answered) - lost["unfinished"]) / n if n else None,
            # An arrival belongs to the time after it, an answer to the time before it.
            "offered_rps": self._rate(records.arrival_ns[mine] + 1),
            "throughput_rps": self._rate(self.answer_ns[mine & self.ok]),
        }
        section |= self._goodput(mine, in_order)
        section |= self._latencies(answered)
        section |= self._queue(mine)
        if all_of_them:
            self._all = section
        return section

    def _reasons(self, chosen: Int) -> dict[str, int]:
        codes, counts = np.unique(self.records.reason[chosen], return_counts=True)
        names = self.records.reasons
        found = {names[c]: int(n) for c, n in zip(codes, counts, strict=True) if c}
        return dict(sorted(found.items()))

    def _rate(self, times_ns: Int) -> float | None:
        """Events inside the window, a second."""
        start, end = self.window
        if end <= start:
            return None
        return int(((times_ns > start) & (times_ns <= end)).sum()) / ((end - start) / 1e9)

    def _goodput(self, mine: Mask, chosen: Int) -> dict[str, Any]:
        targeted = chosen[self.due_ns[chosen] < NEVER_NS]
        if not len(targeted):
            return {"goodput_rps": None, "goodput_ratio": None}
        good = self.ok & (self.answer_ns <= self.due_ns) & (self.due_ns < NEVER_NS)
        return {
            "goodput_rps": self._rate(self.answer_ns[mine & good]),
            "goodput_ratio": int(good[targeted].sum()) / len(targeted),
        }

    def _latencies(self, answered: Int) -> dict[str, Any]:
        """Latency and its parts: mean, percentiles, maximum, with intervals."""
        values: dict[str, Any] = {}
        intervals: dict[str, Any] = {}
        missing: dict[str, str] = {}
        for part in PARTS:
            sample = self.part_ns(part, answered)
            ordered = np.sort(sample)
            for name, value in points(sample, ordered).items():
                key = f"{part}_{name}_ns"
                values[key] = value
                if part in ESTIMATED and name != "max":
                    interval = _interval(name, sample, ordered)
                    intervals[key] = list(interval) if interval else None
                    if interval is None:
                        missing[key] = missing_reason(name, len(sample))
        return {**values, "intervals": intervals, "intervals_missing": missing}

    def part_ns(self, part: str, answered: Int) -> Int:
        """Latency, or one part of it, of answered requests."""
        records, facts = self.records, self.facts
        if part == "latency":
            return self.answer_ns[answered] - records.arrival_ns[answered]
        if part == "queue":
            return records.start_ns[answered] - self.entered_ns[answered]
        if part == "frontend":
            return np.full(len(answered), facts.receive_ns + facts.respond_ns, np.int64)
        batch = records.batch[answered]
        if part == "transfer":
            return records.input_ns[batch] + records.output_ns[batch]
        return records.host_ns[batch] if part == "host" else records.compute_ns[batch]

    def _queue(self, mine: Mask) -> dict[str, Any]:
        """Measure how many requests wait: time average over the window, and maximum."""
        start, end = self.window
        if end <= start:
            return {"mean_queue_length": None, "max_queue_length": None}
        entered, left = self.entered_ns[mine], self.left_ns[mine]
        overlap = np.minimum(left, end) - np.maximum(entered, start)
        waited = int(np.maximum(overlap, 0).sum())
        _, length = steps(entered, left)
        longest = int(length.max()) if len(length) else 0
        return {"mean_queue_length": waited / (end - start), "max_queue_length": longest}

    # ---- batches -----------------------------------------------------------------------

    def _batches(self, model: int | None) -> dict[str, Any]:
        """Batches that start behind the warm-up: sizes, gears, padding."""
        records, (start, end) = self.records, self.window
        mine = np.ones(len(records.batch_model), np.bool_)
        if model is not None:
            mine = records.batch_model == model
        chosen = mine & (records.batch_start_ns >= start)
        utilisation = None
        if end > start:
            if model is None:
                servers = sum(self.facts.capacity())
            else:
                servers = sum(m == model for m, _ in self.facts.instances)
            utilisation = int(self._busy_ns()[mine].sum()) / (end - start) / servers
        return {
            **batch_sizes(
                histogram(records.batch_items[chosen]), histogram(records.batch_gear[chosen])
            ),
            "utilisation": utilisation,
        }

    def _busy_ns(self) -> Int:
        """Time of every batch inside the window."""
        start, end = self.window
        overlap = np.minimum(self.records.batch_finish_ns, end) - np.maximum(
            self.records.batch_start_ns, start
        )
        busy: Int = np.maximum(overlap, 0)
        return busy

    def _shares(self, where: Int, count: int) -> list[float]:
        """Batches running at once, averaged over the window, by place."""
        sums = np.zeros(count, np.int64)
        np.add.at(sums, where, self._busy_ns())
        return [total / (self.window[1] - self.window[0]) for total in sums.tolist()]

    def devices(self) -> dict[str, Any]:
        """Use of every device."""
        if self.window[1] <= self.window[0]:
            return {}
        running = self._shares(self.records.batch_device, len(self.facts.devices))
        return device_shares(self.facts, running)

    def instances(self) -> dict[str, Any]:
        """Busy share of every instance."""
        if self.window[1] <= self.window[0]:
            return {}
        shares = self._shares(self.records.batch_instance, len(self.facts.instances))
        names = self.facts.instance_names()
        return {name: {"utilisation": s} for name, s in zip(names, shares, strict=True)}


def _interval(name: str, sample: Int, ordered: Int) -> Interval | None:
    if not len(sample):
        return None
    if name == "mean":
        return mean_interval(sample, CONFIDENCE)
    return percentile_interval(sample, ordered, PERCENTILES[name], CONFIDENCE)


def little(records: Records) -> dict[str, Any]:
    """Little's law on the whole run, in integers: area under the number in system = sojourns.

    The area is that of arrivals, of batches finishing with their counts, and of losses; the
    sojourns are those of the requests' own records. They agree only if both books do.
    """
    running = records.batch >= 0
    sojourns = int((records.finish_ns - records.arrival_ns).sum())
    times = np.concatenate(
        [records.arrival_ns, records.batch_finish_ns, records.finish_ns[~running]]
    )
    change = np.concatenate(
        [
            np.ones(len(records), np.int64),
            -records.batch_count,
            -np.ones(int((~running).sum()), np.int64),
        ]
    )
    order = np.argsort(times, kind="stable")
    number = np.cumsum(change[order])
    area = int((number[:-1] * np.diff(times[order])).sum()) if len(order) else 0
    return {"area_ns": area, "sojourns_ns": sojourns, "equal": area == sojourns}
