"""What a system needs of the kernel, or why it cannot run there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gesim.core.decisions import NEVER_NS
from gesim.core.model import ModelConfig
from gesim.core.request import Request
from gesim.cost.service import Service
from gesim.scenario.system import System
from gesim.sim.fast.compiled import Flags
from gesim.sim.fast.policy_source import NotCompilableError, PolicySource, policy_source

__all__ = ["Plan", "UnsupportedError", "plan"]


class UnsupportedError(Exception):
    """The fast lane cannot run this system; the message says why, in one sentence."""


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

    def called(self, *, plain: bool = False) -> Plan:
        """Return the plan with the policy interpreted; `plain` for a loop in Python, too."""
        flags = replace(self.flags, CALLED=True, DROPS=True, PLAIN=plain)
        return replace(self, flags=flags, source=None)


def plan(system: System, levels: int, *, compiled: bool = True) -> Plan:
    """Find out how a system can run in the kernel.

    Parameters
    ----------
    system : System
        Fresh; nothing of it is used up.
    levels : int
        Priority levels of its requests.
    compiled : bool
        Whether there is a compiler; the loop runs in plain Python without.

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
    source, why = None, "the loop itself runs in plain Python"
    if compiled:
        try:
            source, why = policy_source(config.batching, config.gears), ""
        except NotCompilableError as error:
            why = str(error)
    flags = Flags(
        LANES=max(lanes) + 1,
        INSTANCES=len(config.devices),
        GROUPS=levels,
        EAGER=bool(config.batching.eager),
        BOUNDED=bound >= 0,
        TIMEOUT=timeout < NEVER_NS,
        JITTER=jitter,
        LEVELLED=levelled,
        WORK=system.services[0].cost.kind == "work",
        CALLED=source is None,
        DROPS=source is None or bool(source.reasons),
        PLAIN=not compiled,
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
