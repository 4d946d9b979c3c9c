"""Cumulative sums, products, extrema and log-sum-exp along a dimension, differences, and trapezoidal integrals."""

from functools import partial

import numpy as np

from cygrad._core.engine import blocked_gradients
from cygrad._core.engine.blocked_gradients import beside, in_slices, owned, reused
from cygrad._core.errors import messages
from cygrad._core.graph.dual import keep, values_of
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, IN1, INPLACE, LINEAR, OUT0, declare, facts, publish, variant
from cygrad._core.graph.record import (
    apply1_args,
    apply_n,
    as_type,
    record_outputs,
    recorded,
    tensor_argument,
    write_into,
)
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.types import return_types
from cygrad._core.types.dtypes import as_dtype, dtype_of_number
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.numpy_fallback import refuse_float8
from cygrad._kernels.cpu.indexing import axis_ops as along
from cygrad._kernels.cpu.reduction import scans
from cygrad._kernels.cpu.signal import finite_differences as kernels
from cygrad._kernels.device.cupy_library import is_array, is_meta
from cygrad._kernels.tape.calls import called
from cygrad._kernels.tape.conditions import any_true
from cygrad._ops.base.arguments import dim_argument, integer, require
from cygrad._ops.base.arithmetic import add, div, mul, sub
from cygrad._ops.base.batching.rules import reduce_along, rule, shifting, vectors
from cygrad._ops.base.checks.common import require_kind, require_real
from cygrad._ops.base.creation import zeros
from cygrad._ops.base.pointwise import abs, conjugate, exp, log
from cygrad._ops.base.reductions import accumulator
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.slicing import cat, narrow, select
from cygrad._ops.common.blocked_composites import LINEAR_STEPS, is_own_number, linear_steps
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.common.out_argument import given, write_several
from cygrad._ops.elementwise.logic import logical_xor
from cygrad._ops.elementwise.selection import where
from cygrad._ops.indexing.gathering import scatter_add, zeros_at
from cygrad._ops.reduction.aggregates import shift
from cygrad._ops.shape.flip_roll import flip


def dim_of(op, t, dim, position=2):
    if dim is None:
        raise TypeError(f'{op.name}() missing 1 required positional arguments: "dim"')
    return dim_argument(dim, t.dim(), op.name, "dim", position)


# -- cumulative sums --


def cumsum_rule(n, g):
    dim, reverse = n.args
    return apply1_args(CUMSUM, g, (dim, not reverse), None)


CUMSUM = declare(
    "cumsum",
    cumsum_rule,
    flags=LINEAR | INPLACE,
    kernel=along.cumsum,
    inputs="self",
    attributes="dim",
    autocast_gpu="float32",
    takes_dtype=True,
)


def cumsum(input, dim=None, *, dtype=None, axis=None, out=None):
    """Compute the cumulative sum along `dim`: y[i] = x[0] + ... + x[i]. Has the shape of `input`.

    Integers and booleans are summed in int64, other dtypes in their own or in `dtype`. Saves nothing. Gradient: the
    cumulative sum of g from the end. Raises IndexError for a dimension out of range.

    >>> import cygrad
    >>> cygrad.cumsum(cygrad.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    t = tensor_argument(CUMSUM, input, "input", 1)
    dim = dim_of(CUMSUM, t, dim if axis is None else axis)
    wanted = accumulated_in(CUMSUM, t, dtype, out)
    array = within(along.cumsum_within, t, dim) if out is t and wanted is t.dtype else None
    array = along.cumsum(as_type(t, wanted), dim) if array is None else array
    return recorded(CUMSUM, array, (t,), (dim, False), out)


@rule("cumsum")
def _cumsum(call):
    t, (dim, is_reverse) = call.inputs[0], call.args
    x = vectors(call, t).to(call.out.dtype)
    return call.shaped(apply_n(call.op, (x,), (dim % max(t.ndim, 1) + 1, is_reverse)), call.out.shape)


def accumulated_in(op, t, dtype, out):
    """Return the dtype of a cumulative sum or product: `dtype`, else that of `out`, else int64 for integers."""
    if dtype is not None:
        accumulator(t, dtype)  # checks that the dtype is differentiable, if necessary
        wanted = as_dtype(dtype)
        if wanted.name == "bool":
            raise messages.not_implemented_for(f"{op.name}_out_cpu", wanted)
        if out is t and wanted is not t.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {messages.c_word(t)} and output tensor dtype "
                f"{messages.c_name(wanted)} should match"
            )
        if isinstance(out, Tensor) and out.dtype is not wanted:
            messages.check_out_type(np.empty(0, wanted.numpy), out)
        return wanted
    if not isinstance(out, Tensor):
        refuse_float8(memory_of(t).dtype, f"{op.name}_out_cpu")
        return t.dtype if t.is_floating_point() or t.is_complex() else dtype_of_number(0)
    if out.dtype.name == "bool":
        raise messages.not_implemented_for(f"{op.name}_out_cpu", out.dtype)
    return out.dtype


def within(change, t, dim):
    """Return `change` as an in-place computation on a tensor's memory; None for 0-dim and GPU tensors."""
    array = array_of(t)
    return chunks.InPlace(array, partial(change, axis=dim)) if t.dim() and not is_array(array) else None


# -- cumulative products --


def cumsum_from_end(t, dim):
    return apply1_args(CUMSUM, t, (dim, True), None)


@in_slices(beside)
def cumprod_rule(n, g):
    (dim,) = n.args
    x = n.saved(0)
    if x.dim() == 0:
        return g
    is_zero = x == 0
    if not get_modes() & NO_GRAD or is_meta(memory_of(x)):
        return cumprod_gradient_without_division(x, g, dim)
    if not any_true(values_of(is_zero)):
        shares = running_shares(x, g, dim)
        is_apart = 0 in array_of(x).strides  # powers (vandermonde.py): faster to divide out of place
        return div(shares, conjugate(x), out=None if is_apart else reused(shares))
    # Before the first zero as above; at the first zero g is weighted by the product of the others; after it, it is 0.
    zeros_so_far = cumsum(is_zero, dim)
    is_first = is_zero & (zeros_so_far == 1)
    before = running_shares(x, g, dim)
    before = div(before, conjugate(where(is_zero, 1.0, x)), out=reused(before))
    others = running_shares(where(is_first, 1.0, x), g, dim)
    return where(zeros_so_far == 0, before, where(is_first, others, 0.0))


def running_shares(x, g, dim):
    """Return the cumulative sum from the end of g times the conjugate of the cumulative product."""
    products = cumprod(x, dim)
    array = memory_of(products)
    if reused(products) is None or is_array(array):
        return cumsum_from_end(mul(g, conjugate(products)), dim)
    if products.is_complex():
        called(np.conjugate, array, array)
    shares = mul(g, products, out=products)
    called(along.cumsum_within, memory_of(shares), dim, True)
    return shares


def cumprod_gradient_without_division(x, g, dim):
    """Compute the gradient by multiplications, so that its own gradients are right at zeros and stay within the range.

    It is the product of the elements before k times s[k], where s[k] = g[k] + conj(x[k + 1]) * s[k + 1]. These steps
    are joined by doubling, to those over 1, 2, 4, ... elements.
    """
    sums, factors = g, conjugate(shift(x, dim, -1, 0))
    steps = 1
    while steps < x.shape[dim]:
        sums = add(sums, mul(factors, shift(sums, dim, -steps, 0)))
        factors = mul(factors, shift(factors, dim, -steps, 0))
        steps *= 2
    return mul(conjugate(cumprod(shift(x, dim, 1, 1), dim)), sums)


CUMPROD = declare(
    "cumprod",
    cumprod_rule,
    saves=IN0,
    flags=INPLACE,
    kernel=along.cumprod,
    inputs="self",
    attributes="dim",
    autocast_gpu="float32",
    takes_dtype=True,
    batching=shifting("d"),
)


def cumprod(input, dim=None, *, dtype=None, out=None):
    """Compute the cumulative product along `dim`: y[i] = x[0] * ... * x[i]. Has the shape of `input`.

    Integers and booleans are multiplied in int64, other dtypes in their own or in `dtype`. Saves `input`. Gradient:
    the cumulative sum of g * y from the end, divided by `input`; at zeros it is computed without the division.

    >>> import cygrad
    >>> cygrad.cumprod(cygrad.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.])
    """
    t = tensor_argument(CUMPROD, input, "input", 1)
    dim = dim_of(CUMPROD, t, dim)
    wanted = accumulated_in(CUMPROD, t, dtype, out)
    if wanted is not t.dtype:
        t = t.to(wanted)
    array = within(along.cumprod_within, t, dim) if out is t else None
    return apply_n(CUMPROD, (t,), (dim,), out) if array is None else write_into(CUMPROD, t, array, (t,), (dim,))


# -- cumulative extrema --


def extremum_rule(n, g):
    shape, dim = n.args
    return scatter_add(zeros_at(shape, g), dim, n.saved(1), g) if shape else g


CUMMAX = declare(
    "cummax",
    extremum_rule,
    saves=(0, IN1),
    inputs="self indices",
    attributes="self_sym_sizes dim",
    out_dtype="scalar_type",
    batching=reduce_along,
    float8="cummax_cpu",
)
CUMMIN = declare(
    "cummin",
    extremum_rule,
    saves=(0, IN1),
    inputs="self indices",
    attributes="self_sym_sizes dim",
    out_dtype="scalar_type",
    batching=reduce_along,
    float8="cummin_cpu",
)


def cummax(input, dim=None, *, out=None):
    """Return the largest element so far along `dim`, and its index: a tuple (values, indices).

    Of equal elements the last one is used; NaN propagates. Saves the indices. Gradient: for each element, the sum of g
    over the positions where it is the largest so far.

    >>> import cygrad
    >>> cygrad.cummax(cygrad.tensor([1.0, 3.0, 2.0]), dim=0)
    torch.return_types.cummax(
    values=tensor([1., 3., 3.]),
    indices=tensor([0, 1, 1]))
    """
    return running_extremum(CUMMAX, return_types.cummax, input, dim, out)


def cummin(input, dim=None, *, out=None):
    """Return the smallest element so far along `dim`, and its index: a tuple (values, indices). See `cummax`.

    Saves the indices.

    >>> import cygrad
    >>> cygrad.cummin(cygrad.tensor([2.0, 3.0, 1.0]), dim=0)
    torch.return_types.cummin(
    values=tensor([2., 2., 1.]),
    indices=tensor([0, 0, 2]))
    """
    return running_extremum(CUMMIN, return_types.cummin, input, dim, out)


def running_extremum(op, result_type, input, dim, out):
    t = tensor_argument(op, input, "input", 1)
    if t.dim() == 0 and dim not in (-1, 0, None):
        raise IndexError(f"{op.name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    dim = dim_of(op, t, dim)
    require_real(op, t)
    values, indices = scans.running_extremum(array_of(t), dim, op is CUMMAX)
    args = (tuple(t.shape), dim)
    if out is not None:
        return result_type(write_several(op, out, (values, indices), (t,), args))
    value, index = record_outputs(op, (values, indices), (t,), args, 1)
    keep(value, 1, index)
    return result_type((value, index))


# -- cumulative log-sum-exp --


def logcumsumexp_rule(n, g):
    """Return the sum over k >= i of g[k] * exp(x[i] - y[k])."""
    a = memory_of(g)
    kind = sum_type(g)
    if kind is not g.dtype:  # the logarithms of sums are too coarse in half precision, those saved as well
        x = n.saved(0).to(kind)
        return _by_logarithms(x, logcumsumexp(x, n.args[0]), n.args[0], g.to(kind))
    if n.may_run_in_parts(g) and isinstance(a, np.ndarray) and a.ndim and a.dtype.kind == "f":
        return tensor_of(scans.logcumsumexp_gradient(a, array_of(n.saved(0)), array_of(n.saved_result()), n.args[0]))
    return _in_logarithms(n, g)


@in_slices(beside)
def _in_logarithms(n, g):
    """Compute the same by ops, slice by slice where that saves memory."""
    return _by_logarithms(n.saved(0), n.saved_result(), n.args[0], g)


def _by_logarithms(x, y, dim, g):
    """Compute the gradient from the result y, in logarithms, because neither factor is bounded."""
    nothing = g == 0
    if not get_modes() and values_of(nothing).any():  # when recording: the logarithm of 0 has no derivative
        size = np.abs(values_of(g)).max().item() or 1
        is_below = ((g.real if g.is_complex() else g) < 0).to(g.dtype)
        shift = mul(sub(1, mul(is_below, 2)), size)
        positive = _by_logarithms(x, y, dim, add(g, shift))  # the gradient is linear in g
        return sub(positive, _by_logarithms(x, y, dim, shift))
    if x.is_complex():
        x, y = conjugate(x), conjugate(y)
        size = log(where(nothing, 1.0, g))
        return where(abs(x) == np.inf, 0.0, exp(add(from_end(where(nothing, -np.inf, sub(size, y)), dim), x)))
    size = log(where(nothing, 1.0, abs(g)))
    weight = sub(size, where(y == -np.inf, 0.0, y))
    positive, negative = (
        exp(add(from_end(where(side & (y > -np.inf), weight, -np.inf), dim), x)) for side in (g > 0, g < 0)
    )
    return sub(positive, negative)


def from_end(t, dim):
    return flip(logcumsumexp(flip(t, (dim,)), dim), (dim,)) if t.dim() else t


LOGCUMSUMEXP = declare(
    "logcumsumexp",
    logcumsumexp_rule,
    saves=IN0 | OUT0,
    kernel=scans.logcumsumexp,
    inputs="self",
    attributes="dim",
    out_dtype="scalar_type",
    batching=shifting("d"),
)


def logcumsumexp(input, dim=None, *, out=None):
    """Compute `log(exp(x[0]) + ... + exp(x[i]))` along `dim`, without overflow. Has the shape of `input`.

    Saves `input` and the result y. Gradient: the sum of g[k] * exp(x[i] - y[k]) over k >= i.

    >>> import cygrad
    >>> cygrad.logcumsumexp(cygrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.0000, 0.6931])
    """
    t = tensor_argument(LOGCUMSUMEXP, input, "input", 1)
    dim = dim_of(LOGCUMSUMEXP, t, dim)
    require_kind("fc", "logcumsumexp_out_cpu", t)
    return apply_n(LOGCUMSUMEXP, (t,), (dim,), out)


# -- differences and integrals --


@facts(out_dtype="scalar_type")
def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """Compute the differences x[i + 1] - x[i] along `dim`, `n` times; for booleans, whether they differ.

    `prepend` and `append` are first joined to `input`, unless `n` is 0. Each time `dim` gets shorter by 1. Raises
    RuntimeError for a 0-dim tensor, for mismatched shapes, and for a negative `n`.

    >>> import cygrad
    >>> cygrad.diff(cygrad.tensor([1, 4, 9, 16]))
    tensor([3, 5, 7])
    """
    t = require(input, "diff")
    if t.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    n = integer(n, "diff", "n", 2)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = dim_argument(dim, t.dim(), "diff", "dim", 3)
    parts = [part for part in (prepend, t, append) if part is not None]
    for part in parts:
        _check_part(part, t, dim)
    if len(parts) > 1 and n:
        t = cat(parts, dim)
    difference = logical_xor if t.dtype.name == "bool" else sub
    result = t if n else t.clone()
    for _ in range(min(n, t.shape[dim])):
        if is_own_number(result):
            args = (dim, -1)
            result = linear_steps(of_neighbours, kernels.of_neighbours, kernels.to_neighbours, result, args, DIFFERENCE)
        else:
            result = of_neighbours(result, dim, difference)
    return given("sub" if n else "diff", result, out)


def _check_part(part, t, dim):
    """Raise unless a tensor can be joined to another along the dimension."""
    if part.ndim != t.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (wanted, found) in enumerate(zip(t.shape, part.shape)):
        if i != dim and wanted != found:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({i}) = {wanted}, but got tensor.size({i}) = {found}"
            )


DIFFERENCE = variant(LINEAR_STEPS, "SubBackward0")


def of_neighbours(t, dim, combine):
    """Combine each element with the one before it; `combine` is a function, or a sign for a sum or a difference."""
    length = t.shape[dim] - 1
    combine = {1: add, -1: sub}.get(combine, combine)
    return combine(narrow(t, dim, 1, length), narrow(t, dim, 0, length))


def _distances(function, y, x, dx, dim):
    """Return the distances between samples, as a tensor or a number, and the nonnegative dimension."""
    y = require(y, function, "y")
    if x is not None:
        require(x, function, "x", 2)
    for name, t in (("y", y), ("x", x)):
        if t is not None and t.dtype.name == "bool":
            raise RuntimeError(f"{function}: received a bool input for `{name}`, but bool is not supported")
    if y.dim() == 0:
        word = "slice() cannot be applied to a 0-dim tensor."
        raise IndexError(
            f"Dimension specified as {dim} but tensor has no dimensions" if function == "trapezoid" else word
        )
    dim = dim_argument(dim, y.dim(), function, "dim", 3)
    n = y.shape[dim]
    if n and x is not None:
        if 1 < x.dim() < y.dim():
            x = x.reshape([1] * (y.dim() - x.dim()) + list(x.shape))
        if x.dim() == 1:
            if x.shape[0] != n:
                raise RuntimeError(f"{function}: There must be one `x` value for each sample point")
            x = x.reshape([-1] + [1] * (y.dim() - 1 - dim))
        elif x.shape[dim] != n:
            raise RuntimeError(f"{function}: There must be one `x` value for each sample point")
        along = dim - y.dim()
        dx = sub(narrow(x, along, 1, n - 1), narrow(x, along, 0, n - 1))
    return dx, dim


@facts(overloads="1")
def trapezoid(y, x=None, *, dx=1, dim=-1):
    """Integrate `y` along `dim` by the trapezoidal rule: the sum of (x[i+1] - x[i]) * (y[i] + y[i+1]) / 2.

    `x` holds the sample points, one for each element along `dim`; without it they are `dx` apart.

    >>> import cygrad
    >>> cygrad.trapezoid(cygrad.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    dx, dim = _distances("trapezoid", y, x, dx, dim)
    if not y.shape[dim]:
        return zeros(y.shape[:dim] + y.shape[dim + 1 :], dtype=y.dtype, device=y.device)
    if x is None and is_own_number(y, dx) and y.numel() > max(1, blocked_gradients.LARGE) * y.shape[dim] > 1:
        args = (dim, dx, y.shape[dim])
        return linear_steps(_integrals, kernels.integrals, kernels.from_integrals, y, args, INTEGRAL)
    if x is None:
        return _integrals(y, dim, dx)
    return div(total(mul(dx, of_neighbours(y, dim, 1)), dim), 2)


INTEGRAL = variant(LINEAR_STEPS, "MulBackward0")
RUNNING_INTEGRAL = variant(LINEAR_STEPS, "CumsumBackward0")


def _integrals(y, dim, dx, count=None):
    return mul(sub(total(y, dim), mul(add(select(y, dim, 0), select(y, dim, -1)), 0.5)), dx)


@facts(overloads="1")
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """Compute the running integral of `y` along `dim` by the trapezoidal rule; one element shorter. See `trapezoid`.

    Element k is the sum of (x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2 over i <= k.

    >>> import cygrad
    >>> cygrad.cumulative_trapezoid(cygrad.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    dx, dim = _distances("cumulative_trapezoid", y, x, dx, dim)
    if not y.shape[dim]:
        return cumsum(y, dim)
    if x is None and is_own_number(y, dx):
        found = kernels.running_integrals, kernels.from_running_integrals
        return linear_steps(_running_integrals, *found, y, (dim, dx / 2), RUNNING_INTEGRAL)
    if x is None:
        return _running_integrals(y, dim, dx / 2)
    integrals = cumsum(mul(dx, of_neighbours(y, dim, 1)), dim)
    return div(integrals, 2, out=owned(integrals))


def _running_integrals(y, dim, factor):
    sums = of_neighbours(y, dim, 1)
    return cumsum(mul(sums, factor, out=owned(sums)), dim)


composite = {"diff": 0, "trapezoid": FUNCTION_ONLY, "trapz": FUNCTION_ONLY, "cumulative_trapezoid": FUNCTION_ONLY}
trapz = trapezoid
functions = publish(globals())
