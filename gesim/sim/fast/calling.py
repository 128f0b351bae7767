"""Calling an interpreted policy from the compiled loop.

A policy that has no compiled form (dicts, closures, libraries) still runs in the compiled
loop: the loop calls it once a decision. numba has no call for that which is not twenty times
slower, so this is an intrinsic of our own on the Python C API: box the numbers, call, check
the error state after every conversion (a Python exception ends the loop and propagates with
the policy's own traceback), unbox four ints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gesim.core.decisions import NEVER_NS, Dispatch, Drop, Wait
from gesim.core.policy import BatchingPolicy

__all__ = ["ArrayView", "callback", "call_decide"]

ARGUMENTS = 8
"""now, count, head, oldest, idle, since, last dispatch, last finish"""


@intrinsic
def call_decide(typingctx: Any, function: Any, *numbers: Any) -> Any:
    """Call the object at address `function` with the numbers; returns four int64."""
    arguments = numbers[0] if len(numbers) == 1 and isinstance(numbers[0], tuple) else numbers
    signature = types.UniTuple(types.int64, 4)(
        types.int64, types.StarArgTuple([types.int64] * len(arguments))
    )

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        api = context.get_python_api(builder)
        function = builder.inttoptr(args[0], api.pyobj)
        boxed = [
            api.long_from_longlong(builder.extract_value(args[1], i)) for i in range(len(arguments))
        ]
        array = cgutils.alloca_once(builder, ir.ArrayType(api.pyobj, len(boxed)))
        for i, item in enumerate(boxed):
            with builder.if_then(cgutils.is_null(builder, item), likely=False):
                context.call_conv.return_exc(builder)
            builder.store(item, cgutils.gep_inbounds(builder, array, 0, i))
        size = ir.IntType(64)
        kind = ir.FunctionType(api.pyobj, [api.pyobj, api.pyobj.as_pointer(), size, api.pyobj])
        vectorcall = cgutils.get_or_insert_function(builder.module, kind, "PyObject_Vectorcall")
        answer = builder.call(
            vectorcall,
            [
                function,
                builder.bitcast(array, api.pyobj.as_pointer()),
                size(len(boxed)),
                cgutils.get_null_value(api.pyobj),
            ],
        )
        for item in boxed:
            api.decref(item)
        with builder.if_then(cgutils.is_null(builder, answer), likely=False):
            context.call_conv.return_exc(builder)
        values = []
        for i in range(4):
            item = api.tuple_getitem(answer, i)
            with builder.if_then(cgutils.is_null(builder, item), likely=False):
                context.call_conv.return_exc(builder)
            value = api.long_as_longlong(item)
            failed = builder.icmp_signed("==", value, ir.Constant(value.type, -1))
            with builder.if_then(failed, likely=False):
                raised = cgutils.is_not_null(builder, api.err_occurred())
                with builder.if_then(raised, likely=False):
                    context.call_conv.return_exc(builder)
            values.append(value)
        api.decref(answer)
        return context.make_tuple(builder, signature.return_type, values)

    return signature, codegen


class ArrayView:
    """The queue view of the interpreted policy, over the loop's own arrays.

    Parameters
    ----------
    gears : tuple of int
    instances : int
    service_ns : callable
    """

    def __init__(
        self, gears: tuple[int, ...], instances: int, service_ns: Callable[[int], int]
    ) -> None:
        self._times: Any = ()
        self._head: Any = ()
        self._tail: Any = ()
        self.gears = gears
        self.instances = instances
        self.service_ns = service_ns
        self.count = self.items = self.idle_instances = 0
        self.head_enqueue_ns = self.oldest_enqueue_ns = NEVER_NS
        self.free_since_ns = 0
        self.last_dispatch_ns = self.last_finish_ns = -1

    def attach(self, times: Any, head: Any, tail: Any) -> None:
        """Look at these arrays from now on, as `gesim.sim.fast.kernel` has them."""
        self._times, self._head, self._tail = times, head, tail

    def fit(self, max_items: int) -> int:
        """Count the requests that fit: all are of one item."""
        return min(self.count, max_items)

    def items_of(self, count: int) -> int:
        """Items of the first `count`."""
        return min(self.count, count)

    def size(self, position: int) -> int:
        """Items at a position."""
        self._find(position)
        return 1

    def length(self, position: int) -> int:
        """Length class at a position: none in the fast lane."""
        self._find(position)
        return 0

    def deadline_ns(self, position: int) -> int:
        """Deadline at a position: none in the fast lane."""
        self._find(position)
        return NEVER_NS

    def level_count(self, level: int) -> int:
        """Count the requests of a level."""
        if not 1 <= level <= len(self._head):
            return 0
        return int(self._tail[level - 1] - self._head[level - 1])

    def level_oldest_ns(self, level: int) -> int:
        """Enqueue time of a level's oldest request."""
        if not self.level_count(level):
            return NEVER_NS
        return int(self._times[self._head[level - 1]])

    def enqueue_ns(self, position: int) -> int:
        """Enqueue time at a position."""
        return int(self._times[self._find(position)[1]])

    def level(self, position: int) -> int:
        """Priority level at a position."""
        return self._find(position)[0] + 1

    def gear_up(self, items: int) -> int:
        """Smallest gear that holds `items`."""
        if not self.gears:
            return items
        return next((gear for gear in self.gears if gear >= items), 0)

    def gear_down(self, items: int) -> int:
        """Largest gear of at most `items`."""
        if not self.gears:
            return items
        return max((gear for gear in self.gears if gear <= items), default=0)

    def _find(self, position: int) -> tuple[int, int]:
        """Lane and index of a position."""
        left = position
        for lane in range(len(self._head)):
            queued = int(self._tail[lane] - self._head[lane])
            if 0 <= left < queued:
                return lane, int(self._head[lane]) + left
            left -= queued
        raise IndexError(f"position {position} in a queue of {self.count} requests")


def callback(
    policy: BatchingPolicy, view: ArrayView, reasons: list[str]
) -> Callable[..., tuple[int, int, int, int]]:
    """Wrap `policy.decide` for `call_decide`: numbers in, four ints out.

    `reasons` collects the texts of `Drop` answers; an answer carries the index.
    """
    decide = policy.decide

    def call(
        now_ns: int,
        count: int,
        head_ns: int,
        oldest_ns: int,
        idle: int,
        since_ns: int,
        dispatch_ns: int,
        finish_ns: int,
    ) -> tuple[int, int, int, int]:
        view.count = view.items = count
        view.head_enqueue_ns = head_ns
        view.oldest_enqueue_ns = oldest_ns
        view.idle_instances = idle
        view.free_since_ns = since_ns
        view.last_dispatch_ns = dispatch_ns
        view.last_finish_ns = finish_ns
        answer = decide(now_ns, view)
        if type(answer) is Dispatch:
            return 1, answer.count, answer.gear, answer.level
        if type(answer) is Wait:
            return 2, answer.until_ns, answer.count, 0
        if type(answer) is Drop:
            if answer.reason not in reasons:
                reasons.append(answer.reason)
            return 3, answer.count, reasons.index(answer.reason), 0
        return 0, 0, 0, 0

    return call
