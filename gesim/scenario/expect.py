"""What a scenario says must hold after the run: ``latency_p99 <= 15ms``.

Theory of operation
-------------------
An expectation is ``metric op value``, or ``metric ~ value +- tolerance`` (a share of the value
or an amount with a unit). The metric is one of the summary, of the whole run or of one model or
priority level: ``resnet101.latency_p99``, ``level1.goodput_ratio``. Values carry the metric's
unit. Metrics are checked when the scenario is read, long before there is a number to compare.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gesim.errors import ScenarioError
from gesim.registry import Problem
from gesim.units import (
    format_rate,
    format_time,
    parse_number,
    parse_rate_rps,
    parse_ratio,
    parse_time_ns,
    suggest,
)

if TYPE_CHECKING:
    from gesim.scenario.scenario import Scenario

__all__ = ["METRICS", "Checked", "Expectation", "check_expectations", "parse_expectations"]

_PARTS = ("latency", "queue", "host", "transfer", "compute", "frontend")
_POINTS = ("mean", "p50", "p90", "p95", "p99", "p999", "max")

METRICS: dict[str, str] = {
    **{f"{part}_{point}": "time" for part in _PARTS for point in _POINTS},
    "throughput": "rate",
    "offered": "rate",
    "goodput": "rate",
    "goodput_ratio": "share",
    "loss_ratio": "share",
    "utilisation": "share",
    "padding_ratio": "share",
    "mean_batch": "number",
    "request_mean_batch": "number",
    "mean_queue_length": "number",
    "max_queue_length": "number",
    "requests": "number",
    "answered": "number",
    "rejected": "number",
    "expired": "number",
    "dropped": "number",
    "failed": "number",
    "unfinished": "number",
    "batches": "number",
}
"""Metrics of a summary and what they measure."""

_UNITS = {"time": "_ns", "rate": "_rps", "share": "", "number": ""}
"""What a summary appends to a metric's name."""

_OF_BATCHES = {"utilisation", "padding_ratio", "mean_batch", "request_mean_batch", "batches"}
"""Metrics of batches, which have no priority level."""

_READ = {
    "time": parse_time_ns,
    "rate": parse_rate_rps,
    "share": parse_ratio,
    "number": parse_number,
}
_FORM = re.compile(
    r"\s*([^\s<>=~!]+)\s*(<=|>=|==|<|>|~|!=|=)\s*(.*?)\s*(?:(?:\+-|\+/-|±)\s*(.*?)\s*)?"
)
_OPS = ("<=", "<", ">=", ">", "==", "~")


@dataclass(frozen=True)
class Expectation:
    """One thing that must hold.

    Attributes
    ----------
    text : str
        As the scenario says it.
    scope : str
        Empty for the whole run, else a model or ``level1``.
    metric, op : str
        What is compared, and how.
    value, tolerance : float
        ns, requests per second, or plain; `tolerance` in the same unit, used by ``~``.
    """

    text: str
    scope: str
    metric: str
    op: str
    value: float
    tolerance: float = 0.0

    def holds(self, measured: float) -> bool:
        """Tell whether a measured value meets it. NaN never does."""
        if self.op == "~":
            # The border itself holds, whatever binary fractions make of it.
            return abs(measured - self.value) <= self.tolerance * (1 + 1e-9)
        return {
            "<=": measured <= self.value,
            "<": measured < self.value,
            ">=": measured >= self.value,
            ">": measured > self.value,
            "==": measured == self.value,
        }[self.op]

    def show(self, measured: float) -> str:
        """Write a measured value for people, with the metric's unit."""
        kind = METRICS[self.metric]
        if kind == "time":
            return format_time(measured)
        if kind == "rate":
            return format_rate(measured)
        return f"{measured:.2%}" if kind == "share" else f"{measured:.5g}"


class Checked(NamedTuple):
    """An expectation after the run: its text, whether it holds, and what was measured."""

    text: str
    holds: bool
    measured: str


def parse_expectation(text: str, models: Sequence[str], levels: int) -> Expectation:
    """Read one expectation.

    Raises
    ------
    ScenarioError
        That says what is wrong with it.
    """
    match = _FORM.fullmatch(text)
    if match is None or match[2] not in _OPS:
        raise ScenarioError(
            f"{text!r} is not an expectation; write it like latency_p99 <= 15ms or "
            "mean_batch ~ 8 +- 5% (operators: <= < >= > == ~)"
        )
    scope, metric = _metric(match[1], models, levels)
    read = _READ[METRICS[metric]]
    value = float(read(match[3]))
    if (match[2] == "~") != (match[4] is not None):
        fix = "needs a tolerance, like +- 5%" if match[2] == "~" else "takes no tolerance; use ~"
        raise ScenarioError(f"{text!r}: operator {match[2]} {fix}")
    tolerance = 0.0
    if match[4] is not None:
        relative = match[4].endswith("%") and METRICS[metric] != "share"
        tolerance = parse_ratio(match[4]) * abs(value) if relative else float(read(match[4]))
        if METRICS[metric] == "share" and match[4].endswith("%"):
            tolerance = parse_ratio(match[4])  # points of the share itself: 80% +- 2%
    return Expectation(text, scope, metric, match[2], value, tolerance)


def _metric(name: str, models: Sequence[str], levels: int) -> tuple[str, str]:
    scope, _, metric = name.rpartition(".")
    scopes = [*models, *(f"level{i + 1}" for i in range(levels))]
    if scope and scope not in scopes:
        raise ScenarioError(
            f"there is no model or level {scope!r}{suggest(scope, scopes)} ({', '.join(scopes)})"
        )
    if metric not in METRICS:
        near = suggest(metric, METRICS)
        hint = near or f" (such as latency_p99, throughput, mean_batch; all: {', '.join(METRICS)})"
        raise ScenarioError(f"there is no metric {metric!r}{hint}")
    if scope not in ("", *models) and metric in _OF_BATCHES:
        raise ScenarioError(f"{scope} has no {metric}: batches have no priority level")
    return scope, metric


def parse_expectations(scenario: Scenario) -> tuple[list[Expectation], list[Problem]]:
    """Read a scenario's expectations; return the good ones and what is wrong with the rest."""
    models = [model.name for model in scenario.models]
    levels = max(model.priority_levels for model in scenario.models)
    good: list[Expectation] = []
    problems: list[Problem] = []
    for i, text in enumerate(scenario.expect):
        try:
            read = parse_expectation(text, models, levels)
            if read.metric.startswith("goodput") and not _has_target(scenario):
                raise ScenarioError(f"{read.metric} needs a latency target: give slo, like 50ms")
            good.append(read)
        except ScenarioError as error:
            problems.append(Problem(("expect", i), str(error)))
    return good, problems


def _has_target(scenario: Scenario) -> bool:
    mix = scenario.workload.mix or ()
    return (
        scenario.slo_ns is not None
        or any(model.slo_ns is not None for model in scenario.models)
        or any(entry.deadline_ns is not None for entry in mix)
        or scenario.workload.arrivals.process == "trace"  # it may bring deadlines
    )


def check_expectations(scenario: Scenario, summary: Mapping[str, Any]) -> list[Checked]:
    """Compare a scenario's expectations with the summary of a run.

    Returns
    -------
    list of Checked
        In the scenario's order. A metric without a value (nothing was answered, say) fails.
    """
    checked = []
    for expectation in parse_expectations(scenario)[0]:
        measured = measured_value(summary, expectation)
        if measured is None:
            checked.append(Checked(expectation.text, False, "no value"))
        else:
            holds = expectation.holds(measured)
            checked.append(Checked(expectation.text, holds, expectation.show(measured)))
    return checked


def measured_value(summary: Mapping[str, Any], expectation: Expectation) -> float | None:
    """Find what an expectation is about in a summary; None if it has no value there."""
    section: Any = summary.get("all", {})
    if expectation.scope:
        by_model = summary.get("models", {})
        section = by_model.get(expectation.scope, summary.get("levels", {}).get(expectation.scope))
    value = (section or {}).get(expectation.metric + _UNITS[METRICS[expectation.metric]])
    return float(value) if isinstance(value, int | float) else None
