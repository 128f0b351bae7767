"""Where a driver puts what happened. Recorders and histograms implement it."""

from __future__ import annotations

from typing import Protocol

from gesim.core.request import Batch, Request

__all__ = ["Sink"]


class Sink(Protocol):
    """Receives every finished batch and every request that left without an answer."""

    def batch(self, batch: Batch) -> None:
        """Take a finished batch; its requests and times are complete."""

    def gone(self, request: Request) -> None:
        """Take a request that was rejected, expired, dropped, failed or left unfinished."""
