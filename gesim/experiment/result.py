"""What a run gives back: frames, figures, a summary, a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gesim import __version__
from gesim.errors import ResultError
from gesim.metrics.records import Facts, Records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gesim.scenario.expect import Checked
    from gesim.scenario.scenario import Scenario

__all__ = ["MADE", "Result", "Run"]


MADE = ("command", "started_at", "asked_replications", "python", "versions")
"""Keys of `Result.made`."""


@dataclass(eq=False)
class Run:
    """One replication: its seed, its records and its summary.

    Attributes
    ----------
    cut : bool
        The records are the beginning only; the summary is of all.
    """

    seed: int
    records: Records
    summary: dict[str, Any]
    cut: bool = False


@dataclass(eq=False)
class Result:
    """The outcome of `gesim.run` or `gesim.open_result`.

    Figures are matplotlib figures; each says fidelity, engine, seed and version, and with several
    replications shows the first.

    Attributes
    ----------
    scenario : Scenario
    seed : int
    engine, fidelity, version : str
    engine_why : str
        Why this engine ran it.
    summary_dict : dict
        What summary.json holds: times in ns, rates a second.
    expectations : list of Checked
        The scenario's `expect` lines, each with whether it holds and what was measured.
    partial : bool
        The run was interrupted.
    wall_s : float
        How long it took.
    warnings : list of str
        What in the scenario or the run has no effect or is probably not meant.
    made : dict
        How it came about: command, time, versions.
    folder : Path, optional
        Where it was saved or read from.
    """

    scenario: Scenario
    seed: int
    engine: str
    fidelity: str
    runs: list[Run]
    facts: Facts
    summary_dict: dict[str, Any]
    expectations: list[Checked]
    wall_s: float = 0.0
    partial: bool = False
    engine_why: str = ""
    warnings: list[str] = field(default_factory=list)
    made: dict[str, Any] = field(default_factory=dict)
    version: str = __version__
    folder: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether every expectation holds."""
        return all(one.holds for one in self.expectations)

    @property
    def label(self) -> str:
        """Who made this: name, fidelity, engine, seed, version."""
        partial = ", PARTIAL" if self.partial else ""
        runs = f", {len(self.runs)} replications" if len(self.runs) > 1 else ""
        return (
            f"{self.scenario.name}: simulated ({self.fidelity}), engine {self.engine}, "
            f"seed {self.seed}{runs}, gesim {self.version}{partial}"
        )

    # ---- frames ----------------------------------------------------------------------------

    def requests(self) -> pd.DataFrame:
        """One row a request: ids, times in ns, parts of the latency, outcome.

        Returns
        -------
        pandas.DataFrame
            Columns as in docs/results.md. ``latency_ns`` and its parts are NaN for requests
            that were not answered. Several replications stand one after another, see column
            ``replication``.
        """
        from gesim.experiment.frames import request_frame

        return request_frame([run.records for run in self.runs], self.facts)

    def batches(self) -> pd.DataFrame:
        """One row a batch: model, instance, sizes, times in ns."""
        from gesim.experiment.frames import batch_frame

        return batch_frame([run.records for run in self.runs], self.facts)

    def summary(self) -> pd.DataFrame:
        """One row a metric; times in ms.

        Returns
        -------
        pandas.DataFrame
            Columns ``all``, ``low`` and ``high`` (its 95 % confidence interval), then each model
            and each priority level.
        """
        from gesim.experiment.frames import summary_frame

        return summary_frame(self.summary_dict)

    # ---- figures ---------------------------------------------------------------------------

    def latency_cdf(self) -> Figure:
        """Draw the latency distribution with its tail."""
        from gesim.report import figures

        return figures.latency_cdf([self._series()])

    def timeline(self) -> Figure:
        """Draw what every instance did in a busy stretch."""
        from gesim.report import figures

        label, records, facts = self._series()
        return figures.timeline(records, facts, label)

    def batch_histogram(self) -> Figure:
        """Draw the batch sizes."""
        from gesim.report import figures

        return figures.batch_histogram([self._series()])

    def queue_length(self) -> Figure:
        """Draw the queue length over time."""
        from gesim.report import figures

        return figures.queue_length([self._series()])

    def breakdown(self) -> Figure:
        """Draw where the time goes, by percentile of latency."""
        from gesim.report import figures

        label, records, facts = self._series()
        return figures.breakdown(records, facts, label)

    def compare(self, *others: Result) -> Figure:
        """Draw latency distribution, batch sizes and queue length of several results together.

        Parameters
        ----------
        *others : Result
            One or more.

        Raises
        ------
        ResultError
            If something else is given, or nothing.
        """
        from gesim.report import figures

        if not others or not all(isinstance(other, Result) for other in others):
            raise ResultError("compare takes other results, like mine.compare(theirs)")
        return figures.compare([result._series() for result in (self, *others)])

    def _series(self) -> tuple[str, Records, Facts]:
        """Return what a figure shows: the label and the records of the first replication."""
        shown = " (the first is shown)" if len(self.runs) > 1 else ""
        return f"{self.label}{shown}", self.runs[0].records, self.facts

    # ---- keeping ---------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write the result folder; see docs/results.md.

        Returns
        -------
        Path
            The folder, absolute.

        Raises
        ------
        ResultError
            If the folder exists and is not a result, or cannot be written.
        """
        from gesim.experiment.folder import save

        self.folder = save(self, folder)
        return self.folder

    def __repr__(self) -> str:
        metrics = self.summary_dict["all"]
        mean, p99 = metrics["latency_mean_ns"], metrics["latency_p99_ns"]
        if mean is None:
            return f"<Result {self.label}: nothing answered>"
        return f"<Result {self.label}: mean {mean / 1e6:.3f} ms, p99 {p99 / 1e6:.3f} ms>"

    def _repr_html_(self) -> str:
        from html import escape

        from gesim.report.html import fragment

        warned = "".join(f"<p>Warning: {escape(one)}</p>" for one in self.warnings)
        return fragment(self.label, self.summary_dict, self.expectations) + warned
