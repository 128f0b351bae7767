"""Reading a scenario file into a checked `Scenario`."""

from __future__ import annotations

from pathlib import Path

from gesim.scenario.scenario import Scenario
from gesim.scenario.source import read_file

__all__ = ["Scenario", "load"]


def load(path: str | Path) -> Scenario:
    """Read and check a scenario file.

    Parameters
    ----------
    path : str or Path
        A YAML file. File names inside it are relative to its folder.

    Raises
    ------
    ScenarioError
        With everything that is wrong, each with line, key path, value and what would be right.
    PolicyError, ProfileError
        If only a policy or a profile is.
    """
    return Scenario.from_source(read_file(path))
