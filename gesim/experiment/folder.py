"""Result folders: written whole or not at all, read back into a `Result`.

scenario.yaml      the resolved scenario: run it again
summary.json       the numbers; the same bytes for the same seed and version
run.json           what differs from run to run: versions, times, command
requests.parquet   one row a request
batches.parquet    one row a batch
trace.json         for ui.perfetto.dev
report.html        for people
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gesim.errors import GesimError, ResultError
from gesim.experiment.result import Result, Run
from gesim.metrics.records import Facts, Records
from gesim.scenario.expect import check_expectations
from gesim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from pyarrow import Table

__all__ = ["FORMAT", "open_result", "save"]

FORMAT = 1
"""Version of the folder's layout."""

_LIBRARIES = ("numpy", "pandas", "pyarrow", "scipy", "simpy")


def save(result: Result, folder: Path) -> Path:
    """Write a result folder: beside the target first, then renamed into place.

    Raises
    ------
    ResultError
        If the target exists and is no result folder, or cannot be written.
    """
    folder = folder.absolute()
    if folder.exists() and not _is_replaceable(folder):
        raise ResultError(
            f"{folder} exists and is not a gesim result; choose another --out, or remove it"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise ResultError(f"{folder} cannot be written: {error.strerror}") from None
    try:
        _write(result, beside)
        beside.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
            folder.replace(old / "result")
            beside.replace(folder)
            shutil.rmtree(old)
        else:
            beside.replace(folder)
    except OSError as error:
        raise ResultError(f"{folder} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _is_replaceable(folder: Path) -> bool:
    """Only an earlier result, or an empty folder, may be replaced."""
    if not folder.is_dir():
        return False
    return (folder / "run.json").is_file() or not any(folder.iterdir())


def _write(result: Result, folder: Path) -> None:
    from pyarrow import parquet

    from gesim.report.html import page
    from gesim.report.perfetto import trace

    resolved = yaml.safe_dump(result.scenario.resolved(), sort_keys=False, allow_unicode=True)
    (folder / "scenario.yaml").write_text(f"# {result.label}\n{resolved}", encoding="utf-8")
    (folder / "summary.json").write_text(summary_text(result), encoding="utf-8")
    (folder / "run.json").write_text(json.dumps(_run_facts(result), indent=2), encoding="utf-8")
    requests = [_requests_table(run.records, i) for i, run in enumerate(result.runs)]
    batches = [_batches_table(run.records, i) for i, run in enumerate(result.runs)]
    for name, parts in (("requests", requests), ("batches", batches)):
        table = _labelled(parts, result)
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
    first = result.runs[0].records
    (folder / "trace.json").write_text(trace(first, result.facts, result.label), encoding="utf-8")
    html = page(
        result.label,
        result.scenario.description,
        result.summary_dict,
        result.expectations,
        first,
        result.facts,
    )
    (folder / "report.html").write_text(html, encoding="utf-8")


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
    return json.dumps(data, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _run_facts(result: Result) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "format": FORMAT,
        "gesim": result.version,
        "fidelity": result.fidelity,
        "engine": result.engine,
        "engine_why": result.engine_why,
        "seed": result.seed,
        "seeds": [run.seed for run in result.runs],
        "partial": result.partial,
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "wall_s": round(result.wall_s, 3),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _LIBRARIES},
        "facts": asdict(result.facts),
        "reasons": [run.records.reasons for run in result.runs],
    }


def _requests_table(records: Records, replication: int) -> Table:
    import numpy as np
    import pyarrow as pa

    columns = {"replication": np.full(len(records), replication), "id": np.arange(len(records))}
    columns |= {name: getattr(records, name) for name in Records.REQUEST_COLUMNS}
    return pa.table(columns)


def _batches_table(records: Records, replication: int) -> Table:
    import numpy as np
    import pyarrow as pa

    n = len(records.batch_model)
    columns = {"replication": np.full(n, replication), "id": np.arange(n)}
    columns |= {name: getattr(records, name) for name in Records.BATCH_COLUMNS}
    return pa.table(columns)


def _labelled(parts: list[Table], result: Result) -> Table:
    """Join replications; put into the file who made it."""
    import pyarrow as pa

    metadata = {
        "gesim": result.version,
        "fidelity": result.fidelity,
        "engine": result.engine,
        "seed": str(result.seed),
        "label": result.label,
        "models": json.dumps(result.facts.models),
        "devices": json.dumps(result.facts.devices),
    }
    return pa.concat_tables(parts).replace_schema_metadata(metadata)


def open_result(folder: str | Path) -> Result:
    """Read a result folder.

    Raises
    ------
    ResultError
        If it is not there, not a result, or damaged.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ResultError(f"{folder} is not a folder; give the folder of a result")
    if not (folder / "run.json").is_file():
        raise ResultError(f"{folder} is not a gesim result: it has no run.json")
    try:
        facts_of_run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        if not isinstance(facts_of_run, Mapping) or not isinstance(summary, Mapping):
            raise ValueError("run.json or summary.json is not a mapping")
        if facts_of_run.get("format") != FORMAT:
            raise ValueError(f"its format is {facts_of_run.get('format')!r}, not {FORMAT}")
        data = yaml.safe_load((folder / "scenario.yaml").read_text(encoding="utf-8"))
        scenario = Scenario.from_stored(data, str(folder / "scenario.yaml"), folder)
        return _result(folder, scenario, dict(facts_of_run), dict(summary))
    except GesimError:
        raise
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise ResultError(f"{folder} is damaged: {error}") from None


def _result(
    folder: Path, scenario: Scenario, about: dict[str, Any], summary: dict[str, Any]
) -> Result:
    stored = about["facts"]
    facts = Facts(
        **{
            key: _tuple(value) if isinstance(value, list) else value
            for key, value in stored.items()
        }
    )
    known = {"gesim", "fidelity", "simulated", "engine", "scenario", "seed", "seeds", "partial"}
    numbers = {key: value for key, value in summary.items() if key not in known | {"expect"}}
    return Result(
        scenario=scenario,
        seed=about["seed"],
        engine=about["engine"],
        fidelity=about["fidelity"],
        runs=_runs(folder, about, numbers),
        facts=facts,
        summary_dict=numbers,
        expectations=check_expectations(scenario, numbers),
        wall_s=about["wall_s"],
        partial=about["partial"],
        engine_why=about.get("engine_why", ""),
        version=about["gesim"],
        folder=folder,
    )


def _runs(folder: Path, about: dict[str, Any], numbers: dict[str, Any]) -> list[Run]:
    """Read the records of every replication."""
    import numpy as np
    from pyarrow import ArrowInvalid, parquet

    try:
        requests = parquet.read_table(folder / "requests.parquet")
        batches = parquet.read_table(folder / "batches.parquet")
    except ArrowInvalid as error:
        raise ResultError(f"{folder} is damaged: {error}") from None
    runs = []
    for number, seed in enumerate(about["seeds"]):
        mine = requests["replication"].to_numpy() == number
        columns = {name: requests[name].to_numpy()[mine] for name in Records.REQUEST_COLUMNS}
        mine = batches["replication"].to_numpy() == number
        columns |= {name: batches[name].to_numpy()[mine] for name in Records.BATCH_COLUMNS}
        copied = {name: np.ascontiguousarray(column) for name, column in columns.items()}
        records = Records(**copied, reasons=about["reasons"][number])
        runs.append(Run(seed, records, numbers))
    return runs


def _tuple(value: Any) -> Any:
    return tuple(_tuple(item) for item in value) if isinstance(value, list) else value
