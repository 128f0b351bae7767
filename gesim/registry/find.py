"""Finding policy classes: by registered name, module, file, or the class itself."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
import types
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy
from gesim.errors import PolicyError
from gesim.units import suggest

__all__ = [
    "KINDS",
    "check_kind",
    "find_policy",
    "policies",
    "policy_name",
    "policy_names",
    "summary_line",
]

KINDS: dict[str, type] = {
    "batching": BatchingPolicy,
    "ordering": OrderingPolicy,
    "admission": AdmissionPolicy,
}
"""The kinds of policies and the class that each must subclass."""

_FILE_PREFIX = "gesim_policy_file_"


def policy_names(kind: str) -> list[str]:
    """Names registered for a kind, sorted; loads no policy."""
    return sorted(_entries(check_kind(kind)))


def policies(kind: str) -> dict[str, type]:
    """Load every registered policy of a kind.

    Raises
    ------
    PolicyError
        If one cannot be imported.
    """
    return {name: find_policy(kind, name) for name in policy_names(kind)}


def find_policy(kind: str, name: str | type, base: Path | None = None) -> type:
    """Find the class of a policy.

    Parameters
    ----------
    kind : str
        batching, ordering or admission.
    name : str or type
        A registered name, ``module:Class``, ``path/file.py:Class``, or the class itself.
    base : Path, optional
        Folder that relative file paths start from; the working directory by default.

    Raises
    ------
    PolicyError
        If there is no such policy, it cannot be imported, or it is of another kind.
    """
    check_kind(kind)
    if isinstance(name, type):
        return _checked(kind, name)
    entries = _entries(kind)
    if name in entries:
        return _checked(kind, _imported(entries[name], f"{kind} policy {name!r}"))
    if ".py:" in name:
        return _checked(kind, _from_file(name, base))
    if ":" in name:
        return _checked(kind, _imported(name, f"{kind} policy {name!r}"))
    raise PolicyError(
        f"there is no {kind} policy {name!r}{suggest(name, entries)} "
        f"(known: {', '.join(sorted(entries))}; or path/file.py:Class){_other_kind(kind, name)}"
    )


def policy_name(cls: type, kind: str) -> str:
    """Name under which `find_policy` finds the class again: registered, file or module."""
    for name, target in _entries(kind).items():
        if target == f"{cls.__module__}:{cls.__qualname__}":
            return name
    module = sys.modules.get(cls.__module__)
    if cls.__module__.startswith(_FILE_PREFIX) and module is not None and module.__file__:
        return f"{module.__file__}:{cls.__qualname__}"
    return f"{cls.__module__}:{cls.__qualname__}"


def summary_line(cls: type) -> str:
    """First line of the class docstring."""
    lines = (inspect.getdoc(cls) or "").splitlines()
    return lines[0] if lines else ""


@functools.cache
def _entries(kind: str) -> dict[str, str]:
    """Entry points of a kind: name to ``module:Class``."""
    found: dict[str, str] = {}
    for entry in entry_points(group=f"gesim.policies.{kind}"):
        other = found.setdefault(entry.name, entry.value)
        if other != entry.value:
            raise PolicyError(
                f"two packages register the {kind} policy {entry.name!r}: {other} and {entry.value}"
            )
    return found


def check_kind(kind: str) -> str:
    """Return `kind` if there is such a kind of policy, else raise `PolicyError`."""
    if kind not in KINDS:
        raise PolicyError(
            f"there is no kind of policy {kind!r}{suggest(kind, KINDS)} ({', '.join(KINDS)})"
        )
    return kind


def _other_kind(kind: str, name: str) -> str:
    for other in KINDS:
        if other != kind and name in _entries(other):
            return f"; {name!r} is of kind {other}"
    return ""


def _imported(target: str, what: str) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise PolicyError(f"{what} cannot be imported from {module_name}: {error}") from error
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        names = _policy_classes(importlib.import_module(module_name))
        raise PolicyError(
            f"{what}: {module_name} has no class {attribute!r}{suggest(attribute, names)}"
        ) from None
    return found


def _from_file_module(path: Path) -> types.ModuleType:
    """Import a file once for each state of its text, so that a saved change counts."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"cannot read {path}: {error.strerror}") from None
    digest = hashlib.blake2b(source + str(path).encode(), digest_size=8).hexdigest()
    name = f"{_FILE_PREFIX}{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PolicyError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while they are made
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise PolicyError(f"{path}{line} cannot be imported: {error!r}") from error
    return module


def _from_file(target: str, base: Path | None) -> Any:
    text, _, attribute = target.rpartition(":")
    path = Path(text).expanduser()
    beside = base or Path.cwd()
    if not (beside / path).is_file() and path.is_file():
        beside = Path.cwd()  # a path typed on the command line
    path = (beside / path).resolve()
    module = _from_file_module(path)
    found = getattr(module, attribute, None)
    if found is None:
        names = _policy_classes(module)
        listed = f" (it has: {', '.join(names)})" if names else ""
        raise PolicyError(f"{path} has no class {attribute!r}{suggest(attribute, names)}{listed}")
    return found


def _policy_classes(module: types.ModuleType) -> list[str]:
    bases = tuple(KINDS.values())
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, bases) and value not in bases
    ]


def _checked(kind: str, cls: Any) -> type:
    """Return the class if it is a policy of the kind."""
    base = KINDS[kind]
    if not isinstance(cls, type):
        raise PolicyError(f"{cls!r} is not a class; a {kind} policy is a class")
    if issubclass(cls, base):
        return cls
    for other, other_base in KINDS.items():
        if issubclass(cls, other_base):
            raise PolicyError(f"{cls.__qualname__} is a policy of kind {other}, not {kind}")
    raise PolicyError(
        f"{cls.__qualname__} is no {kind} policy: it must subclass "
        f"gesim.core.policy.{base.__name__}"
    )
