"""What requests ask for: kinds drawn by weight, attributes by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.laws import Draws, Law
from gesim.rng import stream
from gesim.workload.base import Chunk

__all__ = ["Kind", "Mix"]

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Kind:
    """One kind of request.

    Parameters
    ----------
    model, level, items, length : int
    weight : float
        Relative share of the requests.
    deadline_ns : int
        From the arrival; ``NEVER_NS`` for none.
    timeout_ns : int
    work : Law, optional
        Own service time in ns.
    """

    model: int = 0
    weight: float = 1.0
    level: int = 1
    items: int = 1
    length: int = 0
    deadline_ns: int = NEVER_NS
    timeout_ns: int = 0
    work: Law | None = None


class Mix:
    """Gives each arrival a kind. Kinds and work come from streams of their own.

    Parameters
    ----------
    kinds : sequence of Kind
    seed : int
    """

    def __init__(self, kinds: Sequence[Kind], seed: int) -> None:
        self.kinds = tuple(kinds)
        weights = np.asarray([kind.weight for kind in kinds], np.float64)
        self._shares = np.cumsum(weights) / weights.sum()
        self._rng = stream(seed, "mix")
        self._work = [
            Draws(kind.work, stream(seed, f"work/{i}")) if kind.work is not None else None
            for i, kind in enumerate(kinds)
        ]
        self._has_work = any(draws is not None for draws in self._work)

    def chunk(self, times: Int, model: Int | None = None) -> Chunk:
        """Make a chunk of the arrivals at `times`.

        Parameters
        ----------
        times : array
        model : array, optional
            Model of each arrival where it is known; each gets one of that model's kinds.
        """
        n = len(times)
        if len(self.kinds) == 1:
            return self._single(times, self.kinds[0], n)
        kind = self._draw(n, model)

        def column(name: str) -> Int:
            return np.asarray([getattr(k, name) for k in self.kinds], np.int64)[kind]

        deadline = column("deadline_ns")
        return Chunk(
            arrival_ns=times,
            model=column("model"),
            level=column("level"),
            items=column("items"),
            length=column("length"),
            deadline_ns=np.where(deadline < NEVER_NS, times + deadline, NEVER_NS),
            timeout_ns=column("timeout_ns"),
            work_ns=self._work_of(kind, n),
        )

    def _draw(self, n: int, model: Int | None) -> Int:
        draws = self._rng.random(n)
        if model is None:
            kind = np.searchsorted(self._shares, draws, side="right")
            return np.minimum(kind, len(self.kinds) - 1)
        drawn = np.zeros(n, np.int64)
        for index in np.unique(model).tolist():
            own = np.asarray([i for i, k in enumerate(self.kinds) if k.model == index])
            weights = np.cumsum([self.kinds[i].weight for i in own])
            rows = model == index
            place = np.searchsorted(weights / weights[-1], draws[rows], side="right")
            drawn[rows] = own[np.minimum(place, len(own) - 1)]
        return drawn

    def _single(self, times: Int, kind: Kind, n: int) -> Chunk:
        """Constant columns are views of one number: no memory, no time."""

        def column(value: int) -> Int:
            return np.broadcast_to(np.int64(value), (n,))

        deadline = kind.deadline_ns
        return Chunk(
            arrival_ns=times,
            model=column(kind.model),
            level=column(kind.level),
            items=column(kind.items),
            length=column(kind.length),
            deadline_ns=times + deadline if deadline < NEVER_NS else column(NEVER_NS),
            timeout_ns=column(kind.timeout_ns),
            work_ns=self._work_of(np.zeros(n, np.int64), n) if self._has_work else column(0),
        )

    def _work_of(self, kind: Int, n: int) -> Int:
        work = np.zeros(n, np.int64)
        for i, draws in enumerate(self._work):
            if draws is not None:
                rows = np.flatnonzero(kind == i)
                work[rows] = np.rint(draws.take(len(rows))).astype(np.int64)
        return work
