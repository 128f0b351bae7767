"""Profiles: small files with a card's published figures, each with its source.

A profile gives the throughput (or the time) of every compiled batch size, its gears. The time of
a batch is ``batch / throughput``; a figure of a whole card of `chips` is shared by its chips.
See `gesim.cost.profile_file` for the keys of a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from gesim.cost.profile_file import read
from gesim.cost.service import Host, Transfer
from gesim.cost.table import Table
from gesim.errors import ProfileError
from gesim.units import suggest

__all__ = ["Profile", "list_profiles", "load_profile"]

FOLDER = Path(__file__).parent.parent / "profiles"


@dataclass(frozen=True)
class Profile:
    """Published figures of one model on one device.

    Attributes
    ----------
    name, model, device : str
    facts : dict of str to str
        Precision, input shape, basis, who measured, caveats: for people.
    gears : tuple of int
        Compiled batch sizes, increasing: those that every length has.
    points : dict of int to dict of int to int
        Length (0 for none) to batch size to ns.
    sources : tuple of str
        Where the figures stand, one a curve; then those of host and transfer.
    host, transfer : Host, Transfer or None
        Terms beside the compute time, where the file has figures for them.
    """

    name: str
    model: str
    device: str
    facts: dict[str, str]
    gears: tuple[int, ...]
    points: dict[int, dict[int, int]]
    sources: tuple[str, ...]
    host: Host | None = None
    transfer: Transfer | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """Compiled lengths, empty for none."""
        return tuple(sorted(length for length in self.points if length))

    @property
    def best_batch(self) -> int:
        """Batch size with the highest throughput (at the longest length).

        Often not the largest gear: of 205 public curves on 310P3 only 14 % never fall.
        """
        points = self.points[max(self.points)]
        return max(points, key=lambda batch: (batch / points[batch], -batch))

    def throughput_rps(self, batch: int, length: int = 0) -> float:
        """Items per second at a measured batch size (and length)."""
        return batch / self.points[length][batch] * 1e9

    def table(
        self,
        gears: tuple[int, ...] | None = None,
        extrapolate: Literal["never", "linear"] = "never",
    ) -> Table:
        """Make the cost model, for other gears than the profile's if given (() for any)."""
        chosen = self.gears if gears is None else gears
        points = self.points if self.lengths else self.points[0]
        return Table(points, extrapolate=extrapolate, gears=chosen, name=f"profile {self.name}")


def list_profiles() -> list[str]:
    """Names of the shipped profiles."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_profile(name: str, base: Path | None = None) -> Profile:
    """Load a shipped profile by name, or a file.

    Parameters
    ----------
    name : str
        A shipped name, or the path of a ``.yaml`` file.
    base : Path, optional
        Folder that paths are relative to; the working directory by default.

    Raises
    ------
    ProfileError
        If there is none, or it is wrong; says what would be right.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        path = (base or Path.cwd()) / Path(name).expanduser()
        if not path.is_file():
            beside = [other.name for other in path.parent.glob("*.y*ml")]
            raise ProfileError(f"there is no profile file {path}{suggest(path.name, beside)}")
        return _loaded(path)
    known = list_profiles()
    if name not in known:
        raise ProfileError(
            f"there is no profile {name!r}{suggest(name, known)} (shipped: {', '.join(known)}; "
            "or give the path of a .yaml file)"
        )
    return _loaded(FOLDER / f"{name}.yaml")


def _loaded(path: Path) -> Profile:
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _read(path: Path, _mtime_ns: int, _size: int) -> Profile:
    """Read a file, once for as long as it does not change."""
    return Profile(**read(path))
