"""The one place where a run's engine is chosen.

`simpy` runs everything. `compiled` runs what `gesim.sim.fast` knows, many times faster, with
the same completion time for every request. `auto` takes the compiled engine for long runs
where it can (numba installed, nothing that the kernel lacks) and SimPy otherwise; starting
the compiled engine costs up to a few seconds, so short runs are not worth it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from gesim.errors import ScenarioError
from gesim.metrics.recorder import Recorder
from gesim.scenario.system import System
from gesim.sim.driver import SimInfo, simulate
from gesim.units import suggest

__all__ = ["AUTO_REQUESTS", "ENGINES", "Engine", "FellBack", "choose_engine"]

ENGINES = ("auto", "simpy", "compiled")
"""What `--engine` accepts."""

AUTO_REQUESTS = 300_000
"""From this many expected requests on `auto` tries the compiled engine."""

Progress = Callable[[int, int], None]


class FellBack(Exception):  # noqa: N818 - not an error: run it on the SimPy engine instead
    """The compiled engine met something it does not know in the middle of a run.

    Attributes
    ----------
    illegal : bool
        It was an illegal answer of the policy: the SimPy engine will say what was wrong.
    """

    def __init__(self, why: str, *, illegal: bool) -> None:
        super().__init__(why)
        self.illegal = illegal


class Simulate(Protocol):
    """Runs a fresh system to its end."""

    def __call__(
        self, system: System, sink: Recorder, on_progress: Progress | None = None
    ) -> SimInfo:
        """Run `system`; see `gesim.sim.driver.simulate`."""


@dataclass(frozen=True)
class Engine:
    """A chosen engine.

    Attributes
    ----------
    name : str
        simpy or compiled.
    why : str
        Why this one, in a sentence; names file and line of what keeps a policy interpreted.
    simulate : callable
    """

    name: str
    why: str
    simulate: Simulate


def choose_engine(wanted: str, system: System, levels: int) -> Engine:
    """Choose the engine for a system.

    Parameters
    ----------
    wanted : {"auto", "simpy", "compiled"}
    system : System
        Fresh; it is only looked at.
    levels : int
        Priority levels of its requests.

    Raises
    ------
    ScenarioError
        For an engine that does not exist, or ``compiled`` where it cannot run the system.
    """
    if wanted not in ENGINES:
        near = suggest(wanted, ENGINES)
        raise ScenarioError(f"engine {wanted!r} is unknown{near} (engines: {', '.join(ENGINES)})")
    if wanted == "simpy":
        return Engine("simpy", "it was asked for", simulate)
    if wanted == "auto" and 0 < system.expected_requests < AUTO_REQUESTS:
        few = f"{system.expected_requests:,} requests are too few to start the compiled engine"
        return Engine("simpy", few, simulate)
    if find_spec("numba") is None:
        why = "the compiled engine needs numba (pip install 'gesim[fast]')"
        return _simpy(wanted, why)
    from gesim.sim.fast.engine import (
        IllegalAnswerError,
        UnsupportedError,
        plan,
        simulate_fast,
    )
    from gesim.sim.interrupt import interrupts

    try:
        made = plan(system, levels)
    except UnsupportedError as error:
        return _simpy(wanted, f"the compiled engine does not know {error}")

    def run_compiled(
        system: System, sink: Recorder, on_progress: Progress | None = None
    ) -> SimInfo:
        try:
            with interrupts() as interrupt:
                return simulate_fast(
                    system, sink, made, interrupt=interrupt, on_progress=on_progress
                )
        except IllegalAnswerError:
            raise FellBack("an illegal answer of the policy", illegal=True) from None
        except UnsupportedError as error:
            raise FellBack(str(error), illegal=False) from None

    form = f"policy interpreted: {made.why_interpreted}" if made.why_interpreted else (
        "policy compiled from its own source"
    )  # fmt: skip
    return Engine("compiled", form, run_compiled)


def _simpy(wanted: str, why: str) -> Engine:
    if wanted == "compiled":
        raise ScenarioError(f"engine compiled cannot run this scenario: {why}; use simpy or auto")
    return Engine("simpy", why, simulate)
