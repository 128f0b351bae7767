"""Hand traces of the batching policies."""

from __future__ import annotations

import pytest

from gesim.core.decisions import NEVER_NS
from gesim.errors import PolicyError
from gesim.policies.batching.delay_window import DelayWindow
from gesim.policies.batching.dual_queue import DualQueue
from gesim.policies.batching.fixed import Fixed
from gesim.policies.batching.gear import Gear
from gesim.policies.batching.greedy import Greedy
from gesim.policies.batching.none import NoBatching
from gesim.policies.ordering.strict_priority import StrictPriority
from gesim.testing.harness import model, play, requests_at

GEARS = (1, 2, 4, 8, 16, 32)


def run(policy, times, service=100, **options):
    levels = options.pop("levels", (1,))
    items = options.pop("items", (1,))
    config = model(policy, options.pop("ordering", None), **options)
    return play(
        [config], requests_at(times, levels=levels, items=items), service_ns=lambda batch: service
    )


def test_none():
    played = run(NoBatching(), [0, 0, 10])
    assert (played.sizes, played.starts_ns) == ([1, 1, 1], [0, 100, 200])


def test_fixed_leaves_the_last_ones():
    played = run(Fixed(2), [0, 10, 20])
    assert (played.sizes, played.starts_ns, len(played.waiting)) == ([2], [10], 1)


def test_fixed_flushes():
    played = run(Fixed(4, flush_ns=50), [0, 10, 200, 250])
    assert (played.sizes, played.starts_ns) == ([2, 2], [50, 250])


def test_greedy():
    played = run(Greedy(4), [0, 1, 2, 3, 4, 5])
    assert (played.sizes, played.starts_ns) == ([1, 4, 1], [0, 100, 200])


def test_greedy_counts_items():
    played = run(Greedy(4), [0, 1, 2, 3], items=(1, 3, 2, 1))
    assert played.served == [[0], [1], [2, 3]]  # 3+2 is above 4; nothing is skipped


def test_greedy_min_batch_size():
    policy = Greedy(4, min_batch_size=2)
    assert not policy.work_conserving
    played = run(policy, [0, 30, 40])
    assert (played.sizes, played.starts_ns, len(played.waiting)) == ([2], [30], 1)


def test_window_from_oldest():
    played = run(DelayWindow(4, 50), [0, 20, 60, 70, 90])
    # The window of those queued at 60 has run out when the device is free.
    assert (played.sizes, played.starts_ns) == ([2, 3], [50, 150])


def test_window_full_goes_at_once():
    played = run(DelayWindow(2, 50), [0, 20])
    assert played.starts_ns == [20]


def test_window_from_pick():
    played = run(DelayWindow(4, 50, "server_pick"), [0, 20, 60, 70, 90])
    # The device is free from 150: the window is added to a backlog.
    assert (played.sizes, played.starts_ns) == ([2, 3], [50, 200])


def test_window_from_previous_get():
    policy = DelayWindow(4, 50, "previous_get")
    played = run(policy, [0, 120], service=10)
    # The first get finds no window; the next ones run while nothing is queued: 0-50-100-150.
    assert played.starts_ns == [0, 150]


def test_window_at_its_very_end_still_takes_an_arrival():
    played = run(DelayWindow(8, 50), [0, 50])
    assert (played.sizes, played.starts_ns) == ([2], [50])


@pytest.mark.parametrize(
    ("collect", "delay_ns", "sizes", "end"),
    [
        ("idle", 0, 5, 180),
        ("sealed", 0, 1, 5050),
        ("idle", 50, 8, 190),
        ("sealed", 50, 3, 1020),
    ],
)
def test_sealed_against_idle(collect, delay_ns, sizes, end):
    """Sixty requests 20 ms apart, 100+3n ms each: what the sealing rule of 2025 costs (ms)."""
    ms = 1_000_000
    policy = DelayWindow(10, delay_ns * ms, "server_pick", collect)
    config = model(policy)
    played = play(
        [config],
        requests_at([20 * ms * i for i in range(60)]),
        service_ns=lambda batch: (100 + 3 * batch.items) * ms,
    )
    assert sum(len(sizes) for sizes in played.served) == 60
    assert max(played.sizes[1:-1]) in (sizes, sizes + 1)
    last_ms = (played.batches[-1].finish_ns - 59 * 20 * ms) / ms
    assert last_ms == pytest.approx(end, rel=0.25)


def test_gear_rules():
    cases = {
        "pad_up": [(6, 8)],
        "floor": [(4, 4), (2, 2)],
        "theta": [(4, 4), (2, 2)],  # 6 < 0.85 * 8
        "nearest": [(6, 8)],  # 2 away from either: the larger
    }
    for rule, expected in cases.items():
        played = run(Gear(32, rule), [0] * 6, gears=GEARS)
        assert [(b.items, b.gear) for b in played.batches] == expected, rule


def test_gear_theta_pads_where_full_enough():
    played = run(Gear(32, "theta"), [0] * 7, gears=GEARS)
    assert [(b.items, b.gear) for b in played.batches] == [(7, 8)]  # 7 >= 6.8


def test_gear_floor_pads_below_the_smallest():
    played = run(Gear(32, "floor"), [0, 0], gears=(4, 8))
    assert [(b.items, b.gear) for b in played.batches] == [(2, 4)]


def test_gear_needs_gears():
    with pytest.raises(PolicyError, match="no gears; list them, or use greedy"):
        run(Gear(32), [0])


def high_low(policy, times, levels, service=100):
    return run(policy, times, service, levels=levels, ordering=StrictPriority())


def test_dual_queue_never_mixes():
    played = high_low(DualQueue(4), [0, 1, 2, 3, 4], (2, 2, 1, 1, 2))
    assert played.served == [[0], [2, 3], [1, 4]]


def test_dual_queue_literal_runs_high_alone_and_blocks():
    played = high_low(DualQueue(4, literal=True), [0, 1, 2], (1, 1, 1))
    assert played.sizes == [1, 1, 1]
    held_back = DualQueue(4, "high_idle", high_idle_ns=500, literal=True)
    played = high_low(held_back, [0, 1], (1, 2))
    assert [r.id for r in played.waiting] == [1]  # no arrival wakes the loop
    played = high_low(DualQueue(4, "high_idle", high_idle_ns=500), [0, 1], (1, 2))
    assert (played.served, played.starts_ns) == ([[0], [1]], [0, 500])


def test_dual_queue_literal_gets_in_order_of_arrival():
    played = high_low(DualQueue(4, literal=True), [0, 1, 2, 3], (1, 2, 1, 2))
    assert played.served == [[0], [1], [2], [3]]


def test_dual_queue_time_share():
    policy = DualQueue(1, "time_share", low_share_ratio=0.5)
    played = run(
        policy, [0, 0, 0, 450], levels=(2, 2, 2, 1), ordering=StrictPriority(),
        service_ns=lambda items: 100,
    )  # fmt: skip
    # Every normal batch of 100 is followed by 100 of rest, kept free for high work.
    assert played.starts_ns == [0, 200, 400, 500]


def test_dual_queue_any_number_of_levels():
    policy = DualQueue(4, literal=True)
    played = high_low(policy, [0, 0, 0, 0, 0], (3, 2, 1, 3, 2))
    assert sum(played.sizes) == 5


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Greedy(0), "max_batch_size is 0; it must be at least 1"),
        (lambda: Greedy(4, 5), "min_batch_size 5 is above max_batch_size 4"),
        (lambda: Fixed(4, -1), "flush is -1"),
        (lambda: DelayWindow(4, -1), "max_queue_delay is -1"),
        (lambda: Gear(4, theta=1.5), "theta is 1.5; it must lie in 0..1"),
        (lambda: DualQueue(4, low_when="time_share", low_share_ratio=0.0), "never runs normal"),
    ],
)
def test_parameters_are_checked(make, words):
    with pytest.raises(PolicyError) as caught:
        make()
    assert words in str(caught.value)


def test_never_is_never():
    assert Fixed(4).flush_ns == NEVER_NS
