"""The scheduler: events go in with their time, decisions come out as values.

Theory of operation
-------------------
A driver (SimPy model, compiled loop, asyncio runtime, replay) owns the clock and calls

    arrive(request, now_ns)      a request reached its queue
    finished(batch, now_ns)      a batch left its instance
    poll(now_ns)                 what should happen now?  -> [Start(batch) | Gone(request)]
    wake_ns                      poll again at this time if nothing happens before

in this order within one instant: completions, expiries, arrivals, then one `poll`. `arrive`
and `finished` only change state; every decision is made inside `poll`. Expiry is the
scheduler's own work: each call first expires what is due before the instant.

`arrive` returns True when that arrival makes a decision possible (an instance is free and the
queue reached what the policy waits for). A driver may therefore feed the arrivals that happen
while every instance is busy in one go, each with its own time: the outcome is the same.

Which model goes first when several could start on one device: the one whose head has been
queued longest, then the lower index. Which instance: the free one with the lowest index.

A policy is asked at these points only (the *decision points*): an instance of its model
became free, its `Wait` ended (time or count), its queue went from empty to not empty, a
shared device got a free stream, or it answered `Drop`. Only the latest `Wait` is live, and an
emptied queue cancels it. Eager policies are asked at every event of their model.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from gesim.core.decisions import NEVER_NS, Admit, Dispatch, Drop, Reject, Wait
from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy
from gesim.core.queue import RequestQueue
from gesim.core.request import Batch, Outcome, Request
from gesim.errors import ContractError, PolicyError

__all__ = ["Action", "Gone", "ModelConfig", "Scheduler", "Start"]

ANSWERS_MAX = 64
"""Answers one policy may give within one instant before it is taken to loop."""


class Start(NamedTuple):
    """Run this batch now on ``batch.instance``."""

    batch: Batch


class Gone(NamedTuple):
    """This request left without being run; ``request.outcome`` and ``request.reason`` say why."""

    request: Request
    at_ns: int


Action = Start | Gone


@dataclass(frozen=True)
class ModelConfig:
    """What the scheduler needs to know about one model.

    Parameters
    ----------
    name : str
        For messages.
    batching, ordering : policy
        Own instances for this model: they keep state.
    admission : sequence of AdmissionPolicy
        Asked in turn; the first rejection counts, the earliest expiry counts.
    devices : tuple of int
        Device index of each instance, in instance order.
    gears : tuple of int
        Compiled batch sizes, increasing. Empty: any size up to the policy's max_batch_size.
    service_ns : callable
        ``items -> int``: the profile's mean batch time, for policies that ask.
    queue_bound : int
        Hard bound of the queue in requests; beyond it arrivals are rejected (`queue_bound`).
    """

    name: str
    batching: BatchingPolicy
    ordering: OrderingPolicy
    devices: tuple[int, ...]
    service_ns: Callable[[int], int]
    admission: Sequence[AdmissionPolicy] = ()
    gears: tuple[int, ...] = ()
    queue_bound: int = 1_000_000


class _Model:
    """Run-time state of one model."""

    __slots__ = (
        "admission", "config", "decide", "dirty", "eager", "expiry", "free", "free_since_ns",
        "index", "key", "lazy", "limit", "observe", "plain", "queue", "wait_count",
        "wait_until_ns",
    )  # fmt: skip

    def __init__(self, index: int, config: ModelConfig) -> None:
        self.index = index
        self.config = config
        self.queue = RequestQueue(config.gears, len(config.devices), config.service_ns)
        self.decide = config.batching.decide
        self.eager = config.batching.eager
        self.key = config.ordering.key
        self.admission = tuple(policy.admit for policy in config.admission)
        observed = type(config.batching).observe is not BatchingPolicy.observe
        self.observe = config.batching.observe if observed else None
        # Arrivals of one level need nothing but a place in the queue.
        self.plain = config.ordering.by_level and not config.admission and not self.eager
        limit = config.batching.max_batch_size
        self.limit = min(limit, config.gears[-1]) if config.gears else limit
        self.free = list(range(len(config.devices)))  # heap of free instances
        self.free_since_ns = [0] * len(config.devices)
        self.expiry: list[tuple[int, int, Request]] = []  # eager timeouts: (expires, id, request)
        self.lazy = False  # some queued request has a lazy timeout
        self.dirty = False  # a decision point was reached
        self.wait_until_ns = NEVER_NS
        self.wait_count = 0  # ask once this many items are queued


class Scheduler:
    """Admission, queues, batching and instances of all models on all devices.

    Parameters
    ----------
    models : sequence of ModelConfig
        One per model; requests name a model by its index here.
    streams : sequence of int
        Batches that each device runs at once.

    Attributes
    ----------
    wake_ns : int
        When to poll next if nothing else happens; ``NEVER_NS`` for not at all.
    """

    def __init__(self, models: Sequence[ModelConfig], streams: Sequence[int]) -> None:
        self.models = [_Model(i, config) for i, config in enumerate(models)]
        self.streams = list(streams)
        self.streams_free = list(streams)
        # Devices whose streams can run out before their instances do: only these need a look
        # before an instance counts as free.
        instances = [0] * len(self.streams)
        for config in models:
            for device in config.devices:
                instances[device] += 1
        self._scarce = [n > s for n, s in zip(instances, self.streams, strict=True)]
        self._any_scarce = any(self._scarce)
        self._dirty: list[_Model] = []
        self._actions: list[Action] = []
        self._batches = 0
        self.due = False
        self.wake_ns = NEVER_NS
        self._next_expiry_ns = NEVER_NS
        for model in self.models:
            self._update_free(model)

    # ---- events ------------------------------------------------------------------------

    def arrive(self, request: Request, now_ns: int) -> bool:
        """Queue a request, or turn it away.

        Returns
        -------
        bool
            True if `poll` must be called at `now_ns`; False if it can wait until the next
            completion or `wake_ns`.
        """
        if now_ns > self._next_expiry_ns:
            self._expire(now_ns - 1)
        model = self.models[request.model]
        queue = model.queue
        if model.admission and not self._admitted(model, request, now_ns):
            return False
        if queue.count >= model.config.queue_bound:
            self._gone(request, now_ns, Outcome.REJECTED, "queue_bound")
            return False
        try:
            request.key = model.key(request)
            queue.push(request)
        except Exception as error:
            problem = f"gave no usable key for {request!r}: {error!r}"
            raise PolicyError(self._where(model, now_ns, problem, "ordering")) from error
        if model.eager or (queue.idle_instances and queue.items >= model.wait_count):
            if not model.dirty:
                model.dirty = True
                self._dirty.append(model)
            return True
        return False

    def feed(
        self,
        requests: list[Request],
        times_ns: list[int],
        start: int,
        before_ns: int,
        uniform: bool,
    ) -> int:
        """Queue ``requests[start:]`` in turn, up to the first that makes a decision possible.

        Does what calling `arrive` for each would do, several times faster where it can.

        Parameters
        ----------
        requests, times_ns : list
            Arrivals in time order and their enqueue times.
        start : int
            Index of the first one to queue.
        before_ns : int
            Queue only those that arrive before this time.
        uniform : bool
            All are of one model, one level, one item each: the caller's promise.

        Returns
        -------
        int
            Index of the first request not queued. `due` tells whether the one before it asks
            for a decision at its time.
        """
        end = bisect_left(times_ns, before_ns, start)
        self.due = False
        if start == end:
            return end
        model = self.models[requests[start].model]
        queue = model.queue
        if not (uniform and model.plain and queue.count + end - start <= model.config.queue_bound):
            for i in range(start, end):
                if self.arrive(requests[i], times_ns[i]):
                    self.due = True
                    return i + 1
            return end
        if queue.idle_instances:
            needed = model.wait_count - queue.items
            if needed <= end - start:
                end = start + (needed if needed > 1 else 1)
                self.due = True
                if not model.dirty:
                    model.dirty = True
                    self._dirty.append(model)
        fed = requests[start:end]
        key = model.key(fed[0])
        if key:
            for request in fed:
                request.key = key
        queue.push_many(fed)
        return end

    def finished(self, batch: Batch, now_ns: int) -> None:
        """Free the instance of a batch whose results are out."""
        model = self.models[batch.model]
        for request in batch.requests:
            request.outcome = Outcome.OK
        self._release(model, batch, now_ns)
        if model.observe is not None:
            exec_ns = batch.input_ns + batch.compute_ns + batch.output_ns
            try:
                model.observe(now_ns, len(batch.requests), batch.gear, exec_ns)
            except Exception as error:
                raise PolicyError(self._where(model, now_ns, f"raised {error!r}")) from error

    def failed(self, batch: Batch, now_ns: int, reason: str) -> None:
        """Free the instance of a batch that could not be run; its requests fail."""
        for request in batch.requests:
            self._gone(request, now_ns, Outcome.FAILED, reason)
        self._release(self.models[batch.model], batch, now_ns)

    def _release(self, model: _Model, batch: Batch, now_ns: int) -> None:
        heappush(model.free, batch.instance)
        model.free_since_ns[batch.instance] = now_ns
        model.queue.last_finish_ns = now_ns
        self.streams_free[batch.device] += 1
        model.wait_count = 0
        if not model.dirty and (model.queue.count or model.eager):
            model.dirty = True
            self._dirty.append(model)
        if self._any_scarce:
            self._stream_freed(batch.device)
        else:
            queue = model.queue
            queue.idle_instances += 1
            queue.free_since_ns = model.free_since_ns[model.free[0]]

    # ---- decisions ---------------------------------------------------------------------

    def poll(self, now_ns: int) -> list[Action]:
        """Decide everything that can be decided at this instant.

        Returns
        -------
        list of Action
            To be carried out in order. Requests that were turned away since the last poll
            come first.
        """
        if now_ns > self._next_expiry_ns:
            self._expire(now_ns - 1)
        dirty = self._dirty
        if now_ns >= self.wake_ns:
            for model in self.models:
                if now_ns >= model.wait_until_ns and not model.dirty:
                    model.dirty = True
                    dirty.append(model)
        elif not dirty and self.wake_ns <= self._next_expiry_ns:
            return self._taken()
        while dirty:
            model = dirty.pop() if len(dirty) == 1 else self._head_first()
            model.dirty = False
            self._ask(model, now_ns)
        wake_ns = self._next_expiry_ns + 1
        for model in self.models:
            if model.wait_until_ns < wake_ns:
                wake_ns = model.wait_until_ns
        self.wake_ns = wake_ns
        return self._taken()

    def _taken(self) -> list[Action]:
        actions = self._actions
        if actions:
            self._actions = []
        return actions

    def _head_first(self) -> _Model:
        """Take the model whose head has been queued longest off the list."""
        dirty = self._dirty
        model = min(dirty, key=lambda model: (model.queue.head_enqueue_ns, model.index))
        dirty.remove(model)
        return model

    def _ask(self, model: _Model, now_ns: int) -> None:
        """Ask a model's policy until it waits or nothing is left to decide."""
        queue = model.queue
        for _ in range(ANSWERS_MAX + len(model.config.devices)):
            if model.lazy:
                self._expire_lazily(model, now_ns)
            if not queue.count or not (queue.idle_instances or model.eager):
                model.wait_until_ns = NEVER_NS
                model.wait_count = 0
                return
            try:
                answer = model.decide(now_ns, queue)
            except PolicyError:
                raise
            except Exception as error:
                raise PolicyError(self._where(model, now_ns, f"raised {error!r}")) from error
            if type(answer) is Dispatch:
                self._start(model, answer, now_ns)
                if self._any_scarce and self._dirty:
                    self._touch(model)  # let the model whose head is older go first
                    return
            elif type(answer) is Wait:
                self._wait(model, answer, now_ns)
                return
            elif type(answer) is Drop:
                self._drop(model, answer, now_ns)
            else:
                raise ContractError(
                    self._where(
                        model, now_ns, f"answered {answer!r}; it must be a Dispatch, Wait or Drop"
                    )
                )
        raise ContractError(
            self._where(model, now_ns, f"gave more than {ANSWERS_MAX} answers in one instant")
        )

    def _start(self, model: _Model, answer: Dispatch, now_ns: int) -> None:
        queue = model.queue
        count, gear, level = answer
        available = queue.level_count(level) if level else queue.count
        if not queue.idle_instances:
            raise ContractError(
                self._where(model, now_ns, f"answered {answer!r} while no instance is free")
            )
        if type(count) is not int or not 1 <= count <= available:
            raise ContractError(
                self._where(
                    model,
                    now_ns,
                    f"answered {answer!r}; count must be an int in 1..{available} (queued)",
                )
            )
        before = queue.items
        requests = queue.take_level(level, count) if level else queue.take(count)
        items, length = before - queue.items, 0
        for request in requests:
            if request.length > length:
                length = request.length
        gear = self._checked_gear(model, answer, items, gear, now_ns)
        instance = self._pick_instance(model)
        device = model.config.devices[instance]
        self.streams_free[device] -= 1
        batch = Batch(
            self._batches, model.index, instance, device, requests, items, gear, length, now_ns
        )
        self._batches += 1
        queue.last_dispatch_ns = now_ns
        model.wait_count = 0
        model.wait_until_ns = NEVER_NS
        if self._scarce[device]:
            for other in self.models:
                self._update_free(other)
        elif self._any_scarce:
            self._update_free(model)
        else:
            queue.idle_instances -= 1
            if model.free:
                queue.free_since_ns = model.free_since_ns[model.free[0]]
        self._actions.append(Start(batch))

    def _checked_gear(
        self, model: _Model, answer: Dispatch, items: int, gear: int, now_ns: int
    ) -> int:
        """Resolve gear 0 and refuse a batch that the model was not compiled for."""
        queue = model.queue
        gear = gear or queue.gear_up(items)
        if items > model.limit and answer.count > 1:
            problem = f"a batch of {items} items, above max_batch_size {model.limit}"
        elif gear < items:
            problem = f"{items} items, which do not fit into gear {gear or queue.gears[-1]}"
        elif queue.gears and gear not in queue.gears:
            problem = f"gear {gear}, which is not compiled; gears are {list(queue.gears)}"
        else:
            return gear
        raise ContractError(self._where(model, now_ns, f"answered {answer!r}: {problem}"))

    def _wait(self, model: _Model, answer: Wait, now_ns: int) -> None:
        until_ns, count = answer
        if type(until_ns) is not int or type(count) is not int:
            raise ContractError(self._where(model, now_ns, f"answered {answer!r}; it needs ints"))
        if until_ns <= now_ns and count <= model.queue.items:
            raise ContractError(
                self._where(
                    model,
                    now_ns,
                    f"answered {answer!r}: it must wait for a later time or for more than the "
                    f"{model.queue.items} queued items",
                )
            )
        if until_ns <= now_ns:
            until_ns = NEVER_NS
        model.wait_until_ns = until_ns
        model.wait_count = max(count, model.queue.items + 1)

    def _drop(self, model: _Model, answer: Drop, now_ns: int) -> None:
        if type(answer.count) is not int or not 1 <= answer.count <= model.queue.count:
            raise ContractError(
                self._where(
                    model,
                    now_ns,
                    f"answered {answer!r}; count must lie in 1..{model.queue.count} (queued)",
                )
            )
        for request in model.queue.take(answer.count):
            self._gone(request, now_ns, Outcome.DROPPED, answer.reason)

    # ---- admission and expiry ----------------------------------------------------------

    def _admitted(self, model: _Model, request: Request, now_ns: int) -> bool:
        """Ask the admission policies; True if the request may be queued."""
        expires_ns, delay, lazy = NEVER_NS, False, False
        for admit in model.admission:
            try:
                answer = admit(now_ns, request, model.queue)
            except Exception as error:
                raise PolicyError(
                    self._where(model, now_ns, f"raised {error!r}", "admission")
                ) from error
            if type(answer) is Reject:
                self._gone(request, now_ns, Outcome.REJECTED, answer.reason)
                return False
            if type(answer) is not Admit:
                problem = f"answered {answer!r}; it must be an Admit or a Reject"
                raise ContractError(self._where(model, now_ns, problem, "admission"))
            if answer.expires_ns < expires_ns:
                expires_ns, delay, lazy = answer.expires_ns, answer.delay, answer.lazy
        request.expires_ns = expires_ns
        if expires_ns < NEVER_NS:
            request.reason = "delay" if delay else ""
            if lazy:
                model.lazy = True
            else:
                heappush(model.expiry, (expires_ns, request.id, request))
                if expires_ns < self._next_expiry_ns:
                    self._next_expiry_ns = expires_ns
        return True

    def _expire(self, last_ns: int) -> None:
        """Expire every eager timeout whose last instant is `last_ns` or earlier."""
        next_ns = NEVER_NS
        for model in self.models:
            heap = model.expiry
            while heap and heap[0][0] <= last_ns:
                expires_ns, _, request = heappop(heap)
                if request.outcome is Outcome.PENDING and request.expires_ns == expires_ns:
                    self._timed_out(model, request, expires_ns + 1)
            while heap and heap[0][2].expires_ns == NEVER_NS:
                heappop(heap)
            if heap and heap[0][0] < next_ns:
                next_ns = heap[0][0]
        self._next_expiry_ns = next_ns

    def _expire_lazily(self, model: _Model, now_ns: int) -> None:
        """Test timeouts as a forming batch walks the queue: up to one full batch, from the head.

        With no instance free (an eager policy asking) the whole queue is tested, but only
        requests that expiry rejects, as Triton does every 500 ms of waiting for a slot.
        """
        queue = model.queue
        forming = queue.idle_instances > 0
        room = model.limit if forming else NEVER_NS
        expired: list[Request] = []
        lazy = False
        for request in queue:
            if now_ns > request.expires_ns:
                if forming or request.reason != "delay":
                    expired.append(request)
                continue
            lazy = lazy or request.expires_ns < NEVER_NS
            room -= request.items
            if room <= 0 and lazy:
                break
        for request in expired:
            self._timed_out(model, request, now_ns)
        model.lazy = lazy or any(r.expires_ns < NEVER_NS for r in queue)

    def _timed_out(self, model: _Model, request: Request, at_ns: int) -> None:
        request.expires_ns = NEVER_NS
        if request.reason == "delay":
            request.reason = "delayed"
            model.queue.delay(request)
            return
        model.queue.discard([request])
        self._gone(request, at_ns, Outcome.EXPIRED, "timeout")
        if not model.queue.count:
            model.wait_until_ns = NEVER_NS
            model.wait_count = 0

    def _gone(self, request: Request, at_ns: int, outcome: Outcome, reason: str) -> None:
        request.outcome = outcome
        request.reason = reason
        request.finish_ns = at_ns
        self._actions.append(Gone(request, at_ns))

    # ---- instances and devices -----------------------------------------------------------

    def _pick_instance(self, model: _Model) -> int:
        """Free instance with the lowest index whose device has a free stream."""
        if not self._any_scarce:
            return heappop(model.free)
        devices = model.config.devices
        instance = min(i for i in model.free if self.streams_free[devices[i]])
        model.free.remove(instance)
        model.free.sort()
        return instance

    def _update_free(self, model: _Model) -> None:
        """Bring the view's count of startable instances up to date."""
        queue, free = model.queue, model.free
        if not self._any_scarce:
            queue.idle_instances = len(free)
            if free:
                queue.free_since_ns = model.free_since_ns[free[0]]
            return
        devices = model.config.devices
        startable = [i for i in free if self.streams_free[devices[i]]]
        left = {d: self.streams_free[d] for d in {devices[i] for i in startable}}
        queue.idle_instances = 0
        for i in startable:
            if left[devices[i]]:
                left[devices[i]] -= 1
                queue.idle_instances += 1
        if startable:
            queue.free_since_ns = model.free_since_ns[min(startable)]

    def _stream_freed(self, device: int) -> None:
        """A scarce device got a free stream: every model with an instance on it may decide."""
        for model in self.models:
            if device in model.config.devices:
                starved = not model.queue.idle_instances
                self._update_free(model)
                if starved and model.queue.count and model.queue.idle_instances:
                    model.wait_count = 0
                    self._touch(model)

    def _touch(self, model: _Model) -> None:
        if not model.dirty:
            model.dirty = True
            self._dirty.append(model)

    def _where(self, model: _Model, now_ns: int, problem: str, kind: str = "batching") -> str:
        policies = {
            "batching": [model.config.batching],
            "ordering": [model.config.ordering],
            "admission": model.config.admission,
        }[kind]
        name = ", ".join(policy.name or type(policy).__name__ for policy in policies)
        queue = model.queue
        return (
            f"{kind} policy {name!r} of model {model.config.name!r} {problem} "
            f"(at {now_ns} ns with {queue.count} queued and {queue.idle_instances} free instances)"
        )
