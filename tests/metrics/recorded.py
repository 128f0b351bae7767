"""Runs of the plain harness, recorded: what the tests of metrics and reports look at."""

import numpy as np

from gesim.core.decisions import NEVER_NS
from gesim.core.request import Outcome, Request
from gesim.metrics.recorder import Recorder
from gesim.metrics.records import Facts
from gesim.policies.admission.bounded_queue import BoundedQueue
from gesim.policies.admission.queue_timeout import QueueTimeout
from gesim.policies.batching.greedy import Greedy
from gesim.policies.ordering.strict_priority import StrictPriority
from gesim.testing.harness import model, play
from gesim.workload.base import Chunk


def chunk_of(requests):
    """Return the columns of some requests."""
    names = ("arrival_ns", "model", "level", "items", "length", "deadline_ns", "timeout_ns",
             "work_ns")  # fmt: skip
    return Chunk(*(np.array([getattr(r, name) for r in requests], np.int64) for name in names))


def feed(sink, requests, played, *, piece=0):
    """Give a sink what a driver would: arrivals, batches in order of finish, losses."""
    piece = piece or len(requests) or 1
    events = [(b.finish_ns, 0, b.id, b) for b in played.batches]
    events += [(r.finish_ns, 1, r.id, r) for r in played.gone]
    events.sort(key=lambda event: event[:3])
    sent = 0
    for at_ns, lost, _, what in events:
        while sent < len(requests) and requests[sent].arrival_ns <= at_ns:
            sink.arrivals(chunk_of(requests[sent : sent + piece]))
            sent += piece
        (sink.gone if lost else sink.batch)(what)
    while sent < len(requests):
        sink.arrivals(chunk_of(requests[sent : sent + piece]))
        sent += piece
    for request in played.waiting:
        request.outcome = Outcome.UNFINISHED
        request.reason = "end_of_run"
        request.finish_ns = played.end_ns
        sink.gone(request)


def record(requests, played, facts, **options):
    """Record a run of the harness."""
    recorder = Recorder(facts, **options)
    feed(recorder, requests, played)
    return recorder.records(played.end_ns)


def busy_run(seed, n=4000, *, models=2, levels=2, slo_ns=6_000_000):
    """Random traffic for two models on two devices, with losses; returns (requests, played, facts).

    Every batch has host, input, compute and output times.
    """
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(400_000, n)).astype(np.int64)
    requests = [
        Request(
            i, int(rng.integers(models)), int(t), int(t) + 1000, int(rng.integers(1, levels + 1)),
            deadline_ns=int(t) + 3_000_000 if rng.random() < 0.2 else NEVER_NS,
        )
        for i, t in enumerate(times.tolist())
    ]  # fmt: skip
    shapes = [(0, 0, 1), (1,)]
    configs = [
        model(
            Greedy(4),
            StrictPriority(),
            admission=(BoundedQueue(5), QueueTimeout(7_000_000)),
            devices=shapes[i],
            name=f"model{i}",
        )
        for i in range(models)
    ]
    played = play(configs, requests, streams=(2, 1), service_ns=_service(rng))
    for batch in played.batches:
        total = batch.finish_ns - batch.start_ns
        batch.host_ns, batch.input_ns, batch.output_ns = total // 10, total // 20, total // 20
        batch.compute_ns = total - batch.host_ns - batch.input_ns - batch.output_ns
    facts = Facts(
        models=tuple(config.name for config in configs),
        devices=("a", "b"),
        instances=tuple((i, d) for i, config in enumerate(configs) for d in config.devices),
        receive_ns=1000,
        respond_ns=2000,
        slo_ns=(slo_ns, 0)[:models],
        levels=levels,
        streams=(2, 1),
    )
    return requests, played, facts


def _service(rng):
    return lambda batch: int(rng.integers(500_000, 1_500_000)) + 400_000 * batch.items
