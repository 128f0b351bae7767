"""The HTML report: one file, opens offline, no script needed, legible on light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from gesim.metrics.records import Facts, Records
from gesim.report import figures, style
from gesim.report.table import COLUMNS, PARTS, column_name, number, share, time, two_times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["fragment", "page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #10182a; --soft: #64758a; --line: #d8dee8;
  --paper: #ffffff; --card: #f5f7fb; --good: #047857; --bad: #c02626; --bar: #3b74e8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf4; --soft: #93a3b9; --line: #2f3b52;
  --paper: #0e1524; --card: #182236; --good: #34d399; --bad: #fb7b7b; --bar: #6f9bf2; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink);
  background: var(--paper); max-width: 1120px; margin: 2.2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 1.05rem; margin: 2.2rem 0 .5rem; }
p { margin: .3rem 0; } .label, .soft { color: var(--soft); }
.badge { display: inline-block; border: 1px solid var(--line); border-radius: 1rem;
  padding: 0 .65rem; font-size: .82rem; color: var(--soft); margin: .35rem .35rem 0 0; }
.badge.strong { color: var(--ink); border-color: var(--bar); }
.badge.bad { color: var(--bad); border-color: var(--bad); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
td, th { padding: .32rem .85rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: top; }
td:first-child, th:first-child { text-align: left; padding-left: 0; }
th { color: var(--soft); font-weight: 500; } td small { display: block; color: var(--soft);
  font-size: .78rem; } tr.main td { font-weight: 600; } tr.main small { font-weight: 400; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.scroll { overflow-x: auto; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.2rem, 1fr));
  gap: .7rem; margin: 1.3rem 0; }
.card { background: var(--card); border-radius: .6rem; padding: .65rem .9rem; }
.card b { display: block; font-size: 1.3rem; letter-spacing: -.01em; white-space: nowrap; }
.card span { color: var(--soft); font-size: .82rem; }
.sides { display: flex; flex-wrap: wrap; gap: 0 3.5rem; }
.bar { display: inline-block; width: 9rem; height: .55rem; border-radius: .3rem;
  background: var(--card); overflow: hidden; margin-left: .6rem; }
.bar i { display: block; height: 100%; background: var(--bar); }
.figures { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(460px, 1fr)); }
.figure { border: 1px solid var(--line); border-radius: .6rem; padding: .5rem; margin: 0; }
.figure svg { width: 100%; height: auto; display: block; } .wide { grid-column: 1 / -1; }
.notes { color: var(--soft); font-size: .86rem; padding-left: 1.1rem; }
@media print { body { max-width: none; margin: 0; } .figure, table { break-inside: avoid; } }
@media (max-width: 560px) { .figures { grid-template-columns: 1fr; } }
"""

_FAMILY = "system-ui, -apple-system, 'Segoe UI', sans-serif"


def page(
    label: str,
    description: str,
    summary: Mapping[str, Any],
    expectations: Sequence[Any],
    records: Records,
    facts: Facts,
) -> str:
    """Write the whole report.

    Parameters
    ----------
    label : str
        Who made the numbers: fidelity, engine, seed, version.
    description : str
        The scenario's.
    summary : mapping
        From `gesim.metrics.summary.summarise`.
    expectations : sequence of Checked
    records : Records
        Of the first replication, for the figures.
    facts : Facts

    Returns
    -------
    str
        HTML without any outside reference, the same bytes for the same run.
    """
    name, _, made_by = label.partition(": ")
    badges = "".join(_badge(text) for text in made_by.split(", "))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(label)}</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>{escape(name)}</h1><p>{escape(description)}</p><p>{badges}</p></header>"
        f"{_cards(summary)}{_body(summary, expectations)}"
        f'<h2>Figures{_of_first(summary)}</h2><div class="figures">'
        f"{_figures(label, records, facts)}</div>"
        f"<h2>How it was measured</h2>{_rules(summary)}"
        '<p class="notes">Batches one by one: open <code>trace.json</code>, beside this file, in '
        "ui.perfetto.dev. Numbers for programs: <code>summary.json</code>, "
        "<code>requests.parquet</code>, <code>batches.parquet</code>.</p></body></html>\n"
    )


def fragment(label: str, summary: Mapping[str, Any], expectations: Sequence[Any]) -> str:
    """Write the tables alone, for notebooks."""
    return f"<div><p><b>{escape(label)}</b></p>{_body(summary, expectations, plain=True)}</div>"


def _badge(text: str) -> str:
    kind = " bad" if text == "PARTIAL" else " strong" if "(" in text else ""
    return f'<span class="badge{kind}">{escape(text)}</span>'


def _of_first(summary: Mapping[str, Any]) -> str:
    several = summary.get("replications", 1) > 1
    return ' <span class="soft">of the first replication</span>' if several else ""


def _body(summary: Mapping[str, Any], expectations: Sequence[Any], *, plain: bool = False) -> str:
    section = summary["all"]
    parts = [_titled("Expectations", _expectations(expectations))] if expectations else []
    parts.append(_titled("Latency and its parts", _latency(section)))
    by = {
        **(summary["models"] if len(summary["models"]) > 1 else {}),
        **(summary["levels"] if len(summary["levels"]) > 1 else {}),
    }
    if by:
        parts.append(_titled("By model and priority level", _sections(by)))
    sides = [_titled("Rates", _rates(section))]
    if summary["devices"]:
        sides.append(_titled("Busy", _busy(summary)))
    if any(section[kind] for kind in _LOST):
        sides.append(_titled("Lost requests", _lost(section)))
    joined = "".join(f"<section>{side}</section>" for side in sides)
    parts.append(joined if plain else f'<div class="sides">{joined}</div>')
    return "".join(parts)


_LOST = ("rejected", "expired", "dropped", "failed", "unfinished")


def _titled(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]], main: Sequence[int] = ()) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    head = f"<tr>{head}</tr>" if any(headers) else ""
    lines = []
    for i, row in enumerate(rows):
        kind = ' class="main"' if i in main else ""
        lines.append(f"<tr{kind}>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>")
    return f'<div class="scroll"><table>{head}{"".join(lines)}</table></div>'


def _cards(summary: Mapping[str, Any]) -> str:
    section = summary["all"]
    shown = [
        (time(section["latency_mean_ns"]), "mean latency"),
        (time(section["latency_p99_ns"]), "p99 latency"),
        (number(section["throughput_rps"], "/s"), "throughput"),
        (number(section["mean_batch"]), "mean batch"),
        (share(section["utilisation"]), "utilisation"),
        (share(section["loss_ratio"]), "lost"),
    ]
    if section["goodput_ratio"] is not None:
        targets = {slo for slo in summary["rules"].get("slo_ns", {}).values() if slo}
        within = f"within {time(targets.pop())}" if len(targets) == 1 else "on time"
        shown.insert(2, (share(section["goodput_ratio"]), within))
    cards = "".join(f'<div class="card"><b>{v}</b><span>{n}</span></div>' for v, n in shown)
    return f'<div class="cards">{cards}</div>'


def _expectations(expectations: Sequence[Any]) -> str:
    rows = [
        [
            f"<code>{escape(one.text)}</code>",
            escape(one.measured),
            '<span class="good">&#10003; holds</span>'
            if one.holds
            else '<span class="bad">&#10007; FAILS</span>',
        ]
        for one in expectations
    ]
    return _table(["expected", "measured", ""], rows)


def _latency(section: Mapping[str, Any]) -> str:
    rows = []
    for part in PARTS:
        if part == "latency" or section[f"{part}_max_ns"]:
            keys = [f"{part}_{column}_ns" for column in COLUMNS]
            rows.append([part, *(_with_interval(section, key) for key in keys)])
    note = '<p class="notes">Small: 95 % confidence intervals; none where the run is too short.</p>'
    return _table(["", *(column_name(c) for c in COLUMNS)], rows, main=(0,)) + note


def _with_interval(section: Mapping[str, Any], key: str) -> str:
    interval = section.get("intervals", {}).get(key)
    small = f"<small>{two_times(*interval)}</small>" if interval else ""
    return time(section[key]) + small


def _sections(sections: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        [
            escape(name),
            number(s["requests"]),
            number(s["throughput_rps"], "/s"),
            _with_interval(s, "latency_mean_ns"),
            time(s["latency_p50_ns"]),
            _with_interval(s, "latency_p99_ns"),
            number(s.get("mean_batch")),
            share(s["loss_ratio"]),
            share(s["goodput_ratio"]),
        ]
        for name, s in sections.items()
    ]
    headers = ["", "requests", "answered", "mean", "p50", "p99", "batch", "lost", "on time"]
    known = [i for i in range(len(headers)) if i < 6 or any(row[i] != "-" for row in rows)]
    return _table([headers[i] for i in known], [[row[i] for i in known] for row in rows])


def _rates(section: Mapping[str, Any]) -> str:
    rows = [
        ["offered", number(section["offered_rps"], "/s")],
        ["answered", number(section["throughput_rps"], "/s")],
        ["answered on time", number(section["goodput_rps"], "/s")],
        ["requests", number(section["requests"])],
        ["batches", number(section["batches"])],
        ["mean batch, over batches", number(section["mean_batch"])],
        ["mean batch, over requests", number(section["request_mean_batch"])],
        ["padding", share(section["padding_ratio"])],
        ["queue length, mean", number(section["mean_queue_length"])],
        ["queue length, longest", number(section["max_queue_length"])],
    ]
    return _table(["", ""], [row for row in rows if row[1] != "-"])


def _busy(summary: Mapping[str, Any]) -> str:
    rows = []
    for group in ("devices", "instances"):
        if group == "instances" and len(summary["instances"]) <= len(summary["devices"]):
            continue
        for name, device in list(summary[group].items())[:24]:
            used = device["utilisation"]
            width = max(0.0, min(100.0, used * 100))
            bar = f'<span class="bar"><i style="width:{width:.1f}%"></i></span>'
            kind = "" if group == "devices" else '<span class="soft">'
            rows.append([f"{kind}{escape(name)}{'</span>' if kind else ''}", share(used) + bar])
    return _table(["", "share of the time"], rows)


def _lost(section: Mapping[str, Any]) -> str:
    rows = [[kind, number(section[kind])] for kind in _LOST if section[kind]]
    rows += [
        [f'<span class="soft">&ensp;{escape(name)}</span>', number(n)]
        for name, n in section["reasons"].items()
    ]
    return _table(["", "requests"], rows)


def _rules(summary: Mapping[str, Any]) -> str:
    rules = dict(summary["rules"])
    start, end = rules.pop("window_ns")
    rules["rates and shares of time"] = f"from {time(start)} to {time(end)} of the run"
    targets = {name: slo for name, slo in rules.pop("slo_ns", {}).items() if slo}
    if targets:
        rules["latency targets"] = ", ".join(f"{name} {time(slo)}" for name, slo in targets.items())
    for key in ("confidence", "quantile_relative_error"):
        if key in rules:
            rules[key] = share(rules[key])
    little = summary["little"]
    verdict = "holds to the nanosecond" if little["equal"] else "DOES NOT HOLD: a bug in gesim"
    rules["Little's law over the whole run"] = verdict
    items = "".join(
        f"<li>{escape(key.replace('_', ' '))}: {escape(str(value))}</li>"
        for key, value in rules.items()
    )
    return f'<ul class="notes">{items}</ul>'


def _figures(label: str, records: Records, facts: Facts) -> str:
    series = [(label, records, facts)]
    drawn = [
        (figures.latency_cdf(series), ""),
        (figures.breakdown(records, facts, label), ""),
        (figures.batch_histogram(series), ""),
        (figures.queue_length(series), ""),
        (figures.timeline(records, facts, label), " wide"),
    ]
    return "".join(
        f'<figure class="figure{wide}">{_svg(figure, i)}</figure>'
        for i, (figure, wide) in enumerate(drawn)
    )


def _svg(figure: Figure, number: int) -> str:
    """Draw a figure as inline SVG in the page's own colours and font."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": f"gesim{number}", "svg.fonttype": "none"}):
        figure.savefig(
            out, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Ids get a prefix, because several figures share one page.
    text = re.sub(r'\bid="', f'id="f{number}', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#f{number}", text)
    for colour, variable in (
        (style.INK, "--ink"),
        (style.SOFT, "--soft"),
        (style.LINE, "--line"),
        (style.PAPER, "--paper"),
    ):
        text = text.replace(colour, f"var({variable})")
    return re.sub(r"'DejaVu Sans'[^;\"]*", _FAMILY, text)
