"""What every instance did in a busy stretch, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gesim.metrics.records import Facts, Records
from gesim.report import style, views
from gesim.report.style import COLOURS, INK, PAPER, PART_COLOURS, SOFT
from gesim.units import format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["timeline"]

_ROWS = 12
_BATCHES = 160
"""Most instances and batches shown."""


def timeline(records: Records, facts: Facts, label: str, batches: int = 32) -> Figure:
    """Draw the batches around the moment when most requests were waiting, and the queue.

    Parameters
    ----------
    records : Records
        Of a streamed run its beginning.
    facts : Facts
    label : str
        Who made the numbers.
    batches : int
        How many to show for each instance; of the first twelve instances, 160 in all at most.
    """
    rows = min(len(facts.instances), _ROWS)
    figure, (above, ax) = style.blank(
        14.4, 2.4 + 0.42 * rows, rows=2, sharex=True, height_ratios=[1.2, 0.35 + 0.45 * rows]
    )
    shown = _around_the_longest_queue(records, facts, min(batches * rows, _BATCHES))
    origin = 0
    if len(shown):
        origin = int(records.batch_start_ns[shown[0]])
        end = int(records.batch_finish_ns[shown].max())
        _draw_queue(above, records, facts, origin, end)
        for row in range(rows):
            _draw_row(ax, records, facts, shown[records.batch_instance[shown] == row], row, origin)
        ax.set_xlim(0, (end - origin) / 1e6)
        _legend(ax, records, shown)
    ax.set_yticks(range(rows), facts.instance_names()[:rows])
    ax.tick_params(axis="y", colors=INK, labelsize=8)
    ax.set_ylim(rows - 0.45, -0.55)
    ax.grid(visible=False, axis="y")
    above.set_ylabel("waiting")
    ax.set_xlabel(
        f"ms after {format_time(origin)}; numbers: items in the batch, paler where its gear is "
        "partly padding",
        color=SOFT,
    )
    streamed = " (of the beginning that was recorded)" if records.curves is not None else ""
    style.title(figure, f"Timeline around the longest queue{streamed}", label)
    return figure


def _around_the_longest_queue(records: Records, facts: Facts, batches: int) -> NDArray[np.int64]:
    """Consecutive batches, in order of start."""
    total = len(records.batch_start_ns)
    times, length = views.waiting(records, facts)
    peak = int(times[int(np.argmax(length))]) if len(times) else 0
    middle = int(np.searchsorted(records.batch_start_ns, peak))
    first = max(0, min(middle - batches // 2, total - batches))
    return np.arange(first, min(first + batches, total))


def _draw_queue(ax: Axes, records: Records, facts: Facts, origin: int, end: int) -> None:
    times, length = views.waiting(records, facts)
    start, stop = np.searchsorted(times, [origin, end], side="right")
    inside = slice(max(0, start - 1), stop)
    x = np.clip(times[inside], origin, end)
    ax.fill_between(
        np.append((x - origin) / 1e6, (end - origin) / 1e6),
        np.append(length[inside], length[stop - 1] if stop else 0),
        step="post", color=PART_COLOURS["queue"], alpha=0.55, linewidth=0,
    )  # fmt: skip
    ax.set_ylim(bottom=0)


def _draw_row(
    ax: Axes, records: Records, facts: Facts, mine: NDArray[np.int64], row: int, origin: int
) -> None:
    """Draw one instance: a box a batch, on its foot the host and transfer stages."""
    colour = COLOURS[facts.instances[row][0] % len(COLOURS)]
    span = max(1, int(records.batch_finish_ns[mine].max() - origin)) if len(mine) else 1
    for batch in mine.tolist():
        start, finish = int(records.batch_start_ns[batch]), int(records.batch_finish_ns[batch])
        items, gear = int(records.batch_items[batch]), int(records.batch_gear[batch])
        ax.broken_barh(
            [((start - origin) / 1e6, (finish - start) / 1e6)], (row - 0.36, 0.72),
            facecolor=colour, alpha=0.35 + 0.6 * items / max(items, gear), linewidth=0,
        )  # fmt: skip
        _draw_stages(ax, records, batch, row, origin)
        if finish - start > span / 100:
            ax.annotate(
                str(items), ((start + finish) / 2e6 - origin / 1e6, row - 0.08), ha="center",
                va="center", fontsize=7, color="white",
            )  # fmt: skip
    edges = [(int(records.batch_start_ns[b]) - origin) / 1e6 for b in mine.tolist()]
    ax.vlines(edges, row - 0.36, row + 0.36, color=PAPER, linewidth=0.8)


def _draw_stages(ax: Axes, records: Records, batch: int, row: int, origin: int) -> None:
    at = int(records.batch_start_ns[batch]) - origin
    stages: list[tuple[str, Any]] = [
        ("host", records.host_ns), ("transfer", records.input_ns), ("", records.compute_ns),
        ("transfer", records.output_ns),
    ]  # fmt: skip
    for part, column in stages:
        duration = int(column[batch])
        if part and duration:
            ax.broken_barh(
                [(at / 1e6, duration / 1e6)], (row + 0.18, 0.18), facecolor=PART_COLOURS[part],
                linewidth=0,
            )  # fmt: skip
        at += duration


def _legend(ax: Axes, records: Records, shown: NDArray[np.int64]) -> None:
    """Name the stages on the foot of the boxes, where there are any."""
    from matplotlib.patches import Patch

    transfer = records.input_ns[shown] + records.output_ns[shown]
    found = [p for p, c in (("host", records.host_ns[shown]), ("transfer", transfer)) if c.any()]
    if found:
        handles = [Patch(color=PART_COLOURS[part], label=part) for part in found]
        ax.legend(
            handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8,
            frameon=False, labelcolor=INK, borderaxespad=0,
        )  # fmt: skip
