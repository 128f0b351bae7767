"""Rules for the code as a whole that neither the type checker nor the linter knows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "gesim").rglob("*.py"))
PLAIN = [p for p in MODULES if p.relative_to(ROOT).parts[1] in ("core", "policies")]

ALLOWED = ("gesim.core", "gesim.errors", "gesim.policies.checks")
FORBIDDEN = {
    "asyncio", "matplotlib", "multiprocessing", "numba", "numpy", "pandas", "random", "scipy",
    "secrets", "simpy", "socket", "subprocess", "threading", "time", "torch",
}  # fmt: skip


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_modules_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 500


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
    return found


def test_there_is_a_core():
    assert len(PLAIN) > 20


@pytest.mark.parametrize("path", PLAIN, ids=ids)
def test_core_and_policies_are_plain_python(path):
    """Sans-IO: what decides has no clock, no chance and no library, so it can run anywhere."""
    for name in imports(path):
        top = name.partition(".")[0]
        if top == "gesim":
            assert name.startswith(ALLOWED), f"imports {name}"
        else:
            assert top in sys.stdlib_module_names, f"imports {name}"
            assert top not in FORBIDDEN, f"imports {name}"


def test_import_is_light():
    """`import gesim` loads none of the heavy libraries; they come with the first use."""
    heavy = ("torch", "simpy", "numba", "pandas", "numpy", "scipy", "matplotlib", "pydantic")
    code = f"import sys, gesim; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_exists():
    import gesim

    for name in gesim.__all__:
        assert getattr(gesim, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lood'"):
        _ = gesim.lood
    assert set(gesim.__all__) <= set(dir(gesim))


def test_version_is_the_packages():
    from importlib.metadata import version

    import gesim

    assert version("gesim") == gesim.__version__
