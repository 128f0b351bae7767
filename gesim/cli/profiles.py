"""`gesim profiles`: the shipped cost profiles."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer

from gesim.cli.talk import results

__all__ = ["profiles"]


def profiles(
    name: Annotated[str | None, typer.Argument(help="Show one profile with its sources.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the shipped profiles: model, device, gears, best batch."""
    from rich import box
    from rich.table import Table

    from gesim.cost.profile import list_profiles, load_profile

    shown = [load_profile(n) for n in ([name] if name else list_profiles())]
    if json:
        facts = [
            {
                "name": p.name,
                "model": p.model,
                "device": p.device,
                **p.facts,
                "gears": p.gears,
                "best_batch": p.best_batch,
                "batch_time_ns": p.points,
                "sources": p.sources,
            }
            for p in shown
        ]
        typer.echo(json_module.dumps(facts, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("name", "model", "device", "gears", "best", "items/s at 1", "at best"):
        table.add_column(header, justify="right" if "items" in header else "left")
    for p in shown:
        points = p.points[max(p.points)]
        rates = [b / points[b] * 1e9 for b in (min(points), p.best_batch)]
        lengths = f" (length {max(p.points)})" if p.lengths else ""
        gears = " ".join(map(str, p.gears))
        table.add_row(
            p.name, p.model + lengths, p.device, gears, str(p.best_batch), f"{rates[0]:,.0f}",
            f"{rates[1]:,.0f}",
        )  # fmt: skip
    results().print(table)
    if name:
        for key, value in shown[0].facts.items():
            typer.echo(f"{key}: {value}")
        for source in dict.fromkeys(shown[0].sources):
            typer.echo(f"source: {source}")
