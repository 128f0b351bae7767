"""The one place where a run's engine is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gesim.errors import ScenarioError
from gesim.metrics.sink import Sink
from gesim.scenario.system import System
from gesim.sim.driver import SimInfo, simulate

__all__ = ["ENGINES", "Engine", "choose_engine"]

ENGINES = ("auto", "simpy")
"""What `--engine` accepts."""


class Engine(Protocol):
    """Runs a system into a sink."""

    def __call__(
        self, system: System, sink: Sink, on_progress: Callable[[int, int], None] | None = None
    ) -> SimInfo:
        """Run `system` to its end; see `gesim.sim.driver.simulate`."""


def choose_engine(wanted: str) -> tuple[str, Engine]:
    """Return the engine's name and the engine.

    Raises
    ------
    ScenarioError
        For an engine that does not exist.
    """
    if wanted not in ENGINES:
        raise ScenarioError(f"engine {wanted!r} is unknown; engines are {', '.join(ENGINES)}")
    return "simpy", simulate
