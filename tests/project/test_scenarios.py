"""Every shipped scenario is valid, says what must hold, and explains itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gesim
from gesim.scenario.build import build

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
class TestScenario:
    def test_is_valid(self, path):
        scenario = gesim.load(path)
        build(scenario)
        assert scenario.warnings() == []

    def test_says_what_must_hold(self, path):
        scenario = gesim.load(path)
        assert scenario.expect
        assert scenario.description
        assert scenario.name == path.stem

    def test_explains_itself(self, path):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert sum(line.startswith("#") for line in lines) >= 3
        assert all(len(line) <= 110 for line in lines)

    def test_is_in_the_readme(self, path):
        assert f"[{path.stem}](scenarios/{path.name})" in (ROOT / "README.md").read_text()

    def test_holds(self, path):
        result = gesim.run(gesim.load(path))
        assert [one for one in result.expectations if not one.holds] == []


COMMAND = re.compile(
    r"#\s+gesim run scenarios/(\w+)\.yaml((?: --set \S+)+)(?:\s+# (\w+) ([\d.]+) ms)?"
)
PROMISES = [
    pytest.param(*match.groups(), id=f"{path.stem}:{match[2].replace(' --set ', ',')[1:]}")
    for path in SCENARIOS
    for match in map(COMMAND.match, path.read_text(encoding="utf-8").splitlines())
    if match
]
"""The commands in the scenarios' comments, some with what they give: ``# mean 6.3 ms``."""


@pytest.mark.parametrize(("name", "changes", "metric", "value"), PROMISES)
def test_comments_are_true(name, changes, metric, value):
    pairs = (change.partition("=") for change in changes.split(" --set ")[1:])
    scenario = gesim.load(ROOT / "scenarios" / f"{name}.yaml")
    scenario = scenario.set_many({key: value for key, _, value in pairs if "$" not in value})
    if metric in ("mean", "p50", "p99"):
        measured = gesim.run(scenario).summary_dict["all"][f"latency_{metric}_ns"] / 1e6
        assert measured == pytest.approx(float(value), rel=0.08)
