"""Hand traces of orderings and admission."""

from __future__ import annotations

import pytest

from gesim.core.request import Outcome
from gesim.errors import PolicyError
from gesim.policies.admission.bounded_queue import BoundedQueue
from gesim.policies.admission.open import Open
from gesim.policies.admission.queue_timeout import QueueTimeout
from gesim.policies.batching.greedy import Greedy
from gesim.policies.ordering.fifo import Fifo
from gesim.policies.ordering.strict_priority import StrictPriority
from gesim.testing.harness import model, play, requests_at


def run(admission, times, *, batch=1, ordering=None, levels=(1,), timeout_ns=0, devices=(0,)):
    config = model(Greedy(batch), ordering or Fifo(), admission, devices=devices)
    requests = requests_at(times, levels=levels, timeout_ns=timeout_ns)
    return play([config], requests, service_ns=lambda batch: 100)


def gone(played):
    return [(r.id, r.finish_ns, r.outcome.name.lower(), r.reason) for r in played.gone]


def test_open():
    assert run([Open()], [0] * 50).gone == []


def test_bounded_queue_counts_what_waits_by_level():
    played = run([BoundedQueue(1)], [0, 1, 2, 3], levels=(1, 1, 1, 2))
    assert gone(played) == [(2, 2, "rejected", "queue_full")]


def test_loss_system():
    played = run([BoundedQueue(0)], [0, 0, 0, 50, 100], devices=(0, 0))
    assert [r.id for r in played.gone] == [2, 3]


def test_timeout_rejects_after_exactly_its_time():
    assert gone(run([QueueTimeout(100)], [0, 0])) == []  # waits exactly 100
    assert gone(run([QueueTimeout(99)], [0, 0])) == [(1, 100, "expired", "timeout")]


def test_timeout_delays_behind_the_unexpired():
    played = run([QueueTimeout(150, "delay")], [0, 0, 0, 90, 160])
    # Request 2 is late from 151: those that came after it go first.
    assert played.served == [[0], [1], [3], [4], [2]]


def test_lazy_timeout_is_noticed_when_a_batch_forms():
    played = run([QueueTimeout(50, expiry="lazy")], [0, 0, 0])
    assert gone(played) == [(1, 100, "expired", "timeout"), (2, 100, "expired", "timeout")]


def test_lazy_timeout_tests_one_batch_only():
    played = run([QueueTimeout(50, expiry="lazy")], [0, 0, 60, 0 + 60])
    assert played.served == [[0], [2]]
    assert [(r.id, r.outcome) for r in played.gone] == [(1, Outcome.EXPIRED), (3, Outcome.EXPIRED)]
    assert [r.finish_ns for r in played.gone] == [100, 200]


@pytest.mark.parametrize(
    ("override", "own_ns", "expired_ns"),
    [
        ("never", 10, 81),
        ("shorter", 10, 11),
        ("shorter", 90, 81),
        ("always", 90, 91),
        ("always", 0, 81),
        ("shorter", 0, 81),
    ],
)
def test_own_timeouts(override, own_ns, expired_ns):
    played = run([QueueTimeout(80, override=override)], [0, 0], timeout_ns=own_ns)
    assert [r.finish_ns for r in played.gone] == [expired_ns]


def test_own_timeout_without_a_default():
    assert gone(run([QueueTimeout(0, override="shorter")], [0, 0], timeout_ns=10)) == []
    played = run([QueueTimeout(0, override="always")], [0, 0], timeout_ns=10)
    assert [r.finish_ns for r in played.gone] == [11]


def test_policies_in_turn():
    played = run([BoundedQueue(2), QueueTimeout(20)], [0, 1, 1, 1])
    assert [(r.id, r.reason) for r in played.gone] == [
        (3, "queue_full"),
        (1, "timeout"),
        (2, "timeout"),
    ]


def test_orderings():
    times, levels = [0, 1, 2, 3], (1, 2, 1, 2)
    assert run([], times, ordering=Fifo(), levels=levels).served == [[0], [1], [2], [3]]
    strict = run([], times, ordering=StrictPriority(), levels=levels)
    assert strict.served == [[0], [2], [1], [3]]


def test_parameters_are_checked():
    with pytest.raises(PolicyError, match="nothing ever expires"):
        QueueTimeout(0)
    with pytest.raises(PolicyError, match="max_queue_size is -1"):
        BoundedQueue(-1)
