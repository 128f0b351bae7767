"""Recorded arrivals: trace files of many forms become one `Recorded` workload.

Theory of operation
-------------------
A file is read into a table, a preset or the scenario's `columns` say which column is what, and
times become int ns from the first arrival. Rounded stamps are *dithered*: on a trace with 1-ms
stamps the tie rule alone moved the mean batch from 9.0 to 12.5, so each arrival is spread
uniformly inside its tick by a named stream, and the order inside a tick is that of the draws.
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
from gesim.rng import stream
from gesim.units import parse_time_ns, suggest
from gesim.workload.base import Chunk
from gesim.workload.loops import Recorded
from gesim.workload.mix import Mix
from gesim.workload.trace_file import read_table

__all__ = ["PRESETS", "read_trace"]

Int = NDArray[np.int64]

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_MOST_NS = 2**61
_TICKS = (60_000_000_000, 1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000)

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
    models: Sequence[str],
    levels: Sequence[int] = (),
    must_name_models: bool = False,
) -> Recorded:
    """Read a trace file.

    Parameters
    ----------
    spec : object
        `gesim.scenario.arrivals.Trace`: file, preset, columns, scale, dither, limit.
    mix : Mix
        Fills in what the trace does not say.
    seed : int
    end_ns : int
        Arrivals before this time only.
    requests : int or None
        That many at most.
    base : Path
        Folder of the scenario.
    models : sequence of str
        Names that a model column may hold.
    levels : sequence of int
        Priority levels of each model; empty for any.
    must_name_models : bool
        Nothing else says which model requests ask for.

    Raises
    ------
    WorkloadError
        With file, row and value.
    """
    path = base / Path(spec.file).expanduser()
    columns = dict(PRESETS.get(spec.preset or "", {}))
    if spec.columns is not None:
        columns |= {k: v for k, v in spec.columns.model_dump().items() if v is not None}
    table = read_table(path, spec.preset)
    if not len(table):
        raise WorkloadError(f"{path}: the trace is empty")
    if "count" in columns:
        times = _from_counts(path, table, columns, seed)
        table = pd.DataFrame(index=range(len(times)))
        columns = {}
    else:
        times = _times(path, table, columns)
    limits = [n for n in (spec.limit, requests) if n is not None]
    if limits:
        times, table = times[: min(limits)], table.iloc[: min(limits)]
    times = times - times[0]
    times = _dithered(times, spec.dither, seed) if "count" not in columns else times
    if spec.scale != 1.0:
        times = np.rint(times / spec.scale).astype(np.int64)
    model = _models(path, table, columns, models, mix)
    if model is None and must_name_models:
        raise WorkloadError(
            f"{path}: the trace does not say which of {', '.join(models)} a request asks for; "
            "name its column with columns: {model: ...}, or write a mix"
        )
    chunk = _attributes(path, mix.chunk(times, model), table, columns)
    _check_levels(path, chunk, models, levels)
    if times[-1] >= end_ns:
        keep = int(np.searchsorted(times, end_ns))
        chunk = Chunk(**{name: column[:keep] for name, column in vars(chunk).items()})
    return Recorded(chunk)


# ---- times ---------------------------------------------------------------------------------


def _column(path: Path, table: pd.DataFrame, name: str) -> pd.Series[Any]:
    if name not in table.columns:
        known = [str(column) for column in table.columns]
        raise WorkloadError(
            f"{path}: there is no column {name!r}{suggest(name, known)} "
            f"(columns: {', '.join(known)}); say which with columns: {{arrival: ..., unit: ...}}"
        )
    return table[name]


def _times(path: Path, table: pd.DataFrame, columns: dict[str, str]) -> Int:
    """Arrival times in ns, checked: numbers, not negative, sorted."""
    name = columns.get("arrival", "arrival_ns")
    raw = _column(path, table, name)
    unit = columns.get("unit") or next((u for u in _UNITS if name.endswith(f"_{u}")), None)
    if unit is None:
        raise WorkloadError(
            f"{path}: the unit of column {name!r} is open; write columns: {{arrival: {name}, "
            "unit: ns|us|ms|s|datetime}"
        )
    wrong = np.flatnonzero(raw.isna())
    if len(wrong):
        raise WorkloadError(f"{path}: row {wrong[0] + 1}: column {name!r} has no value (NaN)")
    try:
        times = _datetimes(raw) if unit == "datetime" else _counted(path, raw, _UNITS[unit])
    except (ValueError, TypeError) as error:
        why = str(error).splitlines()[0]
        raise WorkloadError(f"{path}: column {name!r} does not hold times: {why}") from None
    if (times < 0).any():
        row = int(np.flatnonzero(times < 0)[0])
        raise WorkloadError(f"{path}: row {row + 1}: {name} is {raw.iloc[row]}, before time 0")
    back = np.flatnonzero(np.diff(times) < 0)
    if len(back):
        row = int(back[0]) + 1
        raise WorkloadError(
            f"{path}: the trace is not sorted: row {row + 1} ({name} {raw.iloc[row]}) comes after "
            f"row {row} ({raw.iloc[row - 1]}); sort it by {name}"
        )
    return times


def _datetimes(raw: pd.Series[Any]) -> Int:
    """Read dates; of ISO 8601 also such as write a fraction only where there is one."""
    try:
        stamps = pd.to_datetime(raw, format="ISO8601")
    except (ValueError, TypeError):
        stamps = pd.to_datetime(raw)
    times: Int = stamps.to_numpy("datetime64[ns]").astype(np.int64)
    return times


def _counted(path: Path, raw: pd.Series[Any], unit_ns: int) -> Int:
    """Read numbers of a unit since any moment."""
    numbers = pd.to_numeric(raw, errors="coerce")
    values = numbers.to_numpy(np.float64)
    # Beyond that int64 ns would wrap around: the unit is probably not what it is called.
    wrong = np.flatnonzero(~(np.abs(values) <= _MOST_NS / unit_ns))
    if len(wrong):
        row = int(wrong[0])
        why = "too large for its unit" if np.isfinite(values[row]) else "not a number"
        raise WorkloadError(
            f"{path}: column {raw.name!r} does not hold times: row {row + 1}: {raw.iloc[row]} is "
            f"{why}"
        )
    if pd.api.types.is_integer_dtype(numbers):
        exact: Int = numbers.to_numpy(np.int64) * unit_ns
        return exact
    # Apart: float seconds since 1970 have no digits left for ns.
    whole = np.floor(values)
    inside: Int = np.rint((values - whole) * unit_ns).astype(np.int64)
    inside += whole.astype(np.int64) * unit_ns
    return inside


def _from_counts(path: Path, table: pd.DataFrame, columns: dict[str, str], seed: int) -> Int:
    """Spread each second's count uniformly over the second."""
    counts = pd.to_numeric(_column(path, table, columns["count"]), errors="coerce")
    values = counts.to_numpy(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0) | (values != np.floor(values)))
    if len(wrong):
        row = int(wrong[0])
        raise WorkloadError(
            f"{path}: row {row + 1}: count {table[columns['count']].iloc[row]!r} is not a whole "
            "number of 0 or more"
        )
    whole = values.astype(np.int64)
    if not whole.sum():
        raise WorkloadError(f"{path}: all counts are 0: the trace is empty")
    second = np.repeat(np.arange(len(whole), dtype=np.int64), whole)
    inside = stream(seed, "dither").integers(0, 1_000_000_000, len(second))
    return np.sort(second * 1_000_000_000 + inside)


def _dithered(times: Int, wanted: str, seed: int) -> Int:
    """Spread rounded stamps inside their tick."""
    if wanted == "none" or len(times) < 2:
        return times
    tick = _tick(times) if wanted == "auto" else parse_time_ns(wanted)
    if tick < 2:
        return times
    inside = stream(seed, "dither").integers(0, tick, len(times))
    spread = np.sort(times + inside)
    moved: Int = spread - spread[0]
    return moved


def _tick(times: Int) -> int:
    """Find the tick that stamps were rounded to; 0 if they were not, or not coarser than 1 us.

    Stamps on a tick by chance are rare: with 20 or more of them the answer is certain.
    """
    if len(times) < 20:
        return 0
    for tick in _TICKS:
        if not (times % tick).any():
            return tick
    return 0


# ---- attributes ----------------------------------------------------------------------------


def _attributes(path: Path, chunk: Chunk, table: pd.DataFrame, columns: dict[str, str]) -> Chunk:
    """Put what the trace says in place of what the mix says."""
    made = {name: np.array(column) for name, column in vars(chunk).items()}
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
            unit = next((u for u in _UNITS if name.endswith(f"_{u}")), "ns")
            values = _numbers(path, table, name, _UNITS[unit])
            if key == "deadline":
                values = np.where(values > 0, chunk.arrival_ns + values, NEVER_NS)
            made[target] = values
    return Chunk(**made)


def _numbers(path: Path, table: pd.DataFrame, name: str, unit_ns: int | None = None) -> Int:
    """Read times of a unit as ns; or whole numbers."""
    values = pd.to_numeric(_column(path, table, name), errors="coerce").to_numpy(np.float64)
    wrong = ~((values >= 0) & (values <= _MOST_NS / (unit_ns or 1)))
    if unit_ns is None:
        wrong |= values != np.floor(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        kind = "a number" if unit_ns else "a whole number"
        raise WorkloadError(
            f"{path}: row {row + 1}: {name} {table[name].iloc[row]!r} is not {kind} of 0 or more"
        )
    whole: Int = np.rint(values * (unit_ns or 1)).astype(np.int64)
    return whole


def _models(
    path: Path, table: pd.DataFrame, columns: dict[str, str], models: Sequence[str], mix: Mix
) -> Int | None:
    """Return the model of each row; None where the trace does not say, or there is only one."""
    if len(models) < 2 or columns.get("model") not in table.columns:
        return None
    index = {name: i for i, name in enumerate(models)}
    names = table[columns["model"]]
    known = {kind.model for kind in mix.kinds}
    for row, name in enumerate(names):
        if name not in index:
            raise WorkloadError(
                f"{path}: row {row + 1}: model {name!r} is not in the scenario"
                f"{suggest(str(name), models)} ({', '.join(models)})"
            )
        if index[name] not in known:
            raise WorkloadError(
                f"{path}: row {row + 1}: model {name!r} has no entry in the mix; add one, or "
                "leave the mix out"
            )
    return np.asarray([index[name] for name in names], np.int64)


def _check_levels(path: Path, chunk: Chunk, models: Sequence[str], levels: Sequence[int]) -> None:
    if not levels:
        return
    most = np.asarray(levels)[chunk.model]
    wrong = np.flatnonzero(chunk.level > most)
    if len(wrong):
        row = int(wrong[0])
        raise WorkloadError(
            f"{path}: row {row + 1}: {chunk.level[row]} is no priority level of model "
            f"{models[chunk.model[row]]!r}, which has priority_levels: {most[row]}"
        )
