"""Sliding windows along a dimension, as a view in which elements may occur several times."""

from cygrad._core.graph.internals import own_array
from cygrad._core.graph.opdef import LINEAR, METHOD_ONLY, PRIVATE, VIEW, declare, publish
from cygrad._core.graph.record import apply1_args, apply_n, record_view
from cygrad._kernels.cpu.shape import sliding_view as kernels
from cygrad._ops.base.arguments import dim_argument, integer, require
from cygrad._ops.base.batching.rules import rule, vectors


def unfold_rule(n, g):
    return unfold_backward(g, *n.args)


UNFOLD = declare(
    "unfold",
    unfold_rule,
    flags=VIEW | LINEAR | METHOD_ONLY,
    kernel=kernels.windows,
    attributes="self_sym_sizes dimension size step",
)


def unfold(input, dimension, size, step):
    """Return all windows of `size` elements along `dimension`, `step` apart; their elements form a new last dimension.

    Gradient: each element gets the sum of g over the windows that contain it. Raises RuntimeError for a window larger
    than the dimension and for a step that is not positive. Saves nothing.

    >>> import cygrad
    >>> cygrad.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    shown, args = shown_by_unfold(input, dimension, size, step)
    return record_view(UNFOLD, shown, input, args)


@rule("unfold")
def _unfold(call):
    t, (_, dim, size, step) = call.inputs[0], call.args
    x = vectors(call, t)
    return call.shaped(x.unfold(dim % max(t.ndim, 1) + 1, size, step), call.out.shape)


def shown_by_unfold(input, dimension, size, step):
    """Return (the windows, the arguments of the op)."""
    array = own_array(require(input, "unfold"))
    d = dim_argument(dimension, array.ndim, "unfold", "dimension", 1)
    count = size if size.__class__ is int else integer(size, "unfold", "size", 2)
    stride = step if step.__class__ is int else integer(step, "unfold", "step", 3)
    length = array.shape[d] if array.ndim else 1
    if count < 0:
        raise RuntimeError(f"size is {count} but must be >= 0")
    if count > length:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {length} but size is {count}")
    if stride <= 0:
        raise RuntimeError(f"step is {stride} but must be > 0")
    return kernels.windows(array, d, count, stride), (array.shape, d, count, stride)


def unfold_backward_rule(n, g):
    return unfold(g, *n.args[1:])


UNFOLD_BACKWARD = declare("unfold_backward", unfold_backward_rule, flags=LINEAR | PRIVATE, kernel=kernels.sum_windows)


def unfold_backward(input, shape, dimension, size, step):
    """Sum the windows of `unfold` back into a tensor of `shape`."""
    return apply1_args(UNFOLD_BACKWARD, input, (shape, dimension, size, step), None)


@rule("unfold_backward")
def _unfold_backward(call):
    (shape, dim, size, step), g = call.args, call.full(call.inputs[0])
    own = shape or (1,)
    args = (call.size, *own), dim % len(own) + 1, size, step
    return call.shaped(apply_n(call.op, (g if shape else g.unsqueeze(1),), args), shape)


functions = publish(globals())
