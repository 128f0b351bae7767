"""What the command says on stderr: errors, warnings, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gesim.errors import GesimError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["complain", "progress", "results", "talk", "warn"]

_WIDTH = 140
"""Columns of a table that goes to a file or a pipe."""


def talk() -> Console:
    """Return the console on stderr. It prints text as it is: ``models[0]`` is no markup."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def results() -> Console:
    """Return the console on stdout; a file or a pipe gets lines wide enough for any table."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, emoji=False, width=_WIDTH)
    return console


def complain(error: GesimError) -> None:
    """Say what is wrong and who is at fault."""
    from rich.text import Text

    talk().print(Text.assemble((f"error ({error.blame}): ", "bold red"), str(error)))


def warn(message: str) -> None:
    """Say what has no effect or is probably not meant."""
    from rich.text import Text

    talk().print(Text.assemble(("warning: ", "yellow"), message))


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int, int], None] | None]:
    """Show a bar with an ETA on a terminal, nothing elsewhere."""
    console = talk()
    if not console.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("requests, simulated {task.fields[clock]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=None, clock="0 s")

        def update(done: int, expected: int, now_ns: int) -> None:
            from gesim.units import format_time

            total = max(expected, done) if expected else None
            bar.update(task, completed=done, total=total, clock=format_time(now_ns))

        yield update
