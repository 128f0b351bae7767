import json
import subprocess
import sys
from pathlib import Path

import pytest

import gesim
from gesim.cost.profile import list_profiles
from gesim.registry import KINDS, policies, policy_names
from gesim.testing.conformance import CHECKS

SCENARIOS = Path(__file__).parents[2] / "scenarios"

SEES_CLOCK = '''
import time
from dataclasses import dataclass
from typing import ClassVar

import gesim


@dataclass
class Clock(gesim.BatchingPolicy):
    """Looks at the clock."""

    name: ClassVar[str] = "clock"
    max_batch_size: int = 4

    def decide(self, now_ns, queue):
        time.time()
        return gesim.Dispatch(count=1)
'''


# ---- the command itself ------------------------------------------------------------------------


def test_version_and_help(gesim_command):
    assert gesim_command("--version") == (0, f"gesim {gesim.__version__}\n", "")
    code, out, _ = gesim_command("--help")
    assert code == 0
    for command in ("run", "validate", "show", "policies", "check-policy", "profiles", "schema"):
        assert f"  {command}" in out
        assert gesim_command(command, "--help")[0] == 0


def test_light_commands_load_no_simulator():
    code = (
        "import sys; import gesim.cli.main; "
        "print(*(m for m in ('simpy', 'numba', 'torch', 'pandas', 'scipy', 'matplotlib') "
        "if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_reader_that_stops_early_is_no_bug():
    """As in ``gesim schema | head -1``."""
    child = subprocess.Popen(
        [sys.executable, "-m", "gesim", "schema"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    child.stdout.close()
    err = child.stderr.read()
    child.stderr.close()
    child.wait()
    assert "Traceback" not in err
    assert "bug" not in err


# ---- validate and show -------------------------------------------------------------------------


def test_validate(gesim_command, here):
    (here / "bad.yaml").write_text((here / "tiny.yaml").read_text().replace("rate", "raet"))
    code, out, err = gesim_command("validate", "tiny.yaml", "bad.yaml", "nope.yaml")
    assert code == 2
    assert out == "tiny.yaml: ok\n"
    assert "bad.yaml:8: workload.arrivals.raet" in err
    assert "did you mean 'rate'" in err
    assert err.count("error (scenario)") == 2
    assert not (here / "results").exists()


def test_shipped_scenarios_are_valid(gesim_command):
    files = sorted(SCENARIOS.glob("*.yaml"))
    code, out, err = gesim_command("validate", *files)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == len(files)


def test_show_is_what_run_showed(gesim_command):
    _, run_out, _ = gesim_command("run", "tiny.yaml", "--out", "mine")
    assert gesim_command("show", "mine") == (0, run_out, "")
    _, json_out, _ = gesim_command("run", "tiny.yaml", "--out", "mine", "--json")
    assert gesim_command("show", "mine", "--json") == (0, json_out, "")


@pytest.mark.parametrize("name", ["nope", "empty", "tiny.yaml"])
def test_show_nothing(gesim_command, here, name):
    (here / "empty").mkdir()
    code, out, err = gesim_command("show", name)
    assert (code, out) == (2, "")
    assert err.startswith("error (result): ")
    assert name in err


# ---- policies ----------------------------------------------------------------------------------


def test_policies_lists_every_one_with_parameters(gesim_command):
    code, out, err = gesim_command("policies")
    assert (code, err) == (0, "")
    for kind in KINDS:
        for name in policy_names(kind):
            assert any(line.startswith(name) and kind in line for line in out.splitlines())
    assert "max_batch_size" in out
    assert "max_queue_delay = 0ms" in out


def test_policies_as_json(gesim_command):
    rows = json.loads(gesim_command("policies", "--json")[1])
    assert {(row["kind"], row["name"]) for row in rows} == {
        (kind, name) for kind in KINDS for name in policies(kind)
    }
    for row in rows:
        assert row["meaning"].endswith(".")
        assert all(p["meaning"] for p in row["parameters"]), row["name"]


def test_one_policy_or_kind(gesim_command):
    code, out, _ = gesim_command("policies", "delay_window")
    assert code == 0
    assert out.startswith("delay_window (batching)")
    assert "max_queue_delay" in out
    rows = json.loads(gesim_command("policies", "--kind", "ordering", "--json")[1])
    assert {row["kind"] for row in rows} == {"ordering"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["policies", "delay_windw"], "did you mean 'delay_window'"),
        (["policies", "--kind", "batchin"], "batching"),
        (["check-policy", "greddy"], "greedy"),
        (["check-policy", "nope.py:A"], "nope.py"),
        (["profiles", "resnet101_310p"], "resnet101_310p3"),
    ],
)
def test_unknown_names(gesim_command, args, words):
    code, out, err = gesim_command(*args)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_check_policy(gesim_command):
    code, out, _ = gesim_command("check-policy", "none")
    assert code == 0
    assert out.endswith("batching policy 'none' passes\n")
    assert [line.split()[1].rstrip(":") for line in out.splitlines()[:-1]] == list(CHECKS)
    assert all(line.startswith("ok  ") for line in out.splitlines()[:-1])


def test_check_policy_of_a_file(gesim_command, here):
    (here / "mine.py").write_text(SEES_CLOCK)
    code, out, _ = gesim_command("check-policy", "mine.py:Clock")
    assert code == 1
    assert "FAIL  pure: " in out
    assert out.endswith("batching policy 'mine.py:Clock' does not pass\n")


# ---- profiles and schema -----------------------------------------------------------------------


def test_profiles(gesim_command):
    code, out, err = gesim_command("profiles")
    assert (code, err) == (0, "")
    shown = json.loads(gesim_command("profiles", "--json")[1])
    assert [one["name"] for one in shown] == list(list_profiles())
    for one in shown:
        assert f" {one['name']} " in out
        assert one["sources"]


def test_one_profile(gesim_command):
    code, out, _ = gesim_command("profiles", "bert_base_310p3")
    assert code == 0
    assert "source: " in out
    assert "length" in out
    [one] = json.loads(gesim_command("profiles", "bert_base_310p3", "--json")[1])
    assert {"64", "128", "512"} <= set(one["batch_time_ns"])


def test_schema_is_a_json_schema(gesim_command):
    code, out, err = gesim_command("schema")
    assert (code, err) == (0, "")
    schema = json.loads(out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["type"] == "object"
    assert {"models", "workload", "schema"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False

    def references(node):
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            node = list(node.values())
        if isinstance(node, list):
            for one in node:
                yield from references(one)

    for reference in references(schema):
        where = schema
        for part in reference.removeprefix("#/").split("/"):
            where = where[part]
