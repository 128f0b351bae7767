"""Where a driver puts what happened. Recorders and histograms implement it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gesim.core.request import Batch, Request

if TYPE_CHECKING:
    from gesim.workload.base import Chunk

__all__ = ["Sink"]


class Sink(Protocol):
    """Receives arrivals, finished batches and requests that left without an answer.

    Requests are numbered from 0 in the order of `arrivals`; batches and lost requests refer
    to them by id.
    """

    def arrivals(self, chunk: Chunk) -> None:
        """Take the next arrivals; their ids follow those of the chunk before."""

    def batch(self, batch: Batch) -> None:
        """Take a finished batch; its requests and times are complete."""

    def gone(self, request: Request) -> None:
        """Take a request that was rejected, expired, dropped, failed or left unfinished."""
