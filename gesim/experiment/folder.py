"""Result folders: written whole or not at all.

scenario.yaml      the resolved scenario: run it again
summary.json       the numbers; the same bytes for the same seed and version
run.json           what differs from run to run: versions, times, command
requests.parquet   one row a request
batches.parquet    one row a batch
curves.npz         for the figures of a run too long to be kept request by request
trace.json         for ui.perfetto.dev
report.html        for people

`gesim.experiment.reopen` reads them back.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gesim.errors import ResultError

if TYPE_CHECKING:
    import pandas as pd

    from gesim.experiment.result import Result

__all__ = ["FILES", "FORMAT", "check_target", "save", "summary_text"]

FORMAT = 1
"""Version of the folder's layout."""

FILES = (
    "scenario.yaml", "summary.json", "run.json", "requests.parquet", "batches.parquet",
    "curves.npz", "trace.json", "report.html",
)  # fmt: skip
"""Files of a result."""


def check_target(folder: str | Path) -> Path:
    """Make sure that a result may be written to a folder, before hours are spent on it.

    Parameters
    ----------
    folder : str or Path
        Not there yet, empty, or an earlier result without anything else in it.

    Returns
    -------
    Path
        Absolute, links followed.

    Raises
    ------
    ResultError
        If something of somebody else is there, or nothing can be written there.
    """
    folder = Path(folder).expanduser().resolve()
    if folder.exists():
        if not folder.is_dir():
            raise ResultError(f"{folder} is a file; a result needs a folder: choose another one")
        foreign = _foreign(folder)
        if foreign:
            raise ResultError(
                f"{folder} holds {foreign}, which is not of a gesim result, and is left alone; "
                "choose another folder, or remove it"
            )
    above = folder.parent
    while not above.exists():
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ResultError(f"{folder} cannot be written: {above} is not a folder that allows it")
    return folder


def _foreign(folder: Path) -> str:
    """Name something in the folder that an earlier result did not put there; empty if nothing."""
    names = sorted(path.name for path in folder.iterdir())
    others = [name for name in names if name not in FILES]
    if others:
        return others[0]
    if not names:
        return ""
    try:
        about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        about = None
    ours = isinstance(about, Mapping) and "gesim" in about and "format" in about
    return "" if ours else names[0]


def save(result: Result, folder: str | Path) -> Path:
    """Write a result folder: beside the target first, then renamed into place.

    Raises
    ------
    ResultError
        If the target exists and is no result folder, or cannot be written.
    """
    folder = check_target(folder)
    beside = folder.parent / f".{folder.name}-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        _write(result, beside)
        _put_in_place(beside, folder)
    except OSError as error:
        raise ResultError(f"{folder} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _put_in_place(beside: Path, folder: Path) -> None:
    """Rename; what was there before goes only when the new result stands."""
    if not folder.exists() or not any(folder.iterdir()):
        beside.replace(folder)
        return
    old = beside.with_name(f"{beside.name}-old")
    folder.replace(old)
    try:
        beside.replace(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            old.replace(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(result: Result, folder: Path) -> None:
    from gesim.report.html import page
    from gesim.report.perfetto import trace

    resolved = yaml.safe_dump(result.scenario.resolved(), sort_keys=False, allow_unicode=True)
    first = result.runs[0].records
    texts = {
        "scenario.yaml": f"# {result.label}\n{resolved}",
        "summary.json": summary_text(result),
        "run.json": json.dumps(_run_facts(result), indent=2) + "\n",
        "trace.json": trace(first, result.facts, result.label),
        "report.html": page(
            result.label,
            result.scenario.description,
            result.summary_dict,
            result.expectations,
            first,
            result.facts,
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    _write_table(result, result.requests(), folder / "requests.parquet")
    _write_table(result, result.batches(), folder / "batches.parquet")
    if first.curves is not None:
        first.curves.save(folder / "curves.npz")


def _write_table(result: Result, frame: pd.DataFrame, path: Path) -> None:
    """Write a frame; the file says who made it."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    made_by = {
        "gesim": result.version,
        "fidelity": f"simulated ({result.fidelity})",
        "engine": result.engine,
        "seed": str(result.seed),
        "label": result.label,
    }
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **made_by})
    parquet.write_table(table, path, compression="zstd")


def summary_text(result: Result) -> str:
    """Write summary.json: deterministic bytes, no time of day, no machine."""
    data = {
        "gesim": result.version,
        "fidelity": result.fidelity,
        "simulated": True,
        "engine": result.engine,
        "scenario": result.scenario.name,
        "seed": result.seed,
        "seeds": [run.seed for run in result.runs],
        "partial": result.partial,
        **result.summary_dict,
        "expect": [one._asdict() for one in result.expectations],
    }
    if len(result.runs) > 1:
        data["runs"] = [run.summary for run in result.runs]
    return json.dumps(data, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _run_facts(result: Result) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "gesim": result.version,
        "fidelity": result.fidelity,
        "engine": result.engine,
        "engine_why": result.engine_why,
        "seed": result.seed,
        "seeds": [run.seed for run in result.runs],
        "partial": result.partial,
        "warnings": result.warnings,
        "wall_s": round(result.wall_s, 3),
        **result.made,
        "facts": asdict(result.facts),
        "interrupted_ns": [run.records.interrupted_ns for run in result.runs],
    }
