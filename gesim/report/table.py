"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gesim.units import format_time

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = [
    "COLUMNS", "PARTS", "column_name", "number", "overview", "result_table", "share", "time",
    "two_times",
]  # fmt: skip

PARTS = ("latency", "frontend", "queue", "host", "transfer", "compute")
COLUMNS = ("mean", "p50", "p90", "p95", "p99", "p999", "max")


def time(value: float | None) -> str:
    """Write a time in ns for people."""
    return "-" if value is None else format_time(value)


def column_name(column: str) -> str:
    """Write p999 as p99.9."""
    return "p99.9" if column == "p999" else column


def number(value: float | None, unit: str = "") -> str:
    """Write a number for people."""
    if value is None:
        return "-"
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
    return text + unit


def share(value: float | None) -> str:
    """Write a share as per cent."""
    return "-" if value is None else f"{value:.2%}"


def two_times(low: float, high: float) -> str:
    """Write an interval, the unit once where both ends have the same; a tiny one as ± half."""
    if high - low < 0.004 * high:  # the ends would look the same
        return f"±{time((high - low) / 2)}" if high > low else time(low)
    first, second = time(low).split(" "), time(high).split(" ")
    start = first[0] if first[1:] == second[1:] else " ".join(first)
    return f"{start}–{' '.join(second)}"  # noqa: RUF001 - a range


def half_width(section: Mapping[str, Any], key: str) -> str:
    """Write an interval as plus or minus, where there is one."""
    interval = section.get("intervals", {}).get(key)
    if not interval or section[key] is None:
        return ""
    return f" ±{time((interval[1] - interval[0]) / 2)}"


def _grid(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, header in enumerate(headers):
        table.add_column(header, justify="left" if i == 0 else "right", no_wrap=i == 0)
    return table


def result_table(
    label: str, summary: Mapping[str, Any], expectations: Sequence[Any]
) -> RenderableType:
    """Lay out one result: latency and its parts, rates, models and levels, expectations."""
    from rich.console import Group
    from rich.text import Text

    blocks: list[RenderableType] = [Text(label, style="bold"), _latency(summary["all"])]
    blocks += [Text(line) for line in _facts(summary)]
    sections = {
        **(summary["models"] if len(summary["models"]) > 1 else {}),
        **(summary["levels"] if len(summary["levels"]) > 1 else {}),
    }
    if sections:
        blocks += [Text(""), _sections(sections)]
    if expectations:
        blocks += [Text(""), _expected(expectations)]
    return Group(*blocks)


def _latency(section: Mapping[str, Any]) -> Table:
    table = _grid("", *COLUMNS)
    for part in PARTS:
        if part != "latency" and not section[f"{part}_max_ns"]:
            continue
        cells = [time(section[f"{part}_{column}_ns"]) for column in COLUMNS]
        if part == "latency":
            cells[0] += half_width(section, "latency_mean_ns")
            cells[4] += half_width(section, "latency_p99_ns")
        table.add_row(part, *cells)
    return table


def _facts(summary: Mapping[str, Any]) -> list[str]:
    section = summary["all"]
    longest = section["max_queue_length"]
    lines = [
        f"throughput {number(section['throughput_rps'], '/s')} of "
        f"{number(section['offered_rps'], '/s')} offered, "
        f"mean batch {number(section['mean_batch'])}, "
        f"utilisation {share(section['utilisation'])}, "
        f"padding {share(section['padding_ratio'])}",
        f"queue {number(section['mean_queue_length'])} on average"
        + (f", {number(longest)} at most" if longest is not None else ""),
    ]
    if section["goodput_ratio"] is not None:
        lines.append(
            f"goodput {number(section['goodput_rps'], '/s')}, "
            f"{share(section['goodput_ratio'])} on time"
        )
    lost = {k: section[k] for k in ("rejected", "expired", "dropped", "failed", "unfinished")}
    if any(lost.values()):
        reasons = ", ".join(f"{name} {n:,.0f}" for name, n in section["reasons"].items())
        counts = ", ".join(f"{n:,.0f} {name}" for name, n in lost.items() if n)
        lines.append(f"lost {share(section['loss_ratio'])}: {counts} ({reasons})")
    rules = summary["rules"]
    if "quantile_relative_error" in rules:
        lines.append(
            f"records {rules['records']}; percentiles within "
            f"{share(rules['quantile_relative_error'])}"
        )
    return lines


def _sections(sections: Mapping[str, Mapping[str, Any]]) -> Table:
    from rich.markup import escape

    table = _grid("", "requests", "answered/s", "mean", "p50", "p99", "lost", "on time")
    for name, section in sections.items():
        table.add_row(
            escape(name),
            number(section["requests"]),
            number(section["throughput_rps"]),
            time(section["latency_mean_ns"]),
            time(section["latency_p50_ns"]),
            time(section["latency_p99_ns"]),
            share(section["loss_ratio"]),
            share(section["goodput_ratio"]),
        )
    return table


def _expected(expectations: Sequence[Any]) -> Table:
    from rich.markup import escape

    table = _grid("expected", "measured", "")
    for one in expectations:
        verdict = "[green]holds[/]" if one.holds else "[bold red]FAILS[/]"
        table.add_row(escape(one.text), escape(one.measured), verdict)
    return table


def overview(rows: Sequence[tuple[str, Mapping[str, Any], Sequence[Any]]]) -> Table:
    """Lay out several results, one row each."""
    from rich.markup import escape

    table = _grid("scenario", "answered/s", "mean", "p50", "p99", "batch", "busy", "lost", "expect")
    for name, summary, expectations in rows:
        section = summary["all"]
        failed = sum(not one.holds for one in expectations)
        verdict = "[green]holds[/]" if not failed else f"[bold red]{failed} FAIL[/]"
        table.add_row(
            escape(name),
            number(section["throughput_rps"]),
            time(section["latency_mean_ns"]),
            time(section["latency_p50_ns"]),
            time(section["latency_p99_ns"]),
            number(section["mean_batch"]),
            share(section["utilisation"]),
            share(section["loss_ratio"]),
            verdict if expectations else "-",
        )
    return table
