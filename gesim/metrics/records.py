"""The record of a run: one row a request, one row a batch, in numpy columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gesim.metrics.curves import Curves
    from gesim.metrics.stream import Stream

__all__ = ["Facts", "Records"]

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Facts:
    """What a summary needs to know about the run besides its records.

    Attributes
    ----------
    models, devices : tuple of str
        Names by index.
    instances : tuple of (int, int)
        (model, device) of every instance, all models' instances in turn.
    receive_ns, respond_ns : int
    slo_ns : tuple of int
        Latency target by model, 0 for none; a request's own deadline goes first.
    warmup_ratio : float
        Share of the requests, by arrival, that is cut; or
    warmup_ns : int
        the time that is cut.
    duration_ns : int
        Of the scenario, 0 where arrivals end by number.
    levels : int
    streams : tuple of int
        Batches that each device runs at once; where not given, as many as it has instances.
    """

    models: tuple[str, ...]
    devices: tuple[str, ...]
    instances: tuple[tuple[int, int], ...]
    receive_ns: int = 0
    respond_ns: int = 0
    slo_ns: tuple[int, ...] = ()
    warmup_ratio: float = 0.05
    warmup_ns: int = 0
    duration_ns: int = 0
    levels: int = 1
    streams: tuple[int, ...] = ()

    def capacity(self) -> list[int]:
        """Batches that each device can run at once: bounded by streams and by instances."""
        held = [sum(d == i for _, d in self.instances) for i in range(len(self.devices))]
        streams = self.streams or held
        return [max(1, min(have, run)) for have, run in zip(held, streams, strict=True)]

    def instance_names(self) -> list[str]:
        """Name every instance by model, device and number."""
        return [
            f"{self.models[m]}.{self.devices[d]}.{i}" for i, (m, d) in enumerate(self.instances)
        ]


@dataclass
class Records:
    """Columns by request id and by batch id.

    Attributes
    ----------
    model, level, items, length : array
    arrival_ns, deadline_ns : array
        Absolute times.
    start_ns, finish_ns : array
        Of the request's batch; for a request without an answer both are the time it left.
        `finish_ns` is on the device: the client has it `respond_ns` later.
    batch : array
        Batch id, -1 for none.
    outcome : array
        `gesim.core.request.Outcome`.
    reason : array
        Index into `reasons`, 0 for none.
    batch_model, batch_instance, batch_device, batch_count, batch_items, batch_gear,
    batch_length, batch_start_ns, host_ns, input_ns, compute_ns, output_ns, batch_finish_ns : array
        In order of start. `batch_instance` counts the instances of all models in turn.
    reasons : list of str
        Why requests were lost, by code.
    interrupted_ns : int
        When the run was stopped before its end, 0 if it was not.
    stream : Stream, optional
        Set when the run was longer than the recorder's bound: the columns then hold its
        beginning only, and the summary is that of the stream.
    curves : Curves, optional
        What figures need of a streamed run; stored with its result, unlike the stream.
    """

    model: Int
    level: Int
    items: Int
    length: Int
    arrival_ns: Int
    deadline_ns: Int
    start_ns: Int
    finish_ns: Int
    batch: Int
    outcome: Int
    reason: Int
    batch_model: Int
    batch_instance: Int
    batch_device: Int
    batch_count: Int
    batch_items: Int
    batch_gear: Int
    batch_length: Int
    batch_start_ns: Int
    host_ns: Int
    input_ns: Int
    compute_ns: Int
    output_ns: Int
    batch_finish_ns: Int
    reasons: list[str] = field(default_factory=lambda: [""])
    interrupted_ns: int = 0
    stream: Stream | None = None
    curves: Curves | None = None

    def __len__(self) -> int:
        return len(self.arrival_ns)

    REQUEST_COLUMNS = (
        "model", "level", "items", "length", "arrival_ns", "deadline_ns", "start_ns", "finish_ns",
        "batch", "outcome", "reason",
    )  # fmt: skip
    BATCH_COLUMNS = (
        "batch_model", "batch_instance", "batch_device", "batch_count", "batch_items",
        "batch_gear", "batch_length", "batch_start_ns", "host_ns", "input_ns", "compute_ns",
        "output_ns", "batch_finish_ns",
    )  # fmt: skip
