"""One error tree. The class says who is at fault; the message says what would be right."""

from __future__ import annotations

__all__ = [
    "ContractError",
    "DeviceError",
    "GesimError",
    "InternalError",
    "PolicyError",
    "ProfileError",
    "ResultError",
    "ScenarioError",
    "WorkloadError",
]


class GesimError(Exception):
    """Base of every error that gesim raises on purpose. Raised only through a subclass.

    Attributes
    ----------
    blame : str
        Who is at fault: scenario, profile, workload, policy, result, device or gesim.
    """

    blame: str = "gesim"

    def __init__(self, *args: object) -> None:
        if type(self) is GesimError:
            raise TypeError("raise a subclass of GesimError, which says who is at fault")
        super().__init__(*args)


class ScenarioError(GesimError):
    """The scenario file (or a --set on top of it) is wrong."""

    blame = "scenario"


class ProfileError(ScenarioError):
    """A cost profile is wrong, or is asked for a point it does not have."""

    blame = "profile"


class WorkloadError(ScenarioError):
    """A trace or another source of arrivals is wrong."""

    blame = "workload"


class PolicyError(GesimError):
    """A policy cannot be found or built, or raised an exception of its own."""

    blame = "policy"


class ContractError(PolicyError):
    """A policy answered something that the contract forbids."""


class ResultError(GesimError):
    """A result folder cannot be read or written."""

    blame = "result"


class DeviceError(GesimError):
    """A device is missing, broken or out of memory."""

    blame = "device"


class InternalError(GesimError):
    """An invariant of gesim itself does not hold: always a bug worth reporting."""
