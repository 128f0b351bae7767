"""Probability laws: of times (in ns), of counts, and of multipliers with mean 1.

Every law samples a block of values from a numpy generator; blocks of any size give the same
sequence only where a law uses a fixed number of draws per value in order, so users of a law
draw in blocks of one fixed size (`Draws`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = [
    "Constant",
    "Draws",
    "Erlang",
    "Exponential",
    "Gamma",
    "Geometric",
    "Hyperexponential",
    "Law",
    "Lognormal",
    "TwoPoint",
    "Uniform",
    "UniformCount",
    "law_of",
]

Floats = NDArray[np.float64]


class Law(Protocol):
    """A distribution of non-negative numbers."""

    @property
    def mean(self) -> float:
        """Mean, in the unit of the samples."""

    @property
    def cv(self) -> float:
        """Coefficient of variation: standard deviation / mean; 0 where the mean is 0."""

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""


@dataclass(frozen=True)
class Constant:
    """Always `value`."""

    value: float

    @property
    def mean(self) -> float:
        """Mean."""
        return self.value

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        return 0.0

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw nothing."""
        return np.full(n, self.value, np.float64)


@dataclass(frozen=True)
class Exponential:
    """Exponential with this mean."""

    mean: float

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        return 1.0

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        return rng.standard_exponential(n) * self.mean


@dataclass(frozen=True)
class Uniform:
    """Uniform between `low` and `high`."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """Mean."""
        return (self.low + self.high) / 2

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        return (self.high - self.low) / sqrt(12) / self.mean if self.mean else 0.0

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        return rng.uniform(self.low, self.high, n)


@dataclass(frozen=True)
class Lognormal:
    """Lognormal by its own mean and coefficient of variation (not of its logarithm)."""

    mean: float
    cv: float

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        variance = log(1 + self.cv**2)
        values: Floats = self.mean * np.exp(rng.standard_normal(n) * sqrt(variance) - variance / 2)
        return values


@dataclass(frozen=True)
class Erlang:
    """Sum of `stages` exponentials of equal mean."""

    mean: float
    stages: int

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        return 1 / sqrt(self.stages)

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        return rng.standard_gamma(self.stages, n) * (self.mean / self.stages)


@dataclass(frozen=True)
class Gamma:
    """Gamma by mean and coefficient of variation."""

    mean: float
    cv: float

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        shape = 1 / self.cv**2
        return rng.standard_gamma(shape, n) * (self.mean / shape)


@dataclass(frozen=True)
class TwoPoint:
    """`high` with probability `high_probability`, else `low`."""

    low: float
    high: float
    high_probability: float

    @property
    def mean(self) -> float:
        """Mean."""
        return self.low + self.high_probability * (self.high - self.low)

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        p = self.high_probability
        spread = (self.high - self.low) * sqrt(p * (1 - p))
        return spread / self.mean if self.mean else 0.0

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        return np.where(rng.random(n) < self.high_probability, self.high, self.low)


@dataclass(frozen=True)
class Hyperexponential:
    """Exponential with one of two means, the first with probability `first_probability`."""

    means: tuple[float, float]
    first_probability: float

    @property
    def mean(self) -> float:
        """Mean."""
        p = self.first_probability
        return p * self.means[0] + (1 - p) * self.means[1]

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        p, (first, second) = self.first_probability, self.means
        square = 2 * (p * first**2 + (1 - p) * second**2)
        return sqrt(square / self.mean**2 - 1)

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        means = np.where(rng.random(n) < self.first_probability, *self.means)
        values: Floats = rng.standard_exponential(n) * means
        return values


@dataclass(frozen=True)
class Geometric:
    """1, 2, 3, ... with this mean."""

    mean: float

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        return sqrt(1 - 1 / self.mean)

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        return rng.geometric(1 / self.mean, n).astype(np.float64)


@dataclass(frozen=True)
class UniformCount:
    """Whole numbers from `low` to `high`, both included, equally likely."""

    low: int
    high: int

    @property
    def mean(self) -> float:
        """Mean."""
        return (self.low + self.high) / 2

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        return sqrt(((self.high - self.low + 1) ** 2 - 1) / 12) / self.mean

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw `n` values."""
        return rng.integers(self.low, self.high, n, endpoint=True).astype(np.float64)


class Draws:
    """An endless sequence of draws of one law, made in blocks of one fixed size.

    Parameters
    ----------
    law : Law
    rng : numpy.random.Generator
        Used by nobody else.
    """

    BLOCK = 16384

    def __init__(self, law: Law, rng: Generator) -> None:
        self.law = law
        self._rng = rng
        self._rest: Floats = np.empty(0)
        self._values: list[float] = []
        self._next = 0

    def block(self) -> Floats:
        """Draw the next whole block (only while `next` has not been used)."""
        return self.law.sample(self._rng, self.BLOCK)

    def take(self, n: int) -> Floats:
        """Return the next `n` draws; do not mix with `next` and `block`."""
        parts = [self._rest[:n]]
        self._rest = self._rest[n:]
        missing = n - len(parts[0])
        while missing > 0:
            self._rest = self.block()
            parts.append(self._rest[:missing])
            self._rest = self._rest[missing:]
            missing -= len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def next(self) -> float:
        """Return the next draw."""
        if self._next == len(self._values):
            self._values = self.law.sample(self._rng, self.BLOCK).tolist()
            self._next = 0
        value = self._values[self._next]
        self._next += 1
        return value


def law_of(spec: Any) -> Law:
    """Make the law that a scenario names.

    Parameters
    ----------
    spec : object
        With a `law` name and the law's parameters as attributes; times end in ``_ns``. Jitter
        laws have no mean (it is 1), and `uniform` jitter has a `spread`.
    """
    name = spec.law
    mean = getattr(spec, "mean_ns", getattr(spec, "mean", 1.0))
    if name == "constant":
        return Constant(getattr(spec, "value_ns", getattr(spec, "value", 1.0)))
    if name == "exponential":
        return Exponential(mean)
    if name == "uniform":
        if hasattr(spec, "spread"):
            return Uniform(1 - spec.spread, 1 + spec.spread)
        if hasattr(spec, "low_ns"):
            return Uniform(spec.low_ns, spec.high_ns)
        return UniformCount(spec.low, spec.high)
    if name == "lognormal":
        return Lognormal(mean, spec.cv)
    if name == "gamma":
        return Gamma(mean, spec.cv)
    if name == "erlang":
        return Erlang(mean, spec.stages)
    if name == "two_point":
        return TwoPoint(spec.low_ns, spec.high_ns, spec.high_probability)
    if name == "hyperexponential":
        return Hyperexponential(tuple(spec.means_ns), spec.first_probability)
    if name == "geometric":
        return Geometric(spec.mean)
    raise ValueError(f"law {name!r} is unknown")
