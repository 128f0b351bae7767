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
from typing import TYPE_CHECKING, Protocol

from gesim.errors import ScenarioError
from gesim.metrics.recorder import Recorder
from gesim.scenario.system import System
from gesim.sim.driver import SimInfo, simulate
from gesim.units import suggest

if TYPE_CHECKING:
    from gesim.sim.fast.plan import Plan

__all__ = ["AUTO_REQUESTS", "ENGINES", "Engine", "FellBack", "choose_engine"]

ENGINES = ("auto", "simpy", "compiled", "called", "interpreted")
"""What `--engine` accepts; "called" and "interpreted" are the compiled loop with an interpreted
policy and the same loop in plain Python."""

AUTO_REQUESTS = 300_000
"""From this many expected requests on `auto` tries the compiled engine."""

Progress = Callable[[int, int], None]


class FellBack(Exception):  # noqa: N818 - not an error: run it on the SimPy engine instead
    """The compiled engine met something it does not know in the middle of a run.

    Attributes
    ----------
    engine : str
        What to run it on instead.
    warning : str
        What its user should know, empty for nothing.
    illegal : bool
        It was an illegal answer of the policy: the SimPy engine will say what was wrong.
    """

    def __init__(
        self, why: str, engine: str = "simpy", warning: str = "", *, illegal: bool = False
    ) -> None:
        super().__init__(why)
        self.engine = engine
        self.warning = warning
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
        One of `ENGINES` but auto.
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
    compiler = find_spec("numba") is not None
    if wanted in ("compiled", "called") and not compiler:
        raise ScenarioError(f"engine {wanted} needs numba (pip install 'gesim[fast]')")
    from gesim.sim.fast.plan import UnsupportedError, plan

    try:
        made = plan(system, levels, compiled=compiler and wanted != "interpreted")
    except UnsupportedError as error:
        if wanted != "auto":
            raise ScenarioError(
                f"engine {wanted} cannot run this scenario: the fast lane does not know {error}; "
                "use simpy or auto"
            ) from None
        return Engine("simpy", f"the fast lane does not know {error}", simulate)
    if wanted == "called":
        made = made.called()
    if made.source is not None:
        name, why = "compiled", "policy compiled from its own source"
    else:
        name = "interpreted" if made.flags.PLAIN else "called"
        why = "policy interpreted" + (f": {made.why_interpreted}" if made.why_interpreted else "")
    return Engine(name, why, _fast(made))


def _fast(made: Plan) -> Simulate:
    """Run in the fast lane; what it cannot do becomes `FellBack`."""
    from gesim.sim.fast.check import DifferentError
    from gesim.sim.fast.engine import simulate_fast
    from gesim.sim.fast.loop import IllegalAnswerError
    from gesim.sim.fast.plan import UnsupportedError
    from gesim.sim.interrupt import interrupts

    def run_fast(system: System, sink: Recorder, on_progress: Progress | None = None) -> SimInfo:
        try:
            with interrupts() as interrupt:
                return simulate_fast(
                    system, sink, made, interrupt=interrupt, on_progress=on_progress
                )
        except IllegalAnswerError:
            raise FellBack("an illegal answer of the policy", illegal=True) from None
        except DifferentError as error:
            policy = system.scheduler.models[0].config.batching.name
            raise FellBack(
                "the compiled policy differs from its source",
                "called",
                f"policy {policy!r} runs interpreted, because its compiled form differs: {error}",
            ) from None
        except UnsupportedError as error:
            raise FellBack(str(error)) from None

    return run_fast
