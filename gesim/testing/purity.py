"""Reading a policy's source for what it may not use: clocks, randomness, threads, files."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator

__all__ = ["impurities"]

_WHY = {
    "a clock": "time datetime sched",
    "randomness": "random secrets uuid numpy.random",
    "threads": "threading asyncio multiprocessing concurrent queue signal",
    "the outside world": "os io socket subprocess pathlib shutil requests urllib http tempfile",
    "another library": "numpy torch torch_npu scipy pandas simpy",
}
_FORBIDDEN = {module: why for why, modules in _WHY.items() for module in modules.split()}
_CALLS = {
    "open": "files", "input": "the terminal", "print": "the terminal", "exec": "hidden code",
    "eval": "hidden code", "__import__": "hidden code", "hash": "a hash that differs by process",
    "id": "an address that differs by process", "globals": "module state",
}  # fmt: skip


def impurities(cls: type) -> list[str]:
    """List what a policy class uses that the contract forbids.

    Returns
    -------
    list of str
        Each with file, line and reason. Empty also where no source can be found (a class made
        by ``exec``): there only `gesim.testing.guard` watches.
    """
    found: list[str] = []
    for base in cls.__mro__:
        if base.__module__.startswith(("gesim.core.", "builtins", "typing")):
            continue
        found += _of_class(base)
    return list(dict.fromkeys(found))


def _of_class(cls: type) -> Iterator[str]:
    module = sys.modules.get(cls.__module__)
    try:
        path = inspect.getsourcefile(cls) or "?"
        lines, first = inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return
    tree = ast.parse(textwrap.dedent("".join(lines)))
    names = _module_names(module)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0) + first - 1
        for what in _wrong(node, names):
            yield f"{path}:{line}: {what}"


def _module_names(module: types.ModuleType | None) -> dict[str, str]:
    """Names of a module that stand for something forbidden, with the module they come from."""
    names = {}
    for name, value in vars(module or types.ModuleType("none")).items():
        owner = value.__name__ if isinstance(value, types.ModuleType) else _owner(value)
        if _reason(owner):
            names[name] = owner
    return names


def _owner(value: object) -> str:
    owner = getattr(value, "__module__", None)
    if owner is None:  # methods of a hidden generator, like random.random
        owner = type(getattr(value, "__self__", None)).__module__
    return owner if isinstance(owner, str) else ""


def _reason(module: str) -> str:
    for name in (module, module.partition(".")[0], module.lstrip("_").partition(".")[0]):
        if name in _FORBIDDEN:
            return _FORBIDDEN[name]
    return ""


def _wrong(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    match node:
        case ast.Import(names=imported):
            for alias in imported:
                if _reason(alias.name):
                    yield f"imports {alias.name}: a policy uses no {_bare(_reason(alias.name))}"
        case ast.ImportFrom(module=str(module)) if _reason(module):
            yield f"imports {module}: a policy uses no {_bare(_reason(module))}"
        case ast.Name(id=name, ctx=ast.Load()) if name in names:
            yield f"uses {name} ({names[name]}): a policy uses no {_bare(_reason(names[name]))}"
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS and name not in names:
            yield f"calls {name}(): that is {_CALLS[name]}"
        case ast.Global(names=changed) | ast.Nonlocal(names=changed):
            yield f"changes {', '.join(changed)} outside itself: state belongs in fields"


def _bare(reason: str) -> str:
    return reason.removeprefix("a ").removeprefix("the ")
