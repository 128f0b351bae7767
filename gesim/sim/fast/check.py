"""The beginning of a compiled run, again with the policy as its author wrote it.

A compiled policy can differ from its source in silence: an int that wraps around, a float kept
in an int field, a division that rounds elsewhere. So the first requests are run both ways,
the second time with everything in plain Python, and every batch and loss must be the same.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gesim.core.model import ModelConfig
from gesim.cost.service import Service
from gesim.sim.fast.lanes import Arrivals
from gesim.sim.fast.loop import IllegalAnswerError, Loop
from gesim.sim.fast.plan import Plan

__all__ = ["CHECKED", "Check", "DifferentError"]

Int = NDArray[np.int64]

CHECKED = 100_000
"""Requests that are run both ways."""

_BATCH = ("start_ns", "instance", "count", "gear", "compute_ns", "finish_ns")
_LOSS = ("id", "at_ns", "code", "enqueue_ns", "level")


class DifferentError(Exception):
    """The compiled policy and its source decide differently; the message says where."""


class Check:
    """Keeps what the compiled loop did, and compares it with the interpreted one.

    Parameters
    ----------
    config, service
        Of the model, not used yet: both are copied.
    made : Plan
        Of the compiled loop.

    Attributes
    ----------
    full : bool
        Enough is kept to compare.
    """

    def __init__(self, config: ModelConfig, service: Service, made: Plan) -> None:
        config = replace(config, batching=deepcopy(config.batching))
        self._loop = Loop(config, deepcopy(service), made.called(plain=True))
        self._kept: tuple[list[Int], list[Int]] = [], []
        self._requests = 0

    @property
    def full(self) -> bool:
        """Whether enough is kept."""
        return self._requests >= CHECKED

    def feed(self, arrivals: Arrivals) -> None:
        """Feed what the compiled loop is fed."""
        self._requests += len(arrivals["times"])
        self._loop.lanes.append(arrivals)

    def keep(self, compiled: Loop) -> None:
        """Keep the rows of a call."""
        for kept, rows in zip(self._kept, _rows(compiled), strict=True):
            kept.append(rows)

    def compare(self, hold_ns: int) -> None:
        """Run the interpreted loop as far as the compiled one, and compare.

        Raises
        ------
        DifferentError
            At the first batch or loss that is not the same.
        """
        rows: tuple[list[Int], list[Int]] = [], []
        try:
            for _ in self._loop.advance(hold_ns):
                for each, new in zip(rows, _rows(self._loop), strict=True):
                    each.append(new)
        except IllegalAnswerError:
            raise DifferentError("its source answers something illegal") from None
        _same("batch", _BATCH, np.concatenate(self._kept[0]), np.concatenate(rows[0]))
        _same("loss", _LOSS, np.concatenate(self._kept[1]), np.concatenate(rows[1]))


def _rows(loop: Loop) -> tuple[Int, Int]:
    rows = loop.rows
    return rows.batches[: rows.started].copy(), rows.gone[: rows.lost, : len(_LOSS)].copy()


def _same(what: str, names: tuple[str, ...], compiled: Int, interpreted: Int) -> None:
    if np.array_equal(compiled, interpreted):
        return
    n = min(len(compiled), len(interpreted))
    differ = np.flatnonzero((compiled[:n] != interpreted[:n]).any(axis=1))
    at = int(differ[0]) if len(differ) else n

    def shown(rows: Int) -> str:
        if at >= len(rows):
            return "none"
        return ", ".join(f"{k} {v}" for k, v in zip(names, rows[at].tolist(), strict=True))

    raise DifferentError(
        f"at {what} {at:,} it gives {shown(compiled)}; interpreted it gives {shown(interpreted)}"
    )
