"""The record of a run: one row a request, one row a batch, in numpy columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
        By batch id. `batch_instance` counts the instances of all models in turn.
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
