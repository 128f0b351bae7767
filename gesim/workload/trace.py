"""Recorded arrivals: trace files of many forms become a workload.

Theory of operation
-------------------
A file is read into a table, a preset or the scenario's `columns` say which column is what, and
times become int ns from the first arrival (`gesim.workload.trace_times`: units, rounded stamps,
counts). What the trace does not say comes from the mix. The order of work is fixed: sort,
dither, cut at `start`, cut at `limit`, scale; so a longer or a later part of a trace holds the
very same arrivals. The table's index keeps the rows of the file, for messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.errors import WorkloadError
from gesim.units import suggest, write_time
from gesim.workload.base import Chunk, Served
from gesim.workload.loops import Counted, Recorded
from gesim.workload.mix import Mix
from gesim.workload.trace_file import read_table
from gesim.workload.trace_times import (
    MOST_NS,
    UNITS,
    column,
    counts_of,
    dithered,
    rescaled,
    spread_counts,
    times_of,
)

__all__ = ["PRESETS", "read_trace"]

Int = NDArray[np.int64]

PRESETS: dict[str, dict[str, str]] = {
    "azure-llm": {"arrival": "TIMESTAMP", "unit": "datetime", "length": "ContextTokens"},
    "mooncake": {"arrival": "timestamp", "unit": "ms", "length": "input_length"},
    "alpaserve": {"arrival": "arrive", "unit": "s", "model": "model"},
    "counts-per-second": {"count": "count"},
    "triton-trace": {"arrival": "arrival_ns", "unit": "ns", "model": "model"},
    "perf-analyzer": {"arrival": "timestamp", "unit": "ns"},
}
"""What is where in known formats; a scenario's own `columns` overrides it."""


def read_trace(
    spec: Any,
    mix: Mix,
    seed: int,
    end_ns: int,
    requests: int | None,
    base: Path,
    models: Sequence[Served],
    must_name_models: bool = False,
) -> Recorded | Counted:
    """Read a trace file.

    Parameters
    ----------
    spec : object
        `gesim.scenario.arrivals.Trace`: file, preset, columns, sort, dither, start_ns, limit,
        scale.
    mix : Mix
        Fills in what the trace does not say.
    seed : int
    end_ns : int
        Arrivals before this time only.
    requests : int or None
        That many at most.
    base : Path
        Folder of the scenario.
    models : sequence of Served
        Those that a model column may name, by index.
    must_name_models : bool
        Nothing else says which model requests ask for.

    Returns
    -------
    Recorded or Counted
        `notes` of it say what was done to the times.

    Raises
    ------
    WorkloadError
        With file, row and value.
    """
    path = base / Path(spec.file).expanduser()
    given = spec.columns.model_dump(exclude_none=True) if spec.columns is not None else {}
    columns = PRESETS.get(spec.preset or "", {}) | given
    table = read_table(path, spec.preset)
    if not len(table):
        raise WorkloadError(f"{path}: the trace is empty")
    limits = [n for n in (spec.limit, requests) if n is not None]
    limit = min(limits) if limits else None
    if "count" in columns:
        if must_name_models:
            raise _nameless(path, models)
        return _counted(path, table, columns["count"], spec, mix, seed, end_ns, limit)
    for name in given:
        if name not in ("arrival", "unit"):
            column(path, table, given[name])
    notes: list[str] = []
    times = times_of(path, table, columns)
    times, table = _sorted(path, times, table, columns, spec.sort, notes)
    times = dithered(times - times[0], spec.dither, seed, notes)
    times, table = _cut(path, times, table, spec.start_ns, limit)
    times = rescaled(times, spec.scale)
    model = _models(path, table, columns, models, mix)
    if model is None and must_name_models:
        raise _nameless(path, models)
    chunk = _attributes(path, mix.chunk(times, model), table, columns)
    _check(path, chunk, table, models)
    if times[-1] >= end_ns:
        keep = int(np.searchsorted(times, end_ns))
        chunk = Chunk(**{name: values[:keep] for name, values in vars(chunk).items()})
    return Recorded(chunk, notes=[f"trace {path.name}: {note}" for note in notes])


def _counted(
    path: Path,
    table: pd.DataFrame,
    name: str,
    spec: Any,
    mix: Mix,
    seed: int,
    end_ns: int,
    limit: int | None,
) -> Counted:
    """Make arrivals of a column of counts, drawn while the run needs them."""
    for key, idle in (("dither", spec.dither != "auto"), ("sort", spec.sort)):
        if idle:
            raise WorkloadError(
                f"{path}: {key} has no effect on counts, which are spread evenly over their "
                f"seconds in the order of the file; remove {key}"
            )
    counts = counts_of(path, table, name)
    later = counts[spec.start_ns // UNITS["s"] :]
    if not later.any():
        raise _beyond(path, spec.start_ns, len(counts) * UNITS["s"])
    expected = int(later.sum()) if limit is None else min(int(later.sum()), limit)
    times = spread_counts(counts, spec.start_ns, spec.scale, seed)
    note = f"trace {path.name}: each request was put at a random place inside its second"
    return Counted(times, mix, end_ns, limit, expected=expected, notes=[note])


def _sorted(
    path: Path,
    times: Int,
    table: pd.DataFrame,
    columns: dict[str, str],
    sort: bool,
    notes: list[str],
) -> tuple[Int, pd.DataFrame]:
    back = np.flatnonzero(np.diff(times) < 0)
    if not len(back):
        return times, table
    name = columns.get("arrival", "arrival_ns")
    raw, row = table[name], int(back[0]) + 1
    if not sort:
        raise WorkloadError(
            f"{path}: the trace is not sorted: row {row + 1} ({name} {raw.iloc[row]}) comes after "
            f"row {row} ({raw.iloc[row - 1]}); sort it by {name}, or write sort: true"
        )
    notes.append(f"rows were sorted by {name}: {len(back):,} came before their predecessors")
    order = np.argsort(times, kind="stable")
    return times[order], table.iloc[order]


def _cut(
    path: Path, times: Int, table: pd.DataFrame, start_ns: int, limit: int | None
) -> tuple[Int, pd.DataFrame]:
    """Leave out what comes before `start_ns`, which becomes time 0, and beyond the limit."""
    first = int(np.searchsorted(times, start_ns))
    if first == len(times):
        raise _beyond(path, start_ns, int(times[-1]))
    last = len(times) if limit is None else first + limit
    return times[first:last] - start_ns, table.iloc[first:last]


def _beyond(path: Path, start_ns: int, length_ns: int) -> WorkloadError:
    return WorkloadError(
        f"{path}: start {write_time(start_ns)} is after the last arrival: the trace is "
        f"{write_time(length_ns)} long"
    )


def _nameless(path: Path, models: Sequence[Served]) -> WorkloadError:
    names = ", ".join(model.name for model in models)
    return WorkloadError(
        f"{path}: the trace does not say which of {names} a request asks for; "
        "name its column with columns: {model: ...}, or write a mix"
    )


# ---- attributes ----------------------------------------------------------------------------


def _attributes(path: Path, chunk: Chunk, table: pd.DataFrame, columns: dict[str, str]) -> Chunk:
    """Put what the trace says in place of what the mix says."""
    made: dict[str, Int] = dict(vars(chunk))
    for key, target in (
        ("priority", "level"),
        ("items", "items"),
        ("length", "length"),
    ):
        if key in columns and columns[key] in table.columns:
            values = _numbers(path, table, columns[key])
            # Triton: priority 0 is the default level, which the mix knows.
            made[target] = np.where(values > 0, values, made[target])
    for key, target in (
        ("deadline", "deadline_ns"),
        ("timeout", "timeout_ns"),
        ("work", "work_ns"),
    ):
        if key in columns:
            name = columns[key]
            unit = next((u for u in UNITS if name.endswith(f"_{u}")), "ns")
            values = _numbers(path, table, name, UNITS[unit])
            if key == "deadline":
                values = np.where(values > 0, chunk.arrival_ns + values, NEVER_NS)
            made[target] = values
    return Chunk(**made)


def _numbers(path: Path, table: pd.DataFrame, name: str, unit_ns: int | None = None) -> Int:
    """Read times of a unit as ns; or whole numbers."""
    values = pd.to_numeric(column(path, table, name), errors="coerce").to_numpy(np.float64)
    wrong = ~((values >= 0) & (values <= MOST_NS / (unit_ns or 1)))
    if unit_ns is None:
        wrong |= values != np.floor(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        kind = "a number" if unit_ns else "a whole number"
        raise WorkloadError(
            f"{path}: row {table.index[row] + 1}: {name} {table[name].iloc[row]!r} is not {kind} "
            "of 0 or more"
        )
    whole: Int = np.rint(values * (unit_ns or 1)).astype(np.int64)
    return whole


def _models(
    path: Path, table: pd.DataFrame, columns: dict[str, str], models: Sequence[Served], mix: Mix
) -> Int | None:
    """Return the model of each row; None where the trace does not say, or there is only one."""
    if len(models) < 2 or columns.get("model") not in table.columns:
        return None
    known = [model.name for model in models]
    in_mix = {kind.model for kind in mix.kinds}
    codes, names = pd.factorize(table[columns["model"]], use_na_sentinel=False)
    index = np.zeros(len(names), np.int64)
    for code, name in enumerate(names):
        if name not in known:
            problem = f"is not in the scenario{suggest(str(name), known)} ({', '.join(known)})"
        elif known.index(name) not in in_mix:
            problem = "has no entry in the mix; add one, or leave the mix out"
        else:
            index[code] = known.index(name)
            continue
        row = table.index[int(np.argmax(codes == code))] + 1
        raise WorkloadError(f"{path}: row {row}: model {name!r} {problem}")
    return index[codes]


def _check(path: Path, chunk: Chunk, table: pd.DataFrame, models: Sequence[Served]) -> None:
    """Look for levels and lengths that the models do not have."""
    if not models:
        return
    most = np.asarray([model.levels for model in models])[chunk.model]
    wrong = np.flatnonzero(chunk.level > most)
    if len(wrong):
        row = int(wrong[0])
        model = models[chunk.model[row]]
        raise WorkloadError(
            f"{path}: row {table.index[row] + 1}: {chunk.level[row]} is no priority level of model "
            f"{model.name!r}, which has priority_levels: {model.levels}"
        )
    most = np.asarray([model.longest or NEVER_NS for model in models])[chunk.model]
    wrong = np.flatnonzero(chunk.length > most)
    if len(wrong):
        row = int(wrong[0])
        model = models[chunk.model[row]]
        raise WorkloadError(
            f"{path}: row {table.index[row] + 1}: length {chunk.length[row]} is longer than the "
            f"longest that model {model.name!r} is compiled for, {model.longest} "
            f"({len(wrong):,} of {len(chunk):,} rows are)"
        )
