"""JSON Schema of scenario files, for editors (``gesim schema``)."""

from __future__ import annotations

import types
import typing
from typing import Any

from gesim.registry import Parameter, parameters, policies, summary_line
from gesim.registry.values import unit_of
from gesim.scenario.fields import BYTES_JSON, RATE_JSON, TIME_JSON
from gesim.scenario.schema import Document

__all__ = ["json_schema"]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of schema 1, registered policies included."""
    schema = Document.model_json_schema(by_alias=True)
    for kind in ("batching", "ordering", "admission"):
        schema["$defs"][f"{kind}_policy"] = _policy_schema(kind)
    for holder in (schema, schema["$defs"]["Model"]):
        for kind in ("batching", "ordering"):
            _point(holder["properties"][kind], {"$ref": f"#/$defs/{kind}_policy"})
        one = {"$ref": "#/$defs/admission_policy"}
        _point(holder["properties"]["admission"], {"anyOf": [one, {"type": "array", "items": one}]})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gesim scenario",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def _point(held: dict[str, Any], target: dict[str, Any]) -> None:
    """Replace what a property allows, keeping its description."""
    description = held.get("description")
    held.clear()
    held.update(target)
    if description:
        held["description"] = description


def _policy_schema(kind: str) -> dict[str, Any]:
    """Allow registered policies by name or with parameters, and any other by its path."""
    known = policies(kind)
    exact = [_one(name, cls) for name, cls in known.items()]
    path = {"type": "string", "pattern": ":", "description": "path/file.py:Class"}
    other = {
        "type": "object",
        "required": ["policy"],
        "properties": {"policy": path},
        "description": "A policy of one's own.",
    }
    changes = {
        "type": "object",
        "not": {"required": ["policy"]},
        "description": "Changes to the parameters of the policy for every model.",
    }
    tail = [] if kind == "admission" else [changes]
    return {"anyOf": [{"enum": sorted(known)}, path, *exact, other, *tail]}


def _one(name: str, cls: type) -> dict[str, Any]:
    properties: dict[str, Any] = {"policy": {"const": name}}
    required = ["policy"]
    for parameter in parameters(cls):
        properties[parameter.key] = _parameter(parameter)
        if parameter.required and parameter.key != "seed":
            required.append(parameter.key)
    return {
        "type": "object",
        "description": summary_line(cls),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema = dict(_type_schema(parameter.name, parameter.type))
    if parameter.doc:
        schema["description"] = parameter.doc
    return schema


def _type_schema(name: str, hint: Any) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type_schema(name, arg) for arg in args]}
    if origin is typing.Literal:
        # YAML reads 2.42 as a number: allow both spellings of such a choice.
        numbers = [float(a) for a in args if isinstance(a, str) and _is_number(a)]
        return {"enum": [*args, *numbers]}
    if origin in (tuple, list):
        return {"type": "array", "items": _type_schema(name, args[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(name, args[1])}
    unit = unit_of(name)
    if unit is not None and hint in (int, float):
        by_unit = {"time": TIME_JSON, "size": BYTES_JSON, "rate": RATE_JSON}[unit.what]
        return {"anyOf": [{"const": "never"}, by_unit]} if unit.what == "time" else by_unit
    plain = {int: "integer", float: "number", bool: "boolean", str: "string", type(None): "null"}
    return {"type": plain[hint]} if hint in plain else {}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
