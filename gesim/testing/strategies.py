"""Hypothesis strategies for property tests of policies (needs the `test` extra)."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import strategies as st

from gesim.core.request import Request

__all__ = ["arrival_times", "gears", "requests"]


def arrival_times(max_size: int = 40, max_gap_ns: int = 2_000_000) -> st.SearchStrategy[list[int]]:
    """Increasing arrival times, int ns; ties are common, as are gaps of all sizes."""
    gap = st.one_of(st.just(0), st.integers(1, 3), st.integers(0, max_gap_ns))
    return st.lists(gap, max_size=max_size).map(lambda gaps: list(accumulate(gaps)))


def gears(largest: int = 32) -> st.SearchStrategy[tuple[int, ...]]:
    """Compiled batch sizes, increasing; possibly none."""
    sizes = st.sets(st.integers(1, largest), max_size=5)
    return sizes.map(lambda chosen: tuple(sorted(chosen)))


@st.composite
def requests(
    draw: st.DrawFn,
    max_size: int = 40,
    levels: int = 3,
    max_items: int = 1,
    max_timeout_ns: int = 0,
) -> list[Request]:
    """Draw requests of one model, in order of arrival."""
    times_ns = draw(arrival_times(max_size))
    return [
        Request(
            number,
            0,
            at_ns,
            at_ns,
            level=draw(st.integers(1, levels)),
            items=draw(st.integers(1, max_items)),
            timeout_ns=draw(st.integers(0, max_timeout_ns)),
        )
        for number, at_ns in enumerate(times_ns)
    ]
