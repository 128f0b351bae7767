"""Figures of a run, as matplotlib Figure objects without any global state.

Most functions take *series*: (label, records, facts) of one or several runs. Labels say who
made the numbers: fidelity, engine, seed, version; every figure carries them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gesim.metrics.records import Facts, Records
from gesim.report import style, views
from gesim.report.style import COLOURS, INK, PART_COLOURS, SOFT
from gesim.report.timeline import timeline
from gesim.units import format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["batch_histogram", "breakdown", "compare", "latency_cdf", "queue_length", "timeline"]

Series = Sequence[tuple[str, Records, Facts]]


def _name(series: Series, i: int) -> str:
    """Short name of one of several runs."""
    names = [label.partition(":")[0] for label, _, _ in series]
    return names[i] if len(set(names)) == len(names) else f"{'ABCDEF'[i]}: {names[i]}"


def _made_by(series: Series) -> str:
    if len(series) == 1:
        return series[0][0]
    lines = [
        f"{_name(series, i)}: {label.partition(': ')[2]}" for i, (label, _, _) in enumerate(series)
    ]
    return "\n".join(lines)


def draw_latency(ax: Axes, series: Series) -> None:
    """Draw the latency distribution, the tail stretched: every decade of rarity is as high."""
    lowest = 0.1
    for i, (_, records, facts) in enumerate(series):
        latency, share = views.latency_tail(records, facts)
        if len(latency):
            keep = latency > 0
            ax.step(
                latency[keep], share[keep], where="post", color=COLOURS[i], linewidth=1.8,
                label=_name(series, i),
            )  # fmt: skip
            lowest = min(lowest, float(share.min()))
    style.tail_axis(ax, lowest)
    targets = {slo for _, _, facts in series for slo in facts.slo_ns if slo}
    for target in sorted(targets):
        ax.axvline(target / 1e6, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        ax.annotate(
            f"SLO {format_time(target)}", (target / 1e6, 1), xycoords=("data", "axes fraction"),
            xytext=(-3, -3), textcoords="offset points", fontsize=7.5, color=INK, rotation=90,
            ha="right", va="top",
        )  # fmt: skip
    if ax.lines:
        style.log_time(ax)
    ax.set_xlabel("latency")
    ax.set_ylabel("share of requests below")


def latency_cdf(series: Series) -> Figure:
    """Draw the latency distribution with its tail."""
    figure, ax = style.blank()
    draw_latency(ax, series)
    _legend(ax, series)
    style.title(figure, "Latency distribution", _made_by(series))
    return figure


def _legend(ax: Axes, series: Series) -> None:
    if len(series) > 1:
        style.legend(ax)


def draw_batches(ax: Axes, series: Series) -> None:
    """Draw the share of batches by size; of one run also the share of requests in them."""
    bars = []
    for i, (_, records, _) in enumerate(series):
        sizes, counts = views.batch_sizes(records)
        if len(sizes):
            batches = "batches" if len(series) == 1 else _name(series, i)
            bars.append((sizes, counts / counts.sum(), COLOURS[i], batches))
            if len(series) == 1:
                items = sizes * counts
                bars.append((sizes, items / items.sum(), "#a9c4f5", "items in them"))
    width = 0.84 / max(1, len(bars))
    for i, (sizes, share, colour, label) in enumerate(bars):
        ax.bar(sizes + (i - (len(bars) - 1) / 2) * width, share, width, color=colour, label=label)
    if bars:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=16, min_n_ticks=1))
        ax.grid(visible=False, axis="x")
        largest = max(int(sizes.max()) for sizes, _, _, _ in bars)
        ax.set_xlim(0.4, max(largest, 6) + 0.6)  # a single size is no wall
    style.percent(ax)
    ax.set_xlabel("items in a batch")
    ax.set_ylabel("share")


def batch_histogram(series: Series) -> Figure:
    """Draw the batch sizes."""
    figure, ax = style.blank()
    draw_batches(ax, series)
    style.legend(ax)
    style.title(figure, "Batch sizes", _made_by(series))
    return figure


def draw_queue(ax: Axes, series: Series) -> None:
    """Draw the queue length over time: mean, and where it is known the range, per time bin."""
    for i, (_, records, facts) in enumerate(series):
        view = views.queue_over_time(records, facts)
        if view is None:
            continue
        if view.lowest is not None and view.highest is not None:
            ax.fill_between(
                view.edges_s, np.append(view.lowest, view.lowest[-1]),
                np.append(view.highest, view.highest[-1]), step="post", color=COLOURS[i],
                alpha=0.22, linewidth=0, label="range" if len(series) == 1 else None,
            )  # fmt: skip
        label = "mean" if len(series) == 1 else _name(series, i)
        ax.stairs(view.mean, view.edges_s, color=COLOURS[i], linewidth=1.3, label=label)
    ax.set_xlabel("time (s)")
    ax.set_ylabel("requests waiting")
    ax.set_ylim(bottom=0)
    ax.margins(x=0)


def queue_length(series: Series) -> Figure:
    """Draw the queue length over time."""
    figure, ax = style.blank()
    draw_queue(ax, series)
    style.legend(ax, loc="upper right", ncols=2)
    style.title(figure, "Queue length", _made_by(series))
    return figure


def breakdown(records: Records, facts: Facts, label: str) -> Figure:
    """Draw where the time goes, for requests in bands of latency."""
    figure, ax = style.blank()
    means = views.part_means(records, facts)
    names = [name for name, _, _ in views.BANDS]
    bottom = np.zeros(len(names))
    for part in views.PARTS:
        heights = np.asarray(means.get(part, bottom * 0))
        if heights.any():
            ax.bar(names, heights, 0.6, bottom=bottom, color=PART_COLOURS[part], label=part)
        bottom += heights
    for i, total in enumerate(bottom):
        if total:
            ax.annotate(
                format_time(round(total * 1e6)), (i, total), xytext=(0, 2),
                textcoords="offset points", ha="center", fontsize=8, color=INK,
            )  # fmt: skip
    ax.grid(visible=False, axis="x")
    ax.tick_params(axis="x", colors=INK)
    ax.margins(y=0.1)
    ax.set_ylabel("mean time (ms)")
    style.legend(ax, loc="upper left", bbox_to_anchor=(1, 1), reverse=True)
    style.title(figure, "Where the time goes", label)
    return figure


def compare(series: Series) -> Figure:
    """Draw latency distribution, batch sizes and queue length of several runs, overlaid."""
    figure, axes = style.blank(14.4, 3.9, columns=3)
    for ax, draw, title in zip(
        axes,
        (draw_latency, draw_batches, draw_queue),
        ("Latency distribution", "Batch sizes", "Queue length"),
        strict=True,
    ):
        draw(ax, series)
        ax.set_title(title, fontsize=9, color=SOFT, loc="left")
    style.legend(axes[0])
    style.title(figure, "Comparison", _made_by(series))
    return figure
