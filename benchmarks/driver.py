"""SimPy driver of gesim against an idiomatic process-per-request SimPy model, in one run.

    python benchmarks/driver.py [--requests N] [--rounds R]

One system: Poisson arrivals, a dynamic batcher (32 items, 5 ms from the oldest enqueue), one
device with S = 1 + 0.25 n ms. Both record arrival, start and finish of every request and the
size of every batch; the completion times must be equal, to the nanosecond. Rounds alternate,
and the ratio is the median of the rounds' ratios, in CPU time: absolute rates depend on the
machine.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from process_per_request import simulate as idiomatic

from gesim.experiment.run import facts_of
from gesim.metrics.recorder import Recorder
from gesim.scenario.build import build
from gesim.scenario.scenario import Scenario
from gesim.sim.driver import simulate

LOADS = {"light, batch ~2": 151.8, "medium, batch ~8": 1500.0, "heavy, batch ~31": 3540.0}
SIZE, DELAY_NS, SETUP_NS, ITEM_NS = 32, 5_000_000, 1_000_000, 250_000


def scenario(rate_rps: float, requests: int) -> Scenario:
    return Scenario.from_dict(
        {
            "schema": 1,
            "name": "benchmark",
            "requests": requests,
            "models": [
                {"name": "m", "cost": {"kind": "affine", "setup": "1ms", "per_item": "0.25ms"}}
            ],
            "batching": {
                "policy": "delay_window",
                "max_batch_size": SIZE,
                "max_queue_delay": "5ms",
            },
            "workload": {"arrivals": {"process": "poisson", "rate": f"{rate_rps}/s"}},
        }
    )


def ours(rate_rps: float, requests: int) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Run gesim; returns seconds, arrivals, finish times, mean batch."""
    loaded = scenario(rate_rps, requests)
    system = build(loaded)
    recorder = Recorder(facts_of(loaded, system))
    started = time.process_time()
    info = simulate(system, recorder)
    records = recorder.records(info.end_ns)
    seconds = time.process_time() - started
    return seconds, records.arrival_ns, records.finish_ns, requests / info.batches


def theirs(times_ns: np.ndarray) -> tuple[float, np.ndarray]:
    started = time.process_time()
    finish_ns, _ = idiomatic(times_ns, SIZE, DELAY_NS, SETUP_NS, ITEM_NS)
    return time.process_time() - started, finish_ns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    n = options.requests
    print(f"{n:,} requests, median of {options.rounds} rounds")
    print(f"{'load':18} {'process/request':>16} {'gesim driver':>14} {'ratio':>7}  mean batch")
    for name, rate_rps in LOADS.items():
        ratios, rates = [], []
        for _ in range(options.rounds):
            seconds, times_ns, finish_ns, batch = ours(rate_rps, n)
            slow, expected_ns = theirs(times_ns)
            assert np.array_equal(finish_ns, expected_ns), "completion times differ"
            ratios.append(slow / seconds)
            rates.append((n / slow, n / seconds))
        slow_rate, rate = (statistics.median(column) for column in zip(*rates, strict=True))
        ratio = statistics.median(ratios)
        print(f"{name:18} {slow_rate:14,.0f}/s {rate:12,.0f}/s {ratio:6.1f}x  {batch:.1f}")


if __name__ == "__main__":
    main()
