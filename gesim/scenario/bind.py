"""From what a scenario says about cost and workload to the objects that a driver uses."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gesim.core.decisions import NEVER_NS
from gesim.scenario import costs as spec
from gesim.scenario.arrivals import mean_rate_rps
from gesim.scenario.schema import MixEntry, Model

if TYPE_CHECKING:
    from numpy.random import Generator

    from gesim.cost.base import CostModel
    from gesim.cost.service import Host, Service, Transfer
    from gesim.laws import Law
    from gesim.scenario.scenario import Scenario
    from gesim.workload.base import Workload
    from gesim.workload.mix import Kind

__all__ = ["Costs", "costs_of", "make_service", "make_workload", "shipped"]


@dataclass(frozen=True)
class Costs:
    """All that decides how long a model's batches take.

    Attributes
    ----------
    cost : CostModel
        Compute time; carries gears and lengths.
    host, transfer : Host, Transfer
        The terms beside it: the scenario's, else the profile's.
    jitter : Law or None
        Multiplier of the compute time.
    """

    cost: CostModel
    host: Host
    transfer: Transfer
    jitter: Law | None


def costs_of(model: Model, base: Path) -> Costs:
    """Make the cost side of a model.

    Raises
    ------
    ProfileError
        If its profile cannot be found or read, or says something impossible.
    """
    from gesim.cost.profile import load_profile
    from gesim.cost.service import Host, Transfer
    from gesim.laws import law_of

    gears = () if model.gears in ("any", None) else model.gears
    host, transfer = _host(model.host), _transfer(model.transfer)
    cost: CostModel
    if model.cost is not None:
        cost = _inline(model.cost, gears, f"cost of model {model.name!r}")
        jitter = getattr(model.cost, "jitter", None)
    else:
        profile = load_profile(str(model.profile), base)
        if model.gears is None:
            gears = profile.gears
        cost, jitter = profile.table(gears, model.extrapolate or "never"), model.jitter
        host, transfer = host or profile.host, transfer or profile.transfer
    return Costs(
        cost=cost,
        host=host or Host(),
        transfer=transfer or Transfer(),
        jitter=law_of(jitter) if jitter is not None else None,
    )


def _inline(said: Any, gears: tuple[int, ...], name: str) -> CostModel:
    """Make the cost model that a scenario spells out."""
    if isinstance(said, spec.Affine):
        from gesim.cost.affine import Affine

        return Affine(said.setup_ns, said.per_item_ns, gears=gears)
    if isinstance(said, spec.Work):
        from gesim.cost.work import Work

        return Work(said.setup_ns, gears=gears)
    if isinstance(said, spec.Empirical):
        from gesim.cost.empirical import Empirical

        return Empirical(said.shares, extrapolate=said.extrapolate, gears=gears, name=name)
    from gesim.cost.table import Table

    points = said.lengths if said.points is None else said.points
    return Table(points, extrapolate=said.extrapolate, gears=gears, name=name)


def _host(said: spec.Host | None) -> Host | None:
    if said is None:
        return None
    from gesim.cost.service import Host
    from gesim.laws import law_of

    jitter = law_of(said.jitter) if said.jitter is not None else None
    return Host(said.dispatch_ns, said.per_item_ns, jitter)


def _transfer(said: spec.Transfer | None) -> Transfer | None:
    if said is None:
        return None
    from gesim.cost.service import Transfer

    return Transfer(
        said.input_bytes, said.output_bytes, said.bandwidth_bytes_per_s or 0.0, said.latency_ns
    )


def make_service(costs: Costs, rng: Generator) -> Service:
    """Make the service of a model: what fills in its batches' times."""
    from gesim.cost.service import Service

    return Service(costs.cost, rng, costs.host, costs.transfer, costs.jitter)


def shipped(name: str) -> bool:
    """Tell whether a profile is named, not given as a file."""
    return "/" not in name and not name.endswith((".yaml", ".yml"))


def make_workload(scenario: Scenario, seed: int) -> tuple[Workload, int]:
    """Make the workload, and tell about how many requests to expect (0 for unknown).

    Raises
    ------
    WorkloadError
        If a trace cannot be used.
    """
    from gesim.workload.base import Served
    from gesim.workload.build import build_workload

    names = [model.name for model in scenario.models]
    # Without a mix there is one model, or a trace that names them.
    mix = scenario.workload.mix or [MixEntry(model=name) for name in names]
    served = [
        Served(
            model.name,
            model.priority_levels,
            max(costs_of(model, scenario.base).cost.lengths, default=0),
        )
        for model in scenario.models
    ]
    workload = build_workload(
        scenario.workload.arrivals,
        [_kind(scenario, entry) for entry in mix],
        seed,
        duration_ns=scenario.duration_ns,
        requests=scenario.requests,
        base=scenario.base,
        models=served,
        must_name_models=scenario.workload.mix is None and len(names) > 1,
    )
    return workload, _expected(scenario, workload)


def _kind(scenario: Scenario, entry: MixEntry) -> Kind:
    """Fill in what a mix entry leaves to its model."""
    from gesim.laws import law_of
    from gesim.workload.mix import Kind

    names = [model.name for model in scenario.models]
    index = names.index(entry.model) if entry.model is not None else 0
    model = scenario.models[index]
    lengths = costs_of(model, scenario.base).cost.lengths
    deadline_ns = entry.deadline_ns or model.slo_ns or scenario.slo_ns or NEVER_NS
    return Kind(
        model=index,
        weight=entry.weight,
        level=entry.priority or model.default_priority_level or model.priority_levels,
        items=entry.items,
        length=entry.length or (lengths[0] if len(lengths) == 1 else 0),
        deadline_ns=deadline_ns,
        timeout=law_of(entry.timeout) if entry.timeout is not None else None,
        work=law_of(entry.work) if entry.work is not None else None,
    )


def _expected(scenario: Scenario, workload: Workload) -> int:
    """Estimate the number of requests, for progress bars."""
    arrivals: Any = scenario.workload.arrivals
    counts = [scenario.requests] if scenario.requests is not None else []
    if isinstance(workload, Sized):
        counts.append(len(workload))
    elif arrivals.process == "bursts":
        counts.append(len(arrivals.at_ns) * arrivals.size)
    elif arrivals.process == "mlperf":
        counts.append((arrivals.queries or 0) * (arrivals.samples_per_query or 1))
    if scenario.duration_ns is not None:
        counts.append(round(mean_rate_rps(arrivals) * scenario.duration_ns / 1e9))
    return min((count for count in counts if count), default=0)
