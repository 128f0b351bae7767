"""Changing one value of a scenario by its key path (`Scenario.set`, ``--set``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gesim.errors import PolicyError, ScenarioError
from gesim.registry import find_policy, parameters
from gesim.scenario.problems import POLICY_KINDS
from gesim.scenario.source import Path_, key_text, parse_scalar
from gesim.units import suggest

__all__ = ["plain_copy", "put", "read_key"]

_PART = re.compile(r"\[([^\[\]]+)\]|([^.\[\]]+)")


def read_key(key: str) -> list[str | int]:
    """Split ``models[0].batching.policy``; ``[resnet101]`` stays a name for `put` to find.

    Raises
    ------
    ScenarioError
        If the text is no key path.
    """
    parts: list[str | int] = []
    end = 0
    for match in _PART.finditer(key):
        gap = key[end : match.start()]
        if gap != ("." if match[2] and parts else ""):
            break
        index = match[1]
        parts.append(match[2] if index is None else int(index) if index.isdigit() else f"[{index}]")
        end = match.end()
    if end != len(key) or not parts or not isinstance(parts[0], str) or parts[0][0] == "[":
        raise ScenarioError(
            f"{key!r} is not a key; write it like batching.max_batch_size or models[0].slo"
        )
    return parts


def plain_copy(data: Any) -> Any:
    """Copy mappings and lists, but not what is in them (a policy stays the same object)."""
    if isinstance(data, Mapping):
        return {key: plain_copy(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain_copy(value) for value in data]
    return data


def put(
    data: dict[str, Any], key: str, value: Any, resolved: Mapping[str, Any], base: Path
) -> tuple[Path_, list[str]]:
    """Put `value` at `key` into `data`, in place.

    Parameters
    ----------
    data : dict
        A scenario's plain data; a copy of the caller's own.
    key : str
        Key path. Names stand for indices too: ``models[resnet101].slo``.
    value : object
        Text is read as YAML reads a value.
    resolved : mapping
        The scenario with every default, for lists that the file leaves out.
    base : Path
        Folder of the scenario, for policies in files.

    Returns
    -------
    tuple
        Where the value went, and what the change dropped (for warnings).
    """
    if isinstance(value, str):
        value = parse_scalar(value)
    elif type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    parts = _redirected(data, read_key(key))
    path: Path_ = ()
    at: Any = data
    for i, part in enumerate(parts[:-1]):
        at, part = _step(at, part, path, resolved)
        path = (*path, part)
        below = parts[i + 1]
        child = at[part] if isinstance(part, int) else at.get(part)
        if child is None:
            child = plain_copy(_look_up(resolved, path))
            if child is None:
                child = [] if isinstance(below, int) else {}
            at[part] = child
        elif part in POLICY_KINDS and isinstance(below, str) and not isinstance(child, dict | list):
            at[part] = {"policy": child}
        at = at[part]
    at, last = _step(at, parts[-1], path, resolved)
    path = (*path, last)
    dropped = _switch(at, path, value, base) if last == "policy" else []
    at[last] = value
    return path, dropped


def _step(
    at: Any, part: str | int, path: Path_, resolved: Mapping[str, Any]
) -> tuple[Any, str | int]:
    """Check that `part` can be taken from `at`; turn a name in brackets into an index."""
    where = key_text(path) or "the scenario"
    wants_list = isinstance(part, int) or part.startswith("[")
    if wants_list and not isinstance(at, list):
        raise ScenarioError(f"{where} is not a list, so it has no [{str(part).strip('[]')}]")
    if isinstance(part, str) and not wants_list:
        if isinstance(at, list):
            raise ScenarioError(f"{where} is a list: say which entry, like {where}[0].{part}")
        if not isinstance(at, dict):
            raise ScenarioError(f"{where} is {at!r}, so it has no {part}")
        if part not in at and part.isdigit() and int(part) in at:
            return at, int(part)
        return at, part
    if isinstance(part, int):
        if part >= len(at):
            raise ScenarioError(f"{where} has {len(at)} entries, counted from 0: no [{part}]")
        return at, part
    name = str(part).strip("[]")
    names = [str(entry.get("name", "")) if isinstance(entry, Mapping) else "" for entry in at]
    if name not in names:
        raise ScenarioError(f"{where} has no entry named {name!r}{suggest(name, names)}")
    return at, names.index(name)


def _look_up(resolved: Mapping[str, Any], path: Path_) -> Any:
    found: Any = resolved
    for part in path:
        try:
            found = found[part]
        except (KeyError, IndexError, TypeError):
            return None
    return found


def _redirected(data: Mapping[str, Any], parts: list[str | int]) -> list[str | int]:
    """Send ``batching.x`` to where the models take it from."""
    kind = parts[0]
    models = data.get("models")
    if kind not in POLICY_KINDS or not isinstance(models, list):
        return parts
    own = [m for m in models if isinstance(m, Mapping) and _whole(m.get(str(kind)))]
    if not own or len(own) < len(models):
        return parts
    if len(models) == 1:
        return ["models", 0, *parts]
    name = own[0].get("name")
    tail = key_text(parts)
    raise ScenarioError(
        f"{tail} has no effect: every model has its own {kind}; set models[{name}].{tail}"
    )


def _whole(spec: Any) -> bool:
    return spec is not None and not (isinstance(spec, Mapping) and "policy" not in spec)


def _switch(spec: Any, path: Path_, value: Any, base: Path) -> list[str]:
    """Drop the parameters of the old policy that the new one does not have."""
    kind = next((part for part in path if part in POLICY_KINDS), None)
    if kind is None or not isinstance(spec, dict) or spec.get("policy") == value:
        return []
    try:
        cls = find_policy(str(kind), value if isinstance(value, str | type) else type(value), base)
    except PolicyError:
        return []  # the check of the new scenario tells
    known = {parameter.key for parameter in parameters(cls)}
    gone = [key for key in spec if key != "policy" and key not in known]
    for key in gone:
        del spec[key]
    if isinstance(value, str | type):
        return gone
    kept = [key for key in spec if key != "policy"]  # an instance brings its own parameters
    for key in kept:
        del spec[key]
    return gone
