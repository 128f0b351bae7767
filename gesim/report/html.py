"""The HTML report: one file, opens offline, no script needed."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from gesim.metrics.records import Facts, Records
from gesim.report import figures
from gesim.report.table import PARTS, number, share, time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["fragment", "page"]

_COLUMNS = ("mean", "p50", "p90", "p95", "p99", "p999", "max")

_STYLE = """
:root { color-scheme: light dark; --ink: #0f172a; --soft: #64748b; --line: #e2e8f0;
  --paper: #ffffff; --card: #f8fafc; --good: #047857; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e8f0; --soft: #94a3b8;
  --line: #334155; --paper: #0f172a; --card: #1e293b; --good: #34d399; --bad: #f87171; }
  .figure { background: #ffffff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.label { color: var(--soft); } table { border-collapse: collapse; font-variant-numeric:
  tabular-nums; font-size: .92rem; } td, th { padding: .25rem .8rem; text-align: right;
  border-bottom: 1px solid var(--line); white-space: nowrap; } td:first-child,
th:first-child { text-align: left; padding-left: 0; } th { color: var(--soft);
  font-weight: 500; } .good { color: var(--good); } .bad { color: var(--bad);
  font-weight: 600; } .scroll { overflow-x: auto; } .cards { display: flex; flex-wrap: wrap;
  gap: .8rem; margin: 1.2rem 0; } .card { background: var(--card); border-radius: .5rem;
  padding: .6rem 1rem; min-width: 7.5rem; } .card b { display: block; font-size: 1.25rem; }
.card span { color: var(--soft); font-size: .82rem; } .figures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(460px, 1fr)); } .figure { border: 1px solid
  var(--line); border-radius: .5rem; padding: .4rem; } .figure svg { width: 100%;
  height: auto; display: block; } .wide { grid-column: 1 / -1; } .notes { color: var(--soft);
  font-size: .85rem; }
"""


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
        HTML without any outside reference.
    """
    series = [(label, records, facts)]
    drawn = [
        (figures.latency_cdf(series), ""),
        (figures.breakdown(records, facts, label), ""),
        (figures.batch_histogram(series), ""),
        (figures.queue_length(series), ""),
        (figures.timeline(records, facts, label), " wide"),
    ]
    pictures = "".join(
        f'<div class="figure{wide}">{_svg(figure, number)}</div>'
        for number, (figure, wide) in enumerate(drawn)
    )
    name, _, made_by = label.partition(": ")
    rules = "".join(
        f"<li>{escape(str(key))}: {escape(str(value))}</li>"
        for key, value in summary["rules"].items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(label)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{escape(name)}</h1><p class="label">{escape(made_by)}</p>'
        f"<p>{escape(description)}</p>"
        f"{_cards(summary['all'])}{_body(summary, expectations)}"
        f'<h2>Figures</h2><div class="figures">{pictures}</div>'
        f'<h2>How it was measured</h2><ul class="notes">{rules}</ul></body></html>'
    )


def fragment(label: str, summary: Mapping[str, Any], expectations: Sequence[Any]) -> str:
    """Write the tables alone, for notebooks."""
    return f"<div><p><b>{escape(label)}</b></p>{_body(summary, expectations)}</div>"


def _body(summary: Mapping[str, Any], expectations: Sequence[Any]) -> str:
    parts = [_expectations(expectations)] if expectations else []
    parts.append("<h2>Latency and its parts</h2>" + _latency(summary["all"]))
    sections = {
        **(summary["models"] if len(summary["models"]) > 1 else {}),
        **(summary["levels"] if len(summary["levels"]) > 1 else {}),
    }
    if sections:
        parts.append("<h2>By model and priority level</h2>" + _sections(sections))
    parts.append("<h2>Devices</h2>" + _devices(summary["devices"]))
    if summary["all"]["reasons"]:
        rows = [[name, number(n)] for name, n in summary["all"]["reasons"].items()]
        parts.append("<h2>Lost requests by reason</h2>" + _table(["reason", "requests"], rows))
    return "".join(parts)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _cards(section: Mapping[str, Any]) -> str:
    shown = [
        (time(section["latency_mean_ns"]), "mean latency"),
        (time(section["latency_p99_ns"]), "p99 latency"),
        (number(section["throughput_rps"], "/s"), "throughput"),
        (number(section["mean_batch"]), "mean batch"),
        (share(section["utilisation"]), "utilisation"),
        (share(section["loss_ratio"]), "lost"),
    ]
    if section["goodput_ratio"] is not None:
        shown.insert(3, (share(section["goodput_ratio"]), "on time"))
    cards = "".join(f'<div class="card"><b>{v}</b><span>{n}</span></div>' for v, n in shown)
    return f'<div class="cards">{cards}</div>'


def _expectations(expectations: Sequence[Any]) -> str:
    rows = [
        [
            escape(one.text),
            escape(one.measured),
            '<span class="good">holds</span>' if one.holds else '<span class="bad">FAILS</span>',
        ]
        for one in expectations
    ]
    return "<h2>Expectations</h2>" + _table(["expected", "measured", ""], rows)


def _latency(section: Mapping[str, Any]) -> str:
    rows = []
    for part in PARTS:
        if part == "latency" or section[f"{part}_max_ns"]:
            rows.append([part, *(time(section[f"{part}_{c}_ns"]) for c in _COLUMNS)])
    intervals = section.get("intervals", {})
    cells = []
    for column in _COLUMNS:
        interval = intervals.get(f"latency_{column}_ns")
        cells.append(f"{time(interval[0])} - {time(interval[1])}" if interval else "-")
    rows.insert(1, ["latency, 95 % interval", *cells])
    return _table(["", *_COLUMNS], rows)


def _sections(sections: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        [
            escape(name),
            number(s["requests"]),
            number(s["throughput_rps"]),
            time(s["latency_mean_ns"]),
            time(s["latency_p50_ns"]),
            time(s["latency_p99_ns"]),
            share(s["loss_ratio"]),
            share(s["goodput_ratio"]),
        ]
        for name, s in sections.items()
    ]
    headers = ["", "requests", "answered/s", "mean", "p50", "p99", "lost", "on time"]
    return _table(headers, rows)


def _devices(devices: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [[escape(name), share(device["utilisation"])] for name, device in devices.items()]
    return _table(["device", "busy (sum of its instances)"], rows)


def _svg(figure: Figure, number: int) -> str:
    """Draw a figure as inline SVG; ids get a prefix, because several share one page."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": f"gesim{number}", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="', f'id="f{number}', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#f{number}", text)
    return re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
