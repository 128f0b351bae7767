"""Checks that several policies make on their parameters."""

from __future__ import annotations

from gesim.errors import PolicyError

__all__ = ["at_least", "share"]


def at_least(policy: str, parameter: str, value: int, least: int) -> None:
    """Refuse a parameter below its least value."""
    if value < least:
        raise PolicyError(f"{policy}: {parameter} is {value}; it must be at least {least}")


def share(policy: str, parameter: str, value: float) -> None:
    """Refuse a parameter outside 0..1."""
    if not 0.0 <= value <= 1.0:
        raise PolicyError(f"{policy}: {parameter} is {value}; it must lie in 0..1")
