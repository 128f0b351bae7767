"""A run as a trace for ui.perfetto.dev: queues as counters, batches and their stages as slices."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gesim.metrics.records import Facts, Records

__all__ = ["BATCHES_MAX", "trace"]

BATCHES_MAX = 20_000
"""Batches written; a viewer is of no use beyond that, and the file must open quickly."""

_STAGES = ("host", "input", "compute", "output")


def trace(records: Records, facts: Facts, label: str) -> str:
    """Write the trace.

    Parameters
    ----------
    records : Records
    facts : Facts
    label : str
        Who made it; stands in ``otherData``.

    Returns
    -------
    str
        JSON in the Trace Event Format; times in us. One process a model with a queue counter;
        one process a device with one thread an instance (batches) and one a stage.
    """
    shown = min(len(records.batch_start_ns), BATCHES_MAX)
    events: list[dict[str, Any]] = []
    for model, name in enumerate(facts.models):
        events.append(_named("process_name", 1 + model, 0, f"model {name}"))
    first_device = 1 + len(facts.models)
    for device, name in enumerate(facts.devices):
        events.append(_named("process_name", first_device + device, 0, f"device {name}"))
    for number, (model, device) in enumerate(facts.instances):
        title = f"{facts.models[model]} instance {number}"
        events.append(_named("thread_name", first_device + device, 10 * number + 1, title))
        for i, stage in enumerate(_STAGES):
            thread = 10 * number + 2 + i
            events.append(_named("thread_name", first_device + device, thread, f"{title} {stage}"))
    for batch in range(shown):
        events += _batch(records, facts, batch, first_device)
    end_ns = int(records.batch_finish_ns[:shown].max()) if shown else 0
    for model in range(len(facts.models)):
        events += _queue(records, facts, model, end_ns)
    total = len(records.batch_start_ns)
    note = f"first {shown} of {total} batches" if shown < total else f"all {total} batches"
    data = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"made_by": label, "shows": note},
    }
    return json.dumps(data, separators=(",", ":"))


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _batch(records: Records, facts: Facts, batch: int, first_device: int) -> list[dict[str, Any]]:
    """Slices of one batch: the whole on its instance's track, each stage on its own."""
    number = int(records.batch_instance[batch])
    process = first_device + int(records.batch_device[batch])
    start_ns = int(records.batch_start_ns[batch])
    finish_ns = int(records.batch_finish_ns[batch])
    slices = [
        {
            "ph": "X",
            "name": f"{facts.models[records.batch_model[batch]]} x{records.batch_items[batch]}",
            "pid": process,
            "tid": 10 * number + 1,
            "ts": start_ns / 1e3,
            "dur": (finish_ns - start_ns) / 1e3,
            "args": {
                "batch": batch,
                "requests": int(records.batch_count[batch]),
                "items": int(records.batch_items[batch]),
                "gear": int(records.batch_gear[batch]),
            },
        }
    ]
    at_ns = start_ns
    columns = (records.host_ns, records.input_ns, records.compute_ns, records.output_ns)
    for i, (stage, column) in enumerate(zip(_STAGES, columns, strict=True)):
        duration_ns = int(column[batch])
        if duration_ns:
            slices.append(
                {
                    "ph": "X",
                    "name": stage,
                    "pid": process,
                    "tid": 10 * number + 2 + i,
                    "ts": at_ns / 1e3,
                    "dur": duration_ns / 1e3,
                    "args": {"batch": batch},
                }
            )
        at_ns += duration_ns
    return slices


def _queue(records: Records, facts: Facts, model: int, end_ns: int) -> list[dict[str, Any]]:
    """Counter of the requests that wait for a model."""
    mine = records.model == model
    entered = records.arrival_ns[mine] + facts.receive_ns
    left = np.maximum(records.start_ns[mine], entered)
    times = np.concatenate([entered, left])
    steps = np.concatenate([np.ones(len(entered), np.int64), -np.ones(len(left), np.int64)])
    order = np.lexsort((steps, times))
    times, length = times[order], np.cumsum(steps[order])
    last = np.append(np.diff(times) > 0, True) if len(times) else np.zeros(0, bool)
    keep = last & (times <= end_ns)  # one value an instant, while batches are shown
    return [
        {
            "ph": "C",
            "name": f"queue {facts.models[model]}",
            "pid": 1 + model,
            "ts": t / 1e3,
            "args": {"waiting": n},
        }
        for t, n in zip(times[keep].tolist(), length[keep].tolist(), strict=True)
    ]
