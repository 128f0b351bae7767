"""The conformance suite, which tells whether a policy keeps the contract.

Theory of operation
-------------------
`check_policy` builds a policy with many parameter values and plays seeded traffic of many
kinds through the checked scheduler (`gesim.core.invariants`), with stand-ins between the two
(`gesim.testing.guard`) that hide what a server could not know. What goes wrong is sorted into
the checks of the report; each failure is one line that says what would be right. A policy may
refuse parameters or models (by raising `PolicyError`), but not all of them.

In a test suite: ``check_policy(MyPolicy).require()``.
"""

from __future__ import annotations

import dataclasses
import inspect
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gesim.core.invariants import CheckedScheduler
from gesim.core.request import Request
from gesim.errors import ContractError, GesimError, InternalError, PolicyError, ScenarioError
from gesim.policies.admission.queue_timeout import QueueTimeout
from gesim.policies.batching.greedy import Greedy
from gesim.policies.ordering.strict_priority import StrictPriority
from gesim.registry import KINDS, find_policy, parameters, policy_names
from gesim.testing.guard import (
    EndlessError,
    GuardedAdmission,
    GuardedBatching,
    GuardedOrdering,
    HiddenError,
    UnsteadyError,
)
from gesim.testing.harness import Played, model, play
from gesim.testing.purity import impurities
from gesim.testing.traffic import CASES, Case, service_ns, settings_of, traffic
from gesim.units import suggest

__all__ = ["Check", "Report", "check_policy"]

_SEED = 20240607
_STATE_MAX = 1_000
"""Values that a policy may hold when its queue is empty."""

_INSTANTS_MAX = 50_000
"""A run of a few hundred requests that takes more instants will not end."""

CHECKS = {
    "form": "a documented dataclass with plain parameters",
    "builds": "its parameters make a policy",
    "pure": "no clock, randomness, threads, files or other libraries",
    "view": "sees and changes nothing that a server could not",
    "answers": "legal answers only, and no exceptions",
    "ends": "comes to an answer within 64 tries",
    "deterministic": "the same question gets the same answer",
    "invariants": "the scheduler's laws hold under it",
    "promises": "work_conserving and by_level are kept",
    "live": "one request on an idle device is not forgotten",
    "bounded": "its state does not grow with time",
}


class Check(NamedTuple):
    """One line of a report.

    Attributes
    ----------
    name, meaning : str
        What was checked.
    ok : bool
        Whether it holds.
    why : str
        What is wrong and what would be right; a remark where `ok`; else empty.
    """

    name: str
    meaning: str
    ok: bool
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """What the suite found.

    Attributes
    ----------
    policy, kind : str
        What was checked.
    checks : list of Check
        In the order of the suite.
    runs, decisions : int
        Simulated runs, and questions put to the policy.
    """

    policy: str
    kind: str
    checks: list[Check]
    runs: int
    decisions: int

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)

    def __str__(self) -> str:
        lines = [f"{self.kind} policy {self.policy}: {self.decisions} answers in {self.runs} runs"]
        for check in self.checks:
            why = f": {check.why}" if check.why else ""
            lines.append(f"  {'ok  ' if check.ok else 'FAIL'} {check.name} ({check.meaning}){why}")
        return "\n".join(lines)

    def require(self) -> Report:
        """Raise AssertionError with the report unless all is well (for tests)."""
        if not self.ok:
            raise AssertionError(str(self))
        return self


def check_policy(
    target: str | type,
    kind: str | None = None,
    *,
    values: Mapping[str, object] | None = None,
    base: Path | None = None,
) -> Report:
    """Run the suite on a policy.

    Parameters
    ----------
    target : str or type
        A registered name, ``module:Class``, ``path/file.py:Class``, or the class.
    kind : str, optional
        batching, ordering or admission; found out by default.
    values : mapping, optional
        Parameter values to keep fixed, by field name (needed for types that the suite cannot
        make values of).
    base : Path, optional
        Folder that relative file paths start from.

    Raises
    ------
    PolicyError
        If there is no such policy, or its file cannot be imported.
    """
    kind, cls = _found(target, kind, base)
    suite = _Suite(kind, cls, dict(values or {}))
    suite.run()
    name = target if isinstance(target, str) else cls.__qualname__
    checks = [
        Check(check, meaning, check not in suite.failures, suite.text(check))
        for check, meaning in CHECKS.items()
        if check != "live" or kind == "batching"
    ]
    return Report(name, kind, checks, suite.runs, suite.decisions)


def _found(target: str | type, kind: str | None, base: Path | None) -> tuple[str, type]:
    if kind is not None:
        return kind, find_policy(kind, target, base)
    if isinstance(target, str) and ":" not in target:
        for each in KINDS:
            if target in policy_names(each):
                return each, find_policy(each, target)
        known = [name for each in KINDS for name in policy_names(each)]
        raise PolicyError(
            f"there is no policy {target!r}{suggest(target, known)} (known: {', '.join(known)}; "
            "or path/file.py:Class)"
        )
    errors = []
    for each in KINDS:
        try:
            return each, find_policy(each, target, base)
        except PolicyError as error:
            errors.append(error)
    if any("is no " in str(error) for error in errors):
        bases = ", ".join(cls.__name__ for cls in KINDS.values())
        raise PolicyError(f"{target} is no policy: it must subclass one of {bases}") from None
    raise errors[0]


class _Suite:
    """One run of the suite; collects the first failure of every check."""

    def __init__(self, kind: str, cls: type, values: dict[str, object]) -> None:
        self.kind, self.cls, self.values = kind, cls, values
        self.failures: dict[str, str] = {}
        self.remarks: dict[str, str] = {}
        self.runs = self.decisions = 0
        self.served = 0
        self.refusals: list[str] = []

    def fail(self, check: str, why: str) -> None:
        self.failures.setdefault(check, why)

    def text(self, check: str) -> str:
        return self.failures.get(check) or self.remarks.get(check, "")

    def run(self) -> None:
        self._form()
        for line in impurities(self.cls)[:1]:
            self.fail("pure", line)
        made = list(self._policies())
        if not made:
            return
        for n, make in enumerate(made):
            for case in CASES:
                if n and case.name in ("sparse", "steady"):
                    continue
                self._play(make, case, traced=True)
        if not self.served and not self.failures and self.refusals:
            self.fail("answers", f"refuses every model: {self.refusals[0]}")
        if not self.failures.keys() - {"form", "pure"}:
            self._repeat(made[0])
            self._bounded(made[0])
            if self.kind == "batching":
                for make in made:
                    self._live(make)
                if not self.served:
                    self.fail("live", f"never starts a batch in {self.runs} runs")

    # ---- statics -----------------------------------------------------------------------

    def _form(self) -> None:
        cls = self.cls
        if not dataclasses.is_dataclass(cls) or "__dataclass_fields__" not in vars(cls):
            self.fail("form", f"{cls.__qualname__} is not a dataclass; put @dataclass above it")
            return
        method = {"batching": "decide", "ordering": "key", "admission": "admit"}[self.kind]
        if getattr(cls, method) is getattr(KINDS[self.kind], method):
            self.fail("form", f"{cls.__qualname__} has no {method} method")
        elif inspect.iscoroutinefunction(getattr(cls, method)):
            self.fail("form", f"{method} must be a plain function, not async")
        if "__doc__" not in vars(cls) or (cls.__doc__ or "").startswith(f"{cls.__name__}("):
            self.fail("form", f"{cls.__qualname__} has no docstring; its first line is its meaning")
        for parameter in parameters(cls):
            if not parameter.doc:
                self.fail(
                    "form",
                    f"parameter {parameter.name} is not in the docstring's Parameters section",
                )
        if not getattr(cls, "name", ""):
            self.remarks["form"] = "no `name`; messages use the class name"

    def _policies(self) -> Iterator[Callable[[Case], Any]]:
        """Yield makers of the policy for all parameter values that it accepts."""
        first = True
        for values in settings_of(self.cls, self.values):
            try:
                made = self.cls(**values)
            except (PolicyError, ScenarioError, ValueError) as error:
                if first:
                    self.fail("builds", f"{_shown(values)} is refused: {error}; pass values")
            except Exception as error:
                self.fail("builds", f"{_shown(values)} raised {error!r}{_place(error, self.cls)}")
            else:
                size = getattr(made, "max_batch_size", None)
                if self.kind == "batching" and (type(size) is not int or size < 1):
                    self.fail(
                        "builds", f"max_batch_size is {size!r}; every batching policy has one >= 1"
                    )
                    return
                yield _Maker(self.cls, values)
            first = False

    # ---- traffic -----------------------------------------------------------------------

    def _play(self, make: Callable[[Case], Any], case: Case, traced: bool = False) -> Played | None:
        """Run one case; sort what goes wrong into a check."""
        if "ends" in self.failures:
            return None  # it would loop again
        self.runs += 1
        policy = make(case)
        guarded, config = self._config(policy, case, traced)
        requests = traffic(case, _SEED, config.batching.max_batch_size if not case.gears else
                           min(config.batching.max_batch_size, case.gears[-1]))  # fmt: skip
        try:
            played = play([config], requests, streams=case.streams, instants_max=_INSTANTS_MAX)
        except GesimError as error:
            self._sort(error, f"{make}, traffic {case.name!r}")
            return None
        except Exception as error:
            self.fail("answers", f"raised {error!r}{_place(error, self.cls)} ({make})")
            return None
        finally:
            self.decisions += guarded._guard.asked
        self.served += len(played.batches)
        if isinstance(guarded, GuardedAdmission) and not guarded.admitted:
            self.remarks["answers"] = f"nothing is ever admitted with {make}"
        return played

    def _config(self, policy: Any, case: Case, traced: bool) -> tuple[Any, Any]:
        """Put the policy into a model with plain others around it."""
        batching: Any = Greedy(8)
        ordering: Any = None
        admission: tuple[Any, ...] = ()
        guarded: Any
        if self.kind == "batching":
            guarded = batching = GuardedBatching(policy, traced)
            ordering = StrictPriority() if case.levels > 1 else None
            admission = (QueueTimeout(0, override="always"),) if case.timeout_ns else ()
        elif self.kind == "ordering":
            guarded = ordering = GuardedOrdering(policy, traced)
        else:
            guarded = GuardedAdmission(policy, traced)
            admission = (guarded,)
        config = model(
            batching, ordering, admission, devices=case.devices, gears=case.gears,
            service_ns=service_ns,
        )  # fmt: skip
        return guarded, config

    def _sort(self, error: GesimError, where: str) -> None:
        cause = error
        while not isinstance(cause, HiddenError | UnsteadyError | EndlessError):
            if not isinstance(cause.__cause__, GesimError):
                break
            cause = cause.__cause__
        text = f"{cause} ({where})"
        if isinstance(cause, HiddenError):
            self.fail("view", text)
        elif isinstance(cause, UnsteadyError):
            self.fail("deterministic", text)
        elif isinstance(cause, EndlessError) or "answers in one instant" in str(cause):
            self.fail("ends", text)
        elif "invariant I4" in str(error) or "promises by_level" in str(cause):
            self.fail("promises", text)
        elif isinstance(error, InternalError):
            check = "ends" if "does not end" in str(error) else "invariants"
            self.fail(check, text)
        elif isinstance(error, ContractError):
            self.fail("answers", text)
        elif error.__cause__ is None:
            self.refusals.append(str(error))  # its own PolicyError: not for this model
            self.remarks["builds"] = f"refuses some models: {error}"
        else:
            self.fail("answers", f"{error}{_place(error.__cause__, self.cls)} ({where})")

    def _repeat(self, make: Callable[[Case], Any]) -> None:
        for case in CASES:
            first, second = self._play(make, case), self._play(make, case)
            if first and second and first.log() != second.log():
                self.fail("deterministic", f"two runs of traffic {case.name!r} differ ({make})")

    def _bounded(self, make: Callable[[Case], Any]) -> None:
        """Run long and look at what the policy still holds when nothing is queued."""
        case = dataclasses.replace(CASES[0], count=4 * _STATE_MAX, load=0.3)
        policy = make(case)
        _, config = self._config(policy, case, traced=False)
        try:
            play([config], traffic(case, _SEED, 1), checked=False)
        except GesimError:
            return  # reported by the short runs
        held = _count_values(policy, 10 * _STATE_MAX)
        if held > _STATE_MAX:
            self.fail(
                "bounded",
                f"holds {held} values after {case.count} requests; state must not grow with time",
            )

    def _live(self, make: Callable[[Case], Any]) -> None:
        """One request, idle device, then nothing; then as many as it waits for."""
        size = make(CASES[0]).max_batch_size
        for count in (1, max(2, 2 * size)):
            _, config = self._config(make(CASES[0]), CASES[0], traced=False)
            requests = [Request(i, 0, 0, 0) for i in range(count)]
            scheduler = CheckedScheduler([config], (1,))
            try:
                played = play([config], requests, scheduler=scheduler)
            except GesimError:
                return
            if len(played.waiting) < count:
                return
            wait = scheduler.models[0]
            if wait.wait_count > max(size, count + 1):
                self.fail("live", f"{count} queued on an idle device wait for ever ({make})")
                return
            self.remarks["live"] = f"fewer than {wait.wait_count} wait for ever ({make})"
        self.fail("live", f"never starts anything with {count} queued ({make})")


class _Maker:
    """Makes fresh policies with fixed parameter values; prints as those."""

    def __init__(self, cls: type, values: dict[str, Any]) -> None:
        self.cls, self.values = cls, values

    def __call__(self, case: Case) -> Any:
        policy = self.cls(**self.values)
        if getattr(policy, "queue_policy", None) is False:
            policy.queue_policy = case.levels > 1 or case.timeout_ns > 0  # as scenarios do
        return policy

    def __str__(self) -> str:
        return _shown(self.values)


def _shown(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items()) or "no parameters"


def _place(error: BaseException | None, cls: type) -> str:
    """Where in the policy's own file an exception came from."""
    if error is None:
        return ""
    try:
        path = inspect.getsourcefile(cls)
    except (OSError, TypeError):
        path = None
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return f" at {path}:{lines[-1]}" if lines else ""


def _count_values(value: object, most: int) -> int:
    """Count the values that an object holds, up to about `most`."""
    if isinstance(value, str | bytes | int | float | None):
        return 1
    if isinstance(value, Mapping):
        parts: list[object] = [*value.keys(), *value.values()]
    elif isinstance(value, Collection):
        parts = list(value)
    elif isinstance(value, type) or callable(value):
        return 1
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    total = 1
    for part in parts:
        if total > most:
            break
        total += _count_values(part, most - total)
    return total
