"""What a run gives back: frames, figures, a summary, a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gesim import __version__
from gesim.metrics.records import Facts, Records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gesim.scenario.expect import Checked
    from gesim.scenario.scenario import Scenario

__all__ = ["Result", "Run"]


@dataclass
class Run:
    """One replication: its seed, its records and its summary."""

    seed: int
    records: Records
    summary: dict[str, Any]


@dataclass
class Result:
    """The outcome of `gesim.run` or `gesim.open_result`.

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
    version: str = __version__
    folder: Path | None = field(default=None, compare=False)

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
            ``latency_ns`` and the parts are NaN for requests that were not answered. Several
            replications stand one after another, see column ``replication``.
        """
        import pandas as pd

        from gesim.experiment.frames import request_frame

        frames = [request_frame(run.records, self.facts, i) for i, run in enumerate(self.runs)]
        return pd.concat(frames, ignore_index=True)

    def batches(self) -> pd.DataFrame:
        """One row a batch: model, instance, sizes, times in ns."""
        import pandas as pd

        from gesim.experiment.frames import batch_frame

        frames = [batch_frame(run.records, self.facts, i) for i, run in enumerate(self.runs)]
        return pd.concat(frames, ignore_index=True)

    def summary(self) -> pd.DataFrame:
        """One row a metric, one column for all, each model and each level; times in ms."""
        from gesim.experiment.frames import summary_frame

        return summary_frame(self.summary_dict)

    # ---- figures ---------------------------------------------------------------------------

    def latency_cdf(self) -> Figure:
        """Draw the latency distribution with its tail."""
        from gesim.report import figures

        return figures.latency_cdf([(self.label, self.runs[0].records, self.facts)])

    def timeline(self) -> Figure:
        """Draw what every instance did in a busy stretch."""
        from gesim.report import figures

        return figures.timeline(self.runs[0].records, self.facts, self.label)

    def batch_histogram(self) -> Figure:
        """Draw the batch sizes."""
        from gesim.report import figures

        return figures.batch_histogram([(self.label, self.runs[0].records, self.facts)])

    def queue_length(self) -> Figure:
        """Draw the queue length over time."""
        from gesim.report import figures

        return figures.queue_length([(self.label, self.runs[0].records, self.facts)])

    def breakdown(self) -> Figure:
        """Draw where the time goes, by percentile of latency."""
        from gesim.report import figures

        return figures.breakdown(self.runs[0].records, self.facts, self.label)

    def compare(self, other: Result) -> Figure:
        """Draw latency distribution, batch sizes and queue length of two results together."""
        from gesim.report import figures

        return figures.compare(
            [(result.label, result.runs[0].records, result.facts) for result in (self, other)]
        )

    # ---- keeping ---------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write the result folder; see docs/results.md.

        Raises
        ------
        ResultError
            If the folder exists and is not a result, or cannot be written.
        """
        from gesim.experiment.folder import save

        self.folder = save(self, Path(folder))
        return self.folder

    def __repr__(self) -> str:
        metrics = self.summary_dict["all"]
        mean, p99 = metrics["latency_mean_ns"], metrics["latency_p99_ns"]
        if mean is None:
            return f"<Result {self.label}: nothing answered>"
        return f"<Result {self.label}: mean {mean / 1e6:.3f} ms, p99 {p99 / 1e6:.3f} ms>"

    def _repr_html_(self) -> str:
        from gesim.report.html import fragment

        return fragment(self.label, self.summary_dict, self.expectations)
