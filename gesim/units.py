"""Quantities as people write them, and back: `50ms`, `24GiB`, `150/s`, `5%`.

Theory of operation
-------------------
Code counts time in integer nanoseconds, memory in integer bytes, rates in requests a second.
Files and command lines carry the unit with the number, and a bare number where a unit is needed
is an error: nobody has to guess whether ``timeout: 50`` meant ms or us. Numbers are parsed as
exact decimals, so that ``0.1ms`` is 100,000 ns and not a float's neighbour of it.

`format_*` writes what people read (rounded, with a space); `write_*` writes what files carry:
exact, and read back by `parse_*` to the same value.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from decimal import Decimal

from gesim.errors import ScenarioError

__all__ = [
    "format_bytes",
    "format_rate",
    "format_time",
    "parse_bandwidth",
    "parse_bytes",
    "parse_number",
    "parse_rate_rps",
    "parse_ratio",
    "parse_time_ns",
    "suggest",
    "write_bandwidth",
    "write_bytes",
    "write_rate",
    "write_time",
]

TIME_NS: dict[str, int] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
"""Time units in ns. Both code points of the Greek mu are taken."""

SIZE_BYTES: dict[str, int] = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
"""Sizes in bytes: decimal prefixes are powers of 1000, the `i` ones powers of 1024."""

BITS: dict[str, int] = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}

_OTHER_WORDS: dict[str, str] = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "msecs", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "usecs", "micros", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("rps", "qps", "/sec", "/second", "per second", "per s", "hz"), "/s"),
    **dict.fromkeys(("/m", "rpm", "/minute"), "/min"),
    **{prefix: f"{prefix.upper()}iB" for prefix in "kmgt"},
    **{f"{prefix}bps": f"{prefix.upper()}bit/s" for prefix in "mgt"},
}
"""What people write instead (in lower case), and the unit to suggest."""

LATEST_NS = 1 << 62
"""Times beyond this (146 years) would not fit the integers of the records."""

_QUANTITY = re.compile(r"([+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)")


def parse_time_ns(value: object) -> int:
    """Read a time like ``50ms`` as integer ns, rounded to the nearest.

    Raises
    ------
    ScenarioError
        For a bare number, an unknown unit, a negative time, NaN or more than 146 years.
    """
    number, unit = _split(value, "a time", "50ms")
    if unit not in TIME_NS:
        raise _wrong_unit(value, unit, "a time", TIME_NS, number, "ms")
    time_ns = round(number * TIME_NS[unit])
    _not_negative(number, value, "a time")
    if time_ns >= LATEST_NS:
        raise ScenarioError(f"{_shown(value)} is too long: times end at 146 years")
    if number and not time_ns:
        raise ScenarioError(f"{_shown(value)} is shorter than 1 ns, the resolution of time here")
    return time_ns


def parse_bytes(value: object) -> int:
    """Read a size like ``24GiB`` as integer bytes.

    Raises
    ------
    ScenarioError
        For a bare number, an unknown unit or a negative size.
    """
    number, unit = _split(value, "a size", "24GiB")
    if unit not in SIZE_BYTES:
        raise _wrong_unit(value, unit, "a size", SIZE_BYTES, number, "MiB")
    _not_negative(number, value, "a size")
    return round(number * SIZE_BYTES[unit])


def parse_rate_rps(value: object) -> float:
    """Read a rate like ``150/s`` or ``9000/min`` as requests per second.

    Raises
    ------
    ScenarioError
        For a bare number, an unknown unit or a negative rate.
    """
    number, unit = _split(value, "a rate", "150/s")
    per = unit.removeprefix("/").strip() if unit.startswith("/") else ""
    if per not in TIME_NS:
        raise _wrong_unit(value, unit, "a rate", [f"/{u}" for u in TIME_NS], number, "/s")
    _not_negative(number, value, "a rate")
    return float(number * TIME_NS["s"] / TIME_NS[per])


def parse_ratio(value: object) -> float:
    """Read a share like ``5%`` or ``0.05`` as a float (1.0 is all of it).

    Raises
    ------
    ScenarioError
        For anything else, and for a negative share.
    """
    if isinstance(value, str) and value.strip().endswith("%"):
        number, unit = _split(value, "a share", "5%")
        if unit != "%":
            raise ScenarioError(f"{_shown(value)} is not a share; write 5% or 0.05")
        number /= 100
    else:
        number = Decimal(repr(parse_number(value, "a share", "5% or 0.05")))
    _not_negative(number, value, "a share")
    return float(number)


def parse_bandwidth(value: object) -> float:
    """Read a bandwidth like ``12GiB/s`` or ``10Gbit/s`` as bytes per second, above 0.

    Raises
    ------
    ScenarioError
        For a bare number, an unknown unit, zero or less.
    """
    number, unit = _split(value, "a bandwidth", "12GiB/s")
    size = unit.removesuffix("/s").strip() if unit.endswith("/s") else ""
    if size in SIZE_BYTES:
        factor = Decimal(SIZE_BYTES[size])
    elif size in BITS:
        factor = Decimal(BITS[size]) / 8
    else:
        units = [f"{u}/s" for u in (*SIZE_BYTES, *BITS)]
        raise _wrong_unit(value, unit, "a bandwidth", units, number, "GiB/s")
    if number <= 0:
        raise ScenarioError(f"{_shown(value)} is not a bandwidth: it must be above 0")
    return float(number * factor)


def parse_number(value: object, what: str = "a number", example: str = "0.5") -> float:
    """Read a plain finite number; also text such as ``1e3``, which YAML 1.1 leaves a string.

    Raises
    ------
    ScenarioError
        For text with a unit, a boolean, NaN and infinity.
    """
    number: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if number is None:
        raise ScenarioError(f"{_shown(value)} is not {what}; write {example}")
    if not math.isfinite(number):
        raise ScenarioError(f"{_shown(value)} is not {what}: it must be finite; write {example}")
    return number


def format_time(ns: float) -> str:
    """Write a time for people, three significant digits or so: ``12.3 ms``."""
    size = abs(ns)
    for unit, factor in (("h", 3.6e12), ("min", 6e10), ("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if size >= factor * (2 if unit in ("h", "min") else 1):
            return f"{_rounded(ns / factor)} {unit}"
    return f"{_rounded(ns)} ns"


def format_bytes(size_bytes: float) -> str:
    """Write a size for people: ``1.5 GiB``."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if abs(size_bytes) >= SIZE_BYTES[unit]:
            return f"{_rounded(size_bytes / SIZE_BYTES[unit])} {unit}"
    return f"{_rounded(size_bytes)} B"


def format_rate(rate_rps: float) -> str:
    """Write a rate for people: ``150/s``, or per minute or hour where it is small."""
    if rate_rps == 0 or abs(rate_rps) >= 0.1:
        return f"{_rounded(rate_rps)}/s"
    if abs(rate_rps) * 60 >= 0.1:
        return f"{_rounded(rate_rps * 60)}/min"
    return f"{_rounded(rate_rps * 3600)}/h"


def write_time(ns: int) -> str:
    """Write a time exactly, in the largest unit that needs at most three decimals."""
    for unit in ("s", "ms", "us"):
        if abs(ns) >= TIME_NS[unit] and ns * 1000 % TIME_NS[unit] == 0:
            return f"{_plain(Decimal(ns) / TIME_NS[unit])}{unit}"
    return f"{ns}ns" if ns else "0ms"


def write_bytes(size_bytes: int) -> str:
    """Write a size exactly, in the largest binary unit that divides it."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % SIZE_BYTES[unit] == 0:
            return f"{size_bytes // SIZE_BYTES[unit]}{unit}"
    return f"{size_bytes}B"


def write_rate(rate_rps: float) -> str:
    """Write a rate exactly."""
    return f"{_plain(Decimal(repr(rate_rps)))}/s"


def write_bandwidth(bytes_per_s: float) -> str:
    """Write a bandwidth exactly."""
    if bytes_per_s == int(bytes_per_s):
        return f"{write_bytes(int(bytes_per_s))}/s"
    return f"{_plain(Decimal(repr(bytes_per_s)))}B/s"


def suggest(word: str, options: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the option nearest to `word`, or an empty string."""
    names = list(options)
    lower = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    return f"; did you mean {lower[near[0]]!r}?" if near else ""


def _split(value: object, what: str, example: str) -> tuple[Decimal, str]:
    """Split a quantity into its exact number and its unit."""
    if isinstance(value, bool) or value is None:
        raise ScenarioError(f"{_shown(value)} is not {what}; write it like {example}")
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise ScenarioError(f"{_shown(value)} is not {what}: it must be a finite number")
        return Decimal(repr(value)), ""
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ScenarioError(f"{_shown(value)} is not {what}; write it like {example}")
    return Decimal(match[1].replace(",", "").replace("_", "")), match[2]


def _wrong_unit(
    value: object, unit: str, what: str, units: Iterable[str], number: Decimal, usual: str
) -> ScenarioError:
    options = list(units)
    if not unit:
        return ScenarioError(
            f"{_shown(value)} has no unit; {what} needs one, like {_plain(number)}{usual}"
        )
    near = suggest(_OTHER_WORDS.get(unit.lower(), unit), options)
    known = ", ".join(u for u in options if u.isascii())
    return ScenarioError(f"{_shown(value)} is not {what}: unknown unit {unit!r}{near} ({known})")


def _not_negative(number: Decimal, value: object, what: str) -> None:
    if number < 0:
        raise ScenarioError(f"{_shown(value)} is negative; {what} must be 0 or more")


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _plain(number: Decimal) -> str:
    """Write a decimal without exponent and without trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(value: float) -> str:
    """Write with about three significant digits, never in exponent form."""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.3g}"
