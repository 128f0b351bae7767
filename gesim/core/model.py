"""One model in the scheduler: its configuration and its run-time state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gesim.core.decisions import NEVER_NS, Admit, Dispatch, Drop, Reject, Wait
from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy, QueueView
from gesim.core.queue import RequestQueue
from gesim.core.request import Request

__all__ = ["AdmitCall", "Decide", "Model", "ModelConfig"]

Decide = Callable[[int, QueueView], Dispatch | Wait | Drop]
AdmitCall = Callable[[int, Request, QueueView], Admit | Reject]


@dataclass(frozen=True)
class ModelConfig:
    """What the scheduler needs to know about one model.

    Parameters
    ----------
    name : str
        For messages.
    batching, ordering : policy
        Own instances for this model: they keep state.
    devices : tuple of int
        Device index of each instance, in instance order.
    service_ns : callable
        ``items -> int``: the profile's mean batch time, for policies that ask.
    admission : sequence of AdmissionPolicy
        Asked in turn; the first rejection counts, the earliest expiry counts.
    gears : tuple of int
        Compiled batch sizes, increasing. Empty: any size up to the policy's max_batch_size.
    lengths : bool
        Whether requests have lengths that batches are padded to.
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
    lengths: bool = False
    queue_bound: int = 1_000_000


class Model:
    """Run-time state of one model. Belongs to the scheduler; drivers only read `queue`.

    Attributes
    ----------
    dirty : bool
        A decision point was reached and not yet answered.
    wait_until_ns, wait_count : int
        The live `Wait`: ask at this time, or once this many items are queued.
    """

    __slots__ = (
        "admission", "config", "decide", "dirty", "eager", "expiry", "free", "free_since_ns",
        "index", "key", "lazy", "limit", "observe", "plain", "queue", "wait_count",
        "wait_until_ns",
    )  # fmt: skip

    def __init__(self, index: int, config: ModelConfig) -> None:
        self.index = index
        self.config = config
        self.queue = RequestQueue(config.gears, len(config.devices), config.service_ns)
        self.decide: Decide = config.batching.decide
        self.eager = config.batching.eager
        self.key = config.ordering.key
        self.admission: tuple[AdmitCall, ...] = tuple(p.admit for p in config.admission)
        observed = type(config.batching).observe is not BatchingPolicy.observe
        self.observe = config.batching.observe if observed else None
        # Arrivals of one level need nothing but a place in the queue.
        self.plain = config.ordering.by_level and not config.admission and not self.eager
        limit = config.batching.max_batch_size
        self.limit = min(limit, config.gears[-1]) if config.gears else limit
        self.free = list(range(len(config.devices)))  # heap of free instances
        self.free_since_ns = [0] * len(config.devices)
        self.expiry: list[tuple[int, int, Request]] = []  # heap of eager timeouts
        self.lazy = False  # some queued request has a lazy timeout
        self.dirty = False
        self.wait_until_ns = NEVER_NS
        self.wait_count = 0

    def blame(
        self,
        now_ns: int,
        problem: str,
        kind: Literal["batching", "ordering", "admission"] = "batching",
    ) -> str:
        """Word an error about one of the model's policies."""
        policies: Sequence[BatchingPolicy | OrderingPolicy | AdmissionPolicy]
        if kind == "admission":
            policies = self.config.admission
        else:
            policies = [self.config.batching if kind == "batching" else self.config.ordering]
        name = ", ".join(policy.name or type(policy).__name__ for policy in policies)
        return (
            f"{kind} policy {name!r} of model {self.config.name!r} {problem} (at {now_ns} ns with "
            f"{self.queue.count} queued and {self.queue.idle_instances} free instances)"
        )
