"""A scenario made ready to run: what a driver gets. Built by `gesim.scenario.build`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gesim.core.scheduler import Scheduler
    from gesim.cost.service import Service
    from gesim.workload.base import Workload

__all__ = ["System"]


@dataclass
class System:
    """One run of one scenario with one seed.

    Attributes
    ----------
    scheduler : Scheduler
        Fresh; models, instances and devices carry the indices used below.
    services : list of Service
        One per model: fills in a batch's times.
    workload : Workload
        Open or closed loop; ends by itself.
    receive_ns, respond_ns : int
        Front-end time before a request is queued and after its batch is finished. A request's
        latency runs from its arrival to ``batch.finish_ns + respond_ns``.
    models, devices : list of str
        Names by index. `instances` names (model, device, number) for every instance.
    expected_requests : int
        For progress bars; 0 where unknown.
    """

    scheduler: Scheduler
    services: list[Service]
    workload: Workload
    receive_ns: int
    respond_ns: int
    models: list[str]
    devices: list[str]
    expected_requests: int = 0
