"""Run a scenario: build it, simulate it, summarise it, once or several times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from gesim.errors import ScenarioError
from gesim.experiment.result import Result, Run
from gesim.metrics.combine import combine
from gesim.metrics.recorder import Recorder
from gesim.metrics.records import Facts, Records
from gesim.metrics.summary import summarise
from gesim.rng import derived_seed
from gesim.scenario.build import build
from gesim.scenario.expect import check_expectations
from gesim.scenario.scenario import Scenario
from gesim.scenario.system import System
from gesim.sim.engine import FellBack, choose_engine

__all__ = ["FIDELITIES", "run"]

FIDELITIES = ("model",)
"""Fidelity levels that exist so far; see docs/architecture.md for the others."""

Progress = Callable[[int, int, int], None]
"""(requests done, requests expected or 0, simulated ns)"""


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    replications: int = 1,
    engine: str = "auto",
    fidelity: str = "model",
    policies: Mapping[str, Any] | None = None,
    check_invariants: bool = False,
    on_progress: Progress | None = None,
) -> Result:
    """Run a scenario.

    Parameters
    ----------
    scenario : Scenario
    seed : int, optional
        Instead of the scenario's.
    replications : int, default 1
        Independent runs; the first uses the seed itself, the others seeds derived from it.
    engine : str, default "auto"
    fidelity : str, default "model"
    policies : mapping, optional
        Policies to use instead of the scenario's, see `gesim.scenario.build.build`.
    check_invariants : bool
        Check every law of docs/invariants.md at every step (slower).
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
    if fidelity not in FIDELITIES:
        raise ScenarioError(
            f"fidelity {fidelity!r} is not available; this version has {', '.join(FIDELITIES)}"
        )
    if replications < 1:
        raise ScenarioError(f"replications is {replications}; it must be at least 1")
    seed = scenario.seed if seed is None else seed
    started = perf_counter()
    runs: list[Run] = []
    one = None
    for number in range(replications):
        own_seed = seed if number == 0 else derived_seed(seed, f"replication/{number}")

        def progress(done: int, expected: int, now_ns: int, number: int = number) -> None:
            if on_progress is not None:
                on_progress(number * expected + done, replications * expected, now_ns)

        one = _one_run(scenario, own_seed, policies, engine, check_invariants, progress)
        runs.append(Run(own_seed, one.records, summarise(one.records, one.facts)))
        if one.partial:
            break
    assert one is not None
    summary = combine([run.summary for run in runs])
    return Result(
        scenario=scenario,
        seed=seed,
        engine=one.engine,
        engine_why=one.why,
        fidelity=fidelity,
        runs=runs,
        facts=one.facts,
        summary_dict=summary,
        expectations=check_expectations(scenario, summary),
        wall_s=perf_counter() - started,
        partial=one.partial,
    )


@dataclass
class _OneRun:
    """What one replication gave."""

    records: Records
    facts: Facts
    engine: str
    why: str
    partial: bool


def _one_run(
    scenario: Scenario,
    seed: int,
    policies: Mapping[str, Any] | None,
    wanted: str,
    check_invariants: bool,
    on_progress: Progress,
) -> _OneRun:
    """Build and simulate once."""
    system = build(scenario, seed, policies=policies)
    if check_invariants:
        from gesim.core.invariants import CheckedScheduler

        system.scheduler = CheckedScheduler.watching(system.scheduler)
        if wanted == "auto":
            wanted = "simpy"  # the checker sits in the scheduler
        elif wanted != "simpy":
            raise ScenarioError(f"--check-invariants needs engine simpy, not {wanted}")
    facts = facts_of(scenario, system)
    engine = choose_engine(wanted, system, facts.levels)
    recorder = Recorder(facts)
    expected, reached_ns = system.expected_requests, 0

    def progress(done: int, now_ns: int) -> None:
        nonlocal reached_ns
        reached_ns = now_ns
        on_progress(done, expected, now_ns)

    partial = False
    try:
        reached_ns = engine.simulate(system, recorder, progress).end_ns
    except FellBack as fell:
        if wanted == "compiled" and not fell.illegal:
            raise ScenarioError(
                f"engine compiled cannot run this scenario: it does not know {fell}; use auto"
            ) from None
        again = _one_run(scenario, seed, policies, "simpy", False, on_progress)
        again.why = f"the compiled engine does not know {fell}"
        return again
    except KeyboardInterrupt:
        partial = True
    return _OneRun(recorder.records(reached_ns, partial), facts, engine.name, engine.why, partial)


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
