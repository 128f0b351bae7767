"""What a batch costs: cost models, host overhead and transfers in scenario files."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from gesim.scenario.fields import Bandwidth, Bytes, CountKey, Strict, TimeNs, chosen_by, complaint
from gesim.scenario.laws import Jitter

__all__ = ["Cost", "Host", "Transfer"]

_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")


def _share(name: str) -> float:
    return float(Decimal(name[1:]) / 100)


def _percentile(value: Any) -> str:
    match = _PERCENTILE.fullmatch(value) if isinstance(value, str) else None
    if match is None or float(match[1]) > 100:
        raise complaint(f"{value!r} is not a quantile; write p0 to p100, like p50 or p99.9")
    return str(value)


Percentile = Annotated[str, BeforeValidator(_percentile), Field(pattern=_PERCENTILE.pattern)]

Points = Annotated[dict[CountKey, TimeNs], Field(min_length=1)]


class Table(Strict):
    """Measured points: batch size to time, or length to batch size to time."""

    kind: Literal["table"]
    points: Points | None = None
    """Batch size to mean compute time."""
    lengths: Annotated[dict[CountKey, Points], Field(min_length=1)] | None = None
    """For models compiled for several lengths: points per length."""
    extrapolate: Literal["never", "linear"] = "never"
    """What a size outside the points does: an error, or the line through the nearest two."""
    jitter: Jitter | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.points is None) == (self.lengths is None):
            raise complaint("needs points (size: time), or lengths (length: {size: time})")
        return self


class Affine(Strict):
    """``setup + per_item * items``."""

    kind: Literal["affine"]
    setup_ns: TimeNs
    per_item_ns: TimeNs
    jitter: Jitter | None = None


class Empirical(Strict):
    """Quantiles of the time per batch size, drawn by inversion."""

    kind: Literal["empirical"]
    quantiles: Annotated[
        dict[CountKey, Annotated[dict[Percentile, TimeNs], Field(min_length=1)]],
        Field(min_length=1),
    ]
    """Batch size to quantiles such as ``{p1: 2ms, p50: 3ms, p99.9: 9ms}``."""
    extrapolate: Literal["never", "linear"] = "never"
    jitter: Jitter | None = None

    @property
    def shares(self) -> dict[int, dict[float, int]]:
        """Batch size to quantiles in ns, by probability in 0..1."""
        return {
            size: {_share(name): time_ns for name, time_ns in points.items()}
            for size, points in self.quantiles.items()
        }


class Work(Strict):
    """Setup plus the requests' own work (`workload.mix[].work`)."""

    kind: Literal["work"]
    setup_ns: TimeNs = 0


Cost = Annotated[
    Annotated[Table | Affine | Empirical | Work, Field(discriminator="kind")],
    chosen_by("kind", Table, Affine, Empirical, Work),
]


class Host(Strict):
    """Host time to dispatch a batch, while its instance waits."""

    dispatch_ns: TimeNs = 0
    per_item_ns: TimeNs = 0
    jitter: Jitter | None = None


class Transfer(Strict):
    """Copies between host and device: bytes / bandwidth + latency, each way."""

    input_bytes: Bytes = 0
    """Per item."""
    output_bytes: Bytes = 0
    """Per item."""
    bandwidth_bytes_per_s: Bandwidth | None = None
    latency_ns: TimeNs = 0
    """Per copy."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.input_bytes or self.output_bytes) and self.bandwidth_bytes_per_s is None:
            raise complaint("needs bandwidth, because input or output is given")
        return self
