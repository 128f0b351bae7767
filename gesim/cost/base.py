"""What a cost model is: batch items (and length) in, compute time out."""

from __future__ import annotations

from typing import ClassVar, Protocol

__all__ = ["CostModel"]


class CostModel(Protocol):
    """Mean compute time of one batch on one device, in ns.

    Attributes
    ----------
    kind : str
        Name in scenario files: table, affine, empirical, work.
    gears : tuple of int
        Compiled batch sizes of the profile, empty where any size runs.
    lengths : tuple of int
        Compiled lengths, increasing; empty where there is no length.
    """

    kind: ClassVar[str]
    gears: tuple[int, ...]
    lengths: tuple[int, ...]

    def mean_ns(self, items: int, length: int = 0, work_ns: int = 0) -> int:
        """Mean compute time of a batch of `items` at `length`.

        Raises
        ------
        ProfileError
            For a point the profile does not have and may not extrapolate to.
        """
