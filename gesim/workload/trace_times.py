"""When the requests of a trace came: columns of times or counts become sorted int ns.

Theory of operation
-------------------
Rounded stamps are *dithered*: on a trace with 1-ms stamps the tie rule alone moved the mean
batch from 9.0 to 12.5, so each arrival is spread uniformly inside its tick by a named stream,
and the order inside a tick is that of the draws. The tick is found from the greatest common
divisor of all stamps, or from stamps that cluster. Counts are spread over their second in the
same way, a bounded number of seconds at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gesim.errors import WorkloadError
from gesim.rng import stream
from gesim.units import parse_time_ns, suggest, write_time

__all__ = ["MOST_NS", "UNITS", "column", "counts_of", "dithered", "spread_counts", "times_of"]

Int = NDArray[np.int64]

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

MOST_NS = 2**61
"""Above it int64 ns would wrap around: the unit is probably not what it is called."""

_SECOND_NS = 1_000_000_000
_STAMPS = 20
_MOST = 65_536


def column(path: Path, table: pd.DataFrame, name: str) -> pd.Series[Any]:
    """Return a column of a trace.

    Raises
    ------
    WorkloadError
        With the nearest name if there is none.
    """
    if name not in table.columns:
        known = [str(one) for one in table.columns]
        raise WorkloadError(
            f"{path}: there is no column {name!r}{suggest(name, known)} "
            f"(columns: {', '.join(known)}); say which with columns: {{arrival: ..., unit: ...}}"
        )
    return table[name]


def times_of(path: Path, table: pd.DataFrame, columns: dict[str, str]) -> Int:
    """Arrival times in ns, in the order of the file.

    Raises
    ------
    WorkloadError
        If one is missing, negative or no time.
    """
    name = columns.get("arrival", "arrival_ns")
    raw = column(path, table, name)
    unit = columns.get("unit") or next((u for u in UNITS if name.endswith(f"_{u}")), None)
    if unit is None:
        raise WorkloadError(
            f"{path}: the unit of column {name!r} is open; write columns: {{arrival: {name}, "
            "unit: ns|us|ms|s|datetime}"
        )
    wrong = np.flatnonzero(raw.isna())
    if len(wrong):
        raise WorkloadError(f"{path}: row {wrong[0] + 1}: column {name!r} has no value (NaN)")
    try:
        times = _datetimes(raw) if unit == "datetime" else _counted(path, raw, UNITS[unit])
    except (ValueError, TypeError) as error:
        why = str(error).splitlines()[0]
        raise WorkloadError(f"{path}: column {name!r} does not hold times: {why}") from None
    if (times < 0).any():
        row = int(np.flatnonzero(times < 0)[0])
        raise WorkloadError(f"{path}: row {row + 1}: {name} is {raw.iloc[row]}, before time 0")
    return times


def _datetimes(raw: pd.Series[Any]) -> Int:
    """Read dates; of ISO 8601 also such as write a fraction only where there is one."""
    try:
        stamps = pd.to_datetime(raw, format="ISO8601")
    except (ValueError, TypeError):
        stamps = pd.to_datetime(raw)
    times: Int = stamps.to_numpy("datetime64[ns]").astype(np.int64)
    return times


def _counted(path: Path, raw: pd.Series[Any], unit_ns: int) -> Int:
    """Read numbers of a unit since any moment."""
    numbers = pd.to_numeric(raw, errors="coerce")
    values = numbers.to_numpy(np.float64)
    wrong = np.flatnonzero(~(np.abs(values) <= MOST_NS / unit_ns))
    if len(wrong):
        row = int(wrong[0])
        why = "too large for its unit" if np.isfinite(values[row]) else "not a number"
        raise WorkloadError(
            f"{path}: column {raw.name!r} does not hold times: row {row + 1}: {raw.iloc[row]} is "
            f"{why}"
        )
    if pd.api.types.is_integer_dtype(numbers):
        exact: Int = numbers.to_numpy(np.int64) * unit_ns
        return exact
    # Apart: float seconds since 1970 have no digits left for ns.
    whole = np.floor(values)
    inside: Int = np.rint((values - whole) * unit_ns).astype(np.int64)
    inside += whole.astype(np.int64) * unit_ns
    return inside


# ---- counts --------------------------------------------------------------------------------


def counts_of(path: Path, table: pd.DataFrame, name: str) -> Int:
    """Read the requests of each second.

    Raises
    ------
    WorkloadError
        If one is not a whole number of 0 or more, or all are 0.
    """
    raw = column(path, table, name)
    values = pd.to_numeric(raw, errors="coerce").to_numpy(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0) | (values != np.floor(values)))
    if len(wrong):
        row = int(wrong[0])
        raise WorkloadError(
            f"{path}: row {row + 1}: count {raw.iloc[row]!r} is not a whole number of 0 or more"
        )
    counts = values.astype(np.int64)
    if not counts.any():
        raise WorkloadError(f"{path}: all counts are 0: the trace is empty")
    return counts


def spread_counts(counts: Int, start_ns: int, scale: float, seed: int) -> Iterator[Int]:
    """Spread each second's count uniformly over the second.

    Parameters
    ----------
    counts : array
        Requests of second 0, 1, ...; not all 0.
    start_ns : int
        Of the first arrival's time on this much is left out, and time starts there.
    scale : float
        Times are divided by it.
    seed : int
        Arrivals do not depend on how many are taken.

    Yields
    ------
    array
        Sorted times in ns, a bounded number each.
    """
    rng = stream(seed, "dither")
    ends = np.cumsum(counts)
    first, zero_ns = 0, -1
    while first < len(counts):
        done = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, done + _MOST, side="right")), first + 1)
        seconds = np.repeat(np.arange(first, last, dtype=np.int64), counts[first:last])
        first = last
        times = np.sort(seconds * _SECOND_NS + rng.integers(0, _SECOND_NS, len(seconds)))
        if zero_ns < 0 and len(times):
            zero_ns = int(times[0]) + start_ns
        times = times[np.searchsorted(times, zero_ns) :] - zero_ns
        for at in range(0, len(times), _MOST):
            yield rescaled(times[at : at + _MOST], scale)


def rescaled(times: Int, scale: float) -> Int:
    """Divide times by a scale."""
    return times if scale == 1.0 else np.rint(times / scale).astype(np.int64)


# ---- rounded stamps ------------------------------------------------------------------------


def dithered(times: Int, wanted: str, seed: int, notes: list[str]) -> Int:
    """Spread rounded stamps inside their tick.

    Parameters
    ----------
    times : array
        Sorted, the first one 0.
    wanted : str
        ``auto``, ``none``, or the tick as a time.
    seed : int
    notes : list of str
        Gets a sentence if stamps were moved.
    """
    if wanted == "none" or len(times) < 2:
        return times
    tick = _tick(times) if wanted == "auto" else parse_time_ns(wanted)
    if tick < 2:
        return times
    why = (
        f"its stamps are rounded to {write_time(tick)}" if wanted == "auto" else f"dither {wanted}"
    )
    notes.append(f"{why}: each arrival was moved to a random place inside its tick")
    spread = np.sort(times + stream(seed, "dither").integers(0, tick, len(times)))
    moved: Int = spread - spread[0]
    return moved


def _tick(times: Int) -> int:
    """Find the tick that stamps were rounded to; 0 if they were not, or not coarser than 1 us.

    Many stamps all on a tick by chance are rare. A tick is a round number, 3 s or 25 ms, and
    stamps that are evenly spaced, each once, are no rounded ones.
    """
    gaps = np.diff(times)
    gaps = gaps[gaps > 0]
    if len(times) < _STAMPS or not len(gaps):
        return 0
    common = int(np.gcd.reduce(gaps))
    if len(gaps) + 1 < _STAMPS:  # few stamps, many ties: their divisor may be chance
        return 60 * _SECOND_NS if common % (60 * _SECOND_NS) == 0 else _power_of_ten(common)
    if len(gaps) + 1 == len(times) and bool((gaps == common).all()):
        return 0
    uneven = _uneven_tick(gaps, len(times))
    if uneven:
        return uneven
    rounded = common >= 1_000 and common == _round_number(common)
    return common if rounded else _power_of_ten(common)


def _uneven_tick(gaps: Int, arrivals: int) -> int:
    """Find a tick whose stamps are a little off, as of a log that is written every 3 s.

    Most arrivals then share their stamp with others, and all stamps are whole ticks apart, to
    1 % of one.
    """
    tick = _round_number(int(np.median(gaps)))
    if tick < 1_000 or 2 * len(gaps) > arrivals:
        return 0
    off = np.abs(gaps - np.maximum(np.rint(gaps / tick), 1.0) * tick)
    return tick if float(off.max()) <= 0.01 * tick else 0


def _round_number(value: int) -> int:
    """Round to two digits."""
    return int(round(value, 2 - len(str(value))))


def _power_of_ten(common: int) -> int:
    tick = 1
    while common % (10 * tick) == 0:
        tick *= 10
    return tick if tick >= 1_000 else 0
