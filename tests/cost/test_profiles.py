"""Profiles: every shipped figure stands in the harvest of public curves; bad files say why."""

from __future__ import annotations

import csv
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

from gesim.cost.profile import FOLDER, list_profiles, load_profile
from gesim.cost.table import Table
from gesim.errors import ProfileError

CURVES = Path(__file__).parents[2] / "../shared/data/ascend/curves.csv"
SOURCE = re.compile(r"(?P<repo>\S+)@(?P<commit>[0-9a-f]{12}) (?P<path>\S+):(?P<line>\d+)")
NAMES = list_profiles()
GOOD = """\
profile: 1
name: mine
model: M
device: D
curves:
  - source: bench.log of 2026-01-02
    throughput: {1: 500/s, 8: 1000/s}
"""


@pytest.fixture(scope="module")
def harvest():
    if not CURVES.is_file():
        pytest.skip("the harvest of public curves is not beside the repository")
    with CURVES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def raw(name):
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_figure_is_published(name, harvest):
    said = raw(name)
    for curve in said["curves"]:
        source = SOURCE.fullmatch(curve["source"]).groupdict()
        rows = [
            row
            for row in harvest
            if (row["source_repo"], row["commit"]) == (source["repo"], source["commit"])
            and (row["source_path"], row["line"]) == (source["path"], source["line"])
            and row["device"] == said["device"]
            and row["batch_sizes"].split() == [str(batch) for batch in curve["throughput"]]
            and [f"{rate}/s" for rate in row["throughputs"].split()]
            == list(curve["throughput"].values())
        ]
        assert len(rows) == 1
        if "length" in curve:
            assert rows[0]["input_shape"].endswith(f"Sequence Length={curve['length']}")
        elif said["input"] != "not stated":
            assert rows[0]["input_shape"] == said["input"]
        assert ("4 chips" in rows[0]["basis"]) == (said.get("chips", 1) == 4)
        # A README that says outright what one chip does agrees with our sharing.
        if per_chip := re.search(r"per-chip=([\d.]+)", rows[0]["basis"]):
            profile = load_profile(name)
            assert profile.throughput_rps(1) == pytest.approx(float(per_chip[1]), rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_profiles_are_complete(name):
    profile = load_profile(name)
    said = raw(name)
    assert profile.name == name
    assert {"precision", "input", "basis", "measured_by", "caveats"} <= set(profile.facts)
    assert profile.device in ("Ascend 310P3", "Ascend 310", "NVIDIA T4")
    assert profile.device.split()[-1].lower() == name.rsplit("_", 1)[1]
    assert ("int8" in name) == (profile.facts["precision"] == "int8")
    assert profile.best_batch in profile.gears
    table = profile.table()
    for curve in said["curves"]:
        for batch, rate in curve["throughput"].items():
            chips = said.get("chips", 1)
            expected_ns = batch * chips / float(rate.removesuffix("/s")) * 1e9
            assert table.mean_ns(batch, curve.get("length", 0)) == round(expected_ns)


def affine_at(points, batch):
    """What a line says that fits the points best by relative error."""
    sizes, times = np.array(list(points)), np.array(list(points.values()), float)
    terms = np.stack([1 / times, sizes / times], axis=1)
    setup, per_item = np.linalg.lstsq(terms, np.ones(len(sizes)), rcond=None)[0]
    return setup + per_item * batch


def test_what_is_said_about_real_cards(harvest):
    """Tables predict a point left out better than fitted lines; throughput mostly falls."""
    table_errors, line_errors, rising = [], [], []
    for row in harvest:
        batches = [int(batch) for batch in row["batch_sizes"].split()]
        rates = [float(rate) for rate in row["throughputs"].split()]
        if row["device"] != "Ascend 310P3" or batches[0] != 1 or batches[-1] < 16:
            continue
        rising.append(all(b >= a * 0.99 for a, b in pairwise(rates)))
        times = {b: round(b / rate * 1e9) for b, rate in zip(batches, rates, strict=True)}
        for batch in batches[1:-1]:
            others = {b: time_ns for b, time_ns in times.items() if b != batch}
            table_errors.append(abs(Table(others).mean_ns(batch) / times[batch] - 1))
            line_errors.append(abs(affine_at(others, batch) / times[batch] - 1))
    assert len(rising) == 205
    assert np.mean(rising) == pytest.approx(0.14, abs=0.005)
    assert np.median(table_errors) == pytest.approx(0.035, abs=0.0005)
    assert np.median(line_errors) == pytest.approx(0.062, abs=0.0005)


def test_models_asked_for_are_there():
    wanted = ("resnet18", "resnet101", "bert_base", "yolov5s", "crnn", "dbnet", "mobilenetv3")
    assert {f"{model}_310p3" for model in wanted} <= set(NAMES)
    assert {"resnet18_310", "resnet101_310", "mobilenetv3_310", "resnet101_t4"} <= set(NAMES)
    assert {64, 128, 512} <= set(load_profile("bert_base_310p3").lengths)


def test_best_batch():
    assert load_profile("resnet101_310p3").best_batch == 8  # of 256
    assert load_profile("dbnet_310p3").best_batch == 1
    assert load_profile("bert_base_310p3").best_batch == 4  # at length 512


def write(tmp_path, text, name="mine.yaml"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return load_profile(name, tmp_path)


def test_throughput_or_time(tmp_path):
    profile = write(tmp_path, GOOD)
    assert profile.points == {0: {1: 2_000_000, 8: 8_000_000}}
    assert profile.sources == ("bench.log of 2026-01-02",)
    timed = write(tmp_path, GOOD.replace("throughput: {1: 500/s, 8: 1000/s}", "time: {1: 2ms}"))
    assert timed.points == {0: {1: 2_000_000}}
    assert timed.throughput_rps(1) == pytest.approx(500)


def test_chips_share_a_card(tmp_path):
    assert write(tmp_path, GOOD + "chips: 4\n").points == {0: {1: 8_000_000, 8: 32_000_000}}


def test_host_and_transfer(tmp_path):
    host = "host: {dispatch: 150us, per_item: 2us, source: strace}\n"
    copies = "transfer: {input: 1KiB, bandwidth: 1GiB/s, latency: 5us, source: guide}\n"
    profile = write(tmp_path, GOOD + host + copies)
    assert (profile.host.dispatch_ns, profile.host.per_item_ns) == (150_000, 2_000)
    assert profile.transfer.time_ns(profile.transfer.input_bytes, 2) == 5_000 + 1_907
    assert profile.sources == ("bench.log of 2026-01-02", "strace", "guide")


def test_a_changed_file_is_read_again(tmp_path):
    assert write(tmp_path, GOOD).points[0][1] == 2_000_000
    assert write(tmp_path, GOOD.replace("500/s", "250/s")).points[0][1] == 4_000_000
    stat = (tmp_path / "mine.yaml").stat()
    os.utime(tmp_path / "mine.yaml", ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    assert load_profile("mine.yaml", tmp_path).points[0][1] == 4_000_000


def test_names_that_do_not_exist(tmp_path):
    with pytest.raises(ProfileError, match=r"'resnet101_310p'; did you mean 'resnet101_310p3'\?"):
        load_profile("resnet101_310p")
    with pytest.raises(ProfileError, match=r"shipped: bert_base_310p3, .*or give the path"):
        load_profile("nothing")
    (tmp_path / "mine.yaml").write_text(GOOD)
    with pytest.raises(ProfileError, match=r"no profile file .*min\.yaml; did you mean 'mine\.y"):
        load_profile("min.yaml", tmp_path)
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ProfileError, match="no profile file"):
        load_profile("folder.yaml", tmp_path)


SOURCED = "  - source: bench.log of 2026-01-02\n"
RATES = "    throughput: {1: 500/s, 8: 1000/s}\n"
BAD = {
    "not yaml": ("profile: 1", "profile: [1", "cannot be read as YAML"),
    "empty": (GOOD, "", "a profile is a mapping, this is NoneType"),
    "key twice": ("model: M", "model: M\nmodel: N", "line 4: 'model' is given twice"),
    "point twice": ("8: 1000/s", "1: 1000/s", "line 7: 1 is given twice"),
    "version": ("profile: 1", "profile: 2", "profile: 2 is not a version; write 1"),
    "unknown key": ("device: D", "device: D\nchip: 4", "'chip' is unknown; did you mean 'chips'?"),
    "no model": ("model: M\n", "", "'model' is missing"),
    "model not text": ("model: M", "model: 7", "model: 7 must be text"),
    "chips": ("device: D", "device: D\nchips: 0", "chips: 0 must be a whole number of 1"),
    "no curves": ("curves:\n" + SOURCED + RATES, "curves: []\n", "needs a list of at least one"),
    "no source": (SOURCED + RATES, "  - throughput: {1: 5/s}\n", "'source' is missing; say where"),
    "empty source": ("bench.log of 2026-01-02", '" "', "source: ' ' must be text; say where"),
    "no figures": (RATES, "", "curves[0]: needs throughput (8: 1200/s) or time (8: 6.7ms)"),
    "both": (RATES, RATES + "    time: {1: 2ms}\n", "curves[0]: needs throughput"),
    "list": ("{1: 500/s, 8: 1000/s}", "[5/s]", "needs batch sizes with values, like 8: 1200/s"),
    "batch 0": ("1: 500/s", "0: 500/s", "throughput.0: 0 is not a batch size"),
    "batch text": ("1: 500/s", "one: 500/s", "throughput.one: 'one' is not a batch size"),
    "falling": ("8: 1000/s", "8: 1000/s, 4: 7/s", "batch sizes must increase; 4 follows 8"),
    "zero": ("500/s", "0/s", "curves[0].throughput.1: '0/s' must be above 0"),
    "negative": ("500/s", "-5/s", "curves[0].throughput.1: '-5/s' is negative"),
    "nan": ("500/s", ".nan", "curves[0].throughput.1: nan is not a rate: it must be a finite"),
    "infinite": ("500/s", "inf/s", "curves[0].throughput.1: 'inf/s' is not a rate"),
    "no unit": ("500/s", "500", "curves[0].throughput.1: 500 has no unit; a rate needs one"),
    "wrong unit": ("500/s", "500ms", "curves[0].throughput.1: '500ms' is not a rate"),
    "too fast": ("500/s", "1e12/s", "curves[0].throughput.1: '1e12/s' makes a batch shorter"),
    "zero time": (RATES, "    time: {1: 0ms}\n", "curves[0].time.1: '0ms' must be above 0"),
    "card time": (
        RATES,
        "    time: {1: 2ms}\nchips: 2\n",
        "time: is of one batch, so chips must be 1",
    ),
    "length 0": (SOURCED, SOURCED + "    length: 0\n", "curves[0].length: 0 must be a whole"),
    "second curve": (RATES, RATES + SOURCED + RATES, "curves[1].length: is missing"),
    "length twice": (
        SOURCED + RATES,
        2 * (SOURCED + "    length: 8\n" + RATES),
        "curves[1].length: 8 is given twice",
    ),
    "some lengths": (
        RATES,
        RATES + SOURCED + "    length: 8\n" + RATES,
        "every curve needs a length",
    ),
    "host source": ("device: D", "device: D\nhost: {dispatch: 1us}", "host: 'source' is missing"),
    "host unit": (
        "device: D",
        "device: D\nhost: {dispatch: 1, source: s}",
        "host.dispatch: 1 has no unit",
    ),
    "no bandwidth": (
        "device: D",
        "device: D\ntransfer: {input: 1KiB, source: s}",
        "transfer: 'bandwidth' is missing",
    ),
}


@pytest.mark.parametrize(("old", "new", "words"), BAD.values(), ids=BAD)
def test_bad_files(tmp_path, old, new, words):
    assert old in GOOD
    with pytest.raises(ProfileError) as error:
        write(tmp_path, GOOD.replace(old, new))
    assert words in str(error.value)
    assert str(tmp_path / "mine.yaml") in str(error.value)


def test_lengths_share_their_gears(tmp_path):
    text = GOOD.replace(
        SOURCED + RATES,
        "  - {source: s, length: 64, time: {1: 1ms, 4: 2ms, 8: 3ms}}\n"
        "  - {source: s, length: 128, time: {1: 2ms, 8: 5ms, 16: 9ms}}\n",
    )
    profile = write(tmp_path, text)
    assert profile.gears == (1, 8)
    assert profile.lengths == (64, 128)
    assert profile.table().mean_ns(4, 100) == round(2e6 + 3e6 * 3 / 7)
    with pytest.raises(ProfileError, match="no batch size stands in all of them"):
        write(tmp_path, text.replace("1: 1ms, 4: 2ms, 8: 3ms", "2: 1ms"))
