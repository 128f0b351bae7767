"""What requests ask for: kinds drawn by weight, attributes by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.laws import Draws, Law
from gesim.rng import stream
from gesim.workload.base import Chunk

__all__ = ["Kind", "Mix"]

Int = NDArray[np.int64]

_FIXED = ("model", "level", "items", "length", "deadline_ns")
"""Columns that a kind gives as numbers."""


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
    timeout, work : Law, optional
        Own queue timeout and own service time in ns; none by default.
    """

    model: int = 0
    weight: float = 1.0
    level: int = 1
    items: int = 1
    length: int = 0
    deadline_ns: int = NEVER_NS
    timeout: Law | None = None
    work: Law | None = None


class Mix:
    """Gives each arrival a kind. Kinds, timeouts and work come from streams of their own.

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
        self._timeout = _Drawn([kind.timeout for kind in kinds], seed, "timeout")
        self._work = _Drawn([kind.work for kind in kinds], seed, "work")
        self._views: dict[str, Int] = {}

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
            timeout_ns=self._timeout.take(kind),
            work_ns=self._work.take(kind),
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
        views = self._views
        if not views or len(views["model"]) != n:
            values = {name: getattr(kind, name) for name in _FIXED}
            values |= {"timeout_ns": 0, "work_ns": 0}
            views = {k: np.broadcast_to(np.int64(v), (n,)) for k, v in values.items()}
            self._views = views  # closed loops ask for one row, a million times
        chunk = Chunk(arrival_ns=times, **views)
        changed: dict[str, Int] = {}
        if kind.deadline_ns < NEVER_NS:
            changed["deadline_ns"] = times + kind.deadline_ns
        if kind.timeout is not None:
            changed["timeout_ns"] = self._timeout.take(np.zeros(n, np.int64))
        if kind.work is not None:
            changed["work_ns"] = self._work.take(np.zeros(n, np.int64))
        return replace(chunk, **changed) if changed else chunk


class _Drawn:
    """An attribute that each kind draws from a law of its own, in a stream of its own."""

    def __init__(self, laws: Sequence[Law | None], seed: int, name: str) -> None:
        self._draws = [
            Draws(law, stream(seed, f"{name}/{i}")) if law is not None else None
            for i, law in enumerate(laws)
        ]
        self._any = any(draws is not None for draws in self._draws)

    def take(self, kind: Int) -> Int:
        """Draw for rows of these kinds, in order; 0 where the kind has no law."""
        if not self._any:
            return np.broadcast_to(np.int64(0), kind.shape)
        values = np.zeros(len(kind), np.int64)
        for i, draws in enumerate(self._draws):
            if draws is not None:
                rows = np.flatnonzero(kind == i)
                values[rows] = np.rint(draws.take(len(rows))).astype(np.int64)
        return values
