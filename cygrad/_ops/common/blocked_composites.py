"""Runs composed functions on large batches of operands as one node, chunk by chunk, forward and backward.

Each chunk has its own graph, which the node keeps, so the temporary memory of the gradients is that of one chunk.
"""

from functools import wraps

import numpy as np

from cygrad._core.engine import blocked_gradients
from cygrad._core.engine.arguments import GradientEdge
from cygrad._core.engine.backward import grad
from cygrad._core.engine.blocked_gradients import Gradients, is_own
from cygrad._core.graph.dual import is_forward, keep
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import LINEAR, PRIVATE, declare, publish, variant
from cygrad._core.graph.record import record_n, record_outputs
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes, is_observed, saving_is_watched
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.stack_chunks import cut
from cygrad._kernels.device.cupy_library import filled_like, module_of
from cygrad._ops.base.views import view
from cygrad._ops.common.saved_lists import keep_tensors, kept_tensors


def steps_rule(n, g):
    tensors, parts = kept_tensors(n, 0), n.saved(1)
    wanted = [n.needs(i) for i in range(len(tensors))]
    function, dims, last, axis, length, args = n.args
    if not get_modes() & NO_GRAD:
        return _recorded(function, tensors, wanted, args, g)
    array, total = memory_of(g), Gradients(n, axis, length, dims)
    for part, leaves, edge in parts:
        inputs = [t for t, want in zip(leaves, wanted) if want]
        here = tensor_of(cut(array, part, array.ndim - last - axis))
        found = iter(grad((edge,), inputs, (here,), retain_graph=True, allow_unused=True))
        total.add(tuple(next(found) if want else None for want in wanted), part)
    return total.delivered()


def _recorded(function, tensors, wanted, args, g):
    """Compute the gradients as differentiable functions of the tensors."""
    own = [view(t, t.shape) for t in tensors]  # views, because one tensor may be several operands
    for t, want in zip(own, wanted):
        if want and not t.requires_grad:  # it has a tangent instead
            t.requires_grad_()
    inputs = [t for t, want in zip(own, wanted) if want]
    found = iter(grad((function(*own, *args),), inputs, (g,), create_graph=True, allow_unused=True))
    return tuple(next(found) if want else None for want in wanted)


STEPS = declare(
    "steps",
    steps_rule,
    flags=PRIVATE,
    inputs="self other third",
    attributes="function dims last axis length arguments",
    batching=None,
)


def steps(function, dims, last, tensors, args=(), row=STEPS, linear=()):
    """`function(*tensors, *args)` of tensors with `dims` dimensions after their batch, as one node if on the CPU.

    The result has `last` dimensions after the batch. Saves what the function saves. Tensors at the indices in `linear`,
    in which the function is linear, may be modified later.
    """
    arrays = [memory_of(t) for t in tensors]
    stack = np.broadcast_shapes(*(a.shape[: a.ndim - own] for a, own in zip(arrays, dims)))
    if not stack or not all(stack) or not _are_in_memory(arrays):
        return function(*tensors, *args)
    size = max(a.size for a in arrays)
    axis = chunks.axis_to_cut(stack, size // chunks.SIZE)
    length, behind = stack[axis], len(stack) - axis  # the axis, counted from the end of the batch
    step = -(-length * chunks.SIZE // size)
    parts, out = [], None
    for start in range(0, length, step):
        part = slice(start, start + step)
        leaves = [
            tensor_of(cut(a, part, a.ndim - own - behind), t.requires_grad and not get_modes())
            for t, a, own in zip(tensors, arrays, dims)
        ]
        result = function(*leaves, *args)
        found = array_of(result)
        at = found.ndim - last - behind
        if out is None:
            out = new_array((*found.shape[:at], length, *found.shape[at + 1 :]), found.dtype.num)
        cut(out, part, at)[...] = found
        if result.requires_grad:
            parts.append((part, leaves, GradientEdge(result.grad_fn, result.output_nr)))
        del leaves, result, found
    made = record_n(row, out, tuple(tensors), (function, tuple(dims), last, behind, length, args))
    keep_tensors(made, 0, tensors, linear)
    keep(made, 1, parts)
    return made


# -- linear functions of one tensor --


def linear_steps_rule(n, g):
    function, transpose, args, shape = n.args
    given = [one for one in (g if type(g) is tuple else (g,)) if one is not None]
    if get_modes() & NO_GRAD:
        if type(g) is not tuple:
            return tensor_of(transpose(array_of(g), *args))
        return tensor_of(transpose(tuple(None if one is None else array_of(one) for one in g), *args))
    first = array_of(given[0])
    zero = filled_like(first, (), 0, first.dtype if n.expected_gradients()[0][1] else first.real.dtype)
    t = tensor_of(module_of(first).broadcast_to(zero, shape), True)  # any values, as the function is linear
    found = function(t, *args)
    outs = [out for out, one in zip(found, g) if one is not None] if type(g) is tuple else (found,)
    return grad(outs, (t,), given, create_graph=True)[0]


LINEAR_STEPS = declare(
    "linear_steps",
    linear_steps_rule,
    flags=PRIVATE | LINEAR,
    inputs="self",
    attributes="function transpose arguments shape",
    batching=None,
)


def linear_steps(function, kernel, transpose, input, args, row=LINEAR_STEPS):
    """`function(input, *args)` as one node: `kernel` is that function on arrays, `transpose` its transpose.

    If there are several results, these are tuples; the transpose gets None for missing gradients.
    """
    array = array_of(input)
    found = kernel(array, *args)
    args = (function, transpose, args, array.shape)
    if type(found) is tuple:
        return record_outputs(row, found, (input,), args, len(found))
    return record_n(row, found, (input,), args)


def is_own_number(t, *numbers):
    """Whether `linear_steps` supports the tensor, and the others are numbers."""
    return is_own(t) and array_of(t).dtype.char in "fdFD" and all(type(x) in (int, float) for x in numbers)


# -- decorator --


def in_steps(*dims, last=0, node, linear=()):
    """Decorate a function of tensors with `dims` dimensions after their batch, and of other arguments.

    The result has `last` dimensions after the batch. Negative numbers count from the first tensor's dimensions. Large
    operands are processed chunk by chunk, as a node with the name `node`; `linear` is that of `steps`.
    """
    row = variant(STEPS, node)

    def decorated(function):
        @wraps(function)
        def by_parts(*args):
            tensors, rest = args[: len(dims)], args[len(dims) :]
            if not _are_large(tensors):
                return function(*args)
            *own, behind = (tensors[0].ndim + d if d < 0 else d for d in (*dims, last))
            return steps(function, own, behind, tensors, rest, row, linear)

        return by_parts

    return decorated


def _are_large(tensors):
    """Whether chunks are worthwhile, and nothing observes the single steps."""
    arrays = [memory_of(t) for t in tensors]
    return (
        max(a.size for a in arrays) > 2 * blocked_gradients.SIZE
        and _are_in_memory(arrays)
        and not get_modes() & ~NO_GRAD
        and not is_forward()
        and not is_observed()
        and not saving_is_watched()
    )


def _are_in_memory(arrays):
    return all(type(a) is np.ndarray for a in arrays)


functions = publish(globals())
