"""Requests, batches and what became of them: the values that cross the core's border."""

from __future__ import annotations

from enum import IntEnum

from gesim.core.decisions import NEVER_NS

__all__ = ["Batch", "Outcome", "Request"]


class Outcome(IntEnum):
    """What became of a request. Only `OK` was answered with a result."""

    PENDING = 0
    OK = 1
    REJECTED = 2
    """Turned away on arrival by admission, or by the queue's hard bound."""
    EXPIRED = 3
    """Waited longer than its timeout."""
    DROPPED = 4
    """Given up by the batching policy."""
    UNFINISHED = 5
    """Still queued or running when the run ended."""
    FAILED = 6
    """The device failed while it ran."""


_PENDING = Outcome.PENDING  # looking a member up in its enum costs as much as the rest


class Request:
    """One inference request, from arrival to outcome. Mutable: the core fills in the times.

    Parameters
    ----------
    id : int
        Unique and increasing with arrival; the last tie-breaker everywhere.
    model : int
        Index of the model in the scheduler.
    arrival_ns : int
        When the client sent it (the latency clock starts here).
    enqueue_ns : int
        When it reached the queue: arrival plus the front end's receive time.
    level : int, default 1
        Priority level, 1 is the most urgent.
    items : int, default 1
        Rows it adds to a batch (Triton's batch size of the request).
    length : int, default 0
        Sequence length or another size class of the profile; 0 where the profile has none.
    deadline_ns : int, default NEVER_NS
        Absolute time by which the answer is useful (SLO); it never changes what the core does
        unless a policy looks at it.
    timeout_ns : int, default 0
        The request's own queue timeout, 0 for none.
    work_ns : int, default 0
        Its own service time, for cost models of kind `work`.
    client : int, default -1
        Closed-loop client that waits for the answer, -1 for none.
    """

    __slots__ = (
        "arrival_ns", "client", "deadline_ns", "enqueue_ns", "expires_ns", "finish_ns", "id",
        "items", "key", "length", "level", "model", "outcome", "reason", "timeout_ns", "work_ns",
    )  # fmt: skip

    # Set when they have a meaning: by admission, and when a request leaves without being run.
    expires_ns: int
    reason: str
    finish_ns: int

    def __init__(
        self,
        id: int,
        model: int,
        arrival_ns: int,
        enqueue_ns: int,
        level: int = 1,
        items: int = 1,
        length: int = 0,
        deadline_ns: int = NEVER_NS,
        timeout_ns: int = 0,
        work_ns: int = 0,
        client: int = -1,
    ) -> None:
        self.id = id
        self.model = model
        self.arrival_ns = arrival_ns
        self.enqueue_ns = enqueue_ns
        self.level = level
        self.items = items
        self.length = length
        self.deadline_ns = deadline_ns
        self.timeout_ns = timeout_ns
        self.work_ns = work_ns
        self.client = client
        self.key = 0
        self.outcome = _PENDING

    def __repr__(self) -> str:
        return (
            f"Request(id={self.id}, model={self.model}, level={self.level}, items={self.items}, "
            f"enqueue_ns={self.enqueue_ns}, outcome={self.outcome.name})"
        )


class Batch:
    """Requests that run together on one instance.

    The core fills in what it decides; the driver fills in the four durations (all in ns) when
    it starts the batch, so that records can split a latency into its parts.
    """

    __slots__ = (
        "compute_ns", "device", "finish_ns", "gear", "host_ns", "id", "input_ns", "instance",
        "items", "length", "model", "output_ns", "requests", "start_ns",
    )  # fmt: skip

    def __init__(
        self,
        id: int,
        model: int,
        instance: int,
        device: int,
        requests: list[Request],
        items: int,
        gear: int,
        length: int,
        start_ns: int,
    ) -> None:
        self.id = id
        self.model = model
        self.instance = instance
        self.device = device
        self.requests = requests
        self.items = items
        self.gear = gear
        self.length = length
        self.start_ns = start_ns
        self.host_ns = 0
        self.input_ns = 0
        self.compute_ns = 0
        self.output_ns = 0
        self.finish_ns = 0

    def __repr__(self) -> str:
        return (
            f"Batch(id={self.id}, model={self.model}, instance={self.instance}, "
            f"requests={len(self.requests)}, items={self.items}, gear={self.gear}, "
            f"start_ns={self.start_ns})"
        )
