"""Records and summaries as pandas frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.records import Facts, Records

__all__ = ["batch_frame", "request_frame", "summary_frame"]


def request_frame(records: Records, facts: Facts, replication: int = 0) -> pd.DataFrame:
    """One row a request."""
    answered = records.outcome == Outcome.OK
    batch = np.where(answered, records.batch, 0)

    def of_batch(column: Any) -> Any:
        values = column[batch] if len(column) else np.zeros(len(batch))
        return np.where(answered, values, np.nan)

    finish = records.finish_ns + np.where(answered, facts.respond_ns, 0)
    enqueue = records.arrival_ns + facts.receive_ns
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
            "deadline_ns": pd.array(
                np.where(records.deadline_ns < NEVER_NS, records.deadline_ns, 0), dtype="Int64"
            ),
            "latency_ns": np.where(answered, finish - records.arrival_ns, np.nan),
            "queue_ns": np.where(answered, records.start_ns - enqueue, np.nan),
            "host_ns": of_batch(records.host_ns),
            "transfer_ns": of_batch(records.input_ns + records.output_ns),
            "compute_ns": of_batch(records.compute_ns),
            "batch": records.batch,
            "outcome": _named(records.outcome, [outcome.name.lower() for outcome in Outcome]),
            "reason": _named(records.reason, records.reasons),
        }
    )


def batch_frame(records: Records, facts: Facts, replication: int = 0) -> pd.DataFrame:
    """One row a batch."""
    return pd.DataFrame(
        {
            "replication": np.full(len(records.batch_model), replication),
            "id": np.arange(len(records.batch_model)),
            "model": _named(records.batch_model, facts.models),
            "instance": records.batch_instance,
            "device": _named(records.batch_device, facts.devices),
            "requests": records.batch_count,
            "items": records.batch_items,
            "gear": records.batch_gear,
            "length": records.batch_length,
            "start_ns": records.batch_start_ns,
            "host_ns": records.host_ns,
            "input_ns": records.input_ns,
            "compute_ns": records.compute_ns,
            "output_ns": records.output_ns,
            "finish_ns": records.batch_finish_ns,
        }
    )


def _named(codes: Any, names: Sequence[str]) -> pd.Categorical:
    """Turn codes into names."""
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(names), dtype="object"))


def summary_frame(summary: dict[str, Any]) -> pd.DataFrame:
    """One row a metric; times in ms, named so."""
    sections = {"all": summary["all"], **summary["models"], **summary["levels"]}
    columns = {}
    for name, section in sections.items():
        column = {}
        for key, value in section.items():
            if isinstance(value, int | float) or value is None:
                milli = key.endswith("_ns")
                label = f"{key[:-3]}_ms" if milli else key
                column[label] = value / 1e6 if milli and value is not None else value
        columns[name] = column
    return pd.DataFrame(columns)
