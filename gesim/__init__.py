"""gesim: simulate an inference-serving scheduling policy before anyone touches hardware.

    import gesim

    scenario = gesim.load("scenarios/quickstart.yaml")
    result = gesim.run(scenario.set("batching.max_batch_size", 4))
    result.summary()

Names are loaded when they are first used, so that ``import gesim`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gesim.core.decisions import ADMIT, NEVER_NS, Admit, Dispatch, Drop, Reject, Wait
    from gesim.core.policy import AdmissionPolicy, BatchingPolicy, OrderingPolicy, QueueView
    from gesim.core.request import Request
    from gesim.errors import (
        ContractError,
        DeviceError,
        GesimError,
        InternalError,
        PolicyError,
        ProfileError,
        ResultError,
        ScenarioError,
        WorkloadError,
    )
    from gesim.experiment.reopen import open_result
    from gesim.experiment.result import Result
    from gesim.experiment.run import run
    from gesim.scenario.load import load
    from gesim.scenario.scenario import Scenario
    from gesim.testing.conformance import check_policy

__all__ = [
    "ADMIT",
    "NEVER_NS",
    "AdmissionPolicy",
    "Admit",
    "BatchingPolicy",
    "ContractError",
    "DeviceError",
    "Dispatch",
    "Drop",
    "GesimError",
    "InternalError",
    "OrderingPolicy",
    "PolicyError",
    "ProfileError",
    "QueueView",
    "Reject",
    "Request",
    "Result",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "Wait",
    "WorkloadError",
    "__version__",
    "check_policy",
    "load",
    "open_result",
    "run",
]

_HOME = {
    "gesim.core.decisions": "ADMIT NEVER_NS Admit Dispatch Drop Reject Wait",
    "gesim.core.policy": "AdmissionPolicy BatchingPolicy OrderingPolicy QueueView",
    "gesim.core.request": "Request",
    "gesim.errors": "ContractError DeviceError GesimError InternalError PolicyError ProfileError "
    "ResultError ScenarioError WorkloadError",
    "gesim.experiment.reopen": "open_result",
    "gesim.experiment.result": "Result",
    "gesim.experiment.run": "run",
    "gesim.scenario.load": "load",
    "gesim.scenario.scenario": "Scenario",
    "gesim.testing.conformance": "check_policy",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gesim' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
