import subprocess
import sys

import pytest

import gesim

HEAVY = [
    "torch", "simpy", "numba", "pandas", "numpy", "scipy", "matplotlib", "plotly", "pyarrow",
    "pydantic", "yaml", "rich", "typer",
]  # fmt: skip


def test_import_is_light():
    code = f"import sys, gesim; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_loading_a_scenario_needs_no_simulator():
    code = (
        "import sys, gesim; gesim.load; gesim.ScenarioError; gesim.Dispatch; "
        "print(*(m for m in ('simpy', 'numba', 'torch', 'pandas', 'scipy', 'matplotlib') "
        "if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", gesim.__all__)
def test_every_public_name_is_there(name):
    assert getattr(gesim, name) is not None
    assert name in dir(gesim)


def test_unknown_names():
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        gesim.lod  # noqa: B018


def test_errors_are_one_tree():
    errors = [getattr(gesim, name) for name in gesim.__all__ if name.endswith("Error")]
    assert len(errors) >= 9
    assert all(issubclass(error, gesim.GesimError) for error in errors)


def test_types_are_published():
    from importlib.resources import files

    assert (files("gesim") / "py.typed").is_file()
