"""Arrival processes: rates, shapes, endings, and what must never change with the horizon."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gesim.core.decisions import NEVER_NS
from gesim.errors import WorkloadError
from gesim.scenario.build import build
from gesim.scenario.scenario import Scenario
from gesim.workload.describe import describe

COST = {"kind": "affine", "setup": "1ms", "per_item": "0ms"}


def scenario(arrivals, mix=None, cost=None, **top):
    model = {"name": "m", "cost": cost or COST, "priority_levels": 3}
    data = {
        "schema": 1,
        "name": "w",
        "models": [model],
        "workload": {"arrivals": arrivals, **({"mix": mix} if mix else {})},
        **top,
    }
    return Scenario.from_dict(data)


def columns(arrivals, seed=1, mix=None, cost=None, **top):
    """All chunks of a workload, joined."""
    workload = build(scenario(arrivals, mix, cost, **top), seed).workload
    chunks = list(workload.chunks())
    return {name: np.concatenate([getattr(c, name) for c in chunks]) for name in vars(chunks[0])}


def times(arrivals, seed=1, **top):
    return columns(arrivals, seed, **top)["arrival_ns"]


PROCESSES = {
    "poisson": ({"process": "poisson", "rate": "1000/s"}, 1000, 1.0),
    "gamma": ({"process": "gamma", "rate": "1000/s", "cv": 2}, 1000, 2.0),
    "constant": ({"process": "constant", "rate": "1000/s"}, 1000, 0.0),
    "erlang": (
        {"process": "renewal", "gap": {"law": "erlang", "mean": "1ms", "stages": 4}},
        1000,
        0.5,
    ),
    "hyper": (
        {
            "process": "renewal",
            "gap": {"law": "hyperexponential", "means": ["2ms", "32ms"], "first_probability": 0.4},
        },
        50,
        None,
    ),
    "mmpp": (
        {"process": "mmpp", "rates": ["800/s", "40/s"], "dwell": ["20ms", "480ms"]},
        (800 * 20 + 40 * 480) / 500,
        None,
    ),
    "mmpp3": (
        {"process": "mmpp", "rates": ["100/s", "0/s", "500/s"], "dwell": ["1s", "2s", "1s"]},
        (100 * 1 + 500 * 1) / 4,
        None,
    ),
    "on_off": (
        {"process": "on_off", "rate": "1000/s", "on": "100ms", "off": "300ms"},
        250,
        None,
    ),
    "on_off_constant": (
        {"process": "on_off", "rate": "1000/s", "on": "100ms", "off": "300ms", "law": "constant"},
        250,
        None,
    ),
    "diurnal": (
        {"process": "diurnal", "rate": "1000/s", "peak": 3, "period": "10s"},
        1000,
        None,
    ),
    "batch_poisson": (
        {"process": "batch_poisson", "rate": "100/s", "size": {"law": "geometric", "mean": 3}},
        300,
        None,
    ),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_mean_rate_and_burstiness(name):
    arrivals, rate_rps, cv = PROCESSES[name]
    found = times(arrivals, duration="400s")
    assert found.dtype == np.int64
    assert (np.diff(found) >= 0).all()
    assert found[-1] < 400e9
    # Correlated processes are noisier: 8 % covers three standard deviations of the worst.
    assert len(found) / 400 == pytest.approx(rate_rps, rel=0.01 if cv is not None else 0.08)
    if cv is not None:
        gaps = np.diff(found)
        assert gaps.std() / gaps.mean() == pytest.approx(cv, abs=0.02)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_longer_run_starts_with_the_same_arrivals(name):
    arrivals = PROCESSES[name][0]
    short, long = times(arrivals, duration="20s"), times(arrivals, duration="60s")
    assert np.array_equal(long[: len(short)], short)
    assert long[len(short)] >= 20e9
    counted = times(arrivals, requests=777)
    assert np.array_equal(counted, long[:777])


@pytest.mark.parametrize("name", PROCESSES)
def test_same_seed_same_arrivals_other_seed_others(name):
    arrivals = PROCESSES[name][0]
    first = times(arrivals, 5, requests=500)
    assert np.array_equal(first, times(arrivals, 5, requests=500))
    if name != "constant":
        assert not np.array_equal(first, times(arrivals, 6, requests=500))


def test_what_requests_ask_for_does_not_move_their_arrivals():
    arrivals = PROCESSES["poisson"][0]
    plain = columns(arrivals, requests=5000)
    work = {"law": "exponential", "mean": "1ms"}
    mixed = columns(
        arrivals,
        requests=5000,
        mix=[
            {"priority": 1, "weight": 1, "work": work},
            {"priority": 2, "weight": 3, "work": work},
        ],
        cost={"kind": "work"},
    )
    assert np.array_equal(plain["arrival_ns"], mixed["arrival_ns"])
    assert (mixed["level"] == 2).mean() == pytest.approx(0.75, abs=0.02)
    assert mixed["work_ns"].mean() == pytest.approx(1e6, rel=0.05)


def test_rounding_does_not_add_up():
    """A gap of 1/3 us: the mean rate over a million requests is right to a part in a million."""
    found = times({"process": "constant", "rate": "3000000/s"}, requests=1_000_001)
    assert found[-1] == pytest.approx(1e15 / 3e6, abs=1)


def test_bulk_and_bursts_come_in_one_instant():
    bulk = times({"process": "batch_poisson", "rate": "10/s", "size": 8}, requests=800)
    assert len(np.unique(bulk)) == 100
    burst = times({"process": "bursts", "at": ["0ms", "50ms"], "size": 3, "spacing": "10us"})
    assert burst.tolist() == [0, 10_000, 20_000, 50_000_000, 50_010_000, 50_020_000]
    pattern = times({"process": "constant", "rate": "100/s", "burst": 2}, requests=6)
    assert pattern.tolist() == [0, 0, 20_000_000, 20_000_000, 40_000_000, 40_000_000]


def test_diurnal_has_its_peak_at_midday_and_its_week():
    day = times(
        {"process": "diurnal", "rate": "1000/s", "peak": 3, "period": "10s"}, duration="1000s"
    )
    phase = np.histogram(day % 10_000_000_000, bins=50, range=(0, 1e10))[0] / (len(day) / 50)
    assert phase[24:26].mean() == pytest.approx(3.0, rel=0.03)
    assert phase.max() < 3.1
    assert phase[0] < 0.01
    week = {"process": "diurnal", "rate": "100/s", "peak": 1, "period": "10s",
            "weekly": [1, 1, 1, 1, 1, 0.5, 0.5]}  # fmt: skip
    found = times(week, duration="7000s")
    days = np.histogram((found // 10_000_000_000) % 7, bins=7)[0]
    assert days[5:].sum() / days.sum() == pytest.approx(1 / 6, rel=0.03)
    assert len(found) / 7000 == pytest.approx(100, rel=0.01)


def test_deadlines_are_absolute_and_optional():
    arrivals = PROCESSES["poisson"][0]
    with_slo = columns(arrivals, requests=10, slo="50ms")
    assert (with_slo["deadline_ns"] - with_slo["arrival_ns"] == 50_000_000).all()
    assert (columns(arrivals, requests=10)["deadline_ns"] == NEVER_NS).all()


def test_chunks_are_bounded():
    workload = build(scenario(PROCESSES["poisson"][0], requests=200_000), 1).workload
    sizes = [len(chunk) for chunk in workload.chunks()]
    assert sum(sizes) == 200_000
    assert max(sizes) <= 65_536


# ---- closed loops --------------------------------------------------------------------------


def run(arrivals, **top):
    from gesim.experiment.run import run as run_scenario

    return run_scenario(scenario(arrivals, **top)).runs[0].records


def test_clients_wait_for_their_answers():
    records = run({"process": "closed", "clients": 3}, requests=300)
    # One instance, 1 ms each, no thinking: always three in the system, one answer a ms.
    assert len(records) == 300
    order = np.argsort(records.finish_ns)
    assert np.array_equal(records.finish_ns[order], np.arange(1, 301) * 1_000_000)
    sojourn = records.finish_ns - records.arrival_ns
    assert sojourn[3:].min() == sojourn[3:].max() == 3_000_000


def test_thinking_spreads_the_start_and_ends_in_time():
    think = {"law": "exponential", "mean": "20ms"}
    records = run({"process": "closed", "clients": 5, "think": think}, duration="10s")
    assert records.arrival_ns.max() < 10e9
    assert len(np.unique(records.arrival_ns[:5])) == 5


@pytest.mark.parametrize(
    ("kind", "extra", "count"),
    [
        ("single_stream", {"queries": 50}, 50),
        ("multi_stream", {"queries": 20, "samples_per_query": 4}, 80),
        ("offline", {"samples_per_query": 500}, 500),
        ("server", {"rate": "200/s", "queries": 300}, 300),
    ],
)
def test_mlperf_scenarios(kind, extra, count):
    records = run({"process": "mlperf", "scenario": kind, **extra})
    assert len(records) == count
    if kind == "single_stream":
        assert np.array_equal(records.arrival_ns[1:], records.finish_ns[:-1])
    if kind == "multi_stream":
        starts = records.arrival_ns.reshape(20, 4)
        ends = records.finish_ns.reshape(20, 4)
        assert (starts == starts[:, :1]).all()
        assert np.array_equal(starts[1:, 0], ends[:-1].max(axis=1))
    if kind == "offline":
        assert (records.arrival_ns == 0).all()


def test_clients_that_are_turned_away_at_once_for_ever():
    """Each rejection would be followed by the next request in the same instant: no hang."""
    full = {"admission": [{"policy": "bounded_queue", "max_queue_size": 1}]}
    with pytest.raises(WorkloadError, match=r"within one instant .* think time"):
        run({"process": "closed", "clients": 8}, duration="1s", **full)
    # With a respond time the same clients come back later.
    records = run(
        {"process": "closed", "clients": 8}, duration="1s", frontend={"respond": "1ms"}, **full
    )
    assert len(records) > 1000


# ---- bounds --------------------------------------------------------------------------------

BULKY = {
    "offline": ({"process": "mlperf", "scenario": "offline", "samples_per_query": 300_000}, {}),
    "bulks": (
        {"process": "batch_poisson", "rate": "10/s", "size": 5000},
        {"requests": 300_000},
    ),
    "burst of a pattern": (
        {"process": "constant", "rate": "10/s", "burst": 70_000},
        {"requests": 300_000},
    ),
    "bursts": (
        {"process": "bursts", "at": ["5ms", "0ms", "1s"], "size": 100_000, "spacing": "10ns"},
        {},
    ),
}


@pytest.mark.parametrize("name", BULKY)
def test_large_groups_come_in_bounded_chunks(name):
    arrivals, top = BULKY[name]
    chunks = list(build(scenario(arrivals, **top), 1).workload.chunks())
    assert max(map(len, chunks)) <= 65_536
    joined = np.concatenate([chunk.arrival_ns for chunk in chunks])
    assert len(joined) == 300_000
    assert (np.diff(joined) >= 0).all()
    if name == "bursts":
        assert joined[0] == 0
        assert joined[100_000] == 5_000_000
        assert joined[-1] == 1_000_000_000 + 99_999 * 10


def test_bursts_that_overlap_mix():
    found = times({"process": "bursts", "at": ["0ns", "15ns"], "size": 3, "spacing": "10ns"})
    assert found.tolist() == [0, 10, 15, 20, 25, 35]


@pytest.mark.parametrize(
    "arrivals",
    [
        {"process": "on_off", "rate": "10/s", "on": "1ms", "off": "999ms"},
        {"process": "diurnal", "rate": "1/s", "period": "1s"},
        {"process": "mmpp", "rates": ["1/s", "0/s"], "dwell": ["1ms", "1s"]},
    ],
)
def test_a_long_silence_ends_with_the_run(arrivals):
    """Silence is walked through only up to the end, however far the next 16,384 arrivals are."""
    from gesim.workload import processes

    asked = []

    def counted(segments):
        for segment in segments:
            asked.append(segment)
            yield segment

    original, processes_seen = processes.rate_process, []

    def watched(segments, rng, end_ns):
        processes_seen.append(end_ns)
        return original(counted(segments), rng, end_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "rate_process", watched)
        workload = build(scenario(arrivals, duration="3s"), 1).workload
        found = [time for chunk in workload.chunks() for time in chunk.arrival_ns.tolist()]
    assert processes_seen == [3_000_000_000]
    assert all(time < 3e9 for time in found)
    assert len(asked) < 3 * 1440 + 10


def test_gaps_below_a_nanosecond():
    for arrivals in (
        {"process": "renewal", "gap": "0ms"},
        {"process": "poisson", "rate": "2000000000/s"},
    ):
        with pytest.raises(WorkloadError, match="1 ns that times are counted in"):
            build(scenario(arrivals, duration="1s"), 1)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(PROCESSES)),
    st.integers(0, 2**40),
    st.integers(1, 3000),
    st.integers(1, 3000),
)
def test_any_two_horizons_agree(name, seed, some, more):
    arrivals = PROCESSES[name][0]
    short, long = sorted((some, more))
    first, second = (columns(arrivals, seed, requests=n)["arrival_ns"] for n in (short, long))
    assert first.dtype == np.int64
    assert len(second) == long
    assert (np.diff(second) >= 0).all()
    assert np.array_equal(first, second[:short])
    end_ns = int(second[-1])
    if second[0] < end_ns:
        ended = times(arrivals, seed, duration=f"{end_ns}ns")
        assert np.array_equal(ended, second[second < end_ns])


# ---- describing ----------------------------------------------------------------------------


def test_poisson_is_described_as_poisson():
    found = describe(build(scenario(PROCESSES["poisson"][0], requests=300_000), 1).workload)
    assert found.requests == 300_000
    assert found.rate_rps == pytest.approx(1000, rel=0.01)
    assert found.cv == pytest.approx(1, abs=0.01)
    assert found.idc[1] == pytest.approx(1, abs=0.2)
    assert found.span_s == pytest.approx(300, rel=0.01)


def test_mmpp_has_the_dispersion_of_its_theory():
    """IDC(t) of an MMPP(2) with equal stays, rates a, b and total switching rate s (Heffes &
    Lucantoni 1986): 1 + (a - b)^2 / ((a + b) s) * (1 - (1 - e^(-s t)) / (s t))."""
    a, b, dwell_s = 300.0, 20.0, 0.5
    arrivals = {"process": "mmpp", "rates": ["300/s", "20/s"], "dwell": ["500ms", "500ms"]}
    found = describe(build(scenario(arrivals, duration="40000s"), 1).workload)
    s = 2 / dwell_s
    for window, tolerance in ((1, 0.02), (10, 0.06)):
        theory = 1 + (a - b) ** 2 / ((a + b) * s) * (1 - (1 - np.exp(-s * window)) / (s * window))
        assert found.idc[window] == pytest.approx(theory, rel=tolerance)


def test_describe_takes_a_part_and_refuses_what_it_cannot():
    endless = build(scenario(PROCESSES["gamma"][0], duration="30d"), 1).workload
    assert describe(endless, 5000).requests == 5000
    pattern = {"process": "constant", "rate": "2/s"}
    even = describe(build(scenario(pattern, requests=1001), 1).workload)
    assert (even.cv, even.idc[1], even.peak_ratio[10]) == (0, 0, 1)
    assert np.isnan(describe(build(scenario(pattern, requests=3), 1).workload).idc[60])
    with pytest.raises(WorkloadError, match="closed loop"):
        describe(build(scenario({"process": "closed", "clients": 2}, requests=9), 1).workload)
    with pytest.raises(WorkloadError, match="too few"):
        describe(build(scenario(pattern, requests=1), 1).workload)
