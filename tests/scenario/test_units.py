"""Quantities: exact reading, exact writing, messages."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gesim.errors import ScenarioError
from gesim.units import (
    format_bytes,
    format_rate,
    format_time,
    parse_bandwidth,
    parse_bytes,
    parse_number,
    parse_rate_rps,
    parse_ratio,
    parse_time_ns,
    suggest,
    write_bandwidth,
    write_bytes,
    write_rate,
    write_time,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("50ms", 50_000_000),
        ("1.5us", 1_500),
        ("1.5µs", 1_500),
        ("2h", 7_200_000_000_000),
        ("0ms", 0),
        ("0.1ms", 100_000),
        (" 3 s ", 3_000_000_000),
        ("1e3ms", 1_000_000_000),
        ("1_000ms", 1_000_000_000),
        ("1d", 86_400_000_000_000),
    ],
)
def test_times(text, ns):
    assert parse_time_ns(text) == ns


@pytest.mark.parametrize(
    ("value", "fragments"),
    [
        (50, ["50 has no unit", "50ms"]),
        ("50", ["'50' has no unit", "50ms"]),
        (0, ["0 has no unit", "0ms"]),
        ("50 msec", ["unknown unit 'msec'", "did you mean 'ms'"]),
        ("5MB", ["unknown unit 'MB'", "ns, us, ms"]),
        ("-3ms", ["negative"]),
        ("nan", ["not a time"]),
        (math.nan, ["nan", "finite"]),
        (math.inf, ["inf", "finite"]),
        ("", ["not a time"]),
        (None, ["not a time"]),
        (True, ["True is not a time"]),
        ([1], ["not a time"]),
        ("0.1ns", ["shorter than 1 ns"]),
        ("200000d", ["too long"]),
    ],
)
def test_bad_times(value, fragments):
    with pytest.raises(ScenarioError) as caught:
        parse_time_ns(value)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_sizes_rates_bandwidths_and_shares():
    assert parse_bytes("24GiB") == 24 * 2**30
    assert parse_bytes("588kB") == 588_000
    assert parse_rate_rps("150/s") == 150.0
    assert parse_rate_rps("9000/min") == 150.0
    assert parse_rate_rps("36 / h") == 0.01
    assert parse_bandwidth("12GiB/s") == 12 * 2**30
    assert parse_bandwidth("10Gbit/s") == 1.25e9
    assert parse_ratio("5%") == parse_ratio(0.05) == 0.05
    assert parse_number("1e3") == 1000.0


@pytest.mark.parametrize(
    ("parse", "value", "fragment"),
    [
        (parse_bytes, 24, "has no unit"),
        (parse_bytes, "24ms", "unknown unit"),
        (parse_rate_rps, 150, "like 150/s"),
        (parse_rate_rps, "-1/s", "negative"),
        (parse_rate_rps, "150/sec", "did you mean '/s'"),
        (parse_rate_rps, "150rps", "did you mean '/s'"),
        (parse_time_ns, "5 seconds", "did you mean 's'"),
        (parse_time_ns, "5m", "did you mean 'min'"),
        (parse_bytes, "5g", "did you mean 'GiB'"),
        (parse_bandwidth, "10Gbps", "did you mean 'Gbit/s'"),
        (parse_bandwidth, "10GB", "unknown unit"),
        (parse_bandwidth, "0GB/s", "above 0"),
        (parse_ratio, "five", "not a share"),
        (parse_ratio, "-5%", "negative"),
        (parse_ratio, math.nan, "finite"),
        (parse_number, "5ms", "not a number"),
        (parse_number, True, "not a number"),
    ],
)
def test_bad_quantities(parse, value, fragment):
    with pytest.raises(ScenarioError, match=fragment.replace("(", r"\(")):
        parse(value)


@given(st.integers(0, (1 << 62) - 1))
def test_written_times_read_back(ns):
    assert parse_time_ns(write_time(ns)) == ns


@given(st.integers(0, 2**60))
def test_written_sizes_read_back(size):
    assert parse_bytes(write_bytes(size)) == size


@given(st.floats(1e-9, 1e12))
def test_written_rates_and_bandwidths_read_back(value):
    assert parse_rate_rps(write_rate(value)) == value
    assert parse_bandwidth(write_bandwidth(value)) == value


def test_for_people():
    assert format_time(12_345_678) == "12.3 ms"
    assert format_time(999) == "999 ns"
    assert format_time(1_500) == "1.50 us"
    assert format_time(90_000_000_000) == "90 s"
    assert format_bytes(3 * 2**29) == "1.50 GiB"
    assert format_rate(150.0) == "150/s"
    assert format_rate(0.01) == "0.6/min" or format_rate(0.01) == "0.60/min"


def test_suggest():
    options = ["max_batch_size", "policy"]
    assert suggest("max_batchsize", options) == "; did you mean 'max_batch_size'?"
    assert suggest("Policy", options) == "; did you mean 'policy'?"
    assert suggest("zzz", options) == ""
