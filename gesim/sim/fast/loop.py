"""The kernel with its arrays: arrivals in, batches and losses out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.model import ModelConfig
from gesim.core.request import Outcome
from gesim.cost.service import Service
from gesim.errors import ProfileError
from gesim.sim.fast import kernel
from gesim.sim.fast.asking import ArrayView, callback
from gesim.sim.fast.compiled import Flags, load_kernel
from gesim.sim.fast.lanes import NO_ARRIVALS, Lanes
from gesim.sim.fast.plan import Plan, UnsupportedError

__all__ = ["IllegalAnswerError", "Loop"]

Int = NDArray[np.int64]

_DRAWS = 65_536
"""Jitter drawn ahead of each call."""


class IllegalAnswerError(Exception):
    """The policy answered something the contract forbids."""


class Rows:
    """What one call of the kernel did.

    Attributes
    ----------
    ran, started, lost : int
        Requests run, batches started, requests lost.
    first : int
        Place of the first request run where they lie side by side, -1 where `order` says.
    order, batches, gone : array
        Places of the requests run; start, instance, count, gear, compute time and finish of
        batches; id, time, code, enqueue time, level and due time of losses.
    """

    def __init__(self) -> None:
        self.ran = self.started = self.lost = 0
        self.first = -1
        self.order = np.empty(0, np.int64)
        self.batches = self.gone = np.empty((0, 6), np.int64)

    def hold(self, size: int) -> None:
        """Make room for the rows of so many requests."""
        if len(self.order) < size:
            size += size // 4
            self.order = np.empty(size, np.int64)
            self.batches, self.gone = (np.empty((size, 6), np.int64) for _ in range(2))


class Loop:
    """The kernel of one run.

    Parameters
    ----------
    config : ModelConfig
    service : Service
    made : Plan

    Attributes
    ----------
    lanes : Lanes
    rows : Rows
        Of the last call; those of the call before stay as they are until the next.
    host, transfer, compute : array
        Times by items, by gear, by gear, in ns.
    """

    def __init__(self, config: ModelConfig, service: Service, made: Plan) -> None:
        self.config = config
        self.service = service
        self.made = made
        self.flags = flags = made.flags
        self.module = load_kernel(flags, made.source)
        state = np.zeros(kernel.STATES, np.int64)
        state[kernel.WAIT_UNTIL] = NEVER_NS
        state[kernel.LAST_DISPATCH] = state[kernel.LAST_FINISH] = -1
        state[kernel.QUEUE_BOUND] = self.config.queue_bound
        self.state = self._form(state)
        self.lanes = Lanes(flags, made.lane_of_level)
        self.fin = self._form(np.full(flags.INSTANCES, NEVER_NS, np.int64))
        self.since = self._form(np.zeros(flags.INSTANCES, np.int64))
        self.draws: NDArray[np.float64] = np.zeros(0)
        self.all_started = 0
        self.rows, self._spare = Rows(), Rows()
        self._costs(flags)
        self._policy = _Policy(config, made, service)
        self.reasons = self._policy.reasons

    def _form(self, array: Any) -> Any:
        """Plain Python wants lists."""
        return array.tolist() if self.flags.PLAIN else array

    def _costs(self, flags: Flags) -> None:
        """Tabulate times by items and by gear."""
        limit, gears, service = self.made.limit, self.config.gears, self.service
        largest = gears[-1] if gears else limit
        sizes = max(largest, limit) + 1
        gear_of = np.arange(sizes, dtype=np.int64)
        if gears:
            place = np.searchsorted(gears, np.arange(sizes))
            inside = np.minimum(place, len(gears) - 1)
            gear_of = np.where(place < len(gears), np.asarray(gears)[inside], 0)
        self.host, self.input, self.output = (np.full(sizes, -1, np.int64) for _ in range(3))
        self.compute, mean = np.full(sizes, -1, np.int64), np.zeros(sizes, np.int64)
        for n in range(1, sizes):
            host, transfer = service.host, service.transfer
            self.host[n] = host.dispatch_ns + host.per_item_ns * n
            self.input[n] = transfer.time_ns(transfer.input_bytes, n)
            self.output[n] = transfer.time_ns(transfer.output_bytes, n)
            if not gears or n in gears:
                try:
                    self.compute[n] = service.cost.mean_ns(n)
                    mean[n] = service.mean_ns(n)
                except ProfileError:
                    pass
        self.transfer = self.input + self.output
        given = (gear_of, np.asarray(gears, np.int64), mean, self.host, self.transfer, self.compute)
        self._tables = tuple(self._form(each) for each in given)

    @property
    def now_ns(self) -> int:
        """Time of the last event."""
        return int(self.state[kernel.END_NS])

    def advance(self, hold_ns: int) -> Iterator[bool]:
        """Run until the arrivals before `hold_ns` are used up.

        Yields
        ------
        bool
            After each call of the kernel, whose rows must be used before the next: whether
            the run is over.
        """
        while True:
            self._draw()
            result = self._call(hold_ns)
            if result == kernel.ILLEGAL:
                raise IllegalAnswerError
            if result == kernel.MIXED_LEVELS:
                raise UnsupportedError("a batch of one level from a queue that mixes levels")
            rows = self.rows
            rows.ran, rows.started, rows.lost = (
                int(self.state[place]) for place in (kernel.RUN, kernel.STARTED, kernel.LOST)
            )
            self.all_started += rows.started
            yield bool(result == kernel.OVER)
            if result != kernel.MORE_DRAWS:
                return
            self.lanes.append(NO_ARRIVALS)

    def _call(self, hold_ns: int) -> int:
        lanes = self.lanes
        columns = lanes.columns
        self.rows, self._spare = self._spare, self.rows
        rows = self.rows
        rows.hold(lanes.size)
        if self.made.source is None:
            levels = columns["levels"] if self.flags.LEVELLED else None
            self._policy.view.attach(columns["times"], lanes.head, lanes.tail, levels)
        # One lane, one instance, and the queue's hard bound cannot be reached: a shorter loop.
        single = self.flags.SINGLE and lanes.size <= self.config.queue_bound
        rows.first = int(lanes.head[0]) if single else -1
        run = self.module.run_single if single else self.module.run
        gear_of, gears, mean, host, transfer, compute = self._tables
        try:
            result: int = run(
                self.state, self._policy.record, columns["times"], columns["levels"],
                columns["ids"], columns["work"], columns["due"], lanes.head, lanes.tail,
                lanes.read, lanes.end, self.fin, self.since, hold_ns, self.made.limit, gear_of,
                gears, mean, host, transfer, compute, self.draws, self.made.bound,
                self.made.timeout, rows.order, rows.batches, rows.gone,
            )  # fmt: skip
        except Exception as error:
            if self.made.source is not None:
                raise
            raise IllegalAnswerError from error  # of the policy that the loop calls
        return result

    def _draw(self) -> None:
        """Keep enough jitter ahead; a call that runs out of it is simply made again."""
        drawn = int(self.state[kernel.DRAWN])
        if self.flags.JITTER and len(self.draws) - drawn < _DRAWS // 4:
            assert self.service.draws is not None
            blocks = [self.service.draws.block() for _ in range(4)]
            self.draws = np.concatenate([self.draws[drawn:], *blocks])
            self.state[kernel.DRAWN] = 0

    # ---- rows of the last call -----------------------------------------------------------

    def ids(self) -> Int:
        """Ids of the requests run, batch by batch."""
        ids, rows = np.asarray(self.lanes.columns["ids"], np.int64), self.rows
        if rows.first >= 0:
            return ids[rows.first : rows.first + rows.ran].copy()
        return ids[rows.order[: rows.ran]]

    def outcomes(self) -> dict[int, tuple[Outcome, str]]:
        """Outcome and reason by the code of a loss."""
        known = {
            kernel.REJECTED: (Outcome.REJECTED, "queue_full"),
            kernel.FULL: (Outcome.REJECTED, "queue_bound"),
            kernel.EXPIRED: (Outcome.EXPIRED, "timeout"),
        }
        return known | {
            kernel.DROPPED + 2 * i: (Outcome.DROPPED, text) for i, text in enumerate(self.reasons)
        }


class _Policy:
    """The policy as the kernel takes it: a record of its fields, or a callback."""

    def __init__(self, config: ModelConfig, made: Plan, service: Service) -> None:
        self.reasons = list(made.source.reasons) if made.source is not None else []
        if made.source is not None:
            self.record: Any = made.source.pack(config.batching)
            return
        self.view = ArrayView(config.gears, made.flags.INSTANCES, service.mean_ns)
        self.callback = callback(config.batching, self.view, self.reasons)
        plain = made.flags.PLAIN
        self.record = [self.callback] if plain else np.asarray([id(self.callback)], np.int64)
