"""Figures, page, trace, tables: what they say, and that they are what they claim to be."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO, StringIO
from itertools import pairwise

import numpy as np
import pytest
from recorded import busy_run, feed, record
from rich.console import Console

from gesim.metrics.curves import Curves
from gesim.metrics.recorder import Recorder
from gesim.metrics.records import Facts
from gesim.metrics.summary import summarise
from gesim.policies.batching.greedy import Greedy
from gesim.report import figures, perfetto, views
from gesim.report.html import fragment, page
from gesim.report.table import half_width, number, overview, result_table, share, time, two_times
from gesim.scenario.expect import Checked
from gesim.testing.harness import model, play, requests_at

LABEL = "busy: simulated (model), engine simpy, seed 1, gesim 0.1.0"
EXPECTED = [Checked("latency_p99 <= 5ms", False, "8 ms"), Checked("mean_batch > 1", True, "1.7")]


@pytest.fixture(scope="module")
def run():
    requests, played, facts = busy_run(1, 2500)
    records = record(requests, played, facts)
    return records, facts, summarise(records, facts), played


@pytest.fixture(scope="module")
def streamed():
    requests, played, facts = busy_run(1, 2500)
    recorder = Recorder(facts, 300)
    feed(recorder, requests, played, piece=400)
    records = recorder.records(played.end_ns)
    return records, facts, summarise(records, facts), played


@pytest.fixture(scope="module")
def nothing():
    facts = Facts(models=("m",), devices=("d",), instances=((0, 0),))
    records = Recorder(facts).records(0)
    return records, facts, summarise(records, facts), None


RUNS = ("run", "streamed", "nothing")


# ---- views -------------------------------------------------------------------------------


def test_streamed_views_are_those_of_the_whole_run(run, streamed):
    records, facts, _, _ = run
    other = streamed[0]
    x, share_above = views.latency_tail(records, facts)
    y, share_of_stream = views.latency_tail(other, facts)
    for wanted in (0.5, 0.1, 0.01):
        a = x[np.searchsorted(share_above, wanted)]
        b = y[np.searchsorted(share_of_stream, wanted)]
        assert b == pytest.approx(a, rel=0.01)
    for one, two in zip(views.batch_sizes(records), views.batch_sizes(other), strict=True):
        assert one.tolist() == two.tolist()
    means, of_stream = views.part_means(records, facts), views.part_means(other, facts)
    for part, values in means.items():
        assert of_stream[part] == pytest.approx(values, rel=0.02), part


def test_queue_view_has_the_area_and_the_peak(run):
    records, facts, summary, _ = run
    view = views.queue_over_time(records, facts, 37)
    entered = records.arrival_ns + facts.receive_ns
    waited = (np.maximum(records.start_ns, entered) - entered).sum() / 1e9
    assert (view.mean * np.diff(view.edges_s)).sum() == pytest.approx(waited)
    assert view.highest.max() == summary["all"]["max_queue_length"]
    assert (view.lowest <= view.mean + 1e-9).all()
    assert (view.mean <= view.highest + 1e-9).all()


def test_parts_of_a_band_add_up_to_its_latency(run):
    records, facts, _, _ = run
    means = views.part_means(records, facts)
    answered = records.outcome == 1
    latency = np.sort(records.finish_ns + facts.respond_ns - records.arrival_ns)[-1]
    assert latency > 0
    weights = [high - low for _, low, high in views.BANDS]
    total = sum(w * sum(means[part][i] for part in views.PARTS) for i, w in enumerate(weights))
    every = records.finish_ns[answered] + facts.respond_ns - records.arrival_ns[answered]
    assert total == pytest.approx(every.mean() / 1e6)


# ---- figures -----------------------------------------------------------------------------


def drawn(figure):
    """Render; return everything that is written in the figure."""
    out = BytesIO()
    figure.savefig(out, format="png", dpi=40)
    assert out.getvalue().startswith(b"\x89PNG")
    texts = [figure._suptitle.get_text(), figure._supxlabel.get_text()]
    for ax in figure.axes:
        texts += [ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")]
        texts += [text.get_text() for text in ax.texts]
    return texts


@pytest.mark.parametrize("which", RUNS)
def test_every_figure_draws_and_says_who_made_it(which, request):
    records, facts, _, _ = request.getfixturevalue(which)
    series = [(LABEL, records, facts)]
    for figure in (
        figures.latency_cdf(series),
        figures.batch_histogram(series),
        figures.queue_length(series),
        figures.breakdown(records, facts, LABEL),
        figures.timeline(records, facts, LABEL),
    ):
        assert LABEL in drawn(figure)


def test_comparison_names_both(run, streamed):
    other = LABEL.replace("busy", "calm")
    texts = drawn(figures.compare([(LABEL, *run[:2]), (other, *streamed[:2])]))
    assert any(
        "busy: simulated (model)" in text and "calm: simulated (model)" in text for text in texts
    )
    texts = drawn(figures.compare([(LABEL, *run[:2]), (LABEL, *run[:2])]))
    assert any("A: busy" in text and "B: busy" in text for text in texts)


def test_figures_leave_no_global_state(run):
    import matplotlib.pyplot as plt

    figures.latency_cdf([(LABEL, *run[:2])])
    assert plt.get_fignums() == []


def test_figures_of_one_request():
    requests = requests_at([5])
    facts = Facts(models=("m",), devices=("d",), instances=((0, 0),), slo_ns=(1000,))
    played = play([model(Greedy(1))], requests, service_ns=lambda batch: 100)
    records = record(requests, played, facts)
    text = page(LABEL, "", summarise(records, facts), [], records, facts)
    assert "100 ns" in text


def test_targets_are_drawn(run):
    texts = drawn(figures.latency_cdf([(LABEL, *run[:2])]))
    assert "SLO 6.00 ms" in texts or "SLO 6 ms" in texts


# ---- page --------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects text and checks nesting; `outside` are references to anything not in the file."""

    VOID = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.outside, self.ids, self.refs = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self._attributes(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self._attributes(tag, attrs)

    def _attributes(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href"):
                (self.refs if value.startswith("#") else self.outside).append(value)
            self.refs += re.findall(r"url\((#[^)]+)\)", value or "")
        if tag in ("script", "iframe", "link", "img"):
            self.outside.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("which", RUNS)
def test_page_is_whole_and_needs_nothing_from_outside(which, request):
    records, facts, summary, _ = request.getfixturevalue(which)
    text = page(LABEL, "What <it> shows.", summary, EXPECTED, records, facts)
    read = Page(text)
    assert read.outside == []
    assert len(set(read.ids)) == len(read.ids)
    assert {ref[1:] for ref in read.refs} <= set(read.ids)
    assert "url(http" not in text and "@import" not in text
    words = " ".join(read.text)
    for part in ("busy", "What <it> shows.", "simulated (model)", "engine simpy", "seed 1",
                 "gesim 0.1.0", "latency_p99 <= 5ms", "FAILS", "holds", "Little"):  # fmt: skip
        assert part in words, part
    assert text.count("<svg") == 5
    assert len(text) < 1_500_000


def test_page_is_the_same_for_the_same_run(run):
    records, facts, summary, _ = run
    texts = {page(LABEL, "", summary, EXPECTED, records, facts) for _ in range(2)}
    assert len(texts) == 1


def test_page_shows_the_numbers(run):
    records, facts, summary, _ = run
    words = " ".join(Page(page(LABEL, "", summary, [], records, facts)).text)
    assert time(summary["all"]["latency_p99_ns"]) in words
    assert two_times(*summary["all"]["intervals"]["latency_mean_ns"]) in words
    for name in ("model0", "model1", "level1", "level2", "model0.b.2", "queue_full", "timeout"):
        assert name in words
    assert "holds to the nanosecond" in words
    wrong = {**summary, "little": {"equal": False, "area_ns": 1, "sojourns_ns": 2}}
    assert "DOES NOT HOLD" in page(LABEL, "", wrong, [], records, facts)


def test_names_cannot_break_the_page(run):
    records, facts, _, _ = run
    facts = replace(facts, models=('<b>"&', "$x_1$"))
    summary = summarise(records, facts)
    text = page("<i>: simulated (model)", "<script>alert(1)</script>", summary, [], records, facts)
    assert "script" not in Page(text).open
    assert "<script" not in text
    assert "&lt;b&gt;" in text
    json.loads(perfetto.trace(records, facts, "<i>"))


def test_a_partial_run_is_marked(run):
    records, facts, summary, _ = run
    text = page(LABEL + ", PARTIAL", "", summary, [], records, facts)
    assert '<span class="badge bad">PARTIAL</span>' in text


def test_fragment_is_whole(run):
    read = Page(fragment(LABEL, run[2], EXPECTED))
    assert LABEL in " ".join(read.text)


# ---- trace -------------------------------------------------------------------------------


def events(records, facts):
    data = json.loads(perfetto.trace(records, facts, LABEL))
    assert data["otherData"]["made_by"] == LABEL
    return data


def test_trace_has_every_batch_exactly(run):
    records, facts, _, played = run
    data = events(records, facts)
    assert data["otherData"]["shows"] == f"all {len(played.batches)} batches"
    slices = [e for e in data["traceEvents"] if e["ph"] == "X" and "args" in e]
    assert len(slices) == len(played.batches)
    for event in slices:
        batch = played.batches[event["args"]["batch"]]
        assert round(event["ts"] * 1000) == batch.start_ns
        assert round(event["dur"] * 1000) == batch.finish_ns - batch.start_ns
        assert event["args"]["count"] == len(batch.requests)
        assert event["args"]["gear"] == batch.gear
        assert event["name"] == f"model{batch.model} x{batch.items}"


def test_slices_of_a_thread_do_not_overlap(run):
    records, facts, _, _ = run
    threads = {}
    for event in events(records, facts)["traceEvents"]:
        if event["ph"] == "X":
            span = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            threads.setdefault((event["pid"], event["tid"]), []).append(span)
    assert len(threads) == 4 * 5  # four instances: whole, host, input, compute, output
    for spans in threads.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_threads_and_processes_have_names(run):
    records, facts, _, _ = run
    found = events(records, facts)["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert list(processes.values()) == [
        "model model0, simulated (model)", "model model1, simulated (model)",
        "device a, simulated (model)", "device b, simulated (model)",
    ]  # fmt: skip
    for event in found:
        assert event["pid"] in processes
        if event["ph"] in "Xi":
            assert (event["pid"], event["tid"]) in named
        if event["ph"] == "X":
            assert event["dur"] >= 0 <= event["ts"]


def test_counters_follow_the_queue(run):
    records, facts, _, _ = run
    found = [e for e in events(records, facts)["traceEvents"] if e["ph"] == "C"]
    for index, name in enumerate(facts.models):
        mine = [e for e in found if e["name"] == f"queue {name}"]
        assert {e["pid"] for e in mine} == {1 + index}
        times = [e["ts"] for e in mine]
        assert times == sorted(set(times))
        assert mine[-1]["args"]["waiting"] == 0
        assert min(e["args"]["waiting"] for e in mine) == 0


def test_losses_are_marked(run):
    records, facts, _, played = run
    marks = [e for e in events(records, facts)["traceEvents"] if e["ph"] == "i"]
    assert len(marks) == len(played.gone) > 0
    assert {e["name"] for e in marks} == {r.reason for r in played.gone}


def test_long_traces_are_cut_with_a_note(run, monkeypatch):
    records, facts, _, played = run
    monkeypatch.setattr(perfetto, "BATCHES_MAX", 50)
    monkeypatch.setattr(perfetto, "COUNTS_MAX", 20)
    data = events(records, facts)
    assert data["otherData"]["shows"] == f"the first 50 of {len(played.batches)} batches"
    slices = [e for e in data["traceEvents"] if e["ph"] == "X" and "args" in e]
    assert len(slices) == 50
    end = max(e["ts"] + e["dur"] for e in slices)
    assert max(e["ts"] for e in data["traceEvents"] if e["ph"] in "Ci") <= end


def test_turning_points_keep_every_peak():
    length = np.array([0, 1, 2, 3, 2, 1, 2, 2, 1, 0])
    kept = length[perfetto._turning_points(length)]
    assert kept.tolist() == [0, 3, 1, 2, 0] or kept.max() == 3
    assert kept[0] == length[0] and kept[-1] == length[-1]


def test_trace_of_a_streamed_run_says_so(streamed):
    shows = events(*streamed[:2])["otherData"]["shows"]
    assert "not recorded batch by batch" in shows


def test_trace_of_nothing(nothing):
    assert events(*nothing[:2])["otherData"]["shows"] == "all 0 batches"


# ---- tables ------------------------------------------------------------------------------


def printed(renderable):
    console = Console(width=140, record=True, file=StringIO())
    console.print(renderable)
    return console.export_text()


@pytest.mark.parametrize("which", RUNS)
def test_table_prints(which, request):
    _, _, summary, _ = request.getfixturevalue(which)
    text = printed(result_table(LABEL, summary, EXPECTED))
    assert LABEL in text
    assert "FAILS" in text
    if which != "nothing":
        assert time(summary["all"]["latency_p50_ns"]) in text
        assert "model1" in text
        assert "level2" in text
        assert "lost" in text
    assert ("streamed" in text) == (which == "streamed")


def test_names_are_not_markup(run):
    facts = replace(run[1], models=("[red]a[/red]", "[b"))
    text = printed(result_table("[x]: simulated", summarise(run[0], facts), []))
    assert "[red]a[/red]" in text
    assert "[x]: simulated" in text


def test_overview_has_a_row_each(run):
    rows = [("one", run[2], EXPECTED), ("two", run[2], []), ("three", run[2], EXPECTED[1:])]
    text = printed(overview(rows))
    assert "1 FAIL" in text
    assert "holds" in text
    assert text.count(time(run[2]["all"]["latency_p99_ns"])) == 3


def test_words_for_numbers():
    assert number(None) == share(None) == time(None) == "-"
    assert number(12345.6, "/s") == "12,346/s"
    assert number(6.04711) == "6.047"
    assert number(8.0) == "8"
    assert share(0.5) == "50.00%"
    assert two_times(1e6, 2.5e6).endswith("ms")
    assert two_times(1e6, 2.5e6).count("ms") == 1
    assert two_times(500, 2.5e6).count("s") == 2
    assert two_times(1e9, 1e9 + 100) == "±50 ns"
    assert two_times(5e6, 5e6) == time(5e6)
    assert half_width({"x": 1, "intervals": {"x": None}}, "x") == ""
    assert half_width({"x": 2e6, "intervals": {"x": [1e6, 3e6]}}, "x").startswith(" ±1")


def test_curves_on_disk(streamed, tmp_path):
    curves = streamed[0].curves
    curves.save(tmp_path / "curves.npz")
    again = Curves.load(tmp_path / "curves.npz")
    records = replace(streamed[0], curves=again, stream=None)
    one = views.part_means(records, streamed[1])
    assert one == views.part_means(streamed[0], streamed[1])
