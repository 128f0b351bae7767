"""Values of policy parameters: what a scenario file says, and the field it becomes."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gesim.core.decisions import NEVER_NS
from gesim.errors import ScenarioError
from gesim.units import (
    parse_bytes,
    parse_rate_rps,
    parse_time_ns,
    suggest,
    write_bytes,
    write_rate,
    write_time,
)

__all__ = ["file_key", "read_value", "type_text", "unit_of", "write_value"]


class _Unit(NamedTuple):
    """How fields with one suffix are read from and written to files."""

    what: str
    read: Callable[[object], float]
    write: Callable[[Any], object]


def _read_time(value: object) -> int:
    return NEVER_NS if value == "never" else parse_time_ns(value)


def _write_time(value: int) -> str:
    return "never" if value >= NEVER_NS else write_time(value)


_UNITS: dict[str, _Unit] = {
    "_ns": _Unit("time", _read_time, _write_time),
    "_bytes": _Unit("size", parse_bytes, write_bytes),
    "_rps": _Unit("rate", parse_rate_rps, write_rate),
}


def unit_of(name: str) -> _Unit | None:
    """Return the unit that a field's suffix asks for, or None."""
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), None)


def file_key(name: str) -> str:
    """Return the key of a field in files: its name without the unit."""
    return next((name.removesuffix(s) for s in _UNITS if name.endswith(s)), name)


def write_value(name: str, value: object) -> object:
    """Write one field's value as a file would."""
    if isinstance(value, tuple | list):
        return [write_value(name, item) for item in value]
    if isinstance(value, Mapping):
        return {key: write_value(name, item) for key, item in value.items()}
    unit = unit_of(name)
    if unit is not None and isinstance(value, int | float) and not isinstance(value, bool):
        return unit.write(value)
    return value


def read_value(name: str, hint: Any, value: object) -> Any:
    """Read one field's value; raises ScenarioError that says what would be right."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _from_union(name, args, value)
    if origin is typing.Literal:
        return _from_literal(args, value)
    if origin in (tuple, list):
        items = list(value) if isinstance(value, list | tuple) else None
        if items is None:
            raise ScenarioError(f"{value!r} is not a list; write [a, b, ...]")
        if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
            if len(items) != len(args):
                raise ScenarioError(f"{value!r} must have {len(args)} entries")
            read = [read_value(name, a, item) for a, item in zip(args, items, strict=True)]
        else:
            read = [read_value(name, args[0], item) for item in items]
        return tuple(read) if origin is tuple else read
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ScenarioError(f"{value!r} is not a mapping; write {{key: value}}")
        plain = "key"  # units belong to the values
        return {
            read_value(plain, args[0], k): read_value(name, args[1], v) for k, v in value.items()
        }
    unit = unit_of(name)
    if unit is not None and hint in (int, float):
        return unit.read(value)
    return _from_plain(hint, value)


def _from_union(name: str, args: tuple[Any, ...], value: object) -> Any:
    if value is None and type(None) in args:
        return None
    errors = []
    for hint in args:
        if hint is not type(None):
            try:
                return read_value(name, hint, value)
            except ScenarioError as error:
                errors.append(str(error))
    raise ScenarioError(errors[0])


def _from_literal(args: tuple[Any, ...], value: object) -> Any:
    for option in args:
        if value == option and type(value) is type(option):
            return option
    # YAML reads a version such as 2.42 as a number, no as False: meet it half way.
    for option in args:
        if isinstance(option, str) and isinstance(value, int | float) and str(value) == option:
            return option
    options = ", ".join(str(option) for option in args)
    near = suggest(str(value), [str(option) for option in args])
    raise ScenarioError(f"{value!r} is not one of: {options}{near}")


def _from_plain(hint: Any, value: object) -> Any:
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise ScenarioError(f"{value!r} is not true or false")
    if hint is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise ScenarioError(f"{value!r} is not a whole number")
    if hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            if value != value or value in (float("inf"), float("-inf")):
                raise ScenarioError(f"{value!r} is not a number: it must be finite")
            return float(value)
        raise ScenarioError(f"{value!r} is not a number")
    if hint is str:
        if isinstance(value, str):
            return value
        raise ScenarioError(f"{value!r} is not text; put it in quotes")
    return value


def type_text(hint: Any, unit: str) -> str:
    """Write an annotation for people; `unit` replaces plain numbers."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(type_text(a, unit) for a in args)
    if origin is typing.Literal:
        return " | ".join(str(a) for a in args)
    if origin in (tuple, list):
        return f"list of {type_text(args[0], unit)}"
    if origin is dict:
        return f"mapping of {type_text(args[0], '')} to {type_text(args[1], unit)}"
    if hint is type(None):
        return "null"
    if hint in (int, float) and unit:
        return unit
    return getattr(hint, "__name__", str(hint))
