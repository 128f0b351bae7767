"""What the schema alone cannot see: names that must match, sizes that must fit, no-effects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gesim.errors import GesimError, ProfileError, ScenarioError, WorkloadError
from gesim.registry import Problem
from gesim.scenario.arrivals import Closed, MlPerf, Trace, ends_by_itself
from gesim.scenario.bind import Costs, costs_of
from gesim.scenario.expect import parse_expectations
from gesim.scenario.policies import build_policies
from gesim.scenario.schema import MixEntry, Model
from gesim.scenario.source import Path_
from gesim.units import suggest

if TYPE_CHECKING:
    from gesim.scenario.scenario import Scenario

__all__ = ["check", "warnings"]

_SIZES_CHECKED = 1024
"""Batch sizes looked up one by one at validation; above it the ends of the range."""


def check(scenario: Scenario, *, policies_sound: bool) -> list[Problem]:
    """Find what is wrong between the parts of a scenario that are right one by one.

    Parameters
    ----------
    scenario : Scenario
        Passed the schema.
    policies_sound : bool
        Whether every policy could be built; if not, what depends on them is not checked.
    """
    problems = [*_names(scenario), *_end(scenario), *_mix(scenario), *_trace(scenario)]
    for i, model in enumerate(scenario.models):
        path: Path_ = ("models", i)
        problems += _priorities(model, path)
        problems += _instances(scenario, model, path)
        costs = None
        try:
            costs = costs_of(model, scenario.base)
        except GesimError as error:
            key = "profile" if model.profile is not None else "cost"
            problems.append(Problem((*path, key), str(error), ProfileError))
        if costs is not None:
            problems += _lengths(scenario, i, costs)
            problems += _traits(scenario, i, costs)
            if policies_sound:
                problems += _sizes(scenario, i, costs)
    _, expect_problems = parse_expectations(scenario)
    return problems + expect_problems


def _names(scenario: Scenario) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, model in enumerate(scenario.models):
        if model.name in seen:
            yield Problem(("models", i, "name"), f"{model.name!r} names a second model")
        if model.name.startswith("level") and model.name[5:].isdigit():
            message = f"{model.name!r} would be taken for a priority level; choose another name"
            yield Problem(("models", i, "name"), message)
        seen.add(model.name)
    seen = set()
    for i, device in enumerate(scenario.devices):
        for name in {*device.names(), device.name}:
            if name in seen:
                yield Problem(("devices", i, "name"), f"{name!r} names a second device")
        seen |= {*device.names(), device.name}


def _end(scenario: Scenario) -> Iterator[Problem]:
    arrivals = scenario.workload.arrivals
    if scenario.duration_ns is None and scenario.requests is None and not ends_by_itself(arrivals):
        yield Problem(
            (),
            f"arrivals of process {arrivals.process!r} never end: give requests "
            "(like requests: 100000) or duration (like duration: 60s)",
        )
    end_ns = scenario.duration_ns
    if end_ns is not None and scenario.warmup.time_ns >= end_ns:
        yield Problem(("warmup",), "cuts the whole duration; write a shorter time")


def _mix(scenario: Scenario) -> Iterator[Problem]:
    names = [model.name for model in scenario.models]
    mix = scenario.workload.mix
    if mix is None:
        if len(names) > 1 and scenario.workload.arrivals.process != "trace":
            message = f"needs mix: with {len(names)} models it is open which one requests ask for"
            yield Problem(("workload",), message)
        return
    for i, entry in enumerate(mix):
        path: Path_ = ("workload", "mix", i)
        if entry.model is None and len(names) > 1:
            yield Problem(path, f"needs model, one of: {', '.join(names)}")
        elif entry.model is not None and entry.model not in names:
            near = suggest(entry.model, names)
            known = ", ".join(names)
            yield Problem((*path, "model"), f"there is no model {entry.model!r}{near} ({known})")
        else:
            model = next(m for m in scenario.models if entry.model in (None, m.name))
            if entry.priority is not None and entry.priority > model.priority_levels:
                yield Problem((*path, "priority"), _beyond(entry.priority, model))


def _trace(scenario: Scenario) -> Iterator[Problem]:
    """Look for the trace file now: a run should not start to find it missing."""
    arrivals = scenario.workload.arrivals
    if not isinstance(arrivals, Trace):
        return
    path = scenario.base / Path(arrivals.file).expanduser()
    if not path.is_file():
        names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        message = f"there is no file {path}{suggest(path.name, names)}"
        yield Problem(("workload", "arrivals", "file"), message, WorkloadError)


def _beyond(level: int, model: Model) -> str:
    levels = model.priority_levels
    has = f"levels 1 to {levels}" if levels > 1 else "one level (priority_levels: 1)"
    return f"{level} is no priority level of model {model.name!r}, which has {has}"


def _priorities(model: Model, path: Path_) -> Iterator[Problem]:
    level = model.default_priority_level
    if level is not None and level > model.priority_levels:
        yield Problem((*path, "default_priority_level"), _beyond(level, model))


def _instances(scenario: Scenario, model: Model, path: Path_) -> Iterator[Problem]:
    names = device_names(scenario)
    chosen = model.instance_group.devices
    for i, name in enumerate(chosen or ()):
        if name not in names:
            known = ", ".join(names)
            message = f"there is no device {name!r}{suggest(name, names)} ({known})"
            yield Problem((*path, "instance_group", "devices", i), message)
    if chosen is not None and not chosen:
        yield Problem((*path, "instance_group", "devices"), "names no device")


def device_names(scenario: Scenario) -> list[str]:
    """Names that an instance group may use: of devices and of their copies."""
    names: list[str] = []
    for device in scenario.devices:
        names += [device.name] if device.count == 1 else [device.name, *device.names()]
    return names


def entries_of(scenario: Scenario, index: int) -> list[tuple[Path_, MixEntry]]:
    """Mix entries that ask for a model, with their places."""
    name = scenario.models[index].name
    if scenario.workload.mix is None:
        return [(("workload",), MixEntry())] if len(scenario.models) == 1 else []
    return [
        (("workload", "mix", i), entry)
        for i, entry in enumerate(scenario.workload.mix)
        if entry.model == name or (entry.model is None and len(scenario.models) == 1)
    ]


def _lengths(scenario: Scenario, index: int, costs: Costs) -> Iterator[Problem]:
    model = scenario.models[index]
    lengths = costs.cost.lengths
    for path, entry in entries_of(scenario, index):
        if lengths and entry.length is None and _needs_length(scenario, costs):
            known = ", ".join(map(str, lengths))
            message = f"needs length: the profile of {model.name!r} has lengths {known}"
            yield Problem(path, message)
        elif entry.length is not None and not lengths:
            message = f"the profile of {model.name!r} has no lengths; remove it"
            yield Problem((*path, "length"), message)
        elif entry.length is not None and entry.length > lengths[-1]:
            message = (
                f"{entry.length} is longer than the longest length of the profile of "
                f"{model.name!r}, {lengths[-1]}"
            )
            yield Problem((*path, "length"), message, ProfileError)


def _needs_length(scenario: Scenario, costs: Costs) -> bool:
    """Tell whether requests must say their length: not if a trace may, or there is just one."""
    arrivals: Any = scenario.workload.arrivals
    return len(costs.cost.lengths) > 1 and arrivals.process != "trace"


def _traits(scenario: Scenario, index: int, costs: Costs) -> Iterator[Problem]:
    for path, entry in entries_of(scenario, index):
        from_trace = scenario.workload.arrivals.process == "trace"
        if costs.cost.kind == "work" and entry.work is None and not from_trace:
            yield Problem(path, "needs work: the model's cost is the work of its requests")
        elif costs.cost.kind != "work" and entry.work is not None:
            message = f"has no effect: the cost of model {scenario.models[index].name!r} is of "
            yield Problem((*path, "work"), f"{message}kind {costs.cost.kind}, not work")


def _sizes(scenario: Scenario, index: int, costs: Costs) -> Iterator[Problem]:
    """Check batch sizes that can happen against gears and profile points."""
    model, gears = scenario.models[index], costs.cost.gears
    path: Path_ = ("models", index)
    size = build_policies(scenario, index, 0)[0].max_batch_size
    place: Path_ = (*path, "batching")
    if model.batching is None and scenario.batching is not None:
        place = ("batching",)
    where: Path_ = (*place, "max_batch_size")
    if gears and size > gears[-1]:
        listed = ", ".join(map(str, gears))
        message = (
            f"{size} is above the largest gear of model {model.name!r}, {gears[-1]} "
            f"(gears: {listed}); lower it, or write gears: any"
        )
        yield Problem(where, message)
        return
    for entry_path, entry in entries_of(scenario, index):
        if entry.items > size:
            message = (
                f"{entry.items} is more than a batch of model {model.name!r} holds "
                f"(max_batch_size {size})"
            )
            yield Problem((*entry_path, "items"), message)
    if gears:
        top = next(g for g in gears if g >= size)
        sizes = [g for g in gears if g <= top]
        where = (*path, "gears") if model.gears is not None else where
    else:
        sizes = list(range(1, size + 1)) if size <= _SIZES_CHECKED else [1, size]
    shortest = costs.cost.lengths[0] if costs.cost.lengths else 0
    for length in sorted({e.length or shortest for _, e in entries_of(scenario, index)}):
        for items in sizes:
            try:
                costs.cost.mean_ns(items, length)
            except ScenarioError as error:
                yield Problem(where, f"batches of {items} can happen, but {error}", ProfileError)
                break


# ---- warnings ------------------------------------------------------------------------------


def warnings(scenario: Scenario) -> list[str]:
    """Say what has no effect or is probably not meant, one sentence each."""
    found = [*_shadowed(scenario), *_crowded(scenario)]
    for i in range(len(scenario.models)):
        found += _out_of_reach(scenario, i)
        found += _unheard(scenario, i)
    arrivals = scenario.workload.arrivals
    asked = [e.model for e in scenario.workload.mix or () if e.weight]
    for model in scenario.models:
        asks = len(scenario.models) == 1 or not asked or arrivals.process == "trace"
        if not asks and model.name not in asked:
            found.append(f"no request asks for model {model.name!r}: its share of mix is 0")
    return found


def _shadowed(scenario: Scenario) -> Iterator[str]:
    for kind in ("batching", "ordering", "admission"):
        own = [getattr(model, kind) for model in scenario.models]
        whole = [o is not None and (not isinstance(o, dict) or "policy" in o) for o in own]
        if getattr(scenario, kind) is not None and all(whole):
            yield f"{kind} at the top has no effect: every model has its own"


def _crowded(scenario: Scenario) -> Iterator[str]:
    for device in scenario.devices:
        instances = 0
        for model in scenario.models:
            chosen = model.instance_group.devices
            if chosen is None or device.name in chosen or set(chosen) & set(device.names()):
                instances += model.instance_group.count
        if instances > device.streams:
            yield (
                f"device {device.name!r} holds {instances} instances and runs {device.streams} "
                f"batch{'es' if device.streams > 1 else ''} at once: the instances take turns"
            )


def _out_of_reach(scenario: Scenario, index: int) -> Iterator[str]:
    model = scenario.models[index]
    batching, _, admission = build_policies(scenario, index, 0)
    size = batching.max_batch_size
    items = max((e.items for _, e in entries_of(scenario, index)), default=1)
    arrivals = scenario.workload.arrivals
    clients = arrivals.clients if isinstance(arrivals, Closed) else 0
    if isinstance(arrivals, MlPerf) and arrivals.scenario == "single_stream":
        clients = 1
    if clients and clients * items < size:
        yield (
            f"max_batch_size {size} of model {model.name!r} is out of reach: "
            f"{clients} client{'s' if clients > 1 else ''} never queue more than {clients * items}"
        )
    for policy in admission:
        bound = getattr(policy, "max_queue_size", 0)
        if isinstance(bound, int) and 0 < bound * model.priority_levels * items < size:
            yield (
                f"max_batch_size {size} of model {model.name!r} is out of reach: "
                f"its queue holds {bound * model.priority_levels} requests at most"
            )


def _unheard(scenario: Scenario, index: int) -> Iterator[str]:
    """Say which traits of requests no policy of the model looks at."""
    model = scenario.models[index]
    batching, ordering, admission = build_policies(scenario, index, 0)
    if model.priority_levels > 1 and ordering.name == "fifo" and batching.name != "dual_queue":
        yield (
            f"priority_levels {model.priority_levels} of model {model.name!r} only label its "
            "requests: ordering fifo ignores levels (strict_priority does not)"
        )
    known = {"open", "bounded_queue", "queue_timeout"}
    deaf = all(p.name in known and getattr(p, "override", "never") == "never" for p in admission)
    if deaf and any(entry.timeout is not None for _, entry in entries_of(scenario, index)):
        yield (
            f"timeout of requests for model {model.name!r} has no effect: its admission needs "
            "queue_timeout with override: always or shorter"
        )
