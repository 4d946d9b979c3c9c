"""The largest and smallest elements and their indices, and shared code of all ops that select one of many elements.

For the largest element, nan counts as larger than all numbers; for the smallest, as smaller. `dim`, `keepdim`, `axis`,
and `keepdims` are described in reductions.pyx.
"""

from functools import partial

import numpy as np

import cygrad._kernels.cpu.base.reduce as reduce
from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_forward, keep
from cygrad._core.graph.internals import array_of, operand_of
from cygrad._core.graph.opdef import IN0, IN1, LINEAR, NONDIFF, OUT0, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import apply_n, record_n, record_outputs, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.copying import contiguous, in_dtype
from cygrad._kernels.cpu.base.stack_chunks import reducing
from cygrad._kernels.cpu.indexing import axis_ops
from cygrad._kernels.cpu.reduction import arg_extrema
from cygrad._kernels.device.gpu_forms import is_array
from cygrad._kernels.tape.tape import is_open
from cygrad._ops.base.arguments import dim_argument, integers
from cygrad._ops.base.arithmetic import div
from cygrad._ops.base.batching.rules import reduce_along, rule, shifting
from cygrad._ops.base.checks.common import require_kind
from cygrad._ops.base.reductions import axes_argument, flag_argument, restored
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.common.out_argument import write_several
from cygrad._ops.elementwise.selection import maximum, minimum, where

# -- over all elements: equal elements share the gradient --


def share_between_equals(n, g):
    x, chosen = n.saved(0), n.saved_result()
    if is_array(array_of(x)) or is_forward() or is_open():  # samples of a batch, and other steps, may have other ties
        reached = (x == chosen) | ((x != x) & (chosen != chosen))
        return where(reached, div(g, total(reached).to(sum_type(g))), 0.0)
    reached = (x != x) if np.isnan(array_of(chosen)) else (x == chosen)
    return where(reached, div(g, int(np.count_nonzero(array_of(reached)))), 0.0)


def choice_of_all(name, kernel, node=None):
    """Declare the row of an op that selects one of all elements."""
    return declare(name, share_between_equals, saves=IN0 | OUT0, kernel=kernel, inputs="self", node=node)


MAX = choice_of_all("max", reduce.amax, "MaxBackward1")
MIN = choice_of_all("min", reduce.amin, "MinBackward1")


# -- along a dimension: the element at the returned index gets the gradient --


def value_selecting_reduction_rule(n, g):
    shape, dim, keepdim = n.args
    return value_selecting_reduction_backward(g, n.saved(1), shape, dim, keepdim), None


VALUE_SELECTING_REDUCTION = declare(
    "value_selecting_reduction",
    value_selecting_reduction_rule,
    saves=(IN1,),
    flags=LINEAR | PRIVATE,
    inputs="self indices",
)


def value_selecting_reduction(t, indices, dim, keepdim):
    """Return the elements of `t` at `indices` along `dim`."""
    array = axis_ops.select_along(array_of(t), array_of(indices), dim, keepdim)
    return record_n(VALUE_SELECTING_REDUCTION, array, (t, indices), (tuple(t.shape), dim, keepdim))


@rule("value_selecting_reduction")
def _value_selecting(call):
    t, (shape, dim, keepdim) = call.inputs[0], call.args
    if not shape:
        return call.shaped(call.full(t), call.out.shape)
    index = call.full(call.inputs[1])
    dim = dim % len(shape) + 1
    found = call.full(t).gather(dim, index if keepdim else index.unsqueeze(dim))
    return found if keepdim else found.squeeze(dim)


def value_selecting_reduction_backward_rule(n, g):
    _shape, dim, keepdim = n.args
    return value_selecting_reduction(g, n.saved(1), dim, keepdim), None


VALUE_SELECTING_REDUCTION_BACKWARD = declare(
    "value_selecting_reduction_backward",
    value_selecting_reduction_backward_rule,
    saves=(IN1,),
    flags=LINEAR | PRIVATE,
    kernel=axis_ops.place_along,
    inputs="grad indices",
)


def value_selecting_reduction_backward(g, indices, shape, dim, keepdim):
    """Return zeros with g at `indices` along `dim`."""
    return apply_n(VALUE_SELECTING_REDUCTION_BACKWARD, (g, indices), (shape, dim, keepdim))


@rule("value_selecting_reduction_backward")
def _put_back(call):
    shape, dim, keepdim = call.args
    g, index = (call.full(x) for x in call.inputs)
    if not shape:
        return call.shaped(g, shape)
    dim = dim % len(shape) + 1
    if not keepdim:
        g, index = g.unsqueeze(dim), index.unsqueeze(dim)
    return g.new_zeros((call.size, *shape)).scatter(dim, index, g)


def place_rule(n, g):
    return value_selecting_reduction_backward(g, n.saved(1), *n.args[:3])


def choice_along(name, kernel=None, node=None, **row):
    """Declare the row of an op that returns elements and their indices along a dimension; 'max.dim' extends `max`."""
    return declare(
        name,
        place_rule,
        saves=(0, IN1),
        flags=PRIVATE if "." in name else 0,
        kernel=kernel,
        inputs="self indices",
        **row,
        attributes="self_sym_sizes dim keepdim",
        node=node,
    )


def chosen_along(op, t, values, indices, dim, keepdim, out, how=()):
    """Record the result of such an op, given its arrays, or write it into the two tensors `out`.

    `how` holds further arguments of the op, for its batching rule.
    """
    result_type = getattr(return_types, op.name)
    args = array_of(t).shape, dim, keepdim, *how
    values = in_dtype(values, array_of(t).dtype)
    if out is not None:
        return result_type(write_several(op, out, (values, indices), (t,), args))
    value, index = record_outputs(op, (values, indices), (t,), args, 1)
    keep(value, 1, index)
    return result_type((value, index))


POSITIONS = reducing(arg_extrema.argmax), reducing(arg_extrema.argmin)


def with_place(both, extreme, position, array, dim, keepdim):
    """Return (the largest or smallest elements along a dimension, their indices); chunked for large arrays."""
    if not isinstance(array, np.ndarray) or array.size <= chunks.SIZE:
        return both(array, dim, keepdim)
    return extreme(array, (dim,), keepdim), position(array, dim, keepdim)


MAX_DIM = choice_along(
    "max.dim",
    partial(with_place, arg_extrema.max_with_indices, reduce.amax, POSITIONS[0]),
    "MaxBackward0",
    out_dtype="same",
    batching=reduce_along,
)
MIN_DIM = choice_along(
    "min.dim",
    partial(with_place, arg_extrema.min_with_indices, reduce.amin, POSITIONS[1]),
    "MinBackward0",
    out_dtype="same",
    batching=reduce_along,
)


@facts(out_castable="can_cast", overloads="14")
def max(input, dim_or_other=..., keepdim=False, *, dim=..., other=None, axis=None, keepdims=None, out=None):
    """Return the largest element, the largest ones along `dim` with their indices, or the maximum of two tensors.

    - `max(input)`: the largest of all elements. Saves `input` and the result. Gradient: g, shared evenly by all
      elements equal to the result.
    - `max(input, dim)`, with an int `dim`: a named tuple (values, indices). Saves the indices. Gradient: g for the
      element at the index, which is the first of equal ones.
    - `max(input, other)`: same as `maximum(input, other)`.

    Raises RuntimeError for an empty tensor, IndexError for a dimension that is out of range or empty,
    NotImplementedError for complex tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.max()
    tensor(5.)
    >>> x.max(dim=1).values, x.max(dim=1).indices
    (tensor([5., 3.]), tensor([1, 0]))
    """
    return extreme((MAX, MAX_DIM, maximum), input, dim_or_other, keepdim, dim, other, axis, keepdims, out)


@facts(out_castable="can_cast", overloads="14")
def min(input, dim_or_other=..., keepdim=False, *, dim=..., other=None, axis=None, keepdims=None, out=None):
    """Return the smallest element, the smallest ones along `dim` with their indices, or the minimum of two tensors.

    `min(input)`, `min(input, dim)`, and `min(input, other)` save the same as `max` and have the same gradients and
    errors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.min()
    tensor(1.)
    >>> x.min(dim=1).values, x.min(dim=1).indices
    (tensor([1., 2.]), tensor([0, 1]))
    """
    return extreme((MIN, MIN_DIM, minimum), input, dim_or_other, keepdim, dim, other, axis, keepdims, out)


@rule("max min")
def _extreme(call):
    return getattr(call.shaped(call.full(call.inputs[0]), (-1,)), "a" + call.key)(1)


def extreme(forms, input, dim_or_other, keepdim, dim, other, axis, keepdims, out):
    """Implement `max` and `min`; `forms` are the row for all elements, the row for a dimension, and the binary op."""
    of_all, of_dim, of_two = forms
    if isinstance(dim_or_other, Tensor) and keepdim is False and keepdims is None and other is None:
        dim_or_other, other = ..., dim_or_other  # with keepdim or keepdims, a tensor is a dimension
    if dim_or_other is not ...:
        if dim is not ...:
            raise messages.fits_none(of_all.name)
        dim = dim_or_other
    dim = dim if axis is None else axis
    if other is not None:
        if dim is not ...:
            raise messages.fits_none(of_all.name)
        return of_two(input, other, out=out)
    t = tensor_argument(of_all, input, "input", 1)
    if dim is ...:
        if keepdim is not False or keepdims is not None:
            raise messages.fits_none(of_all.name)
        check_not_empty(of_all, t)
        require_kind("bif", of_all.name + "_all", t)
        return apply_n(of_all, (t,), None, out)
    if dim is None or isinstance(dim, (tuple, list)):
        raise messages.fits_none(of_all.name)
    (dim,) = axes_argument(of_all, t, dim, None) or (0,)
    return extreme_along(of_dim, t, dim, flag_argument(of_all, keepdim, keepdims), out)


def extreme_along(op, t, dim, keepdim, out):
    check_real(op, t)
    check_dim_not_empty(op, t, dim)
    array = array_of(t)
    if array.ndim:
        values, indices = op.kernel(array, dim, keepdim)
    else:
        values, indices = contiguous(array), np.zeros((), np.int64, like=array)
    return chosen_along(op, t, values, indices, dim, keepdim, out)


# -- over several dimensions: equal elements share the gradient --


def share_over_axes(n, g):
    axes, keepdim = n.args
    x = n.saved(0)
    reached = x == restored(n.saved_result(), x.shape, axes, keepdim)
    own = where(reached, restored(g, x.shape, axes, keepdim), 0.0)
    return div(own, total(reached, axes, True).to(sum_type(own)), out=reused(own))


def extreme_row(name, kernel):
    return declare(
        name,
        share_over_axes,
        saves=IN0 | OUT0,
        kernel=kernel,
        inputs="self",
        attributes="dim keepdim",
        batching=shifting("D."),
    )


AMAX = extreme_row("amax", reduce.amax)
AMIN = extreme_row("amin", reduce.amin)


@facts(out_dtype="input")
def amax(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Return the largest elements over `dim` (an int, a tuple of ints, or all).

    Saves `input` and the result. Gradient: g, shared evenly by all elements equal to the result. Raises RuntimeError
    for an empty tensor, IndexError for a dimension that is out of range or empty, NotImplementedError for complex
    tensors.

    >>> import cygrad
    >>> cygrad.amax(cygrad.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=(0, 1))
    tensor(5.)
    """
    return extreme_over(AMAX, input, dim, keepdim, axis, keepdims, out)


@facts(out_dtype="input")
def amin(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Return the smallest elements over `dim` (an int, a tuple of ints, or all). Saves `input` and the result.

    Gradient and errors are those of `amax`.

    >>> import cygrad
    >>> cygrad.amin(cygrad.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=(0, 1))
    tensor(1.)
    """
    return extreme_over(AMIN, input, dim, keepdim, axis, keepdims, out)


def extreme_over(op, input, dim, keepdim, axis, keepdims, out):
    t = tensor_argument(op, input, "input", 1)
    dim = dim if axis is None else axis
    if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
        integers(dim, op.name, "dim", 2)
    axes = axes_argument(op, t, dim, None)
    if not operand_of(t).size:
        if axes is None:
            check_not_empty(op, t)
        for i in axes or ():
            check_dim_not_empty(op, t, i)
    require_kind("bif", op.name[1:] + "_values_cpu", t)
    return apply_n(op, (t,), (axes, flag_argument(op, keepdim, keepdims)), out)


# -- indices --

ARGMAX = declare(
    "argmax",
    flags=NONDIFF,
    kernel=POSITIONS[0],
    out_dtype="same",
    advice="an index has no gradient: use weights from `torch.softmax(x, dim)`, or take the value itself with "
    "`x.max(dim).values`",
)


def argmax(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Return the index of the largest element along `dim`, or in the flattened tensor; the first of equal ones. int64.

    Raises IndexError for an empty tensor or a dimension out of range, RuntimeError for boolean and complex tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.argmax(), x.argmax(dim=0)
    (tensor(1), tensor([1, 0]))
    """
    return position(ARGMAX, input, dim, keepdim, axis, keepdims, out)


ARGMIN = declare(
    "argmin",
    flags=NONDIFF,
    kernel=POSITIONS[1],
    out_dtype="same",
    advice="an index has no gradient: use weights from `torch.softmax(-x, dim)`, or take the value itself with "
    "`x.min(dim).values`",
)


def argmin(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Return the index of the smallest element along `dim`, or in the flattened tensor; the first of equal ones. int64.

    Raises IndexError for an empty tensor or a dimension out of range, RuntimeError for boolean and complex tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> x.argmin(), x.argmin(dim=0)
    (tensor(0), tensor([0, 1]))
    """
    return position(ARGMIN, input, dim, keepdim, axis, keepdims, out)


@rule("argmax argmin")
def _place_of_extreme(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    dim, keepdim = call.args
    if dim is None or not t.ndim:
        return call.shaped(getattr(call.shaped(x, (-1,)), call.key)(1), call.out.shape)
    return getattr(x, call.key)(dim % t.ndim + 1, keepdim)


def position(op, input, dim, keepdim, axis, keepdims, out):
    t = tensor_argument(op, input, "input", 1)
    dim = dim if axis is None else axis
    if t.dtype.name == "bool":
        raise RuntimeError(f"{op.name}(): does not support bool input")
    check_real(op, t)
    if dim is not None:
        dim = dim_argument(dim, t.ndim, op.name, "dim", 2)
        check_dim_not_empty(op, t, dim)
    elif t.numel() == 0:
        raise IndexError(f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0.")
    return apply_n(op, (t,), (dim if t.ndim else None, flag_argument(op, keepdim, keepdims)), out)


# -- checks --


def check_real(op, t):
    if t.dtype.is_complex:
        raise RuntimeError(f"{op.name}(): does not support complex input")


def check_not_empty(op, t):
    if t.numel() == 0:
        raise RuntimeError(
            f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )


def check_dim_not_empty(op, t, dim):
    if t.ndim and array_of(t).shape[dim] == 0:
        raise IndexError(f"{op.name}(): Expected reduction dim {dim} to have non-zero size.")


functions = publish(globals())
