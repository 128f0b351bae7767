"""Run a scenario: build it, simulate it, summarise it, once or several times."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from gesim.errors import ScenarioError
from gesim.experiment.memory import bound_records, cut_warning
from gesim.experiment.result import Result, Run
from gesim.experiment.swap import with_policies
from gesim.metrics.combine import combine
from gesim.metrics.recorder import MAX_RECORDS, Recorder
from gesim.metrics.records import Facts, Records
from gesim.metrics.summary import summarise
from gesim.rng import derived_seed
from gesim.scenario.build import build
from gesim.scenario.expect import check_expectations
from gesim.scenario.load import load
from gesim.scenario.scenario import Scenario
from gesim.scenario.system import System
from gesim.sim.engine import FellBack, choose_engine
from gesim.units import suggest

__all__ = ["FIDELITIES", "check_settings", "facts_of", "run"]

FIDELITIES = ("model",)
"""Fidelity levels that exist so far; see docs/architecture.md for the others."""

LEAST_RECORDS = 10_000
"""Smallest bound on records: a streamed run is cut by blocks, too coarse for shorter ones."""

Progress = Callable[[int, int, int], None]
"""(requests done, requests expected or 0, simulated ns)"""

_LIBRARIES = ("numpy", "pandas", "pyarrow", "scipy", "simpy")


def run(
    scenario: Scenario | str | Path,
    *,
    seed: int | None = None,
    replications: int = 1,
    engine: str = "auto",
    fidelity: str = "model",
    policies: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    check_invariants: bool = False,
    max_records: int = MAX_RECORDS,
    on_progress: Progress | None = None,
) -> Result:
    """Run a scenario.

    Parameters
    ----------
    scenario : Scenario, str or Path
        Or the file of one.
    seed : int, optional
        Instead of the scenario's.
    replications : int, default 1
        Independent runs; the first uses the seed itself, the others seeds derived from it.
    engine : {"auto", "simpy", "compiled", "called", "interpreted"}
    fidelity : {"model"}
    policies : mapping, optional
        Policies to use instead of the scenario's: kind to policy for every model
        (``{"batching": MyPolicy(8)}``), or model name to such a mapping. A policy is a name, a
        class or an instance; a name or a class takes over the parameters that the old policy
        has and it knows too. ``result.scenario`` is the scenario with them.
    out : str or Path, optional
        Result folder to write.
    check_invariants : bool
        Check every law of docs/invariants.md at every step (slower).
    max_records : int, default 2,000,000
        Requests up to which every one is recorded, 10,000 or more; a longer run is folded into
        sums and histograms (docs/statistics.md says with which error).
    on_progress : callable, optional
        ``(requests done, expected or 0, simulated ns)``.

    Returns
    -------
    Result
        After Ctrl-C with what there is, marked as partial.

    Raises
    ------
    GesimError
        A subclass that says who is at fault.
    """
    check_settings(fidelity, replications, seed, max_records)
    scenario = _scenario(scenario)
    if policies:
        scenario = with_policies(scenario, policies)
    if out is not None:
        from gesim.experiment.folder import check_target

        check_target(out)
    seed = scenario.seed if seed is None else seed
    made = _provenance(replications)
    started = perf_counter()
    how = _How(engine, check_invariants, max_records)
    runs, last, partial = _replications(scenario, seed, replications, how, on_progress)
    warnings = scenario.warnings() + last.notes + cut_warning(runs)
    if len(runs) > 1 and all(one.summary == runs[0].summary for one in runs):
        warnings.append(f"all {len(runs)} replications are equal: nothing here is random")
    summary = combine([one.summary for one in runs])
    result = Result(
        scenario=scenario,
        seed=seed,
        engine=last.engine,
        engine_why=last.why,
        fidelity=fidelity,
        runs=runs,
        facts=last.facts,
        summary_dict=summary,
        expectations=check_expectations(scenario, summary),
        wall_s=perf_counter() - started,
        partial=partial,
        warnings=warnings,
        made=made,
    )
    if out is not None:
        result.save(out)
    return result


def check_settings(
    fidelity: str, replications: int, seed: int | None, max_records: int = MAX_RECORDS
) -> None:
    """Complain about settings of a run that cannot be met.

    Raises
    ------
    ScenarioError
        That says what would be right.
    """
    if fidelity not in FIDELITIES:
        raise ScenarioError(
            f"fidelity {fidelity!r} is not available{suggest(fidelity, FIDELITIES)} "
            f"(available now: {', '.join(FIDELITIES)})"
        )
    for name, count, least in (
        ("replications", replications, 1),
        ("max_records", max_records, LEAST_RECORDS),
    ):
        if isinstance(count, bool) or not isinstance(count, int) or count < least:
            raise ScenarioError(f"{name} is {count!r}; it is a number of {least:,} or more")
    whole = isinstance(seed, int) and not isinstance(seed, bool)
    if seed is not None and not (whole and 0 <= seed < 2**63):
        raise ScenarioError(f"seed is {seed!r}; it is a whole number from 0 to 2**63 - 1")


def _scenario(given: object) -> Scenario:
    if isinstance(given, Scenario):
        return given
    if isinstance(given, str | Path):
        return load(given)
    raise ScenarioError(
        f"run takes a scenario (gesim.load(...)) or the path of one, not {type(given).__name__}"
    )


def _provenance(replications: int) -> dict[str, Any]:
    """Say how the result comes about, apart from scenario, seed and version."""
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else [],
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "asked_replications": replications,
        "python": platform.python_version(),
        "versions": _versions(),
    }


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {name: version(name) for name in _LIBRARIES}


@dataclass(frozen=True)
class _How:
    """How every replication is run."""

    engine: str
    check_invariants: bool
    max_records: int


@dataclass
class _OneRun:
    """What one replication gave."""

    records: Records
    facts: Facts
    engine: str
    why: str
    partial: bool
    notes: list[str]
    """What was done to recorded arrivals."""


def _replications(
    scenario: Scenario,
    seed: int,
    replications: int,
    how: _How,
    on_progress: Progress | None,
) -> tuple[list[Run], _OneRun, bool]:
    """Run one after another; stop at Ctrl-C with those that are whole, or else with a part."""
    runs: list[Run] = []
    last: _OneRun | None = None
    for number in range(replications):
        own_seed = seed if number == 0 else derived_seed(seed, f"replication/{number}")

        def progress(done: int, expected: int, now_ns: int, number: int = number) -> None:
            if on_progress is not None:
                on_progress(number * expected + done, replications * expected, now_ns)

        try:
            one = _one_run(scenario, own_seed, how, progress)
            # A part would pull the mean of whole ones aside.
            if one.partial and last is not None:
                return runs, last, True
            runs.append(Run(own_seed, one.records, summarise(one.records, one.facts)))
            bound_records(runs, how.max_records)
            last = one
        except KeyboardInterrupt:
            if last is None:
                raise
            return runs, last, True
        if one.partial:
            break
    assert last is not None
    return runs, last, last.partial


def _one_run(scenario: Scenario, seed: int, how: _How, on_progress: Progress) -> _OneRun:
    """Build and simulate once."""
    system, wanted = build(scenario, seed), how.engine
    if how.check_invariants:
        from gesim.core.invariants import CheckedScheduler

        system.scheduler = CheckedScheduler.watching(system.scheduler)
        if wanted == "auto":
            wanted = "simpy"  # the checker sits in the scheduler
        elif wanted != "simpy":
            raise ScenarioError(f"--check-invariants needs engine simpy, not {wanted}")
    facts = facts_of(scenario, system)
    engine = choose_engine(wanted, system, facts.levels)
    recorder = Recorder(facts, how.max_records)
    expected, reached_ns = system.expected_requests, 0

    def progress(done: int, now_ns: int) -> None:
        nonlocal reached_ns
        reached_ns = now_ns
        on_progress(done, expected, now_ns)

    partial = False
    try:
        reached_ns = engine.simulate(system, recorder, progress).end_ns
    except FellBack as fell:
        if wanted != "auto" and fell.engine == "simpy" and not fell.illegal:
            raise ScenarioError(
                f"engine {wanted} cannot run this scenario: the fast lane does not know {fell}; "
                "use auto"
            ) from None
        again = _one_run(scenario, seed, replace(how, engine=fell.engine), on_progress)
        again.why = fell.warning or f"the fast lane does not know {fell}"
        again.notes += [fell.warning] if fell.warning else []
        return again
    except KeyboardInterrupt:
        partial = True
    records, notes = recorder.records(reached_ns, partial), getattr(system.workload, "notes", ())
    return _OneRun(records, facts, engine.name, engine.why, partial, list(notes))


def facts_of(scenario: Scenario, system: System) -> Facts:
    """Collect what a summary needs to know besides the records."""
    configs = [model.config for model in system.scheduler.models]
    return Facts(
        models=tuple(system.models),
        devices=tuple(system.devices),
        instances=tuple((m, d) for m, config in enumerate(configs) for d in config.devices),
        receive_ns=system.receive_ns,
        respond_ns=system.respond_ns,
        slo_ns=tuple(model.slo_ns or scenario.slo_ns or 0 for model in scenario.models),
        warmup_ratio=scenario.warmup.ratio,
        warmup_ns=scenario.warmup.time_ns,
        duration_ns=scenario.duration_ns or 0,
        levels=max(model.priority_levels for model in scenario.models),
        streams=tuple(device.streams for device in scenario.devices for _ in device.names()),
    )
