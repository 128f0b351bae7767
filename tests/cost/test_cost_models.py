"""Cost models: exact at the points, sane between them, loud beyond them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gesim.cost.affine import Affine
from gesim.cost.empirical import Empirical
from gesim.cost.table import Table
from gesim.cost.work import Work
from gesim.errors import ProfileError
from gesim.laws import Draws, Uniform
from gesim.rng import stream

TIMES = st.integers(1, 10**12)
POINTS = st.dictionaries(st.integers(1, 300), TIMES, min_size=1, max_size=8)
RISING = POINTS.map(lambda p: dict(zip(sorted(p), sorted(p.values()), strict=True)))
SEVERAL = RISING.filter(lambda p: len(p) > 1)


@given(POINTS)
def test_table_is_exact_at_its_points(points):
    table = Table(points)
    assert {size: table.mean_ns(size) for size in points} == points


@given(POINTS, st.data())
def test_table_stays_between_its_neighbours(points, data):
    table = Table(points)
    size = data.draw(st.integers(min(points), max(points)))
    below = max(s for s in points if s <= size)
    above = min(s for s in points if s >= size)
    low, high = sorted((points[below], points[above]))
    assert low <= table.mean_ns(size) <= high


@given(SEVERAL)
def test_table_rises_where_its_points_do(points):
    table = Table(points, extrapolate="linear")
    times = [table.mean_ns(size) for size in range(1, max(points) + 20)]
    assert all(a <= b for a, b in pairwise(times))


@given(POINTS.filter(lambda p: len(p) > 1), st.integers(1, 1000))
def test_extrapolation_keeps_sensible_limits(points, items):
    time_ns = Table(points, extrapolate="linear").mean_ns(items)
    first, last = min(points), max(points)
    if items > last:
        assert time_ns >= points[last]
    elif items < first:
        assert time_ns >= round(points[first] * items / first)


def test_table_interpolates_and_extrapolates_on_lines():
    table = Table({2: 3_000, 4: 5_000, 8: 13_000}, extrapolate="linear")
    assert [table.mean_ns(n) for n in (1, 3, 5, 6, 10)] == [2_000, 4_000, 7_000, 9_000, 17_000]
    steep = Table({8: 1_000, 16: 9_000}, extrapolate="linear")
    assert steep.mean_ns(1) == 125  # the line would be at -6,000
    falling = Table({8: 9_000, 16: 8_000}, extrapolate="linear")
    assert falling.mean_ns(400) == 8_000


def test_nothing_is_made_up_silently():
    table = Table({2: 3_000, 8: 9_000}, name="profile x")
    for items in (1, 9):
        with pytest.raises(ProfileError) as error:
            table.mean_ns(items)
        assert str(error.value) == (
            f"profile x: it has no point for {items} items and does not extrapolate; points are "
            "2, 8; measure it, or write extrapolate: linear"
        )
    with pytest.raises(ProfileError, match="9 items at length 64 and does not"):
        Table({64: {1: 1, 8: 2}, 128: {1: 2, 8: 3}}).mean_ns(9, 50)


def test_lengths_are_padded_up():
    table = Table({64: {1: 10, 8: 20}, 256: {1: 40, 8: 90}})
    assert table.lengths == (64, 256)
    assert [table.mean_ns(8, length) for length in (1, 64, 65, 256)] == [20, 20, 90, 90]
    with pytest.raises(ProfileError, match="length 257 is above the longest compiled one, 256"):
        table.mean_ns(1, 257)
    with pytest.raises(ProfileError, match=r"no length is given \(lengths: 64, 256\)"):
        table.mean_ns(1)
    assert Table({64: {1: 10}}).mean_ns(1) == 10  # nothing to choose


@pytest.mark.parametrize(
    ("points", "extrapolate", "words"),
    [
        ({}, "never", "it has no points"),
        ({64: {}}, "never", "it has no points"),
        ({0: 1}, "never", "point 0: 1 ns cannot be"),
        ({1: -1}, "never", "point 1: -1 ns cannot be"),
        ({1: 1, 64: {1: 1}}, "never", "it mixes points and lengths"),
        ({8: 1}, "linear", "needs two points, it has only 8"),
    ],
)
def test_impossible_tables(points, extrapolate, words):
    with pytest.raises(ProfileError, match=words):
        Table(points, extrapolate=extrapolate)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 1000))
def test_affine_and_work(setup_ns, per_item_ns, items):
    assert Affine(setup_ns, per_item_ns).mean_ns(items) == setup_ns + per_item_ns * items
    assert Work(setup_ns).mean_ns(items, 0, per_item_ns) == setup_ns + per_item_ns


QUANTILES = st.dictionaries(
    st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0]), TIMES, min_size=1
).map(lambda q: dict(zip(sorted(q), sorted(q.values()), strict=True)))
LAWS = st.dictionaries(st.integers(1, 64), QUANTILES, min_size=1, max_size=4)


@given(LAWS)
def test_empirical_is_exact_at_its_quantiles(laws):
    cost = Empirical(laws)
    for size, quantiles in laws.items():
        assert {p: cost.quantile_ns(size, p) for p in quantiles} == quantiles


@given(LAWS, st.data())
def test_empirical_quantiles_rise_and_stay_between_the_sizes(laws, data):
    cost = Empirical(laws)
    items = data.draw(st.integers(min(laws), max(laws)))
    probabilities = sorted(data.draw(st.lists(st.floats(0, 1), min_size=2, max_size=6)))
    times = [cost.quantile_ns(items, p) for p in probabilities]
    assert all(a <= b for a, b in pairwise(times))
    below = max(s for s in laws if s <= items)
    above = min(s for s in laws if s >= items)
    for p, time_ns in zip(probabilities, times, strict=True):
        low, high = sorted((cost.quantile_ns(below, p), cost.quantile_ns(above, p)))
        assert low - 1 <= time_ns <= high + 1


@given(LAWS, st.data())
def test_empirical_mean_is_the_integral_of_its_quantiles(laws, data):
    cost = Empirical(laws)
    items = data.draw(st.integers(min(laws), max(laws)))
    # Every bend lies on the grid of thousandths, so the midpoint rule is exact.
    steps = 1000
    total = sum(cost.quantile_ns(items, (k + 0.5) / steps) for k in range(steps)) / steps
    assert cost.mean_ns(items) == pytest.approx(total, rel=1e-9, abs=2)


def test_empirical_samples_have_its_mean_and_quantiles():
    cost = Empirical(
        {1: {0.0: 1_000, 0.5: 2_000, 0.9: 3_000, 1.0: 9_000}, 8: {0.0: 8_000, 1.0: 16_000}}
    )
    assert cost.mean_ns(1) == 2350  # 0.5 * 1500 + 0.4 * 2500 + 0.1 * 6000
    assert cost.mean_ns(8) == 12_000
    draws = Draws(Uniform(0.0, 1.0), stream(1, "test")).take(40_000)
    times = sorted(cost.quantile_ns(1, u) for u in draws.tolist())
    # Standard error of the mean is 8.4: four of them.
    assert sum(times) / len(times) == pytest.approx(2350, abs=34)
    assert times[20_000] == pytest.approx(2_000, abs=30)
    assert times[36_000] == pytest.approx(3_000, abs=60)


def test_empirical_beyond_its_sizes():
    laws = {2: {0.0: 1_000, 1.0: 3_000}, 4: {0.0: 2_000, 1.0: 4_000}}
    with pytest.raises(ProfileError, match="no quantiles for 8 items and does not extrapolate"):
        Empirical(laws).mean_ns(8)
    cost = Empirical(laws, extrapolate="linear")
    assert cost.mean_ns(8) == 5_000  # means 2,000 and 3,000: 500 an item
    assert cost.quantile_ns(8, 1.0) == round(4_000 * 5 / 3)
    assert cost.mean_ns(1) == 1_500
    with pytest.raises(ProfileError, match="needs two sizes, it has only 2"):
        Empirical({2: laws[2]}, extrapolate="linear")


@pytest.mark.parametrize(
    ("quantiles", "words"),
    [
        ({}, "no batch sizes"),
        ({1: {}}, "must lie in p0..p100"),
        ({1: {0.5: 2, 1.5: 3}}, "must lie in p0..p100"),
        ({1: {0.5: 3, 0.9: 2}}, "must not fall"),
        ({1: {0.5: -3}}, "must not fall"),
    ],
)
def test_impossible_quantiles(quantiles, words):
    with pytest.raises(ProfileError, match=words):
        Empirical(quantiles)
