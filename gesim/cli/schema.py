"""`gesim schema`: the JSON Schema of scenario files, for editors."""

from __future__ import annotations

import json

import typer

__all__ = ["schema"]


def schema() -> None:
    """Print the JSON Schema of scenario files."""
    from gesim.scenario.jsonschema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
