"""Everything wrong with one scenario, in one message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gesim.errors import GesimError, PolicyError, ProfileError, ScenarioError
from gesim.registry import Problem, check_policy
from gesim.scenario.source import Path_, Source, key_text

__all__ = ["POLICY_KINDS", "effective", "from_validation", "policy_problems", "report"]

POLICY_KINDS = ("batching", "ordering", "admission")

_SHOWN = 10
"""Problems listed at most; the rest is counted."""

_BLAME: dict[str, type[Any]] = {"gesim.policy": PolicyError, "gesim.profile": ProfileError}


def report(source: Source, problems: Iterable[Problem]) -> GesimError:
    """Make the one error that tells all problems, each with its place.

    The error's class is that of the only problem, or `ScenarioError` for several of
    different kinds.
    """
    lines: list[str] = []
    classes: set[Any] = set()
    for problem in sorted(problems, key=lambda p: _line(source, p)):
        parts = (source.where(problem.path), key_text(problem.path), problem.message)
        line = ": ".join(part for part in parts if part)
        if line not in lines:
            lines.append(line)
            classes.add(problem.error)
    error = classes.pop() if len(classes) == 1 else ScenarioError
    more = len(lines) - _SHOWN
    if more > 0:
        lines[_SHOWN:] = [f"... and {more} more"]
    made: GesimError = error("\n".join(lines))
    return made


def _line(source: Source, problem: Problem) -> int:
    for end in range(len(problem.path), -1, -1):
        line = source.lines.get(problem.path[:end])
        if line is not None:
            return line
    return 0


def from_validation(error: ValidationError) -> list[Problem]:
    """Turn what the schema found into problems."""
    problems = [
        Problem(
            tuple(p for p in e["loc"] if p != "[key]"),
            e["msg"],
            _BLAME.get(e["type"], ScenarioError),
        )
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    # A list whose entries are wrong counts as too short as well: the entries tell more.
    return [
        p
        for p in problems
        if "is too short" not in p.message
        or not any(len(q.path) > len(p.path) and q.path[: len(p.path)] == p.path for q in problems)
    ]


def effective(own: Any, shared: Any) -> Any:
    """Merge a model's policy with the one for every model.

    A model's mapping without ``policy`` changes only parameters of the shared one.
    """
    if own is None:
        return shared
    if _partial(own) and shared is not None:
        start = dict(shared) if isinstance(shared, Mapping) else {"policy": shared}
        return {**start, **own}
    return own


def policy_problems(data: Mapping[str, Any], base: Path) -> list[Problem]:
    """Check every policy in a scenario's plain data, whatever else is wrong with it."""
    problems: list[Problem] = []
    models = data.get("models")
    models = models if isinstance(models, list | tuple) else []
    models = [model if isinstance(model, Mapping) else {} for model in models]
    for kind in ("batching", "ordering"):
        shared = data.get(kind)
        partial = [_partial(model.get(kind)) for model in models]
        if shared is not None and not (partial and all(partial)):
            problems += _checked(kind, shared, (kind,), base)
        for i, model in enumerate(models):
            own = model.get(kind)
            if own is not None:
                spec = effective(own, shared)
                found = _checked(kind, spec, ("models", i, kind), base)
                # What the model takes over from the top was checked there, if it is used there.
                heard = all(partial) or own is spec
                problems += [p for p in found if heard or _own(p.path, own)]
    problems += _admission(data.get("admission"), ("admission",), base)
    for i, model in enumerate(models):
        problems += _admission(model.get("admission"), ("models", i, "admission"), base)
    return problems


def _partial(own: Any) -> bool:
    return isinstance(own, Mapping) and "policy" not in own


def _own(path: Path_, own: Mapping[str, Any]) -> bool:
    return len(path) > 3 and path[3] in own


def _admission(listed: Any, path: Path_, base: Path) -> list[Problem]:
    if listed is None:
        return []
    if not isinstance(listed, list | tuple):
        return _checked("admission", listed, path, base)
    found = [_checked("admission", s, (*path, i), base) for i, s in enumerate(listed)]
    return [problem for problems in found for problem in problems]


def _checked(kind: str, spec: Any, path: Path_, base: Path) -> list[Problem]:
    _, problems = check_policy(kind, spec, base=base, context={"seed": 0})
    return [Problem((*path, *p.path), p.message, p.error) for p in problems]
