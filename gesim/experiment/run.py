"""Run a scenario: build it, simulate it, summarise it, once or several times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from gesim.errors import ScenarioError
from gesim.experiment.result import Result, Run
from gesim.metrics.combine import combine
from gesim.metrics.recorder import Recorder
from gesim.metrics.records import Facts
from gesim.metrics.summary import summarise
from gesim.rng import derived_seed
from gesim.scenario.build import build
from gesim.scenario.expect import check_expectations
from gesim.scenario.scenario import Scenario
from gesim.scenario.system import System
from gesim.sim.engine import choose_engine

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
    engine_name = engine
    partial = False
    for number in range(replications):
        own_seed = seed if number == 0 else derived_seed(seed, f"replication/{number}")
        system = build(scenario, own_seed, policies=policies)
        if check_invariants:
            _checked(system)
        facts = facts_of(scenario, system)
        engine_name, simulate = choose_engine(engine)
        recorder = Recorder(facts)
        end_ns = 0

        def progress(
            done: int, now_ns: int, number: int = number, expected: int = system.expected_requests
        ) -> None:
            nonlocal end_ns
            end_ns = now_ns
            if on_progress is not None:
                on_progress(number * expected + done, replications * expected, now_ns)

        try:
            end_ns = simulate(system, recorder, progress).end_ns
        except KeyboardInterrupt:
            partial = True
        records = recorder.records(end_ns)
        runs.append(Run(own_seed, records, summarise(records, facts)))
        if partial:
            break
    summary = combine([one.summary for one in runs])
    return Result(
        scenario=scenario,
        seed=seed,
        engine=engine_name,
        fidelity=fidelity,
        runs=runs,
        facts=facts,
        summary_dict=summary,
        expectations=check_expectations(scenario, summary),
        wall_s=perf_counter() - started,
        partial=partial,
    )


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
    )


def _checked(system: System) -> None:
    """Put the invariant checker between the driver and the scheduler."""
    from gesim.core.invariants import CheckedScheduler

    system.scheduler = CheckedScheduler.watching(system.scheduler)
