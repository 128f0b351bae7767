"""What bad scenario files get: one clear message with file, line, key path, value and fix."""

import textwrap

import pytest
import yaml

from gesim.errors import GesimError, PolicyError, ProfileError, ScenarioError
from gesim.scenario.load import load

GOOD = """\
schema: 1
name: good
requests: 1000
devices:
  - {name: npu, count: 2, streams: 1}
models:
  - name: resnet
    cost:
      kind: table
      points: {1: 2ms, 4: 5ms, 8: 9ms}
    gears: [1, 4, 8]
    priority_levels: 2
    batching:
      policy: delay_window
      max_batch_size: 8
      max_queue_delay: 5ms
    ordering: strict_priority
    admission:
      - {policy: bounded_queue, max_queue_size: 64}
workload:
  arrivals: {process: poisson, rate: 150/s}
  mix:
    - {weight: 0.7, priority: 1}
    - {weight: 0.3, priority: 2}
expect:
  - latency_p99 <= 15ms
"""


def message_of(tmp_path, text, error=ScenarioError):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(GesimError) as caught:
        load(path)
    assert isinstance(caught.value, error), repr(caught.value)
    message = str(caught.value)
    assert str(path) in message
    for alien in ("pydantic", "Traceback", "validation error", "Input should", "type="):
        assert alien not in message
    return message.replace(str(path), "bad.yaml")


def test_the_good_one_is_good(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    assert load(path).warnings() == []


CASES = {
    "unknown top key": ("name: good", "nmae: good", ["bad.yaml:2: nmae: unknown key", "'name'"]),
    "unknown policy parameter": (
        "      max_batch_size: 8",
        "      max_batchsize: 8",
        ["bad.yaml:15: models[0].batching.max_batchsize: ", "did you mean 'max_batch_size'?"],
    ),
    "unknown model key": (
        "priority_levels: 2",
        "priority_level: 2",
        ["bad.yaml:12: models[0].priority_level: unknown key; did you mean 'priority_levels'?"],
    ),
    "unknown key without a near one": (
        "name: good",
        "zebra: 1",
        ["bad.yaml:2: zebra: unknown key", "known here: schema, name"],
    ),
    "bare number for a time": (
        "max_queue_delay: 5ms",
        "max_queue_delay: 5",
        ["bad.yaml:16: models[0].batching.max_queue_delay: 5 has no unit", "like 5ms"],
    ),
    "bare number for a rate": (
        "rate: 150/s",
        "rate: 150",
        ["bad.yaml:21: workload.arrivals.rate: 150 has no unit; a rate needs one, like 150/s"],
    ),
    "wrong unit": (
        "1: 2ms",
        "1: 2MB",
        ["bad.yaml:10: models[0].cost.points[1]: '2MB' is not a time: unknown unit 'MB'"],
    ),
    "negative rate": ("150/s", "-150/s", ["workload.arrivals.rate: '-150/s' is negative"]),
    "zero rate": ("150/s", "0/s", ["workload.arrivals.rate: 0/s must be above 0"]),
    "NaN rate": ("rate: 150/s", "rate: .nan", ["workload.arrivals.rate: nan is not a rate"]),
    "NaN weight": ("weight: 0.7", "weight: .nan", ["workload.mix[0].weight: nan", "finite"]),
    "infinite weight": ("weight: 0.7", "weight: .inf", ["workload.mix[0].weight: inf", "finite"]),
    "negative weight": (
        "weight: 0.7",
        "weight: -0.7",
        ["workload.mix[0].weight: -0.7 is negative"],
    ),
    "duplicate key": (
        "requests: 1000",
        "requests: 1000\nname: again",
        ["bad.yaml:4: name: key given twice, first on line 2"],
    ),
    "YAML syntax": ("gears: [1, 4, 8]", "gears: [1, 4, 8", ["bad.yaml:", "not YAML"]),
    "tab": ("name: good", "name:\tgood\n\tx: 1", ["bad.yaml:2:6", "not YAML"]),
    "unknown process": (
        "process: poisson",
        "process: poison",
        ["workload.arrivals.process: 'poison' is not one of", "did you mean 'poisson'?"],
    ),
    "no process": ("process: poisson, ", "", ["workload.arrivals: needs process, one of: poisson"]),
    "unknown cost kind": (
        "kind: table",
        "kind: tabel",
        ["models[0].cost.kind: 'tabel'", "'table'"],
    ),
    "schema missing": ("schema: 1\n", "", ["needs schema"]),
    "schema newer": ("schema: 1", "schema: 2", ["schema: 2 is newer than this gesim", "schema 1"]),
    "schema text": ("schema: 1", "schema: one", ["schema: 'one' is not a schema version"]),
    "no models": ("models:\n", "models: []\nx:\n", ["models"]),
    "models no list": ("name: resnet\n", "name: resnet\n  junk: 1\n", ["bad.yaml"]),
    "unknown policy": (
        "policy: delay_window",
        "policy: delay_windw",
        ["models[0].batching.policy: there is no batching policy 'delay_windw'", "'delay_window'"],
    ),
    "policy of another kind": (
        "ordering: strict_priority",
        "ordering: greedy",
        ["bad.yaml:17: models[0].ordering: there is no ordering policy 'greedy'", "kind batching"],
    ),
    "policy without name": (
        "policy: delay_window",
        "polcy: delay_window",
        ["models[0].batching: names no policy", "is it 'polcy'?"],
    ),
    "missing parameter": (
        "      max_batch_size: 8\n",
        "",
        ["models[0].batching: policy 'delay_window' needs max_batch_size"],
    ),
    "fractional size": (
        "max_batch_size: 8",
        "max_batch_size: 7.5",
        ["models[0].batching.max_batch_size: 7.5 is not a whole number"],
    ),
    "boolean size": (
        "max_batch_size: 8",
        "max_batch_size: true",
        ["models[0].batching.max_batch_size: True is not a whole number"],
    ),
    "zero size": (
        "max_batch_size: 8",
        "max_batch_size: 0",
        ["models[0].batching.max_batch_size: delay_window: max_batch_size is 0"],
    ),
    "wrong choice": (
        "max_queue_delay: 5ms",
        "max_queue_delay: 5ms\n      timer_origin: oldest",
        ["models[0].batching.timer_origin: 'oldest' is not one of: ", "'oldest_enqueue'"],
    ),
    "above the largest gear": (
        "max_batch_size: 8",
        "max_batch_size: 16",
        [
            "bad.yaml:15: models[0].batching.max_batch_size: 16 is above the largest gear",
            "8 (gears: 1, 4, 8)",
        ],
    ),
    "gears out of order": ("[1, 4, 8]", "[4, 1, 8]", ["models[0].gears: [4, 1, 8] must increase"]),
    "gears not sizes": ("[1, 4, 8]", "[0, 4]", ["models[0].gears: 0 is not a batch size"]),
    "gears text": ("[1, 4, 8]", "all", ["models[0].gears: 'all' is not a list of batch sizes"]),
    "priority outside": (
        "priority: 2}",
        "priority: 3}",
        ["workload.mix[1].priority: 3 is no priority level of model 'resnet'", "levels 1 to 2"],
    ),
    "default priority outside": (
        "priority_levels: 2",
        "priority_levels: 2\n    default_priority_level: 4",
        ["models[0].default_priority_level: 4 is no priority level", "levels 1 to 2"],
    ),
    "unknown device": (
        "priority_levels: 2",
        "priority_levels: 2\n    instance_group: {count: 1, devices: [nppu]}",
        ["models[0].instance_group.devices[0]: there is no device 'nppu'", "did you mean 'npu'?"],
    ),
    "unknown model in mix": (
        "{weight: 0.7, priority: 1}",
        "{weight: 0.7, model: resnt}",
        ["workload.mix[0].model: there is no model 'resnt'", "did you mean 'resnet'?"],
    ),
    "two devices of one name": (
        "  - {name: npu, count: 2, streams: 1}",
        "  - {name: npu}\n  - {name: npu}",
        ["devices[1].name: 'npu' names a second device"],
    ),
    "device name of a copy": (
        "  - {name: npu, count: 2, streams: 1}",
        "  - {name: npu, count: 2}\n  - {name: npu1}",
        ["devices[1].name: 'npu1' names a second device"],
    ),
    "no end": ("requests: 1000\n", "", ["never end", "requests", "duration"]),
    "zero requests": ("requests: 1000", "requests: 0", ["requests: 0 must be 1 or more"]),
    "text requests": ("requests: 1000", "requests: many", ["requests: 'many' is not a whole"]),
    "warmup of everything": ("requests: 1000", "requests: 1000\nwarmup: 100%", ["warmup: 100%"]),
    "warmup nonsense": ("requests: 1000", "requests: 1000\nwarmup: some", ["warmup: 'some'"]),
    "negative seed": ("requests: 1000", "requests: 1000\nseed: -1", ["seed: -1 must be 0 or more"]),
    "profile and cost": (
        "    cost:",
        "    profile: x\n    cost:",
        ["models[0]: model 'resnet' has both"],
    ),
    "unknown metric": (
        "latency_p99 <= 15ms",
        "latncy_p99 <= 15ms",
        ["bad.yaml:26: expect[0]: there is no metric 'latncy_p99'", "did you mean 'latency_p99'?"],
    ),
    "expect without unit": ("<= 15ms", "<= 15", ["expect[0]: '15' has no unit", "15ms"]),
    "expect with another unit": ("<= 15ms", "<= 15/s", ["expect[0]: '15/s' is not a time"]),
    "expect without operator": (
        "latency_p99 <= 15ms",
        "latency_p99 15ms",
        ["is not an expectation"],
    ),
    "expect about without tolerance": ("<= 15ms", "~ 15ms", ["needs a tolerance"]),
    "expect of unknown model": (
        "latency_p99 <=",
        "resnt.latency_p99 <=",
        ["expect[0]: there is no model or level 'resnt'", "did you mean 'resnet'?"],
    ),
    "expect of unknown level": ("latency_p99 <=", "level3.latency_p99 <=", ["'level3'"]),
    "a list where a mapping belongs": (
        "{process: poisson, rate: 150/s}",
        "[poisson]",
        ["workload.arrivals: ['poisson'] is not a mapping"],
    ),
    "point not a size": ("{1: 2ms,", "{one: 2ms,", ["models[0].cost.points.one"]),
    "work with a table": (
        "{weight: 0.7, priority: 1}",
        "{weight: 0.7, work: 5ms}",
        ["workload.mix[0].work: has no effect", "kind table"],
    ),
    "length with a plain table": (
        "{weight: 0.7, priority: 1}",
        "{weight: 0.7, length: 128}",
        ["workload.mix[0].length: the profile of 'resnet' has no lengths"],
    ),
    "items beyond a batch": (
        "{weight: 0.7, priority: 1}",
        "{weight: 0.7, items: 9}",
        ["workload.mix[0].items: 9 is more than a batch of model 'resnet' holds"],
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_bad_input(tmp_path, name):
    old, new, fragments = CASES[name]
    assert old in GOOD
    error = PolicyError if name in ("unknown policy", "policy of another kind") else ScenarioError
    message = message_of(tmp_path, GOOD.replace(old, new, 1), error)
    for fragment in fragments:
        assert fragment in message


def test_weights_all_zero(tmp_path):
    text = GOOD.replace("weight: 0.7", "weight: 0").replace("weight: 0.3", "weight: 0")
    assert "workload: mix weights are all 0" in message_of(tmp_path, text)


def test_missing_point(tmp_path):
    text = GOOD.replace("    gears: [1, 4, 8]\n", "    gears: any\n").replace(
        "max_batch_size: 8", "max_batch_size: 12"
    )
    message = message_of(tmp_path, text, ProfileError)
    assert "models[0].batching.max_batch_size: batches of 9 can happen, but" in message
    load_text(tmp_path, text.replace("kind: table", "kind: table\n      extrapolate: linear"))


def test_gear_without_a_point(tmp_path):
    text = GOOD.replace("gears: [1, 4, 8]", "gears: [1, 4, 8, 16]").replace(
        "max_batch_size: 8", "max_batch_size: 16"
    )
    assert "models[0].gears: batches of 16" in message_of(tmp_path, text, ProfileError)


def load_text(tmp_path, text):
    path = tmp_path / "fine.yaml"
    path.write_text(text)
    return load(path)


TWO = GOOD.replace(
    "models:\n",
    "models:\n  - {name: other, cost: {kind: affine, setup: 1ms, per_item: 1ms}}\n",
)


def test_several_models_need_a_mix(tmp_path):
    message = message_of(tmp_path, TWO)
    assert "workload.mix[0]: needs model, one of: other, resnet" in message
    bare = yaml.safe_load(TWO)
    del bare["workload"]["mix"]
    assert "workload: needs mix: with 2 models" in message_of(tmp_path, yaml.safe_dump(bare))


def test_one_model_twice(tmp_path):
    text = TWO.replace("name: other", "name: resnet")
    assert "models[1].name: 'resnet' names a second model" in message_of(tmp_path, text)


def test_all_problems_in_one_message(tmp_path):
    text = (
        GOOD.replace("name: good", "nmae: good")
        .replace("150/s", "150")
        .replace("max_batch_size: 8", "max_batchsize: 8")
        .replace("priority: 2}", "priority: 0}")
    )
    lines = message_of(tmp_path, text).splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "nmae",
        "models[0].batching",
        "models[0].batching.max_batchsize",
        "workload.arrivals.rate",
        "workload.mix[1].priority",
    ]


def test_many_problems_are_counted(tmp_path):
    text = GOOD + "".join(f"junk{i}: 1\n" for i in range(14))
    lines = message_of(tmp_path, text).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "... and 4 more"


def test_missing_file(tmp_path):
    (tmp_path / "quickstart.yaml").write_text(GOOD)
    with pytest.raises(ScenarioError, match=r"quick_start\.yaml: no such file; did you mean"):
        load(tmp_path / "quick_start.yaml")
    with pytest.raises(ScenarioError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (b"", "is empty"),
        (b"- 1\n- 2\n", "this is a list"),
        (b"just text\n", "this is text"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a: &x [*x]\n", "alias contains itself"),
        (b"? [1, 2]\n: 3\n", "key must be text"),
        (b"[" * 5000, "nested too deeply"),
        (b"a: !!python/name:os.system x\n", "not YAML"),
    ],
)
def test_files_that_are_no_scenarios(tmp_path, content, fragment):
    path = tmp_path / "file.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=fragment) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_yaml_words_are_text(tmp_path):
    text = textwrap.dedent("""\
        schema: 1
        requests: 10
        models: [{name: "no", cost: {kind: affine, setup: 1ms, per_item: 1ms}}]
        workload:
          arrivals: {process: on_off, rate: 1e2/s, on: 100ms, off: 900ms}
        """)
    arrivals = load_text(tmp_path, text).workload.arrivals
    assert (arrivals.on_ns, arrivals.off_ns) == (100_000_000, 900_000_000)


def test_a_policy_file_that_fails(tmp_path):
    (tmp_path / "mine.py").write_text("import nothing_of_this_name\n")
    text = GOOD.replace("policy: delay_window", "policy: mine.py:Mine")
    assert "cannot be imported" in message_of(tmp_path, text, PolicyError)
    (tmp_path / "mine.py").write_text("def broken(:\n")
    assert "mine.py, line 1" in message_of(tmp_path, text, PolicyError)
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    assert "must subclass" in message_of(tmp_path, text, PolicyError)
