"""Triton's dynamic batcher: preferred sizes, a delay, batches formed ahead of the device.

Theory of operation
-------------------
Triton's batcher is a thread of its own. It moves requests from the queue into *payloads* and
hands these over to the instances, up to two payloads per instance ahead. The last payload
handed over stays *open*: later requests join it until an instance takes it or it is closed. So
a batch is often decided long before its device is free, and a batcher with delay 0 still makes
large batches under load.

Here requests that were handed over stay at the front of the core's queue, and the policy only
remembers where the payloads end::

    queue:   r r r r | r r r r | r r r       r r r r r r
             payload   payload   open        not handed over yet
             `_ready` = [4, 4, 3], `_open`   formed next

(With an ordering that lets requests pass, which Triton has under a queue policy only, payloads
keep their number of requests, not the very requests.)

*Forming* walks the requests that are not handed over, in order, and remembers the last place
where the open payload would have a preferred size. It sends what stands before that place, but
everything that it met once the oldest of them has waited `max_queue_delay_ns`; everything when
the largest preferred size or the largest batch is reached, or when there is no delay. Otherwise
it waits. When an instance takes a payload, those behind it that have waited longer than the
delay merge into it, if they fit.

*Sleep.* Between two looks the thread sleeps: until its delay ends, a payload is taken, a batch
ends, or a request arrives that fills the queue up to the next preferred size. That size is not
reset when the delay has handed over less. So an open payload of one request grows only in
jumps, and is often taken as it is although others wait. With a delay and under load this is up
to a quarter of the latency (docs/triton.md).

*With a queue policy* (priority levels, timeouts or a bounded queue) nothing is handed over
ahead: the batcher waits until an instance is idle, and what it forms then starts at once.

Versions
--------
2.42
    As above, with a flaw (triton-inference-server/server issue 8141): an open payload that has
    the largest preferred size already takes one request more, so ``preferred_batch_size: [4]``
    makes batches of 5.
2.51
    Under a queue policy the wake-up at the end of a batch may be *lost*: it is sent before the
    instance counts as idle, so the batcher looks, finds none, and sleeps on. Then only an
    arrival that enters the queue, or a poll every 500 ms, wakes it; arrivals that a full queue
    rejects do not. It is a race of threads, which a model cannot time, so `lost_wakeup` states
    its outcome. The poll counts from when the batcher began to wait: the last hand-over if that
    left requests behind, else the end of the batch (it slept, because the queue was empty).
fixed
    What is meant: no wake-up is lost or withheld, an open payload takes what fits before it
    starts, and one of the largest preferred size is closed.

Not modelled: vetoes of custom batching hooks, batches split by input shape, the rate limiter.

Sources: triton-inference-server/core, dynamic_batch_scheduler.cc, instance_queue.cc, payload.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gesim.core.decisions import NEVER_NS, Dispatch, Wait
from gesim.core.policy import BatchingPolicy, QueueView
from gesim.errors import PolicyError
from gesim.policies.checks import at_least, share

__all__ = ["PreferredSize"]

POLL_NS = 500_000_000
"""The batcher of 2.51 looks again after this time, whatever happens."""

_MASK = (1 << 64) - 1


@dataclass
class PreferredSize(BatchingPolicy):
    """Triton's dynamic batcher, by version: preferred sizes, delay, payloads formed ahead.

    Parameters
    ----------
    max_batch_size : int
        Largest batch, in items.
    preferred_batch_size : tuple of int
        Sizes that are sent without waiting. Empty: `max_batch_size` alone.
    max_queue_delay_ns : int
        How long the oldest request of a batch may wait for a preferred size. 0: not at all.
    version : {"2.42", "2.51", "fixed"}
        Whose behaviour: Triton's server versions, or what they mean to do.
    lost_wakeup : {"never", "always", "probability"}
        Whether the wake-up at the end of a batch is lost. Version 2.51 under a queue policy
        only; elsewhere it has no effect.
    lost_wakeup_ratio : float
        Share of wake-ups lost with ``lost_wakeup: probability``. Measured: about 0.13 on an
        idle machine, 0.4 at 110 % load (the default), 0.6 to 0.8 beside busy loops.
    seed : int
        For those draws; the run's seed decides unless it is given.
    queue_policy : bool
        The model has priority levels, timeouts or a bounded queue, so nothing is handed over
        ahead. Loading a scenario sets it where the model has one.
    """

    name: ClassVar[str] = "preferred_size"
    eager: ClassVar[bool] = True

    max_batch_size: int
    preferred_batch_size: tuple[int, ...] = ()
    max_queue_delay_ns: int = 0
    version: Literal["2.42", "2.51", "fixed"] = "fixed"
    lost_wakeup: Literal["never", "always", "probability"] = "never"
    lost_wakeup_ratio: float = 0.4
    seed: int = 0
    queue_policy: bool = False

    # Payloads handed over: requests in each, in all, and whether the last one is open.
    _ready: list[int] = field(default_factory=list, init=False, repr=False)
    _handed: int = field(default=0, init=False, repr=False)
    _open: bool = field(default=False, init=False, repr=False)
    # The batcher's thread: notified but not run yet, when it wakes by itself, and the number of
    # items queued that would wake it while a payload is open.
    _awake: bool = field(default=False, init=False, repr=False)
    _wake_ns: int = field(default=0, init=False, repr=False)
    _next: int = field(default=0, init=False, repr=False)
    # What the last forming found, besides the count that it returned.
    _closes: bool = field(default=False, init=False, repr=False)
    _until_ns: int = field(default=0, init=False, repr=False)
    # 2.51 under a queue policy: what the batcher's thread is doing.
    _stalled: bool = field(default=False, init=False, repr=False)
    _asleep: bool = field(default=True, init=False, repr=False)
    _poll_ns: int = field(default=0, init=False, repr=False)
    _queued: int = field(default=0, init=False, repr=False)
    _judged_ns: int = field(default=-1, init=False, repr=False)
    _draws: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse values that Triton refuses."""
        at_least(self.name, "max_batch_size", self.max_batch_size, 1)
        at_least(self.name, "max_queue_delay", self.max_queue_delay_ns, 0)
        share(self.name, "lost_wakeup_ratio", self.lost_wakeup_ratio)
        for size in self.preferred_batch_size:
            if not 1 <= size <= self.max_batch_size:
                raise PolicyError(
                    f"{self.name}: preferred_batch_size {size} must lie in 1..max_batch_size "
                    f"({self.max_batch_size})"
                )

    def decide(self, now_ns: int, queue: QueueView) -> Dispatch | Wait:
        """Hand over what can be, then start what an idle instance can take."""
        if self.queue_policy:
            return self._decide_when_idle(now_ns, queue)
        if self._handed > queue.count:  # requests left by themselves: start over
            self._ready.clear()
            self._handed = 0
            self._close()
        if self.version == "fixed" or not (self._ready and queue.idle_instances):
            self._hand_over(now_ns, queue)
        if self._ready and queue.idle_instances:
            self._awake = True  # taking a payload notifies the batcher
            return Dispatch(self._take(now_ns, queue))
        return Wait(self._wake_ns)

    def _hand_over(self, now_ns: int, queue: QueueView) -> None:
        """Let the batcher's thread run, if it is awake, until it sleeps or has no slot."""
        if self._open and self.version != "fixed" and not self._awake:
            fresh = queue.items - queue.items_of(self._handed)
            notified = fresh >= self._next or queue.last_finish_ns == now_ns
            if not notified and now_ns < self._wake_ns:
                return
        self._awake = False
        self._wake_ns = NEVER_NS if self.version == "fixed" else now_ns + POLL_NS
        while len(self._ready) < 2 * queue.instances and self._handed < queue.count:
            count = self._form(now_ns, queue)
            if count:
                if self._open:
                    self._ready[-1] += count
                else:
                    self._ready.append(count)
                self._handed += count
                self._open = True
            if self._closes:
                self._close()
            elif not count:
                self._wake_ns = self._until_ns
                return

    def _close(self) -> None:
        """Let nothing more into the last payload: the next one is new."""
        self._open = False
        self._next = 0

    def _take(self, now_ns: int, queue: QueueView) -> int:
        """Take the front payload, merged with those behind it that waited too long."""
        ready = self._ready
        count = ready.pop(0)
        if self.max_queue_delay_ns and self.max_batch_size > 1:
            while ready and now_ns - queue.enqueue_ns(count) > self.max_queue_delay_ns:
                if len(ready) == 1:
                    self._close()  # what a thread has tried to merge grows no more
                if queue.items_of(count + ready[0]) > self._largest(queue):
                    break
                count += ready.pop(0)
        fitting = queue.fit(self._largest(queue))
        if fitting < count:  # larger requests came in front: the payload keeps the rest
            ready.insert(0, count - fitting)
            count = fitting
        if not ready:
            self._close()
        self._handed -= count
        return count

    def _largest(self, queue: QueueView) -> int:
        """Items that fit into one batch."""
        if queue.gears and queue.gears[-1] < self.max_batch_size:
            return queue.gears[-1]
        return self.max_batch_size

    # ---- forming -----------------------------------------------------------------------

    def _form(self, now_ns: int, queue: QueueView) -> int:
        """Count the requests to move into the open payload (or into a new one).

        Sets `_closes` (no later request may join), and `_until_ns` where the answer is 0.
        """
        largest = self._largest(queue)
        goal = max(self.preferred_batch_size, default=largest)  # largest preferred size
        first = self._handed
        base = 0  # items in the open payload
        if self._open:
            base = queue.items_of(first) - queue.items_of(first - self._ready[-1])
        plain = queue.items == queue.count
        best = size = scanned = 0
        self._closes = send = False
        while first + scanned < queue.count:
            items = 1 if plain else queue.size(first + scanned)
            if base + size:
                if base + size + items > goal and not best:
                    # With nothing scanned yet this marks nothing, and the next step marks
                    # again: one request too many.
                    best = scanned
                    self._closes = True
                    if not scanned and self.version == "fixed" and not self._late(now_ns, queue, 1):
                        return 0
                if base + size + items > largest:
                    send = True
                    break
            size += items
            scanned += 1
            if self._prefers(base + size, goal):
                best = scanned
        if not scanned:
            return 0
        delay_ns = self.max_queue_delay_ns
        late = self._late(now_ns, queue, scanned)
        if best and not late:
            if not delay_ns:
                self._closes = True
            return best
        if send or base + size >= goal:
            self._closes = True
            return scanned
        if late or not delay_ns:
            return scanned
        self._next = self._preferred_above(base + size, largest) - base
        if base and not self._closes and not self._prefers(base, goal):
            return scanned  # no use in holding back what an open payload can take
        self._until_ns = self._oldest_ns(queue, scanned) + delay_ns
        return 0

    def _prefers(self, size: int, goal: int) -> bool:
        return size in self.preferred_batch_size if self.preferred_batch_size else size == goal

    def _preferred_above(self, size: int, largest: int) -> int:
        """Smallest preferred size above `size`, else the smallest of all."""
        least = above = NEVER_NS
        for preferred in self.preferred_batch_size:
            least = min(least, preferred)
            if preferred > size:
                above = min(above, preferred)
        return above if above < NEVER_NS else min(least, largest)

    def _late(self, now_ns: int, queue: QueueView, scanned: int) -> bool:
        """Tell whether the oldest of the requests scanned has waited the delay."""
        delay_ns = self.max_queue_delay_ns
        return delay_ns > 0 and now_ns - self._oldest_ns(queue, scanned) >= delay_ns

    def _oldest_ns(self, queue: QueueView, scanned: int) -> int:
        if scanned == queue.count:
            return queue.oldest_enqueue_ns
        oldest_ns = queue.enqueue_ns(self._handed)
        if self.queue_policy:  # levels: the first is not always the oldest
            for position in range(1, scanned):
                oldest_ns = min(oldest_ns, queue.enqueue_ns(position))
        return oldest_ns

    # ---- with a queue policy -----------------------------------------------------------

    def _decide_when_idle(self, now_ns: int, queue: QueueView) -> Dispatch | Wait:
        until_ns = NEVER_NS
        if self.version == "2.51":
            self._watch(now_ns, queue)
            until_ns = self._poll_ns
            if self._stalled:
                return Wait(until_ns)
        if not queue.idle_instances:
            return Wait(until_ns)
        count = self._form(now_ns, queue)
        if not count:
            return Wait(self._until_ns)
        self._queued = queue.count - count
        self._asleep = not self._queued
        self._poll_ns = now_ns + POLL_NS
        return Dispatch(count)

    def _watch(self, now_ns: int, queue: QueueView) -> None:
        """Follow the batcher's thread: has it missed its wake-up, and when does it look again."""
        ended = queue.last_finish_ns == now_ns and self._judged_ns != now_ns
        if now_ns >= self._poll_ns:
            self._poll_ns += (now_ns - self._poll_ns) // POLL_NS * POLL_NS + POLL_NS
            self._stalled = False
            if self._queued:
                self._asleep = False
        elif ended and queue.count <= self._queued:
            self._judged_ns = now_ns
            # Another idle instance is counted already, and that is enough.
            self._stalled = queue.idle_instances == 1 and self._loses()
            if self._stalled and self._asleep:
                self._asleep = False
                self._poll_ns = now_ns + POLL_NS
        else:
            self._stalled = False  # a new request notifies
        self._queued = queue.count

    def _loses(self) -> bool:
        """Draw whether a wake-up is lost (splitmix64 of seed and number of the draw)."""
        if self.lost_wakeup != "probability":
            return self.lost_wakeup == "always"
        self._draws += 1
        z = (self.seed + self._draws * 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((z ^ (z >> 31)) >> 11) < self.lost_wakeup_ratio * (1 << 53)
