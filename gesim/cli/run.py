"""`gesim run`: scenario files in, numbers and result folders out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gesim.cli.talk import progress, results, talk
from gesim.errors import ScenarioError

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
        int, typer.Option(min=1, help="Independent runs; intervals are then taken across them.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Result folder (with several scenarios: the folder of theirs)."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON, nothing else.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="auto, simpy, or compiled (fast, same results).")
    ] = "auto",
    explain_engine: Annotated[bool, typer.Option(help="Say which engine ran, and why.")] = False,
    check_invariants: Annotated[
        bool, typer.Option(help="Check docs/invariants.md at every step (slower).")
    ] = False,
    save: Annotated[bool, typer.Option(help="Write the result folder.")] = True,
) -> None:
    """Run scenarios in the discrete-event model."""
    from gesim.experiment import run as experiment
    from gesim.experiment.folder import summary_text
    from gesim.report.table import overview, result_table

    loaded = [_load(path, set_ or []) for path in scenarios]
    folders = _folders(loaded, seed, out)
    done: list[Result] = []
    for scenario, folder in zip(loaded, folders, strict=True):
        for warning in scenario.warnings():
            talk().print(f"warning: {scenario.file}: {warning}")
        with progress(scenario.name) as update:
            result = experiment.run(
                scenario,
                seed=seed,
                replications=replications,
                engine=engine,
                fidelity=fidelity,
                check_invariants=check_invariants,
                on_progress=update,
            )
        if explain_engine:
            talk().print(f"engine {result.engine}: {result.engine_why}")
        if save:
            result.save(folder)
        done.append(result)
        if result.partial:
            break
    if json:
        texts = [summary_text(result) for result in done]
        typer.echo(texts[0] if len(loaded) == 1 else f"[\n{','.join(texts)}]", nl=False)
    else:
        console = results()
        if len(loaded) == 1:
            one = done[0]
            console.print(result_table(one.label, one.summary_dict, one.expectations))
        else:
            console.print(overview([(r.label, r.summary_dict, r.expectations) for r in done]))
    for result in done:
        if result.folder is not None:
            talk().print(f"report: {_shown(result.folder / 'report.html')}")
    if any(result.partial for result in done):
        talk().print("interrupted: the results above are partial")
        raise typer.Exit(130)
    if not all(result.ok for result in done):
        raise typer.Exit(1)


def _load(path: Path, changes: list[str]) -> Scenario:
    from gesim.scenario.load import load

    scenario = load(path)
    pairs: dict[str, object] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(
                f"--set {change!r}: write key=value, like --set batching.max_batch_size=8"
            )
        pairs[key.strip()] = value.strip()
    return scenario.set_many(pairs) if pairs else scenario


def _folders(scenarios: list[Scenario], seed: int | None, out: Path | None) -> list[Path]:
    """Choose each scenario's result folder; no two may be the same."""
    names = [f"{s.name}-{s.seed if seed is None else seed}" for s in scenarios]
    if out is not None and len(scenarios) == 1:
        return [out]
    chosen = [(out or Path("results")) / name for name in names]
    for folder in chosen:
        if chosen.count(folder) > 1:
            raise ScenarioError(
                f"several scenarios would write {folder}: give them different names"
            )
    return chosen


def _shown(path: Path) -> str:
    """Write a path relative to the working directory where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
