"""Distributions in scenario files: times, counts, and multipliers with mean 1 (jitter)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gesim.scenario.fields import (
    Count,
    PositiveNumber,
    PositiveTime,
    Probability,
    Strict,
    TimeNs,
    chosen_by,
    complaint,
)

__all__ = ["CountLaw", "Jitter", "TimeLaw"]


class Constant(Strict):
    """Always the same time. A plain time such as ``5ms`` means this."""

    law: Literal["constant"]
    value_ns: TimeNs


class Exponential(Strict):
    """Exponential with this mean: the memoryless one."""

    law: Literal["exponential"]
    mean_ns: PositiveTime


class Uniform(Strict):
    """Equally likely anywhere between `low` and `high`."""

    law: Literal["uniform"]
    low_ns: TimeNs
    high_ns: TimeNs

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.high_ns < self.low_ns:
            raise complaint("low must not be above high")
        return self


class Lognormal(Strict):
    """Lognormal by mean and coefficient of variation (standard deviation / mean)."""

    law: Literal["lognormal"]
    mean_ns: PositiveTime
    cv: PositiveNumber


class Erlang(Strict):
    """Sum of `stages` equal exponentials; more stages, less spread."""

    law: Literal["erlang"]
    mean_ns: PositiveTime
    stages: Count


class Gamma(Strict):
    """Gamma by mean and coefficient of variation; 1 is exponential."""

    law: Literal["gamma"]
    mean_ns: PositiveTime
    cv: PositiveNumber


class TwoPoint(Strict):
    """`high` with a probability, else `low`."""

    law: Literal["two_point"]
    low_ns: TimeNs
    high_ns: TimeNs
    high_probability: Probability


class Hyperexponential(Strict):
    """One of two exponentials, the first with a probability."""

    law: Literal["hyperexponential"]
    means_ns: Annotated[tuple[PositiveTime, ...], Field(min_length=2, max_length=2)]
    first_probability: Probability


_TIME_LAWS = (
    Constant,
    Exponential,
    Uniform,
    Lognormal,
    Erlang,
    Gamma,
    TwoPoint,
    Hyperexponential,
)


def _constant(value: Any) -> dict[str, Any]:
    return {"law": "constant", "value": value}


TimeLaw = Annotated[
    Annotated[
        Constant | Exponential | Uniform | Lognormal | Erlang | Gamma | TwoPoint | Hyperexponential,
        Field(discriminator="law"),
    ],
    chosen_by("law", *_TIME_LAWS, plain=_constant),
]
"""A time, fixed (``5ms``) or random (``{law: exponential, mean: 5ms}``)."""


class ConstantCount(Strict):
    """Always the same count. A plain number means this."""

    law: Literal["constant"]
    value: Count


class Geometric(Strict):
    """1, 2, 3, ... with this mean: each further one is equally likely to be the last."""

    law: Literal["geometric"]
    mean: PositiveNumber

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if self.mean < 1:
            raise complaint(f"mean {self.mean:g} is below 1, the smallest count")
        return self


class UniformCount(Strict):
    """Equally likely from `low` to `high`, both included."""

    law: Literal["uniform"]
    low: Count
    high: Count

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.high < self.low:
            raise complaint("low must not be above high")
        return self


CountLaw = Annotated[
    Annotated[ConstantCount | Geometric | UniformCount, Field(discriminator="law")],
    chosen_by("law", ConstantCount, Geometric, UniformCount, plain=_constant),
]
"""A count of at least 1, fixed (``4``) or random."""


class ExponentialJitter(Strict):
    """Exponential with mean 1."""

    law: Literal["exponential"]


class LognormalJitter(Strict):
    """Lognormal with mean 1."""

    law: Literal["lognormal"]
    cv: PositiveNumber


class GammaJitter(Strict):
    """Gamma with mean 1."""

    law: Literal["gamma"]
    cv: PositiveNumber


class UniformJitter(Strict):
    """Uniform between 1 - spread and 1 + spread."""

    law: Literal["uniform"]
    spread: Probability


Jitter = Annotated[
    Annotated[
        ExponentialJitter | LognormalJitter | GammaJitter | UniformJitter,
        Field(discriminator="law"),
    ],
    chosen_by("law", ExponentialJitter, LognormalJitter, GammaJitter, UniformJitter),
]
"""What a mean time is multiplied with."""
