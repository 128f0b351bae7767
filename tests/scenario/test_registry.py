"""Finding, describing and building policies."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Literal

import pytest

from gesim.core.decisions import NEVER_NS, Dispatch
from gesim.core.policy import BatchingPolicy, OrderingPolicy
from gesim.errors import PolicyError, ScenarioError
from gesim.registry import (
    KINDS,
    build_policy,
    check_policy,
    describe_policy,
    find_policy,
    parameters,
    policies,
    policy_names,
    summary_line,
)


@dataclass
class Mine(BatchingPolicy):
    """A batcher of one's own.

    Longer words.

    Parameters
    ----------
    max_batch_size : int
        Largest batch,
        in items.
    flush_ns, other_ns : int, default NEVER_NS
        When to flush.
    mode : {"2.42", "fixed"}
        Which rule.

    Notes
    -----
    sizes : not a parameter.
    """

    name = "mine"

    max_batch_size: int
    flush_ns: int = NEVER_NS
    other_ns: int = 0
    limit_bytes: int = 1024
    rate_rps: float = 2.5
    mode: Literal["2.42", "fixed"] = "fixed"
    sizes: tuple[int, ...] = ()
    delays_ns: tuple[int, ...] = ()
    theta: float = 0.85
    strict: bool = True
    maybe: int | None = None
    by_level: dict[int, int] = field(default_factory=dict)
    seed: int = 0
    taken: int = field(default=0, init=False)

    def decide(self, now_ns, queue):
        return Dispatch(1)


def test_registered_names_load():
    for kind, base in KINDS.items():
        found = policies(kind)
        assert list(found) == policy_names(kind)
        for name, cls in found.items():
            assert issubclass(cls, base)
            assert find_policy(kind, name) is cls
            assert summary_line(cls)
            for parameter in parameters(cls):
                assert parameter.doc, f"{kind} policy {name}: {parameter.name} is undocumented"


def test_parameters_are_the_init_fields():
    found = {p.key: p for p in parameters(Mine)}
    assert list(found)[:4] == ["max_batch_size", "flush", "other", "limit"]
    assert "taken" not in found
    assert found["max_batch_size"].required
    assert found["max_batch_size"].doc == "Largest batch, in items."
    assert found["flush"].doc == found["other"].doc == "When to flush."
    assert found["sizes"].doc == ""
    assert [found[k].kind for k in ("flush", "limit", "rate", "mode", "sizes", "maybe")] == [
        "time",
        "size",
        "rate",
        "2.42 | fixed",
        "list of int",
        "int | null",
    ]
    assert [found[k].default_text for k in ("max_batch_size", "flush", "limit", "rate")] == [
        "",
        "never",
        "1KiB",
        "2.5/s",
    ]


def test_values_are_read_with_units():
    spec = {
        "policy": Mine,
        "max_batch_size": 8,
        "flush": "5ms",
        "other": "never",
        "limit": "2MiB",
        "rate": "60/min",
        "mode": 2.42,
        "sizes": [4, 8],
        "delays": ["1ms", "2ms"],
        "theta": 1,
        "strict": False,
        "maybe": 3,
        "by_level": {1: 5},
    }
    built = build_policy("batching", spec)
    assert built == Mine(
        8,
        5_000_000,
        NEVER_NS,
        2 * 2**20,
        1.0,
        "2.42",
        (4, 8),
        (1_000_000, 2_000_000),
        1.0,
        False,
        3,
        {1: 5},
    )
    described = describe_policy("batching", built)
    assert described.pop("policy") == f"{__name__}:Mine"
    assert build_policy("batching", {"policy": Mine, **described}) == built
    assert described["flush"] == "5ms"
    assert described["other"] == "never"
    assert described["delays"] == ["1ms", "2ms"]


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"max_batchsize": 8}, "x.max_batchsize: unknown parameter of policy 'mine'; did you mean"),
        ({"flush_ns": 5}, "x.flush_ns: write flush, with a unit (time)"),
        ({"flush": 5}, "x.flush: 5 has no unit"),
        ({"mode": "fixd"}, "x.mode: 'fixd' is not one of: 2.42, fixed; did you mean 'fixed'?"),
        ({"sizes": 4}, "x.sizes: 4 is not a list"),
        ({"sizes": [4.5]}, "x.sizes: 4.5 is not a whole number"),
        ({"theta": float("nan")}, "x.theta: nan is not a number: it must be finite"),
        ({"theta": "high"}, "x.theta: 'high' is not a number"),
        ({"strict": "yes"}, "x.strict: 'yes' is not true or false"),
        ({"by_level": [1]}, "x.by_level: [1] is not a mapping"),
        ({"max_batch_size": 0}, "x.max_batch_size: batching policy 'mine' has max_batch_size 0"),
        ({"maybe": "x"}, "x.maybe: 'x' is not a whole number"),
    ],
)
def test_bad_parameters(change, fragment):
    with pytest.raises(ScenarioError) as caught:
        build_policy("batching", {"policy": Mine, "max_batch_size": 8, **change}, "x")
    assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "spec", "error", "fragment"),
    [
        ("batching", "greedyy", PolicyError, "did you mean 'greedy'?"),
        ("batching", "fifo", PolicyError, "'fifo' is of kind ordering"),
        ("batching", OrderingPolicy, PolicyError, "is a policy of kind ordering, not batching"),
        ("batching", int, PolicyError, "must subclass gesim.core.policy.BatchingPolicy"),
        ("batching", 3, PolicyError, "3 is not a batching policy"),
        ("batching", {"plicy": "x"}, ScenarioError, "is it 'plicy'?"),
        ("batching", "nothing_here:X", PolicyError, "cannot be imported"),
        ("batching", "gesim.core.policy:BatchngPolicy", PolicyError, "no class 'BatchngPolicy'"),
        ("batching", "nix.py:X", PolicyError, "cannot read"),
        ("batchng", "greedy", PolicyError, "no kind of policy 'batchng'; did you mean 'batching'"),
        ("batching", Mine, ScenarioError, "needs max_batch_size (int): Largest batch, in items."),
    ],
)
def test_not_found_or_not_built(kind, spec, error, fragment):
    with pytest.raises(error) as caught:
        build_policy(kind, spec)
    assert fragment in str(caught.value)


def test_instances_are_copied_without_state():
    mine = Mine(4)
    mine.taken = 7
    built = build_policy("batching", mine)
    assert built is not mine
    assert (built.max_batch_size, built.taken) == (4, 0)
    assert build_policy("batching", {"policy": mine, "flush": "1ms"}).flush_ns == 1_000_000


def test_seed_is_filled_in_only_where_open():
    assert (
        build_policy("batching", {"policy": Mine, "max_batch_size": 1}, context={"seed": 9}).seed
        == 9
    )
    spec = {"policy": Mine, "max_batch_size": 1, "seed": 3}
    assert build_policy("batching", spec, context={"seed": 9}).seed == 3
    assert build_policy("batching", Mine(1, seed=4), context={"seed": 9}).seed == 4


def test_policies_from_files(tmp_path):
    code = "\n".join(
        [
            "from dataclasses import dataclass",
            "from gesim.core.policy import BatchingPolicy",
            "@dataclass",
            "class Own(BatchingPolicy):",
            "    max_batch_size: int = 2",
        ]
    )
    (tmp_path / "own.py").write_text(code)
    built = build_policy("batching", "own.py:Own", base=tmp_path)
    assert built.max_batch_size == 2
    assert describe_policy("batching", built)["policy"] == f"{tmp_path / 'own.py'}:Own"
    assert find_policy("batching", "own.py:Own", tmp_path) is type(built)
    with pytest.raises(PolicyError, match=r"did you mean 'Own'\?"):
        find_policy("batching", "own.py:Ow", tmp_path)
    (tmp_path / "own.py").write_text(code.replace("= 2", "= 3"))
    assert build_policy("batching", "own.py:Own", base=tmp_path).max_batch_size == 3
    for name in [name for name in sys.modules if name.startswith("gesim_policy_file_own")]:
        del sys.modules[name]


class NoDataclass(BatchingPolicy):
    """Not a dataclass."""

    max_batch_size = 2


@dataclass
class Sizeless(BatchingPolicy):
    """Forgot its size."""


@dataclass
class Picky(BatchingPolicy):
    """Refuses and breaks."""

    max_batch_size: int = 1

    def __post_init__(self):
        if self.max_batch_size == 2:
            raise ValueError("two is wrong; take 3")
        if self.max_batch_size == 4:
            raise KeyError("lost")


def test_constructors_that_refuse_or_break():
    assert build_policy("batching", NoDataclass).max_batch_size == 2
    with pytest.raises(ScenarioError, match="not a dataclass, so it has no parameters"):
        build_policy("batching", {"policy": NoDataclass, "max_batch_size": 3})
    with pytest.raises(ScenarioError, match="has max_batch_size None"):
        build_policy("batching", Sizeless)
    with pytest.raises(ScenarioError, match="refuses its parameters: two is wrong; take 3"):
        build_policy("batching", {"policy": Picky, "max_batch_size": 2})
    with pytest.raises(PolicyError, match=r"raised KeyError\('lost'\) when built"):
        build_policy("batching", {"policy": Picky, "max_batch_size": 4})


def test_check_returns_all_problems():
    built, problems = check_policy("batching", {"policy": Mine, "flush": 1, "theta": "x"})
    assert built is None
    assert [p.path for p in problems] == [("flush",), ("theta",), ()]


def test_policy_files_are_found_beside_the_scenario_or_in_the_working_directory(
    tmp_path, monkeypatch
):
    from gesim.registry import find_policy

    text = (
        "from dataclasses import dataclass\nfrom gesim import BatchingPolicy\n"
        "@dataclass\nclass Mine(BatchingPolicy):\n    name = '{}'\n    max_batch_size: int = 1\n"
    )
    beside, here = tmp_path / "scenarios", tmp_path / "here"
    for folder in (beside, here):
        folder.mkdir()
    (here / "mine.py").write_text(text.format("here"))
    monkeypatch.chdir(here)
    assert find_policy("batching", "mine.py:Mine", beside).name == "here"
    (beside / "mine.py").write_text(text.format("beside"))
    assert find_policy("batching", "mine.py:Mine", beside).name == "beside"
