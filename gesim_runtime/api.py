"""What front ends and the server say to each other: plain values, no torch, no protocol.

A front end turns bytes into an `InferRequest`, awaits `Server.infer`, and turns the
`InferResponse` or `InferError` back into bytes. Tensors stay buffers: nothing is copied that
need not be.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = [
    "DATATYPES",
    "InferError",
    "InferRequest",
    "InferResponse",
    "Server",
    "Tensor",
    "TensorSpec",
]

DATATYPES: dict[str, int] = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2,
    "INT32": 4, "INT64": 8, "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8, "BYTES": 0,
}  # fmt: skip
"""Triton's names and bytes per element; BYTES elements are length-prefixed."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A model's input or output as its configuration declares it.

    Attributes
    ----------
    datatype : str
        One of `DATATYPES`.
    shape : tuple of int
        As requests have it, with the batch dimension first where the model batches; -1 is free.
    optional : bool
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False


@dataclass(slots=True)
class Tensor:
    """A tensor of a request or response.

    Attributes
    ----------
    data : buffer
        Row-major little-endian bytes (memoryview, bytes or a numpy array's data). BYTES
        elements each come with their length in 4 bytes before them.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: Any


@dataclass(slots=True)
class InferRequest:
    """One inference request.

    Attributes
    ----------
    version : str
        Empty for the server's choice.
    outputs : sequence of str
        Wanted outputs, empty for all.
    priority : int
        0 for the model's default level.
    timeout_us : int
        Queue timeout, 0 for none.
    received_ns : int
        When its first byte was there (the loop's clock), 0 for now.
    """

    model: str
    inputs: Sequence[Tensor]
    version: str = ""
    id: str = ""
    outputs: Sequence[str] = ()
    priority: int = 0
    timeout_us: int = 0
    received_ns: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class InferResponse:
    """The answer to an `InferRequest`."""

    model: str
    version: str
    outputs: Sequence[Tensor]
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


class InferError(Exception):
    """A request that gets no result.

    Attributes
    ----------
    status : str
        ``invalid`` (the client's fault), ``not_found``, ``unavailable`` (queue full, timeout,
        not ready), ``deadline``, ``internal``, ``unsupported``. Front ends map it to a code.
    """

    def __init__(self, message: str, status: str = "invalid") -> None:
        super().__init__(message)
        self.status = status


class Server(Protocol):
    """What a front end may ask; every method may raise `InferError`. JSON shapes are Triton's."""

    def infer(self, request: InferRequest) -> Awaitable[InferResponse]:
        """Queue a request now (before the first await) and answer it."""

    def live(self) -> bool:
        """Whether the process serves."""

    def ready(self) -> bool:
        """Whether all models are ready."""

    def model_ready(self, model: str, version: str = "") -> bool:
        """Whether a model is ready; False for one that does not exist."""

    def server_metadata(self) -> dict[str, Any]:
        """Name, version, extensions."""

    def model_metadata(self, model: str, version: str = "") -> dict[str, Any]:
        """Describe inputs, outputs, versions, platform."""

    def model_config(self, model: str, version: str = "") -> dict[str, Any]:
        """Give the whole configuration as Triton's JSON (snake_case keys of ModelConfig)."""

    def inputs(self, model: str, version: str = "") -> Sequence[TensorSpec]:
        """List the declared inputs."""

    def statistics(self, model: str = "", version: str = "") -> dict[str, Any]:
        """``{"model_stats": [...]}`` with ``batch_stats``."""

    def repository_index(self, ready: bool = False) -> list[dict[str, Any]]:
        """Models of the repository and their state."""

    def load(self, model: str, parameters: Mapping[str, Any]) -> Awaitable[None]:
        """Load or reload a model."""

    def unload(self, model: str, parameters: Mapping[str, Any]) -> Awaitable[None]:
        """Unload a model after its requests are answered."""

    def trace_settings(
        self, model: str = "", update: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Read or change what is traced."""

    def slot(self, model: str, version: str, nbytes: int) -> memoryview | None:
        """Host memory of `nbytes` to receive a request's input rows into, None for no slot.

        The memory belongs to the request from then on: a `Tensor` whose data lies in it is not
        copied again where the device can take it from there.
        """
