"""Figures of a run, as matplotlib Figure objects without any global state.

Every function takes *series*: (label, records, facts) of one or several runs. Labels say who
made the numbers: fidelity, engine, seed, version.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gesim.core.request import Outcome
from gesim.metrics.records import Facts, Records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["batch_histogram", "breakdown", "compare", "latency_cdf", "queue_length", "timeline"]

Series = Sequence[tuple[str, Records, Facts]]

COLOURS = ("#2563eb", "#ea580c", "#059669", "#9333ea", "#dc2626", "#0891b2")
PARTS = (
    ("frontend", "#94a3b8"),
    ("queue", "#f59e0b"),
    ("host", "#8b5cf6"),
    ("transfer", "#06b6d4"),
    ("compute", "#2563eb"),
)
_POINTS = 2000
"""Most points of a curve: more cannot be seen and make files large."""


class _Shown(Figure):
    """A figure that Jupyter shows although pyplot does not know it."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


def _figure(width: float = 7.2, height: float = 3.6, columns: int = 1) -> tuple[Figure, Any]:
    figure = _Shown(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns)
    for ax in np.atleast_1d(axes):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(visible=True, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes


def _title(figure: Figure, title: str, series: Series) -> None:
    label = f"\n{series[0][0]}" if len(series) == 1 else ""
    figure.suptitle(f"{title}{label}", fontsize=9, x=0.01, ha="left")


def answered_latency_ms(records: Records, facts: Facts) -> NDArray[np.float64]:
    """Latencies of the answered requests, increasing, in ms."""
    answered = records.outcome == Outcome.OK
    latency = records.finish_ns[answered] + facts.respond_ns - records.arrival_ns[answered]
    ordered: NDArray[np.float64] = np.sort(latency) / 1e6
    return ordered


def _tail_curve(ordered: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Thin a sample for a plot of its upper tail: dense where the tail is."""
    n = len(ordered)
    above = np.unique(np.geomspace(1, n, min(n, _POINTS)).astype(np.int64))
    return ordered[n - above], above / n


def draw_latency(ax: Axes, series: Series) -> None:
    """Draw the share of requests above a latency, both axes logarithmic."""
    for (label, records, facts), colour in zip(series, COLOURS, strict=False):
        ordered = answered_latency_ms(records, facts)
        if not len(ordered):
            continue
        x, share = _tail_curve(ordered)
        ax.step(x, share, where="post", color=colour, linewidth=1.6, label=label.split(":")[0])
    ax.set_xscale("log")
    ax.set_yscale("log")
    for above, name in ((0.5, "p50"), (0.1, "p90"), (0.01, "p99"), (0.001, "p99.9")):
        ax.axhline(above, color="#94a3b8", linewidth=0.6, linestyle=":")
        ax.annotate(
            name, (0, above), xycoords=("axes fraction", "data"), fontsize=7, color="#64748b",
            xytext=(2, 2), textcoords="offset points",
        )  # fmt: skip
    ax.set_xlabel("latency (ms)")
    ax.set_ylabel("share of requests above")


def latency_cdf(series: Series) -> Figure:
    """Latency distribution, drawn as the share above so that the tail is legible."""
    figure, ax = _figure()
    draw_latency(ax, series)
    _legend(ax, series)
    _title(figure, "Latency distribution", series)
    return figure


def _legend(ax: Axes, series: Series) -> None:
    if len(series) > 1 and ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=7, frameon=False)


def draw_batches(ax: Axes, series: Series) -> None:
    """Draw the share of batches by size."""
    width = 0.8 / len(series)
    for i, ((label, records, _), colour) in enumerate(zip(series, COLOURS, strict=False)):
        sizes, counts = np.unique(records.batch_items, return_counts=True)
        if len(sizes):
            ax.bar(
                sizes + (i - (len(series) - 1) / 2) * width, counts / counts.sum(), width,
                color=colour, label=label.split(":")[0],
            )  # fmt: skip
    ax.set_xlabel("items in a batch")
    ax.set_ylabel("share of batches")


def batch_histogram(series: Series) -> Figure:
    """Batch sizes."""
    figure, ax = _figure()
    draw_batches(ax, series)
    _legend(ax, series)
    _title(figure, "Batch sizes", series)
    return figure


def waiting(records: Records, facts: Facts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Queue length over time: (times in ns, requests waiting from then on)."""
    entered = records.arrival_ns + facts.receive_ns
    left = np.maximum(records.start_ns, entered)
    times = np.concatenate([entered, left])
    steps = np.concatenate([np.ones(len(entered)), -np.ones(len(left))])
    order = np.lexsort((steps, times))
    return times[order], np.cumsum(steps[order])


def draw_queue(ax: Axes, series: Series) -> None:
    """Draw the queue length; long runs as mean and maximum per bin."""
    for (label, records, facts), colour in zip(series, COLOURS, strict=False):
        times, length = waiting(records, facts)
        if not len(times):
            continue
        if len(times) > _POINTS:
            edges = np.linspace(0, len(times), _POINTS // 4 + 1).astype(np.int64)[:-1]
            ax.fill_between(
                times[edges] / 1e9, np.minimum.reduceat(length, edges),
                np.maximum.reduceat(length, edges), step="post", color=colour, alpha=0.35,
                linewidth=0,
            )  # fmt: skip
            times, length = (
                times[edges],
                np.add.reduceat(length, edges) / np.diff(np.append(edges, len(length))),
            )
        ax.step(
            times / 1e9, length, where="post", color=colour, linewidth=1.2,
            label=label.split(":")[0],
        )  # fmt: skip
    ax.set_xlabel("time (s)")
    ax.set_ylabel("requests waiting")
    ax.set_ylim(bottom=0)


def queue_length(series: Series) -> Figure:
    """Queue length over time."""
    figure, ax = _figure()
    draw_queue(ax, series)
    _legend(ax, series)
    _title(figure, "Queue length (line: mean, band: range)", series)
    return figure


def breakdown(records: Records, facts: Facts, label: str) -> Figure:
    """Where the time goes, for requests in bands of latency percentiles."""
    figure, ax = _figure()
    answered = np.flatnonzero(records.outcome == Outcome.OK)
    batch = records.batch[answered]
    parts = {
        "frontend": np.full(len(answered), facts.receive_ns + facts.respond_ns),
        "queue": records.start_ns[answered] - records.arrival_ns[answered] - facts.receive_ns,
        "host": records.host_ns[batch],
        "transfer": records.input_ns[batch] + records.output_ns[batch],
        "compute": records.compute_ns[batch],
    }
    order = np.argsort(records.finish_ns[answered] - records.arrival_ns[answered], kind="stable")
    bands = (
        ("0-50 %", 0, 0.5), ("50-90 %", 0.5, 0.9), ("90-99 %", 0.9, 0.99), ("99-100 %", 0.99, 1),
    )  # fmt: skip
    n = len(order)
    bottom = np.zeros(len(bands))
    for name, colour in PARTS:
        heights = np.array(
            [
                float(np.mean(parts[name][order[int(a * n) : max(int(b * n), int(a * n) + 1)]]))
                / 1e6
                if n
                else 0.0
                for _, a, b in bands
            ]
        )
        if heights.any():
            ax.bar([b[0] for b in bands], heights, 0.62, bottom=bottom, color=colour, label=name)
        bottom += heights
    ax.set_xlabel("requests by latency percentile")
    ax.set_ylabel("mean time (ms)")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=7, frameon=False)
    _title(figure, "Where the time goes", [(label, records, facts)])
    return figure


def timeline(records: Records, facts: Facts, label: str, batches: int = 120) -> Figure:
    """Draw what every instance did around the moment when most requests were waiting."""
    figure, ax = _figure(height=1.6 + 0.4 * min(len(facts.instances), 12))
    total = len(records.batch_start_ns)
    if total:
        times, length = waiting(records, facts)
        peak = times[int(np.argmax(length))] if len(times) else 0
        middle = int(np.searchsorted(records.batch_start_ns, peak))
        first = max(0, min(middle - batches // 2, total - batches))
        shown = np.arange(first, min(first + batches, total))
        largest = max(1, int(records.batch_items[shown].max()))
        for row, (model, _) in enumerate(facts.instances):
            mine = shown[records.batch_instance[shown] == row]
            spans = [
                (records.batch_start_ns[b] / 1e6,
                 (records.batch_finish_ns[b] - records.batch_start_ns[b]) / 1e6)
                for b in mine
            ]  # fmt: skip
            shades = [0.25 + 0.75 * records.batch_items[b] / largest for b in mine]
            colour = COLOURS[model % len(COLOURS)]
            for span, shade in zip(spans, shades, strict=True):
                ax.broken_barh(
                    [span], (row - 0.4, 0.8), color=colour, alpha=shade, edgecolor="white",
                    linewidth=0.4,
                )  # fmt: skip
        ax.set_yticks(range(len(facts.instances)))
        ax.set_yticklabels([f"{facts.models[m]} on {facts.devices[d]}" for m, d in facts.instances])
        ax.tick_params(axis="y", labelsize=7)
    ax.set_xlabel("time (ms); darker: more items in the batch")
    _title(figure, "Timeline around the longest queue", [(label, records, facts)])
    return figure


def compare(series: Series) -> Figure:
    """Latency distribution, batch sizes and queue length of several runs, overlaid."""
    figure, axes = _figure(12.0, 3.6, 3)
    draw_latency(axes[0], series)
    draw_batches(axes[1], series)
    draw_queue(axes[2], series)
    lines = "\n".join(
        f"{'AB'[i] if len(series) == 2 else i + 1}: {label}"
        for i, (label, _, _) in enumerate(series)
    )
    handles = axes[0].get_legend_handles_labels()[0]
    if handles:
        names = [f"{'AB'[i] if len(series) == 2 else i + 1}" for i in range(len(handles))]
        axes[0].legend(handles, names, fontsize=8, frameon=False)
    figure.suptitle(lines, fontsize=8, x=0.01, ha="left")
    return figure
