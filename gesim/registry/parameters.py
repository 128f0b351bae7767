"""Parameters of a policy: the init fields of its dataclass, and what its docstring says."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from typing import Any

from gesim.registry.values import file_key, type_text, unit_of, write_value

__all__ = ["Parameter", "parameters"]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a policy.

    Attributes
    ----------
    name : str
        The field of the dataclass, like ``max_queue_delay_ns``.
    key : str
        The key in scenario files, like ``max_queue_delay``.
    type : object
        The resolved annotation.
    default : object
        The default, or ``None`` where `required`.
    required : bool
        No default.
    doc : str
        From the class docstring.
    """

    name: str
    key: str
    type: Any
    default: object
    required: bool
    doc: str

    @property
    def kind(self) -> str:
        """What a file may say here, for people: ``time``, ``int``, ``a | b``."""
        unit = unit_of(self.name)
        return type_text(self.type, unit.what if unit else "")

    @property
    def default_text(self) -> str:
        """The default as a file would say it; empty where there is none."""
        if self.required:
            return ""
        written = write_value(self.name, self.default)
        return str(written).lower() if isinstance(written, bool) else str(written)


def parameters(cls: type) -> list[Parameter]:
    """Parameters of a policy class, in the order of its fields."""
    if not dataclasses.is_dataclass(cls):
        return []
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # annotations that only a type checker can resolve
        hints = {}
    docs = _parameter_docs(cls)
    found = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        default: object = None
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        hint = hints.get(field.name, field.type)
        doc = docs.get(field.name, "")
        found.append(Parameter(field.name, file_key(field.name), hint, default, required, doc))
    return found


_ENTRY = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:\s*\S.*")


def _parameter_docs(cls: type) -> dict[str, str]:
    """Read the `Parameters` section of numpydoc docstrings, base classes first."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ != "builtins" and base.__doc__:
            docs.update(_section(inspect.cleandoc(base.__doc__).splitlines()))
    return docs


def _section(lines: list[str]) -> dict[str, str]:
    docs: dict[str, str] = {}
    names: list[str] = []
    inside = False
    for i, line in enumerate(lines):
        underlined = i + 1 < len(lines) and set(lines[i + 1]) == {"-"}
        if underlined:
            inside = line.strip() == "Parameters"
            names = []
        elif inside and line and not line[0].isspace():
            entry = _ENTRY.fullmatch(line)
            names = [n.strip() for n in entry[1].split(",")] if entry else []
            docs.update(dict.fromkeys(names, ""))
        elif inside and line.strip():
            for name in names:
                docs[name] = f"{docs[name]} {line.strip()}".strip()
    return docs
