"""Calling an interpreted policy from the compiled loop.

A policy that has no compiled form (dicts, closures, libraries) still runs in the compiled
loop: the loop calls it once a decision. numba has no call for that which is not twenty times
slower, so this is an intrinsic of our own on the Python C API: box the numbers, call, check
the error state after every conversion (a Python exception ends the loop and propagates with
the policy's own traceback), unbox four ints.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["call_decide"]

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
