"""Whatever stands in a scenario, it loads or gets one of our errors."""

import copy
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from gesim.errors import GesimError
from gesim.scenario.build import build
from gesim.scenario.load import Scenario
from gesim.scenario.source import parse_text

BASE = {
    "schema": 1,
    "name": "fuzz",
    "seed": 3,
    "duration": "1s",
    "requests": 50,
    "warmup": "5%",
    "slo": "50ms",
    "devices": [{"name": "npu", "count": 2, "streams": 1}, {"name": "cpu"}],
    "models": [
        {
            "name": "a",
            "cost": {
                "kind": "table",
                "points": {1: "2ms", 8: "9ms"},
                "extrapolate": "never",
                "jitter": {"law": "lognormal", "cv": 0.1},
            },
            "gears": [1, 8],
            "host": {"dispatch": "1us", "jitter": {"law": "exponential"}},
            "transfer": {"input": "1KiB", "bandwidth": "1GiB/s"},
            "instance_group": {"count": 1, "devices": ["npu"]},
            "priority_levels": 2,
            "default_priority_level": 2,
            "ordering": {"policy": "strict_priority"},
            "admission": [{"policy": "bounded_queue", "max_queue_size": 64}],
        },
        {"name": "b", "cost": {"kind": "empirical", "quantiles": {1: {"p1": "1ms", "p99": "2ms"}}},
         "batching": "none"},
    ],
    "batching": {"policy": "delay_window", "max_batch_size": 8, "max_queue_delay": "5ms"},
    "workload": {
        "arrivals": {"process": "mmpp", "rates": ["800/s", "40/s"], "dwell": ["20ms", "480ms"]},
        "mix": [{"model": "a", "weight": 0.5, "priority": 1}, {"model": "b", "deadline": "5ms"}],
    },
    "frontend": {"receive": "5us"},
    "expect": ["latency_p99 <= 15ms", "mean_batch ~ 8 +- 5%"],
}  # fmt: skip

WORDS = [
    "", "a", "npu", "5ms", "0ms", "-5ms", "5", "5/s", "1e9/s", "5%", "200%", "1GiB", "any", "none",
    "never", "greedy", "delay_window", "table", "poisson", "closed", "x.py:Y", "os:getcwd", "é",
    "{", "a.b", "level1", "nan", "inf",
]  # fmt: skip
values = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from([None, True, False, 0, 1, -1, 2, 7, 10**20, -0.5, 0.5, math.nan, math.inf]),
    st.sampled_from([[], {}, [1], [[]], {"a": 1}, {1: 2}, {"policy": "none"}, {"law": "uniform"}]),
    st.sampled_from([object(), object, 3 + 4j, b"x", (1, 2), {1}]),
)


def places(value, path=()):
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        if isinstance(child, dict | list):
            found += places(child, (*path, key))
        else:
            found.append((*path, key))
    return found


PLACES = places(BASE)


@st.composite
def mutated(draw):
    data = copy.deepcopy(BASE)
    for _ in range(draw(st.integers(1, 3))):
        value = copy.copy(draw(values))
        path = draw(st.sampled_from(PLACES))
        at = data
        try:
            for key in path[:-1]:
                at = at[key]
            how = draw(st.sampled_from(["set", "delete", "add"]))
            if how == "delete":
                del at[path[-1]]
            elif how == "set":
                at[path[-1]] = value
            else:
                at[draw(st.sampled_from(["x", "policy", "kind", "law", "weight", 3]))] = value
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return data


@settings(max_examples=150, deadline=None, derandomize=True)
@given(mutated())
def test_mutations_load_or_say_why(data):
    try:
        scenario = Scenario.from_dict(data)
    except GesimError as error:
        text = str(error)
        assert text
        assert "pydantic" not in text
        assert "Input should" not in text
        return
    assert Scenario.from_dict(scenario.resolved()) == scenario
    scenario.warnings()
    build(scenario)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.sampled_from(PLACES), values)
def test_set_works_or_says_why(path, value):
    key = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
    scenario = Scenario.from_dict(BASE)
    try:
        assert scenario.set(key, value) is not scenario
    except GesimError as error:
        assert "pydantic" not in str(error)
    assert scenario == Scenario.from_dict(BASE)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(alphabet="ab:{}[]-#&*!|>'\"%@`,? \n\t0.~", max_size=30))
def test_texts_read_or_say_why(text):
    try:
        parse_text(text, "file")
    except GesimError as error:
        assert str(error).startswith("file")
