"""The summary of a run, against numbers found by hand and by brute force."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded import busy_run, chunk_of, record
from test_statistics import ORACLE, oracle_rows

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome
from gesim.metrics.combine import combine
from gesim.metrics.recorder import Recorder
from gesim.metrics.records import Facts
from gesim.metrics.summary import summarise
from gesim.policies.batching.greedy import Greedy
from gesim.testing.harness import model, play, requests_at

ONE = Facts(models=("m",), devices=("d",), instances=((0, 0),), warmup_ratio=0.0)


def small(**changes):
    """Four requests by hand: 0 alone for 100, then 1 and 2 together for 200, then 3.

    time      0 ... 100 ... 300 ... 400 ... 500
    batch     |  0  |  1 2   |  -    |   3   |
    """
    requests = requests_at([0, 10, 50, 400])
    played = play([model(Greedy(2))], requests, service_ns=lambda batch: 100 * len(batch.requests))
    facts = replace(ONE, **changes)
    return summarise(record(requests, played, facts), facts)


def test_by_hand():
    summary = small(receive_ns=0, respond_ns=5, slo_ns=(255,))["all"]
    # latencies: 105, 295, 255, 105
    assert summary["requests"] == summary["answered"] == 4
    assert summary["latency_mean_ns"] == 190
    assert summary["latency_p50_ns"] == 105
    assert summary["latency_p90_ns"] == summary["latency_max_ns"] == 295
    assert summary["queue_mean_ns"] == (0 + 90 + 50 + 0) / 4
    assert summary["compute_mean_ns"] == (100 + 200 + 200 + 100) / 4
    assert summary["frontend_mean_ns"] == 5
    # window: 0 to the last answer, because that is long after the last arrival
    assert summary["offered_rps"] == 4 / 500e-9
    assert summary["throughput_rps"] == 3 / 500e-9  # the fourth client has it at 505
    assert summary["goodput_ratio"] == 3 / 4
    assert summary["goodput_rps"] == 2 / 500e-9
    assert summary["mean_batch"] == 4 / 3
    assert summary["request_mean_batch"] == (1 + 2 * 2 + 1) / 4
    assert summary["batch_histogram"] == {"1": 2, "2": 1}
    assert summary["padding_ratio"] == 0
    assert summary["utilisation"] == 400 / 500
    assert summary["mean_queue_length"] == (90 + 50) / 500
    assert summary["max_queue_length"] == 2
    assert summary["loss_ratio"] == 0


def test_rules_are_stated():
    rules = small(slo_ns=(255,))["rules"]
    assert rules["records"] == "exact"
    assert rules["slo_ns"] == {"m": 255}
    assert rules["window_ns"] == [0, 500]
    assert "the first 0 of the requests" in rules["warmup"]
    assert small(warmup_ns=20)["rules"]["warmup"] == "requests that arrive before 20 ns are cut (2)"


def test_the_window_of_a_scenario_with_a_duration_is_its_own():
    assert small(duration_ns=450)["rules"]["window_ns"] == [0, 450]
    assert small(duration_ns=450)["all"]["throughput_rps"] == 3 / 450e-9


def test_warmup_cuts_by_arrival():
    summary = small(warmup_ratio=0.25)
    assert summary["all"]["requests"] == 3
    assert summary["rules"]["window_ns"] == [10, 500]
    assert summary["all"]["latency_mean_ns"] == (290 + 250 + 100) / 3
    assert summary["all"]["batches"] == 2
    assert summary["all"]["utilisation"] == 390 / 490


def test_without_a_target_there_is_no_goodput():
    assert small()["all"]["goodput_ratio"] is None
    assert small()["all"]["goodput_rps"] is None


def test_missing_intervals_have_a_reason():
    summary = small()["all"]
    assert summary["intervals"]["latency_mean_ns"] is None
    assert summary["intervals_missing"]["latency_mean_ns"] == "needs at least 100 answers, has 4"


def test_nothing_happened():
    records = Recorder(ONE).records(0)
    summary = summarise(records, ONE)
    assert summary["all"]["requests"] == 0
    assert summary["all"]["latency_mean_ns"] is None
    assert summary["all"]["throughput_rps"] is None
    assert summary["devices"] == {}
    json.dumps(summary, allow_nan=False)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_against_brute_force(seed):
    requests, played, facts = busy_run(seed)
    records = record(requests, played, facts)
    summary = summarise(records, facts)
    counted = requests[len(requests) // 20 :]
    start, end = counted[0].arrival_ns, counted[-1].arrival_ns
    assert summary["rules"]["window_ns"] == [start, end]
    where = {r.id: b for b in played.batches for r in b.requests}
    for scope, section in {
        "all": summary["all"],
        **summary["models"],
        **summary["levels"],
    }.items():
        mine = [r for r in requests if scope in ("all", facts.models[r.model], f"level{r.level}")]
        chosen = [r for r in counted if r in mine]
        ok = [r for r in chosen if r.id in where]
        latency = sorted(where[r.id].finish_ns + 2000 - r.arrival_ns for r in ok)
        assert section["requests"] == len(chosen)
        assert section["answered"] == len(ok)
        assert section["latency_mean_ns"] == sum(latency) / len(latency)
        assert section["latency_p99_ns"] == latency[-(-99 * len(latency) // 100) - 1]
        waits = [where[r.id].start_ns - r.enqueue_ns for r in ok]
        assert section["queue_mean_ns"] == sum(waits) / len(waits)
        assert section["queue_max_ns"] == max(waits)
        lost = Counter(r.reason for r in chosen if r.id not in where)
        assert section["reasons"] == dict(lost)
        kinds = Counter(r.outcome for r in chosen)
        assert section["rejected"] == kinds[Outcome.REJECTED]
        assert section["expired"] == kinds[Outcome.EXPIRED]
        assert section["loss_ratio"] == sum(lost.values()) / len(chosen)
        seconds = (end - start) / 1e9
        answers = [where[r.id].finish_ns + 2000 for r in mine if r.id in where]
        assert section["throughput_rps"] == sum(start < t <= end for t in answers) / seconds
        due = {
            r.id: r.deadline_ns
            if r.deadline_ns < NEVER_NS
            else (r.arrival_ns + 6_000_000 if r.model == 0 else NEVER_NS)
            for r in requests
        }
        targeted = [r for r in chosen if due[r.id] < NEVER_NS]
        on_time = [
            r for r in targeted if r.id in where and where[r.id].finish_ns + 2000 <= due[r.id]
        ]
        assert section["goodput_ratio"] == len(on_time) / len(targeted)
    batches = [b for b in played.batches if b.start_ns >= start]
    sizes = [b.items for b in batches]
    assert summary["all"]["mean_batch"] == sum(sizes) / len(sizes)
    assert summary["all"]["batch_histogram"] == {
        str(size): n for size, n in sorted(Counter(sizes).items())
    }
    assert summary["all"]["padding_ratio"] == 1 - sum(sizes) / sum(b.gear for b in batches)
    busy = [
        sum(max(0, min(b.finish_ns, end) - max(b.start_ns, start)) for b in played.batches
            if b.device == device)
        for device in (0, 1)
    ]  # fmt: skip
    assert summary["devices"]["a"]["mean_running"] == busy[0] / (end - start)
    assert summary["devices"]["a"]["utilisation"] == busy[0] / (end - start) / 2  # 2 streams
    assert summary["devices"]["b"]["utilisation"] == busy[1] / (end - start)
    assert summary["all"]["utilisation"] == sum(busy) / (end - start) / 3
    assert list(summary["instances"]) == [
        "model0.a.0", "model0.a.1", "model0.b.2", "model1.b.3",
    ]  # fmt: skip
    assert min(i["utilisation"] for i in summary["instances"].values()) >= 0


def test_longest_queue_by_walking_through_it():
    requests, played, facts = busy_run(4, models=1, levels=1)
    summary = summarise(record(requests, played, facts), facts)
    left = {r.id: b.start_ns for b in played.batches for r in b.requests}
    left |= {r.id: r.finish_ns for r in played.gone}
    events = [(r.enqueue_ns, 1) for r in requests] + [(max(left[r.id], r.enqueue_ns), 0)
              for r in requests]  # fmt: skip
    length = longest = 0
    for _, entered in sorted(events):
        length += 1 if entered else -1
        longest = max(longest, length)
    assert summary["all"]["max_queue_length"] == longest


@pytest.mark.parametrize("seed", range(5))
def test_littles_law_holds_to_the_nanosecond(seed):
    requests, played, facts = busy_run(seed, 1500)
    little = summarise(record(requests, played, facts), facts)["little"]
    assert little["equal"]
    assert little["area_ns"] == little["sojourns_ns"] > 0


def test_littles_law_notices_a_missing_request():
    """The area comes from the batches' book, the sojourns from the requests'."""
    requests, played, facts = busy_run(1, 500)
    records = record(requests, played, facts)
    records.batch_count[len(records.batch_count) // 2] -= 1
    assert not summarise(records, facts)["little"]["equal"]


@pytest.mark.skipif(not ORACLE.exists(), reason="the oracle's table is not beside this checkout")
def test_finite_windows_of_the_oracle():
    for row in oracle_rows("H6"):
        params = json.loads(row["params"])
        times = params["batch_ns"]
        requests = requests_at(params["arrival_ns"])
        played = play(
            [model(Greedy(len(times)))], requests, service_ns=lambda b, t=times: t[b.items - 1]
        )
        records = record(requests, played, ONE)
        summary = summarise(records, ONE)
        found = {
            "area_ns": summary["little"]["area_ns"],
            "last_completion_ns": int(records.batch_finish_ns.max()),
            "busy_ns": int((records.batch_finish_ns - records.batch_start_ns).sum()),
            "batch_sizes": records.batch_count.tolist(),
        }
        assert summary["little"]["equal"]
        assert found[row["metric"]] == json.loads(row["value"]), row


def test_same_records_same_bytes():
    requests, played, facts = busy_run(9, 800)
    texts = {
        json.dumps(summarise(record(requests, played, facts), facts), allow_nan=False)
        for _ in range(2)
    }
    assert len(texts) == 1


def test_a_stopped_run_leaves_out_what_had_not_arrived():
    requests = requests_at([0, 10, 50, 400, 900])
    played = play([model(Greedy(2))], requests[:4], service_ns=lambda batch: 100)
    recorder = Recorder(ONE)
    recorder.arrivals(chunk_of(requests))  # drawn beforehand
    recorder.batch(played.batches[0])  # stopped at 120
    records = recorder.records(120, interrupted=True)
    assert len(records) == 3
    assert records.outcome.tolist() == [1, 5, 5]
    summary = summarise(records, ONE)
    assert summary["all"]["unfinished"] == 2
    assert summary["rules"]["window_ns"] == [0, 120]
    assert summary["little"]["equal"]


def test_batches_stand_in_order_of_start_whatever_order_they_finish_in():
    requests, played, facts = busy_run(2, 600)
    records = record(requests, played, facts)
    assert records.batch_start_ns.tolist() == [b.start_ns for b in played.batches]
    for request in (requests[100], requests[300]):
        batch = records.batch[request.id]
        if batch >= 0:
            assert request in played.batches[batch].requests


def test_replications_are_combined():
    summaries = []
    for seed in range(4):
        requests, played, facts = busy_run(seed, 1500)
        summaries.append(summarise(record(requests, played, facts), facts))
    made = combine(summaries)
    values = [s["all"]["latency_mean_ns"] for s in summaries]
    assert made["all"]["latency_mean_ns"] == pytest.approx(np.mean(values))
    low, high = made["all"]["intervals"]["latency_mean_ns"]
    half = 3.18245 * np.std(values, ddof=1) / 2
    assert (high - low) / 2 == pytest.approx(half, rel=1e-5)
    assert made["replications"] == 4
    assert made["all"]["intervals_missing"] == {}
    assert list(made["all"]) == list(summaries[0]["all"])
    assert made["little"]["equal"]
    assert made["rules"]["interval"] == "Student across 4 replications"
    histograms = [s["all"]["batch_histogram"] for s in summaries]
    assert made["all"]["batch_histogram"]["2"] == np.mean([h["2"] for h in histograms])
    assert list(made) >= list(summaries[0])
    json.dumps(made, allow_nan=False)
    assert combine(summaries[:1]) is summaries[0]


def test_every_metric_that_expectations_may_name_is_there():
    from gesim.scenario.expect import METRICS

    section = small(slo_ns=(10,))["all"]
    for name, kind in METRICS.items():
        assert name + {"time": "_ns", "rate": "_rps"}.get(kind, "") in section


def test_no_module_of_metrics_imports_heavy_libraries_at_the_top():
    folder = Path(__file__).parents[2] / "gesim" / "metrics"
    for file in folder.glob("*.py"):
        for line in file.read_text(encoding="utf-8").splitlines():
            assert not line.startswith(("import scipy", "from scipy", "import pandas"))
