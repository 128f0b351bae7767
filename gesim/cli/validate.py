"""`gesim validate`: say what is wrong with scenario files, without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gesim.cli.talk import complain, talk
from gesim.errors import GesimError

__all__ = ["validate"]


def validate(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files (YAML).")
    ],
) -> None:
    """Check scenario files: keys, units, profiles, policies, traces, expectations."""
    from gesim.scenario.build import build
    from gesim.scenario.load import load

    bad = 0
    for path in scenarios:
        try:
            scenario = load(path)
            build(scenario)
        except GesimError as error:
            complain(error)
            bad += 1
            continue
        for warning in scenario.warnings():
            talk().print(f"warning: {path}: {warning}")
        typer.echo(f"{path}: ok")
    if bad:
        raise typer.Exit(2)
