"""`gesim run`: scenario files in, numbers and result folders out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gesim.cli.talk import progress, results, talk, warn
from gesim.errors import GesimError, ScenarioError

if TYPE_CHECKING:
    from gesim.experiment.result import Result
    from gesim.scenario.scenario import Scenario

__all__ = ["run"]


def run(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files (YAML).")
    ],
    fidelity: Annotated[
        str, typer.Option(help="What runs: model (more levels to come).")
    ] = "model",
    seed: Annotated[int | None, typer.Option(help="Instead of the scenario's seed.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change the scenario: batching.max_batch_size=8."
        ),
    ] = None,
    replications: Annotated[
        int, typer.Option(help="Independent runs; intervals are then taken across them.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Result folder (with several scenarios: the folder of theirs); "
            "default results/NAME-SEED."
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON, nothing else.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="auto, simpy, or compiled (fast, same results).")
    ] = "auto",
    explain_engine: Annotated[
        bool, typer.Option("--explain-engine", help="Say which engine ran, and why.")
    ] = False,
    check_invariants: Annotated[
        bool,
        typer.Option("--check-invariants", help="Check docs/invariants.md at every step (slower)."),
    ] = False,
    max_records: Annotated[
        int,
        typer.Option(
            help="Requests up to which every one is recorded; longer runs go to histograms."
        ),
    ] = 2_000_000,
    save: Annotated[bool, typer.Option(help="Write the result folder.")] = True,
) -> None:
    """Run scenarios in the discrete-event model."""
    from gesim.experiment import run as experiment

    experiment.check_settings(fidelity, replications, seed, max_records)
    loaded = [_load(path, set_ or [], seed) for path in scenarios]
    folders = _folders(loaded, seed, out, save=save)
    done: list[Result] = []
    failed: GesimError | None = None
    for scenario, folder in zip(loaded, folders, strict=True):
        warnings = scenario.warnings()
        for warning in warnings:
            warn(f"{scenario.file}: {warning}")
        try:
            with progress(scenario.name) as update:
                result = experiment.run(
                    scenario,
                    seed=seed,
                    replications=replications,
                    engine=engine,
                    fidelity=fidelity,
                    check_invariants=check_invariants,
                    max_records=max_records,
                    on_progress=update,
                )
            if folder is not None:
                result.save(folder)
        except GesimError as error:  # what ran before is still shown
            failed = error
            break
        for warning in result.warnings[len(warnings) :]:
            warn(f"{scenario.file}: {warning}")
        if explain_engine:
            talk().print(f"engine {result.engine}: {result.engine_why}")
        done.append(result)
        if result.partial:
            break
    if done:
        _print(done, json=json, one=len(loaded) == 1)
    if failed is not None:
        raise failed
    if any(result.partial for result in done):
        talk().print("interrupted: the results above are partial")
        raise typer.Exit(130)
    if not all(result.ok for result in done):
        raise typer.Exit(1)


def _print(done: list[Result], *, json: bool, one: bool) -> None:
    """Print the results to stdout, and where they are to stderr."""
    from gesim.experiment.folder import summary_text
    from gesim.report.table import overview, result_table

    if json:
        texts = [summary_text(result) for result in done]
        typer.echo(texts[0] if one else f"[\n{','.join(texts)}]\n", nl=False)
    elif one:
        result = done[0]
        results().print(result_table(result.label, result.summary_dict, result.expectations))
    else:
        # What all have in common is said once, so that names and numbers get the room.
        made_by = {result.label.partition(": ")[2] for result in done}
        if len(made_by) == 1:
            results().print(made_by.pop(), style="bold", markup=False)
            rows = [(r.scenario.name, r.summary_dict, r.expectations) for r in done]
        else:
            rows = [(r.label, r.summary_dict, r.expectations) for r in done]
        results().print(overview(rows))
    for result in done:
        if result.folder is not None:
            talk().print(f"report: {_shown(result.folder / 'report.html')}")


def _load(path: Path, changes: list[str], seed: int | None) -> Scenario:
    from gesim.scenario.load import load

    scenario = load(path)
    pairs: dict[str, object] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ScenarioError(
                f"--set {change!r}: write key=value, like --set batching.max_batch_size=8"
            )
        if key in pairs:
            raise ScenarioError(f"--set {key} is given twice")
        if key == "seed" and seed is not None:
            raise ScenarioError("the seed is given twice: by --seed and by --set seed")
        pairs[key] = value.strip()
    return scenario.set_many(pairs) if pairs else scenario


def _folders(
    scenarios: list[Scenario], seed: int | None, out: Path | None, *, save: bool
) -> list[Path | None]:
    """Choose each scenario's result folder; no two may be the same, none of somebody else."""
    from gesim.experiment.folder import check_target

    if not save:
        if out is not None:
            raise ScenarioError("--out has no effect with --no-save; leave one of them out")
        return [None] * len(scenarios)
    names = [f"{s.name}-{s.seed if seed is None else seed}" for s in scenarios]
    chosen = [(out or Path("results")) / name for name in names]
    if out is not None and len(scenarios) == 1:
        chosen = [out]
    for folder in chosen:
        if chosen.count(folder) > 1:
            raise ScenarioError(
                f"several scenarios would write {folder}: give them different names"
            )
    return [check_target(folder) for folder in chosen]


def _shown(path: Path) -> str:
    """Write a path relative to the working directory where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
