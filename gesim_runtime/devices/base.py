"""What the service needs of a device: load a model instance, run a batch, say how it is.

Theory of operation
-------------------
`Device.load` makes a `Runner`: one model instance, with its own stream. The service calls
`Runner.run` from the event loop; it must return at once. When the batch is done the runner
calls `done` in the event loop's thread (a CPU runner through ``call_soon_threadsafe``), so that
no lock and no second wake-up is needed. Payloads are opaque to the service: what the front end
hands in comes out at the runner, one per request, in the batch's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gesim.core.request import Batch

__all__ = ["BatchError", "Device", "Done", "Executed", "Memory", "Runner"]


class BatchError(Exception):
    """A batch could not be run; its requests get this message, everybody else is unharmed.

    Attributes
    ----------
    reason : str
        One word for metrics: ``error`` (the model raised), ``oom``, ``timeout`` (the deadline
        of a run passed), ``lost`` (the device is gone), ``shape``.
    restart : bool
        The instance is unusable until it has been loaded again.
    """

    def __init__(self, message: str, reason: str = "error", *, restart: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.restart = restart


@dataclass(slots=True)
class Executed:
    """What a batch gave, and the durations the device measured (ns).

    Attributes
    ----------
    results : sequence
        One per request, in the batch's order.
    host_ns, input_ns, compute_ns, output_ns : int
        Launch, copy in, run, copy out; 0 where the device cannot tell them apart.
    """

    results: Sequence[Any] = field(default_factory=tuple)
    host_ns: int = 0
    input_ns: int = 0
    compute_ns: int = 0
    output_ns: int = 0


Done = Callable[[Executed | BatchError], None]


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a device in bytes; 0 where it cannot be known."""

    total_bytes: int = 0
    free_bytes: int = 0
    allocated_bytes: int = 0


class Runner(Protocol):
    """One loaded model instance."""

    def run(self, batch: Batch, payloads: Sequence[Any], done: Done) -> None:
        """Start a batch and return at once; `done` is called later, in the loop's thread."""

    async def close(self) -> None:
        """Free the instance; a running batch is finished first."""


class Device(Protocol):
    """A device that models are loaded on.

    Attributes
    ----------
    name : str
        As scenarios and metrics name it.
    kind : str
        cpu, cuda, npu, emulated or virtual.
    """

    name: str
    kind: str

    async def load(self, model: Any, instance: int) -> Runner:
        """Load one instance of a model.

        Raises
        ------
        BatchError
            If it cannot be loaded (``oom``, ``lost``, ``error``).
        """

    def memory(self) -> Memory:
        """Memory now."""

    def healthy(self) -> bool:
        """Whether the device answers."""

    async def close(self) -> None:
        """Free everything."""
