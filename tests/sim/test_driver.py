"""The SimPy driver against a slow reference that shares no code with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import ByLevel, Collect, Fixed, Given, Window, window_reference

from gesim.core.scheduler import ModelConfig, Scheduler
from gesim.rng import stream
from gesim.scenario.system import System
from gesim.sim.driver import simulate

SETUP_NS, ITEM_NS = 1_000_000, 250_000


def run(times, levels, instances=1, size=8, delay_ns=0, chunk=1000, receive_ns=0):
    model = ModelConfig(
        name="m",
        batching=Window(size, delay_ns),
        ordering=ByLevel(),
        devices=(0,) * instances,
        service_ns=lambda items: SETUP_NS + ITEM_NS * items,
    )
    system = System(
        scheduler=Scheduler([model], [instances]),
        services=[Fixed(SETUP_NS, ITEM_NS)],
        workload=Given(np.asarray(times, np.int64), np.asarray(levels, np.int64), chunk),
        receive_ns=receive_ns,
        respond_ns=0,
        models=["m"],
        devices=["d"],
    )
    sink = Collect()
    info = simulate(system, sink)
    return sink, info


def poisson(rate_rps, n, seed):
    gaps = stream(seed, "arrivals").standard_exponential(n) * (1e9 / rate_rps)
    return np.cumsum(np.rint(gaps).astype(np.int64))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("instances", [1, 2, 3])
@pytest.mark.parametrize(("rate_rps", "delay_ns"), [(150, 5_000_000), (1500, 2_000_000), (2600, 0)])
def test_every_finish_time_equals_the_reference(rate_rps, delay_ns, instances, seed):
    times = poisson(rate_rps * instances, 2000, seed)
    levels = stream(seed, "levels").integers(1, 4, 2000)
    sink, _ = run(times, levels, instances, 8, delay_ns)
    expected = window_reference(
        times, levels, instances, 8, delay_ns, lambda n: SETUP_NS + ITEM_NS * n
    )
    assert np.array_equal(sink.finish_ns(2000), expected)


@settings(max_examples=60, deadline=None)
@given(
    gaps=st.lists(st.sampled_from([0, 0, 1, 250_000, 1_000_000, 1_250_000]), max_size=60),
    levels=st.lists(st.integers(1, 3), min_size=60, max_size=60),
    instances=st.integers(1, 3),
    size=st.integers(1, 5),
    delay_ns=st.sampled_from([0, 250_000, 1_000_000, 3_000_000]),
    chunk=st.integers(1, 7),
)
def test_ties_and_chunk_borders_change_nothing(gaps, levels, instances, size, delay_ns, chunk):
    # Gaps are multiples of the service times, so completions, arrivals and timers coincide.
    times = np.cumsum(np.asarray(gaps, np.int64)) if gaps else np.zeros(0, np.int64)
    levels = np.asarray(levels[: len(times)], np.int64)
    sink, _ = run(times, levels, instances, size, delay_ns, chunk)
    expected = window_reference(
        times, levels, instances, size, delay_ns, lambda n: SETUP_NS + ITEM_NS * n
    )
    assert np.array_equal(sink.finish_ns(len(times)), expected)


def test_front_end_time_shifts_the_queue_and_not_the_order():
    times = poisson(1500, 500, 4)
    plain, _ = run(times, np.ones(500), delay_ns=2_000_000)
    later, _ = run(times, np.ones(500), delay_ns=2_000_000, receive_ns=300_000)
    assert np.array_equal(plain.finish_ns(500) + 300_000, later.finish_ns(500))


def test_event_count_is_batch_granular():
    """At heavy load the driver polls about once a batch, not once a request."""
    times = poisson(2600, 4000, 5)
    sink, info = run(times, np.ones(4000), size=8)
    assert info.requests == 4000
    assert info.batches == len(sink.batches) < 700
    assert info.events < 2 * info.batches


def test_what_waits_for_ever_is_handed_over_as_unfinished():
    class Never(Window):
        def decide(self, now_ns, queue):
            from gesim.core.decisions import NEVER_NS, Wait

            return Wait(NEVER_NS, queue.items + 1)

    model = ModelConfig("m", Never(), ByLevel(), (0,), lambda n: 1)
    system = System(
        Scheduler([model], [1]), [Fixed(1, 1)], Given(np.arange(5), np.ones(5, np.int64)), 0, 0,
        ["m"], ["d"],
    )  # fmt: skip
    sink = Collect()
    simulate(system, sink)
    assert [request.outcome.name for request in sink.lost] == ["UNFINISHED"] * 5
