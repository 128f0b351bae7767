"""Recorded arrivals: trace files of many forms become one `Recorded` workload.

Theory of operation
-------------------
A file is read into a table, a preset or the scenario's `columns` say which column is what, and
times become int ns from the first arrival. Rounded stamps are *dithered*: on a trace with 1-ms
stamps the tie rule alone moved the mean batch from 9.0 to 12.5, so each arrival is spread
uniformly inside its tick by a named stream, and the order inside a tick is that of the draws.
"""

from __future__ import annotations

import gzip
import json
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

__all__ = ["PRESETS", "read_trace"]

Int = NDArray[np.int64]

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
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

    Raises
    ------
    WorkloadError
        With file, row and value.
    """
    path = base / Path(spec.file).expanduser()
    columns = dict(PRESETS.get(spec.preset or "", {}))
    if spec.columns is not None:
        columns |= {k: v for k, v in spec.columns.model_dump().items() if v is not None}
    table = _table(path, spec.preset, columns)
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
    chunk = _attributes(path, mix.chunk(times), table, columns, models)
    if times[-1] >= end_ns:
        keep = int(np.searchsorted(times, end_ns))
        chunk = Chunk(**{name: column[:keep] for name, column in vars(chunk).items()})
    return Recorded(chunk)


# ---- files ---------------------------------------------------------------------------------


def _table(path: Path, preset: str | None, columns: dict[str, str]) -> pd.DataFrame:
    """Read a file into a frame, by its preset and its name."""
    if not path.is_file():
        raise WorkloadError(f"there is no trace file {path}")
    name = path.name.removesuffix(".gz")
    try:
        if preset in ("alpaserve", "triton-trace", "perf-analyzer"):
            data = json.loads(_text(path))
            if preset == "alpaserve":
                return _alpaserve(data)
            return _triton(data) if preset == "triton-trace" else _perf_analyzer(data)
        if name.endswith(".parquet"):
            return pd.read_parquet(path)
        if name.endswith((".jsonl", ".ndjson")):
            lines = [line for line in _text(path).splitlines() if line.strip()]
            return pd.DataFrame([json.loads(line) for line in lines])
        return pd.read_csv(path)
    except (ValueError, KeyError, TypeError, OSError, UnicodeDecodeError) as error:
        kind = f" as {preset}" if preset else ""
        raise WorkloadError(f"{path}: cannot be read{kind}: {error}") from None


def _text(path: Path) -> str:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read()
    return path.read_text(encoding="utf-8")


def _alpaserve(data: dict[str, Any]) -> pd.DataFrame:
    """Flatten {model: {arrive: [s], ...}}; the models' requests are merged by time."""
    rows = [(t, model) for model, log in data.items() for t in log["arrive"]]
    rows.sort()
    return pd.DataFrame(rows, columns=["arrive", "model"])


def _triton(data: list[dict[str, Any]]) -> pd.DataFrame:
    """Take the first queue or request time of each trace, and its model."""
    found: dict[Any, dict[str, Any]] = {}
    for record in data:
        entry = found.setdefault(record["id"], {})
        entry.setdefault("model", record.get("model_name"))
        if record.get("model_name"):
            entry["model"] = record["model_name"]
        for stamp in record.get("timestamps", []):
            if stamp["name"] in ("REQUEST_START", "QUEUE_START"):
                entry[stamp["name"]] = int(stamp["ns"])
    rows = [
        (entry.get("REQUEST_START", entry.get("QUEUE_START")), entry["model"])
        for entry in found.values()
        if "REQUEST_START" in entry or "QUEUE_START" in entry
    ]
    rows.sort()
    frame = pd.DataFrame(rows, columns=["arrival_ns", "model"])
    return frame.drop(columns="model") if frame["model"].isna().any() else frame


def _perf_analyzer(data: dict[str, Any]) -> pd.DataFrame:
    """Take the requests' timestamps of a profile export, all experiments in turn."""
    stamps = sorted(
        int(request["timestamp"])
        for experiment in data["experiments"]
        for request in experiment["requests"]
    )
    return pd.DataFrame({"timestamp": stamps})


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
    if raw.isna().any():
        row = int(np.flatnonzero(raw.isna())[0])
        raise WorkloadError(f"{path}: row {row + 1}: column {name!r} has no value (NaN)")
    try:
        if unit == "datetime":
            times = pd.to_datetime(raw).to_numpy("datetime64[ns]").astype(np.int64)
        elif pd.api.types.is_integer_dtype(raw):
            times = raw.to_numpy(np.int64) * _UNITS[unit]
        else:
            # Subtract first: float seconds since 1970 have no digits left for ns.
            values = raw.to_numpy(np.float64)
            if not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                raise WorkloadError(f"{path}: row {row + 1}: {name} is {values[row]}")
            whole = np.floor(values)
            times = whole.astype(np.int64) * _UNITS[unit] + np.rint(
                (values - whole) * _UNITS[unit]
            ).astype(np.int64)
    except (ValueError, TypeError) as error:
        raise WorkloadError(f"{path}: column {name!r} does not hold times: {error}") from None
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


def _attributes(
    path: Path, chunk: Chunk, table: pd.DataFrame, columns: dict[str, str], models: Sequence[str]
) -> Chunk:
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
            values = _numbers(path, table, name) * _UNITS[unit]
            if key == "deadline":
                values = np.where(values > 0, chunk.arrival_ns + values, NEVER_NS)
            made[target] = values
    if "model" in columns and columns["model"] in table.columns and len(models) > 1:
        made["model"] = _models(path, table[columns["model"]], models)
    return Chunk(**made)


def _numbers(path: Path, table: pd.DataFrame, name: str) -> Int:
    values = pd.to_numeric(_column(path, table, name), errors="coerce").to_numpy(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(wrong):
        row = int(wrong[0])
        raise WorkloadError(
            f"{path}: row {row + 1}: {name} {table[name].iloc[row]!r} is not a number of 0 or more"
        )
    whole: Int = np.rint(values).astype(np.int64)
    return whole


def _models(path: Path, names: pd.Series[Any], models: Sequence[str]) -> Int:
    index = {name: i for i, name in enumerate(models)}
    for row, name in enumerate(names):
        if name not in index:
            raise WorkloadError(
                f"{path}: row {row + 1}: model {name!r} is not in the scenario"
                f"{suggest(str(name), models)} ({', '.join(models)})"
            )
    return np.asarray([index[name] for name in names], np.int64)
