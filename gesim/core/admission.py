"""Admission and expiry: who enters a queue, and who has waited too long in it.

Theory of operation
-------------------
Each policy of the model is asked once per arrival. Their `Admit` answers may set a timeout.
An *eager* timeout sits in a heap and fires 1 ns after the last instant at which the request
may start, so a request that waits exactly its timeout is still served. A *lazy* one is tested
only while a batch is being formed, from the head up to one full batch, as Triton does; with no
instance free (an eager policy asking) the whole queue is tested, but only requests that expiry
rejects.

Rejecting or expiring calls back into the scheduler, which keeps the records.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from gesim.core.decisions import NEVER_NS, Admit, Reject
from gesim.core.model import Model
from gesim.core.request import Outcome, Request
from gesim.errors import ContractError, PolicyError

__all__ = ["Gatekeeper"]

_DELAY, _DELAYED = "delay", "delayed"
"""`Request.reason` while expiry would delay the request, and after it did."""


class Gatekeeper:
    """Admission and expiry for all models.

    Parameters
    ----------
    gone : callable
        ``(request, at_ns, outcome, reason)``, told of every request that leaves.

    Attributes
    ----------
    next_expiry_ns : int
        Last instant of the eager timeout that runs out first, ``NEVER_NS`` for none.
    """

    def __init__(self, gone: Callable[[Request, int, Outcome, str], None]) -> None:
        self._gone = gone
        self.next_expiry_ns = NEVER_NS

    def admits(self, model: Model, request: Request, now_ns: int) -> bool:
        """Ask the admission policies; True if the request may be queued."""
        expires_ns, delay, lazy = NEVER_NS, False, False
        for admit in model.admission:
            try:
                answer = admit(now_ns, request, model.queue)
            except Exception as error:
                problem = f"raised {error!r}"
                raise PolicyError(model.blame(now_ns, problem, "admission")) from error
            if type(answer) is Reject:
                self._gone(request, now_ns, Outcome.REJECTED, answer.reason)
                return False
            if type(answer) is not Admit or type(answer.expires_ns) is not int:
                problem = f"answered {answer!r}; it must be an Admit (int expiry) or a Reject"
                raise ContractError(model.blame(now_ns, problem, "admission"))
            if answer.expires_ns < expires_ns:
                expires_ns, delay, lazy = answer.expires_ns, answer.delay, answer.lazy
        request.expires_ns = expires_ns
        if expires_ns < NEVER_NS:
            request.reason = _DELAY if delay else ""
            if lazy:
                model.lazy = True
            else:
                heappush(model.expiry, (expires_ns, request.id, request))
                if expires_ns < self.next_expiry_ns:
                    self.next_expiry_ns = expires_ns
        return True

    def expire(self, models: list[Model], now_ns: int) -> None:
        """Expire the eager timeouts that ran out before `now_ns`."""
        next_ns = NEVER_NS
        for model in models:
            heap = model.expiry
            while heap:
                expires_ns, _, request = heap[0]
                if request.expires_ns != expires_ns:
                    heappop(heap)  # it runs, has run, or is gone already
                elif expires_ns < now_ns:
                    heappop(heap)
                    self._timed_out(model, request, expires_ns + 1)
                else:
                    break
            if heap and heap[0][0] < next_ns:
                next_ns = heap[0][0]
        self.next_expiry_ns = next_ns

    def expire_lazily(self, model: Model, now_ns: int) -> None:
        """Test the lazy timeouts that a forming batch would meet."""
        forming = model.queue.idle_instances > 0
        room = model.limit if forming else NEVER_NS
        expired: list[Request] = []
        for request in model.queue:
            if now_ns > request.expires_ns:
                if forming or request.reason != _DELAY:
                    expired.append(request)
            else:
                room -= request.items
                if room <= 0:
                    break
        for request in expired:
            self._timed_out(model, request, now_ns)

    def _timed_out(self, model: Model, request: Request, at_ns: int) -> None:
        request.expires_ns = NEVER_NS
        if request.reason == _DELAY:
            request.reason = _DELAYED
            model.queue.delay(request)
            return
        model.queue.discard([request])
        self._gone(request, at_ns, Outcome.EXPIRED, "timeout")
        if not model.queue.count:
            model.wait_until_ns = NEVER_NS
            model.wait_count = 0
