"""What a policy may answer. Decisions are values; the core checks them and carries them out.

Theory of operation
-------------------
A policy never acts. It looks at a view and returns one of the tuples below. The scheduler
checks that the answer is legal (`gesim.core.scheduler`), applies it, and either asks again
(after a `Drop`, or while another instance is free) or remembers the `Wait`.

    batching   Dispatch | Wait | Drop        asked when an instance is free and work is queued
    admission  Admit | Reject                asked once per arrival
    ordering   an int (lower goes first)     asked once per arrival

All times are integer nanoseconds. `NEVER_NS` stands for "no such time".
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ADMIT", "NEVER_NS", "Admit", "Dispatch", "Drop", "Reject", "Wait"]

NEVER_NS: int = 1 << 62
"""Later than any event: 146 years. Small enough that sums of two stay inside int64."""


class Dispatch(NamedTuple):
    """Start a batch now.

    Parameters
    ----------
    count : int
        Requests to take, from the head of the queue, ``1 <= count <= queue.count``.
    gear : int, default 0
        Compiled batch size to pad to, in items. 0 lets the core take the smallest gear that
        holds the items (or exactly the items where the model runs any size).
    level : int, default 0
        0 takes in queue order. A priority level takes only requests of that level, oldest
        first.
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    gear: int = 0
    level: int = 0


class Wait(NamedTuple):
    """Ask again later. Only the latest ``Wait`` of a model is live.

    Parameters
    ----------
    until_ns : int
        Ask again at this time (``NEVER_NS`` for no timer); must lie in the future unless
        `count` exceeds what is queued.
    count : int
        Ask again as soon as at least this many items are queued.
    """

    until_ns: int
    count: int = NEVER_NS  # type: ignore[assignment]


class Drop(NamedTuple):
    """Give up the `count` requests at the head of the queue, with a reason for the records."""

    count: int  # type: ignore[assignment]
    reason: str = "dropped"


class Admit(NamedTuple):
    """Let the request in.

    Parameters
    ----------
    expires_ns : int, default NEVER_NS
        Last instant at which the request may still start. It is served when it waits exactly
        that long and expires 1 ns later.
    delay : bool, default False
        What expiry does: False rejects; True moves the request behind all unexpired requests
        of its level, once, without a second deadline (Triton's DELAY).
    lazy : bool, default False
        False expires at the exact time. True tests only when a batch is being formed
        (Triton's behaviour, edge case G).
    """

    expires_ns: int = NEVER_NS
    delay: bool = False
    lazy: bool = False


class Reject(NamedTuple):
    """Turn the request away, with a reason for the records (`queue_full`, ...)."""

    reason: str


ADMIT = Admit()
