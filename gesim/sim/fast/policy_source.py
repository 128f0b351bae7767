"""From a policy object to plain functions that numba can compile, from the policy's own source.

Theory of operation
-------------------
A policy is a dataclass with fields of plain types and a `decide`. Its fields become one
record of a numpy structured array, its methods module-level functions of that record:

    self.field            field of the record (text parameters are folded to constants)
    self.helper(x)        m_helper(self, x)
    queue.count           field of the view, a named tuple of numbers
    queue.fit(n)          q_fit(queue, n)
    Dispatch(n, gear)     (DISPATCH, n, gear, 0)        and so on for Wait and Drop

The rewriting is on the syntax tree of the very source that runs interpreted. Whatever has no
plain form raises `NotCompilableError`, which names the file and line that keeps the policy
interpreted; that is never an error, only slower.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from gesim.core.decisions import Dispatch, Drop, Wait
from gesim.core.policy import BatchingPolicy

__all__ = ["NotCompilableError", "PolicySource", "policy_source"]

DISPATCH, WAIT, DROP = 1, 2, 3
_KINDS = {Dispatch: DISPATCH, Wait: WAIT, Drop: DROP}
_DEFAULTS = {
    Dispatch: {"count": None, "gear": 0, "level": 0},
    Wait: {"until_ns": None, "count": Wait._field_defaults["count"]},
    Drop: {"count": None, "reason": "dropped"},
}
_DTYPES: dict[type, type] = {bool: np.bool_, int: np.int64, float: np.float64}

VIEW_FIELDS = frozenset(
    (
        "count",
        "items",
        "head_enqueue_ns",
        "oldest_enqueue_ns",
        "idle_instances",
        "instances",
        "free_since_ns",
        "last_dispatch_ns",
        "last_finish_ns",
        "gears",
    )
)
VIEW_METHODS = frozenset(
    (
        "fit",
        "items_of",
        "level_count",
        "level_oldest_ns",
        "enqueue_ns",
        "level",
        "size",
        "gear_up",
        "gear_down",
        "service_ns",
    )
)
"""What a compiled policy may ask of its queue; the rest of `QueueView` runs interpreted."""


class NotCompilableError(Exception):
    """A policy has no compiled form; the message says what keeps it interpreted, and where."""


@dataclasses.dataclass(frozen=True)
class PolicySource:
    """A policy as plain functions.

    Attributes
    ----------
    text : str
        Python source of ``m_decide(self, now_ns, queue)`` and its helpers.
    dtype : numpy.dtype
        Of the record that holds the fields.
    reasons : tuple of str
        Texts of `Drop` reasons; an answer carries the index.
    """

    text: str
    dtype: np.dtype[Any]
    reasons: tuple[str, ...]

    def pack(self, policy: BatchingPolicy) -> np.ndarray[Any, Any]:
        """Copy the policy's fields into a record array of shape (1,)."""
        record = np.zeros(1, self.dtype)
        for name in self.dtype.names or ():
            record[name][0] = getattr(policy, name)
        return record

    def unpack(self, record: np.ndarray[Any, Any], policy: BatchingPolicy) -> None:
        """Copy the fields back, so that the policy goes on where the loop stopped."""
        for name in self.dtype.names or ():
            value = record[name][0].tolist()
            if getattr(policy, name) != value:
                current = getattr(policy, name)
                setattr(policy, name, tuple(value) if isinstance(current, tuple) else value)


def policy_source(policy: BatchingPolicy, gears: tuple[int, ...] = ()) -> PolicySource:
    """Translate a policy for a model with these gears.

    Raises
    ------
    NotCompilableError
        With the file and line of what has no plain form.
    """
    cls = type(policy)
    if not dataclasses.is_dataclass(cls):
        raise NotCompilableError(f"{_place(cls)}: {cls.__qualname__} is not a dataclass")
    if cls.observe is not BatchingPolicy.observe:
        raise NotCompilableError(f"{_place(cls.observe)}: observe() needs the interpreted engine")
    fields, texts = _fields(policy)
    methods = {
        name: method
        for base in reversed(cls.__mro__)
        if base not in (object, BatchingPolicy)
        for name, method in vars(base).items()
        if isinstance(method, types.FunctionType) and not name.startswith("__")
    }
    reasons: list[str] = []
    parts, done = [], set[str]()
    wanted = ["decide"]
    while wanted:
        name = wanted.pop()
        if name in done:
            continue
        done.add(name)
        rewriter = _Rewriter(cls, methods, fields, texts, reasons, bool(gears))
        parts.append(rewriter.rewrite(methods[name]))
        wanted += rewriter.called
        parts += rewriter.globals_needed
    text = "\n\n".join(dict.fromkeys(reversed(parts)))
    dtype = np.dtype(list(fields.values()) or [("_", np.int64)], align=True)
    return PolicySource(text, dtype, tuple(reasons))


def _fields(policy: BatchingPolicy) -> tuple[dict[str, tuple[Any, ...]], dict[str, str]]:
    """Describe the record's fields, and the text parameters that become constants."""
    cls = type(policy)
    fields: dict[str, tuple[Any, ...]] = {}
    texts: dict[str, str] = {}
    for field in dataclasses.fields(typing.cast(Any, cls)):
        value = getattr(policy, field.name)
        if type(value) in _DTYPES:
            fields[field.name] = (field.name, _DTYPES[type(value)])
        elif isinstance(value, str):
            texts[field.name] = value
        elif isinstance(value, list | tuple) and value and len({type(v) for v in value}) == 1:
            if type(value[0]) not in _DTYPES:
                raise NotCompilableError(f"{_place(cls)}: field {field.name} holds {value[0]!r}")
            fields[field.name] = (field.name, _DTYPES[type(value[0])], (len(value),))
        elif isinstance(value, tuple) and not value:
            fields[field.name] = (field.name, np.int64, (0,))
        else:
            raise NotCompilableError(
                f"{_place(cls)}: field {field.name} of type {type(value).__name__} has no compiled "
                "form; use int, float, bool or a list of fixed length"
            )
    return fields, texts


class _Rewriter(ast.NodeTransformer):
    """Rewrites one method; remembers which helpers and module functions it calls."""

    def __init__(
        self,
        cls: type,
        methods: dict[str, types.FunctionType],
        fields: dict[str, tuple[Any, ...]],
        texts: dict[str, str],
        reasons: list[str],
        has_gears: bool,
    ) -> None:
        self.cls = cls
        self.methods = methods
        self.fields = fields
        self.texts = texts
        self.reasons = reasons
        self.has_gears = has_gears
        self.called: list[str] = []
        self.globals_needed: list[str] = []
        self.function: types.FunctionType
        self.self_name = self.queue_name = ""
        self.start = 1

    def rewrite(self, function: types.FunctionType) -> str:
        self.function = function
        try:
            lines, self.start = inspect.getsourcelines(function)
        except OSError as error:
            raise NotCompilableError(
                f"{function.__qualname__}: its source is not to be had"
            ) from error
        node = ast.parse(textwrap.dedent("".join(lines))).body[0]
        assert isinstance(node, ast.FunctionDef)
        arguments = [argument.arg for argument in node.args.args]
        hints = {argument.arg: argument.annotation for argument in node.args.args}
        self.self_name = arguments[0]
        if function.__name__ == "decide":
            self.queue_name = arguments[2]
        else:
            named = [a for a in arguments if _is_view(hints[a])]
            self.queue_name = named[0] if named else "queue"
        node.decorator_list = []
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        node = self.visit(node)
        node.name = f"m_{function.__name__}"
        return ast.unparse(ast.fix_missing_locations(node))

    def refuse(self, node: ast.AST, why: str) -> NotCompilableError:
        line = self.start + getattr(node, "lineno", 1) - 1
        return NotCompilableError(f"{inspect.getsourcefile(self.function)}:{line}: {why}")

    # ---- names ---------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.value, ast.Name):
            raise self.refuse(node, f"attribute {ast.unparse(node)} has no compiled form")
        owner, name = node.value.id, node.attr
        if owner == self.self_name:
            if name in self.texts and isinstance(node.ctx, ast.Load):
                return ast.copy_location(ast.Constant(self.texts[name]), node)
            if name not in self.fields:
                raise self.refuse(node, f"self.{name} is not a field of a plain type")
        elif owner == self.queue_name:
            if name not in VIEW_FIELDS:
                raise self.refuse(node, f"queue.{name} is not to be had in the compiled loop")
        else:
            raise self.refuse(node, f"{owner}.{name} has no compiled form")
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self.function.__globals__.get(node.id)
        if isinstance(node.ctx, ast.Load) and type(value) in (int, float, bool):
            return ast.copy_location(ast.Constant(typing.cast(Any, value)), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return self._method_call(node, function, function.value.id)
        if not isinstance(function, ast.Name):
            raise self.refuse(node, f"call {ast.unparse(node)} has no compiled form")
        target = self.function.__globals__.get(function.id)
        if target in _KINDS:
            return self._answer(node, typing.cast(type, target))
        if isinstance(target, types.FunctionType):
            self._need_function(node, target)
        elif target is not None or function.id not in ("min", "max", "abs", "int", "float", "bool",
                                                       "len", "range", "round"):  # fmt: skip
            raise self.refuse(node, f"{function.id}() has no compiled form")
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return node

    def _method_call(self, node: ast.Call, function: ast.Attribute, owner: str) -> ast.AST:
        name = function.attr
        if owner == self.self_name and name in self.methods:
            self.called.append(name)
            target = f"m_{name}"
        elif owner == self.queue_name and name in VIEW_METHODS:
            target = f"q_{name}"
        else:
            raise self.refuse(node, f"{owner}.{name}() has no compiled form")
        arguments = [self.visit(argument) for argument in node.args]
        if node.keywords:
            raise self.refuse(node, f"{owner}.{name}() must be called without keywords")
        return ast.copy_location(
            ast.Call(ast.Name(target, ast.Load()), [function.value, *arguments], []), node
        )

    def _answer(self, node: ast.Call, kind: type) -> ast.AST:
        """Turn Dispatch/Wait/Drop into a tuple of four ints."""
        given: dict[str, ast.expr] = dict(zip(_DEFAULTS[kind], node.args, strict=False))
        given |= {str(keyword.arg): keyword.value for keyword in node.keywords}
        values: list[ast.expr] = [ast.Constant(_KINDS[kind])]
        for name, default in _DEFAULTS[kind].items():
            value = given.get(name, ast.Constant(default))
            if name == "reason":
                if not isinstance(value, ast.Constant):
                    raise self.refuse(node, "the reason of a Drop must be a text constant")
                text = str(value.value)
                if text not in self.reasons:
                    self.reasons.append(text)
                value = ast.Constant(self.reasons.index(text))
            values.append(self.visit(value))
        while len(values) < 4:
            values.append(ast.Constant(0))
        return ast.copy_location(ast.Tuple(values, ast.Load()), node)

    def _need_function(self, node: ast.AST, target: types.FunctionType) -> None:
        try:
            text = textwrap.dedent(inspect.getsource(target))
        except OSError as error:
            raise self.refuse(
                node, f"the source of {target.__name__}() is not to be had"
            ) from error
        tree = ast.parse(text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        inner = _Rewriter(self.cls, {}, {}, {}, self.reasons, self.has_gears)
        inner.function, inner.start = target, target.__code__.co_firstlineno
        inner.self_name, inner.queue_name = "", ""
        tree.returns = None
        for argument in tree.args.args:
            argument.annotation = None
        if ast.get_docstring(tree) is not None:
            tree.body = tree.body[1:] or [ast.Pass()]
        self.globals_needed.append(ast.unparse(ast.fix_missing_locations(inner.visit(tree))))
        self.globals_needed += inner.globals_needed

    # ---- folding of text comparisons -----------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        left, right = node.left, node.comparators[0]
        if len(node.ops) != 1 or not isinstance(left, ast.Constant):
            return node
        operation = node.ops[0]
        if isinstance(right, ast.Tuple) and all(isinstance(e, ast.Constant) for e in right.elts):
            options = [typing.cast(ast.Constant, e).value for e in right.elts]
        elif isinstance(right, ast.Constant):
            options = [right.value]
        else:
            return node
        if not isinstance(left.value, str):
            return node
        found = left.value in options
        if isinstance(operation, ast.NotEq | ast.NotIn):
            found = not found
        return ast.copy_location(ast.Constant(found), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not) and self._is_gears(node.operand):
            return ast.copy_location(ast.Constant(not self.has_gears), node)
        self.generic_visit(node)
        return node

    def _is_gears(self, node: ast.AST) -> bool:
        """Tell whether an expression is ``queue.gears``, used as a truth value."""
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.queue_name
            and node.attr == "gears"
        )

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Return an illegal answer: the interpreted engine then raises what the policy says."""
        zero: list[ast.expr] = [ast.Constant(0) for _ in range(4)]
        return ast.copy_location(ast.Return(ast.Tuple(zero, ast.Load())), node)

    def visit_If(self, node: ast.If) -> Any:
        if self._is_gears(node.test):
            node.test = ast.copy_location(ast.Constant(self.has_gears), node.test)
        node.test = self.visit(node.test)
        if isinstance(node.test, ast.Constant) and isinstance(node.test.value, bool):
            return self._statements(node.body if node.test.value else node.orelse) or ast.Pass()
        node.body = self._statements(node.body)
        node.orelse = self._statements(node.orelse)
        return node

    def _statements(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        flat: list[ast.stmt] = []
        for statement in statements:
            made = self.visit(statement)
            flat += made if isinstance(made, list) else [made]
        return flat

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant) and isinstance(node.test.value, bool):
            return node.body if node.test.value else node.orelse
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        assign = ast.Assign([self.visit(node.target)], self.visit(node.value))
        return ast.copy_location(assign, node)


def _is_view(annotation: ast.expr | None) -> bool:
    return annotation is not None and "QueueView" in ast.unparse(annotation)


def _place(thing: Callable[..., Any] | type) -> str:
    try:
        return f"{inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return getattr(thing, "__qualname__", repr(thing))
