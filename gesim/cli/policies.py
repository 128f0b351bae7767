"""`gesim policies`: what is registered, with parameters."""

from __future__ import annotations

import json as json_module
from typing import Annotated, Any

import typer

from gesim.cli.talk import results
from gesim.errors import PolicyError

__all__ = ["policies"]


def policies(
    name: Annotated[str | None, typer.Argument(help="Show one policy in full.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only this kind: batching, ordering or admission.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the registered policies with their parameters."""
    from gesim.registry import KINDS, policies, summary_line
    from gesim.units import suggest

    if kind is not None and kind not in KINDS:
        raise PolicyError(
            f"kind {kind!r} is unknown{suggest(kind, KINDS)} (kinds: {', '.join(KINDS)})"
        )
    rows = []
    for one in [kind] if kind else KINDS:
        for policy_name, cls in policies(one).items():
            if name in (None, policy_name):
                rows.append(
                    {
                        "name": policy_name,
                        "kind": one,
                        "meaning": summary_line(cls),
                        "parameters": _parameters(cls),
                        "doc": (cls.__doc__ or "").strip(),
                    }
                )
    if not rows:
        known = [n for one in KINDS for n in policies(one)]
        raise PolicyError(f"there is no policy {name!r}{suggest(name or '', known)}")
    if json:
        typer.echo(json_module.dumps(rows, indent=2))
    else:
        _print(rows, full=name is not None)


def _parameters(cls: type) -> list[dict[str, str]]:
    from gesim.registry import parameters

    return [
        {
            "key": p.key,
            "type": p.kind,
            "default": p.default_text,
            "meaning": p.doc,
        }
        for p in parameters(cls)
    ]


def _print(rows: list[dict[str, Any]], *, full: bool) -> None:
    from rich import box
    from rich.table import Table

    console = results()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("policy", "kind", "meaning", "parameters"):
        table.add_column(header)
    for row in rows:
        keys = "\n".join(
            f"{p['key']}" + (f" = {p['default']}" if p["default"] != "" else "")
            for p in row["parameters"]
        )
        table.add_row(row["name"], row["kind"], row["meaning"], keys)
    console.print(table)
    if full:
        from inspect import cleandoc

        for row in rows:
            typer.echo(cleandoc(row["doc"]))
