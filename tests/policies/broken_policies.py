"""Policies that break the contract, one way each. `EXPECTED` says which check must catch it."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass, field
from typing import ClassVar

from gesim.core.decisions import NEVER_NS, Admit, Dispatch, Drop, Reject, Wait
from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy
from gesim.errors import PolicyError

SEEN: list[int] = []
NUMBERS = itertools.count()


@dataclass
class Base(BatchingPolicy):
    """Greedy, for others to spoil.

    Parameters
    ----------
    max_batch_size : int
        Most items.
    """

    name: ClassVar[str] = "broken"
    max_batch_size: int = 8

    def decide(self, now_ns, queue):
        return Dispatch(queue.fit(self.max_batch_size))


@dataclass
class Raises(Base):
    """Divides by zero."""

    def decide(self, now_ns, queue):
        return Dispatch(1 // (queue.count - queue.count))


@dataclass
class ReturnsNone(Base):
    """Forgets to return."""

    def decide(self, now_ns, queue):
        Dispatch(1)


@dataclass
class ReturnsFloat(Base):
    """Half of what there is."""

    def decide(self, now_ns, queue):
        return Dispatch(queue.count / 2)


@dataclass
class WaitsFloat(Base):
    """Seconds as floats."""

    def decide(self, now_ns, queue):
        return Wait(now_ns + 5e6)


@dataclass
class WaitsInThePast(Base):
    """Waits until now."""

    def decide(self, now_ns, queue):
        return Wait(now_ns, 1)


@dataclass
class TooMany(Base):
    """Takes one more than there is."""

    def decide(self, now_ns, queue):
        return Dispatch(queue.count + 1)


@dataclass
class AboveMax(Base):
    """Takes all there is."""

    def decide(self, now_ns, queue):
        return Dispatch(queue.count)


@dataclass
class WrongGear(Base):
    """Uses a gear that nobody compiled."""

    def decide(self, now_ns, queue):
        return Dispatch(1, 5)


@dataclass
class WritesQueue(Base):
    """Helps itself."""

    def decide(self, now_ns, queue):
        queue.count = 0
        return Dispatch(1)


@dataclass
class TakesRequests(Base):
    """Calls a method of the scheduler."""

    def decide(self, now_ns, queue):
        queue.take(1)
        return Dispatch(1)


@dataclass
class LooksInside(Base):
    """Reads a private attribute."""

    def decide(self, now_ns, queue):
        return Dispatch(len(queue._lanes))


@dataclass
class ReadsClock(Base):
    """Asks the machine what time it is."""

    def decide(self, now_ns, queue):
        time.monotonic_ns()
        return Dispatch(1)


@dataclass
class TossesCoins(Base):
    """Is random."""

    def decide(self, now_ns, queue):
        return Dispatch(1 + int(random.random() * min(queue.count, 8)))


@dataclass
class ImportsInside(Base):
    """Hides an import."""

    def decide(self, now_ns, queue):
        import numpy as np

        return Dispatch(int(np.int64(1)))


@dataclass
class SharedCounter(Base):
    """Keeps its state in a module."""

    def decide(self, now_ns, queue):
        if next(NUMBERS) % 2:
            return Wait(now_ns + 1_000_000)
        return Dispatch(1)


@dataclass
class DropsForEver(Base):
    """Drops everything, one at a time."""

    def decide(self, now_ns, queue):
        return Drop(1) if queue.idle_instances else Wait(NEVER_NS)


@dataclass
class DropsTooMany(Base):
    """Drops more than there is."""

    def decide(self, now_ns, queue):
        return Drop(queue.count + 1)


@dataclass
class Spins(Base):
    """Never answers."""

    def decide(self, now_ns, queue):
        while queue.count:
            pass
        return Dispatch(1)


@dataclass
class Polls(Base):
    """Asks again every nanosecond."""

    def decide(self, now_ns, queue):
        return Wait(now_ns + 1)


@dataclass
class Quits(Base):
    """Ends the program."""

    def decide(self, now_ns, queue):
        raise SystemExit(3)


@dataclass
class Forgets(Base):
    """Waits for ever."""

    def decide(self, now_ns, queue):
        return Wait(NEVER_NS)


@dataclass
class Hoards(Base):
    """Remembers every answer."""

    past: list[int] = field(default_factory=list, init=False)

    def decide(self, now_ns, queue):
        self.past.append(now_ns)
        return Dispatch(queue.fit(self.max_batch_size))


@dataclass
class BreaksPromise(Base):
    """Says that it conserves work, and waits."""

    work_conserving: ClassVar[bool] = True

    def decide(self, now_ns, queue):
        if queue.items < 3:
            return Wait(now_ns + 1_000_000, 3)
        return Dispatch(queue.fit(self.max_batch_size))


@dataclass
class Refuses(Base):
    """Finds no model good enough."""

    def decide(self, now_ns, queue):
        raise PolicyError("refuses: the moon is not full")


@dataclass
class CannotBuild(Base):
    """Has a constructor with a fault."""

    def __post_init__(self):
        self.table = [1, 2][self.max_batch_size]


@dataclass
class NoSize(BatchingPolicy):
    """Has no max_batch_size."""

    name: ClassVar[str] = "no_size"

    def decide(self, now_ns, queue):
        return Dispatch(1)


@dataclass
class NoMethod(BatchingPolicy):
    """Has no decide.

    Parameters
    ----------
    max_batch_size : int
        Most items.
    """

    name: ClassVar[str] = "no_method"
    max_batch_size: int = 8


@dataclass
class Undocumented(Base):
    """Does not say what its parameter is for."""

    slack: int = 3


class NotADataclass(BatchingPolicy):
    """A plain class."""

    name = "plain"
    max_batch_size = 8

    def decide(self, now_ns, queue):
        return Dispatch(1)


@dataclass
class Asynchronous(Base):
    """Wants to be awaited."""

    async def decide(self, now_ns, queue):  # type: ignore[override]
        return Dispatch(1)


@dataclass
class HoldsGenerator(Base):
    """Keeps what cannot be copied."""

    source: object = field(default=None, init=False)

    def decide(self, now_ns, queue):
        self.source = (n for n in (1, 2))
        return Dispatch(1)


@dataclass
class FloatKey(OrderingPolicy):
    """Keys are not ints."""

    name: ClassVar[str] = "float_key"

    def key(self, request):
        return request.enqueue_ns / 2


@dataclass
class FalsePromise(OrderingPolicy):
    """Says that the key is the level's, and uses the size."""

    name: ClassVar[str] = "false_promise"
    by_level: ClassVar[bool] = True

    def key(self, request):
        return request.items


@dataclass
class SeesWork(OrderingPolicy):
    """Knows the service time of every request."""

    name: ClassVar[str] = "sees_work"

    def key(self, request):
        return request.work_ns


@dataclass
class WritesRequest(AdmissionPolicy):
    """Promotes everyone."""

    name: ClassVar[str] = "writes_request"

    def admit(self, now_ns, request, queue):
        request.level = 1
        return Admit()


@dataclass
class SaysYes(AdmissionPolicy):
    """Answers True."""

    name: ClassVar[str] = "says_yes"

    def admit(self, now_ns, request, queue):
        return True


@dataclass
class ExpiredAlready(AdmissionPolicy):
    """Admits until yesterday."""

    name: ClassVar[str] = "expired_already"

    def admit(self, now_ns, request, queue):
        return Admit(now_ns - 1)


@dataclass
class NoReason(AdmissionPolicy):
    """Rejects without a word."""

    name: ClassVar[str] = "no_reason"

    def admit(self, now_ns, request, queue):
        return Reject("") if queue.count else Admit()


class Stranger:
    """Not a policy at all."""


EXPECTED = {
    Raises: ("answers", "ZeroDivisionError"),
    ReturnsNone: ("answers", "answered None"),
    ReturnsFloat: ("answers", "count must be an int"),
    WaitsFloat: ("answers", "it needs ints"),
    WaitsInThePast: ("answers", "wait for a later time"),
    TooMany: ("answers", "count must be an int in 1.."),
    AboveMax: ("answers", "above max_batch_size"),
    WrongGear: ("answers", "is not compiled"),
    WritesQueue: ("view", "sets queue.count"),
    TakesRequests: ("view", "reads queue.take"),
    LooksInside: ("view", "reads queue._lanes"),
    ReadsClock: ("pure", "no clock"),
    TossesCoins: ("pure", "no randomness"),
    ImportsInside: ("pure", "imports numpy"),
    SharedCounter: ("deterministic", "a copy of the policy"),
    DropsForEver: ("live", "never starts"),
    DropsTooMany: ("answers", "count must be an int"),
    Spins: ("ends", "gives no answer"),
    Polls: ("ends", "does not end"),
    Quits: ("answers", "end the program"),
    Forgets: ("live", "wait for ever"),
    Hoards: ("bounded", "must not grow"),
    BreaksPromise: ("promises", "I4"),
    Refuses: ("answers", "the moon is not full"),
    CannotBuild: ("builds", "IndexError"),
    NoSize: ("builds", "max_batch_size is None"),
    NoMethod: ("form", "no decide method"),
    Undocumented: ("form", "slack"),
    NotADataclass: ("form", "not a dataclass"),
    Asynchronous: ("form", "async"),
    HoldsGenerator: ("deterministic", "cannot be copied"),
    FloatKey: ("answers", "a key is an int"),
    FalsePromise: ("promises", "by_level"),
    SeesWork: ("view", "work_ns"),
    WritesRequest: ("view", "sets request.level"),
    SaysYes: ("answers", "answered True"),
    ExpiredAlready: ("answers", "expired already"),
    NoReason: ("answers", "needs a reason"),
}
