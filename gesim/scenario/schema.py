"""The scenario file, schema 1: the one place that says what may stand in it.

Policies are not listed here: `batching`, `ordering` and `admission` take what the registry
knows (`gesim.registry`), and `gesim.scenario.check` has it read their parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from gesim.errors import ScenarioError
from gesim.scenario.arrivals import Arrivals
from gesim.scenario.costs import Cost, Host, Transfer
from gesim.scenario.fields import Count, Number, PositiveTime, Strict, TimeNs, complaint
from gesim.scenario.laws import Jitter, TimeLaw
from gesim.units import parse_ratio, parse_time_ns, write_time

__all__ = [
    "SCHEMA",
    "Device",
    "Document",
    "Frontend",
    "InstanceGroup",
    "MixEntry",
    "Model",
    "Warmup",
    "Workload",
]

SCHEMA = 1
"""Version of the format that this gesim reads and writes."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.\-]*$")]


class Warmup(NamedTuple):
    """What is cut from the start: a share of the requests, or a time. One of them is 0."""

    ratio: float = 0.0
    time_ns: int = 0

    def text(self) -> str | float:
        """Write it as a file would."""
        return write_time(self.time_ns) if self.time_ns else self.ratio


def _warmup(value: Any) -> Warmup:
    if isinstance(value, Warmup):
        return value
    try:
        if (
            isinstance(value, str)
            and not value.strip().endswith("%")
            and value.strip()[-1:].isalpha()
        ):
            return Warmup(time_ns=parse_time_ns(value))
        ratio = parse_ratio(value)
    except ScenarioError as error:
        raise complaint(f"{error}; or a time, like 2s") from None
    if ratio >= 1:
        raise complaint(f"{value} would cut every request; write less than 100%")
    return Warmup(ratio=ratio)


def _gears(value: Any) -> Any:
    if value == "any":
        return "any"
    if not isinstance(value, list | tuple) or not value:
        raise complaint(f"{value!r} is not a list of batch sizes; write [1, 4, 8] or any")
    for size in value:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise complaint(f"{size!r} is not a batch size: whole numbers of 1 or more")
    if sorted(set(value)) != list(value):
        raise complaint(f"{list(value)} must increase, each size once")
    return tuple(value)


def _policy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value


def _policies(value: Any) -> Any:
    return (
        tuple(_policy(v) for v in value) if isinstance(value, list | tuple) else (_policy(value),)
    )


Policy = Annotated[
    Any,
    BeforeValidator(_policy),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object", "required": ["policy"]}]}),
]
Policies = Annotated[
    tuple[Any, ...],
    BeforeValidator(_policies),
    WithJsonSchema({"type": "array", "items": {"type": ["string", "object"]}}),
]


class Device(Strict):
    """A device, or `count` equal ones named name0, name1, ..."""

    name: Name
    count: Count = 1
    streams: Count = 1
    """Batches that each runs at once."""

    def names(self) -> list[str]:
        """Names of the copies."""
        return [self.name] if self.count == 1 else [f"{self.name}{i}" for i in range(self.count)]


class InstanceGroup(Strict):
    """Instances of a model: `count` on every copy of every device named."""

    count: Count = 1
    devices: tuple[str, ...] | None = None
    """Default: every device."""


class Model(Strict):
    """A served model: what it costs, where it runs and which policies rule its queue."""

    name: Name
    profile: str | None = None
    """A shipped profile's name, or a file beside the scenario."""
    cost: Cost | None = None
    """What a batch costs, spelled out instead of a profile."""
    extrapolate: Literal["never", "linear"] | None = None
    """With a profile: what a size outside its points does; never by default."""
    jitter: Jitter | None = None
    """With a profile: what its mean times are multiplied with; nothing by default."""
    gears: Annotated[
        Any,
        AfterValidator(_gears),
        WithJsonSchema(
            {
                "anyOf": [
                    {"const": "any"},
                    {"type": "array", "items": {"type": "integer", "minimum": 1}},
                ]
            }
        ),
    ] = None
    """Compiled batch sizes; default the profile's. `any`: every size runs, nothing is padded."""
    host: Host | None = None
    """Host time per batch; default the profile's, which mostly has none."""
    transfer: Transfer | None = None
    """Copies to and from the device; default the profile's, which mostly has none."""
    instance_group: InstanceGroup = InstanceGroup()
    priority_levels: Count = 1
    """Levels 1 (most urgent) to this."""
    default_priority_level: Count | None = None
    """Level of requests that name none; default the least urgent."""
    queue_bound: Count = 1_000_000
    """Hard bound of the queue in requests; beyond it arrivals are rejected."""
    slo_ns: PositiveTime | None = None
    batching: Policy = None
    ordering: Policy = None
    admission: Policies | None = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if (self.profile is None) == (self.cost is None):
            both = "has both" if self.cost is not None else "needs"
            raise complaint(f"model {self.name!r} {both} profile (a name or a file) or cost")
        for key in ("extrapolate", "jitter"):
            if self.cost is not None and getattr(self, key) is not None:
                raise complaint(f"{key} goes with a profile; write it inside cost")
        return self


class MixEntry(Strict):
    """One kind of request; kinds are drawn by weight."""

    model: str | None = None
    """Default: the only model."""
    weight: Number = 1.0
    priority: Count | None = None
    """Priority level; default the model's default level."""
    items: Count = 1
    """Rows that a request adds to a batch."""
    length: Count | None = None
    """Sequence length, for profiles that have lengths."""
    deadline_ns: PositiveTime | None = None
    """Latency target of these requests, from their arrival; default the model's slo."""
    timeout: TimeLaw | None = None
    """The request's own queue timeout (see `queue_timeout`, `override`); a time or a law."""
    work: TimeLaw | None = None
    """Own service time, for cost kind `work`."""


class Workload(Strict):
    """Arrivals, and what each request asks for."""

    arrivals: Arrivals
    mix: Annotated[tuple[MixEntry, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _weighted(self) -> Self:
        if self.mix and not any(entry.weight for entry in self.mix):
            raise complaint("mix weights are all 0; at least one must be above 0")
        return self


class Frontend(Strict):
    """Server time around the queue."""

    receive_ns: TimeNs = 0
    """From a request's arrival to its place in the queue."""
    respond_ns: TimeNs = 0
    """From the end of its batch to the client."""


def _schema(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise complaint(f"{value!r} is not a schema version; write schema: {SCHEMA}")
    if value > SCHEMA:
        raise complaint(
            f"{value} is newer than this gesim, which reads schema {SCHEMA}; install a newer gesim"
        )
    if value != SCHEMA:
        raise complaint(f"there is no schema {value}; write schema: {SCHEMA}")
    return value


class Document(Strict):
    """A whole scenario file."""

    schema_version: Annotated[Literal[1], BeforeValidator(_schema), Field(alias="schema")]
    """Version of this format."""
    name: Name = "scenario"
    description: str = ""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 1
    duration_ns: PositiveTime | None = None
    """Arrivals stop after this time."""
    requests: Count | None = None
    """Arrivals stop after this many."""
    warmup: Annotated[
        Warmup,
        BeforeValidator(_warmup),
        WithJsonSchema(
            {"type": ["string", "number"], "description": "A share (5%) or a time (2s)."}
        ),
    ] = Warmup(ratio=0.05)
    """What is cut from the start of the results."""
    slo_ns: PositiveTime | None = None
    """Latency target for goodput."""
    devices: Annotated[tuple[Device, ...], Field(min_length=1)] = (Device(name="device"),)
    models: Annotated[tuple[Model, ...], Field(min_length=1)]
    batching: Policy = None
    """Batching policy of every model that has none of its own."""
    ordering: Policy = None
    admission: Policies | None = None
    workload: Workload
    frontend: Frontend = Frontend()
    expect: tuple[str, ...] = ()
    """What must hold after the run, like ``latency_p99 <= 15ms``."""
