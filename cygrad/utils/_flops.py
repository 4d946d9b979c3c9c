"""Which of PyTorch's ops, with which shapes, an op here stands for: for `flop_counter`."""

from collections.abc import Callable, Container
from math import prod
from typing import Any

import cygrad
from cygrad._core.graph.observers import Listener as OpListener
from cygrad._core.graph.opdef import is_in_pass
from cygrad.library import _listeners as listeners

aten = cygrad.ops.aten
Call = tuple[Any, tuple[Any, ...]]


class Listener:
    """Calls `function` after each op, and after each custom op, of this thread between `start` and `stop`."""

    def __init__(self, function: Callable[[Any], None]) -> None:
        self._function = function
        self._ops = OpListener(function)

    def start(self) -> None:
        """Start listening."""
        self._ops.start()
        listeners.append(self._function)

    def stop(self) -> None:
        """Stop listening."""
        self._ops.stop()
        listeners.remove(self._function)


def _blank(*shape: int) -> Any:
    return cygrad.empty(shape, device="meta")


def _product(a: Any, b: Any) -> list[Call]:
    """Return the product of matrices, or of batches of them, that a product of tensors of any dimensions comes to."""
    if b.ndim == 1 or (a.ndim == 1 and b.ndim > 2):
        return []  # a matrix times a vector, which PyTorch does not count
    left, right = (1, *a.shape) if a.ndim == 1 else a.shape, b.shape
    if b.ndim == 2:
        return [(aten.mm, (_blank(prod(left[:-1]), left[-1]), _blank(*right)))]
    if a.ndim == 2:
        return [(aten.mm, (_blank(prod(right[:-2]) * right[-1], right[-2]), _blank(left[-1], left[-2])))]
    batch = prod(cygrad.broadcast_shapes(left[:-2], right[:-2]))
    return [(aten.bmm, (_blank(batch, *left[-2:]), _blank(batch, *right[-2:])))]


def _linear(bias: Any, x: Any, weight: Any) -> list[Call]:
    matrices = _blank(prod(x.shape[:-1]), x.shape[-1]), _blank(weight.shape[1], weight.shape[0])
    return [(aten.mm, matrices) if bias is None else (aten.addmm, (bias, *matrices))]


def _recurrent(inputs: tuple[Any, ...]) -> tuple[list[Call], list[Call]]:
    """Return the products of a recurrent layer with the weights of inputs and of states, and their gradients."""
    x, state, from_input, from_state = inputs[:4]
    steps, batch, _ = x.shape
    rows = _blank(steps * batch, from_input.shape[1]), _blank(*reversed(from_input.shape))
    states = _blank(steps * batch, from_state.shape[1]), _blank(*reversed(from_state.shape))
    forward = [(aten.addmm, (None, *rows)), (aten.addmm, (None, *states))]
    later = states if state.requires_grad else (_blank((steps - 1) * batch, from_state.shape[1]), states[1])
    by_input = [(aten.mm, rows)] * (x.requires_grad + from_input.requires_grad)
    return forward, [*by_input, (aten.mm, states), (aten.mm, later)]


def calls_of(done: Any, counted: Container[str] = ()) -> tuple[list[Call], list[Call]]:
    """Return the ops that PyTorch would call in place of one that has run, and those in its gradient.

    Each is `(op, arguments)`. The gradients of other ops than products are seen when they run. Of these other ops, only
    those with a name in `counted` are told.
    """
    name = getattr(done.op, "name", done.op)
    if name == "convolution":
        return [_convolution(done)], []
    if name == "filter_gradient":
        return [_filter_gradient(done)], []
    if name == "recurrent_layer":
        return _recurrent(done.inputs)
    if name in ("mm", "bmm", "matmul"):
        factors = done.inputs[:2]
        found = _product(*factors)
    elif name == "linear":
        factors = done.inputs[1:3]
        found = _linear(*done.inputs[:3])
    elif name in ("addmm", "baddbmm"):
        factors = done.inputs[1:3]
        found = [(getattr(aten, name), done.inputs[:3])]
    else:
        return _other(done, name, counted), []
    plain = {aten.addmm: aten.mm, aten.baddbmm: aten.bmm}
    gradients = [(plain.get(packet, packet), args[-2:]) for packet, args in found]
    return found, gradients * sum(factor.requires_grad for factor in factors)


def _other(done: Any, name: str, counted: Container[str]) -> list[Call]:
    """Return the op of PyTorch's that an op is shown as to dispatch modes, if it is counted."""
    shown = f"{name}_" if done.inputs and done.outs[0] is done.inputs[0] else name
    if shown not in counted:
        return []
    from cygrad.ops._dispatch import step_of  # needed only for formulas that users register for ops
    from cygrad.ops._dispatch_rules import Step  # the same

    step = step_of(done, done.outs)
    return [(getattr(aten, shown), step.args)] if isinstance(step, Step) else []


def _convolution(done: Any) -> Call:
    x, weight, bias = done.inputs
    is_transposed = done.args[3]
    if is_in_pass():  # the gradient of the images is a convolution, too
        mask = (True, False, False)
        return aten.convolution_backward, (x, done.outs[0], weight, None, 1, 0, 1, not is_transposed, 0, 1, mask)
    return aten.convolution, (x, weight, bias, 1, 0, 1, is_transposed)


def _filter_gradient(done: Any) -> Call:
    x, grad = done.inputs
    return aten.convolution_backward, (grad, x, done.outs[0], None, 1, 0, 1, False, 0, 1, (False, True, False))
