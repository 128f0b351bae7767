"""A set-up time and a time per item."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["Affine"]


class Affine:
    """``setup + per_item * items``: the textbook model, and a poor fit of real cards.

    Parameters
    ----------
    setup_ns, per_item_ns : int
    gears : tuple of int
        Compiled batch sizes; empty for any.
    """

    kind: ClassVar[str] = "affine"
    lengths: tuple[int, ...] = ()

    def __init__(self, setup_ns: int, per_item_ns: int, *, gears: tuple[int, ...] = ()) -> None:
        self.setup_ns = setup_ns
        self.per_item_ns = per_item_ns
        self.gears = gears

    def mean_ns(self, items: int, length: int = 0, work_ns: int = 0) -> int:
        """Mean compute time of a batch."""
        return self.setup_ns + self.per_item_ns * items
