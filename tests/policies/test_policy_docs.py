"""The example in docs/policies.md works as written; the tables name what exists."""

from __future__ import annotations

import re
from pathlib import Path

from gesim.core.laws import LAWS
from gesim.registry import KINDS, find_policy, policy_names
from gesim.testing.conformance import check_policy
from gesim.testing.harness import model, play, requests_at

DOCS = Path(__file__).parents[2] / "docs"


def test_example(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "policies.md").read_text(), re.DOTALL)
    path = tmp_path / "patient.py"
    path.write_text(blocks[0])
    report = check_policy(f"{path}:Patient").require()
    assert 50 <= report.runs <= 70  # "some sixty"
    assert len(report.checks) == 11
    namespace = {
        "Patient": find_policy("batching", f"{path}:Patient"),
        "model": model,
        "play": play,
        "requests_at": requests_at,
    }
    exec(blocks[2], namespace)


def test_all_policies_are_listed():
    text = (DOCS / "policies.md").read_text()
    for kind in KINDS:
        for name in policy_names(kind):
            assert f"`{name}`" in text


def test_all_laws_are_listed():
    text = (DOCS / "invariants.md").read_text()
    for number in LAWS:
        assert f"| {number} | **" in text
