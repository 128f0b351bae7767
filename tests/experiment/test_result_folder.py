import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pandas.testing import assert_frame_equal
from pyarrow import parquet
from tiny_scenario import TINY

import gesim
from gesim.experiment.folder import FILES, check_target, summary_text


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    result = gesim.run(gesim.Scenario.from_dict(TINY, "tiny"))
    return result, result.save(tmp_path_factory.mktemp("once") / "saved")


@pytest.fixture
def saved(saved_once, tmp_path):
    """A result and a folder of it to play with."""
    result, folder = saved_once
    return result, Path(shutil.copytree(folder, tmp_path / "saved"))


# ---- writing -------------------------------------------------------------------------------


def test_every_file_says_who_made_it(saved):
    result, folder = saved
    assert {path.name for path in folder.iterdir()} == set(FILES) - {"curves.npz"}
    assert result.folder.name == folder.name
    label = result.label
    assert (folder / "scenario.yaml").read_text().startswith(f"# {label}\n")
    assert label in (folder / "report.html").read_text()
    trace = json.loads((folder / "trace.json").read_text())
    assert trace["otherData"]["made_by"] == label
    for name in ("summary.json", "run.json"):
        data = json.loads((folder / name).read_text())
        assert (data["gesim"], data["fidelity"], data["seed"]) == (gesim.__version__, "model", 7)
        assert data["engine"] == result.engine
    for name in ("requests", "batches"):
        metadata = parquet.read_schema(folder / f"{name}.parquet").metadata
        assert metadata[b"label"].decode() == label
        assert metadata[b"fidelity"] == b"simulated (model)"


def test_parquet_files_hold_the_frames(saved):
    result, folder = saved
    for name in ("requests", "batches"):
        read = pd.read_parquet(folder / f"{name}.parquet")
        frame = getattr(result, name)()
        assert_frame_equal(read, frame, check_categorical=False)


def test_the_stored_scenario_gives_the_same_numbers(saved):
    result, folder = saved
    again = gesim.run(folder / "scenario.yaml")
    assert summary_text(again) == (folder / "summary.json").read_text()
    assert again.scenario == result.scenario


def test_two_folders_of_one_seed_have_the_same_summary(saved, tiny, tmp_path):
    _, folder = saved
    again = gesim.run(tiny, out=tmp_path / "again")
    assert again.folder == tmp_path / "again"
    assert (again.folder / "summary.json").read_bytes() == (folder / "summary.json").read_bytes()


def test_nothing_of_the_moment_in_summary_json(saved):
    _, folder = saved
    text = (folder / "summary.json").read_text()
    about = json.loads((folder / "run.json").read_text())
    assert about["started_at"] not in text
    assert "wall" not in text
    assert str(folder) not in text


def test_a_former_result_is_replaced(saved, one):
    _, folder = saved
    gesim.run(one).save(folder)
    assert gesim.open_result(folder).scenario.name == "one"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_an_empty_folder_is_filled(one, tmp_path):
    (tmp_path / "empty").mkdir()
    gesim.run(one, out=tmp_path / "empty")
    assert gesim.open_result(tmp_path / "empty").scenario.name == "one"


@pytest.mark.parametrize("name", ["notes.txt", "run.json", "summary.json"])
def test_foreign_folders_are_left_alone(one, tmp_path, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("{}")
    with pytest.raises(gesim.ResultError, match=f"holds {name}.* left alone"):
        gesim.run(one, out=folder)
    assert [path.name for path in folder.iterdir()] == [name]


def test_notes_in_a_result_are_not_thrown_away(saved, one):
    _, folder = saved
    (folder / "notes.txt").write_text("keep")
    with pytest.raises(gesim.ResultError, match=r"holds notes\.txt"):
        gesim.run(one).save(folder)
    assert gesim.open_result(folder).scenario.name == "tiny"


def test_targets_that_cannot_be(one, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(gesim.ResultError, match="is a file"):
        check_target(tmp_path / "file")
    with pytest.raises(gesim.ResultError, match="is not a folder"):
        check_target(tmp_path / "file" / "below")
    assert check_target(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    assert not (tmp_path / "new").exists()


def test_no_half_written_folder(saved, one, monkeypatch):
    """What goes wrong while a result is written leaves the former one, and nothing beside it."""
    _, folder = saved
    before = (folder / "summary.json").read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(gesim.ResultError, match="No space left on device"):
        gesim.run(one).save(folder)
    assert (folder / "summary.json").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "write_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gesim.run(one).save(folder.parent / "other")
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_the_former_result_comes_back_if_the_new_one_cannot_be_put_there(saved, one, monkeypatch):
    _, folder = saved
    original = Path.replace

    def replace(self, target):
        if Path(target) == folder and not self.name.endswith("-old"):
            raise OSError(16, "Device or resource busy")
        return original(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(gesim.ResultError, match="busy"):
        gesim.run(one).save(folder)
    monkeypatch.undo()
    assert gesim.open_result(folder).scenario.name == "tiny"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


# ---- reading -------------------------------------------------------------------------------


@pytest.mark.parametrize("replications", [1, 3])
def test_a_saved_result_is_the_same_result(tiny, tmp_path, replications):
    result = gesim.run(tiny, replications=replications)
    opened = gesim.open_result(result.save(tmp_path / "saved"))
    assert str(opened.summary_dict["models"].keys()) == str(result.summary_dict["models"].keys())
    assert opened.summary_dict == result.summary_dict
    assert opened.expectations == result.expectations
    assert opened.label == result.label
    assert opened.scenario == result.scenario
    assert [run.summary for run in opened.runs] == [run.summary for run in result.runs]
    assert_frame_equal(opened.requests(), result.requests())
    assert_frame_equal(opened.batches(), result.batches())
    assert_frame_equal(opened.summary(), result.summary())
    for mine, theirs in zip(opened.runs, result.runs, strict=True):
        for name in (*mine.records.REQUEST_COLUMNS, *mine.records.BATCH_COLUMNS):
            if name != "reason":  # codes may be numbered otherwise
                assert (getattr(mine.records, name) == getattr(theirs.records, name)).all(), name
    assert summary_text(opened) == summary_text(result)
    assert opened.compare(result).axes


def test_saving_an_opened_result_keeps_how_it_came_about(saved, tmp_path):
    _, folder = saved
    about = json.loads((folder / "run.json").read_text())
    about["started_at"], about["gesim"] = "2020-01-01T00:00:00+00:00", "0.0.1"
    (folder / "run.json").write_text(json.dumps(about))
    copy = gesim.open_result(folder).save(tmp_path / "copy")
    assert json.loads((copy / "run.json").read_text()) == about


def test_report_and_trace_may_be_gone(saved):
    _, folder = saved
    (folder / "report.html").unlink()
    (folder / "trace.json").unlink()
    assert len(gesim.open_result(folder).requests()) == 400


def test_a_file_of_the_folder_will_do(saved):
    _, folder = saved
    assert gesim.open_result(folder / "report.html").scenario.name == "tiny"


def test_policies_of_a_notebook_may_be_gone(tiny, tmp_path):
    import sys
    import types

    module = types.ModuleType("gone_notebook")
    exec(  # a module that ends with its kernel
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from gesim import BatchingPolicy, Dispatch\n"
        "@dataclass\n"
        "class Mine(BatchingPolicy):\n"
        "    name: ClassVar[str] = 'mine'\n"
        "    max_batch_size: int = 3\n"
        "    def decide(self, now_ns, queue):\n"
        "        return Dispatch(queue.fit(3))\n",
        vars(module),
    )
    module.Mine.__module__ = "gone_notebook"
    sys.modules["gone_notebook"] = module
    try:
        result = gesim.run(tiny, policies={"batching": module.Mine})
        folder = result.save(tmp_path / "saved")
    finally:
        del sys.modules["gone_notebook"]
    opened = gesim.open_result(folder)
    assert opened.summary_dict == result.summary_dict
    assert "gone_notebook:Mine" in str(opened.scenario.resolved())


def _rewrite(folder, name, change):
    data = json.loads((folder / name).read_text())
    change(data)
    (folder / name).write_text(json.dumps(data))


def _other_model(folder):
    frame = pd.read_parquet(folder / "requests.parquet")
    frame["model"] = "unheard"
    frame.to_parquet(folder / "requests.parquet")


DAMAGES = {
    "no run.json": (lambda f: (f / "run.json").unlink(), "not a gesim result"),
    "foreign run.json": (lambda f: (f / "run.json").write_text("{}"), "not a gesim result"),
    "run.json is a list": (lambda f: (f / "run.json").write_text("[]"), "damaged: run.json"),
    "run.json cut": (lambda f: (f / "run.json").write_text('{"gesim": '), "damaged: run.json"),
    "newer format": (
        lambda f: _rewrite(f, "run.json", lambda d: d.update(format=99)),
        "was written in format 99 by gesim",
    ),
    "no summary": (lambda f: (f / "summary.json").unlink(), "incomplete: it has no summary.json"),
    "no requests": (
        lambda f: (f / "requests.parquet").unlink(),
        "incomplete: it has no requests.parquet",
    ),
    "requests cut": (
        lambda f: (f / "requests.parquet").write_bytes(
            (f / "requests.parquet").read_bytes()[:2000]
        ),
        "damaged",
    ),
    "other tables": (
        lambda f: shutil.copy(f / "batches.parquet", f / "requests.parquet"),
        "damaged: it has no",
    ),
    "unknown model": (_other_model, "damaged: column model holds unheard"),
    "no seeds": (lambda f: _rewrite(f, "run.json", lambda d: d.pop("seeds")), "it has no 'seeds'"),
    "seeds without runs": (
        lambda f: _rewrite(f, "run.json", lambda d: d.update(seeds=[1, 2])),
        "damaged",
    ),
    "facts of something else": (
        lambda f: _rewrite(f, "run.json", lambda d: d.update(facts={"colour": "red"})),
        "damaged",
    ),
    "scenario is text": (lambda f: (f / "scenario.yaml").write_text("hello"), "damaged"),
    "scenario is not YAML": (lambda f: (f / "scenario.yaml").write_text("{a: ["), "damaged"),
    "scenario of another schema": (
        lambda f: (f / "scenario.yaml").write_text(yaml.safe_dump({"schema": 9})),
        "damaged",
    ),
    "binary summary": (lambda f: (f / "summary.json").write_bytes(b"\xff\xfe\x00"), "damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_results(saved, damage):
    _, folder = saved
    change, message = DAMAGES[damage]
    change(folder)
    with pytest.raises(gesim.ResultError) as caught:
        gesim.open_result(folder)
    assert message in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_folder(tmp_path):
    with pytest.raises(gesim.ResultError, match="is not there"):
        gesim.open_result(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(gesim.ResultError, match="is a file"):
        gesim.open_result(tmp_path / "file")


def test_a_long_run_keeps_its_curves(one, tmp_path, monkeypatch):
    from gesim.experiment import run as module
    from gesim.metrics.recorder import Recorder

    monkeypatch.setattr(module, "Recorder", lambda facts, most: Recorder(facts, max_records=100))
    result = gesim.run(one)
    assert result.summary_dict["rules"]["records"].startswith("streamed")
    folder = result.save(tmp_path / "long")
    assert (folder / "curves.npz").is_file()
    opened = gesim.open_result(folder)
    assert opened.runs[0].records.curves.requests == 200
    assert opened.summary_dict == result.summary_dict
    monkeypatch.undo()
    gesim.run(one).save(folder)  # replaces all of it
    assert not (folder / "curves.npz").exists()
