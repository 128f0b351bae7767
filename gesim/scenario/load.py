"""Reading scenario files: see `load`."""

from __future__ import annotations

from gesim.scenario.scenario import Scenario, load

__all__ = ["Scenario", "load"]
