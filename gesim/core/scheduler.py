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
while every instance is busy in one go (`feed`), each with its own time: the outcome is the same.

Which model goes first when several could start on one device: the one whose head has been
queued longest, then the lower index. Which instance: the free one with the lowest index.

A policy is asked at these points only (the *decision points*): an instance of its model
became free, its `Wait` ended (time or count), its queue went from empty to not empty, a
shared device got a free stream, or it answered `Drop`. Only the latest `Wait` is live, and an
emptied queue cancels it. Eager policies are asked at every event of their model.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from gesim.core.actions import Action, Gone, Start
from gesim.core.admission import Gatekeeper
from gesim.core.decisions import NEVER_NS, Dispatch, Drop, Wait
from gesim.core.instances import Instances
from gesim.core.model import Model, ModelConfig
from gesim.core.request import Batch, Outcome, Request
from gesim.errors import ContractError, PolicyError

__all__ = ["Action", "Gone", "ModelConfig", "Scheduler", "Start"]

_OK = Outcome.OK

ANSWERS_MAX = 64
"""Answers one policy may give within one instant before it is taken to loop."""


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
    models : list of Model
        Run-time state, one per model.
    wake_ns : int
        When to poll next if nothing else happens; ``NEVER_NS`` for not at all.
    due : bool
        Whether the last `feed` ended at an arrival that makes a decision possible.
    """

    def __init__(self, models: Sequence[ModelConfig], streams: Sequence[int]) -> None:
        self.models = [Model(i, config) for i, config in enumerate(models)]
        self.due = False
        self.wake_ns = NEVER_NS
        self._instances = Instances(self.models, streams)
        self._gate = Gatekeeper(self._gone)
        self._dirty: list[Model] = []
        self._actions: list[Action] = []
        self._batches = 0

    @property
    def instances_take_turns(self) -> bool:
        """Whether some device has more instances than streams."""
        return self._instances.any_scarce

    # ---- events ------------------------------------------------------------------------

    def arrive(self, request: Request, now_ns: int) -> bool:
        """Queue a request, or turn it away.

        Returns
        -------
        bool
            True if `poll` must be called at `now_ns`; False if it can wait until the next
            completion or `wake_ns`.
        """
        if now_ns > self._gate.next_expiry_ns:
            self._gate.expire(self.models, now_ns)
        model = self.models[request.model]
        queue = model.queue
        if queue.count >= model.config.queue_bound:
            self._gone(request, now_ns, Outcome.REJECTED, "queue_bound")
            return False
        if request.items > model.limit:  # no batch could ever hold it
            self._gone(request, now_ns, Outcome.REJECTED, "too_large")
            return False
        if model.admission and not self._gate.admits(model, request, now_ns):
            return False
        try:
            request.key = model.key(request)
            queue.push(request)
        except Exception as error:
            problem = f"gave no usable key for {request!r}: {error!r}"
            raise PolicyError(model.blame(now_ns, problem, "ordering")) from error
        if model.eager or (queue.idle_instances and queue.items >= model.wait_count):
            self._touch(model)
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
                self._touch(model)
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
            request.outcome = _OK
        self._release(model, batch, now_ns)
        if model.observe is not None:
            exec_ns = batch.input_ns + batch.compute_ns + batch.output_ns
            try:
                model.observe(now_ns, len(batch.requests), batch.gear, exec_ns)
            except Exception as error:
                raise PolicyError(model.blame(now_ns, f"raised {error!r}")) from error

    def failed(self, batch: Batch, now_ns: int, reason: str) -> None:
        """Free the instance of a batch that could not be run; its requests fail."""
        for request in batch.requests:
            self._gone(request, now_ns, Outcome.FAILED, reason)
        self._release(self.models[batch.model], batch, now_ns)

    def _release(self, model: Model, batch: Batch, now_ns: int) -> None:
        model.queue.last_finish_ns = now_ns
        model.wait_count = 0
        starved = self._instances.release(model, batch.instance, now_ns)
        if model.queue.count or model.eager:
            self._touch(model)
        for other in starved:
            other.wait_count = 0
            self._touch(other)

    # ---- decisions ---------------------------------------------------------------------

    def poll(self, now_ns: int) -> list[Action]:
        """Decide everything that can be decided at this instant.

        Returns
        -------
        list of Action
            To be carried out in order. Requests that were turned away since the last poll
            come first.
        """
        gate, dirty = self._gate, self._dirty
        if now_ns > gate.next_expiry_ns:
            gate.expire(self.models, now_ns)
        if now_ns >= self.wake_ns:
            for model in self.models:
                if now_ns >= model.wait_until_ns:
                    self._touch(model)
        elif not dirty and self.wake_ns <= gate.next_expiry_ns:
            return self._taken()
        while dirty:
            model = dirty.pop() if len(dirty) == 1 else self._head_first()
            model.dirty = False
            self._ask(model, now_ns)
        wake_ns = gate.next_expiry_ns + 1
        for model in self.models:
            if model.wait_until_ns < wake_ns:
                wake_ns = model.wait_until_ns
        self.wake_ns = wake_ns
        return self._taken()

    def _ask(self, model: Model, now_ns: int) -> None:
        """Ask a model's policy until it waits or nothing is left to decide."""
        queue = model.queue
        for _ in range(ANSWERS_MAX + queue.instances):
            asks = queue.idle_instances or model.eager
            if model.lazy and asks:
                self._gate.expire_lazily(model, now_ns)
            if not queue.count or not asks:
                model.wait_until_ns = NEVER_NS
                model.wait_count = 0
                return
            try:
                answer = model.decide(now_ns, queue)
            except PolicyError:
                raise
            except Exception as error:
                raise PolicyError(model.blame(now_ns, f"raised {error!r}")) from error
            if type(answer) is Dispatch:
                self._start(model, answer, now_ns)
                if self._dirty:
                    self._touch(model)  # let the model whose head is older go first
                    return
            elif type(answer) is Wait:
                self._wait(model, answer, now_ns)
                return
            elif type(answer) is Drop:
                self._drop(model, answer, now_ns)
            else:
                problem = f"answered {answer!r}; it must be a Dispatch, Wait or Drop"
                raise ContractError(model.blame(now_ns, problem))
        problem = f"gave more than {ANSWERS_MAX} answers in one instant"
        raise ContractError(model.blame(now_ns, problem))

    def _start(self, model: Model, answer: Dispatch, now_ns: int) -> None:
        queue = model.queue
        count, gear, level = answer
        available = queue.level_count(level) if level else queue.count
        if not queue.idle_instances:
            problem = f"answered {answer!r} while no instance is free"
            raise ContractError(model.blame(now_ns, problem))
        if type(count) is not int or not 1 <= count <= available:
            problem = f"answered {answer!r}; count must be an int in 1..{available} (queued)"
            raise ContractError(model.blame(now_ns, problem))
        items = queue.items
        requests = queue.take_level(level, count) if level else queue.take(count)
        items -= queue.items
        length = max(request.length for request in requests) if model.config.lengths else 0
        gear = _checked_gear(model, answer, items, now_ns)
        if model.admission:
            for request in requests:
                request.expires_ns = NEVER_NS
        instance = self._instances.occupy(model)
        device = model.config.devices[instance]
        batch = Batch(
            self._batches, model.index, instance, device, requests, items, gear, length, now_ns
        )
        self._batches += 1
        queue.last_dispatch_ns = now_ns
        model.wait_count = 0
        model.wait_until_ns = NEVER_NS
        self._actions.append(Start(batch))

    def _wait(self, model: Model, answer: Wait, now_ns: int) -> None:
        until_ns, count = answer
        items = model.queue.items
        if type(until_ns) is not int or type(count) is not int:
            raise ContractError(model.blame(now_ns, f"answered {answer!r}; it needs ints"))
        if until_ns <= now_ns:
            if count <= items:
                problem = f"answered {answer!r}: wait for a later time or for more than {items}"
                raise ContractError(model.blame(now_ns, problem + " queued items"))
            until_ns = NEVER_NS
        model.wait_until_ns = until_ns
        model.wait_count = count if count > items else items + 1

    def _drop(self, model: Model, answer: Drop, now_ns: int) -> None:
        count = answer.count
        if type(count) is not int or not 1 <= count <= model.queue.count:
            problem = f"answered {answer!r}; count must be an int in 1..{model.queue.count}"
            raise ContractError(model.blame(now_ns, problem + " (queued)"))
        for request in model.queue.take(count):
            request.expires_ns = NEVER_NS
            self._gone(request, now_ns, Outcome.DROPPED, answer.reason)

    # ---- odds and ends -----------------------------------------------------------------

    def _touch(self, model: Model) -> None:
        if not model.dirty:
            model.dirty = True
            self._dirty.append(model)

    def _head_first(self) -> Model:
        """Take the model whose head has been queued longest off the list."""
        model = min(self._dirty, key=lambda model: (model.queue.head_enqueue_ns, model.index))
        self._dirty.remove(model)
        return model

    def _gone(self, request: Request, at_ns: int, outcome: Outcome, reason: str) -> None:
        request.outcome = outcome
        request.reason = reason
        request.finish_ns = at_ns
        self._actions.append(Gone(request, at_ns))

    def _taken(self) -> list[Action]:
        actions = self._actions
        if actions:
            self._actions = []
        return actions


def _checked_gear(model: Model, answer: Dispatch, items: int, now_ns: int) -> int:
    """Resolve gear 0 and refuse a batch that the model was not compiled for."""
    queue = model.queue
    gear = answer.gear or queue.gear_up(items)
    if items > model.limit and answer.count > 1:
        problem = f"a batch of {items} items, above max_batch_size {model.limit}"
    elif type(gear) is not int or gear < items:
        largest = queue.gears[-1] if queue.gears else gear
        problem = f"{items} items, which do not fit into gear {gear or largest}"
    elif queue.gears and gear not in queue.gears:
        problem = f"gear {gear}, which is not compiled; gears are {list(queue.gears)}"
    else:
        return gear
    raise ContractError(model.blame(now_ns, f"answered {answer!r}: {problem}"))
