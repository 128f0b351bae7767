"""The two shapes of a workload: open loops that end, and clients that wait for answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.errors import WorkloadError
from gesim.laws import Draws, Law
from gesim.workload.base import Chunk
from gesim.workload.mix import Mix

__all__ = ["Clients", "Counted", "OpenArrivals", "Queries", "Recorded"]

Int = NDArray[np.int64]

_TURNS = 10_000
"""Requests within one instant, and 100 a client, before a closed loop is taken to be stuck."""


class OpenArrivals:
    """Arrivals at given times, cut after a duration or a number of requests.

    Parameters
    ----------
    times : iterable of int64 arrays
        Sorted; may be endless.
    mix : Mix
    duration_ns : int
        Arrivals before this time; ``NEVER_NS`` for all.
    requests : int, optional
        That many at most.
    """

    def __init__(
        self,
        times: Iterable[Int],
        mix: Mix,
        duration_ns: int = NEVER_NS,
        requests: int | None = None,
    ) -> None:
        self._times = times
        self._mix = mix
        self._duration_ns = duration_ns
        self._requests = requests

    def chunks(self) -> Iterator[Chunk]:
        """Yield the arrivals, once."""
        left = self._requests
        for times in self._times:
            last = False
            if left is not None and len(times) >= left:
                times, last = times[:left], True
            if len(times) and times[-1] >= self._duration_ns:
                times, last = times[: np.searchsorted(times, self._duration_ns)], True
            if left is not None:
                left -= len(times)
            if len(times):
                yield self._mix.chunk(times)
            if last:
                return


class Recorded:
    """A trace: whole columns, handed out in chunks.

    Parameters
    ----------
    columns : Chunk
        All requests, sorted by arrival.
    size : int
        Rows in a chunk.
    notes : sequence of str
        What was done to the times, a sentence each.
    """

    def __init__(self, columns: Chunk, size: int = 65536, notes: Sequence[str] = ()) -> None:
        self._columns = columns
        self._size = size
        self.notes = tuple(notes)

    def __len__(self) -> int:
        return len(self._columns)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the arrivals."""
        columns = vars(self._columns)
        for start in range(0, len(self._columns), self._size):
            yield Chunk(**{k: v[start : start + self._size] for k, v in columns.items()})


class Counted(OpenArrivals):
    """A trace of counts: drawn as `OpenArrivals` are, and about as many as it says.

    Parameters
    ----------
    times, mix, duration_ns, requests
        As of `OpenArrivals`.
    expected : int
        About so many arrivals.
    notes : sequence of str
        What was done to the times, a sentence each.
    """

    def __init__(
        self,
        times: Iterable[Int],
        mix: Mix,
        duration_ns: int,
        requests: int | None,
        *,
        expected: int,
        notes: Sequence[str],
    ) -> None:
        super().__init__(times, mix, duration_ns, requests)
        self._expected = expected
        self.notes = tuple(notes)

    def __len__(self) -> int:
        return self._expected


class Clients:
    """A closed loop: each client thinks, sends, waits for the answer, thinks again.

    Parameters
    ----------
    clients : int
    think : Law, optional
        Pause before every request, the first one included; none by default, so that all
        clients send at once at the start and their answers return before the next decision.
    mix : Mix
    rng : numpy.random.Generator
        For thinking.
    duration_ns, requests
        Nothing is sent after this time, or beyond this number.
    """

    def __init__(
        self,
        clients: int,
        think: Law | None,
        mix: Mix,
        rng: Generator,
        duration_ns: int = NEVER_NS,
        requests: int | None = None,
    ) -> None:
        self.clients = clients
        self._think = Draws(think, rng) if think is not None else None
        self._mix = mix
        self._duration_ns = duration_ns
        self._left = requests if requests is not None else NEVER_NS
        self._stuck = _Stuck(clients)

    def _pause_ns(self) -> int:
        return round(self._think.next()) if self._think is not None else 0

    def start(self) -> Chunk:
        """Return each client's first request, row i for client i."""
        n = min(self.clients, self._left)
        self._left -= n
        return self._mix.chunk(np.asarray([self._pause_ns() for _ in range(n)], np.int64))

    def again(self, client: int, answered_ns: int) -> Chunk | None:
        """Return the client's next request, or None at the end."""
        at_ns = answered_ns + self._pause_ns()
        if not self._left or at_ns >= self._duration_ns:
            return None
        self._left -= 1
        self._stuck.look(at_ns)
        return self._mix.chunk(np.asarray([at_ns], np.int64))


class Queries:
    """MLPerf's single and multi stream: the next query when the last is answered whole.

    Parameters
    ----------
    samples : int
        Requests in a query.
    mix : Mix
    duration_ns, queries
        Nothing is sent after this time, or beyond this number of queries.
    """

    def __init__(
        self, samples: int, mix: Mix, duration_ns: int = NEVER_NS, queries: int | None = None
    ) -> None:
        self.samples = samples
        self._mix = mix
        self._duration_ns = duration_ns
        self._left = queries if queries is not None else NEVER_NS
        self._open = 0
        self._stuck = _Stuck(1)

    def _query(self, at_ns: int) -> Chunk | None:
        if not self._left or at_ns >= self._duration_ns:
            return None
        self._left -= 1
        self._open = self.samples
        self._stuck.look(at_ns)
        return self._mix.chunk(np.full(self.samples, at_ns, np.int64))

    def start(self) -> Chunk:
        """Return the first query."""
        chunk = self._query(0)
        assert chunk is not None
        return chunk

    def again(self, client: int, answered_ns: int) -> Chunk | None:
        """Count an answer; return the next query after the last one."""
        self._open -= 1
        return self._query(answered_ns) if not self._open else None


class _Stuck:
    """Finds out when answers that take no time keep a closed loop within one instant."""

    def __init__(self, clients: int) -> None:
        self._most = _TURNS + 100 * clients
        self._at_ns = -1
        self._count = 0

    def look(self, at_ns: int) -> None:
        """Count a request that is sent at `at_ns`.

        Raises
        ------
        WorkloadError
            If time stands still.
        """
        if at_ns != self._at_ns:
            self._at_ns, self._count = at_ns, 0
        self._count += 1
        if self._count > self._most:
            raise WorkloadError(
                f"workload.arrivals: {self._most:,} requests were sent within one instant "
                f"({at_ns / 1e6:g} ms): clients are answered or turned away in no time and send "
                "again at once, for ever; give them a think time, the front end a respond time, "
                "or the queue more room"
            )
