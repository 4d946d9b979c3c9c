"""Elementwise selection: maximum, minimum, fmax, fmin and clamp (`where` is in comparisons.pyx)."""

import operator
from functools import partial

import cygrad._kernels.cpu.base.elementwise as kernels
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELEMENTWISE, IN0, IN1, IN2, INPLACE, PRIVATE, declare, publish, registry
from cygrad._core.graph.record import apply2, as_type, recorded, result_type
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.elementwise.fused_loops import fused
from cygrad._ops.base.arithmetic import div
from cygrad._ops.base.batching.rules import operands, rule
from cygrad._ops.base.checks.common import number_of, require_tensors
from cygrad._ops.base.comparisons import check_fits, where


def kept(g, mask):
    """Return the gradient g where `mask` is true, else 0 (also where g is NaN or inf)."""
    return where(mask, g, 0.0)


# -- maximum, minimum --


def sharing(is_behind):
    """Return the rule of maximum or minimum, which splits g between equal values; `is_behind` is `<` or `>`."""

    def rule(n, g):
        a, b = n.saved(0), n.saved(1)
        shared = where(a == b, div(g, 2), g)
        return (
            kept(shared, ~is_behind(a, b)) if n.needs(0) else None,
            kept(shared, ~is_behind(b, a)) if n.needs(1) else None,
        )

    return rule


def passing_over_nan(is_ahead):
    """Return the rule of fmax or fmin, which ignore NaN; `is_ahead` is `>=` or `<=`."""

    def rule(n, g):
        a, b = n.saved(0), n.saved(1)
        first = is_ahead(a, b) | (b != b)
        return kept(g, first) if n.needs(0) else None, kept(g, ~first) if n.needs(1) else None

    return rule


def better(op, input, other, out):
    require_tensors(op, input, other)
    if input.is_complex() or other.is_complex():
        raise RuntimeError(f"{op.name} not implemented for complex tensors.")
    return apply2(op, input, other, out)


MAXIMUM = declare("maximum", sharing(operator.lt), saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="maximum")


def maximum(input, other, *, out=None):
    """Elementwise maximum of two tensors, with broadcasting; NaN if either is NaN.

    Saves both. Gradient: g for the larger element; equal elements get half each. Raises RuntimeError for complex
    tensors and for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.maximum(cygrad.tensor([1.0, 4.0]), cygrad.tensor([3.0, 2.0]))
    tensor([3., 4.])
    """
    return better(MAXIMUM, input, other, out)


MINIMUM = declare("minimum", sharing(operator.gt), saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="minimum")


def minimum(input, other, *, out=None):
    """Elementwise minimum of two tensors, with broadcasting; NaN if either is NaN.

    Saves both. Gradient: g for the smaller element; equal elements get half each. Raises RuntimeError for complex
    tensors and for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.minimum(cygrad.tensor([1.0, 4.0]), cygrad.tensor([3.0, 2.0]))
    tensor([1., 2.])
    """
    return better(MINIMUM, input, other, out)


FMAX = declare("fmax", passing_over_nan(operator.ge), saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="fmax")


def fmax(input, other, *, out=None):
    """Elementwise maximum of two tensors, with broadcasting; if one is NaN, the other one.

    Saves both. Gradient: g for the selected element, `input` if they are equal. Raises RuntimeError for complex tensors
    and for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.fmax(cygrad.tensor([1.0, float("nan")]), cygrad.tensor([3.0, 2.0]))
    tensor([3., 2.])
    """
    return better(FMAX, input, other, out)


FMIN = declare("fmin", passing_over_nan(operator.le), saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="fmin")


def fmin(input, other, *, out=None):
    """Elementwise minimum of two tensors, with broadcasting; if one is NaN, the other one.

    Saves both. Gradient: g for the selected element, `input` if they are equal. Raises RuntimeError for complex tensors
    and for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.fmin(cygrad.tensor([1.0, float("nan")]), cygrad.tensor([3.0, 2.0]))
    tensor([1., 2.])
    """
    return better(FMIN, input, other, out)


# -- clamp --


def clamp_rule(n, g):
    x = n.saved(0)
    low, high = n.args
    if low is None:
        return kept(g, x <= high)
    if high is None:
        return kept(g, x >= low)
    return kept(g, (x >= low) & (x <= high))


CLAMP = declare(
    "clamp",
    clamp_rule,
    saves=IN0,
    flags=ELEMENTWISE | INPLACE,
    node="ClampBackward1",
    inputs="self",
    attributes="min max",
    aliases="clip",
    devices=(1, 2, "min", "max"),
    out_dtype="found",
    overloads="",
)


def clamp_tensor_rule(n, g):
    x, low, high = n.saved(0), n.saved(1), n.saved(2)
    inside = below = above = None
    if low is not None:
        inside, below = x >= low, x < low
    if high is not None:
        inside = x <= high if inside is None else inside & (x <= high)
        above = x > high
        if low is not None:  # if low > high, the result is high
            below, above = below & (low < high), above | (high < low)
    return (
        kept(g, inside) if n.needs(0) else None,
        kept(g, below) if n.needs(1) else None,
        kept(g, above) if n.needs(2) else None,
    )


CLAMP_TENSOR = declare(
    "clamp.Tensor",
    clamp_tensor_rule,
    saves=IN0 | IN1 | IN2,
    flags=ELEMENTWISE | PRIVATE,
    node="ClampBackward0",
    inputs="self min max",
)


def clamp(input, min=None, max=None, *, out=None):
    """Clamp `input` to [`min`, `max`], elementwise; the result is `max` where `min` > `max`.

    The bounds are both numbers or both tensors (which broadcast), or one of them is None. Saves `input` and tensor
    bounds. Gradient: g for `input` where it is within the bounds (inclusive), else for the bound that it exceeds.
    Raises RuntimeError without bounds or for complex tensors, TypeError for a number and a tensor as bounds.

    >>> import cygrad
    >>> cygrad.clamp(cygrad.tensor([-2.0, 0.5, 3.0]), min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    min, max = number_of(min), number_of(max)
    if isinstance(input, Tensor) and isinstance(min, Tensor) != isinstance(max, Tensor):
        min, max = as_number(min, max), as_number(max, min)
    array, by_tensors = bounded(CLAMP, input, min, max, out)
    if by_tensors:
        return recorded(CLAMP_TENSOR, array, (input, min, max), None, out)
    return recorded(CLAMP, array, (input,), (min, max), out)


def as_number(bound, other):
    """Convert a 0-dim tensor that does not require grad to a number if the other bound is a number."""
    if isinstance(bound, Tensor) and isinstance(other, (int, float)) and bound.ndim == 0 and not is_recorded(bound):
        return bound.item()
    return bound


def bounded(op, input, low, high, out):
    """Return the result as an array, and whether the bounds are tensors rather than numbers; either may be None."""
    by_tensors = isinstance(low, Tensor) or isinstance(high, Tensor)
    accepted = (Tensor, type(None)) if by_tensors else (int, float, type(None))
    if not isinstance(input, Tensor) or not isinstance(low, accepted) or not isinstance(high, accepted):
        raise messages.fits_none(op.name)
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    dtype = result_type((input, low, high))
    if isinstance(out, Tensor) and not by_tensors and out.dtype is not dtype:
        if out is input:
            messages.check_clamp_type(dtype, out)
        else:
            messages.check_result_type(dtype.numpy.num, out.dtype.numpy.num, op)
    if dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    bounds = []
    for bound in (low, high):
        check_fits(bound, dtype)
        bounds.append(as_type(bound, dtype) if isinstance(bound, Tensor) else bound)
    target = None if out is None else array_of(out)
    if isinstance(low, Tensor) and isinstance(high, Tensor) and target is None:
        found = fused("clamped", as_type(input, dtype), *bounds)
        if found is not None:
            return found, by_tensors
    if by_tensors and target is None and input.numel() > chunks.SIZE:  # in chunks, as it takes a pass per bound
        return chunks.in_blocks(kernels.clamp, (as_type(input, dtype), *bounds)), by_tensors
    array = as_type(input, dtype)
    if target is None or target.size <= chunks.FEW:
        return kernels.clamp(array, *bounds), by_tensors
    result = None if by_tensors else chunks.result_into(target, partial(kernels.clamp, low=low, high=high), array)
    return result or chunks.result_for(target, kernels.clamp, array, *bounds), by_tensors


def require_bound(op, input, bound, name):
    """Require that the bound of `clamp_min` or `clamp_max` is given and real."""
    if bound is None:
        raise messages.fits_none(op.name)
    if isinstance(bound, complex):
        raise NotImplementedError("clamp is not supported for complex types")


def clamp_min_rule(n, g):
    return kept(g, n.saved(0) >= n.args[0])


CLAMP_MIN = declare(
    "clamp_min",
    clamp_min_rule,
    saves=IN0,
    flags=ELEMENTWISE | INPLACE,
    inputs="self",
    attributes="min",
    devices=(1, "min"),
    out_dtype="found",
    overloads="",
)


def clamp_min_tensor_rule(n, g):
    x, bound = n.saved(0), n.saved(1)
    return kept(g, x >= bound) if n.needs(0) else None, kept(g, x < bound) if n.needs(1) else None


CLAMP_MIN_TENSOR = declare(
    "clamp_min.Tensor",
    clamp_min_tensor_rule,
    saves=IN0 | IN1,
    flags=ELEMENTWISE | PRIVATE,
    node="ClampMinBackward1",
    inputs="self min",
)


def clamp_min(input, min, *, out=None):
    """`clamp` with only a lower bound, a number or a tensor.

    Saves `input` and `min`. Gradient: g where `input >= min`, else 0.

    >>> import cygrad
    >>> cygrad.clamp_min(cygrad.tensor([-2.0, 0.5]), 0)
    tensor([0.0000, 0.5000])
    """
    min = number_of(min)
    require_bound(CLAMP_MIN, input, min, "min")
    array, by_tensors = bounded(CLAMP_MIN, input, min, None, out)
    if by_tensors:
        return recorded(CLAMP_MIN_TENSOR, array, (input, min), None, out)
    return recorded(CLAMP_MIN, array, (input,), (min,), out)


def clamp_max_rule(n, g):
    return kept(g, n.saved(0) <= n.args[0])


CLAMP_MAX = declare(
    "clamp_max",
    clamp_max_rule,
    saves=IN0,
    flags=ELEMENTWISE | INPLACE,
    inputs="self",
    attributes="max",
    devices=(1, "max"),
    out_dtype="found",
    overloads="",
)


def clamp_max_tensor_rule(n, g):
    x, bound = n.saved(0), n.saved(1)
    return kept(g, x <= bound) if n.needs(0) else None, kept(g, x > bound) if n.needs(1) else None


CLAMP_MAX_TENSOR = declare(
    "clamp_max.Tensor",
    clamp_max_tensor_rule,
    saves=IN0 | IN1,
    flags=ELEMENTWISE | PRIVATE,
    node="ClampMaxBackward1",
    inputs="self max",
)


def clamp_max(input, max, *, out=None):
    """`clamp` with only an upper bound, a number or a tensor.

    Saves `input` and `max`. Gradient: g where `input <= max`, else 0.

    >>> import cygrad
    >>> cygrad.clamp_max(cygrad.tensor([-2.0, 0.5]), 0)
    tensor([-2.,  0.])
    """
    max = number_of(max)
    require_bound(CLAMP_MAX, input, max, "max")
    array, by_tensors = bounded(CLAMP_MAX, input, None, max, out)
    if by_tensors:
        return recorded(CLAMP_MAX_TENSOR, array, (input, max), None, out)
    return recorded(CLAMP_MAX, array, (input,), (max,), out)


@rule("clamp clamp_min clamp_max clamp.Tensor clamp_min.Tensor clamp_max.Tensor")
def _clamp(call):
    return registry[call.op.name].entry(*operands(call, call.inputs), *call.args)


functions = publish(globals())
