"""A run as a trace for ui.perfetto.dev: queues as counters, batches and their stages as slices.

The Trace Event Format knows processes and threads; here they are

    process of a model      counter ``queue NAME``: requests waiting; thread ``lost``: requests
                            that left without an answer, by reason
    process of a device     for every instance on it one thread with its batches, and one for
                            each stage (host, input, compute, output) that takes any time

Lines are written directly: a trace has some hundred thousand events, and times are whole ns,
which floats in us would blur late in a long run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gesim.metrics.records import Facts, Records
from gesim.report.views import waiting

__all__ = ["BATCHES_MAX", "COUNTS_MAX", "trace"]

BATCHES_MAX = 20_000
"""Batches written; a viewer is of no use beyond that, and the file must open quickly."""

COUNTS_MAX = 40_000
"""Values of a queue's counter above which only its turning points are written."""

_STAGES = ("host", "input", "compute", "output")


def trace(records: Records, facts: Facts, label: str) -> str:
    """Write the trace.

    Parameters
    ----------
    records : Records
    facts : Facts
    label : str
        Who made it; stands in ``otherData`` and names every process.

    Returns
    -------
    str
        JSON in the Trace Event Format; times in us.
    """
    shown = min(len(records.batch_start_ns), BATCHES_MAX)
    end_ns = int(records.batch_finish_ns[:shown].max()) if shown else 0
    total = len(records.batch_start_ns)
    if records.curves is not None:
        note = f"the first {shown} batches; a longer run is not recorded batch by batch"
    elif shown < total:
        note = f"the first {shown} of {total} batches"
    else:
        end_ns = max(end_ns, int(records.finish_ns.max()) if len(records) else 0)
        note = f"all {total} batches"
    lines = list(_processes(facts, label))
    lines += _batches(records, facts, shown)
    for model in range(len(facts.models)):
        lines += _queue(records, facts, model, end_ns)
        lines += _lost(records, model, end_ns)
    about = json.dumps({"made_by": label, "shows": note})
    events = ",\n".join(lines)
    return f'{{"displayTimeUnit":"ms","otherData":{about},"traceEvents":[\n{events}\n]}}\n'


def _us(ns: int) -> str:
    """Write ns as us without rounding."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def _named(kind: str, process: int, thread: int, name: str) -> str:
    args = json.dumps({"name": name})
    return f'{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{args}}}'


def _processes(facts: Facts, label: str) -> Iterator[str]:
    """Name the processes; devices come first, their numbers last."""
    made_by = label.partition(": ")[2].partition(",")[0] or label
    for model, name in enumerate(facts.models):
        yield _named("process_name", 1 + model, 0, f"model {name}, {made_by}")
    for device, name in enumerate(facts.devices):
        process = 1 + len(facts.models) + device
        yield _named("process_name", process, 0, f"device {name}, {made_by}")
    for process in range(1, 1 + len(facts.models) + len(facts.devices)):
        yield (
            f'{{"ph":"M","name":"process_sort_index","pid":{process},"tid":0,'
            f'"args":{{"sort_index":{process}}}}}'
        )


def _batches(records: Records, facts: Facts, shown: int) -> Iterator[str]:
    """Slices of every batch: the whole on its instance's thread, each stage on its own."""
    first_device = 1 + len(facts.models)
    names = [json.dumps(name)[1:-1] for name in facts.models]
    stages = np.stack(
        [records.host_ns, records.input_ns, records.compute_ns, records.output_ns], axis=1
    )[:shown]
    for number, (model, device) in enumerate(facts.instances):
        process, thread = first_device + device, 10 * number + 1
        mine = np.flatnonzero(records.batch_instance[:shown] == number)
        title = f"{facts.models[model]} instance {number}"
        yield _named("thread_name", process, thread, title)
        used = [i for i in range(len(_STAGES)) if stages[mine, i].any()]
        for i in used:
            yield _named("thread_name", process, thread + 1 + i, f"{title} {_STAGES[i]}")
        for batch in mine.tolist():
            at_ns, finish_ns = records.batch_start_ns[batch], records.batch_finish_ns[batch]
            items = records.batch_items[batch]
            yield (
                f'{{"ph":"X","name":"{names[model]} x{items}","pid":{process},"tid":{thread},'
                f'"ts":{_us(int(at_ns))},"dur":{_us(int(finish_ns - at_ns))},"args":{{'
                f'"batch":{batch},"count":{records.batch_count[batch]},"items":{items},'
                f'"gear":{records.batch_gear[batch]}}}}}'
            )
            ends = (int(at_ns) + np.cumsum(stages[batch])).tolist()
            for i in used:
                duration_ns = int(stages[batch, i])
                if duration_ns:
                    yield (
                        f'{{"ph":"X","name":"{_STAGES[i]}","pid":{process},"tid":{thread + 1 + i},'
                        f'"ts":{_us(ends[i] - duration_ns)},"dur":{_us(duration_ns)}}}'
                    )


def _queue(records: Records, facts: Facts, model: int, end_ns: int) -> Iterator[str]:
    """Counter of the requests that wait for a model."""
    times, length = waiting(records, facts, model)
    if not len(times):
        return
    last = np.append(np.diff(times) > 0, True)  # one value an instant, while batches are shown
    keep = last & (times <= end_ns)
    times, length = times[keep], length[keep]
    if len(times) > COUNTS_MAX:
        turns = _turning_points(length)
        times, length = times[turns], length[turns]
    name = json.dumps(f"queue {facts.models[model]}")
    for time_ns, number in zip(times.tolist(), length.tolist(), strict=True):
        yield (
            f'{{"ph":"C","name":{name},"pid":{1 + model},"ts":{_us(time_ns)},'
            f'"args":{{"waiting":{number}}}}}'
        )


def _turning_points(length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark where a queue stops growing or shrinking, and both ends."""
    rising = np.diff(length) > 0
    turns: NDArray[np.bool_] = np.concatenate([[True], rising[1:] != rising[:-1], [True]])
    return turns


def _lost(records: Records, model: int, end_ns: int) -> Iterator[str]:
    """Mark the requests of a model that left without an answer."""
    lost = (records.reason > 0) & (records.model == model) & (records.finish_ns <= end_ns)
    chosen = np.flatnonzero(lost)[:BATCHES_MAX]
    if not len(chosen):
        return
    yield _named("thread_name", 1 + model, 1, "lost")
    reasons = [json.dumps(reason) for reason in records.reasons]
    for request in chosen.tolist():
        yield (
            f'{{"ph":"i","s":"t","name":{reasons[records.reason[request]]},"pid":{1 + model},'
            f'"tid":1,"ts":{_us(int(records.finish_ns[request]))},"args":{{"request":{request}}}}}'
        )
