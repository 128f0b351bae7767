"""Reading profile files, with an error that names file, key and value for whatever is wrong.

The keys of a file::

    profile: 1                       # version of this format
    name: resnet101_310p3
    model: ResNet101
    device: Ascend 310P3
    precision, input, basis, measured_by, caveats: text for people, optional
    chips: 4                         # chips that share the figures; default 1
    curves:                          # one, or one per compiled length
      - length: 128                  # only with several lengths
        source: where the figures stand (needed)
        throughput: {1: 971.86/s, 8: 2547.92/s}      # items per second, or
        time: {1: 1.03ms, 8: 3.14ms}                 # of one batch
    host: {dispatch: 150us, per_item: 2us, source: ...}                              # optional
    transfer: {input: 588KiB, output: 4KiB, bandwidth: 8GiB/s, latency: 20us, source: ...}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from gesim.cost.service import Host, Transfer
from gesim.errors import ProfileError, ScenarioError
from gesim.units import parse_bandwidth, parse_bytes, parse_rate_rps, parse_time_ns, suggest

__all__ = ["read"]

T = TypeVar("T", int, float)

_FACTS = ("precision", "input", "basis", "measured_by", "caveats")
_NEEDED = ("profile", "name", "model", "device", "curves")
_KEYS = (*_NEEDED, *_FACTS, "chips", "host", "transfer")
_CURVE_KEYS = ("length", "source", "throughput", "time")
_HOST_KEYS = ("dispatch", "per_item", "source")
_TRANSFER_KEYS = ("input", "output", "bandwidth", "latency", "source")


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


def read(path: Path) -> dict[str, Any]:
    """Read the file of a profile.

    Returns
    -------
    dict
        What `gesim.cost.profile.Profile` takes.

    Raises
    ------
    ProfileError
        If the file is not YAML, or not a profile.
    """
    try:
        with path.open(encoding="utf-8") as file:
            data = yaml.load(file, _Loader)
    except (yaml.YAMLError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise ProfileError(f"{path}: cannot be read as YAML: {error}") from None
    where = str(path)
    _check_keys(where, data, _KEYS, _NEEDED, "a profile")
    if data["profile"] != 1 or isinstance(data["profile"], bool):
        raise ProfileError(f"{where}: profile: {data['profile']!r} is not a version; write 1")
    points, sources = _curves(where, data["curves"], _chips(where, data.get("chips", 1)))
    gears = sorted(set.intersection(*(set(curve) for curve in points.values())))
    if not gears:
        raise ProfileError(f"{where}: curves: no batch size stands in all of them")
    host, transfer = data.get("host"), data.get("transfer")
    return {
        **{key: _text(where, key, data[key]) for key in ("name", "model", "device")},
        "facts": {key: _text(where, key, data[key]) for key in _FACTS if key in data},
        "gears": tuple(gears),
        "points": points,
        "host": None if host is None else _host(f"{where}: host", host),
        "transfer": None if transfer is None else _transfer(f"{where}: transfer", transfer),
        "sources": (*sources, *(part["source"] for part in (host, transfer) if part is not None)),
    }


def _curves(where: str, curves: Any, chips: int) -> tuple[dict[int, dict[int, int]], list[str]]:
    """Return the points by length, and the source of every curve."""
    if not isinstance(curves, list) or not curves:
        raise ProfileError(f"{where}: curves: needs a list of at least one curve")
    points: dict[int, dict[int, int]] = {}
    sources = []
    for number, curve in enumerate(curves):
        at = f"{where}: curves[{number}]"
        _check_keys(at, curve, _CURVE_KEYS, ("source",), "a curve")
        sources.append(_text(at, "source", curve["source"]))
        length = curve.get("length", 0)
        if "length" in curve and not _is_count(length):
            raise ProfileError(f"{at}.length: {length!r} must be a whole number of 1 or more")
        if length in points:
            what = f"{length} is given twice" if length else "is missing: there are several curves"
            raise ProfileError(f"{at}.length: {what}")
        points[length] = _points(at, curve, chips)
    if 0 in points and len(points) > 1:
        raise ProfileError(f"{where}: curves: every curve needs a length, or none")
    return points, sources


def _points(where: str, curve: Mapping[str, Any], chips: int) -> dict[int, int]:
    """Turn one curve into ns a batch by batch size."""
    if ("throughput" in curve) == ("time" in curve):
        raise ProfileError(f"{where}: needs throughput (8: 1200/s) or time (8: 6.7ms), one of them")
    key = "throughput" if "throughput" in curve else "time"
    if key == "time" and chips > 1:
        raise ProfileError(f"{where}.time: is of one batch, so chips must be 1 (it is {chips})")
    said = curve[key]
    if not isinstance(said, Mapping) or not said:
        example = "8: 1200/s" if key == "throughput" else "8: 6.7ms"
        raise ProfileError(f"{where}.{key}: needs batch sizes with values, like {example}")
    points: dict[int, int] = {}
    for batch, value in said.items():
        at = f"{where}.{key}.{batch}"
        if not _is_count(batch):
            raise ProfileError(f"{at}: {batch!r} is not a batch size (a whole number from 1)")
        if points and batch <= max(points):
            raise ProfileError(f"{at}: batch sizes must increase; {batch} follows {max(points)}")
        parse: Callable[[object], float] = parse_rate_rps if key == "throughput" else parse_time_ns
        number = _parsed(at, parse, value)
        if number <= 0:
            raise ProfileError(f"{at}: {value!r} must be above 0")
        points[batch] = int(number) if key == "time" else round(batch * chips / number * 1e9)
        if points[batch] < 1:
            raise ProfileError(f"{at}: {value!r} makes a batch shorter than 1 ns")
    return points


def _host(where: str, said: Any) -> Host:
    _check_keys(where, said, _HOST_KEYS, ("source",), "host")
    _text(where, "source", said["source"])
    dispatch_ns, per_item_ns = (
        _parsed(f"{where}.{key}", parse_time_ns, said.get(key, "0ms")) for key in _HOST_KEYS[:2]
    )
    return Host(dispatch_ns, per_item_ns)


def _transfer(where: str, said: Any) -> Transfer:
    _check_keys(where, said, _TRANSFER_KEYS, ("source", "bandwidth"), "transfer")
    _text(where, "source", said["source"])
    input_bytes, output_bytes = (
        _parsed(f"{where}.{key}", parse_bytes, said.get(key, "0B")) for key in _TRANSFER_KEYS[:2]
    )
    return Transfer(
        input_bytes,
        output_bytes,
        _parsed(f"{where}.bandwidth", parse_bandwidth, said["bandwidth"]),
        _parsed(f"{where}.latency", parse_time_ns, said.get("latency", "0ms")),
    )


def _parsed(where: str, parse: Callable[[object], T], value: object) -> T:
    try:
        return parse(value)
    except ScenarioError as error:
        raise ProfileError(f"{where}: {error}") from None


def _chips(where: str, chips: Any) -> int:
    if not _is_count(chips):
        raise ProfileError(f"{where}: chips: {chips!r} must be a whole number of 1 or more")
    return int(chips)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _text(where: str, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        hint = "; say where the figures stand" if key == "source" else ""
        raise ProfileError(f"{where}: {key}: {value!r} must be text{hint}")
    return value


def _check_keys(
    where: str, data: Any, known: tuple[str, ...], needed: tuple[str, ...], what: str
) -> None:
    if not isinstance(data, Mapping):
        raise ProfileError(f"{where}: {what} is a mapping, this is {type(data).__name__}")
    for key in data:
        if key not in known:
            near = suggest(str(key), known)
            raise ProfileError(f"{where}: {key!r} is unknown{near} (keys: {', '.join(known)})")
    for key in needed:
        if key not in data:
            hint = "; say where the figures stand" if key == "source" else ""
            raise ProfileError(f"{where}: {key!r} is missing{hint}")
