"""`gesim show`: print a saved result again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gesim.cli.talk import results

__all__ = ["show"]


def show(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result folder.")],
    json: Annotated[bool, typer.Option("--json", help="Print summary.json.")] = False,
) -> None:
    """Show a result folder."""
    from gesim.experiment.folder import summary_text
    from gesim.experiment.reopen import open_result
    from gesim.report.table import result_table

    opened = open_result(result)
    if json:
        typer.echo(summary_text(opened), nl=False)
    else:
        results().print(result_table(opened.label, opened.summary_dict, opened.expectations))
