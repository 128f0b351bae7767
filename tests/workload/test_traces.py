"""Traces: every preset, every kind of file, and what a broken one gets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gesim.errors import GesimError, WorkloadError
from gesim.scenario.build import build
from gesim.scenario.scenario import Scenario
from gesim.workload.describe import describe

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "traces"


def workload(path, seed=1, models=("m",), **spec):
    data = {
        "schema": 1,
        "name": "t",
        "models": [
            {"name": name, "cost": {"kind": "affine", "setup": "1ms", "per_item": "0ms"},
             "priority_levels": 4}
            for name in models
        ],
        "workload": {
            "arrivals": {"process": "trace", "file": str(path), **spec},
            "mix": [{"model": name} for name in models],
        },
    }  # fmt: skip
    return build(Scenario.from_dict(data), seed).workload


def chunk(path, seed=1, models=("m",), **spec):
    chunks = list(workload(path, seed, models, **spec).chunks())
    return {name: np.concatenate([getattr(c, name) for c in chunks]) for name in vars(chunks[0])}


def write(path, text):
    if path.suffix == ".gz":
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        path.write_text(text)
    return path


CSV = "arrival_ns,priority\n5000123,1\n7000456,0\n7000456,2\n9999999,3\n"


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_csv_with_columns(tmp_path, name):
    path = write(tmp_path / name, CSV)
    found = chunk(path, columns={"arrival": "arrival_ns", "unit": "ns", "priority": "priority"})
    assert found["arrival_ns"].tolist() == [0, 2000333, 2000333, 4999876]
    # 0 is Triton's "none given": the model's default level, the least urgent.
    assert found["level"].tolist() == [1, 4, 2, 3]


def test_parquet_and_jsonl_give_the_same(tmp_path):
    frame = pd.DataFrame({"when": [1.5, 2.25, 4.0], "rows": [1, 2, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    columns = {"arrival": "when", "unit": "ms", "items": "rows"}
    data = {"columns": columns, "dither": "none"}
    first = {k: v.tolist() for k, v in chunk_of_two(tmp_path / "t.parquet", data).items()}
    second = {k: v.tolist() for k, v in chunk_of_two(tmp_path / "t.jsonl", data).items()}
    assert first == second
    assert first["arrival_ns"] == [0, 750_000, 2_500_000]
    assert first["items"] == [1, 2, 1]


def chunk_of_two(path, data):
    scenario = Scenario.from_dict(
        {
            "schema": 1,
            "name": "t",
            "models": [
                {"name": "m", "cost": {"kind": "affine", "setup": "1ms", "per_item": "0ms"}}
            ],
            "batching": {"policy": "greedy", "max_batch_size": 4},
            "workload": {"arrivals": {"process": "trace", "file": str(path), **data}},
        }
    )
    (found,) = build(scenario, 1).workload.chunks()
    return vars(found)


def test_azure_preset(tmp_path):
    text = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n"
    )
    path = write(tmp_path / "azure.csv", text)
    found = chunk(path, preset="azure-llm")
    assert found["arrival_ns"].tolist() == [0, 52_000_000]


def test_mooncake_preset(tmp_path):
    lines = [{"timestamp": t, "input_length": 10 * t + 1, "hash_ids": []} for t in (0, 3000, 3000)]
    path = write(tmp_path / "m.jsonl", "\n".join(json.dumps(line) for line in lines))
    assert chunk(path, preset="mooncake")["arrival_ns"].tolist() == [
        0,
        3_000_000_000,
        3_000_000_000,
    ]


def test_alpaserve_preset_merges_models_by_time(tmp_path):
    log = {"b": {"arrive": [0.5, 2.0]}, "a": {"arrive": [1.0]}}
    path = write(tmp_path / "log.json", json.dumps(log))
    found = chunk(path, preset="alpaserve", models=("a", "b"))
    assert found["model"].tolist() == [1, 0, 1]
    assert found["arrival_ns"].tolist() == [0, 500_000_000, 1_500_000_000]
    with pytest.raises(WorkloadError, match="model 'b' is not in the scenario"):
        chunk(path, preset="alpaserve", models=("a", "c"))


def test_counts_are_spread_over_their_second(tmp_path):
    path = write(tmp_path / "counts.csv", "count\n3\n0\n200\n")
    found = chunk(path, preset="counts-per-second")["arrival_ns"]
    assert len(found) == 203
    assert (np.diff(found) >= 0).all()
    again = chunk(path, preset="counts-per-second")["arrival_ns"]
    assert np.array_equal(found, again)
    assert not np.array_equal(found, chunk(path, 2, preset="counts-per-second")["arrival_ns"])


def test_triton_trace_and_perf_analyzer(tmp_path):
    trace = [
        {"id": 1, "model_name": "m", "model_version": 1},
        {"id": 1, "timestamps": [{"name": "REQUEST_START", "ns": 100},
                                 {"name": "QUEUE_START", "ns": 150}]},
        {"id": 2, "model_name": "m", "timestamps": [{"name": "QUEUE_START", "ns": 400}]},
    ]  # fmt: skip
    path = write(tmp_path / "trace.json", json.dumps(trace))
    assert chunk(path, preset="triton-trace")["arrival_ns"].tolist() == [0, 300]
    requests = [{"timestamp": t, "response_timestamps": [t + 100]} for t in (900, 700)]
    export = {"experiments": [{"requests": requests}]}
    path = write(tmp_path / "export.json", json.dumps(export))
    assert chunk(path, preset="perf-analyzer")["arrival_ns"].tolist() == [0, 200]


def test_scale_and_limit(tmp_path):
    path = write(tmp_path / "t.csv", "arrival_ns\n0\n1001\n4003\n")
    assert chunk(path, scale=2)["arrival_ns"].tolist() == [0, 500, 2002]
    assert chunk(path, limit=2)["arrival_ns"].tolist() == [0, 1001]


def test_rounded_stamps_are_dithered_inside_their_tick(tmp_path):
    rng = np.random.default_rng(1)
    stamps = np.repeat(np.sort(rng.choice(1000, 200, replace=False)), 3)
    path = write(tmp_path / "t.csv", "arrival_ms\n" + "\n".join(map(str, stamps)))
    columns = {"arrival": "arrival_ms", "unit": "ms"}
    auto = chunk(path, columns=columns)["arrival_ns"]
    raw = chunk(path, columns=columns, dither="none")["arrival_ns"]
    assert len(np.unique(raw)) == 200
    assert len(np.unique(auto)) == 600
    assert (np.diff(auto) >= 0).all()
    assert (np.abs(auto - raw) <= 1_000_000).all()
    assert np.array_equal(auto, chunk(path, columns=columns)["arrival_ns"])
    exact = write(
        tmp_path / "exact.csv", "arrival_ns\n" + "\n".join(str(1237 * k) for k in range(50))
    )
    assert chunk(exact)["arrival_ns"].tolist() == [1237 * k for k in range(50)]


BROKEN = {
    "unsorted": ("arrival_ns\n5\n9\n7\n", {}, ["not sorted", "row 3", "7", "row 2", "9"]),
    "nan": ("arrival_ns\n5\n\n7\n8\n".replace("\n\n", "\nnan\n"), {}, ["row 2", "arrival_ns"]),
    "empty": ("arrival_ns\n", {}, ["empty"]),
    "negative": ("arrival_ns\n-5\n7\n", {}, ["row 1", "-5", "before time 0"]),
    "text": ("arrival_ns\nfive\n", {}, ["arrival_ns", "does not hold times"]),
    "column": (
        "arrivals,priority\n1,1\n",
        {"columns": {"arrival": "arival", "unit": "ns"}},
        ["no column 'arival'", "did you mean 'arrivals'", "arrivals, priority"],
    ),
    "unit": ("when\n1\n", {"columns": {"arrival": "when"}}, ["unit of column 'when' is open"]),
    "priority": (
        "arrival_ns,p\n1,1\n2,high\n",
        {"columns": {"arrival": "arrival_ns", "unit": "ns", "priority": "p"}},
        ["row 2", "'high'"],
    ),
    "counts": ("count\n1.5\n", {"preset": "counts-per-second"}, ["row 1", "1.5", "whole"]),
    "zero": ("count\n0\n0\n", {"preset": "counts-per-second"}, ["empty"]),
    "json": ("[1, 2", {"preset": "triton-trace"}, ["cannot be read as triton-trace"]),
    "shape": ('{"a": 1}', {"preset": "perf-analyzer"}, ["cannot be read as perf-analyzer"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_traces_get_one_clear_message(tmp_path, name):
    text, spec, wanted = BROKEN[name]
    path = write(tmp_path / "broken.csv", text)
    with pytest.raises(WorkloadError) as caught:
        chunk(path, **spec)
    for fragment in [str(path), *wanted]:
        assert fragment in str(caught.value)


def test_a_missing_file_and_an_unknown_preset(tmp_path):
    with pytest.raises(GesimError, match=r"nowhere\.csv"):
        chunk(tmp_path / "nowhere.csv")
    path = write(tmp_path / "t.csv", CSV)
    with pytest.raises(GesimError, match="azure-llm"):
        chunk(path, preset="azure-lm")


REAL = {
    # rate, CV, and IDC in 1, 10 and 60 s as in the data's own description, which has them of
    # Mooncake's raw stamps and thus calls all below its tick of 3 s an artefact
    "azure-llm": ("AzureLLMInferenceTrace_code.csv.gz", 8_819, 2.567, 13.15, [13.2, 71.6, 164]),
    "mooncake": ("mooncake_conversation_trace.jsonl.gz", 12_031, 3.401, None, [None, None, 2.89]),
}


@pytest.mark.parametrize("preset", REAL)
def test_real_traces_have_their_known_statistics(preset):
    name, count, rate_rps, cv, idc = REAL[preset]
    if not (DATA / name).is_file():
        pytest.skip("the trace is not here (../shared/data/traces)")
    found = describe(workload(DATA / name, preset=preset))
    assert found.requests == count
    assert found.rate_rps == pytest.approx(rate_rps, rel=0.002)
    if cv is not None:
        assert found.cv == pytest.approx(cv, rel=0.002)
    for window, wanted in zip((1, 10, 60), idc, strict=True):
        if wanted is not None:
            assert found.idc[window] == pytest.approx(wanted, rel=0.005)


def test_mooncake_is_smooth_once_its_ticks_are_spread():
    path = DATA / REAL["mooncake"][0]
    if not path.is_file():
        pytest.skip("the trace is not here (../shared/data/traces)")
    found = describe(workload(path, preset="mooncake"))
    assert "rounded to 3s" in found.notes[0]
    assert found.cv == pytest.approx(1.0, abs=0.05)
    raw = describe(workload(path, preset="mooncake", dither="none"))
    assert raw.cv == pytest.approx(3.03, abs=0.01)
    assert raw.notes == ()


def test_real_counts_are_streamed():
    path = DATA / "twitter_per_second_d00_d12.csv.gz"
    if not path.is_file():
        pytest.skip("the trace is not here (../shared/data/traces)")
    counted = workload(path, preset="counts-per-second")
    assert len(counted) == 71_571_977
    found = describe(counted, 2_000_000)
    assert found.requests == 2_000_000
    assert 40 < found.rate_rps < 90


def test_real_alpaserve_log():
    path = DATA / "alpa_cluster_8to2_30Hz_60s_intraop_trace.json.gz"
    if not path.is_file():
        pytest.skip("the trace is not here (../shared/data/traces)")
    with gzip.open(path, "rt") as file:
        models = tuple(sorted(json.load(file)))
    found = chunk(path, preset="alpaserve", models=models)
    gaps = np.diff(found["arrival_ns"])
    assert len(found["arrival_ns"]) == 1_799
    assert gaps.std() / gaps.mean() == pytest.approx(0.976, rel=0.01)
