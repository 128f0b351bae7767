"""The README and the docs: their code runs, links lead somewhere, nothing local is in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from gesim.testing.conformance import check_policy

ROOT = Path(__file__).parents[2]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_readme_python_runs(tmp_path):
    """All python blocks, in turn, in one program; one that starts with a file name is a file."""
    program = []
    for block in blocks(README, "python"):
        name = re.match(r"# (\w+\.py)\n", block)
        if name:
            (tmp_path / name[1]).write_text(block, encoding="utf-8")
        else:
            program.append(block)
    assert program
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_readme_policy_passes(tmp_path):
    """The policy of the README is one short file and keeps the contract."""
    (block,) = (b for b in blocks(README, "python") if b.startswith("# patient.py"))
    path = tmp_path / "patient.py"
    path.write_text(block, encoding="utf-8")
    check_policy(f"{path}:Patient").require()
    body = re.sub(r'""".*?"""', "", block[block.index("@dataclass") :], flags=re.DOTALL)
    assert len([line for line in body.splitlines() if line.strip()]) <= 15


def test_readme_output_is_what_it_prints():
    """The pasted table, its error bars aside."""
    import gesim
    from gesim.report.table import result_table

    def plain(text: str) -> list[list[str]]:
        return [re.sub(r" ±[\d.]+ \w+", "", line).split() for line in text.splitlines() if line]

    result = gesim.run(gesim.load(ROOT / "scenarios" / "quickstart.yaml"))
    console = Console(width=100, file=StringIO())
    console.print(result_table(result.label, result.summary_dict, result.expectations))
    printed = plain(console.file.getvalue())
    (block,) = blocks(README, "text")
    pasted = plain(block)
    assert pasted[0] == result.label.split()
    assert pasted[1:] == printed[1:]


def test_readme_commands_exist():
    """Every `gesim ...` command of a shell block names a command and files that exist."""
    from gesim.cli.main import app

    known = {command.name for command in app.registered_commands}
    lines = [line for block in blocks(README, "(?:sh|console)") for line in block.splitlines()]
    commands = [line.removeprefix("$ ").split() for line in lines if "gesim " in line]
    assert commands
    for words in commands:
        if words[0] == "gesim":
            assert words[1] in known, words
        for word in words:
            if word.startswith("scenarios/"):
                assert (ROOT / word).is_file(), word


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
class TestText:
    def test_links_lead_somewhere(self, path):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), target

    def test_nothing_local(self, path):
        text = path.read_text(encoding="utf-8")
        local = re.findall(r"(?<![\w.$])/(?:work|home|root|tmp|usr|opt|mnt|Users|var)\b\S*", text)
        assert local == []

    def test_files_named_exist(self, path):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"`((?:gesim|tests|scenarios|docs|benchmarks)/[\w/.-]+)`", text):
            assert (ROOT / name).exists(), name


def test_scenario_file_keys_are_documented():
    """docs/scenario-files.md and the two pages it leads to name every key of the schema."""
    from gesim.scenario.jsonschema import json_schema

    pages = ("scenario-files.md", "workloads.md", "cost-models.md")
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    keys: set[str] = set()

    def collect(node: object) -> None:
        if isinstance(node, dict):
            properties = node.get("properties")
            if isinstance(properties, dict):
                keys.update(properties)
            for value in node.values():
                collect(value)
        elif isinstance(node, list):
            for value in node:
                collect(value)

    collect(json_schema())
    assert len(keys) > 40
    assert sorted(key for key in keys if f"`{key}`" not in text) == []


def test_metrics_are_documented():
    from gesim.scenario.expect import METRICS

    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    points = ["mean", "p50", "p90", "p95", "p99", "p999", "max"]
    for metric in METRICS:
        part, _, point = metric.rpartition("_")
        name = part if point in points and part not in ("", "mean") else metric
        assert f"`{name}`" in text or f"`{metric}`" in text, metric


def test_result_columns_are_documented(tmp_path):
    """docs/results.md names every file of a result folder and every column of its tables."""
    import gesim

    result = gesim.run(gesim.load(ROOT / "scenarios" / "triton_stall.yaml"))
    folder = result.save(tmp_path / "result")
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for file in folder.iterdir():
        assert f"`{file.name}`" in text, file.name
    for frame in (result.requests(), result.batches()):
        for column in frame.columns:
            assert f"`{column}`" in text, column
