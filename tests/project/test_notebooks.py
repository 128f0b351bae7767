"""The notebooks run from top to bottom, and are committed with their output."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def kinds(cell) -> list[list[str]]:
    """What a cell shows: text, tables, figures."""
    return [sorted(output.get("data", {})) for output in cell.get("outputs", [])]


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == [
        "01_first_steps",
        "02_batching_tradeoff",
        "03_write_your_own_policy",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_runs(self, path):
        from nbclient import NotebookClient

        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            resources={"metadata": {"path": str(path.parent)}},
        )
        committed = [kinds(cell) for cell in notebook.cells]
        client.execute()
        assert [kinds(cell) for cell in notebook.cells] == committed

    def test_is_committed_with_its_output(self, path):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
        outputs = [output for cell in cells for output in cell.outputs]
        assert any("image/png" in output.get("data", {}) for output in outputs)
        assert not any(output.output_type == "error" for output in outputs)

    def test_nothing_local(self, path):
        text = path.read_text(encoding="utf-8")
        for place in ("/work/", "/home/", "/root/", "/tmp/"):
            assert place not in text
