"""Columns of the requests that wait or are still to arrive, sorted into lanes.

The kernel's theory of operation (`gesim.sim.fast.kernel`) says what the cursors mean. Between
two calls what is left of every lane moves to the front and the next arrivals are put behind it;
two sets of arrays take turns, so nothing is allocated once they are large enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.sim.fast.compiled import Flags

__all__ = ["NO_ARRIVALS", "Arrivals", "Lanes"]

Int = NDArray[np.int64]

Arrivals = dict[str, Int]
"""By column: times (of enqueueing), and levels, work, due where the kernel needs them."""

NO_ARRIVALS: Arrivals = dict.fromkeys(("times", "levels", "work", "due"), np.zeros(0, np.int64))


class Lanes:
    """The columns and their cursors.

    Parameters
    ----------
    flags : Flags
    lane_of_level : tuple of int
        Lane by level, from level 1.

    Attributes
    ----------
    columns : dict of str to array
        See `Arrivals`; a column that the kernel does not need has one row.
    start, head, tail, read, end : array
        Cursors by lane. With ``flags.PLAIN`` all of these are lists: plain Python is several
        times faster on them.
    """

    def __init__(self, flags: Flags, lane_of_level: tuple[int, ...]) -> None:
        self._lane_of_level = np.asarray(lane_of_level, np.int64)
        self._lanes = flags.LANES
        self._plain = flags.PLAIN
        self._fed = 0
        self._count = np.arange(0)
        self._used = ["times", "ids"]
        self._used += ["levels"] if flags.LEVELLED else []
        self._used += ["work"] if flags.WORK else []
        self._used += ["due"] if flags.DUE else []
        unused = np.zeros(1, np.int64)
        self._sets = [
            {
                name: np.zeros(0, np.int64) if name in self._used else unused
                for name in ("ids", *NO_ARRIVALS)
            }
            for _ in range(2)
        ]
        self.columns: dict[str, Any] = self._sets[0]
        self.start, self.head, self.tail, self.read, self.end = (self._cursor() for _ in range(5))

    def _cursor(self) -> Any:
        return [0] * self._lanes if self._plain else np.zeros(self._lanes, np.int64)

    @property
    def size(self) -> int:
        """Rows in use."""
        return int(self.end[-1])

    def append(self, arrivals: Arrivals) -> None:
        """Put the next arrivals behind what is left of every lane."""
        if self._plain:
            old = {k: np.asarray(v, np.int64) for k, v in self.columns.items()}
            new = self._sets[0]
        else:
            old, new = self._sets
            self._sets.reverse()
        n = len(arrivals["times"])
        need = self.size + n
        if len(self._count) < n:
            self._count = np.arange(n + n // 4)
        if len(new["times"]) < need:
            for name in self._used:
                new[name] = np.empty(need + need // 4, np.int64)
        of = self._lane_of_level[arrivals["levels"] - 1] if self._lanes > 1 else None
        at = 0
        for lane in range(self._lanes):
            mine = None if of is None else np.flatnonzero(of == lane)
            head, tail, read, end = (
                int(cursor[lane]) for cursor in (self.head, self.tail, self.read, self.end)
            )
            waiting, coming = at + tail - head, at + tail - head + end - read
            fresh = n if mine is None else len(mine)
            which = self._count[:n] if mine is None else mine
            np.add(which, self._fed, out=new["ids"][coming : coming + fresh])
            for name in self._used:
                to, source = new[name], old[name]
                to[at:waiting] = source[head:tail]
                to[waiting:coming] = source[read:end]
                if name == "ids":
                    continue
                if mine is None:
                    to[coming : coming + fresh] = arrivals[name]
                else:
                    np.take(arrivals[name], mine, out=to[coming : coming + fresh])
            self.start[lane] = self.head[lane] = at
            self.tail[lane] = self.read[lane] = waiting
            self.end[lane] = at = coming + fresh
        self._fed += n
        self.columns = {k: v[:need].tolist() for k, v in new.items()} if self._plain else new

    def waiting(self) -> Arrivals:
        """Return the rows that are queued."""
        pieces = list(zip(self.head, self.tail, strict=True))
        return {
            name: np.concatenate([np.asarray(self.columns[name][h:t], np.int64) for h, t in pieces])
            for name in self._used
        } | {"lane": np.repeat(np.arange(self._lanes), [int(t - h) for h, t in pieces])}

    def oldest_id(self) -> int | None:
        """Lowest id of those that wait or are still to arrive."""
        ids = self.columns["ids"]
        cursors = zip(self.head, self.tail, self.read, self.end, strict=True)
        first = [
            int(ids[at])
            for head, tail, read, end in cursors
            for at, stop in ((head, tail), (read, end))
            if at < stop
        ]
        return min(first, default=None)
