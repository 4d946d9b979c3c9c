"""Which ops of PyTorch's library an op here stands for, as `__torch_dispatch__` receives them: see Note [Dispatch].

`RULES` (`_dispatch_rules.py`) says it for ops whose name or arguments differ: an op and its arguments, or a function
that calls several in turn. The others are taken to be PyTorch's op of the same name, called with the arguments that
their function here has. `GRADIENTS` (`_dispatch_gradients.py`) does the same for nodes whose rule is an op there.
"""

import inspect
from functools import cache
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.opdef import ELEMENTWISE, facts_of
from cygrad._core.graph.record import apply1, apply_n
from cygrad._core.registry import dispatch
from cygrad._core.registry.out_dtypes import name_of as _name_of
from cygrad.ops import (  # noqa: F401  more rules
    OpOverload,
    OpOverloadPacket,
    _dispatch_images,
    _dispatch_layers,
    _dispatch_linalg,
    _dispatch_losses,
    _dispatch_searches,
    _dispatch_views,
    aten,
)
from cygrad.ops._dispatch_gradients import GRADIENTS
from cygrad.ops._dispatch_rules import REPLAYABLE, RULES, Several, Step, do
from cygrad.ops._schema_table import overloads_of

name_of = cache(_name_of)  # looks at all rows
_EMPTY = inspect.Parameter.empty
_MISSING = object()


class _Row(OpOverload):
    """An op without a function of its own: calls take the operands of its row, and run its kernel."""

    def __init__(self, packet: OpOverloadPacket, row: Any) -> None:
        super().__init__(packet, "default")
        self.row = row
        is_plain = row.flags & ELEMENTWISE or row.name in REPLAYABLE
        self.runs_anew = bool(row.kernel is not None and is_plain)  # with other arguments than those received

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = dispatch.taken_up(self, args, kwargs)
        if found is not None:
            return found[0]
        n = len(self.row.inputs)
        if not self.runs_anew:
            raise NotImplementedError(
                f"{self} can only be called with the arguments that were received\n"
                "  PyTorch has no such op, and it depends on more than its arguments say"
            )
        if len(args) == n == 1:
            return apply1(self.row, args[0], None)  # which converts integers
        return apply_n(self.row, args[:n], args[n:])


class _PrivatePacket(OpOverloadPacket):
    namespace = "engine"


@cache
def private(row: Any) -> OpOverload:
    """Return the op of a row that PyTorch has no op for: `torch.ops.engine.<its name>.default`."""
    packet = _PrivatePacket(name_of(row).replace(".", "_"))
    packet.default = _Row(packet, row)
    setattr(cygrad.ops.engine, packet.__name__, packet)
    return packet.default


# -- ops with new results --


def step_of(done: Any, made: Any) -> Any:
    """Return the `Step`, or the `Several`, that an op that has run stands for; None if it is not shown."""
    key = done.op if isinstance(done.op, str) else name_of(done.op)
    rule = RULES.get(key)
    found = _generic(done, key) if rule is None else rule(done, made)
    return Step(private(done.op), (*done.inputs, *done.args)) if found is NotImplemented else found


def results(done: Any, made: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
    """Return what modes and classes make of an op whose results are `made`."""
    step = step_of(done, made)
    if step is None:
        return made
    if isinstance(step, Several):
        with dispatch.quietly():
            found = step.run()
    else:
        found = dispatch.ask(step.op, step.args, step.kwargs, lambda: step.pack(made))
    found = (found,) if isinstance(found, Tensor) or not isinstance(found, (tuple, list)) else tuple(found)
    if len(found) < len(made):
        raise RuntimeError(f"{step} returned {len(found)} results in place of {len(made)}")
    return found[: len(made)]


def _generic(done: Any, key: str) -> Step | None:
    if isinstance(done.op, str):
        return None  # a new tensor with arguments that are not known; it counts as a constant
    name = _aten_name(done.op.name)
    packet = getattr(aten, name, None)
    values = _given(done)
    found = None if packet is None or values is None else _arguments(packet.op, values)
    if found is None:
        return Step(private(done.op), (*done.inputs, *done.args))
    return Step(getattr(packet, _overload(name, key, found[0])), *found)


@cache
def _aten_name(name: str) -> str:
    """Return PyTorch's name of an op: that of functions in `special` alone begins with the name of the module."""
    is_special = hasattr(cygrad.special, name) and not hasattr(cygrad, name)
    return facts_of["aten"].get(name) or (f"special_{name}" if is_special else name)


def _given(done: Any) -> dict[str, Any] | None:
    """Return the values of an op by the names of its arguments; None if some have no names."""
    row = done.op
    if len(row.inputs) < len(done.inputs) or len(row.attributes) < len(done.args):
        return None
    values = dict(zip(row.inputs, done.inputs))
    values.update(zip(row.attributes, done.args))
    if done.hint is not None and len(row.inputs) > len(done.inputs):
        values[row.inputs[-1]] = done.hint
    return values


def _arguments(function: Any, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a call of a function with values that have names; None if it needs others."""
    positional, named, n = [], {}, 0
    for parameter in _parameters(function):
        own = "self" if parameter.name == "input" else parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        value = values.get(own, _MISSING)
        if value is _MISSING:
            if parameter.default is _EMPTY:
                return None
            value = parameter.default
        is_default = parameter.default is not _EMPTY and _equal(value, parameter.default)
        if parameter.kind is parameter.KEYWORD_ONLY:
            if not is_default:
                named[own] = value
            continue
        positional.append(list(value) if type(value) is tuple else value)
        if not is_default:
            n = len(positional)
    known = {("self" if p.name == "input" else p.name) for p in _parameters(function)}
    if any(name not in known for name in values if name not in ("_", "self_sym_sizes", "other")):
        return None
    return tuple(positional[:n]), named


def _equal(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (int, float, str, bool)) and value == default)


@cache
def _parameters(function: Any) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def _overload(name: str, key: str, args: tuple[Any, ...]) -> str:
    known = overloads_of(name)
    suffix = key.partition(".")[2]
    if suffix in known:
        return suffix
    second = "Tensor" if len(args) > 1 and isinstance(args[1], Tensor) else "Scalar"
    if second in known:
        return second
    return "default" if "default" in known else known[0]


# -- ops that write --


def change(done: Any, write: Any) -> None:
    """Let modes and classes see an op that has written into a tensor, and that `write()` makes write again."""
    out = done.outs[0]
    step = step_of(done, (out,))
    if step is None:
        write()
        return
    if isinstance(step, Several):
        step = Step(private(done.op), (*done.inputs, *done.args))
    is_in_place = bool(done.inputs) and done.inputs[0] is out
    if is_in_place and not isinstance(step.op, _Row):
        packet = getattr(aten, f"{step.op._opname}_", None)
        if packet is not None:
            step = Step(getattr(packet, step.op._overloadname, packet.default), (out, *step.args[1:]), step.kwargs)
    elif not is_in_place:
        packet = step.op.overloadpacket
        overload = f"{step.op._overloadname}_out".removeprefix("default_").removeprefix("Tensor_")
        op = step.op if isinstance(step.op, _Row) else getattr(packet, overload, packet.out)
        step = Step(op, step.args, {**step.kwargs, "out": out})
    dispatch.ask(step.op, step.args, step.kwargs, write)


# -- calls that are no ops here --


def call(name: str, t: Tensor, out: Any) -> Any:
    """Return what modes and classes make of `t.detach()`, `t.clone()`, `ones_like(t)` or `t.item()`."""
    if name == "item":
        return dispatch.ask(aten._local_scalar_dense.default, (t,), {}, lambda: dispatch.value_of(t))
    if name == "ones_like":
        kwargs = {"pin_memory": False, "memory_format": cygrad.preserve_format}
        return dispatch.ask(aten.ones_like.default, (t,), kwargs, lambda: out)
    return (
        do(getattr(aten, name).default, t)
        if out is None
        else dispatch.ask(getattr(aten, name).default, (t,), {}, lambda: out)
    )


def op_of(function: Any) -> OpOverload | None:
    """Return the op of the name of a function, or None."""
    packet = getattr(aten, function.__name__, None)
    return None if packet is None else packet.default


# -- gradients --


def rule(node: Any, row: Any, grad: Any) -> Any:
    """Return the gradients of a node's inputs by an op of PyTorch's; NotImplemented if its rule is to find them."""
    found = GRADIENTS.get(name_of(row))
    return NotImplemented if found is None else found(node, grad)
