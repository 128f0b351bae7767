"""What a workload is to a driver: chunks of arrivals, or clients that wait for answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chunk", "ClosedLoop", "OpenLoop", "Served", "Workload"]

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Chunk:
    """Arrivals in time order, one array per attribute, all of one length and int64.

    Attributes
    ----------
    arrival_ns : array
        Never decreasing, also from chunk to chunk.
    model, level, items, length : array
        As in `gesim.core.request.Request`.
    deadline_ns : array
        Absolute, ``NEVER_NS`` for none.
    timeout_ns, work_ns : array
        0 for none.
    """

    arrival_ns: Int
    model: Int
    level: Int
    items: Int
    length: Int
    deadline_ns: Int
    timeout_ns: Int
    work_ns: Int

    def __len__(self) -> int:
        return len(self.arrival_ns)


class OpenLoop(Protocol):
    """Arrivals that do not depend on answers."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the arrivals in chunks of bounded size, always the same for the same seed."""


class ClosedLoop(Protocol):
    """A fixed number of clients, each with at most one request under way."""

    def start(self) -> Chunk:
        """Return the first request of every client; row i belongs to client i."""

    def again(self, client: int, answered_ns: int) -> Chunk | None:
        """Return the client's next request (one row, at or after `answered_ns`), None to stop.

        Called in the order in which answers reach clients.
        """


Workload = OpenLoop | ClosedLoop


@dataclass(frozen=True)
class Served:
    """A model that requests of a trace may ask for.

    Attributes
    ----------
    name : str
    levels : int
        Its priority levels.
    longest : int
        Its longest length; 0 if it has no lengths.
    """

    name: str
    levels: int = 1
    longest: int = 0
