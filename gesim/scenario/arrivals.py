"""Where requests come from: the arrival processes of scenario files."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gesim.errors import ScenarioError
from gesim.laws import law_of
from gesim.scenario.fields import (
    Count,
    Number,
    PositiveNumber,
    PositiveRate,
    PositiveTime,
    Rate,
    Strict,
    TimeNs,
    chosen_by,
    complaint,
)
from gesim.scenario.laws import CountLaw, TimeLaw
from gesim.units import parse_time_ns

__all__ = ["Arrivals", "ends_by_itself", "mean_rate_rps"]


class Poisson(Strict):
    """Independent arrivals at a mean rate."""

    process: Literal["poisson"]
    rate_rps: PositiveRate


class Constant(Strict):
    """Evenly spaced arrivals, `burst` at a time."""

    process: Literal["constant"]
    rate_rps: PositiveRate
    burst: Count = 1


class Gamma(Strict):
    """Gaps from a gamma distribution: cv 1 is Poisson, above it bursty."""

    process: Literal["gamma"]
    rate_rps: PositiveRate
    cv: PositiveNumber


class Renewal(Strict):
    """Independent gaps from any law."""

    process: Literal["renewal"]
    gap: TimeLaw


class Mmpp(Strict):
    """Markov-modulated Poisson: a rate per state, exponential stays with these means."""

    process: Literal["mmpp"]
    rates_rps: Annotated[tuple[Rate, ...], Field(min_length=2, alias="rates")]
    dwell_ns: Annotated[tuple[PositiveTime, ...], Field(min_length=2, alias="dwell")]

    @model_validator(mode="after")
    def _matched(self) -> Self:
        if len(self.rates_rps) != len(self.dwell_ns):
            raise complaint(
                f"has {len(self.rates_rps)} rates and {len(self.dwell_ns)} dwell times; "
                "every state needs one of each"
            )
        if not any(self.rates_rps):
            raise complaint("rates are all 0; at least one state must send requests")
        return self


class Diurnal(Strict):
    """Poisson whose rate follows the day (a raised cosine) and, if given, the week."""

    process: Literal["diurnal"]
    rate_rps: PositiveRate
    """Mean over a period."""
    peak: PositiveNumber = 2.0
    """Highest rate divided by the mean."""
    period_ns: PositiveTime = 86_400_000_000_000
    weekly: Annotated[tuple[Number, ...], Field(min_length=7, max_length=7)] | None = None
    """Factors for seven periods in turn."""

    @model_validator(mode="after")
    def _peaked(self) -> Self:
        if self.peak < 1:
            raise complaint(f"peak {self.peak:g} is below 1: it is the highest rate / the mean")
        if self.weekly is not None and not any(self.weekly):
            raise complaint("weekly factors are all 0; nothing would ever arrive")
        return self


class OnOff(Strict):
    """Poisson while on, silent while off."""

    process: Literal["on_off"]
    rate_rps: PositiveRate
    """While on."""
    on_ns: PositiveTime
    off_ns: TimeNs
    law: Literal["exponential", "constant"] = "exponential"


class Bursts(Strict):
    """`size` requests at each of these times, `spacing` apart. Ends by itself."""

    process: Literal["bursts"]
    at_ns: Annotated[tuple[TimeNs, ...], Field(min_length=1)]
    size: Count = 1
    spacing_ns: TimeNs = 0


class BatchPoisson(Strict):
    """Groups at a Poisson rate; `rate` counts groups."""

    process: Literal["batch_poisson"]
    rate_rps: PositiveRate
    size: CountLaw


class Closed(Strict):
    """A fixed number of clients, each sending its next request after the last answer."""

    process: Literal["closed"]
    clients: Count
    think: TimeLaw | None = None
    """Pause between an answer and the next request; none by default."""


class MlPerf(Strict):
    """The four MLPerf Inference load generators."""

    process: Literal["mlperf"]
    scenario: Literal["single_stream", "multi_stream", "server", "offline"]
    rate_rps: PositiveRate | None = None
    samples_per_query: Count | None = None
    queries: Count | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.scenario == "server") != (self.rate_rps is not None):
            verb = "needs a rate" if self.scenario == "server" else "has no rate: remove it"
            raise complaint(f"scenario {self.scenario} {verb}")
        if self.scenario == "offline" and self.queries is not None and self.queries != 1:
            raise complaint("scenario offline is one query; set samples_per_query instead")
        return self


class Columns(Strict):
    """Which column of a trace file holds what."""

    arrival: str | None = None
    unit: Literal["ns", "us", "ms", "s", "datetime"] | None = None
    """Unit of the arrival column."""
    count: str | None = None
    model: str | None = None
    priority: str | None = None
    items: str | None = None
    length: str | None = None
    deadline: str | None = None
    timeout: str | None = None
    work: str | None = None


def _dither(value: Any) -> Any:
    if value not in ("auto", "none"):
        try:
            parse_time_ns(value)
        except ScenarioError as error:
            raise complaint(f"{error}; or auto, or none") from None
    return value


class Trace(Strict):
    """Recorded arrivals from a file. Ends by itself."""

    process: Literal["trace"]
    file: str
    """CSV, JSON lines or parquet, also gzipped; relative to the scenario file."""
    preset: (
        Literal[
            "azure-llm",
            "mooncake",
            "alpaserve",
            "counts-per-second",
            "triton-trace",
            "perf-analyzer",
        ]
        | None
    ) = None
    """A known file format; `columns` overrides it."""
    columns: Columns | None = None
    scale: PositiveNumber = 1.0
    """Times are divided by it: 2 replays twice as fast."""
    sort: Annotated[bool, Field(strict=True)] = False
    """Put rows in order of arrival; unsorted traces are errors otherwise."""
    start_ns: TimeNs = 0
    """Leave out what comes before this time of the trace, and count time from there."""
    dither: str = "auto"
    """Spread rounded stamps inside their tick: auto, none, or the tick."""
    limit: Count | None = None
    """Requests to read at most."""

    @model_validator(mode="after")
    def _dithered(self) -> Self:
        _dither(self.dither)
        return self


_PROCESSES = (
    Poisson,
    Constant,
    Gamma,
    Renewal,
    Mmpp,
    Diurnal,
    OnOff,
    Bursts,
    BatchPoisson,
    Closed,
    MlPerf,
    Trace,
)

Arrivals = Annotated[
    Annotated[
        Poisson
        | Constant
        | Gamma
        | Renewal
        | Mmpp
        | Diurnal
        | OnOff
        | Bursts
        | BatchPoisson
        | Closed
        | MlPerf
        | Trace,
        Field(discriminator="process"),
    ],
    chosen_by("process", *_PROCESSES),
]


def ends_by_itself(arrivals: Strict) -> bool:
    """Tell whether these arrivals stop without `requests` or `duration`."""
    return isinstance(arrivals, Bursts | Trace | MlPerf)


def mean_rate_rps(arrivals: Strict) -> float:
    """Mean number of requests a second of an open process; 0 where it is unknown."""
    match arrivals:
        case Mmpp():
            weighted = zip(arrivals.rates_rps, arrivals.dwell_ns, strict=True)
            return sum(rate * dwell for rate, dwell in weighted) / sum(arrivals.dwell_ns)
        case OnOff():
            return arrivals.rate_rps * arrivals.on_ns / (arrivals.on_ns + arrivals.off_ns)
        case BatchPoisson():
            return arrivals.rate_rps * law_of(arrivals.size).mean
        case Renewal():
            mean_ns = law_of(arrivals.gap).mean
            return 1e9 / mean_ns if mean_ns else 0.0
        case Poisson() | Gamma() | Diurnal() | Constant():
            return arrivals.rate_rps
    return 0.0
