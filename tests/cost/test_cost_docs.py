"""docs/cost-models.md says what is shipped, and its examples load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gesim.cost.profile import list_profiles, load_profile
from gesim.errors import ProfileError
from gesim.scenario.build import build
from gesim.scenario.load import Scenario

TEXT = (Path(__file__).parents[2] / "docs" / "cost-models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
MINE = BLOCKS[2]
ROWS = [line for line in TEXT.splitlines() if re.match(r"\| `\w+_\w+` ", line)]


def row(name):
    profile = load_profile(name)
    length = max(profile.points)
    model = f"{profile.model} (length {length})" if length else profile.model
    rates = [profile.throughput_rps(b, length) for b in (profile.gears[0], profile.best_batch)]
    cells = [
        f"`{name}`", model, profile.device, " ".join(map(str, profile.gears)),
        str(profile.best_batch), *(f"{rate:,.0f}" for rate in rates),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def test_table_of_profiles():
    assert [row(name) for name in list_profiles()] == ROWS


@pytest.fixture
def scenario(tmp_path):
    def make(models, **more):
        (tmp_path / "mine.yaml").write_text(MINE, encoding="utf-8")
        data = {
            "schema": 1,
            "requests": 10,
            "batching": {"policy": "greedy", "max_batch_size": 1},
            "models": models,
            "workload": {"arrivals": {"process": "poisson", "rate": "1/s"}, **more},
        }
        return Scenario.from_dict(data, base=tmp_path)

    return make


def test_examples_load(scenario):
    build(scenario(yaml.safe_load(BLOCKS[0])["models"]))
    costs = [yaml.safe_load(line)["cost"] for line in BLOCKS[1].splitlines()]
    traits = {1: {"length": 100}, 4: {"work": "1ms"}}
    mix = [{"model": f"m{i}", **traits.get(i, {})} for i in range(len(costs))]
    models = [{"name": f"m{i}", "cost": cost} for i, cost in enumerate(costs)]
    services = build(scenario(models, mix=mix)).services
    assert [s.cost.kind for s in services] == ["table", "table", "affine", "empirical", "work"]


def test_terms_of_a_profile_are_defaults(scenario):
    (service,) = build(scenario([{"name": "m", "profile": "mine.yaml"}])).services
    assert service.host.dispatch_ns == 140_000
    assert service.transfer.latency_ns == 20_000
    own = {"name": "m", "profile": "mine.yaml", "host": {"dispatch": "0ms"}}
    (service,) = build(scenario([own])).services
    assert service.host.dispatch_ns == 0
    assert service.transfer.latency_ns == 20_000


def test_lengths_of_a_trace_must_be_there(scenario, tmp_path):
    """A trace without lengths cannot drive a model that is compiled for several."""
    from gesim.sim.driver import simulate

    class Nothing:
        def arrivals(self, chunk): ...
        def batch(self, batch): ...
        def gone(self, request): ...

    (tmp_path / "trace.csv").write_text("arrival_ns\n0\n1\n")
    trace = {
        "process": "trace",
        "file": "trace.csv",
        "columns": {"arrival": "arrival_ns", "unit": "ns"},
    }
    made = scenario([{"name": "m", "profile": "bert_base_310p3"}], arrivals=trace)
    with pytest.raises(ProfileError, match=r"no length is given \(lengths: 64, 128"):
        simulate(build(made), Nothing())
