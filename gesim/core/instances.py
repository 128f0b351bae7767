"""Instances and the device streams that they share.

Theory of operation
-------------------
An instance runs one batch at a time. A device runs `streams` batches at a time. Where every
device has at least as many streams as instances, a free instance can always start; this is
the fast path, and all that it needs is a heap of free instances per model. Otherwise the
device is *scarce*: its instances take turns, and an instance counts as free only while its
device has a free stream. Of several free instances the one with the lowest index runs next.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from gesim.core.model import Model

__all__ = ["Instances"]


class Instances:
    """Which instances are free, for all models.

    Parameters
    ----------
    models : sequence of Model
        Their `free` heaps and the counts in their queues' views are kept up to date here.
    streams : sequence of int
        Batches that each device runs at once.
    """

    def __init__(self, models: Sequence[Model], streams: Sequence[int]) -> None:
        self.models = models
        self.streams_free = list(streams)
        on_device = [0] * len(streams)
        for model in models:
            for device in model.config.devices:
                on_device[device] += 1
        self._scarce = [n > s for n, s in zip(on_device, streams, strict=True)]
        self.any_scarce = any(self._scarce)
        if self.any_scarce:
            for model in models:
                self._recount(model)

    def occupy(self, model: Model) -> int:
        """Take the free instance that runs the model's next batch; returns its index."""
        queue, free = model.queue, model.free
        if not self.any_scarce:
            instance = heappop(free)
            queue.idle_instances -= 1
            if free:
                queue.free_since_ns = model.free_since_ns[free[0]]
            return instance
        devices = model.config.devices
        instance = min(i for i in free if self.streams_free[devices[i]])
        free.remove(instance)
        heapify(free)
        self.streams_free[devices[instance]] -= 1
        for other in self.models if self._scarce[devices[instance]] else (model,):
            self._recount(other)
        return instance

    def release(self, model: Model, instance: int, now_ns: int) -> list[Model]:
        """Free an instance.

        Returns
        -------
        list of Model
            Other models that have queued work and can start only now that the device they
            share has a free stream.
        """
        queue = model.queue
        heappush(model.free, instance)
        model.free_since_ns[instance] = now_ns
        if not self.any_scarce:
            queue.idle_instances += 1
            queue.free_since_ns = model.free_since_ns[model.free[0]]
            return []
        device = model.config.devices[instance]
        self.streams_free[device] += 1
        starved = []
        for other in self.models:
            if device in other.config.devices:
                idle_before = other.queue.idle_instances
                self._recount(other)
                if not idle_before and other.queue.idle_instances and other.queue.count:
                    starved.append(other)
        return starved

    def _recount(self, model: Model) -> None:
        """Count the instances that could start now, given the streams left."""
        devices, left = model.config.devices, self.streams_free.copy()
        startable = []
        for instance in sorted(model.free):
            if left[devices[instance]]:
                left[devices[instance]] -= 1
                startable.append(instance)
        model.queue.idle_instances = len(startable)
        if startable:
            model.queue.free_since_ns = model.free_since_ns[startable[0]]
