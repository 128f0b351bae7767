"""A scenario with every default written out: what results store and can be run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gesim.registry import describe_policy
from gesim.scenario.bind import costs_of, shipped
from gesim.scenario.check import entries_of
from gesim.scenario.policies import build_one, queue_policy, specs
from gesim.units import write_time

if TYPE_CHECKING:
    from gesim.scenario.scenario import Scenario

__all__ = ["resolve"]


def resolve(scenario: Scenario) -> dict[str, Any]:
    """Return plain data with units in text, defaults filled in and file names absolute."""
    data: dict[str, Any] = scenario.model_dump(by_alias=True, exclude_none=True)
    for shared in ("batching", "ordering", "admission"):
        data.pop(shared, None)  # every model names its own below
    data["warmup"] = scenario.warmup.text()
    data["models"] = [_model(scenario, i, data["models"][i]) for i in range(len(scenario.models))]
    data["workload"] = _workload(scenario, data["workload"])
    made: dict[str, Any] = _listed(data)
    return made


def _model(scenario: Scenario, index: int, data: dict[str, Any]) -> dict[str, Any]:
    model = scenario.models[index]
    costs = costs_of(model, scenario.base)
    if model.profile is not None and not shipped(model.profile):
        data["profile"] = str((scenario.base / Path(model.profile).expanduser()).resolve())
    data["gears"] = list(costs.cost.gears) or "any"
    data["instance_group"]["devices"] = list(
        model.instance_group.devices or [device.name for device in scenario.devices]
    )
    if "priority_levels" not in model.model_fields_set:
        del data["priority_levels"]  # written out, it would be a queue policy
    if model.default_priority_level is None:
        data["default_priority_level"] = model.priority_levels
    if model.slo_ns is None and "slo" not in data and scenario.slo_ns is not None:
        data["slo"] = write_time(scenario.slo_ns)
    for kind, spec in specs(scenario, index).items():
        queued = queue_policy(scenario, index)
        if kind == "admission":
            data[kind] = [_policy(scenario, kind, one, queued) for one in spec]
        else:
            data[kind] = _policy(scenario, kind, spec, queued)
    return data


def _policy(scenario: Scenario, kind: str, spec: Any, queued: bool) -> dict[str, Any]:
    built = build_one(scenario, kind, spec, queue_policy=queued)
    described = describe_policy(kind, built)
    # A seed that the scenario leaves open comes from the run's seed: leave it open.
    given = spec if isinstance(spec, dict) else {"policy": spec}
    if "seed" not in given and isinstance(given["policy"], str | type):
        described.pop("seed", None)
    return described


def _workload(scenario: Scenario, data: dict[str, Any]) -> dict[str, Any]:
    arrivals = data["arrivals"]
    if arrivals["process"] == "trace":
        arrivals["file"] = str((scenario.base / Path(arrivals["file"]).expanduser()).resolve())
    mix = []
    written = data.get("mix") or [{"weight": 1.0, "items": 1}]
    places = {
        path: model
        for index, model in enumerate(scenario.models)
        for path, _ in entries_of(scenario, index)
    }
    for i, entry in enumerate(written):
        path = ("workload", "mix", i) if scenario.workload.mix else ("workload",)
        model = places[path]
        level = model.default_priority_level or model.priority_levels
        filled = {"model": model.name, "priority": level, **entry}
        if arrivals["process"] == "trace" and "priority" not in entry:
            del filled["priority"]  # the trace may bring its own
        mix.append(filled)
    data["mix"] = mix
    return data


def _listed(value: Any) -> Any:
    """Turn tuples into lists, as YAML and JSON have them."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_listed(item) for item in value]
    return value
