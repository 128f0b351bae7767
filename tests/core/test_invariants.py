"""Every law is really checked: break the scheduler in one way each, and see the law named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from gesim.core.decisions import Dispatch, Wait
from gesim.core.instances import Instances
from gesim.core.invariants import CheckedScheduler
from gesim.core.laws import LAWS
from gesim.core.queue import RequestQueue
from gesim.core.request import Request
from gesim.core.scheduler import Scheduler
from gesim.errors import ContractError, InternalError
from gesim.policies.admission.queue_timeout import QueueTimeout
from gesim.policies.batching.delay_window import DelayWindow
from gesim.policies.batching.greedy import Greedy
from gesim.testing.harness import model, play, requests_at


@dataclass
class Idler(Greedy):
    """Promises and waits."""

    name: ClassVar[str] = "idler"

    def decide(self, now_ns, queue):
        return Wait(now_ns + 5)


def run(policy=None, times=(0, 1, 2, 3, 300), admission=(), **options):
    config = model(policy or Greedy(2), None, admission)
    return play([config], requests_at(times), service_ns=lambda batch: 100, **options)


def test_i1_conservation(monkeypatch):
    take = RequestQueue.take

    def loses(self, count):
        taken = take(self, count)
        return taken if len(taken) < 2 else taken[:-1]

    monkeypatch.setattr(RequestQueue, "take", loses)
    with pytest.raises(InternalError, match=r"invariant I[17]"):
        run()


def test_i2_time_never_goes_back():
    scheduler = CheckedScheduler([model(Greedy(1))], (1,))
    scheduler.arrive(Request(0, 0, 10, 10), 10)
    with pytest.raises(InternalError, match="invariant I2, causality: time went back"):
        scheduler.poll(9)


def test_i2_queued_before_it_was_sent():
    scheduler = CheckedScheduler([model(Greedy(1))], (1,))
    with pytest.raises(InternalError, match="I2"):
        scheduler.arrive(Request(0, 0, 10, 5), 5)


def test_i2_finish_as_announced():
    scheduler = CheckedScheduler([model(Greedy(1))], (1,))
    scheduler.arrive(Request(0, 0, 0, 0), 0)
    batch = scheduler.poll(0)[0].batch
    batch.finish_ns = 7
    with pytest.raises(InternalError, match="I2"):
        scheduler.finished(batch, 8)


def test_i3_exclusivity(monkeypatch):
    scheduler = CheckedScheduler([model(Greedy(1))], (1,))
    monkeypatch.setattr(Instances, "occupy", lambda self, model: 0)
    scheduler.arrive(Request(0, 0, 0, 0), 0)
    scheduler.arrive(Request(1, 0, 0, 0), 0)
    with pytest.raises(InternalError, match="invariant I3"):
        scheduler.poll(0)


def test_i3_ends_once():
    scheduler = CheckedScheduler([model(Greedy(1))], (1,))
    scheduler.arrive(Request(0, 0, 0, 0), 0)
    batch = scheduler.poll(0)[0].batch
    scheduler.finished(batch, 5)
    with pytest.raises(InternalError, match="I3"):
        scheduler.finished(batch, 5)


def test_i4_is_the_policys_fault():
    with pytest.raises(ContractError, match="invariant I4, work conservation: 'idler' left 1"):
        run(Idler(4))


def test_i5_view(monkeypatch):
    push = RequestQueue.push

    def miscounts(self, request):
        push(self, request)
        self.oldest_enqueue_ns = request.enqueue_ns

    monkeypatch.setattr(RequestQueue, "push", miscounts)
    with pytest.raises(InternalError, match="invariant I5"):
        run(DelayWindow(8, 50))


def test_i6_order(monkeypatch):
    def from_behind(self, count):
        taken = list(self)[-count:]
        self.discard(taken)
        return taken

    monkeypatch.setattr(RequestQueue, "take", from_behind)
    with pytest.raises(InternalError, match="invariant I6"):
        run()


def test_i7_legal_batches():
    scheduler = CheckedScheduler([model(Greedy(2))], (1,))
    scheduler._start = lambda model, answer, now: Scheduler._start(  # type: ignore[method-assign]
        scheduler, model, Dispatch(1), now
    )
    for i in range(2):
        scheduler.arrive(Request(i, 0, 0, 0), 0)
    with pytest.raises(InternalError, match="invariant I7"):
        scheduler.poll(0)


def test_i8_lost_wake_up():
    class Forgetful(CheckedScheduler):
        def _touch(self, model):
            if self._now_ns < 10:
                Scheduler._touch(self, model)

    config = model(DelayWindow(8, 50))
    with pytest.raises(InternalError, match="invariant I8"):
        play([config], requests_at([0]), scheduler=Forgetful([config], (1,)))


def test_i9_once():
    scheduler = CheckedScheduler([model(DelayWindow(8, 50))], (1,))
    request = Request(0, 0, 0, 0)
    scheduler.arrive(request, 0)
    with pytest.raises(InternalError, match="I9"):
        scheduler.arrive(request, 0)


def test_i10_littles_law():
    scheduler = CheckedScheduler([model(Greedy(1))], (1,))
    scheduler.arrive(Request(0, 0, 0, 0), 0)
    scheduler.poll(0)
    scheduler._area_ns += 1
    with pytest.raises(InternalError, match="invariant I10, Little's law"):
        scheduler.audit()


def test_i11_timeouts(monkeypatch):
    monkeypatch.setattr("gesim.core.admission.Gatekeeper.expire", lambda *_: None)
    with pytest.raises(InternalError, match=r"invariant I(11|8)"):
        run(Greedy(1), [0, 0, 0], [QueueTimeout(20)])


def test_fast_feeding_is_checked_too():
    config = model(Greedy(4))
    scheduler = CheckedScheduler([config], (1,))
    requests = requests_at([0, 1, 2, 3])
    times = [0, 1, 2, 3]
    assert scheduler.feed(requests, times, 0, 10, True) == 1
    assert scheduler.due
    batch = scheduler.poll(0)[0].batch
    assert scheduler.feed(requests, times, 1, 10, True) == 4
    scheduler.finished(batch, 10)
    assert len(scheduler.poll(10)[0].batch.requests) == 3


def test_watching_a_fresh_scheduler():
    plain = Scheduler([model(Greedy(4), devices=(0, 1, 1))], (1, 2))
    checked = CheckedScheduler.watching(plain)
    assert checked._streams == (1, 2)
    assert len(checked.models) == 1


def test_laws_are_numbered():
    assert list(LAWS) == [f"I{n}" for n in range(1, len(LAWS) + 1)]
    assert all(statement.endswith(".") for _, statement in LAWS.values())
