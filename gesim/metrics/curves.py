"""What figures need of a streamed run, as a few small arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.metrics.histogram import middle
from gesim.metrics.stream import Stream

__all__ = ["Curves", "curves_of"]

Int = NDArray[np.int64]
Float = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """Histograms and series of a whole run, warm-up included.

    Attributes
    ----------
    requests : int
        That left, however they did.
    latency_ns, latency_count : array, (buckets,)
        Latencies of the answered requests, increasing, and how many of each.
    parts_ns : array, (buckets, part)
        Mean queue, host, transfer and compute time of the requests with that latency.
    time_ns, queue, answered_rps : array, (bins,)
        Start of each time bin, mean queue length and answers a second in it.
    batch_items, batch_count : array, (sizes,)
        Batches by size.
    """

    requests: int
    latency_ns: Float
    latency_count: Int
    parts_ns: Float
    time_ns: Int
    queue: Float
    answered_rps: Float
    batch_items: Int
    batch_count: Int

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays, to be stored."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Curves:
        """Undo `arrays`."""
        found: dict[str, Any] = {field.name: arrays[field.name] for field in fields(Curves)}
        return Curves(**{**found, "requests": int(arrays["requests"])})

    def save(self, file: Path) -> None:
        """Write an .npz file."""
        arrays: dict[str, Any] = self.arrays()
        with file.open("wb") as out:
            np.savez_compressed(out, **arrays)

    @staticmethod
    def load(file: Path) -> Curves:
        """Read what `save` wrote."""
        with np.load(file, allow_pickle=False) as arrays:
            return Curves.from_arrays(arrays)


def curves_of(stream: Stream) -> Curves:
    """Take the curves of a stream."""
    groups = list(range(stream.groups))
    blocks, bins = stream.blocks, stream.bins
    used = range(-(-stream.requests // blocks.size))
    counts = np.sum([blocks.dense(block, groups, 0) for block in used], axis=0)
    bucket = np.flatnonzero(counts)
    width_s = bins.width_ns / 1e9
    shown = slice(0, stream.last_ns // bins.width_ns + 1)
    sizes = blocks.batch_counts(used, list(range(blocks.models)), False)
    items = sorted(sizes)
    return Curves(
        requests=stream.requests,
        latency_ns=middle(bucket),
        latency_count=counts[bucket],
        parts_ns=stream.by_latency_ns[bucket, 1:] / counts[bucket, None],
        time_ns=np.arange(len(bins.series["left"].count))[shown] * bins.width_ns,
        queue=bins.areas("entered", "left")[shown].sum(axis=1) / bins.width_ns,
        answered_rps=bins.series["answered"].count[shown].sum(axis=1) / width_s,
        batch_items=np.asarray(items, np.int64),
        batch_count=np.asarray([sizes[size] for size in items], np.int64),
    )
