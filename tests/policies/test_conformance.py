"""Every built-in policy passes the suite; every broken one gets one clear message."""

from __future__ import annotations

from pathlib import Path

import broken_policies
import pytest
from broken_policies import EXPECTED, Stranger

from gesim.errors import PolicyError
from gesim.registry import KINDS, policy_names
from gesim.testing.conformance import check_policy

BUILT_IN = [(kind, name) for kind in KINDS for name in policy_names(kind)]


@pytest.mark.parametrize(("kind", "name"), BUILT_IN, ids=lambda part: part)
def test_built_in_policies_conform(kind, name):
    report = check_policy(name).require()
    assert report.kind == kind
    assert report.decisions > 1000


@pytest.mark.parametrize("cls", EXPECTED, ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore:coroutine")
def test_broken_policies_are_caught(cls):
    check, words = EXPECTED[cls]
    report = check_policy(cls)
    assert not report.ok
    found = {c.name: c.why for c in report.checks if not c.ok}
    assert check in found, str(report)
    assert words in found[check]
    assert "Traceback" not in str(report)
    assert all("\n" not in why for why in found.values())
    with pytest.raises(AssertionError, match="FAIL"):
        report.require()


def test_file_and_class():
    path = Path(broken_policies.__file__)
    report = check_policy(f"{path}:Raises")
    assert not report.ok
    line = next(c.why for c in report.checks if c.name == "answers")
    assert f"{path}:" in line  # where it raised


def test_what_cannot_be_found():
    with pytest.raises(PolicyError, match="did you mean 'greedy'"):
        check_policy("gredy")
    with pytest.raises(PolicyError, match="must subclass one of"):
        check_policy(Stranger)
    with pytest.raises(PolicyError, match="no class"):
        check_policy(f"{broken_policies.__file__}:Nothing")
    with pytest.raises(PolicyError, match=r"is of kind|no .* policy"):
        check_policy("fifo", "batching")


def test_report_reads_well():
    text = str(check_policy("greedy"))
    assert text.startswith("batching policy greedy: ")
    assert "ok   promises (work_conserving and by_level are kept)" in text
