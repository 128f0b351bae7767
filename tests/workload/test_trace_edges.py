"""Traces that are damaged, or say more than arrivals: what each row asks for is its own."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from gesim.core.decisions import NEVER_NS
from gesim.errors import WorkloadError
from gesim.scenario.build import build
from gesim.scenario.scenario import Scenario

MODELS = [
    {"name": "a", "cost": {"kind": "affine", "setup": "1ms", "per_item": "0ms"}, "slo": "10ms"},
    {"name": "b", "cost": {"kind": "affine", "setup": "1ms", "per_item": "0ms"}, "slo": "70ms",
     "priority_levels": 3},
]  # fmt: skip


def columns_of(path, mix=None, models=MODELS, **spec):
    workload = {"arrivals": {"process": "trace", "file": str(path), **spec}}
    if mix:
        workload["mix"] = mix
    batching = {"policy": "greedy", "max_batch_size": 4}
    data = {"schema": 1, "name": "t", "models": models, "batching": batching, "workload": workload}
    chunks = list(build(Scenario.from_dict(data), 1).workload.chunks())
    return {name: np.concatenate([getattr(c, name) for c in chunks]) for name in vars(chunks[0])}


@pytest.fixture
def named(tmp_path):
    """Sixty requests, every third for b."""
    path = tmp_path / "named.csv"
    rows = "".join(f"{i * 1_000_003},{'aab'[i % 3]}\n" for i in range(60))
    path.write_text("arrival_ns,which\n" + rows)
    return path


NAMED = {"arrival": "arrival_ns", "model": "which"}


def test_a_request_has_the_level_and_deadline_of_its_own_model(named):
    found = columns_of(named, columns=NAMED)
    ours = found["model"] == 1
    assert ours.tolist() == [i % 3 == 2 for i in range(60)]
    assert set(found["level"][ours]) == {3}
    assert set(found["level"][~ours]) == {1}
    due = found["deadline_ns"] - found["arrival_ns"]
    assert set(due[ours]) == {70_000_000}
    assert set(due[~ours]) == {10_000_000}


def test_the_mix_is_drawn_among_the_entries_of_the_rows_model(named):
    mix = [
        {"model": "b", "priority": 1, "items": 2},
        {"model": "a", "items": 3},
        {"model": "b", "priority": 2, "items": 4, "weight": 3},
    ]
    found = columns_of(named, mix, columns=NAMED)
    ours = found["model"] == 1
    assert set(found["items"][~ours]) == {3}
    pairs = list(zip(found["level"][ours].tolist(), found["items"][ours].tolist(), strict=True))
    assert set(pairs) == {(1, 2), (2, 4)}
    assert pairs.count((2, 4)) > pairs.count((1, 2))


def test_a_model_without_an_entry_in_the_mix(named):
    with pytest.raises(WorkloadError, match="row 3: model 'b' has no entry in the mix"):
        columns_of(named, [{"model": "a"}], columns=NAMED)


def test_a_trace_that_does_not_say_which_model(named):
    with pytest.raises(WorkloadError, match="does not say which of a, b"):
        columns_of(named)
    found = columns_of(named, [{"model": "b"}])
    assert set(found["model"]) == {1}


def test_times_of_a_row_keep_their_fractions(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("arrival_ns,due_s,work_ms\n5,0.5,0.25\n6,0,1.5\n7,1.5,0\n")
    found = columns_of(
        path, models=MODELS[:1],
        columns={"arrival": "arrival_ns", "deadline": "due_s", "work": "work_ms"},
    )  # fmt: skip
    assert found["deadline_ns"].tolist() == [500_000_000, NEVER_NS, 1_500_000_002]
    assert found["work_ns"].tolist() == [250_000, 1_500_000, 0]


def test_json_without_a_preset(tmp_path):
    path = tmp_path / "t.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump([{"arrival_us": 3}, {"arrival_us": 5}], file)
    assert columns_of(path, models=MODELS[:1], columns={"arrival": "arrival_us"})[
        "arrival_ns"
    ].tolist() == [0, 2_000]


@pytest.mark.parametrize("second", ["2023-11-16 18:17:04", "2023-11-16T18:17:04.000Z"])
def test_dates_with_a_fraction_only_where_there_is_one(tmp_path, second):
    path = tmp_path / "t.csv"
    zone = "Z" if second.endswith("Z") else ""
    path.write_text(
        f"TIMESTAMP,ContextTokens\n2023-11-16 18:17:03.9799600{zone},1\n{second},1\n"
    )  # fmt: skip
    found = columns_of(path, models=MODELS[:1], preset="azure-llm")
    assert found["arrival_ns"].tolist() == [0, 20_040_000]


def level(value):
    return f"arrival_ns,p\n1,1\n2,{value}\n", {"arrival": "arrival_ns", "priority": "p"}


BROKEN = {
    "level": (*level(7), ["row 2", "7 is no priority level of model 'a'", "priority_levels: 1"]),
    "half a level": (*level(0.5), ["row 2", "0.5", "whole number"]),
    "unit": (
        "t_s\n1700000000000\n1700000000001\n",
        {"arrival": "t_s"},
        ["row 1", "1700000000000", "too large for its unit"],
    ),
    "infinite": ("t_s\n0.5\ninf\n", {"arrival": "t_s"}, ["row 2", "inf", "not a number"]),
    "word": ("t_s\n0.5\nfive\n", {"arrival": "t_s"}, ["row 2", "five", "not a number"]),
    "endless deadline": (
        f"arrival_ns,due\n1,{10**20}\n",
        {"arrival": "arrival_ns", "deadline": "due"},
        ["row 1", str(10**20)],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_values_that_cannot_be(tmp_path, name):
    text, columns, words = BROKEN[name]
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(WorkloadError) as caught:
        columns_of(path, models=MODELS[:1], columns=columns)
    for word in [str(path), *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.jsonl.gz", "t.json.gz"])
@pytest.mark.parametrize("damage", ["cut", "bent", "plain"])
def test_damaged_files(tmp_path, name, damage):
    whole = gzip.compress("".join(f'{{"arrival_ns": {i * i}}}\n' for i in range(3000)).encode())
    bent = whole[:200] + bytes(80) + whole[280:]
    damaged = {"cut": whole[: len(whole) // 2], "bent": bent, "plain": b"arrival_ns\n1\n"}[damage]
    (tmp_path / name).write_bytes(damaged)
    with pytest.raises(WorkloadError, match="cannot be read"):
        columns_of(tmp_path / name, models=MODELS[:1])


@pytest.mark.parametrize("preset", ["alpaserve", "triton-trace", "perf-analyzer"])
@pytest.mark.parametrize("text", ["[1, 2]", '{"a": [1, 2]}', "5", '"a"', "null", '[{"id": 1}, 5]'])
def test_json_of_another_shape(tmp_path, preset, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(WorkloadError, match=f"cannot be read as {preset}"):
        columns_of(tmp_path / "t.json", preset=preset)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"arrival_ns": 1}\n{"arrival_ns": 2\n', "line 2 is not JSON"),
        ("1\n2\n", "must hold objects"),
    ],
)
def test_lines_that_are_no_objects(tmp_path, text, words):
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(WorkloadError, match=words):
        columns_of(tmp_path / "t.jsonl", models=MODELS[:1])
