import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import gesim


def text_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.fixture
def result(tiny):
    return gesim.run(tiny)


def test_parts_add_up_to_the_latency(result):
    frame = result.requests()
    parts = ["frontend_ns", "queue_ns", "host_ns", "transfer_ns", "compute_ns"]
    answered = frame[frame["outcome"] == "ok"]
    assert len(answered) > 100
    assert (answered[parts].sum(axis=1) == answered["latency_ns"]).all()
    assert (answered["finish_ns"] - answered["arrival_ns"] == answered["latency_ns"]).all()
    assert (answered["enqueue_ns"] - answered["arrival_ns"] == 10_000).all()


def test_lost_requests_have_a_reason_and_no_latency(result):
    frame = result.requests()
    lost = frame[frame["outcome"] != "ok"]
    assert set(lost["reason"]) == {"queue_full"}
    assert set(frame[frame["outcome"] == "ok"]["reason"]) == {""}
    assert lost[["latency_ns", "queue_ns", "compute_ns"]].isna().all(axis=None)
    assert (lost["batch"] == -1).all()
    assert len(lost) >= result.summary_dict["all"]["rejected"] > 0


def test_deadlines(result):
    frame = result.requests()
    due = frame[frame["level"] == 1]
    due = due[due["model"] == "small"]
    assert (due["deadline_ns"] - due["arrival_ns"] == 10_000_000).all()
    one_model = gesim.run(result.scenario.set("workload.mix[0].deadline", "5ms")).requests()
    assert one_model["deadline_ns"].dtype == pd.Int64Dtype()


def test_requests_and_batches_agree(result):
    requests, batches = result.requests(), result.batches()
    assert batches["id"].tolist() == list(range(len(batches)))
    answered = requests[requests["outcome"] == "ok"]
    counted = answered.groupby("batch").size()
    assert (counted.reindex(batches["id"]).to_numpy() == batches["requests"].to_numpy()).all()
    of = batches.loc[answered["batch"]].reset_index(drop=True)
    answered = answered.reset_index(drop=True)
    assert (of["model"].astype(str) == answered["model"].astype(str)).all()
    assert (of["start_ns"] == answered["start_ns"]).all()
    assert (of["finish_ns"] + 20_000 == answered["finish_ns"]).all()
    stages = of[["host_ns", "input_ns", "compute_ns", "output_ns"]].sum(axis=1)
    assert (of["start_ns"] + stages == of["finish_ns"]).all()
    assert set(batches["device"]) == {"card0", "card1"}


def test_summary_frame(result):
    frame = result.summary()
    whole = result.summary_dict["all"]
    expected = ["all", "low", "high", "small", "large", "level1", "level2"]
    assert list(frame.columns) == expected
    assert frame.loc["latency_p99_ms", "all"] == whole["latency_p99_ns"] / 1e6
    low, high = whole["intervals"]["latency_mean_ns"]
    assert frame.loc["latency_mean_ms", "low"] == low / 1e6
    assert frame.loc["latency_mean_ms", "high"] == high / 1e6
    assert np.isnan(frame.loc["throughput_rps", "low"])
    assert frame.loc["requests", "all"] == frame.loc["requests", ["small", "large"]].sum()


def test_a_model_may_be_called_low(one):
    frame = gesim.run(one.set("models[0].name", "low")).summary()
    assert list(frame.columns) == ["all", "low", "high", "model low", "level1"]


def test_compare(result, one):
    other = gesim.run(one)
    written = text_of(result.compare(other))
    assert result.label in written
    assert other.label in written
    assert text_of(result.compare(other, other)).count(other.label) >= 2
    for wrong in ((), (other, "x")):
        with pytest.raises(gesim.ResultError, match="takes other results"):
            result.compare(*wrong)


def test_html_in_notebooks(result):
    html = result._repr_html_()
    assert html.count("<table") >= 2
    assert "latency" in html
    assert "<script" not in html
