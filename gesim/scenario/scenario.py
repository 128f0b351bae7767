"""The scenario: a checked, immutable document that knows where each value came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import PrivateAttr, ValidationError

from gesim.errors import GesimError, ScenarioError
from gesim.registry import Problem
from gesim.scenario.edit import plain_copy, put
from gesim.scenario.problems import from_validation, policy_problems, report
from gesim.scenario.schema import Document
from gesim.scenario.source import Source

__all__ = ["Scenario"]


class Scenario(Document):
    """One scenario. Made by `load` or `Scenario.from_dict`, changed by `set` into a new one."""

    _source: Source = PrivateAttr()
    _notes: tuple[str, ...] = PrivateAttr(default=())
    _resolved: dict[str, Any] | None = PrivateAttr(default=None)

    # ---- making ----------------------------------------------------------------------------

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], where: str = "scenario", base: Path | None = None
    ) -> Self:
        """Make a scenario from plain data, as a YAML file would hold it.

        Parameters
        ----------
        data : mapping
            Keys as in files; policies may be classes or instances.
        where : str
            What messages call it.
        base : Path, optional
            Folder that file names start from; the working directory by default.

        Raises
        ------
        ScenarioError
            With everything that is wrong.
        PolicyError, ProfileError
            If only a policy or a profile is.
        """
        if not isinstance(data, Mapping):
            raise ScenarioError(f"{where}: a scenario is a mapping; this is {type(data).__name__}")
        source = Source(plain_copy(data), where, (base or Path.cwd()).resolve())
        return cls.from_source(source)

    @classmethod
    def from_source(cls, source: Source) -> Self:
        """Check what was read; see `from_dict`."""
        from gesim.scenario.check import check

        problems: list[Problem] = []
        scenario: Self | None = None
        if source.data.get("schema", 1) != 1:  # another format: what else is in it means nothing
            problems = _schema_problem(source)
        else:
            problems = policy_problems(source.data, source.base)
            try:
                scenario = cls.model_validate(source.data)
            except ValidationError as error:
                problems += from_validation(error)
        if scenario is not None:
            scenario._source = source
            problems += check(scenario, policies_sound=not problems)
        if problems or scenario is None:
            raise report(source, problems)
        return scenario

    @classmethod
    def from_stored(cls, data: Mapping[str, Any], where: str, base: Path) -> Self:
        """Make a scenario of what a result stores; see `from_dict`.

        What it names outside itself may be gone since (a policy of a notebook, a trace on
        another machine): then it can still be looked at, though not run.
        """
        try:
            return cls.from_dict(data, where, base)
        except GesimError:
            try:
                scenario = cls.model_validate(data)
            except ValidationError as error:
                source = Source({}, where)
                raise report(source, from_validation(error)) from None
            scenario._source = Source(plain_copy(data), where, base.resolve())
            scenario._resolved = plain_copy(data)
            return scenario

    # ---- using -----------------------------------------------------------------------------

    @property
    def file(self) -> str:
        """The file it was read from, or what `from_dict` was told to call it."""
        return self._source.file

    @property
    def base(self) -> Path:
        """Folder that file names inside it start from."""
        return self._source.base

    def set(self, key: str, value: object) -> Self:
        """Return a new scenario with one value changed.

        Parameters
        ----------
        key : str
            Key path, like ``batching.max_batch_size``, ``models[0].slo`` or
            ``models[resnet101].priority_levels``.
        value : object
            Text is read as YAML reads a value (``"8"``, ``"5ms"``, ``"[1, 4]"``). A policy may
            be a class or an instance.

        Raises
        ------
        ScenarioError
            If there is no such key, or the new scenario is wrong.
        """
        return self.set_many({key: value})

    def set_many(self, changes: Mapping[str, object]) -> Self:
        """Return a new scenario with several values changed at once; see `set`."""
        old = self._source
        data = plain_copy(old.data)
        source = Source(data, old.file, old.base, dict(old.lines), dict(old.changes))
        notes = list(self._notes)
        for key, value in changes.items():
            shown = value if isinstance(value, str) else repr(value)
            told = f"{old.file} with {key}={shown}"
            try:
                path, dropped = put(data, key, value, self.resolved(), old.base)
            except ScenarioError as error:
                raise type(error)(f"{told}: {error}") from None
            for known in [p for p in source.lines if p[: len(path)] == path]:
                del source.lines[known]
            source.changes[path] = told
            notes += [f"{key}={shown} drops {name}: the new policy has none" for name in dropped]
        made = type(self).from_source(source)
        made._notes = tuple(notes)
        return made

    def resolved(self) -> dict[str, Any]:
        """Return the scenario as plain data with every default filled in.

        Quantities are text with units, file names absolute. `from_dict` makes an equal
        scenario of it.
        """
        from gesim.scenario.resolve import resolve

        if self._resolved is None:
            self._resolved = resolve(self)
        return plain_copy(self._resolved)  # type: ignore[no-any-return]

    def warnings(self) -> list[str]:
        """Say what in the scenario has no effect or is probably not meant."""
        from gesim.scenario.check import warnings

        return [*self._notes, *warnings(self)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        models = ", ".join(model.name for model in self.models)
        return f"<Scenario {self.name!r}: {models}; {self.workload.arrivals.process}>"

    __str__ = __repr__


def _schema_problem(source: Source) -> list[Problem]:
    try:
        Document.model_validate({"schema": source.data["schema"]})
    except ValidationError as error:
        return [p for p in from_validation(error) if p.path == ("schema",)]
    return []
