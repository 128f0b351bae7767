"""`gesim profiles`: the shipped cost profiles, or one with all its figures."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gesim.cli.talk import results

if TYPE_CHECKING:
    from rich.table import Table

    from gesim.cost.profile import Profile

__all__ = ["profiles"]


def profiles(
    name: Annotated[
        str | None, typer.Argument(help="Show one profile (a name or a file) with its figures.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the shipped profiles: model, device, gears, best batch."""
    from gesim.cost.profile import list_profiles, load_profile

    shown = [load_profile(n) for n in ([name] if name else list_profiles())]
    if json:
        typer.echo(json_module.dumps([_facts(p) for p in shown], indent=2))
        return
    if name is None:
        results().print(_overview(shown))
        return
    profile = shown[0]
    typer.echo(f"{profile.name}: {profile.model} on {profile.device}")
    results().print(_figures(profile))
    for key, value in profile.facts.items():
        typer.echo(f"{key.replace('_', ' ')}: {value}")
    for source in dict.fromkeys(profile.sources):
        typer.echo(f"source: {source}")


def _facts(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "model": profile.model,
        "device": profile.device,
        **profile.facts,
        "gears": profile.gears,
        "best_batch": profile.best_batch,
        "batch_time_ns": profile.points,
        "sources": profile.sources,
    }


def _overview(shown: list[Profile]) -> Table:
    """One row per profile; of several lengths the longest."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("name", "model", "device", "gears", "best batch", "items/s at 1", "at best"):
        table.add_column(header, justify="right" if " " in header else "left")
    for p in shown:
        length = max(p.points)
        first, best = p.throughput_rps(p.gears[0], length), p.throughput_rps(p.best_batch, length)
        model = f"{p.model} (length {length})" if length else p.model
        gears = " ".join(map(str, p.gears))
        cells = (str(p.best_batch), f"{first:,.0f}", f"{best:,.0f}")
        table.add_row(p.name, model, p.device, gears, *cells)
    return table


def _figures(profile: Profile) -> Table:
    """Time and throughput of every batch size; of a model with lengths one row per length too."""
    from rich import box
    from rich.table import Table

    from gesim.units import format_time

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    headers = ("length", "batch", "batch time", "items/s")
    for header in headers if profile.lengths else headers[1:]:
        table.add_column(header, justify="right")
    for length, points in sorted(profile.points.items()):
        for batch, time_ns in points.items():
            rate = profile.throughput_rps(batch, length)
            cells = (str(batch), format_time(time_ns), f"{rate:,.2f}")
            table.add_row(*((str(length), *cells) if length else cells))
    return table
