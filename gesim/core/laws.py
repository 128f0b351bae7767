"""The numbered invariants, in one sentence each."""

from __future__ import annotations

from gesim.errors import ContractError, GesimError, InternalError

__all__ = ["LAWS", "breach"]

LAWS: dict[str, tuple[str, str]] = {
    "I1": (
        "conservation",
        "Every request that came is queued, running, answered, or gone; none is lost or made up.",
    ),
    "I2": (
        "causality",
        "Time never goes back; a request is sent, queued, started and finished in this order.",
    ),
    "I3": (
        "exclusivity",
        "An instance runs one batch at a time, a device at most `streams`, and the view's "
        "idle_instances counts what is left.",
    ),
    "I4": (
        "work conservation",
        "A policy that promises it never leaves work queued while an instance is free.",
    ),
    "I5": (
        "bounds and view",
        "No queue exceeds its bound, and the view's count, items, head, oldest and level counts "
        "are those of the requests queued.",
    ),
    "I6": (
        "order",
        "Lower keys go first, inside a key unexpired before delayed, each in order of arrival; "
        "a dispatch by level keeps the order inside the level.",
    ),
    "I7": (
        "legal batches",
        "A batch is what the policy asked for: so many requests, of one model, at most "
        "max_batch_size items (or one request), in a compiled gear that holds them.",
    ),
    "I8": (
        "wake-ups",
        "wake_ns lies in the future and not after the first timer that can matter; no model has "
        "queued work and a free instance without a live Wait.",
    ),
    "I9": (
        "once",
        "A request has exactly one end: answered, rejected, expired, dropped, or failed.",
    ),
    "I10": (
        "Little's law",
        "The integral of the number in system equals the sum of the times in it, to the ns.",
    ),
    "I11": (
        "timeouts",
        "No request starts after its timeout unless it was delayed; an eager timeout takes effect "
        "1 ns after it, a lazy one never before.",
    ),
}
"""Number to name and statement. docs/invariants.md says how each is checked and why."""


def breach(number: str, what: str, where: str = "") -> GesimError:
    """Make the error for a broken law: the policy's fault for I4, else gesim's own."""
    name, statement = LAWS[number]
    at = f" (model {where!r})" if where else ""
    text = f"invariant {number}, {name}: {what}{at}. The law: {statement}"
    return ContractError(text) if number == "I4" else InternalError(text)
