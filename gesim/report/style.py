"""One look for all figures: colours, axes, tick labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from gesim.units import format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "INK",
    "LINE",
    "PAPER",
    "PART_COLOURS",
    "SOFT",
    "blank",
    "legend",
    "log_time",
    "title",
]

INK, SOFT, LINE, PAPER = "#10182a", "#64758a", "#d8dee8", "#fefefe"
"""Text, secondary text, rules, gaps. A page that knows darkness replaces them by its own."""

COLOURS = ("#3b74e8", "#e8743b", "#13a06f", "#9a5fd8", "#d84f6a", "#1898b4")
"""Of models, or of runs that are compared: legible on white and on dark."""

PART_COLOURS = {
    "frontend": "#8fa1b8",
    "queue": "#f0a93b",
    "host": "#9a5fd8",
    "transfer": "#1fb5c9",
    "compute": "#3b74e8",
}


class _Shown(Figure):
    """A figure that Jupyter shows although pyplot does not know it."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=100)
        return out.getvalue()


def blank(
    width: float = 7.2, height: float = 3.5, rows: int = 1, columns: int = 1, **grid: Any
) -> tuple[Figure, Any]:
    """Make a figure with empty axes in the common style; sizes in inches."""
    figure = _Shown(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, **grid)
    for ax in np.atleast_1d(axes).flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(LINE)
        ax.grid(visible=True, color=LINE, linewidth=0.6)
        ax.tick_params(colors=SOFT, labelsize=8, length=0)
        ax.xaxis.label.set(color=INK, fontsize=8.5)
        ax.yaxis.label.set(color=INK, fontsize=8.5)
        ax.set_axisbelow(True)
    return figure, axes


def title(figure: Figure, text: str, made_by: str = "") -> None:
    """Write what a figure shows, and below it who made the numbers."""
    figure.suptitle(text, fontsize=10, x=0.01, ha="left", color=INK, fontweight="bold")
    if made_by:  # at the foot: it belongs to the figure wherever that is copied to
        figure.supxlabel(made_by, fontsize=6.5, x=0.99, ha="right", color=SOFT)


def legend(ax: Axes, **options: Any) -> None:
    """Add a legend if anything has a label."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(**{"fontsize": 8, "frameon": False, "labelcolor": INK, **options})


def log_time(ax: Axes) -> None:
    """Make the x axis, in ms, logarithmic, with ticks like ``200 us`` and ``5 ms``."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = _log_ticks(low, high)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FixedFormatter([_short(tick) for tick in ticks]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(low, high)


def _log_ticks(low: float, high: float, most: int = 9) -> list[float]:
    """Choose round values between two numbers on a logarithmic axis."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks: list[float] = []
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**d for d in decades for step in steps if low <= step * 10.0**d <= high]
        if len(ticks) <= most:
            break
    return ticks


def _short(milliseconds: float) -> str:
    return format_time(round(milliseconds * 1e6)).replace(".00", "").replace(".0 ", " ")


def percent(ax: Axes, axis: str = "y") -> None:
    """Label an axis in per cent."""
    from matplotlib.ticker import FuncFormatter

    write: Callable[[float, int], str] = lambda share, _: f"{share * 100:g} %"  # noqa: E731
    getattr(ax, f"{axis}axis").set_major_formatter(FuncFormatter(write))


def tail_axis(ax: Axes, lowest: float) -> None:
    """Make the y axis the share above, downwards in decades, labelled by percentile."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    marks: Sequence[tuple[float, str]] = (
        (1.0, "0 %"), (0.5, "p50"), (0.1, "p90"), (0.05, "p95"), (0.01, "p99"),
        (0.001, "p99.9"), (1e-4, "p99.99"), (1e-5, "p99.999"), (1e-6, "p99.9999"),
    )  # fmt: skip
    ax.set_yscale("log")
    shown = [(share, name) for share, name in marks if share >= lowest * 0.999]
    ax.yaxis.set_major_locator(FixedLocator([share for share, _ in shown]))
    ax.yaxis.set_major_formatter(FixedFormatter([name for _, name in shown]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylim(1.15, lowest * 0.8)
