"""Times drawn from measured quantiles."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar, Literal

from gesim.errors import ProfileError

__all__ = ["Empirical"]


class Empirical:
    """Compute time by its measured quantiles per batch size, drawn by inversion.

    Between quantiles the law is uniform; below the first and above the last quantile it is
    cut off there, so give p0 and p100 where the tail matters. Between batch sizes the
    quantile functions are interpolated.

    Parameters
    ----------
    quantiles : mapping of int to mapping of float to int
        Items to {probability in 0..1: ns}.
    extrapolate : {"never", "linear"}
        linear: beyond the sizes, scale the nearest size's law by the line through the means,
        with the limits of `Table`.
    gears : tuple of int
    name : str
    """

    kind: ClassVar[str] = "empirical"
    lengths: tuple[int, ...] = ()

    def __init__(
        self,
        quantiles: Mapping[int, Mapping[float, int]],
        *,
        extrapolate: Literal["never", "linear"] = "never",
        gears: tuple[int, ...] = (),
        name: str = "empirical cost",
    ) -> None:
        self.gears = gears
        self.extrapolate = extrapolate
        self.name = name
        if not quantiles:
            raise ProfileError(f"{name}: it has no batch sizes")
        self._sizes = sorted(quantiles)
        self._laws = []
        for size in self._sizes:
            points = sorted(quantiles[size].items())
            times = [time_ns for _, time_ns in points]
            if not points or not 0 <= points[0][0] <= points[-1][0] <= 1:
                raise ProfileError(f"{name}: quantiles of {size} items must lie in p0..p100")
            if times != sorted(times) or times[0] < 0:
                raise ProfileError(f"{name}: quantiles of {size} items must not fall: {times}")
            self._laws.append(points)
        if len(self._sizes) == 1 and extrapolate == "linear":
            raise ProfileError(
                f"{name}: extrapolate: linear needs two sizes, it has only {self._sizes[0]}"
            )
        self._means = [_mean(points) for points in self._laws]

    def mean_ns(self, items: int, length: int = 0, work_ns: int = 0) -> int:
        """Mean compute time of a batch."""
        i, j, share, scale = self._place(items)
        return round(scale * ((1 - share) * self._means[i] + share * self._means[j]))

    def quantile_ns(self, items: int, probability: float) -> int:
        """Compute time at a probability: the inverse of the distribution function."""
        i, j, share, scale = self._place(items)
        low = _quantile(self._laws[i], probability)
        high = _quantile(self._laws[j], probability) if share else low
        return round(scale * ((1 - share) * low + share * high))

    def _place(self, items: int) -> tuple[int, int, float, float]:
        """Return the neighbours' indices, the share of the second, and a scale."""
        sizes = self._sizes
        i = bisect_left(sizes, items)
        if i < len(sizes) and sizes[i] == items:
            return i, i, 0.0, 1.0
        if 0 < i < len(sizes):
            return i - 1, i, (items - sizes[i - 1]) / (sizes[i] - sizes[i - 1]), 1.0
        if self.extrapolate == "never":
            raise ProfileError(
                f"{self.name}: it has no quantiles for {items} items and does not extrapolate; "
                f"sizes are {', '.join(map(str, sizes))}; measure it, or write extrapolate: linear"
            )
        end = 0 if i == 0 else len(sizes) - 1
        a, b = (0, 1) if i == 0 else (-2, -1)
        mean = self._means[end]
        slope = (self._means[b] - self._means[a]) / (sizes[b] - sizes[a])
        least = mean * items / sizes[0] if i == 0 else mean
        wanted = max(mean + slope * (items - sizes[end]), least)
        return end, end, 0.0, wanted / mean if mean else 1.0


def _quantile(points: list[tuple[float, int]], probability: float) -> float:
    i = bisect_right(points, probability, key=lambda point: point[0])
    if i == 0:
        return float(points[0][1])
    if i == len(points):
        return float(points[-1][1])
    (p0, t0), (p1, t1) = points[i - 1], points[i]
    return t0 + (t1 - t0) * (probability - p0) / (p1 - p0)


def _mean(points: list[tuple[float, int]]) -> float:
    """Mean of the law: mass below the first and above the last quantile sits on them."""
    total = points[0][0] * points[0][1] + (1 - points[-1][0]) * points[-1][1]
    for (p0, t0), (p1, t1) in pairwise(points):
        total += (p1 - p0) * (t0 + t1) / 2
    return total
