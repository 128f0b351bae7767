"""Batches of compiled sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gesim.core.decisions import Dispatch
from gesim.core.policy import BatchingPolicy, QueueView
from gesim.errors import PolicyError
from gesim.policies.checks import at_least, share

__all__ = ["Gear"]


@dataclass
class Gear(BatchingPolicy):
    """Choose among the compiled batch sizes (gears): pad up, or leave some waiting.

    Padding up is bistable: with S = 2+0.5g ms at 1,200 requests/s it sits in gear 32 with 22
    real items and a mean of 20.3 ms where floor has 10.0. With heavy set-up (10+0.3g) it is
    the other way round. Checked against the chains at dispatches (C9, C10, C13).

    Parameters
    ----------
    max_batch_size : int
        Most items in a batch.
    rule : {"pad_up", "floor", "theta", "nearest"}
        pad_up: the smallest gear that holds what is queued (Ascend padding, TensorFlow
        Serving). floor: the largest full gear, the rest stays (Clockwork, AlpaServe); what is
        less than the smallest gear is padded. theta: pad if the gear is filled to `theta`,
        else floor. nearest: the gear closest in size, the larger of two (mxVision's default).
    theta : float, default 0.85
        For rule theta; 1 is floor, 0 is pad_up.
    """

    name: ClassVar[str] = "gear"
    work_conserving: ClassVar[bool] = True

    max_batch_size: int
    rule: Literal["pad_up", "floor", "theta", "nearest"] = "pad_up"
    theta: float = 0.85

    def __post_init__(self) -> None:
        at_least("gear", "max_batch_size", self.max_batch_size, 1)
        share("gear", "theta", self.theta)

    def decide(self, now_ns: int, queue: QueueView) -> Dispatch:
        """Pick a gear for what is queued."""
        if not queue.gears:
            raise PolicyError("gear: the model has no gears; list them, or use greedy")
        count = queue.fit(self.max_batch_size)
        items = queue.items_of(count)
        up = queue.gear_up(items)
        down = queue.gear_down(items)
        if down == 0 or down == items or (up > 0 and self.pads(items, up, down)):
            return Dispatch(count, up)
        kept = queue.fit(down)
        if kept == 0:  # the head alone is larger than the gear below
            return Dispatch(count, up)
        return Dispatch(kept, queue.gear_up(queue.items_of(kept)))

    def pads(self, items: int, up: int, down: int) -> bool:
        """Tell whether to pad `items` to the gear above instead of falling to the one below."""
        if self.rule == "pad_up":
            return True
        if self.rule == "theta":
            return items >= self.theta * up
        if self.rule == "nearest":
            return up - items <= items - down
        return False
