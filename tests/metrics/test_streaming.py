"""Above the bound on records: the same numbers within the stated error, in bounded memory."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import busy_run, feed, record

from gesim.core.decisions import NEVER_NS
from gesim.metrics.blocks import BLOCKS, Blocks
from gesim.metrics.curves import Curves, curves_of
from gesim.metrics.histogram import (
    BUCKETS,
    RELATIVE_ERROR,
    Counts,
    bucket_of,
    highest,
    lowest,
    middle,
    sums,
)
from gesim.metrics.recorder import Recorder
from gesim.metrics.records import Facts
from gesim.metrics.summary import summarise
from gesim.metrics.timebins import BINS, TimeBins
from gesim.workload.base import Chunk

INT64 = st.integers(0, 2**52)


# ---- buckets -----------------------------------------------------------------------------


@given(st.lists(INT64, min_size=1, max_size=50))
def test_every_value_is_inside_its_bucket_and_within_the_error(values):
    values = np.array(values, np.int64)
    bucket = bucket_of(values)
    assert (lowest(bucket) <= values).all()
    assert (values <= highest(bucket)).all()
    assert (np.abs(middle(bucket) - values) <= RELATIVE_ERROR * values + 1e-9).all()
    assert bucket.max() < BUCKETS


def test_small_values_are_exact_and_buckets_increase():
    values = np.arange(256)
    assert (middle(bucket_of(values)) == values).all()
    steps = np.diff(bucket_of(np.arange(128, 100_000)))
    assert set(steps.tolist()) == {0, 1}  # below, some buckets hold no integer
    assert (np.diff(bucket_of(np.arange(129))) > 0).all()
    assert pytest.approx(1 / 257) == RELATIVE_ERROR


def test_a_century_fits():
    assert int(bucket_of(np.array([100 * 366 * 86400 * 10**9]))[0]) < BUCKETS


@given(st.lists(st.lists(st.integers(0, 60), max_size=30), max_size=12))
def test_sparse_counts_are_those_of_a_dense_array(pieces):
    counts, dense = Counts(), np.zeros(64, np.int64)
    for i, piece in enumerate(pieces):
        counts.add(np.array(piece, np.int64))
        np.add.at(dense, piece, 1)
        if i % 3 == 2:
            counts.settle()
    counts.settle()
    keys, found = counts.within(16, 32)
    again = np.zeros(16, np.int64)
    again[keys] = found
    assert (again == dense[16:32]).all()
    counts.fold(8)  # histograms of 8: merged in pairs
    folded = dense.reshape(4, 2, 8).sum(axis=1).reshape(-1)
    assert counts.counts.sum() == dense.sum()
    assert (folded[counts.keys] == counts.counts).all()


def test_sums_are_exact_beyond_floats():
    values = np.array([2**52 + 1, 2**52 + 1, 1], np.int64)
    assert sums(np.array([1, 1, 0]), values, 2).tolist() == [1, 2**53 + 2]
    assert sums(np.array([1, 1, 0]), np.array([5, 6, 7]), 2).tolist() == [7, 11]


# ---- time bins ---------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**9)), min_size=1, max_size=40),
    st.integers(1, 7),
)
@settings(max_examples=60)
def test_areas_are_exact_at_bin_edges(stays, piece):
    bins = TimeBins({"in": 1, "out": 1})
    for i in range(0, len(stays), piece):
        part = stays[i : i + piece]
        zero = np.zeros(len(part), np.int64)
        bins.add("out", zero, np.array([a + d for a, d in part], np.int64))
        bins.add("in", zero, np.array([a for a, _ in part], np.int64))
    areas = bins.areas("in", "out")[:, 0]
    for edge in (1, 7, BINS // 2, BINS):
        end = edge * bins.width_ns
        expected = sum(max(0, min(a + d, end) - a) for a, d in stays)
        assert int(areas[:edge].sum()) == expected
        assert bins.events("in", 0, edge)[0] == sum(a < end for a, _ in stays)


def test_bins_never_become_more():
    bins = TimeBins({"x": 3})
    bins.add("x", np.array([0, 1, 2]), np.array([0, 10**6, 10**15]), np.array([1, 2, 3]))
    assert len(bins.series["x"].count) == BINS
    assert bins.series["x"].count.sum(axis=0).tolist() == [1, 2, 3]
    assert bins.width_ns * BINS > 10**15 >= bins.width_ns * BINS // 2


# ---- the whole ---------------------------------------------------------------------------


def both(seed, n=12_000, bound=500, **options):
    requests, played, facts = busy_run(seed, n, **options)
    exact = record(requests, played, facts)
    recorder = Recorder(facts, bound)
    feed(recorder, requests, played, piece=700)
    return exact, recorder.records(played.end_ns), facts


def test_numbers_agree_within_the_stated_error():
    exact, streamed, facts = both(3)
    cut = 1024  # 5 % of 12,000 is 600: one whole block of 1,024 is cut
    facts = replace(facts, warmup_ratio=cut / 12_000)
    one, other = summarise(exact, facts), summarise(streamed, facts)
    assert other["rules"]["records"].startswith("streamed")
    assert "the first 1024 requests" in other["rules"]["warmup"]
    assert other["little"] == one["little"]
    for group in ("all", "models", "levels"):
        sections = one[group], other[group]
        if group == "all":
            sections = {"": sections[0]}, {"": sections[1]}
        for name, section in sections[0].items():
            compare(section, sections[1][name])


def compare(one, other):
    """Compare two sections, key by key."""
    assert list(one) == list(other)
    for key, value in one.items():
        found = other[key]
        if key in ("requests", "answered", "rejected", "expired", "dropped", "failed",
                   "unfinished", "reasons", "loss_ratio", "goodput_ratio"):  # fmt: skip
            assert found == value, key
        elif key.endswith(("_mean_ns", "_max_ns")):
            assert found == pytest.approx(value, rel=1e-12), key
        elif key.endswith("_ns"):
            assert found == pytest.approx(value, rel=RELATIVE_ERROR), key
        elif key in ("offered_rps", "throughput_rps", "goodput_rps", "utilisation"):
            assert found == pytest.approx(value, rel=0.01), key  # windows differ by two bins
        elif key in ("mean_batch", "request_mean_batch", "padding_ratio", "mean_queue_length"):
            assert found == pytest.approx(value, rel=0.01, abs=1e-3), key
        elif key == "max_queue_length":
            assert found is None
        elif key == "intervals":
            for name, interval in value.items():
                compare_intervals(name, interval, found[name])


def compare_intervals(name, one, other):
    """Intervals come from different numbers of runs, but are of one size and place."""
    assert (one is None) == (other is None) or "p999" in name, name
    if one is not None and other is not None:
        assert other[0] < one[1], name
        assert one[0] < other[1], name
        width = one[1] - one[0]
        slack = 2 * RELATIVE_ERROR * one[1]
        assert 0.4 * width - slack <= other[1] - other[0] <= 2.5 * width + slack, name


def test_rates_are_exact_inside_the_stated_window():
    exact, streamed, facts = both(5, 6000)
    summary = summarise(streamed, facts)
    start, end = summary["rules"]["window_ns"]
    answers = exact.finish_ns[exact.outcome == 1] + facts.respond_ns
    inside = int(((answers >= start) & (answers < end)).sum())
    assert summary["all"]["throughput_rps"] == inside / ((end - start) / 1e9)
    entered = exact.arrival_ns + facts.receive_ns
    left = np.maximum(exact.start_ns, entered)
    waited = np.maximum(np.minimum(left, end) - np.maximum(entered, start), 0).sum()
    assert summary["all"]["mean_queue_length"] == int(waited) / (end - start)


def test_a_warmup_in_time_is_cut_by_whole_blocks():
    _, streamed, facts = both(6, 6000)
    summary = summarise(streamed, replace(facts, warmup_ratio=0.0, warmup_ns=200_000_000))
    assert summary["all"]["requests"] < 6000
    assert summary["all"]["requests"] % 1024 == 6000 % 1024
    assert "200000000 ns asked for" in summary["rules"]["warmup"]


def test_the_beginning_is_kept_whole():
    exact, streamed, _ = both(7, 3000, bound=500)
    assert len(streamed) == 500
    for name in ("arrival_ns", "start_ns", "finish_ns", "outcome", "model", "level"):
        assert (getattr(streamed, name) == getattr(exact, name)[:500]).all(), name
    ok = streamed.batch >= 0
    assert (streamed.batch_finish_ns[streamed.batch[ok]] == streamed.finish_ns[ok]).all()
    assert [streamed.reasons[c] for c in streamed.reason] == [
        exact.reasons[c] for c in exact.reason[:500]
    ]


def test_how_the_run_is_fed_does_not_matter():
    requests, played, facts = busy_run(8, 3000)
    texts = set()
    for piece, bound in ((100, 500), (1024, 500), (3000, 2999)):
        recorder = Recorder(facts, bound)
        feed(recorder, requests, played, piece=piece)
        summary = summarise(recorder.records(played.end_ns), facts)
        summary["rules"].pop("records")
        texts.add(json.dumps(summary, allow_nan=False))
    assert len(texts) == 1


def test_at_the_bound_everything_is_still_recorded():
    requests, played, facts = busy_run(8, 1000)
    records = record(requests, played, facts, max_records=1000)
    assert records.stream is None
    assert record(requests, played, facts, max_records=999).stream is not None


def test_curves_survive_being_stored():
    exact, streamed, facts = both(9, 4000)
    curves = curves_of(streamed.stream)
    assert curves.requests == 4000
    assert curves.latency_count.sum() == int((exact.outcome == 1).sum())
    assert curves.batch_count.sum() == len(exact.batch_items)
    width = curves.time_ns[1]
    entered = exact.arrival_ns + facts.receive_ns
    waited = (np.maximum(exact.start_ns, entered) - entered).sum()
    assert curves.queue.sum() * width == pytest.approx(waited)
    again = Curves.from_arrays(curves.arrays())
    for name, array in curves.arrays().items():
        assert (getattr(again, name) == array).all()


def chunk(first, n, times):
    ones = np.ones(n, np.int64)
    return Chunk(times, ones * 0, ones, ones, ones * 0, ones * NEVER_NS, ones * 0, ones * 0)


def size_of(recorder):
    """Bytes of all arrays that a recorder holds on to."""
    seen, todo, total = set(), [recorder], 0
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            total += thing.nbytes
        elif isinstance(thing, dict):
            todo += thing.values()
        elif isinstance(thing, list | tuple):
            todo += thing
        elif hasattr(thing, "__dict__"):
            todo += vars(thing).values()
    return total


def test_memory_stops_growing():
    facts = Facts(models=("m",), devices=("d",), instances=((0, 0),))
    recorder = Recorder(facts, max_records=10_000)
    rng = np.random.default_rng(2)
    n, now, sizes = 20_000, 0, []
    for piece in range(24):
        times = now + np.cumsum(rng.integers(1, 2000, n))
        now = int(times[-1])
        recorder.arrivals(chunk(piece * n, n, times))
        ids = np.arange(piece * n, (piece + 1) * n)
        start = times[3::4]
        same = np.full(len(start), 4)
        zero = np.zeros(len(start), np.int64)
        compute = rng.integers(10**5, 10**6, len(start))
        fields = {
            "id": ids[::4] // 4, "model": zero, "instance": zero, "device": zero, "count": same,
            "items": same, "gear": same, "length": zero, "start_ns": start, "host_ns": zero,
            "input_ns": zero, "compute_ns": compute, "output_ns": zero,
            "finish_ns": start + compute,
        }  # fmt: skip
        recorder.take(ids, fields)
        sizes.append(size_of(recorder))
    assert recorder.requests == 480_000
    assert sizes[-1] < 1.5 * sizes[7]
    assert sizes[-1] < 20e6
    summary = summarise(recorder.records(now + 10**6), facts)
    assert summary["all"]["answered"] > 0.9 * 480_000
    assert summary["little"]["equal"]


def test_blocks_double():
    blocks = Blocks(1, 1)
    one = np.array([1])
    for i in range(0, 300_000, 1000):
        ids = np.array([i])
        blocks.reach(i)
        blocks.left(ids, one * 0, ids * 10, one, one, one)
        blocks.parts(ids, one * 0, [ids + 1] * 5)
    assert blocks.size * BLOCKS > 299_000
    assert blocks.outcomes.sum() == blocks.good.sum() == 300
    assert blocks.largest.max() == 299_001
    assert blocks.sums[:, 0, 0].sum() == sum(i + 1 for i in range(0, 300_000, 1000))
    assert blocks.first_ns[0] == 0
    assert sum(blocks.dense(b, [0], 0).sum() for b in range(BLOCKS)) == 300
