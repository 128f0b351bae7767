"""What a compiled policy sees: the queue view as numbers and arrays, its methods as functions.

Part of the generated kernel module, see `gesim.sim.fast.kernel`: the text below the line of
dashes is copied into it.
"""

from __future__ import annotations

# mypy: ignore-errors
from typing import NamedTuple

LANES = 1
LEVELLED = False
NEVER = 1 << 62

# ------------------------------------------------------------------------------------------


class View(NamedTuple):
    """What a policy sees: `gesim.core.policy.QueueView` as numbers and arrays."""

    count: int
    items: int
    head_enqueue_ns: int
    oldest_enqueue_ns: int
    idle_instances: int
    instances: int
    free_since_ns: int
    last_dispatch_ns: int
    last_finish_ns: int
    gears: object
    service: object
    times: object
    head: object
    tail: object
    levels: object


def q_fit(q, n):
    return q.count if q.count < n else n


def q_items_of(q, n):
    return q.count if q.count < n else n


def q_size(q, i):
    return 1


def q_level_count(q, level):
    if LEVELLED:
        n = 0
        for j in range(q.head[0], q.tail[0]):
            n += q.levels[j] == level
        return n
    if LANES == 1:
        return q.count if level == 1 else 0
    if level < 1 or level > LANES:
        return 0
    return q.tail[level - 1] - q.head[level - 1]


def q_level_oldest_ns(q, level):
    if LEVELLED:
        for j in range(q.head[0], q.tail[0]):
            if q.levels[j] == level:
                return q.times[j]
        return NEVER
    if q_level_count(q, level) == 0:
        return NEVER
    return q.times[q.head[level - 1]]


def q_enqueue_ns(q, i):
    for lane in range(LANES):
        n = q.tail[lane] - q.head[lane]
        if i < n:
            return q.times[q.head[lane] + i]
        i -= n
    return NEVER


def q_level(q, i):
    if LEVELLED:
        return q.levels[q.head[0] + i] if i < q.tail[0] - q.head[0] else 0
    for lane in range(LANES):
        n = q.tail[lane] - q.head[lane]
        if i < n:
            return lane + 1
        i -= n
    return 0


def q_gear_up(q, n):
    if len(q.gears) == 0:
        return n
    for g in q.gears:
        if g >= n:
            return g
    return 0


def q_gear_down(q, n):
    if len(q.gears) == 0:
        return n
    best = 0
    for g in q.gears:
        if g <= n:
            best = g
    return best


def q_service_ns(q, n):
    return q.service[n]
