"""Finding policies, and building them from what a scenario says.

Theory of operation
-------------------
A policy is a dataclass (`gesim.core.policy`); its init fields are its parameters. It is found by
the name of an entry point in the group ``gesim.policies.<kind>``, by ``module:Class``, by
``path/file.py:Class``, or it is the class itself (notebooks). Units follow from field names: a
field ``flush_ns`` appears in scenario files as ``flush`` and takes ``5ms`` or ``never``;
``*_bytes`` and ``*_rps`` likewise. So a new policy needs no schema code at all.
"""

from __future__ import annotations

from gesim.registry.build import Problem, build_policy, check_policy, describe_policy
from gesim.registry.find import (
    KINDS,
    find_policy,
    policies,
    policy_name,
    policy_names,
    summary_line,
)
from gesim.registry.parameters import Parameter, parameters

__all__ = [
    "KINDS",
    "Parameter",
    "Problem",
    "build_policy",
    "check_policy",
    "describe_policy",
    "find_policy",
    "parameters",
    "policies",
    "policy_name",
    "policy_names",
    "summary_line",
]
