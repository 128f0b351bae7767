"""Random events on a checked scheduler, compared with a plain list after every instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from plain_queue import Entry, PlainQueue

from gesim.core.actions import Start
from gesim.core.decisions import NEVER_NS, Admit, Dispatch, Drop, Reject, Wait
from gesim.core.invariants import CheckedScheduler
from gesim.core.policy import AdmissionPolicy, BatchingPolicy
from gesim.core.request import Outcome, Request
from gesim.policies.ordering.fifo import Fifo
from gesim.policies.ordering.strict_priority import StrictPriority
from gesim.testing.harness import model


@dataclass
class Scripted(BatchingPolicy):
    """Answers legally, by a script of small numbers; logs what it answered."""

    name: ClassVar[str] = "scripted"
    max_batch_size: int = 4
    eager: bool = False  # type: ignore[misc]
    script: list[int] = field(default_factory=list)
    log: list[tuple[int, int, object]] = field(default_factory=list)

    def decide(self, now_ns, queue):
        number = self.script.pop(0) if self.script else 0
        count = max(1, min(queue.fit(self.max_batch_size), number // 8 + 1))
        levels = [n for n in (1, 2, 3) if queue.level_count(n)]
        level = levels[number % len(levels)]
        answer: object = Dispatch(count)
        if number % 8 == 1:
            answer = Wait(now_ns + 1 + number, queue.items + 1 + number // 16)
        elif number % 8 == 2:
            answer = Wait(NEVER_NS, queue.items + 1 + number % 3)
        elif number % 8 == 3:
            answer = Drop(count, "scripted")
        elif number % 8 == 4:
            answer = Dispatch(1, 0, level)
        elif number % 8 == 5:
            answer = Wait(0, queue.items + 1)
        if not queue.idle_instances and type(answer) is Dispatch:
            answer = Wait(now_ns + 3)
        self.log.append((queue.idle_instances, queue.count, answer))
        return answer


@dataclass
class Timeouts(AdmissionPolicy):
    """Takes the timeout, the action and the bound from the request."""

    name: ClassVar[str] = "timeouts"

    def admit(self, now_ns, request, queue):
        if request.work_ns == 1:
            return Reject("told_to")
        if not request.timeout_ns:
            return Admit()
        delay, lazy = request.length % 2 == 1, request.length // 2 == 1
        return Admit(now_ns + request.timeout_ns, delay, lazy)


numbers = st.integers(0, 63)
requests = st.tuples(
    st.integers(0, 1),  # model
    st.integers(1, 3),  # level
    st.sampled_from([1, 1, 1, 2, 4, 5]),  # items
    st.sampled_from([0, 0, 1, 5, 20]),  # timeout
    st.integers(0, 3),  # delay, lazy
    st.sampled_from([0, 0, 0, 0, 1]),  # turned away
)


class Machine(RuleBasedStateMachine):
    @initialize(
        devices=st.lists(
            st.sampled_from([(0,), (0, 0), (0, 1), (1, 0, 1)]), min_size=2, max_size=2
        ),
        streams=st.sampled_from([(1, 1), (2, 1), (9, 9)]),
        orders=st.tuples(st.booleans(), st.booleans()),
        eager=st.tuples(st.booleans(), st.booleans()),
        bound=st.sampled_from([3, 1000]),
    )
    def begin(self, devices, streams, orders, eager, bound):
        self.policies = [Scripted(eager=e) for e in eager]
        self.by_level = orders
        self.bound = bound
        configs = [
            model(
                policy,
                StrictPriority() if levels else Fifo(),
                [Timeouts()],
                devices=where,
                queue_bound=bound,
                service_ns=lambda items: 5,
                name=f"m{i}",
            )
            for i, (policy, levels, where) in enumerate(
                zip(self.policies, orders, devices, strict=True)
            )
        ]
        self.scheduler = CheckedScheduler(configs, streams)
        self.plain = [PlainQueue(4), PlainQueue(4)]
        self.now = 0
        self.sent = 0
        self.running = []
        self.ended = {}
        self.seen = [0, 0]

    def _expire(self):
        for plain in self.plain:
            plain.expire(self.now)

    @rule(
        gap=st.integers(0, 12),
        arrivals=st.lists(requests, max_size=4),
        ends=st.integers(0, 3),
        fails=st.booleans(),
        script=st.lists(numbers, max_size=4),
    )
    def instant(self, gap, arrivals, ends, fails, script):
        """One instant: some batches end, some requests come, then a poll."""
        self.now += gap + 1
        if self.scheduler.wake_ns < self.now:
            self.now = self.scheduler.wake_ns
        for policy in self.policies:
            policy.script = list(script)
        for _ in range(min(ends, len(self.running))):
            batch = self.running.pop(0)
            if fails:
                self.scheduler.failed(batch, self.now, "broken")
            else:
                self.scheduler.finished(batch, self.now)
                self._end([r.id for r in batch.requests], "ok")
        self._expire()
        for arrival in arrivals:
            self._arrive(*arrival)
        self._poll()

    def _arrive(self, which, level, items, timeout, how, turned_away):
        request = Request(
            self.sent, which, self.now, self.now, level, items, how, timeout_ns=timeout,
            work_ns=turned_away,
        )  # fmt: skip
        self.sent += 1
        plain = self.plain[which]
        full = len(plain.entries) >= self.bound
        self.scheduler.arrive(request, self.now)
        if full or items > 4 or turned_away:
            assert request.outcome is Outcome.REJECTED
            assert request.reason == (
                "queue_bound" if full else "too_large" if items > 4 else "told_to"
            )
            return
        assert request.outcome is Outcome.PENDING
        plain.push(
            Entry(
                request.id, self.now, level if self.by_level[which] else 0, level, items,
                self.now + timeout if timeout else None, "delay" if how % 2 else "reject",
                how // 2 == 1,
            )
        )  # fmt: skip

    def _end(self, ids, why):
        for number in ids:
            assert number not in self.ended
            self.ended[number] = why

    def _poll(self):
        logged = [len(policy.log) for policy in self.policies]
        actions = self.scheduler.poll(self.now)
        started = [a.batch for a in actions if type(a) is Start]
        for batch in started:
            self.running.append(batch)
        for k, policy in enumerate(self.policies):
            plain = self.plain[k]
            mine = [b for b in started if b.model == k]
            left = [a.request.id for a in actions if type(a) is not Start and a.request.model == k]
            answers = policy.log[logged[k] :]
            dropped = []
            for idle, count, answer in answers:
                plain.expire_lazily(self.now, idle > 0)
                assert count == len(plain.entries)
                if type(answer) is Dispatch:
                    batch = mine.pop(0)
                    ids = [r.id for r in batch.requests]
                    assert ids == plain.take(answer.count, answer.level)
                elif type(answer) is Drop:
                    dropped += plain.take(answer.count)
            assert not mine
            queue = self.scheduler.models[k].queue
            if queue.count != len(plain.entries):  # the last of all had timed out
                plain.expire_lazily(self.now, queue.idle_instances > 0)
            assert [r.id for r in queue] == [e.id for e in plain.entries]
            expired = [a.request for a in actions if type(a) is not Start and a.request.model == k]
            expired = [r for r in expired if r.outcome is Outcome.EXPIRED]
            assert [(r.id, r.finish_ns) for r in expired] == [
                (number, at_ns) for number, at_ns, _ in plain.gone[self.seen[k] :]
            ]
            self.seen[k] = len(plain.gone)
            assert all(number in left for number in dropped)
        self._end([a.request.id for a in actions if type(a) is not Start], "gone")

    def _catch_up(self, plain, left):
        """Lazy expiry depends on how often the policy is asked: follow what was reported."""
        plain.entries = [e for e in plain.entries if e.id not in left]

    def teardown(self):
        if hasattr(self, "scheduler"):
            self.scheduler.audit()


TestCore = Machine.TestCase
TestCore.settings = settings(
    max_examples=120,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
