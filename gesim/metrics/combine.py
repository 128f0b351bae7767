"""Summaries of several replications become one, with Student intervals across them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gesim.metrics.statistics import replication_interval

__all__ = ["combine"]

_AFRESH = ("intervals", "intervals_missing", "rules", "little")
"""Keys that are not means: `combine` makes them anew."""


def combine(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Average summaries of independent runs.

    Parameters
    ----------
    summaries : sequence of dict
        From `gesim.metrics.summary.summarise`, all of one scenario.

    Returns
    -------
    dict
        The summary itself for one run. Otherwise means; ``intervals`` of every section hold
        the Student interval of each number across the runs.
    """
    if len(summaries) == 1:
        return summaries[0]
    made: dict[str, Any] = _mean(summaries)
    for part in ("models", "levels", "devices", "instances"):
        for name in made[part]:
            made[part][name]["intervals"] = _intervals([s[part][name] for s in summaries])
    made["all"]["intervals"] = _intervals([s["all"] for s in summaries])
    made["rules"] = dict(summaries[0]["rules"])
    made["rules"]["interval"] = f"Student across {len(summaries)} replications"
    made["replications"] = len(summaries)
    made["little"] = {
        "area_ns": sum(s["little"]["area_ns"] for s in summaries),
        "sojourns_ns": sum(s["little"]["sojourns_ns"] for s in summaries),
        "equal": all(s["little"]["equal"] for s in summaries),
    }
    return made


def _mean(values: Sequence[Any]) -> Any:
    """Average numbers; go into mappings; keep what is equal everywhere."""
    first = values[0]
    if isinstance(first, Mapping):
        keys = sorted({key for value in values for key in value}) if all(
            all(isinstance(v, int) for v in value.values()) for value in values
        ) else list(first)  # fmt: skip
        return {
            key: {} if key in _AFRESH else _mean([value.get(key, 0) for value in values])
            for key in keys
        }
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == len(values):
        mean = float(np.mean(numbers))
        whole = isinstance(first, int) and all(v == first for v in values)
        return first if whole else mean
    if len(numbers) and all(v is None or isinstance(v, int | float) for v in values):
        return float(np.mean(numbers))
    return first


def _intervals(sections: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Student interval of every number of a section."""
    made: dict[str, Any] = {}
    for key, value in sections[0].items():
        numbers = [section.get(key) for section in sections]
        if isinstance(value, int | float) and all(isinstance(n, int | float) for n in numbers):
            interval = replication_interval(np.asarray(numbers, np.float64))
            made[key] = list(interval) if interval else None
    return made
