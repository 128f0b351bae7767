"""`gesim policies`: what is registered, with parameters."""

from __future__ import annotations

import json as json_module
import re
from typing import Annotated, Any

import typer

from gesim.cli.talk import results
from gesim.errors import PolicyError

__all__ = ["policies"]

_PARAMETERS = re.compile(r"\n*^Parameters\n-+\n.*?(?=\n\n^\S[^\n]*\n-+\n|\Z)", re.M | re.S)
"""The numpydoc section; the table says the same."""


def policies(
    name: Annotated[str | None, typer.Argument(help="Show one policy in full.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only this kind: batching, ordering or admission.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the registered policies with their parameters."""
    from gesim.registry import KINDS, policies, policy_names
    from gesim.registry.find import check_kind
    from gesim.units import suggest

    kinds = [check_kind(kind)] if kind else list(KINDS)
    rows = [
        _row(one, policy_name, cls)
        for one in kinds
        for policy_name, cls in policies(one).items()
        if name in (None, policy_name)
    ]
    if not rows:
        known = [known for one in kinds for known in policy_names(one)]
        what = f"{kind} policy" if kind else "policy"
        raise PolicyError(
            f"there is no {what} {name!r}{suggest(name or '', known)} (known: {', '.join(known)})"
        )
    if json:
        typer.echo(json_module.dumps(rows, indent=2))
    elif name is None:
        _print_list(rows)
    else:
        for row in rows:
            _print_one(row)


def _row(kind: str, name: str, cls: type) -> dict[str, Any]:
    from inspect import getdoc

    from gesim.registry import parameters, summary_line

    return {
        "name": name,
        "kind": kind,
        "meaning": summary_line(cls),
        "parameters": [
            {
                "key": p.key,
                "type": p.kind,
                "required": p.required,
                "default": None if p.required else p.default_text,
                "meaning": p.doc,
            }
            for p in parameters(cls)
        ],
        "doc": getdoc(cls) or "",
    }


def _print_list(rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for header in ("policy", "kind", "meaning", "parameters"):
        table.add_column(header)
    for row in rows:
        keys = "\n".join(
            p["key"] if p["required"] else f"{p['key']} = {p['default']}"
            for p in row["parameters"]
        )  # fmt: skip
        table.add_row(row["name"], row["kind"], Text(row["meaning"]), Text(keys))
    results().print(table)


def _print_one(row: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = results()
    console.print(Text.assemble((row["name"], "bold"), f" ({row['kind']})"))
    console.print(Text(_PARAMETERS.sub("", row["doc"])))
    if not row["parameters"]:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for header in ("parameter", "type", "default", "meaning"):
        table.add_column(header)
    for p in row["parameters"]:
        default = "required" if p["required"] else p["default"]
        table.add_row(*(Text(text) for text in (p["key"], p["type"], default, p["meaning"])))
    console.print()
    console.print(table)
