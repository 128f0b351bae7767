"""Building policies from what a scenario says about them."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gesim.errors import PolicyError, ScenarioError
from gesim.registry.find import KINDS, check_kind, find_policy, policy_name
from gesim.registry.parameters import Parameter, parameters
from gesim.registry.values import read_value, write_value
from gesim.units import suggest

__all__ = ["Problem", "build_policy", "check_policy", "describe_policy"]


class Problem(NamedTuple):
    """One thing wrong with one value.

    Attributes
    ----------
    path : tuple of str or int
        Keys and indices from the value that was checked down to the one at fault.
    message : str
        What is wrong and what would be right; names the value.
    error : type
        The error class that says who is at fault.
    """

    path: tuple[str | int, ...]
    message: str
    error: type[ScenarioError] | type[PolicyError] = ScenarioError


def build_policy(
    kind: str,
    spec: object,
    where: str = "",
    *,
    base: Path | None = None,
    context: Mapping[str, object] | None = None,
) -> Any:
    """Build a fresh policy from what a scenario (or a notebook) says.

    Parameters
    ----------
    kind : str
        batching, ordering or admission.
    spec : str, mapping, class or instance
        ``greedy``, ``{"policy": "greedy", "max_batch_size": 8}``, a policy class, or an
        instance, which is copied: policies keep state, and every model needs its own.
    where : str
        Key path that messages start with, like ``models[0].batching``.
    base : Path, optional
        Folder that relative file paths start from.
    context : mapping, optional
        Values for parameters that `spec` leaves open, for policies that have them: ``seed``
        of the run, ``queue_policy`` (whether the model has a queue policy in Triton's sense).
        An instance is taken as it is.

    Raises
    ------
    ScenarioError
        For an unknown, missing or wrong parameter.
    PolicyError
        If there is no such policy, or its constructor fails.
    """
    built, problems = check_policy(kind, spec, base=base, context=context)
    if problems:
        raise problems[0].error("\n".join(f"{_join(where, p.path)}{p.message}" for p in problems))
    return built


def check_policy(
    kind: str,
    spec: object,
    *,
    base: Path | None = None,
    context: Mapping[str, object] | None = None,
) -> tuple[Any, list[Problem]]:
    """Build a policy as `build_policy` does, but return what is wrong instead of raising.

    Returns
    -------
    tuple
        The policy (None if there are problems) and the problems.
    """
    given: dict[str, Any] = {}
    target: Any = spec
    if isinstance(spec, Mapping):
        given = {str(key): value for key, value in spec.items()}
        if "policy" not in given:
            near = suggest("policy", [str(k) for k in given]).replace("did you mean", "is it")
            return None, [Problem((), f"names no policy; write policy: NAME{near}")]
        target = given.pop("policy")
    try:
        if isinstance(target, KINDS[check_kind(kind)]):
            instance, cls = target, find_policy(kind, type(target))
        elif isinstance(target, str | type):
            instance, cls = None, find_policy(kind, target, base)
        else:
            raise PolicyError(f"{target!r} is not a {kind} policy; write the name of one")
    except PolicyError as error:
        return None, [
            Problem(("policy",) if isinstance(spec, Mapping) else (), str(error), PolicyError)
        ]
    values, problems = _read_parameters(cls, given, needed=instance is None, context=context)
    if problems:
        return None, problems
    return _construct(kind, cls, instance, values)


def describe_policy(kind: str, policy: object) -> dict[str, object]:
    """Write a policy as a scenario file would: its name and every parameter."""
    spec: dict[str, object] = {"policy": policy_name(type(policy), kind)}
    for parameter in parameters(type(policy)):
        value = getattr(policy, parameter.name)
        spec[parameter.key] = write_value(parameter.name, value)
    return spec


def _construct(
    kind: str, cls: type, instance: object, values: dict[str, Any]
) -> tuple[Any, list[Problem]]:
    name = getattr(cls, "name", "") or cls.__qualname__
    try:
        built: Any
        if instance is None:
            built = cls(**values)
        elif dataclasses.is_dataclass(instance):
            built = dataclasses.replace(instance, **values)  # type: ignore[type-var]
        else:
            built = copy.deepcopy(instance)
    except (ScenarioError, PolicyError) as error:  # the policy's own check of its parameters
        return None, [Problem(_at_fault(cls, str(error)), str(error))]
    except ValueError as error:
        message = f"{kind} policy {name!r} refuses its parameters: {error}"
        return None, [Problem(_at_fault(cls, str(error)), message)]
    except Exception as error:
        message = f"{kind} policy {name!r} raised {error!r} when built"
        return None, [Problem((), message, PolicyError)]
    if kind == "batching":
        size = getattr(built, "max_batch_size", None)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            message = (
                f"batching policy {name!r} has max_batch_size {size!r}; every batching policy "
                "needs one of at least 1"
            )
            return None, [Problem(("max_batch_size",), message)]
    return built, []


def _at_fault(cls: type, message: str) -> tuple[str, ...]:
    """Guess the parameter that a policy complains about: the first that it names."""
    keys = {p.key: p.key for p in parameters(cls)} | {p.name: p.key for p in parameters(cls)}
    for word in re.findall(r"\w+", message):
        if word in keys:
            return (keys[word],)
    return ()


def _read_parameters(
    cls: type, given: dict[str, Any], *, needed: bool, context: Mapping[str, object] | None
) -> tuple[dict[str, Any], list[Problem]]:
    """Turn what a file says into constructor arguments."""
    known = {p.key: p for p in parameters(cls)}
    name = getattr(cls, "name", "") or cls.__qualname__
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in given.items():
        parameter = known.get(key)
        if parameter is None:
            problems.append(Problem((key,), _unknown_parameter(cls, name, key, known)))
            continue
        try:
            values[parameter.name] = read_value(parameter.name, parameter.type, value)
        except ScenarioError as error:
            problems.append(Problem((key,), str(error)))
    if needed:
        for key, value in (context or {}).items():
            if key in known and key not in given:
                values[known[key].name] = value
    for key, parameter in known.items():
        absent = parameter.name not in values and key not in given
        if parameter.required and needed and absent:
            doc = f": {parameter.doc}" if parameter.doc else ""
            problems.append(
                Problem((), f"policy {name!r} needs {key} ({parameter.kind}){doc}"),
            )
    return values, problems


def _unknown_parameter(cls: type, name: str, key: str, known: Mapping[str, Parameter]) -> str:
    if not dataclasses.is_dataclass(cls):
        return f"policy {name!r} is not a dataclass, so it has no parameters"
    for parameter in known.values():
        if key == parameter.name:
            return f"write {parameter.key}, with a unit ({parameter.kind})"
    options = ", ".join(known) if known else "none"
    return f"unknown parameter of policy {name!r}{suggest(key, known)} (it has: {options})"


def _join(where: str, path: tuple[str | int, ...]) -> str:
    text = where
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"{text}: " if text else ""
