"""Requests that bring their own service time."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["Work"]


class Work:
    """``setup`` plus the sum of the requests' own work: queueing theory's jobs.

    Parameters
    ----------
    setup_ns : int
    gears : tuple of int
        Compiled batch sizes; empty for any.
    """

    kind: ClassVar[str] = "work"
    lengths: tuple[int, ...] = ()

    def __init__(self, setup_ns: int = 0, *, gears: tuple[int, ...] = ()) -> None:
        self.setup_ns = setup_ns
        self.gears = gears

    def mean_ns(self, items: int, length: int = 0, work_ns: int = 0) -> int:
        """Time of a batch whose requests bring `work_ns` together."""
        return self.setup_ns + work_ns
