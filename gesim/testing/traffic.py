"""Seeded random traffic and parameter values for checking policies."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gesim.core.request import Request
from gesim.registry import Parameter, parameters
from gesim.rng import stream

__all__ = ["CASES", "Case", "settings_of", "traffic"]

MS = 1_000_000


@dataclass(frozen=True)
class Case:
    """One kind of traffic on one kind of model.

    Attributes
    ----------
    load : float
        Requests per batch-of-eight service time, over 8, for one instance.
    burst : int
        Requests that come in one instant.
    """

    name: str
    load: float = 0.7
    burst: int = 1
    devices: tuple[int, ...] = (0,)
    streams: tuple[int, ...] = (1,)
    gears: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    levels: int = 1
    items_max: int = 1
    timeout_ns: int = 0
    count: int = 300


CASES = (
    Case("steady"),
    Case("any size", gears=()),
    Case("sparse", load=0.02, count=60),
    Case("overload", load=2.0, gears=()),
    Case("bursts", burst=20, levels=2),
    Case("instances", devices=(0, 0, 0), streams=(3,), load=2.0, levels=3),
    Case("shared device", devices=(0, 0), streams=(1,), load=1.0, gears=()),
    Case("items", items_max=4, levels=2, gears=(1, 4, 8, 32)),
    Case("odd gears", gears=(3, 7, 40), burst=5),
    Case("timeouts", load=1.5, timeout_ns=3 * MS, levels=2, gears=()),
)
"""What every policy is run on."""


def service_ns(items: int) -> int:
    """Mean time of a batch: 1 ms and 0.25 ms an item."""
    return MS + MS // 4 * items


def traffic(case: Case, seed: int, largest: int) -> list[Request]:
    """Draw the requests of a case; no request is larger than `largest` items."""
    rng = stream(seed, f"conformance/{case.name}")
    gap_ns = service_ns(8) / 8 / case.load * case.burst
    requests: list[Request] = []
    now_ns = 0
    while len(requests) < case.count:
        now_ns += int(rng.exponential(gap_ns))
        for _ in range(case.burst):
            n = len(requests)
            level = int(rng.integers(1, case.levels + 1))
            items = min(int(rng.integers(1, case.items_max + 1)), largest)
            deadline_ns = now_ns + int(rng.integers(1, 40)) * MS
            timeout_ns = case.timeout_ns * int(rng.integers(0, 3))
            requests.append(
                Request(
                    n, 0, now_ns, now_ns, level, items, 0, deadline_ns, timeout_ns, 0,
                )
            )  # fmt: skip
    return requests


def settings_of(cls: type, given: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """Yield parameter values to try: a base, then one parameter changed at a time."""
    known = parameters(cls)
    base = {p.name: _first_value(p) for p in known if p.required}
    base.update(given)
    if "max_batch_size" not in given and any(p.name == "max_batch_size" for p in known):
        base["max_batch_size"] = 8
    yield dict(base)
    for parameter in known:
        if parameter.name not in given:
            for value in _other_values(parameter):
                if value != base.get(parameter.name, parameter.default):
                    yield base | {parameter.name: value}


def _first_value(parameter: Parameter) -> Any:
    values = _other_values(parameter)
    return values[0] if values else None


def _other_values(parameter: Parameter) -> list[Any]:
    """Return plausible values of a parameter by its type and the unit in its name."""
    hint = parameter.type
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return [(2, 4), (1,)]
    if hint is bool:
        return [True, False]
    if hint is float:
        return [0.5, 1.0]
    if hint is int:
        if parameter.name.endswith("_ns"):
            return [2 * MS, 0, 20 * MS]
        return [4, 1, 16] if parameter.name != "max_batch_size" else [8, 1, 32]
    return []
