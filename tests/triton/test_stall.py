"""The lost wake-up of Triton 2.51: a burst that stalls, and a full queue that stays full."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_batcher import MS, run
from reference_runs import Seen

from gesim.policies.batching.preferred_size import POLL_NS, PreferredSize
from gesim.scenario.build import build
from gesim.scenario.load import load
from gesim.sim.driver import simulate

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def burst_ms(spacing="100us", **batching):
    """Last answer of the shipped burst: 3 x 21 ms on one instance, priority_levels 1."""
    scenario = load(SCENARIOS / "triton_stall.yaml")
    scenario = scenario.set("workload.arrivals.spacing", spacing)
    for key, value in batching.items():
        scenario = scenario.set(f"batching.{key}", value)
    system = build(scenario)
    seen = Seen()
    simulate(system, seen)
    assert len(seen.latency_ns) == 3
    return (seen.last_ns + system.respond_ns) / 1e6


@pytest.mark.parametrize(
    "batching",
    [{"version": "fixed"}, {"version": "2.42"}, {"version": "2.51", "lost_wakeup": "never"}],
    ids=["fixed", "2.42", "never"],
)
def test_burst_without_lost_wakeups_takes_64_ms(batching):
    assert burst_ms(**batching) == pytest.approx(64, rel=0.01)  # measured: 64


def test_burst_with_lost_wakeups_takes_over_a_second():
    # First poll 500 ms after the end of batch 1 (the queue was empty, the batcher slept), the
    # second 500 ms after batch 2 started: 21 + 500 + 500 + 21.
    assert burst_ms() == pytest.approx(1043, rel=0.01)  # measured: 1,043 beside busy loops


def test_burst_in_one_instant_waits_from_its_start():
    # The batcher never sleeps with an empty queue, so its first 500 ms begin with batch 1.
    assert burst_ms(spacing="0ms") == pytest.approx(1022, rel=0.01)  # measured: 1,023 at times


def test_without_a_queue_policy_nothing_is_lost():
    policy = PreferredSize(1, version="2.51", lost_wakeup="always")
    assert run(policy, [0, 0.1, 0.2], setup_ms=20, item_ms=0).last_answer_ms == 60


def test_wakeups_are_lost_at_the_ratio_given():
    # Pairs far apart: the second of each waits for the end of the first.
    starts = [5000.0 * i for i in range(400)]
    times = sorted(starts + [s + 1 for s in starts])
    policy = PreferredSize(
        1, version="2.51", lost_wakeup="probability", lost_wakeup_ratio=0.3, seed=7,
        queue_policy=True,
    )  # fmt: skip
    seen = run(policy, times, setup_ms=20, item_ms=0)
    stalled = sum(s % 5000 == 20 + POLL_NS / MS for s in seen.starts_ms)
    prompt = sum(s % 5000 == 20 for s in seen.starts_ms)
    assert stalled + prompt == 400
    assert stalled / 400 == pytest.approx(0.3, abs=0.06)


def test_the_same_seed_loses_the_same_wakeups():
    def sequence(seed):
        policy = PreferredSize(
            1, version="2.51", lost_wakeup="probability", seed=seed, queue_policy=True
        )
        return [policy._loses() for _ in range(64)]

    assert sequence(1) == sequence(1)
    assert sequence(1) != sequence(2)


def test_a_new_request_ends_the_stall():
    policy = PreferredSize(1, version="2.51", lost_wakeup="always", queue_policy=True)
    seen = run(policy, [0, 0.1, 50], setup_ms=20, item_ms=0)
    assert seen.starts_ms[:2] == [0, 50]


def test_a_second_idle_instance_is_enough_to_wake():
    # The end of a batch is noticed when another instance counts as idle already.
    policy = PreferredSize(1, version="2.51", lost_wakeup="always", queue_policy=True)
    seen = run(policy, [0, 1, 2, 3], instances=2, setup_ms=20, item_ms=0)
    # 20: lost. 21: noticed, as instance 0 is idle; both waiting requests start.
    assert seen.starts_ms == [0, 1, 21, 21]


def test_shipped_full_queue_answers_a_fifth_of_the_capacity():
    def rps(**batching):
        scenario = load(SCENARIOS / "triton_full_queue.yaml")
        for key, value in batching.items():
            scenario = scenario.set(f"batching.{key}", value)
        system = build(scenario)
        seen = Seen()
        simulate(system, seen)
        return seen.metrics(system.respond_ns)["rps"]

    assert rps() < 90
    assert rps(lost_wakeup="always") < 90
    assert 340 < rps(version="fixed") < 375
