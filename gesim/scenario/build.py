"""From a scenario to a system that a driver can run: see `build`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gesim.core.scheduler import ModelConfig, Scheduler
from gesim.errors import ScenarioError
from gesim.registry import KINDS
from gesim.rng import stream
from gesim.scenario.bind import costs_of, make_service, make_workload
from gesim.scenario.policies import build_policies
from gesim.scenario.scenario import Scenario
from gesim.scenario.schema import Model
from gesim.scenario.system import System
from gesim.units import suggest

__all__ = ["build"]


def build(
    scenario: Scenario, seed: int | None = None, *, policies: Mapping[str, Any] | None = None
) -> System:
    """Build everything that one run of a scenario needs, afresh.

    Parameters
    ----------
    scenario : Scenario
        Checked, so building it fails only for what a file holds (traces).
    seed : int, optional
        Seed of every random stream; the scenario's own by default.
    policies : mapping, optional
        Policies to use instead of the scenario's: kind to policy for every model
        (``{"batching": MyPolicy(8)}``), or model name to such a mapping. A policy is a name,
        a class or an instance; instances are copied.

    Returns
    -------
    System
        For `gesim.sim.driver.simulate`. It is used up by one run.

    Raises
    ------
    ScenarioError, PolicyError, ProfileError, WorkloadError
        If something cannot be built.
    """
    seed = scenario.seed if seed is None else seed
    given = _given(scenario, policies)
    copies = [name for device in scenario.devices for name in device.names()]
    streams = [device.streams for device in scenario.devices for _ in device.names()]
    configs, services = [], []
    for index, model in enumerate(scenario.models):
        costs = costs_of(model, scenario.base)
        service = make_service(costs, stream(seed, f"service/{model.name}"))
        batching, ordering, admission = build_policies(scenario, index, seed, given[model.name])
        services.append(service)
        configs.append(
            ModelConfig(
                name=model.name,
                batching=batching,
                ordering=ordering,
                devices=_instances(scenario, model, copies),
                service_ns=service.mean_ns,
                admission=admission,
                gears=costs.cost.gears,
                lengths=bool(costs.cost.lengths),
                queue_bound=model.queue_bound,
            )
        )
    workload, expected = make_workload(scenario, seed)
    return System(
        scheduler=Scheduler(configs, streams),
        services=services,
        workload=workload,
        receive_ns=scenario.frontend.receive_ns,
        respond_ns=scenario.frontend.respond_ns,
        models=[model.name for model in scenario.models],
        devices=copies,
        expected_requests=expected,
    )


def _instances(scenario: Scenario, model: Model, copies: list[str]) -> tuple[int, ...]:
    """Device index of every instance: `count` on each copy of each device chosen, in order."""
    chosen = model.instance_group.devices
    names: list[str] = []
    for device in scenario.devices:
        for name in device.names():
            if chosen is None or device.name in chosen or name in chosen:
                names.append(name)
    return tuple(copies.index(name) for name in names for _ in range(model.instance_group.count))


def _given(scenario: Scenario, policies: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Sort policies handed in by model."""
    models = [model.name for model in scenario.models]
    given: dict[str, dict[str, Any]] = {name: {} for name in models}
    for key, value in (policies or {}).items():
        if key in KINDS:
            for chosen in given.values():
                chosen.setdefault(key, value)
        elif key in models and isinstance(value, Mapping):
            given[key].update(value)
        else:
            raise ScenarioError(
                f"policies: {key!r} is neither a kind of policy ({', '.join(KINDS)}) nor a model "
                f"with such a mapping{suggest(key, [*KINDS, *models])}"
            )
    return given
