"""Times of traces: sorting, parts, ticks of all kinds, streamed counts, and what is said of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gesim.errors import GesimError, WorkloadError
from gesim.scenario.build import build
from gesim.scenario.scenario import Scenario
from gesim.workload.trace_times import dithered, spread_counts

LENGTHS = {"kind": "table", "lengths": {64: {1: "1ms"}, 128: {1: "2ms"}}}


def workload(path, seed=1, cost=None, top=None, **spec):
    plain = {"kind": "affine", "setup": "1ms", "per_item": "0ms"}
    data = {
        "schema": 1,
        "name": "t",
        "models": [{"name": "m", "cost": cost or plain, "priority_levels": 3}],
        "workload": {"arrivals": {"process": "trace", "file": str(path), **spec}},
        **(top or {}),
    }
    return build(Scenario.from_dict(data), seed).workload


def columns_of(path, **spec):
    chunks = list(workload(path, **spec).chunks())
    return {name: np.concatenate([getattr(c, name) for c in chunks]) for name in vars(chunks[0])}


def times(path, **spec):
    return columns_of(path, **spec)["arrival_ns"]


def file(tmp_path, header, rows, name="t.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *map(str, rows)]) + "\n")
    return path


# ---- sorting and parts ---------------------------------------------------------------------


def test_rows_are_sorted_with_all_they_say(tmp_path):
    path = file(tmp_path, "arrival_ns,p", ["50,1", "20,2", "20,3", "90,1"])
    with pytest.raises(WorkloadError, match=r"row 2 .*sort: true"):
        times(path)
    columns = {"arrival": "arrival_ns", "priority": "p"}
    made = workload(path, columns=columns, sort=True)
    (chunk,) = made.chunks()
    assert chunk.arrival_ns.tolist() == [0, 0, 30, 70]
    assert chunk.level.tolist() == [2, 3, 1, 1]
    assert made.notes == (
        "trace t.csv: rows were sorted by arrival_ns: 1 came before their predecessors",
    )


def test_messages_name_rows_of_the_file_also_after_sorting(tmp_path):
    path = file(tmp_path, "arrival_ns,p", ["50,1", "20,high", "90,1"])
    with pytest.raises(WorkloadError, match="row 2: p 'high'"):
        times(path, columns={"arrival": "arrival_ns", "priority": "p"}, sort=True)
    path = file(tmp_path, "arrival_ns,p", ["10,1", "50,1", "60,2", "90,5"])
    with pytest.raises(WorkloadError, match="row 4: 5 is no priority level"):
        times(path, columns={"arrival": "arrival_ns", "priority": "p"}, start="45ns")


def test_parts_of_a_trace_hold_the_same_arrivals(tmp_path):
    rng = np.random.default_rng(2)
    path = file(tmp_path, "t_ms", np.sort(rng.integers(0, 900, 2000)))
    columns = {"arrival": "t_ms"}
    whole = times(path, columns=columns)
    assert np.array_equal(times(path, columns=columns, limit=500), whole[:500])
    assert np.array_equal(times(path, columns=columns, top={"requests": 700}), whole[:700])
    later = times(path, columns=columns, start="400ms")
    assert np.array_equal(later, whole[whole >= 400_000_000] - 400_000_000)
    both = times(path, columns=columns, start="400ms", limit=100, scale=2)
    assert np.array_equal(both, np.rint(later[:100] / 2))
    with pytest.raises(WorkloadError, match=r"start 2s is after the last arrival"):
        times(path, columns=columns, start="2s")


def test_a_column_that_was_named_must_be_there(tmp_path):
    path = file(tmp_path, "arrival_ns,prio", ["1,1"])
    with pytest.raises(WorkloadError, match="no column 'pro'; did you mean 'prio'"):
        times(path, columns={"priority": "pro"})
    with pytest.raises(WorkloadError, match="no column 'which'"):
        times(path, columns={"model": "which"})


def test_lengths_beyond_the_profile_are_found_with_their_row(tmp_path):
    path = file(tmp_path, "arrival_ns,len", ["1,64", "2,100", "3,129", "4,500"])
    columns = {"arrival": "arrival_ns", "length": "len"}
    top = {"batching": {"policy": "none"}}
    with pytest.raises(WorkloadError, match=r"row 3: length 129 .* 'm' .* 128 \(2 of 4 rows are\)"):
        columns_of(path, cost=LENGTHS, columns=columns, top=top)
    found = columns_of(path, cost=LENGTHS, columns=columns, limit=2, top=top)
    assert found["length"].tolist() == [64, 100]


def test_requests_made_by_an_ensemble_are_no_arrivals(tmp_path):
    trace = [
        {"id": 1, "model_name": "pipe", "timestamps": [{"name": "REQUEST_START", "ns": 100}]},
        {"id": 2, "parent_id": 1, "model_name": "inner"},
        {"id": 2, "timestamps": [{"name": "REQUEST_START", "ns": 110}]},
        {"id": 3, "model_name": "pipe", "timestamps": [{"name": "REQUEST_START", "ns": 400}]},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    assert times(path, preset="triton-trace").tolist() == [0, 300]


# ---- ticks ---------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
RAW = np.sort(RNG.uniform(0, 300e9, 3000)).astype(np.int64)
UNEVEN = np.repeat(np.arange(200) * 3_000_000_000 + RNG.integers(-2, 3, 200) * 1_000_000, 15)

TICKS = {
    "ms": (RAW // 1_000_000 * 1_000_000, 1_000_000),
    "25 ms": (RAW // 25_000_000 * 25_000_000, 25_000_000),
    "s": (RAW // 1_000_000_000 * 1_000_000_000, 1_000_000_000),
    "minute": (np.repeat(np.arange(30) * 60_000_000_000, 9), 60_000_000_000),
    "a log written every 3 s or so": (UNEVEN - UNEVEN[0], 3_000_000_000),
    "few stamps by chance 4 s apart": (np.repeat([0, 4, 8, 20], 9) * 1_000_000_000, 1_000_000_000),
    "none": (RAW, 0),
    "10 ns": (RAW // 10 * 10, 0),
    "even": (np.arange(500) * 10_000_000, 0),
    "too few": (np.arange(19) ** 2 * 1_000_000, 0),
    "all at once": (np.zeros(100, np.int64), 0),
}


@pytest.mark.parametrize("name", TICKS)
def test_ticks_are_found(name):
    stamps, tick = TICKS[name]
    stamps, notes = stamps - stamps[0], []
    found = dithered(stamps, "auto", 1, notes)
    if not tick:
        assert found is stamps
        assert not notes
        return
    assert len(notes) == 1
    assert (np.diff(found) >= 0).all()
    # The first arrival is moved to 0, all others with it: by less than a tick.
    moved = found - stamps
    assert moved.max() < tick * 1.01
    assert moved.min() > -tick * 1.01
    assert np.ptp(moved) > 0.9 * tick
    assert np.array_equal(found, dithered(stamps, "auto", 1, []))
    assert not np.array_equal(found, dithered(stamps, "auto", 2, []))


def test_dithering_gives_back_what_rounding_took():
    """Poisson arrivals rounded to 1 s have a CV far from 1; spread again they have it."""
    stamps = TICKS["s"][0]
    gaps = np.diff(stamps)
    assert gaps.std() / gaps.mean() > 2
    gaps = np.diff(dithered(stamps - stamps[0], "auto", 1, []))
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.05)


def test_the_result_says_what_was_done(tmp_path):
    import gesim

    rng = np.random.default_rng(2)
    path = file(tmp_path, "t_ms", np.sort(rng.integers(0, 900, 100)))
    data = {
        "schema": 1,
        "models": [{"name": "m", "cost": {"kind": "affine", "setup": "1ms", "per_item": "0ms"}}],
        "workload": {
            "arrivals": {"process": "trace", "file": str(path), "columns": {"arrival": "t_ms"}}
        },
    }
    (warning,) = gesim.run(Scenario.from_dict(data)).warnings
    assert warning == (
        "trace t.csv: its stamps are rounded to 1ms: each arrival was moved to a random place "
        "inside its tick"
    )


# ---- counts --------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=30).filter(any),
    st.integers(0, 20_000_000_000),
)
def test_counts_put_every_request_into_its_second(counts, start_ns):
    whole = np.concatenate(list(spread_counts(np.asarray(counts), 0, 1.0, 7)))
    assert len(whole) == sum(counts)
    assert whole[0] == 0
    assert (np.diff(whole) >= 0).all()
    later = list(spread_counts(np.asarray(counts), start_ns, 1.0, 7))
    expected = whole[whole >= start_ns] - start_ns
    assert np.array_equal(np.concatenate([*later, np.empty(0, np.int64)]), expected)


def test_counts_do_not_depend_on_the_pieces_they_are_drawn_in():
    counts = np.asarray([3, 0, 70_000, 5, 65_530, 4, 1])
    pieces = list(spread_counts(counts, 0, 1.0, 5))
    assert max(map(len, pieces)) <= 65_536
    from gesim.rng import stream

    second = np.repeat(np.arange(len(counts)), counts) * 1_000_000_000
    whole = np.sort(second + stream(5, "dither").integers(0, 1_000_000_000, len(second)))
    assert np.array_equal(np.concatenate(pieces), whole - whole[0])


def test_counts_with_limits_and_settings_that_cannot_be(tmp_path):
    path = file(tmp_path, "count", [5, 0, 7, 2])
    preset = {"preset": "counts-per-second"}
    whole = times(path, **preset)
    assert len(workload(path, **preset)) == len(whole) == 14
    assert np.array_equal(times(path, **preset, limit=6), whole[:6])
    assert np.array_equal(times(path, **preset, scale=2), np.rint(whole / 2))
    assert len(times(path, **preset, top={"duration": "2s"})) == (whole < 2e9).sum()
    assert len(workload(path, **preset, start="2s")) == 9
    with pytest.raises(WorkloadError, match="dither has no effect on counts"):
        times(path, **preset, dither="1ms")
    with pytest.raises(WorkloadError, match="sort has no effect on counts"):
        times(path, **preset, sort=True)
    with pytest.raises(WorkloadError, match="start 9s is after the last arrival"):
        times(path, **preset, start="9s")


@pytest.mark.parametrize("key", [{"sort": "yes"}, {"start": 5}, {"start": "-5s"}])
def test_keys_are_checked(tmp_path, key):
    path = file(tmp_path, "arrival_ns", [1])
    with pytest.raises(GesimError, match=next(iter(key))):
        times(path, **key)
