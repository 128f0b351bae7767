"""Every shipped scenario is valid, says what must hold, and explains itself."""

from __future__ import annotations

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


OTHER_WAY = [
    ("closed_loop", {"batching.max_queue_delay": "0ms"}, "latency_mean_ns", 27.0e6),
    ("priorities", {"ordering": "fifo"}, "queue_mean_ns", 20.0e6),
    ("server_pick", {"batching.timer_origin": "oldest_enqueue"}, "latency_mean_ns", 26.5e6),
    ("throughput_first", {"batching.max_batch_size": 8}, "latency_mean_ns", 6.9e6),
    ("window_against_sla", {"batching.max_queue_delay": "5ms"}, "latency_p99_ns", 7.0e6),
]
"""What the comments promise of the commands with ``--set``."""


@pytest.mark.parametrize(("name", "changes", "metric", "value"), OTHER_WAY)
def test_comments_are_true(name, changes, metric, value):
    scenario = gesim.load(ROOT / "scenarios" / f"{name}.yaml").set_many(changes)
    measured = gesim.run(scenario).summary_dict["all"][metric]
    assert measured == pytest.approx(value, rel=0.06)
