"""Requests that wait too long leave, or let others pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gesim.core.decisions import ADMIT, Admit
from gesim.core.policy import AdmissionPolicy, QueueView
from gesim.core.request import Request
from gesim.errors import PolicyError
from gesim.policies.checks import at_least

__all__ = ["QueueTimeout"]


@dataclass
class QueueTimeout(AdmissionPolicy):
    """Admit, but only for so long: after `timeout_ns` in the queue a request expires.

    A request that waits exactly its timeout is still served. Checked against impatience
    (A10) and timeouts before greedy batches (C14).

    Parameters
    ----------
    timeout_ns : int
        Longest wait; 0 for none of its own (then only `override` requests expire).
    action : {"reject", "delay"}
        reject: it leaves. delay: it moves behind all unexpired requests of its level, once,
        and can starve there (Triton's DELAY).
    expiry : {"eager", "lazy"}
        eager: at the exact time. lazy: only when a forming batch meets it, as in Triton, so
        a rejection can come long after the timeout.
    override : {"never", "shorter", "always"}
        Whether a request's own timeout counts: never; if shorter than `timeout_ns` (Triton's
        `allow_timeout_override`, which ignores it where `timeout_ns` is 0); or always.
    """

    name: ClassVar[str] = "queue_timeout"

    timeout_ns: int
    action: Literal["reject", "delay"] = "reject"
    expiry: Literal["eager", "lazy"] = "eager"
    override: Literal["never", "shorter", "always"] = "never"

    def __post_init__(self) -> None:
        at_least("queue_timeout", "timeout", self.timeout_ns, 0)
        if self.timeout_ns == 0 and self.override == "never":
            raise PolicyError("queue_timeout: timeout 0 and override never: nothing ever expires")

    def admit(self, now_ns: int, request: Request, queue: QueueView) -> Admit:
        """Admit until the timeout that counts for this request."""
        timeout_ns = self.timeout_ns
        own_ns = request.timeout_ns
        shorter = self.override == "shorter" and own_ns < timeout_ns
        if own_ns > 0 and (shorter or self.override == "always"):
            timeout_ns = own_ns
        if timeout_ns == 0:
            return ADMIT
        return Admit(now_ns + timeout_ns, self.action == "delay", self.expiry == "lazy")
