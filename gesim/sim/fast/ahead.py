"""Arrivals drawn in a second thread while the kernel runs: both leave the interpreter's lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Full, Queue
from threading import Event, Thread

import numpy as np

from gesim.workload.base import Chunk

__all__ = ["ROWS", "ahead", "joined"]

ROWS = 65_536
"""Arrivals of one call of the kernel, about: they and their batches stay in the cache."""

_AHEAD = 4
"""Chunks drawn ahead."""


@contextmanager
def ahead(chunks: Iterator[Chunk], *, threaded: bool) -> Iterator[Iterator[Chunk]]:
    """Give the chunks, joined to about `ROWS` each; errors come out where they are used."""
    joint = joined(chunks)
    if not threaded:
        yield joint
        return
    queue: Queue[Chunk | BaseException | None] = Queue(_AHEAD)
    over = Event()

    def put(item: Chunk | BaseException | None) -> None:
        while not over.is_set():
            try:
                queue.put(item, timeout=0.1)
                return
            except Full:
                continue

    def draw() -> None:
        try:
            for chunk in joint:
                put(chunk)
                if over.is_set():
                    return
            put(None)
        except BaseException as error:  # raised again by whoever takes the chunks
            put(error)

    def taken() -> Iterator[Chunk]:
        while (item := queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = Thread(target=draw, name="gesim-arrivals", daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        over.set()
        thread.join()


def joined(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Join small chunks."""
    pieces: list[Chunk] = []
    rows = 0
    for chunk in chunks:
        if not len(chunk):
            continue
        pieces.append(chunk)
        rows += len(chunk)
        if rows >= ROWS:
            yield _join(pieces)
            pieces, rows = [], 0
    if pieces:
        yield _join(pieces)


def _join(pieces: list[Chunk]) -> Chunk:
    if len(pieces) == 1:
        return pieces[0]
    columns = {}
    for name in vars(pieces[0]):
        parts = [getattr(piece, name) for piece in pieces]
        if all(p.strides == (0,) for p in parts) and len({int(p[0]) for p in parts}) == 1:
            # A column that repeats one number stays one number.
            columns[name] = np.broadcast_to(parts[0][:1], (sum(map(len, parts)),))
        else:
            columns[name] = np.concatenate(parts)
    return Chunk(**columns)
