"""Properties of the core: fast feeding equals one by one; sealed batches equal a recursion."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gesim.core.actions import Start
from gesim.core.decisions import NEVER_NS
from gesim.core.queue import RequestQueue
from gesim.core.request import Request
from gesim.core.scheduler import Scheduler
from gesim.policies.batching.delay_window import DelayWindow
from gesim.policies.batching.gear import Gear
from gesim.policies.batching.greedy import Greedy
from gesim.policies.ordering.strict_priority import StrictPriority
from gesim.testing.harness import model, play
from gesim.testing.strategies import arrival_times, gears, requests


def feed_all(config, sent, uniform):
    """A driver that feeds all arrivals before the next event in one go."""
    scheduler = Scheduler([config], (len(config.devices),))
    times = [r.enqueue_ns for r in sent]
    running, log, i = [], [], 0
    while True:
        now = min([b.finish_ns for b in running] + [scheduler.wake_ns])
        while i < len(times) and times[i] < now:
            i = scheduler.feed(sent, times, i, now, uniform)
            if scheduler.due:
                now = times[i - 1]
        if now >= NEVER_NS:
            return log
        for batch in sorted(running, key=lambda b: b.id):
            if batch.finish_ns == now:
                running.remove(batch)
                scheduler.finished(batch, now)
        while i < len(times) and times[i] == now:
            i = scheduler.feed(sent, times, i, now + 1, uniform)
        for action in scheduler.poll(now):
            if type(action) is Start:
                action.batch.finish_ns = now + config.service_ns(action.batch.gear)
                running.append(action.batch)
                log.append((now, action.batch.instance, [r.id for r in action.batch.requests]))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    sent=requests(levels=1),
    policy=st.sampled_from([Greedy(3), DelayWindow(4, 700_000), DelayWindow(4, 5, "server_pick")]),
    instances=st.integers(1, 3),
    bound=st.sampled_from([2, 1000]),
)
def test_feeding_equals_one_by_one(sent, policy, instances, bound):
    config = model(
        policy, StrictPriority(), devices=(0,) * instances, queue_bound=bound,
        service_ns=lambda items: 900_000 + items,
    )  # fmt: skip
    played = play([config], copy.deepcopy(sent))
    expected = [(b.start_ns, b.instance, [r.id for r in b.requests]) for b in played.batches]
    assert feed_all(config, copy.deepcopy(sent), True) == expected
    assert feed_all(config, copy.deepcopy(sent), False) == expected


@settings(max_examples=80, deadline=None, derandomize=True)
@given(times=arrival_times(), size=st.integers(1, 5), delay=st.sampled_from([0, 2, 500_000]))
def test_sealed_batches_depend_on_arrivals_alone(times, size, delay):
    sealed: list[list[int]] = []
    for number, at in enumerate(times):
        if sealed and len(sealed[-1]) < size and at <= times[sealed[-1][0]] + delay:
            sealed[-1].append(number)
        else:
            sealed.append([number])
    sent = [Request(n, 0, at, at) for n, at in enumerate(times)]
    config = model(DelayWindow(size, delay, collect="sealed"))
    played = play([config], sent)
    assert played.served == sealed
    free = 0
    for batch, members in zip(played.batches, sealed, strict=True):
        full = len(members) == size
        closed = times[members[-1]] if full else times[members[0]] + delay
        assert batch.start_ns == max(free, closed)
        free = batch.finish_ns


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    sent=requests(max_items=4),
    sizes=gears(),
    rule=st.sampled_from(["pad_up", "floor", "theta", "nearest"]),
)
def test_gear_never_idles_and_always_fits(sent, sizes, rule):
    if not sizes:
        return
    played = play([model(Gear(16, rule), StrictPriority(), gears=sizes)], sent)
    assert not played.waiting
    largest = min(16, sizes[-1])
    assert all(r.items > largest for r in played.gone)
    for batch in played.batches:
        assert batch.items <= batch.gear
        if rule == "floor" and len(batch.requests) == batch.items >= sizes[0]:
            assert batch.gear == batch.items or batch.items == largest or batch.items < sizes[0]


def test_queue_positions_and_errors():
    queue = RequestQueue((2, 4), 1, lambda items: items)
    assert (queue.head_enqueue_ns, queue.level_oldest_ns(1)) == (NEVER_NS, NEVER_NS)
    for number, (key, level, items) in enumerate([(2, 2, 1), (1, 1, 3), (2, 1, 2)]):
        request = Request(number, 0, number, number, level, items, number, 100 + number)
        request.key = key
        queue.push(request)
    assert [r.id for r in queue] == [1, 0, 2]
    assert [queue.size(p) for p in range(3)] == [3, 1, 2]
    assert [queue.level(p) for p in range(3)] == [1, 2, 1]
    assert [queue.length(p) for p in range(3)] == [1, 0, 2]
    assert [queue.deadline_ns(p) for p in range(3)] == [101, 100, 102]
    assert (queue.enqueue_ns(0), queue.oldest_enqueue_ns, queue.head_enqueue_ns) == (1, 0, 1)
    assert (queue.fit(4), queue.fit(2), queue.items_of(2), queue.items_of(9)) == (2, 0, 4, 6)
    assert (queue.level_count(1), queue.level_oldest_ns(1), queue.level_count(3)) == (2, 1, 0)
    assert [queue.gear_up(n) for n in (1, 2, 3, 5)] == [2, 2, 4, 0]
    assert [queue.gear_down(n) for n in (1, 2, 3, 5)] == [0, 2, 2, 4]
    with pytest.raises(IndexError, match="position 3 in a queue of 3"):
        queue.size(3)
    with pytest.raises(IndexError, match="position -1"):
        queue.size(-1)


def test_many_keys_leave_nothing_behind():
    queue = RequestQueue((), 1, lambda items: items)
    for number in range(1000):
        request = Request(number, 0, number, number)
        request.key = number
        queue.push(request)
        if number % 3:
            queue.take(1)
    queue.take(queue.count)
    assert len(queue._lanes) <= 64
    assert not queue._keys
