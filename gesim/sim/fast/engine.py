"""The compiled engine: feed a system's arrivals through the kernel, hand the recorder columns.

Theory of operation
-------------------
`plan` says what a system needs of the kernel, or in one sentence why it cannot run there; then
the SimPy engine runs it, never an approximation. The policy is compiled from its own source,
or else interpreted and called from the compiled loop. Either way every request completes at
the same nanosecond as on the SimPy engine.

If a policy answers something illegal the run starts again on the SimPy engine, whose error
says what was wrong and when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gesim.core.decisions import NEVER_NS
from gesim.core.model import ModelConfig
from gesim.core.request import Outcome, Request
from gesim.cost.service import Service
from gesim.errors import ProfileError
from gesim.metrics.recorder import Recorder
from gesim.scenario.system import System
from gesim.sim.driver import SimInfo
from gesim.sim.fast import kernel
from gesim.sim.fast.compiled import Flags, load_kernel
from gesim.sim.fast.policy_source import NotCompilableError, PolicySource, policy_source
from gesim.sim.interrupt import Interrupt
from gesim.workload.base import Chunk

__all__ = ["Plan", "UnsupportedError", "plan", "simulate_fast"]

Int = NDArray[np.int64]


class UnsupportedError(Exception):
    """The compiled engine cannot run this system; the message says why, in one sentence."""


class IllegalAnswerError(Exception):
    """The policy answered something the contract forbids."""


@dataclass
class Plan:
    """How a system runs in the kernel.

    Attributes
    ----------
    flags : Flags
    source : PolicySource or None
        The policy's compiled form, None if it runs interpreted.
    why_interpreted : str
        What keeps the policy interpreted, with file and line; empty if nothing does.
    lane_of_level : tuple of int
        Lane by level, from level 1.
    limit, bound, timeout : int
        Largest batch; bound of the waiting requests of a level (-1 for none); queue timeout.
    """

    flags: Flags
    source: PolicySource | None
    why_interpreted: str
    lane_of_level: tuple[int, ...]
    limit: int
    bound: int
    timeout: int


def plan(system: System, levels: int) -> Plan:
    """Find out how a system can run in the kernel.

    Parameters
    ----------
    system : System
        Fresh; nothing of it is used up.
    levels : int
        Priority levels of its requests.

    Raises
    ------
    UnsupportedError
        That says what the kernel does not have.
    """
    models = system.scheduler.models
    if len(models) != 1:
        raise UnsupportedError(f"{len(models)} models share the devices")
    config = models[0].config
    if system.scheduler.instances_take_turns:
        raise UnsupportedError("instances take turns on a device's streams")
    if not hasattr(system.workload, "chunks"):
        raise UnsupportedError("clients wait for answers (closed loop)")
    lanes, levelled = _lanes(config, levels)
    bound, timeout = _admission(config)
    jitter = _jitter(system.services[0])
    source, why = None, ""
    try:
        source = policy_source(config.batching, config.gears)
    except NotCompilableError as error:
        why = str(error)
    flags = Flags(
        LANES=max(lanes) + 1,
        INSTANCES=len(config.devices),
        EAGER=bool(config.batching.eager),
        BOUNDED=bound >= 0 or config.queue_bound < NEVER_NS,
        TIMEOUT=timeout < NEVER_NS,
        JITTER=jitter,
        LEVELLED=levelled,
        WORK=system.services[0].cost.kind == "work",
        CALLED=source is None,
    )
    return Plan(flags, source, why, lanes, models[0].limit, bound, timeout)


def _lanes(config: ModelConfig, levels: int) -> tuple[tuple[int, ...], bool]:
    """Sort levels into lanes by the ordering's key: one lane for all, or one a level."""
    if not config.ordering.by_level:
        raise UnsupportedError(f"ordering {config.ordering.name!r} depends on more than the level")
    keys = [config.ordering.key(Request(0, 0, 0, 0, level=n + 1)) for n in range(levels)]
    if len(set(keys)) == 1:
        return (0,) * levels, levels > 1
    if keys == sorted(set(keys)):
        return tuple(range(levels)), False
    raise UnsupportedError(f"ordering {config.ordering.name!r} does not follow the levels")


def _admission(config: ModelConfig) -> tuple[int, int]:
    """Read the bound and the timeout of the policies that the kernel knows."""
    bound, timeout = -1, NEVER_NS
    for policy in config.admission:
        spec: Any = policy
        if policy.name == "bounded_queue" and bound < 0:
            bound = spec.max_queue_size
        elif policy.name == "queue_timeout" and timeout == NEVER_NS:
            if (spec.action, spec.expiry, spec.override) != ("reject", "eager", "never"):
                raise UnsupportedError("queue_timeout other than reject, eager, without override")
            timeout = spec.timeout_ns
        elif policy.name != "open":
            raise UnsupportedError(f"admission {policy.name!r}")
    return bound, timeout


def _jitter(service: Service) -> bool:
    if service.cost.kind not in ("table", "affine", "work"):
        raise UnsupportedError(f"cost of kind {service.cost.kind}")
    if service.lengths:
        raise UnsupportedError("a profile with lengths")
    if service.host.jitter is not None:
        raise UnsupportedError("jitter of the host time")
    return service.draws is not None


class _Loop:
    """The kernel's arrays, and what moves between two calls."""

    def __init__(self, system: System, made: Plan) -> None:
        self.config = system.scheduler.models[0].config
        self.service = system.services[0]
        self.made = made
        flags = made.flags
        self.module = load_kernel(flags, made.source)
        single = flags.LANES == 1 and flags.INSTANCES == 1
        plain = not (flags.BOUNDED or flags.TIMEOUT or flags.EAGER or flags.LEVELLED)
        self.run: Callable[..., int] = (
            self.module.run_single if single and plain else self.module.run
        )
        self.state = np.zeros(kernel.STATES, np.int64)
        self.state[kernel.WAIT_UNTIL] = NEVER_NS
        self.state[kernel.LAST_DISPATCH] = self.state[kernel.LAST_FINISH] = -1
        self.state[kernel.QUEUE_BOUND] = min(self.config.queue_bound, NEVER_NS)
        self.head, self.tail, self.read, self.end = (
            np.zeros(flags.LANES, np.int64) for _ in range(4)
        )
        self.fin = np.full(flags.INSTANCES, NEVER_NS, np.int64)
        self.since = np.zeros(flags.INSTANCES, np.int64)
        self.times, self.ids, self.levels, self.work = (np.zeros(0, np.int64) for _ in range(4))
        self.gears = np.asarray(self.config.gears, np.int64)
        self._costs()
        self.draws: NDArray[np.float64] = np.zeros(0)
        self.started = 0

    def _costs(self) -> None:
        """Tabulate times by items and by gear."""
        limit, gears, service = self.made.limit, self.config.gears, self.service
        largest = gears[-1] if gears else limit
        sizes = max(largest, limit) + 1
        self.gear_of = np.arange(sizes, dtype=np.int64)
        if gears:
            place = np.searchsorted(self.gears, np.arange(sizes))
            self.gear_of = np.where(
                place < len(gears), self.gears[np.minimum(place, len(gears) - 1)], 0
            )
        self.cost = np.full((3, sizes), -1, np.int64)
        self.mean = np.zeros(sizes, np.int64)
        for n in range(1, sizes):
            host, transfer = service.host, service.transfer
            self.cost[0, n] = host.dispatch_ns + host.per_item_ns * n
            self.cost[1, n] = transfer.time_ns(transfer.input_bytes, n) + transfer.time_ns(
                transfer.output_bytes, n
            )
            if not gears or n in gears:
                try:
                    self.cost[2, n] = service.cost.mean_ns(n)
                    self.mean[n] = service.mean_ns(n)
                except ProfileError:
                    pass

    # ---- feeding -------------------------------------------------------------------------

    def append(self, times: Int, ids: Int, levels: Int, work: Int) -> None:
        """Move what is left of every lane to the front, and append the next arrivals."""
        lanes = self.made.flags.LANES
        of = np.asarray(self.made.lane_of_level, np.int64)[levels - 1] if lanes > 1 else None
        parts_t, parts_i, parts_l, parts_w = [], [], [], []
        at = 0
        for lane in range(lanes):
            new = slice(None) if of is None else of == lane
            head, tail, read, end = (
                int(cursor[lane]) for cursor in (self.head, self.tail, self.read, self.end)
            )
            parts_t += [self.times[head:tail], self.times[read:end], times[new]]
            parts_i += [self.ids[head:tail], self.ids[read:end], ids[new]]
            if self.made.flags.LEVELLED:
                parts_l += [self.levels[head:tail], self.levels[read:end], levels[new]]
            if self.made.flags.WORK:
                parts_w += [self.work[head:tail], self.work[read:end], work[new]]
            self.head[lane] = at
            self.tail[lane] = self.read[lane] = at + tail - head
            self.end[lane] = at = at + tail - head + end - read + len(parts_t[-1])
        self.times = np.concatenate(parts_t)
        self.ids = np.concatenate(parts_i)
        self.levels = np.concatenate(parts_l) if parts_l else np.zeros(1, np.int64)
        self.work = np.concatenate(parts_w) if parts_w else np.zeros(1, np.int64)

    def advance(self, hold_ns: int, policy: Any, recorder: Recorder) -> bool:
        """Run until arrivals are used up to `hold_ns`; True when the run is over."""
        while True:
            size = len(self.times)
            order = np.empty(size, np.int64)
            batches = np.empty((size, 6), np.int64)
            lost = np.empty((size, 3), np.int64)
            if self.made.source is None:
                policy.view.attach(self.times, self.head, self.tail)
            if self.made.flags.JITTER and len(self.draws) - self.state[kernel.DRAWN] < 16384:
                self._draw()
            result = self._call(
                self.state, policy.record, self.times, self.levels, self.ids, self.work, self.head,
                self.tail, self.read, self.end, self.fin, self.since, hold_ns, self.made.limit,
                self.gear_of, self.gears, self.mean, self.cost, self.draws, self.made.bound,
                self.made.timeout, order, batches, lost,
            )  # fmt: skip
            if result == kernel.ILLEGAL:
                raise IllegalAnswerError
            self._report(recorder, order, batches, lost, policy.reasons)
            if result != kernel.MORE_DRAWS:
                return bool(result == kernel.OVER)
            self.append(*(np.zeros(0, np.int64),) * 4)
            self._draw()

    def _call(self, *arguments: Any) -> int:
        try:
            return self.run(*arguments)
        except Exception as error:
            if self.made.source is not None:
                raise
            raise IllegalAnswerError from error  # of the policy that the loop calls

    def _draw(self) -> None:
        assert self.service.draws is not None
        left = self.draws[self.state[kernel.DRAWN] :]
        self.draws = np.concatenate([left, *(self.service.draws.block() for _ in range(4))])
        self.state[kernel.DRAWN] = 0

    def _report(
        self, recorder: Recorder, order: Int, batches: Int, lost: Int, reasons: list[str]
    ) -> None:
        ran = int(self.state[kernel.RUN])
        self.started += int(self.state[kernel.STARTED])
        rows = batches[: self.state[kernel.STARTED]].T.copy()
        start_ns, instance, count, gear, compute_ns, finish_ns = rows
        if self.made.flags.INSTANCES == 1:
            instance = np.zeros_like(start_ns)
        transfer = self.service.transfer
        input_ns, output_ns = (
            np.asarray([transfer.time_ns(each, n) for n in range(self.cost.shape[1])])[gear]
            for each in (transfer.input_bytes, transfer.output_bytes)
        )
        recorder.take(
            order[:ran],
            {
                "id": np.arange(self.started - len(start_ns), self.started),
                "model": np.zeros_like(start_ns),
                "instance": instance,
                "device": np.asarray(self.config.devices, np.int64)[instance],
                "items": count,
                "gear": gear,
                "length": np.zeros_like(start_ns),
                "start_ns": start_ns,
                "host_ns": self.cost[0][count],
                "input_ns": input_ns,
                "compute_ns": compute_ns,
                "output_ns": output_ns,
                "finish_ns": finish_ns,
                "count": count,
            },
        )
        gone = lost[: self.state[kernel.LOST]]
        for why, (outcome, reason) in self._reasons(reasons).items():
            mine = gone[gone[:, 2] == why]
            if len(mine):
                recorder.lose(mine[:, 0], mine[:, 1], outcome, reason)

    @staticmethod
    def _reasons(reasons: list[str]) -> dict[int, tuple[Outcome, str]]:
        known = {
            kernel.REJECTED: (Outcome.REJECTED, "queue_full"),
            kernel.FULL: (Outcome.REJECTED, "queue_bound"),
            kernel.EXPIRED: (Outcome.EXPIRED, "timeout"),
        }
        return known | {
            kernel.DROPPED + 2 * i: (Outcome.DROPPED, text) for i, text in enumerate(reasons)
        }

    def queued(self) -> Int:
        """Ids of the requests that are still queued."""
        return np.concatenate([self.ids[h:t] for h, t in zip(self.head, self.tail, strict=True)])


class _Policy:
    """The policy as the kernel takes it: a record of its fields, or the address of a callback."""

    def __init__(self, config: ModelConfig, made: Plan, service: Service) -> None:
        self.policy = config.batching
        self.source = made.source
        self.reasons = list(made.source.reasons) if made.source is not None else []
        if made.source is not None:
            self.record = made.source.pack(self.policy)
            return
        from gesim.sim.fast.calling import ArrayView, callback

        self.view = ArrayView(config.gears, made.flags.INSTANCES, service.mean_ns)
        self.callback = callback(self.policy, self.view, self.reasons)
        self.record = np.asarray([id(self.callback)], np.int64)


def simulate_fast(
    system: System,
    recorder: Recorder,
    made: Plan,
    *,
    interrupt: Interrupt,
    on_progress: Callable[[int, int], None] | None = None,
) -> SimInfo:
    """Run a planned system; see `gesim.sim.driver.simulate`.

    Raises
    ------
    IllegalAnswerError
        If the policy answered something illegal: run it on the SimPy engine to learn what.
    UnsupportedError
        If a request turns out to have what the kernel does not know (several items, a length,
        or a timeout of its own).
    """
    loop = _Loop(system, made)
    policy = _Policy(loop.config, made, loop.service)
    requests = 0
    over = False
    for chunk in system.workload.chunks():  # type: ignore[union-attr]
        interrupt.check()
        _refuse(chunk)
        recorder.arrivals(chunk)
        n = len(chunk)
        times = chunk.arrival_ns + system.receive_ns
        loop.append(
            times,
            np.arange(requests, requests + n),
            np.asarray(chunk.level),
            np.asarray(chunk.work_ns),
        )
        requests += n
        loop.advance(int(times[-1]), policy, recorder)
        if on_progress is not None:
            on_progress(requests, int(loop.state[kernel.END_NS]))
    loop.append(*(np.zeros(0, np.int64),) * 4)
    over = loop.advance(NEVER_NS, policy, recorder)
    assert over
    end_ns = int(loop.state[kernel.END_NS])
    left = loop.queued()
    if len(left):
        recorder.lose(left, np.full(len(left), end_ns), Outcome.UNFINISHED, "end_of_run")
    return SimInfo(end_ns, requests, loop.started, loop.started)


def _refuse(chunk: Chunk) -> None:
    """Refuse requests that the kernel does not know how to treat."""
    for column, plain, what in (
        (chunk.items, 1, "requests of several items"),
        (chunk.length, 0, "requests with a length"),
        (chunk.timeout_ns, 0, "requests with a timeout of their own"),
    ):
        if (column != plain).any():
            raise UnsupportedError(what)
