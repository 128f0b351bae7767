"""Reading YAML with line numbers, so that every complaint can say where.

Theory of operation
-------------------
The file is composed into YAML nodes (which know their lines) and turned into plain data here,
noting the line of every key path. Scalars follow YAML 1.2: ``on``, ``off``, ``yes``, ``no`` and
``12:30`` are text, ``1e3`` is a number. A key given twice is an error; anchors, aliases and ``<<``
work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gesim.errors import ScenarioError

__all__ = ["Path_", "Source", "key_text", "parse_scalar", "parse_text", "read_file"]

Path_ = tuple[str | int, ...]
"""Keys and indices from the top of the file down to a value."""

_NODES_MAX = 1_000_000
"""More than any scenario has: stops aliases of aliases from filling memory."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(rf"^(?:{_pattern})$"),
        list(_first.replace("\0", "")) + ([""] if "\0" in _first else []),
    )


def _int(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(node.value.replace("_", ""))  # decimal, also with leading zeros


_Loader.add_constructor("tag:yaml.org,2002:int", _int)


@dataclass
class Source:
    """Plain data of a scenario and where each value stands.

    Attributes
    ----------
    data : dict
        What the file says, unchecked.
    file : str
        What messages call the file; empty for data that came from Python.
    base : Path
        Folder that file names inside the scenario start from.
    lines : dict
        Key path to line number, from 1.
    changes : dict
        Key path to the text of the `set` that put a value there.
    """

    data: dict[str, Any]
    file: str = ""
    base: Path = field(default_factory=Path.cwd)
    lines: dict[Path_, int] = field(default_factory=dict)
    changes: dict[Path_, str] = field(default_factory=dict)

    def where(self, path: Path_) -> str:
        """Say where `path` stands: ``file:line``, or the change that set it."""
        for end in range(len(path), -1, -1):
            part = path[:end]
            if part in self.changes:
                return self.changes[part]
            if part in self.lines:
                return f"{self.file}:{self.lines[part]}"
        below = [text for p, text in self.changes.items() if p[: len(path)] == path]
        return below[-1] if below else self.file


def key_text(path: Iterable[str | int]) -> str:
    """Write a key path as people do: ``models[0].batching.max_batch_size``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_file(path: str | Path) -> Source:
    """Read a scenario file.

    Raises
    ------
    ScenarioError
        If it cannot be read, is not YAML, holds a key twice or is not a mapping.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such file{_near(path)}") from None
    except IsADirectoryError:
        raise ScenarioError(f"{path}: is a folder, not a scenario file") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is not UTF-8 text, so not a scenario file") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_text(text, str(path), path.resolve().parent)


def _near(path: Path) -> str:
    from gesim.units import suggest

    try:
        names = [p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml", ".json")]
    except OSError:
        return ""
    return suggest(path.name, names)


def parse_text(text: str, file: str, base: Path | None = None) -> Source:
    """Read a scenario from text; see `read_file`."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise ScenarioError(f"{file}: is empty; a scenario starts with schema: 1")
        source = Source({}, file, base or Path.cwd())
        reader = _Reader(loader, source)
        data = reader.value(node, ())
    except RecursionError:
        raise ScenarioError(f"{file}: is nested too deeply to be a scenario") from None
    except yaml.YAMLError as error:
        raise ScenarioError(f"{file}{_syntax(error)}") from None
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise ScenarioError(
            f"{file}:1: a scenario is a mapping of keys such as schema, models, workload; "
            f"this is {_kind(data)}"
        )
    if reader.twice:
        raise ScenarioError("\n".join(reader.twice))
    source.data = data
    return source


def parse_scalar(text: str) -> Any:
    """Read one value as YAML would: ``8``, ``5ms``, ``[1, 4]``, ``{policy: greedy}``.

    Raises
    ------
    ScenarioError
        If it is not YAML.
    """
    try:
        source = parse_text(f"value: {text}\n", "")
    except ScenarioError as error:
        raise ScenarioError(f"{text!r} is not a YAML value ({error})") from None
    if set(source.data) != {"value"}:
        raise ScenarioError(f"{text!r} is not one YAML value")
    return source.data["value"]


class _Reader:
    """Turns nodes into data, noting lines."""

    def __init__(self, loader: _Loader, source: Source) -> None:
        self.loader = loader
        self.source = source
        self.open: set[int] = set()
        self.nodes = 0
        self.twice: list[str] = []

    def value(self, node: yaml.Node, path: Path_) -> Any:
        """Read a node that stands at `path`."""
        line = node.start_mark.line + 1
        self.source.lines.setdefault(path, line)
        self.nodes += 1
        if id(node) in self.open or self.nodes > _NODES_MAX:
            raise ScenarioError(f"{self.source.file}:{line}: an alias contains itself")
        if isinstance(node, yaml.ScalarNode):
            return self.loader.construct_object(node)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
            assert isinstance(node, yaml.MappingNode)
            return self._mapping(node, path)
        finally:
            self.open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> dict[Any, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            key, line = self._key(key_node), key_node.start_mark.line + 1
            if key in seen:
                self.twice.append(
                    f"{self.source.file}:{line}: {key_text((*path, key))}: "
                    f"key given twice, first on line {seen[key]}"
                )
            seen.setdefault(key, line)
        self.loader.flatten_mapping(node)
        data = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            self.source.lines[(*path, key)] = key_node.start_mark.line + 1
            data[key] = self.value(value_node, (*path, key))
        return data

    def _key(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return _int(self.loader, node) if node.tag.endswith(":int") else node.value
        line = node.start_mark.line + 1
        raise ScenarioError(f"{self.source.file}:{line}: a key must be text, not a list or mapping")


def _syntax(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is None:
        return f": not YAML: {problem}"
    context = getattr(error, "context", None)
    line = f":{mark.line + 1}:{mark.column + 1}: not YAML: {problem}"
    return f"{line} ({context})" if context else line


def _kind(data: object) -> str:
    return {list: "a list", str: "text", type(None): "nothing"}.get(type(data), "a single value")
