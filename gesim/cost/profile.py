"""Profiles: small files with a card's published figures, each with its source.

A profile gives the throughput of every compiled batch size (its gears). The time of a batch is
``batch / throughput``; a figure of a whole card of `chips` is shared by its chips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gesim.cost.table import Table
from gesim.errors import ProfileError, ScenarioError
from gesim.units import parse_rate_rps, suggest

__all__ = ["Profile", "list_profiles", "load_profile"]

FOLDER = Path(__file__).parent.parent / "profiles"
_KEYS = ("profile", "name", "model", "device", "precision", "input", "basis", "chips", "curves")
_NEEDED = ("profile", "name", "model", "device", "curves")
_CURVE_KEYS = ("length", "source", "throughput")


@dataclass(frozen=True)
class Profile:
    """Published figures of one model on one device.

    Attributes
    ----------
    name, model, device : str
    facts : dict of str to str
        Precision, input shape, basis: for people.
    gears : tuple of int
        Compiled batch sizes, increasing.
    points : dict of int to dict of int to int
        Length (0 for none) to batch size to ns.
    sources : tuple of str
        Where the figures stand, one a curve.
    """

    name: str
    model: str
    device: str
    facts: dict[str, str]
    gears: tuple[int, ...]
    points: dict[int, dict[int, int]]
    sources: tuple[str, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Compiled lengths, empty for none."""
        return tuple(sorted(length for length in self.points if length))

    @property
    def best_batch(self) -> int:
        """Batch size with the highest throughput (at the longest length)."""
        points = self.points[max(self.points)]
        return max(points, key=lambda batch: (batch / points[batch], -batch))

    def table(self, gears: tuple[int, ...] | None = None) -> Table:
        """Make the cost model, for other gears than the profile's if given (() for any)."""
        chosen = self.gears if gears is None else gears
        name = f"profile {self.name}"
        if self.lengths:
            return Table(self.points, gears=chosen, name=name)
        return Table(self.points[0], gears=chosen, name=name)


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
            raise ProfileError(f"there is no profile file {path}")
        return _read(path)
    known = list_profiles()
    if name not in known:
        raise ProfileError(
            f"there is no profile {name!r}{suggest(name, known)} (shipped: {', '.join(known)}; "
            "or give the path of a .yaml file)"
        )
    return _read(FOLDER / f"{name}.yaml")


@cache
def _read(path: Path) -> Profile:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise ProfileError(f"{path}: cannot be read as YAML: {error}") from None
    _check_keys(path, data, _KEYS, _NEEDED, "a profile")
    if data["profile"] != 1:
        raise ProfileError(f"{path}: profile: {data['profile']!r} is not a version; write 1")
    chips = data.get("chips", 1)
    if not isinstance(chips, int) or isinstance(chips, bool) or chips < 1:
        raise ProfileError(f"{path}: chips: {chips!r} must be a whole number of 1 or more")
    if not isinstance(data["curves"], list) or not data["curves"]:
        raise ProfileError(f"{path}: curves: needs a list of at least one curve")
    points: dict[int, dict[int, int]] = {}
    sources = []
    for number, curve in enumerate(data["curves"]):
        where = f"{path}: curves[{number}]"
        _check_keys(where, curve, _CURVE_KEYS, ("source", "throughput"), "a curve")
        if not isinstance(curve["source"], str) or not curve["source"].strip():
            raise ProfileError(f"{where}.source: is empty; say where the figures stand")
        length = curve.get("length", 0)
        if not isinstance(length, int) or length < 0 or length in points:
            raise ProfileError(f"{where}.length: {length!r} must be a whole number, once each")
        points[length] = _points(where, curve["throughput"], chips)
        sources.append(curve["source"])
    if 0 in points and len(points) > 1:
        raise ProfileError(f"{path}: curves: every curve needs a length, or none")
    gears = sorted(set.intersection(*(set(curve) for curve in points.values())))
    if not gears:
        raise ProfileError(f"{path}: curves: no batch size stands in all of them")
    facts = {k: str(data[k]) for k in ("precision", "input", "basis") if k in data}
    return Profile(
        str(data["name"]), str(data["model"]), str(data["device"]), facts, tuple(gears), points,
        tuple(sources),
    )  # fmt: skip


def _check_keys(
    where: object, data: Any, known: tuple[str, ...], needed: tuple[str, ...], what: str
) -> None:
    if not isinstance(data, Mapping):
        raise ProfileError(f"{where}: {what} is a mapping, this is {type(data).__name__}")
    for key in data:
        if key not in known:
            near = suggest(str(key), known)
            raise ProfileError(f"{where}: {key!r} is unknown{near} (keys: {', '.join(known)})")
    for key in needed:
        if key not in data:
            raise ProfileError(f"{where}: {key!r} is missing")


def _points(where: str, throughput: Any, chips: int) -> dict[int, int]:
    """Turn items per second by batch size into ns a batch."""
    if not isinstance(throughput, Mapping) or not throughput:
        raise ProfileError(f"{where}.throughput: needs batch sizes with rates, like 8: 1200/s")
    points: dict[int, int] = {}
    for batch, rate in throughput.items():
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
            raise ProfileError(f"{where}.throughput: {batch!r} is not a batch size (1 or more)")
        if points and batch <= max(points):
            raise ProfileError(f"{where}.throughput: batch sizes must increase; {batch} does not")
        try:
            rate_rps = parse_rate_rps(rate)
        except ScenarioError as error:
            raise ProfileError(f"{where}.throughput.{batch}: {error}") from None
        if rate_rps <= 0:
            raise ProfileError(f"{where}.throughput.{batch}: {rate} must be above 0")
        points[batch] = round(batch * chips / rate_rps * 1e9)
    return points
