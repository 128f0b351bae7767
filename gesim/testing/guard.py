"""Stand-ins that let a policy see its view and nothing else, and watch what it does."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from gesim.core.decisions import Admit, Dispatch, Drop, Reject, Wait
from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy, QueueView
from gesim.core.request import Request
from gesim.errors import ContractError

__all__ = [
    "EndlessError",
    "GuardedAdmission",
    "GuardedBatching",
    "GuardedOrdering",
    "HiddenError",
    "StrictView",
    "UnsteadyError",
]

LINES_MAX = 100_000
"""Lines of Python that one answer may take while it is traced."""

_TWIN_EVERY = 16

VIEW = tuple(name for name in vars(QueueView) if not name.startswith("_"))
"""What a policy may ask of its queue."""

_ASKED = (
    "id", "model", "arrival_ns", "enqueue_ns", "level", "items", "length", "deadline_ns",
    "timeout_ns", "client",
)  # fmt: skip
"""What a policy may ask of a request. Its own work is not among them: no server knows it."""


class HiddenError(ContractError):
    """A policy looked at, or changed, something that it cannot see."""


class UnsteadyError(ContractError):
    """A policy gave two answers to one question."""


class EndlessError(ContractError):
    """A policy does not come to an answer."""


class StrictView:
    """A queue as policies may see it: no other names, and nothing to write."""

    __slots__ = ("__queue",)

    def __init__(self, queue: QueueView) -> None:
        object.__setattr__(self, "_StrictView__queue", queue)

    def __getattr__(self, name: str) -> Any:
        if name in VIEW:
            return getattr(object.__getattribute__(self, "_StrictView__queue"), name)
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise HiddenError(f"reads queue.{name}, which is not in QueueView ({', '.join(VIEW)})")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise HiddenError(f"sets queue.{name}; a policy answers, it never changes the queue")

    def __deepcopy__(self, memo: dict[int, object]) -> StrictView:
        return self  # a policy that keeps the view keeps this one


class _StrictRequest:
    """A request as policies may see it."""

    __slots__ = ("__request",)

    def __init__(self, request: Request) -> None:
        object.__setattr__(self, "_StrictRequest__request", request)

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED:
            return getattr(object.__getattribute__(self, "_StrictRequest__request"), name)
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise HiddenError(f"reads request.{name}; policies may ask for {', '.join(_ASKED)}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise HiddenError(f"sets request.{name}; a policy answers, it never changes a request")

    def __deepcopy__(self, memo: dict[int, object]) -> _StrictRequest:
        return self


class _Guard:
    """Asks the real policy; now and then asks a copy of it too, and compares."""

    def __init__(self, policy: Any, traced: bool) -> None:
        self.policy = policy
        self.traced = traced
        self.asked = 0

    def ask(self, method: str, *args: Any) -> Any:
        self.asked += 1
        twin = None
        if self.asked % _TWIN_EVERY == 1:
            twin = _copied(self.policy)
        call = getattr(self.policy, method)
        try:
            answer = _counted(call, args) if self.traced else call(*args)
        except SystemExit as error:
            raise ContractError(f"{method} tried to end the program: {error!r}") from error
        if twin is not None:
            again = getattr(twin, method)(*args)
            if again != answer:
                raise UnsteadyError(
                    f"{method} answered {answer!r}, and a copy of the policy {again!r} to the same "
                    "question: it must depend on its fields and arguments alone"
                )
        return answer


def _copied(policy: Any) -> Any:
    try:
        return copy.deepcopy(policy)
    except Exception as error:
        raise UnsteadyError(
            f"cannot be copied ({error}): state must be plain values, so that a run can be "
            "repeated and compiled"
        ) from error


def _counted(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call, giving up after `LINES_MAX` lines of Python."""
    left = LINES_MAX
    before = sys.gettrace()

    def on_event(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            raise EndlessError(f"gives no answer within {LINES_MAX} lines of Python ({place})")
        return on_event

    sys.settrace(on_event)
    try:
        return call(*args)
    finally:
        sys.settrace(before)


class GuardedBatching(BatchingPolicy):
    """A batching policy behind a strict view."""

    def __init__(self, policy: BatchingPolicy, traced: bool = False) -> None:
        self._guard = _Guard(policy, traced)
        self.name = policy.name or type(policy).__name__  # type: ignore[misc]
        self.eager = policy.eager  # type: ignore[misc]
        self.work_conserving = policy.work_conserving  # type: ignore[misc]
        self.max_batch_size = policy.max_batch_size

    def decide(self, now_ns: int, queue: QueueView) -> Dispatch | Wait | Drop:
        """Ask the policy."""
        answer: Dispatch | Wait | Drop = self._guard.ask("decide", now_ns, StrictView(queue))
        return answer

    def observe(self, now_ns: int, count: int, gear: int, exec_ns: int) -> None:
        """Tell the policy."""
        self._guard.policy.observe(now_ns, count, gear, exec_ns)


class GuardedOrdering(OrderingPolicy):
    """An ordering policy that sees only the public fields of requests."""

    def __init__(self, policy: OrderingPolicy, traced: bool = False) -> None:
        self._guard = _Guard(policy, traced)
        self._keys: dict[int, int] = {}
        self.name = policy.name or type(policy).__name__  # type: ignore[misc]
        self.by_level = policy.by_level  # type: ignore[misc]

    def key(self, request: Request) -> int:
        """Ask the policy."""
        key = self._guard.ask("key", _StrictRequest(request))
        if type(key) is not int:
            raise ContractError(f"answered {key!r} for {request!r}; a key is an int")
        if self.by_level and self._keys.setdefault(request.level, key) != key:
            raise ContractError(
                f"promises by_level, but level {request.level} got the keys "
                f"{self._keys[request.level]} and {key}"
            )
        return key


class GuardedAdmission(AdmissionPolicy):
    """An admission policy behind strict views of request and queue."""

    def __init__(self, policy: AdmissionPolicy, traced: bool = False) -> None:
        self._guard = _Guard(policy, traced)
        self.name = policy.name or type(policy).__name__  # type: ignore[misc]
        self.admitted = 0

    def admit(self, now_ns: int, request: Request, queue: QueueView) -> Admit | Reject:
        """Ask the policy."""
        view: Any = _StrictRequest(request)
        answer: Admit | Reject = self._guard.ask("admit", now_ns, view, StrictView(queue))
        if type(answer) is Reject and not (type(answer.reason) is str and answer.reason):
            raise ContractError(f"answered {answer!r}; a rejection needs a reason")
        if type(answer) is Admit:
            self.admitted += 1
            if type(answer.expires_ns) is int and answer.expires_ns < now_ns:
                raise ContractError(f"answered {answer!r} at {now_ns} ns: expired already; Reject")
        return answer
