"""The second set of books that the invariants are checked against; one per model."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from gesim.core.decisions import NEVER_NS, Admit, Dispatch, Drop, Reject, Wait
from gesim.core.laws import breach
from gesim.core.model import AdmitCall, Decide, Model
from gesim.core.policy import QueueView
from gesim.core.request import Batch, Outcome, Request
from gesim.errors import GesimError

__all__ = ["Book"]


class Book:
    """What one model's requests, instances and policy have done so far.

    Parameters
    ----------
    model : Model
        Its `decide` and `admission` are replaced by versions that are listened to.

    Attributes
    ----------
    waiting : dict
        Queued requests by id.
    running : dict
        Batches by instance.
    turned_away, failed : set of int
        Ids whose `Gone` is still to be reported.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.waiting: dict[int, Request] = {}
        self.running: dict[int, Batch] = {}
        self.turned_away: set[int] = set()
        self.failed: set[int] = set()
        self._lanes: dict[int, deque[Request]] = {}
        self._keys: list[int] = []  # heap of the lanes' keys
        self._expiry: list[tuple[int, int]] = []  # heap of eager timeouts: (last instant, id)
        self._admits: dict[int, Admit] = {}  # the timeout that counts, by request
        self._answers: deque[Dispatch] = deque()  # not yet seen as a Start
        self._wait: tuple[int, int] | None = None  # the live Wait: (until, count)
        self._asked = False
        self._freed = False
        model.decide = self._listen(model.decide)
        model.admission = tuple(self._listen_admit(admit) for admit in model.admission)

    # ---- listening ---------------------------------------------------------------------

    def _listen(self, decide: Decide) -> Decide:
        def listened(now_ns: int, queue: QueueView) -> Dispatch | Wait | Drop:
            items = queue.items
            answer = decide(now_ns, queue)
            self._asked = True
            self._wait = None
            if type(answer) is Dispatch:
                self._answers.append(answer)
            elif type(answer) is Wait and type(answer.until_ns) is type(answer.count) is int:
                until_ns = answer.until_ns if answer.until_ns > now_ns else NEVER_NS
                self._wait = until_ns, max(answer.count, items + 1)
            return answer

        return listened

    def _listen_admit(self, admit: AdmitCall) -> AdmitCall:
        def listened(now_ns: int, request: Request, queue: QueueView) -> Admit | Reject:
            answer = admit(now_ns, request, queue)
            if type(answer) is Admit and type(answer.expires_ns) is int:
                known = self._admits.get(request.id)
                if answer.expires_ns < (known.expires_ns if known else NEVER_NS):
                    self._admits[request.id] = answer
            return answer

        return listened

    # ---- what happens ------------------------------------------------------------------

    def arrived(self, request: Request) -> None:
        """Enter a request that was just queued or turned away."""
        if request.id in self.waiting or request.id in self.turned_away:
            raise self._breach("I9", f"{request!r} came twice")
        if request.outcome is Outcome.REJECTED:
            self.turned_away.add(request.id)
            self._admits.pop(request.id, None)
            return
        self.waiting[request.id] = request
        lane = self._lanes.get(request.key)
        if lane is None:
            lane = self._lanes[request.key] = deque()
            heappush(self._keys, request.key)
        lane.append(request)
        admit = self._admits.get(request.id)
        if admit is not None and not admit.lazy:
            heappush(self._expiry, (admit.expires_ns, request.id))

    def started(self, batch: Batch) -> None:
        """Check a batch against the policy's answer and the order of the queue."""
        model = self.model
        if not self._answers:
            raise self._breach("I7", f"{batch!r} that no policy asked for")
        answer = self._answers.popleft()
        items = sum(request.items for request in batch.requests)
        if batch.instance in self.running:
            raise self._breach("I3", f"instance {batch.instance} already runs a batch")
        if model.config.devices[batch.instance] != batch.device:
            raise self._breach("I3", f"{batch!r} is on a device that its instance is not on")
        if len(batch.requests) != answer.count or answer.gear not in (0, batch.gear):
            raise self._breach("I7", f"{answer!r} became {batch!r}")
        if not items == batch.items <= batch.gear or (
            model.queue.gears and batch.gear not in model.queue.gears
        ):
            raise self._breach("I7", f"{batch!r} with {items} items; gears {model.queue.gears}")
        if items > model.limit and len(batch.requests) > 1:
            raise self._breach("I7", f"{batch!r} is above max_batch_size {model.limit}")
        length = max(request.length for request in batch.requests)
        if batch.length != (length if model.config.lengths else 0):
            raise self._breach("I7", f"{batch!r} has length class {batch.length}")
        for request in batch.requests:
            self._starts(request, batch, answer)
        if not answer.level:
            key = max(request.key for request in batch.requests)
            first = self._first_key()
            if first is not None and first < key:
                raise self._breach("I6", f"{batch!r} took key {key} while key {first} waits")
        self.running[batch.instance] = batch

    def _starts(self, request: Request, batch: Batch, answer: Dispatch) -> None:
        if self.waiting.get(request.id) is not request or request.model != self.model.index:
            raise self._breach("I9", f"{request!r} was started but does not wait")
        delayed = self._is_delayed(request)
        if answer.level and request.level != answer.level:
            raise self._breach("I6", f"{answer!r} took {request!r}")
        first = self._first_live(request.key, answer.level)
        if first is not request and (first is not None or not delayed):
            raise self._breach("I6", f"{request!r} was started before {first!r}")
        admit = self._admits.pop(request.id, None)
        # A dispatch by level reaches past what a lazy timeout has tested.
        tested = admit is not None and not delayed and not (admit.lazy and answer.level)
        if tested and admit is not None and batch.start_ns > admit.expires_ns:
            raise self._breach(
                "I11", f"{request!r} starts at {batch.start_ns}, after {admit.expires_ns}"
            )
        del self.waiting[request.id]

    def ended(self, batch: Batch) -> None:
        """Take a batch off its instance."""
        if self.running.get(batch.instance) is not batch:
            raise self._breach("I3", f"{batch!r} ended but does not run on its instance")
        del self.running[batch.instance]
        self._freed = True

    def left(self, request: Request, at_ns: int) -> bool:
        """Take out a request that is gone; False if it went with a failed batch."""
        outcome = request.outcome
        if outcome is Outcome.FAILED and request.id in self.failed:
            self.failed.remove(request.id)
            return False
        if outcome is Outcome.REJECTED and request.id in self.turned_away:
            self.turned_away.remove(request.id)
            return True
        if self.waiting.get(request.id) is not request or outcome not in (
            Outcome.EXPIRED,
            Outcome.DROPPED,
        ):
            raise self._breach("I9", f"{request!r} left but does not wait")
        admit = self._admits.pop(request.id, None)
        if outcome is Outcome.EXPIRED:
            if admit is None or admit.delay:
                raise self._breach("I11", f"{request!r} expired without a timeout that rejects")
            if at_ns <= admit.expires_ns or not (admit.lazy or at_ns == admit.expires_ns + 1):
                raise self._breach("I11", f"{request!r} left at {at_ns}, not {admit.expires_ns}+1")
        del self.waiting[request.id]
        if not self.waiting:
            self._wait = None  # an emptied queue cancels it
        return True

    def after_poll(self, now_ns: int, wake_ns: int, startable: int) -> None:
        """Check what must hold once everything of an instant is decided."""
        queue, config = self.model.queue, self.model.config
        asked, freed = self._asked, self._freed
        self._asked = self._freed = False
        if queue.count != len(self.waiting):
            raise self._breach("I1", f"{queue.count} in the queue, {len(self.waiting)} wait")
        if queue.count > config.queue_bound:
            raise self._breach("I5", f"{queue.count} queued, bound {config.queue_bound}")
        if queue.idle_instances != startable:
            raise self._breach("I3", f"{startable} can start, the view says {queue.idle_instances}")
        if self._answers or self.turned_away or self.failed:
            raise self._breach("I1", "a poll did not report all that was decided")
        while self._expiry and self._expired_already(now_ns):
            heappop(self._expiry)
        if self._expiry and wake_ns > self._expiry[0][0] + 1:
            raise self._breach("I8", f"wakes at {wake_ns}, first timeout {self._expiry[0][0]}")
        if not queue.count or not (startable or self.model.eager):
            return
        if startable and config.batching.work_conserving:
            raise self._breach(
                "I4",
                f"{config.batching.name or type(config.batching).__name__!r} left {queue.count} "
                f"queued at {now_ns} ns with {startable} free instances",
            )
        if self._wait is None or (freed and not asked):
            raise self._breach("I8", f"{queue.count} queued, {startable} free, and nobody asks")
        until_ns, count = self._wait
        if until_ns <= now_ns or queue.items >= count or wake_ns > until_ns:
            raise self._breach("I8", f"wait {self._wait} is over at {now_ns}; wake_ns {wake_ns}")

    def audit(self) -> None:
        """Walk the queue and compare the view with it."""
        queue = self.model.queue
        requests = list(queue)
        if {request.id for request in requests} != self.waiting.keys():
            raise self._breach("I1", f"queued are {requests}, waiting {list(self.waiting)}")
        places = [(request.key, self._is_delayed(request)) for request in requests]
        if places != sorted(places):
            raise self._breach("I6", f"the queue is out of order: {places}")
        oldest_ns = min((request.enqueue_ns for request in requests), default=NEVER_NS)
        head_ns = requests[0].enqueue_ns if requests else NEVER_NS
        levels = {request.level for request in requests}
        said = (queue.count, queue.items, queue.head_enqueue_ns, queue.oldest_enqueue_ns)
        true = (len(requests), sum(r.items for r in requests), head_ns, oldest_ns)
        if said != true:
            raise self._breach("I5", f"count, items, head, oldest: {said}, not {true}")
        for level in levels:
            counted = sum(request.level == level for request in requests)
            if queue.level_count(level) != counted:
                raise self._breach(
                    "I5", f"level {level}: {queue.level_count(level)}, not {counted}"
                )

    # ---- odds and ends -----------------------------------------------------------------

    def _is_delayed(self, request: Request) -> bool:
        """Tell whether a request was delayed; one that left since then counts as delayed too."""
        if request.outcome is not Outcome.PENDING:
            return True
        return request.id in self._admits and request.reason == "delayed"

    def _expired_already(self, now_ns: int) -> bool:
        """Tell whether the first timeout on the heap is settled."""
        expires_ns, number = self._expiry[0]
        request = self.waiting.get(number)
        if request is None or self._is_delayed(request):
            return True
        if expires_ns < now_ns:
            raise self._breach("I11", f"{request!r} still waits at {now_ns}, after {expires_ns}")
        return False

    def _first_live(self, key: int, level: int) -> Request | None:
        """Oldest unexpired request that waits in a lane (of a level, unless 0)."""
        lane = self._lanes.get(key, ())
        while lane and (lane[0].id not in self.waiting or self._is_delayed(lane[0])):
            self._lanes[key].popleft()
        for request in lane:
            live = request.id in self.waiting and not self._is_delayed(request)
            if live and level in (0, request.level):
                return request
        return None

    def _first_key(self) -> int | None:
        """Lowest key with an unexpired request that waits."""
        while self._keys:
            if self._first_live(self._keys[0], 0) is not None:
                return self._keys[0]
            del self._lanes[heappop(self._keys)]
        return None

    def _breach(self, number: str, what: str) -> GesimError:
        return breach(number, what, self.model.config.name)
