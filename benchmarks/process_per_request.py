"""The same system as an idiomatic SimPy model: a process per request, a store, a server.

This is what a careful SimPy user writes, and the yardstick of the other benchmarks here. It
records what gesim needs for the same summary: arrival, start and finish of every request and
the size of every batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import simpy


@dataclass
class Records:
    arrival_ns: list[int] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    finish_ns: list[int] = field(default_factory=list)
    batch_sizes: list[int] = field(default_factory=list)


def simulate(
    times_ns: np.ndarray, max_batch_size: int, delay_ns: int, setup_ns: int, per_item_ns: int
) -> tuple[np.ndarray, Records]:
    """Run a dynamic batcher (delay from the oldest enqueue) on one device.

    Returns
    -------
    finish_ns : numpy.ndarray
        Finish time of each request, in order of arrival.
    records : Records
    """
    env = simpy.Environment()
    queue = simpy.Store(env)
    records = Records()
    finish_ns = np.full(len(times_ns), -1, np.int64)

    def request(number):
        arrived = env.now
        answered = env.event()
        yield queue.put((arrived, answered))
        started = yield answered
        finish_ns[number] = env.now
        records.arrival_ns.append(arrived)
        records.start_ns.append(started)
        records.finish_ns.append(env.now)

    def source():
        for number, at in enumerate(times_ns.tolist()):
            yield env.timeout(at - env.now)
            env.process(request(number))

    def server():
        while True:
            batch = [(yield queue.get())]
            timer = env.timeout(max(0, batch[0][0] + delay_ns - env.now))
            while len(batch) < max_batch_size:
                more = queue.get()
                yield more | timer
                if not more.triggered:
                    more.cancel()
                    break
                batch.append(more.value)
            started = env.now
            yield env.timeout(setup_ns + per_item_ns * len(batch))
            records.batch_sizes.append(len(batch))
            for _, answered in batch:
                answered.succeed(started)

    env.process(source())
    env.process(server())
    env.run()
    return finish_ns, records
