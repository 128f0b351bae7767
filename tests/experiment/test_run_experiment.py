import json
import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from matplotlib.text import Text
from scipy import stats

import gesim
from gesim.experiment import memory
from gesim.experiment.folder import summary_text
from gesim.experiment.memory import beginning, bound_records
from gesim.metrics.records import Records
from gesim.rng import derived_seed


def text_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@dataclass
class Pairs(gesim.BatchingPolicy):
    """Two at a time, or what is there after a while.

    Parameters
    ----------
    max_batch_size : int
        Most items in a batch.
    """

    name: ClassVar[str] = "pairs"
    max_batch_size: int

    def decide(self, now_ns, queue):
        end_ns = queue.oldest_enqueue_ns + 5_000_000
        if queue.items >= 2 or end_ns <= now_ns:
            return gesim.Dispatch(queue.fit(2))
        return gesim.Wait(end_ns, 2)


# ---- one run -------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_summary(tiny):
    first, again = gesim.run(tiny), gesim.run(tiny)
    assert summary_text(first) == summary_text(again)
    assert summary_text(gesim.run(tiny, seed=8)) != summary_text(first)


def test_seed_of_the_scenario_or_of_the_run(tiny):
    by_run, by_scenario = gesim.run(tiny, seed=8), gesim.run(tiny.set("seed", 8))
    assert by_run.seed == by_scenario.seed == 8
    assert by_run.summary_dict == by_scenario.summary_dict


def test_a_path_will_do(tmp_path, one):
    import yaml

    file = tmp_path / "one.yaml"
    file.write_text(yaml.safe_dump(one.resolved()))
    assert gesim.run(file).summary_dict == gesim.run(str(file)).summary_dict


def test_label_says_who_made_it(tiny):
    result = gesim.run(tiny, engine="simpy")
    expected = f"tiny: simulated (model), engine simpy, seed 7, gesim {gesim.__version__}"
    assert result.label == expected
    for figure in (
        result.latency_cdf(),
        result.timeline(),
        result.batch_histogram(),
        result.queue_length(),
        result.breakdown(),
    ):
        assert expected in text_of(figure)
    assert expected in result._repr_html_()
    assert expected in repr(result)


def test_expectations_decide_whether_it_is_ok(tiny):
    assert gesim.run(tiny).ok
    failing = gesim.run(tiny.set("expect", ["latency_p99 <= 1us", "answered > 10"]))
    assert not failing.ok
    assert [one.holds for one in failing.expectations] == [False, True]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fidelity": "device"}, "fidelity 'device' is not available (available now: model)"),
        ({"fidelity": "modle"}, "did you mean 'model'"),
        ({"replications": 0}, "replications is 0"),
        ({"replications": 1.5}, "replications is 1.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "whole number from 0"),
        ({"seed": True}, "seed is True"),
        ({"engine": "simpi"}, "engine 'simpi' is unknown; did you mean 'simpy'?"),
    ],
)
def test_settings_that_cannot_be_met(one, settings, message):
    with pytest.raises(gesim.ScenarioError) as caught:
        gesim.run(one, **settings)
    assert message in str(caught.value)


def test_something_else_than_a_scenario():
    with pytest.raises(gesim.ScenarioError, match="not dict"):
        gesim.run({"schema": 1})


def test_invariants_are_checked_on_the_way(tiny):
    checked = gesim.run(tiny, check_invariants=True)
    assert checked.engine == "simpy"
    assert checked.summary_dict == gesim.run(tiny, engine="simpy").summary_dict
    with pytest.raises(gesim.ScenarioError, match="needs engine simpy"):
        gesim.run(tiny, check_invariants=True, engine="compiled")


def test_nothing_answered_is_a_result_too(one, tmp_path):
    never = {"policy": "queue_timeout", "timeout": "1us"}
    result = gesim.run(
        one.set_many(
            {
                "admission": [never],
                "requests": 3,
                "batching.max_queue_delay": "50ms",
                "workload.arrivals.rate": "10/s",
            }
        )
    )
    assert result.summary_dict["all"]["latency_p99_ns"] is None
    assert "nothing answered" in repr(result)
    opened = gesim.open_result(result.save(tmp_path / "none"))
    assert opened.summary_dict == result.summary_dict
    assert result.requests()["latency_ns"].isna().all()
    for figure in ("latency_cdf", "timeline", "batch_histogram", "queue_length", "breakdown"):
        assert text_of(getattr(result, figure)())


# ---- policies handed in --------------------------------------------------------------------


def test_a_policy_class_keeps_the_parameters_that_it_knows(one):
    result = gesim.run(one, policies={"batching": Pairs})
    policy = result.scenario.resolved()["models"][0]["batching"]
    assert policy["policy"].endswith(":Pairs")
    assert policy["max_batch_size"] == 4
    assert result.batches()["items"].max() == 2
    assert any("max_queue_delay" in warning for warning in result.warnings)
    assert "max_queue_delay" in result._repr_html_()


def test_policies_by_instance_name_set_and_scenario_agree(one):
    given = gesim.run(one, policies={"batching": Pairs(4)})
    assert given.summary_dict == gesim.run(one.set("batching", Pairs(4))).summary_dict
    named = gesim.run(one, policies={"batching": "greedy"})
    assert named.summary_dict == gesim.run(one.set("batching.policy", "greedy")).summary_dict


def test_policies_of_one_model_go_first(tiny):
    result = gesim.run(
        tiny, policies={"large": {"batching": "none"}, "batching": Pairs, "admission": "open"}
    )
    small, large = result.scenario.resolved()["models"]
    assert small["batching"]["policy"].endswith(":Pairs")
    assert large["batching"]["policy"] == "none"
    assert small["admission"] == large["admission"] == [{"policy": "open"}]
    assert result.summary_dict["all"]["rejected"] == 0


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"batchng": Pairs}, "did you mean 'batching'"),
        ({"smal": {"batching": Pairs}}, "did you mean 'small'"),
        ({"small": Pairs}, "nor a model with such a mapping"),
        ({"small": {"order": "fifo"}}, "no kind of policy"),
        ([Pairs], "write a mapping"),
    ],
)
def test_policies_of_nothing(tiny, policies, message):
    with pytest.raises(gesim.ScenarioError) as caught:
        gesim.run(tiny, policies=policies)
    assert message in str(caught.value)


def test_a_policy_that_raises_is_named(one):
    @dataclass
    class Broken(gesim.BatchingPolicy):
        """Breaks."""

        name: ClassVar[str] = "broken"
        max_batch_size: int = 2

        def decide(self, now_ns, queue):
            raise KeyError("oops")

    with pytest.raises(gesim.PolicyError, match=r"broken.*oops"):
        gesim.run(one, policies={"batching": Broken})


# ---- replications --------------------------------------------------------------------------


def test_replications_have_derived_seeds_and_student_intervals(tiny):
    result = gesim.run(tiny, replications=4)
    seeds = [run.seed for run in result.runs]
    assert seeds == [7, *(derived_seed(7, f"replication/{i}") for i in (1, 2, 3))]
    values = [gesim.run(tiny, seed=seed).summary_dict["all"]["latency_mean_ns"] for seed in seeds]
    whole = result.summary_dict["all"]
    assert whole["latency_mean_ns"] == pytest.approx(np.mean(values))
    low, high = whole["intervals"]["latency_mean_ns"]
    half = stats.t.ppf(0.975, 3) * np.std(values, ddof=1) / 2
    assert (high - low) / 2 == pytest.approx(half)
    assert "4 replications" in result.label
    assert "the first is shown" in text_of(result.latency_cdf())


def test_frames_of_replications_stand_one_after_another(tiny):
    result = gesim.run(tiny, replications=3)
    frame = result.requests()
    assert frame.groupby("replication").size().tolist() == [400, 400, 400]
    third = gesim.run(tiny, seed=result.runs[2].seed).requests()
    mine = frame[frame["replication"] == 2].reset_index(drop=True)
    assert (mine["latency_ns"].dropna() == third["latency_ns"].dropna()).all()
    assert frame["reason"].dtype == "category"


def test_replications_that_cannot_differ_are_pointed_out(one):
    fixed = one.set("workload.arrivals", {"process": "constant", "rate": "100/s"})
    assert any("nothing here is random" in w for w in gesim.run(fixed, replications=2).warnings)
    assert gesim.run(one, replications=2).warnings == []


def test_common_random_numbers_across_policies(one):
    theirs = gesim.run(one, replications=2)
    mine = gesim.run(one, replications=2, policies={"batching": "greedy"})
    assert (mine.requests()["arrival_ns"] == theirs.requests()["arrival_ns"]).all()
    assert not (mine.requests()["finish_ns"] == theirs.requests()["finish_ns"]).all()


def test_later_replications_are_cut_where_memory_ends(tiny, monkeypatch):
    monkeypatch.setattr(
        "gesim.experiment.run.bound_records", lambda runs, most: bound_records(runs, 900, 50)
    )
    whole = gesim.run(tiny, replications=4)
    assert [len(run.records) for run in whole.runs] == [400, 400, 50, 50]
    assert "of replication 2 to 3 only the first" in whole.warnings[-1]
    monkeypatch.undo()
    assert whole.summary_dict == gesim.run(tiny, replications=4).summary_dict


def test_beginning_of_records(tiny):
    records = gesim.run(tiny).runs[0].records
    first = beginning(records, 100)
    assert len(first) == 100
    running = first.batch >= 0
    for column, of_batch in (("start_ns", "batch_start_ns"), ("finish_ns", "batch_finish_ns")):
        mine = getattr(first, column)[running]
        assert (mine == getattr(first, of_batch)[first.batch[running]]).all()
        assert (mine == getattr(records, column)[:100][running]).all()
    assert len(first.batch_model) == len(np.unique(first.batch[running]))
    assert set(Records.BATCH_COLUMNS) <= set(vars(first))
    assert memory.MAX_RECORDS >= memory.KEPT


# ---- Ctrl-C --------------------------------------------------------------------------------


class _Press:
    """Presses Ctrl-C at a moment that does not depend on the machine."""

    def __init__(self, replication=0, expected=0):
        self.from_done = replication * expected
        self.pressed = False

    def __call__(self, done, expected, now_ns):
        if done > self.from_done and not self.pressed:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def long_one(one):
    return one.set("requests", 60_000)


def test_ctrl_c_leaves_a_partial_result(long_one, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    result = gesim.run(long_one, engine="simpy", on_progress=_Press(), out=tmp_path / "part")
    assert signal.getsignal(signal.SIGINT) is before
    assert result.partial
    assert result.label.endswith("PARTIAL")
    frame = result.requests()
    assert 1_000 < len(frame) < 60_000
    whole = gesim.run(long_one, engine="simpy").requests()
    done = frame[frame["outcome"] == "ok"]
    assert (done["finish_ns"] == whole["finish_ns"][done.index]).all()
    # Rates are taken over the time that was simulated, not over the scenario's.
    summary = result.summary_dict["all"]
    assert summary["throughput_rps"] == pytest.approx(300, rel=0.05)
    opened = gesim.open_result(tmp_path / "part")
    assert opened.partial
    assert json.loads((tmp_path / "part" / "summary.json").read_text())["partial"] is True
    assert opened.runs[0].records.interrupted_ns == result.runs[0].records.interrupted_ns > 0


def test_ctrl_c_keeps_only_whole_replications(long_one):
    press = _Press(replication=2, expected=60_000)
    result = gesim.run(long_one, engine="simpy", replications=5, on_progress=press)
    assert result.partial
    assert [len(run.records) for run in result.runs] == [60_000, 60_000]
    assert result.made["asked_replications"] == 5


def test_ctrl_c_between_simulations(one, monkeypatch):
    import gesim.experiment.run as module

    calls = []

    def summarise(records, facts, original=module.summarise):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(records, facts)

    monkeypatch.setattr(module, "summarise", summarise)
    result = gesim.run(one, replications=9)
    assert result.partial
    assert len(result.runs) == 2
    calls[:] = [1, 1]
    with pytest.raises(KeyboardInterrupt):
        gesim.run(one)
