"""Reading a result folder back into a `Result`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gesim.errors import GesimError, ResultError
from gesim.experiment.folder import FILES, FORMAT
from gesim.experiment.result import MADE, Result, Run
from gesim.metrics.curves import Curves
from gesim.metrics.records import Facts
from gesim.scenario.expect import Checked
from gesim.scenario.scenario import Scenario

__all__ = ["open_result"]

_NEEDED = FILES[:5]
"""The others are for people, and may be removed to save space; or not always there."""

_AROUND = (
    "gesim", "fidelity", "simulated", "engine", "scenario", "seed", "seeds", "partial", "expect",
    "runs",
)  # fmt: skip
"""What summary.json holds besides the summary."""


def open_result(folder: str | Path) -> Result:
    """Read a result folder.

    Parameters
    ----------
    folder : str or Path
        Written by ``gesim run`` or `Result.save`. What its scenario names may be gone since.

    Raises
    ------
    ResultError
        If it is not there, not a result, incomplete or damaged.
    """
    folder = Path(folder).expanduser()
    if folder.is_file() and folder.name in FILES:
        folder = folder.parent
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "is not there"
        raise ResultError(f"{folder} {what}; give the folder of a result")
    if not (folder / "run.json").is_file():
        raise ResultError(f"{folder} is not a gesim result: it has no run.json")
    try:
        about, summary = (_mapping(folder / name) for name in ("run.json", "summary.json"))
        _check_format(folder, about)
        return _result(folder, about, summary)
    except ResultError:
        raise
    except (
        OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, NotImplementedError,
        yaml.YAMLError, GesimError,
    ) as error:  # fmt: skip
        lacking = [name for name in _NEEDED if not (folder / name).is_file()]
        if lacking:
            raise ResultError(f"{folder} is incomplete: it has no {', '.join(lacking)}") from None
        raise ResultError(f"{folder} is damaged: {_short(error)}") from None


def _mapping(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    if not isinstance(data, Mapping):
        raise ValueError(f"{path.name} is not a mapping")
    return dict(data)


def _check_format(folder: Path, about: Mapping[str, Any]) -> None:
    found = about.get("format")
    if "gesim" not in about or not isinstance(found, int):
        raise ResultError(f"{folder} is not a gesim result: its run.json is of something else")
    if found != FORMAT:
        raise ResultError(
            f"{folder} was written in format {found} by gesim {about['gesim']}; this gesim reads "
            f"format {FORMAT}"
        )


def _short(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error}"
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _result(folder: Path, about: dict[str, Any], summary: dict[str, Any]) -> Result:
    data = yaml.safe_load((folder / "scenario.yaml").read_text(encoding="utf-8"))
    scenario = Scenario.from_stored(data, str(folder / "scenario.yaml"), folder)
    facts = Facts(**{key: _tuple(value) for key, value in about["facts"].items()})
    numbers = {key: value for key, value in summary.items() if key not in _AROUND}
    runs = summary.get("runs", [numbers])
    for one in (numbers, *runs):
        _put_in_order(one, facts)
    return Result(
        scenario=scenario,
        seed=about["seed"],
        engine=about["engine"],
        fidelity=about["fidelity"],
        runs=_runs(folder, about, facts, runs),
        facts=facts,
        summary_dict=numbers,
        expectations=[Checked(**one) for one in summary["expect"]],
        wall_s=about["wall_s"],
        partial=about["partial"],
        engine_why=about["engine_why"],
        warnings=list(about["warnings"]),
        made={key: about[key] for key in MADE},
        version=about["gesim"],
        folder=folder.resolve(),
    )


def _put_in_order(summary: dict[str, Any], facts: Facts) -> None:
    """Give a summary the order that it had before its keys were sorted for the file."""
    orders: dict[str, list[str]] = {
        "models": list(facts.models),
        "levels": [f"level{i + 1}" for i in range(facts.levels)],
        "devices": list(facts.devices),
        "instances": facts.instance_names(),
    }
    for part, names in orders.items():
        summary[part] = {name: summary[part][name] for name in names if name in summary[part]}
    for section in (summary["all"], *summary["models"].values()):
        for key in ("batch_histogram", "gear_histogram"):
            section[key] = {size: section[key][size] for size in sorted(section[key], key=int)}


def _runs(
    folder: Path, about: Mapping[str, Any], facts: Facts, summaries: list[dict[str, Any]]
) -> list[Run]:
    """Read the records of every replication."""
    import pandas as pd

    from gesim.experiment.frames import records_of

    requests = pd.read_parquet(folder / "requests.parquet")
    batches = pd.read_parquet(folder / "batches.parquet")
    runs = []
    stored = zip(about["seeds"], about["interrupted_ns"], summaries, strict=True)
    for number, (seed, interrupted_ns, summary) in enumerate(stored):
        records = records_of(requests, batches, facts, number)
        records.interrupted_ns = interrupted_ns
        runs.append(Run(seed, records, summary))
    if (folder / "curves.npz").is_file():
        runs[0].records.curves = Curves.load(folder / "curves.npz")
    return runs


def _tuple(value: Any) -> Any:
    return tuple(_tuple(item) for item in value) if isinstance(value, list) else value
