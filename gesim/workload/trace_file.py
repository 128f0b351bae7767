"""Trace files of many forms become tables."""

from __future__ import annotations

import gzip
import json
import zlib
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from gesim.errors import WorkloadError

__all__ = ["read_table"]

_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, zlib.error)
"""What readers raise for a file that is damaged, or of another kind."""


def read_table(path: Path, preset: str | None) -> pd.DataFrame:
    """Read a file into a frame, by its preset and its name.

    Parameters
    ----------
    path : Path
        CSV unless the name, less a ``.gz``, ends in parquet, json, jsonl or ndjson.
    preset : str or None
        Three of them are JSON of a shape of their own, whatever the name.

    Raises
    ------
    WorkloadError
        If it is not there, or is something else.
    """
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
            return _lines(_text(path))
        if name.endswith(".json"):
            return _objects(json.loads(_text(path)))
        return pd.read_csv(path)
    except _UNREADABLE as error:
        kind = f" as {preset}" if preset else ""
        why = "it ends too early" if isinstance(error, EOFError) else f"{error}".strip()
        raise WorkloadError(f"{path}: cannot be read{kind}: {why}") from None


def _lines(text: str) -> pd.DataFrame:
    """Read one JSON object a line."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON: {error}") from None
    return _objects(rows)


def _objects(rows: Any) -> pd.DataFrame:
    """Make a table of a list of JSON objects."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError('it must hold objects, like {"arrival_ns": 5}, in a list or one a line')
    return pd.DataFrame(rows)


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
    """Take the first queue or request time of each trace, and its model.

    Traces with a parent are left out: an ensemble made these requests, no client.
    """
    found: dict[Any, dict[str, Any]] = {}
    for record in data:
        entry = found.setdefault(record["id"], {})
        entry["inner"] = entry.get("inner") or bool(record.get("parent_id"))
        entry.setdefault("model", record.get("model_name"))
        if record.get("model_name"):
            entry["model"] = record["model_name"]
        for stamp in record.get("timestamps", []):
            if stamp["name"] in ("REQUEST_START", "QUEUE_START"):
                entry[stamp["name"]] = int(stamp["ns"])
    rows = [
        (entry.get("REQUEST_START", entry.get("QUEUE_START")), entry["model"])
        for entry in found.values()
        if not entry["inner"] and ("REQUEST_START" in entry or "QUEUE_START" in entry)
    ]
    rows.sort(key=itemgetter(0))
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
