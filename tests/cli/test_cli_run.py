import json
import os
import signal
import subprocess
import sys

import pytest

import gesim
from gesim.experiment.folder import FILES

BROKEN = '''
"""Policies that break the contract."""
import os
from dataclasses import dataclass
from typing import ClassVar

import gesim


@dataclass
class Base(gesim.BatchingPolicy):
    """Whatever `answer` says."""

    name: ClassVar[str] = "base"
    max_batch_size: int = 4


class Raises(Base):
    """Raises."""

    name: ClassVar[str] = "raises"

    def decide(self, now_ns, queue):
        return {}["models[0]"]


class Nothing(Base):
    """Answers nothing."""

    name: ClassVar[str] = "nothing"

    def decide(self, now_ns, queue):
        return None


class TooMany(Base):
    """Dispatches more than there are."""

    name: ClassVar[str] = "too_many"

    def decide(self, now_ns, queue):
        return gesim.Dispatch(count=len(queue) + 1)


class Telling(Base):
    """Says on a pipe that it is asked, then dispatches one by one."""

    name: ClassVar[str] = "telling"

    def decide(self, now_ns, queue):
        if "TELL" in os.environ:
            os.write(int(os.environ.pop("TELL")), b"asked")
        return gesim.Dispatch(count=1)
'''


# ---- results and talk --------------------------------------------------------------------------


def test_results_on_stdout_talk_on_stderr(gesim_command, here):
    code, out, err = gesim_command("run", "tiny.yaml")
    assert code == 0
    assert out.startswith("tiny: simulated (model), engine ")
    assert "mean_batch >= 1" in out
    assert "holds" in out
    assert err == "report: results/tiny-3/report.html\n"
    folder = here / "results" / "tiny-3"
    assert {path.name for path in folder.iterdir()} == set(FILES) - {"curves.npz"}
    assert gesim.open_result(folder).seed == 3


def test_json_is_summary_json(gesim_command, here):
    code, out, _ = gesim_command("run", "tiny.yaml", "--json", "--out", "mine")
    assert code == 0
    assert out == (here / "mine" / "summary.json").read_text()
    assert json.loads(out)["all"]["requests"] > 0


def test_several_scenarios(gesim_command, here):
    text = (here / "tiny.yaml").read_text()
    (here / "other.yaml").write_text(text.replace("name: tiny", "name: other"))
    code, out, err = gesim_command("run", "tiny.yaml", "other.yaml", "--out", "both")
    assert code == 0
    assert out.count("holds") == 2
    assert err.splitlines() == [
        "report: both/tiny-3/report.html", "report: both/other-3/report.html"
    ]  # fmt: skip
    code, out, _ = gesim_command("run", "tiny.yaml", "other.yaml", "--json", "--no-save")
    assert [one["scenario"] for one in json.loads(out)] == ["tiny", "other"]


def test_several_scenarios_may_not_share_a_folder(gesim_command, here):
    code, out, err = gesim_command("run", "tiny.yaml", "tiny.yaml")
    assert (code, out) == (2, "")
    assert "give them different names" in err
    assert not (here / "results").exists()


def test_what_ran_before_a_failure_is_shown(gesim_command, here):
    (here / "mine.py").write_text(BROKEN)
    text = (here / "tiny.yaml").read_text().replace("delay_window", "mine.py:Raises")
    text = text.replace("max_batch_size: 4, max_queue_delay: 3ms", "max_batch_size: 4")
    (here / "bad.yaml").write_text(text.replace("name: tiny", "name: bad"))
    code, out, err = gesim_command("run", "tiny.yaml", "bad.yaml")
    assert code == 2
    assert "tiny" in out
    assert "error (policy)" in err
    assert [path.name for path in (here / "results").iterdir()] == ["tiny-3"]


def test_changes(gesim_command):
    _, out, _ = gesim_command(
        "run", "tiny.yaml", "--json", "--no-save", "--seed", 9,
        "--set", "batching.max_batch_size=1", "--set", "batching.max_queue_delay=0ms",
    )  # fmt: skip
    summary = json.loads(out)
    assert summary["seed"] == 9
    assert summary["all"]["mean_batch"] == 1


def test_no_save_leaves_nothing(gesim_command, here):
    assert gesim_command("run", "tiny.yaml", "--no-save")[2] == ""
    assert [path.name for path in here.iterdir()] == ["tiny.yaml"]


def test_replications(gesim_command):
    code, out, _ = gesim_command(
        "run", "tiny.yaml", "--json", "--no-save", "--replications", 3
    )  # fmt: skip
    summary = json.loads(out)
    assert code == 0
    assert len(summary["runs"]) == len(set(summary["seeds"])) == summary["replications"] == 3


def test_engines_agree_and_are_explained(gesim_command):
    texts = []
    for engine in ("simpy", "auto"):
        code, out, err = gesim_command(
            "run", "tiny.yaml", "--no-save", "--json", "--engine", engine, "--explain-engine"
        )
        assert code == 0
        assert err.startswith("engine ")
        texts.append(json.loads(out)["all"])
    assert texts[0] == texts[1]


def test_invariants_are_checked(gesim_command):
    code, out, _ = gesim_command("run", "tiny.yaml", "--no-save", "--check-invariants")
    assert code == 0
    assert "engine simpy" in out


def test_warnings_are_talk(gesim_command, here):
    code, out, err = gesim_command(
        "run", "tiny.yaml", "--no-save", "--replications", 2,
        "--set", "workload.arrivals={process: constant, rate: 300/s}",
    )  # fmt: skip
    assert code == 0
    assert "nothing here is random" in err
    assert "warning" not in out


# ---- exit codes --------------------------------------------------------------------------------


def test_failed_expectation_is_1_and_the_result_stays(gesim_command, here):
    code, out, _ = gesim_command("run", "tiny.yaml", "--set", "expect=[mean_batch >= 9]")
    assert code == 1
    assert "FAILS" in out
    assert not gesim.open_result(here / "results" / "tiny-3").ok


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nope.yaml"], ["nope.yaml", "no such file", "'tiny.yaml'"]),
        (["."], ["is a folder"]),
        (["tiny.yaml", "--fidelity", "modl"], ["'modl'", "did you mean 'model'"]),
        (["tiny.yaml", "--engine", "simpi"], ["'simpi'", "simpy"]),
        (["tiny.yaml", "--replications", "0"], ["replications is 0"]),
        (["tiny.yaml", "--seed", "-1"], ["seed is -1"]),
        (["tiny.yaml", "--max-records", "50"], ["max_records is 50", "10,000"]),
        (["tiny.yaml", "--set", "batching"], ["write key=value"]),
        (["tiny.yaml", "--set", "requests=9", "--set", "requests=8"], ["given twice"]),
        (["tiny.yaml", "--seed", "1", "--set", "seed=2"], ["given twice"]),
        (["tiny.yaml", "--set", "reqests=9"], ["reqests", "did you mean 'requests'"]),
        (["tiny.yaml", "--set", "models[0].cost.setup=1"], ["models[0].cost.setup", "1ms"]),
        (["tiny.yaml", "--set", "workload.arrivals.rate=-3/s"], ["workload.arrivals.rate", "-3/s"]),
        (["tiny.yaml", "--no-save", "--out", "x"], ["--out has no effect"]),
        (
            ["tiny.yaml", "--check-invariants", "--engine", "compiled"],
            ["--check-invariants", "simpy"],
        ),
    ],
)
def test_bad_input_is_2_with_one_message(gesim_command, here, args, words):
    code, out, err = gesim_command("run", *args)
    assert (code, out) == (2, "")
    assert err.count("error (") == 1
    assert len(err.splitlines()) == 1
    for word in words:
        assert word in err
    assert [path.name for path in here.iterdir()] == ["tiny.yaml"]


@pytest.mark.parametrize("args", [["run"], ["run", "tiny.yaml", "--bogus"], ["rnu"]])
def test_wrong_usage_is_2(gesim_command, args):
    code, out, err = gesim_command(*args)
    assert (code, out) == (2, "")
    assert "Usage" in err


@pytest.mark.parametrize("engine", ["auto", "simpy"])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("Raises", ["raises", "KeyError", "models[0]"]),
        ("Nothing", ["nothing", "None"]),
        ("TooMany", ["too_many"]),
        ("Missing", ["mine.py", "Missing"]),
    ],
)
def test_broken_policies_are_2_with_one_message(gesim_command, here, policy, words, engine):
    (here / "mine.py").write_text(BROKEN)
    code, out, err = gesim_command(
        "run", "tiny.yaml", "--engine", engine, "--set", f"batching={{policy: mine.py:{policy}}}"
    )
    assert (code, out) == (2, "")
    assert err.startswith("error (policy): ")
    assert err.count("error (") == 1
    for word in words:
        assert word in err
    assert not (here / "results").exists()


def test_a_policy_file_with_a_mistake(gesim_command, here):
    (here / "mine.py").write_text("def broken(:\n")
    code, _, err = gesim_command("run", "tiny.yaml", "--set", "batching={policy: mine.py:A}")
    assert code == 2
    assert "mine.py" in err
    assert err.count("error (") == 1


def test_folders_of_others_are_left_alone(gesim_command, here):
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("years")
    code, out, err = gesim_command("run", "tiny.yaml", "--out", "mine")
    assert (code, out) == (2, "")
    assert "thesis.txt" in err
    assert [path.name for path in (here / "mine").iterdir()] == ["thesis.txt"]


def test_bugs_of_gesim_are_70(here, monkeypatch, capsys):
    from gesim.cli.main import main
    from gesim.errors import InternalError

    for error, trace in ((InternalError("law 7"), False), (ZeroDivisionError("x"), True)):

        def broken(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr("gesim.experiment.run.run", broken)
        with pytest.raises(SystemExit) as caught:
            main(["run", "tiny.yaml"])
        assert caught.value.code == 70
        err = capsys.readouterr().err
        assert "error (gesim)" in err
        assert ("Traceback" in err) == trace


# ---- other processes ---------------------------------------------------------------------------


def test_same_seed_same_bytes_whatever_the_hash_seed(here):
    models = "".join(
        f"  - {{name: {name}, admission: [{{policy: bounded_queue, max_queue_size: 3}}], "
        f"cost: {{kind: affine, setup: {t}ms, per_item: 1ms, "
        "jitter: {law: lognormal, cv: 0.2}}}\n"
        for name, t in (("a", 1), ("b", 4), ("c", 9))
    )
    head, _, tail = (here / "tiny.yaml").read_text().partition("  - {name: net")
    tail = tail.partition("\n")[2]
    mix = "rate: 300/s}, mix: [{model: a}, {model: b}, {model: c}]"
    mixed = head + models + tail.replace("rate: 300/s}", mix)
    (here / "mixed.yaml").write_text(mixed)
    texts = set()
    for hash_seed in ("0", "12345"):
        done = subprocess.run(
            [sys.executable, "-m", "gesim", "run", "mixed.yaml", "--json", "--out", hash_seed],
            env={**os.environ, "PYTHONHASHSEED": hash_seed}, cwd=here, capture_output=True,
            check=True,
        )  # fmt: skip
        texts |= {done.stdout, (here / hash_seed / "summary.json").read_bytes()}
    assert len(texts) == 1
    assert json.loads(texts.pop())["all"]["rejected"] > 0


def test_ctrl_c_leaves_a_readable_part(here):
    """SIGINT from outside, once the policy has said on a pipe that the simulation runs."""
    (here / "mine.py").write_text(BROKEN)
    heard, tell = os.pipe()
    child = subprocess.Popen(
        [
            sys.executable, "-m", "gesim", "run", "tiny.yaml", "--out", "part", "--engine", "simpy",
            "--set", "batching={policy: mine.py:Telling}", "--set", "requests=100000000",
        ],
        cwd=here, env={**os.environ, "TELL": str(tell)}, pass_fds=[tell], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(tell)
    try:
        assert os.read(heard, 5) == b"asked"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    finally:
        os.close(heard)
        child.kill()
        child.wait()
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert "PARTIAL" in out
    assert "partial" in err
    result = gesim.open_result(here / "part")
    assert result.partial
    assert "PARTIAL" in result.label
    assert "PARTIAL" in (here / "part" / "report.html").read_text()


def test_ctrl_c_before_anything_ran(here, monkeypatch, capsys):
    from gesim.cli.main import main

    def pressed(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("gesim.scenario.load.load", pressed)
    with pytest.raises(SystemExit) as caught:
        main(["run", "tiny.yaml"])
    assert caught.value.code == 130
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert out == ""
    assert not (here / "results").exists()


def test_long_runs_are_streamed_with_the_same_layout(gesim_command, here):
    longer = ["run", "tiny.yaml", "--json", "--set", "requests=20000"]
    exact = json.loads(gesim_command(*longer, "--no-save")[1])
    code, out, _ = gesim_command(*longer, "--out", "long", "--max-records", 10_000)
    streamed = json.loads(out)
    assert code == 0
    assert streamed["rules"]["records"].startswith("streamed")
    assert exact["rules"]["records"] == "exact"
    assert streamed["all"].keys() == exact["all"].keys()
    opened = gesim.open_result(here / "long")
    assert len(opened.requests()) == 10_000
    for name in ("latency_mean_ns", "latency_p99_ns", "throughput_rps", "mean_batch"):
        assert streamed["all"][name] == pytest.approx(exact["all"][name], rel=0.01), name
    assert opened.latency_cdf().axes
    assert gesim_command("show", "long")[0] == 0
