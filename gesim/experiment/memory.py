"""Replications keep their records while memory allows; the first always does."""

from __future__ import annotations

import numpy as np

from gesim.experiment.result import Run
from gesim.metrics.recorder import KEPT, MAX_RECORDS
from gesim.metrics.records import Records

__all__ = ["beginning", "bound_records", "cut_warning"]


def bound_records(runs: list[Run], most: int = MAX_RECORDS, kept: int = KEPT) -> None:
    """Cut the records of the last run to their beginning if all together are too many.

    Its summary, made before, stays that of the whole run.

    Parameters
    ----------
    runs : list of Run
        The last one is the one that came to it.
    most : int
        Requests that may be kept one by one.
    kept : int
        Requests that a run which is cut keeps.
    """
    last = runs[-1]
    total = sum(len(one.records) for one in runs)
    if len(runs) > 1 and total > most and len(last.records) > kept:
        last.records = beginning(last.records, kept)
        last.cut = True


def cut_warning(runs: list[Run], kept: int = KEPT) -> list[str]:
    """Say which replications were cut."""
    cut = [str(number) for number, one in enumerate(runs) if one.cut]
    if not cut:
        return []
    which = f"{cut[0]} to {cut[-1]}" if len(cut) > 1 else cut[0]
    return [
        f"of replication {which} only the first {kept:,} requests are kept one by one; "
        "the numbers are of all"
    ]


def beginning(records: Records, limit: int) -> Records:
    """Return the first requests and the batches that hold any of them."""
    requests = {name: getattr(records, name)[:limit].copy() for name in Records.REQUEST_COLUMNS}
    batch = requests["batch"]
    used = np.unique(batch[batch >= 0])
    requests["batch"] = np.where(batch >= 0, np.searchsorted(used, batch), -1)
    batches = {name: getattr(records, name)[used] for name in Records.BATCH_COLUMNS}
    return Records(
        **requests,
        **batches,
        reasons=records.reasons,
        interrupted_ns=records.interrupted_ns,
        stream=records.stream,
        curves=records.curves,
    )
