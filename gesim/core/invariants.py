"""The laws of the scheduler, checked while it runs.

Theory of operation
-------------------
`CheckedScheduler` is a `Scheduler` that keeps books of its own: for every model which requests
wait, in lanes by key, what runs where, and what the policy was asked and answered (it listens
to ``decide`` and ``admit``). After each call it compares them with what the scheduler did. A
breach raises at once and names the law; docs/invariants.md states them all.

Most laws are checked at every event. The walk over whole queues (I1, I5, I10) is made as often
as its cost allows: once as many events have passed as requests are waiting.

A promise that a policy broke (I4) is a `ContractError`; everything else is an `InternalError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from gesim.core.actions import Action, Gone, Start
from gesim.core.books import Book
from gesim.core.laws import breach
from gesim.core.model import ModelConfig
from gesim.core.request import Batch, Outcome, Request
from gesim.core.scheduler import Scheduler

__all__ = ["CheckedScheduler"]


class CheckedScheduler(Scheduler):
    """A scheduler that checks its invariants; several times slower, with the same results.

    Parameters
    ----------
    models, streams
        As for `Scheduler`.

    Raises
    ------
    ContractError, InternalError
        From any event or poll that breaks a law.
    """

    def __init__(self, models: Sequence[ModelConfig], streams: Sequence[int]) -> None:
        super().__init__(models, streams)
        self._books = [Book(model) for model in self.models]
        self._streams = tuple(streams)
        self._on_device = [0] * len(streams)
        self._now_ns = 0
        self._left_out = 0  # events since the last walk
        self._present = 0  # requests in the system
        self._area_ns = 0  # integral of `_present` over time
        self._sojourn_ns = 0  # sum over those that left

    @classmethod
    def watching(cls, fresh: Scheduler) -> CheckedScheduler:
        """Make a checked scheduler like `fresh`, which has seen no event yet."""
        configs = [model.config for model in fresh.models]
        return cls(configs, fresh._instances.streams_free)

    # ---- events ------------------------------------------------------------------------

    def arrive(self, request: Request, now_ns: int) -> bool:
        """Queue a request, or turn it away."""
        due = super().arrive(request, now_ns)
        self._arrived(request, now_ns)
        return due

    def feed(
        self,
        requests: list[Request],
        times_ns: list[int],
        start: int,
        before_ns: int,
        uniform: bool,
    ) -> int:
        """Queue ``requests[start:]`` up to the first that makes a decision possible."""
        model = self.models[requests[start].model] if start < len(requests) else None
        if not (uniform and model is not None and model.plain):
            return super().feed(requests, times_ns, start, before_ns, uniform)  # calls arrive
        counted = model.queue.count
        end = super().feed(requests, times_ns, start, before_ns, uniform)
        book = self._books[model.index]
        for i in range(start, end):
            if requests[i].id not in book.waiting and requests[i].id not in book.turned_away:
                self._arrived(requests[i], times_ns[i])
        if model.queue.count > model.config.queue_bound:
            raise breach("I5", f"{model.queue.count} queued, {counted} before", model.config.name)
        return end

    def finished(self, batch: Batch, now_ns: int) -> None:
        """Free the instance of a batch whose results are out."""
        self._ended(batch, now_ns)
        if batch.finish_ns and batch.finish_ns != now_ns:
            raise breach("I2", f"{batch!r} ends at {batch.finish_ns}, reported at {now_ns}")
        super().finished(batch, now_ns)
        for request in batch.requests:
            self._departs(request, now_ns)
            if request.outcome is not Outcome.OK:
                raise breach("I9", f"{request!r} was answered")

    def failed(self, batch: Batch, now_ns: int, reason: str) -> None:
        """Free the instance of a batch that could not be run; its requests fail."""
        self._ended(batch, now_ns)
        super().failed(batch, now_ns, reason)
        for request in batch.requests:
            self._departs(request, now_ns)
        self._books[batch.model].failed.update(request.id for request in batch.requests)

    def poll(self, now_ns: int) -> list[Action]:
        """Decide everything that can be decided at this instant."""
        self._advance(now_ns)
        actions = super().poll(now_ns)
        for action in actions:
            if type(action) is Start:
                self._started(action.batch, now_ns)
            elif type(action) is Gone:
                self._gone_out(action, now_ns)
        for book in self._books:
            book.after_poll(now_ns, self.wake_ns, self._startable(book))
        if self.wake_ns <= now_ns:
            raise breach("I8", f"wake_ns {self.wake_ns} is not after {now_ns}")
        self._left_out += 1
        if self._left_out >= sum(len(book.waiting) for book in self._books):
            self.audit()
        return actions

    def audit(self) -> None:
        """Walk everything that is queued, and compare both sides of Little's law."""
        self._left_out = 0
        inside_ns = 0
        present = 0
        for book in self._books:
            book.audit()
            for request in book.waiting.values():
                inside_ns += self._now_ns - request.enqueue_ns
            for batch in book.running.values():
                inside_ns += sum(self._now_ns - request.enqueue_ns for request in batch.requests)
                present += len(batch.requests)
            present += len(book.waiting)
        if present != self._present:
            raise breach("I1", f"{self._present} came and have not left, {present} are there")
        if self._area_ns != self._sojourn_ns + inside_ns:
            raise breach(
                "I10",
                f"the integral of the number in system is {self._area_ns} ns, the sojourns sum "
                f"to {self._sojourn_ns + inside_ns} ns",
            )

    # ---- bookkeeping -------------------------------------------------------------------

    def _advance(self, now_ns: int) -> None:
        if now_ns < self._now_ns:
            raise breach("I2", f"time went back from {self._now_ns} to {now_ns}")
        self._area_ns += self._present * (now_ns - self._now_ns)
        self._now_ns = now_ns

    def _departs(self, request: Request, at_ns: int) -> None:
        """Count a request out; `at_ns` may lie before now, for timeouts noticed later."""
        self._present -= 1
        self._area_ns -= self._now_ns - at_ns
        self._sojourn_ns += at_ns - request.enqueue_ns

    def _arrived(self, request: Request, now_ns: int) -> None:
        self._advance(now_ns)
        if not request.arrival_ns <= request.enqueue_ns == now_ns:
            raise breach("I2", f"{request!r} (sent at {request.arrival_ns}) is queued at {now_ns}")
        self._books[request.model].arrived(request)
        self._present += 1

    def _started(self, batch: Batch, now_ns: int) -> None:
        book = self._books[batch.model]
        if batch.start_ns != now_ns:
            raise breach("I2", f"{batch!r} is started at {now_ns}")
        book.started(batch)
        self._on_device[batch.device] += 1
        if self._on_device[batch.device] > self._streams[batch.device]:
            raise breach(
                "I3", f"device {batch.device} runs {self._on_device[batch.device]} batches"
            )

    def _ended(self, batch: Batch, now_ns: int) -> None:
        self._advance(now_ns)
        if now_ns < batch.start_ns:
            raise breach("I2", f"{batch!r} ended at {now_ns}, before it started")
        self._books[batch.model].ended(batch)
        self._on_device[batch.device] -= 1

    def _gone_out(self, action: Gone, now_ns: int) -> None:
        request, at_ns = action
        if not request.enqueue_ns <= at_ns == request.finish_ns <= now_ns:
            raise breach("I2", f"{request!r} left at {at_ns}, as seen at {now_ns}")
        if not self._books[request.model].left(request, at_ns):
            return  # failed with its batch, and counted then
        self._departs(request, at_ns)

    def _startable(self, book: Book) -> int:
        """Count the instances of a model that could start now, from what runs."""
        free = [0] * len(self._streams)
        for instance, device in enumerate(book.model.config.devices):
            free[device] += instance not in book.running
        left = [s - n for s, n in zip(self._streams, self._on_device, strict=True)]
        return sum(min(n, s) for n, s in zip(free, left, strict=True))
