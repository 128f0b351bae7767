"""The engines of gesim beside an idiomatic process-per-request SimPy model, in one run.

    python benchmarks/engines.py [--rounds R]

The system of benchmarks/driver.py. "called" is the compiled loop calling an interpreted
policy. Rates are requests per second of CPU, records included, and ratios are medians over
alternating rounds; completion times are compared with the first model's. Compilation (a few
seconds once, then cached on disk) is done before the clock starts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from driver import DELAY_NS, ITEM_NS, LOADS, SETUP_NS, SIZE, scenario
from process_per_request import simulate as idiomatic

from gesim.experiment.run import facts_of
from gesim.metrics.recorder import Recorder
from gesim.policies.batching.delay_window import DelayWindow
from gesim.scenario.build import build
from gesim.sim.engine import choose_engine

REQUESTS = {"process": 50_000, "simpy": 200_000, "called": 500_000, "compiled": 1_900_000}


@dataclass
class Interpreted(DelayWindow):
    """The same rule with a field that has no compiled form."""

    name: ClassVar[str] = "interpreted"
    notes: dict[str, int] = field(default_factory=dict, init=False)


def run(engine: str, rate_rps: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Run one engine; returns requests per CPU second, arrivals and finish times."""
    loaded = scenario(rate_rps, REQUESTS[engine])
    policies = None
    if engine == "called":
        policies = {"batching": Interpreted(SIZE, DELAY_NS)}
    system = build(loaded, policies=policies)
    recorder = Recorder(facts_of(loaded, system))
    chosen = choose_engine("simpy" if engine == "simpy" else "compiled", system, 1)
    started = time.process_time()
    info = chosen.simulate(system, recorder)
    records = recorder.records(info.end_ns)
    seconds = time.process_time() - started
    return REQUESTS[engine] / seconds, records.arrival_ns, records.finish_ns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    engines = ("simpy", "called", "compiled")
    print(f"{'load':18} {'process':>11} " + " ".join(f"{e:>20}" for e in engines))
    for name, rate_rps in LOADS.items():
        for engine in ("called", "compiled"):
            run(engine, rate_rps)  # compile, warm up
        rates: dict[str, list[float]] = {engine: [] for engine in ("process", *engines)}
        for _ in range(options.rounds):
            _, times_ns, _ = run("simpy", rate_rps)
            started = time.process_time()
            n = REQUESTS["process"]
            expected_ns, _ = idiomatic(times_ns[:n], SIZE, DELAY_NS, SETUP_NS, ITEM_NS)
            rates["process"].append(n / (time.process_time() - started))
            for engine in engines:
                rate, _, finish_ns = run(engine, rate_rps)
                # The last requests of the short run have no followers to wait for.
                assert np.array_equal(finish_ns[: n - 2 * SIZE], expected_ns[: n - 2 * SIZE])
                rates[engine].append(rate)
        base = rates["process"]
        cells = [
            f"{statistics.median(rates[e]):11,.0f}/s"
            f" {statistics.median(r / b for r, b in zip(rates[e], base, strict=True)):5.0f}x"
            for e in engines
        ]
        print(f"{name:18} {statistics.median(base):9,.0f}/s " + " ".join(cells))


if __name__ == "__main__":
    main()
