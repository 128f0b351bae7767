"""Progress on terminals, Ctrl-C among several scenarios, and what is found before a run."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

RUN = [sys.executable, "-m", "gesim", "run", "tiny.yaml", "--json", "--no-save"]


def test_progress_is_for_terminals_and_stdout_stays_clean(here):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        RUN,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ) as process:
        os.close(theirs)
        talk = b""
        try:
            while piece := os.read(ours, 4096):
                talk += piece
        except OSError:  # how Linux says that the other end is closed
            pass
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert out.startswith(b"{")
    assert b"\x1b" not in out
    assert b"ETA" in talk
    quiet = subprocess.run(RUN, capture_output=True, check=True)
    assert quiet.stderr == b""
    assert quiet.stdout == out


def test_ctrl_c_stops_the_scenarios_that_follow(gesim_command, here, monkeypatch):
    @contextmanager
    def pressing(title):
        yield lambda done, expected, now_ns: signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("gesim.cli.run.progress", pressing)
    text = (here / "tiny.yaml").read_text()
    (here / "long.yaml").write_text(
        text.replace("name: tiny", "name: long").replace("requests: 200", "requests: 60000")
    )
    code, out, err = gesim_command(
        "run", "long.yaml", "tiny.yaml", "--engine", "simpy", "--json"
    )  # fmt: skip
    assert code == 130
    assert "interrupted" in err
    assert [one["partial"] for one in json.loads(out)] == [True]
    assert [path.name for path in (here / "results").iterdir()] == ["long-3"]
    shown = gesim_command("show", "results/long-3")
    assert shown[0] == 0
    assert "PARTIAL" in shown[1]


def test_a_foreign_folder_is_found_before_the_run(gesim_command, here, monkeypatch):
    (here / "mine").mkdir()
    (here / "mine" / "thesis.tex").write_text("")
    monkeypatch.setattr("gesim.experiment.run.run", lambda *a, **k: pytest.fail("it ran"))
    code, _, err = gesim_command("run", "tiny.yaml", "--out", "mine")
    assert code == 2
    assert "error (result): " in err
    assert "thesis.tex" in err


def test_warnings_are_no_markup(gesim_command):
    code, out, err = gesim_command(
        "run", "tiny.yaml", "--no-save", "--json", "--set", "models[0].instance_group.count=2"
    )  # fmt: skip
    assert code == 0
    assert "warning: tiny.yaml: device 'device' holds 2 instances" in err
    assert json.loads(out)["simulated"] is True
    code, _, err = gesim_command("run", "tiny.yaml", "--set", "models[0].batching=5")
    assert code == 2
    assert "models[0].batching: 5 is not a batching policy" in err


def test_a_table_of_several_says_who_made_them(gesim_command, here):
    text = (here / "tiny.yaml").read_text()
    (here / "other.yaml").write_text(text.replace("name: tiny", "name: other"))
    (here / "seeded.yaml").write_text(
        text.replace("name: tiny", "name: seeded").replace("seed: 3", "seed: 4")
    )
    lines = gesim_command("run", "tiny.yaml", "other.yaml", "--no-save")[1].splitlines()
    assert lines[0].startswith("simulated (model), engine simpy, seed 3, gesim ")
    assert [line.split()[0] for line in lines[-2:]] == ["tiny", "other"]
    lines = gesim_command("run", "tiny.yaml", "seeded.yaml", "--no-save")[1].splitlines()
    named = [line for line in lines if line.startswith(("tiny: ", "seeded: "))]
    assert ["seed 3" in named[0], "seed 4" in named[1]] == [True, True]
