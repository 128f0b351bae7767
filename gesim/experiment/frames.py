"""Records and summaries as pandas frames, and frames as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.records import Facts, Records
from gesim.scenario.expect import METRICS

__all__ = ["batch_frame", "records_of", "request_frame", "summary_frame"]

_UNITS = {"time": "_ms", "rate": "_rps"}
_ORDER = [name + _UNITS.get(kind, "") for name, kind in METRICS.items()]
"""Rows of a summary."""

OUTCOMES = tuple(outcome.name.lower() for outcome in Outcome)

_PLAIN = ("level", "items", "length", "arrival_ns", "start_ns", "batch")
_BATCH_COLUMNS = {
    "instance": "batch_instance",
    "requests": "batch_count",
    "items": "batch_items",
    "gear": "batch_gear",
    "length": "batch_length",
    "start_ns": "batch_start_ns",
    "host_ns": "host_ns",
    "input_ns": "input_ns",
    "compute_ns": "compute_ns",
    "output_ns": "output_ns",
    "finish_ns": "batch_finish_ns",
}
"""Columns of the batch frame and those of the records, where both hold the same numbers."""


def request_frame(records: Sequence[Records], facts: Facts) -> pd.DataFrame:
    """One row a request; several replications stand one after another.

    Parameters
    ----------
    records : sequence of Records
        One a replication.
    facts : Facts
    """
    reasons = sorted({reason for one in records for reason in one.reasons})
    frames = [_requests(one, facts, i, reasons) for i, one in enumerate(records)]
    return pd.concat(frames, ignore_index=True)


def _requests(records: Records, facts: Facts, replication: int, reasons: list[str]) -> pd.DataFrame:
    answered = records.outcome == Outcome.OK
    batch = np.where(answered, records.batch, 0)

    def if_answered(values: Any) -> Any:
        return np.where(answered, values, np.nan)

    def of_batch(column: Any) -> Any:
        return if_answered(column[batch] if len(column) else 0)

    finish = records.finish_ns + np.where(answered, facts.respond_ns, 0)
    enqueue = records.arrival_ns + facts.receive_ns
    code = np.asarray([reasons.index(reason) for reason in records.reasons])
    never = records.deadline_ns >= NEVER_NS
    return pd.DataFrame(
        {
            "replication": np.full(len(records), replication),
            "id": np.arange(len(records)),
            "model": _named(records.model, facts.models),
            "level": records.level,
            "items": records.items,
            "length": records.length,
            "arrival_ns": records.arrival_ns,
            "enqueue_ns": enqueue,
            "start_ns": records.start_ns,
            "finish_ns": finish,
            "deadline_ns": pd.arrays.IntegerArray(np.where(never, 0, records.deadline_ns), never),
            "latency_ns": if_answered(finish - records.arrival_ns),
            "frontend_ns": if_answered(facts.receive_ns + facts.respond_ns),
            "queue_ns": if_answered(records.start_ns - enqueue),
            "host_ns": of_batch(records.host_ns),
            "transfer_ns": of_batch(records.input_ns + records.output_ns),
            "compute_ns": of_batch(records.compute_ns),
            "batch": records.batch,
            "outcome": _named(records.outcome, OUTCOMES),
            "reason": _named(code[records.reason], reasons),
        }
    )


def batch_frame(records: Sequence[Records], facts: Facts) -> pd.DataFrame:
    """One row a batch; several replications stand one after another."""
    frames = []
    for replication, one in enumerate(records):
        n = len(one.batch_model)
        columns: dict[str, Any] = {
            "replication": np.full(n, replication),
            "id": np.arange(n),
            "model": _named(one.batch_model, facts.models),
            "device": _named(one.batch_device, facts.devices),
        }
        columns |= {name: getattr(one, field) for name, field in _BATCH_COLUMNS.items()}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def records_of(
    requests: pd.DataFrame, batches: pd.DataFrame, facts: Facts, replication: int
) -> Records:
    """Undo `request_frame` and `batch_frame` for one replication.

    Raises
    ------
    ValueError, KeyError
        If the frames do not fit each other or the facts.
    """
    mine = requests[requests["replication"] == replication]
    theirs = batches[batches["replication"] == replication]
    outcome = _codes(mine["outcome"], OUTCOMES)
    answered = outcome == Outcome.OK
    reasons = sorted({"", *mine["reason"].unique()})
    columns = {name: _whole(mine[name]) for name in _PLAIN}
    columns |= {
        "model": _codes(mine["model"], facts.models),
        "outcome": outcome,
        "reason": _codes(mine["reason"], reasons),
        "finish_ns": _whole(mine["finish_ns"]) - np.where(answered, facts.respond_ns, 0),
        "deadline_ns": mine["deadline_ns"].fillna(NEVER_NS).to_numpy(np.int64),
        "batch_model": _codes(theirs["model"], facts.models),
        "batch_device": _codes(theirs["device"], facts.devices),
    }
    columns |= {field: _whole(theirs[name]) for name, field in _BATCH_COLUMNS.items()}
    if len(mine) and columns["batch"].max() >= len(theirs):
        raise ValueError("requests name batches that are not there")
    return Records(**columns, reasons=reasons)


def _named(codes: Any, names: Sequence[str]) -> pd.Categorical:
    """Turn codes into names."""
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(names), dtype="object"))


def _codes(column: pd.Series[Any], names: Sequence[str]) -> Any:
    """Turn names into codes."""
    known = pd.Index(list(names), dtype="object")
    codes = known.get_indexer(pd.Index(column.astype("object"), dtype="object"))
    if len(codes) and codes.min() < 0:
        unknown = sorted(set(column.astype(str)) - set(names))
        raise ValueError(f"column {column.name} holds {', '.join(unknown)}")
    return codes.astype(np.int64)


def _whole(column: pd.Series[Any]) -> Any:
    return np.ascontiguousarray(column.to_numpy(np.int64))


def summary_frame(summary: dict[str, Any]) -> pd.DataFrame:
    """One row a metric; times in ms, named so.

    Columns: ``all`` with the bounds of its confidence interval, then each model and level.
    """
    whole = summary["all"]
    columns: dict[str, dict[str, float | None]] = {"all": _readable(whole), "low": {}, "high": {}}
    for end, name in enumerate(("low", "high")):
        bounds = {key: pair[end] for key, pair in whole["intervals"].items() if pair}
        columns[name] = _readable(bounds)
    for name, section in {**summary["models"], **summary["levels"]}.items():
        columns[f"model {name}" if name in columns else name] = _readable(section)
    frame = pd.DataFrame(columns)
    order = [name for name in _ORDER if name in frame.index]
    return frame.reindex([*order, *(name for name in frame.index if name not in order)])


def _readable(section: dict[str, Any]) -> dict[str, float | None]:
    """Keep the numbers; ns become ms."""
    made: dict[str, float | None] = {}
    for key, value in section.items():
        if value is not None and not isinstance(value, int | float):
            continue
        if key.endswith("_ns"):
            made[f"{key[:-3]}_ms"] = None if value is None else value / 1e6
        else:
            made[key] = value
    return made
