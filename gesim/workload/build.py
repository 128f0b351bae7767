"""From what a scenario says about arrivals to a workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.errors import WorkloadError
from gesim.laws import Exponential, Gamma, law_of
from gesim.rng import stream
from gesim.workload import processes
from gesim.workload.base import Served, Workload
from gesim.workload.loops import Clients, OpenArrivals, Queries
from gesim.workload.mix import Kind, Mix

__all__ = ["build_workload"]

SAMPLES = {"single_stream": 1, "multi_stream": 8, "offline": 24_576}
"""Samples of a query where the scenario names none: MLPerf's own (mlperf.conf)."""

QUERIES = {"single_stream": 1024, "multi_stream": 662, "server": 270_336}
"""Queries where neither the scenario nor a duration ends the run: MLPerf's minima."""


def build_workload(
    arrivals: Any,
    kinds: Sequence[Kind],
    seed: int,
    *,
    duration_ns: int | None = None,
    requests: int | None = None,
    base: Path | None = None,
    models: Sequence[Served] = (),
    must_name_models: bool = False,
) -> Workload:
    """Build a workload.

    Parameters
    ----------
    arrivals : object
        The process and its parameters as attributes, as `gesim.scenario.arrivals` has them.
    kinds : sequence of Kind
        What requests ask for.
    seed : int
        Of the run.
    duration_ns, requests : int, optional
        Where arrivals end.
    base : Path
        Folder of trace files.
    models : sequence of Served
        Models by index, for traces that name models, levels or lengths.
    must_name_models : bool
        A trace must say which model a request asks for.

    Raises
    ------
    WorkloadError
        If a trace cannot be used.
    """
    mix = Mix(kinds, seed)
    end_ns = NEVER_NS if duration_ns is None else duration_ns
    process = arrivals.process
    if process == "closed":
        think = law_of(arrivals.think) if arrivals.think is not None else None
        rng = stream(seed, "think")
        return Clients(arrivals.clients, think, mix, rng, end_ns, requests)
    if process == "mlperf":
        return _mlperf(arrivals, mix, seed, end_ns, duration_ns is None, requests)
    if process == "trace":
        from gesim.workload.trace import read_trace

        return read_trace(
            arrivals, mix, seed, end_ns, requests, base or Path.cwd(), models, must_name_models
        )
    return OpenArrivals(_times(arrivals, seed, end_ns), mix, end_ns, requests)


def _times(spec: Any, seed: int, end_ns: int) -> Iterator[NDArray[np.int64]]:
    """Make the times of an open process: endless, or at least to the end."""
    rng = stream(seed, "arrivals")
    rate: float = getattr(spec, "rate_rps", None) or 0.0
    gap_ns = 1e9 / rate if rate else law_of(spec.gap).mean if spec.process == "renewal" else 1.0
    if gap_ns < 1:
        raise WorkloadError(
            f"workload.arrivals: the mean gap is {gap_ns:g} ns, less than the 1 ns that times are "
            "counted in; lower the rate, or use process bursts for requests in one instant"
        )
    match spec.process:
        case "poisson":
            return processes.renewal(Exponential(gap_ns), rng)
        case "gamma":
            return processes.renewal(Gamma(gap_ns, spec.cv), rng)
        case "renewal":
            return processes.renewal(law_of(spec.gap), rng)
        case "constant":
            return processes.constant(gap_ns * spec.burst, spec.burst)
        case "batch_poisson":
            sizes = stream(seed, "arrivals/size")
            return processes.batch_poisson(Exponential(gap_ns), law_of(spec.size), rng, sizes)
        case "bursts":
            return processes.bursts(tuple(spec.at_ns), spec.size, spec.spacing_ns)
    phases = stream(seed, "arrivals/phase")
    match spec.process:
        case "mmpp":
            segments = processes.mmpp_segments(spec.rates_rps, spec.dwell_ns, phases)
        case "on_off":
            segments = processes.on_off_segments(rate, spec.on_ns, spec.off_ns, spec.law, phases)
        case "diurnal":
            segments = processes.diurnal_segments(rate, spec.peak, spec.period_ns, spec.weekly)
        case _:
            raise ValueError(f"process {spec.process!r} is unknown")
    return processes.rate_process(segments, rng, end_ns)


def _mlperf(
    spec: Any, mix: Mix, seed: int, end_ns: int, endless: bool, requests: int | None
) -> Workload:
    """Build one of MLPerf's four load generators."""
    name = spec.scenario
    queries = spec.queries
    if queries is None and endless and requests is None:
        queries = QUERIES.get(name)
    if name == "server":
        times = processes.renewal(Exponential(1e9 / spec.rate_rps), stream(seed, "arrivals"))
        counts = [n for n in (queries, requests) if n is not None]
        return OpenArrivals(times, mix, end_ns, min(counts) if counts else None)
    samples = spec.samples_per_query or SAMPLES[name]
    if name == "offline":
        return OpenArrivals(processes.bursts((0,), samples, 0), mix, end_ns, requests)
    if requests is not None:
        most = max(1, requests // samples)
        queries = most if queries is None else min(queries, most)
    return Queries(samples, mix, end_ns, queries)
