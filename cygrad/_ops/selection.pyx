"""One of several values, element by element: the larger, the bounded, the one a condition picks."""

import warnings

from cygrad._core.dtypes cimport BOOLEAN, COMPLEX, FLOATING, INTEGRAL, default_dtype, dtype, promote_types
from cygrad._core.opdef cimport ELEMENTWISE, IN0, IN1, IN2, INPLACE, PRIVATE, OpDef, OpNode, lookup, op
from cygrad._core.opdef import publish
from cygrad._core.record cimport (
    apply2, as_type, record2, record_n, result_type, tensor_argument, write_into)
from cygrad._core.tensor cimport Tensor, dtype_of
from cygrad._kernels import elementwise as kernels, pointwise
from cygrad._kernels.copying import element
from cygrad._ops.arithmetic cimport div
from cygrad._core import messages


cdef inline object kept(object g, object mask):
    """The gradient g where `mask` holds, else 0 (also where g is nan or inf)."""
    return where(mask, g, 0.0)


cdef object no_complex(OpDef op, object input, object other):
    """Both are tensors whose elements have an order."""
    a, b = tensor_argument(op, input, "input", 1), tensor_argument(op, other, "other", 2)
    if dtype_of(<Tensor>a).category == COMPLEX or dtype_of(<Tensor>b).category == COMPLEX:
        raise RuntimeError(f"{op.name} not implemented for complex tensors.")


# -- the larger, the smaller -------------------------------------------------------------------------------

cdef object maximum_rule(OpNode n, object g):
    a, b = n.saved(0), n.saved(1)
    shared = where(a == b, div(g, 2), g)
    return (kept(shared, ~(a < b)) if n.needs(0) else None,
            kept(shared, ~(b < a)) if n.needs(1) else None)

cdef OpDef MAXIMUM = op("maximum", maximum_rule).row(saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="maximum")

cpdef Tensor maximum(object input, object other, Tensor out=None):
    """The larger of two tensors' elements, with broadcasting; nan if either is.

    Saves both. Gradient: g for the larger; where they are equal each gets half. Raises RuntimeError for complex
    tensors and for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.maximum(cygrad.tensor([1.0, 4.0]), cygrad.tensor([3.0, 2.0]))
    tensor([3., 4.])
    """
    no_complex(MAXIMUM, input, other)
    return apply2(MAXIMUM, input, other, out)


cdef object minimum_rule(OpNode n, object g):
    a, b = n.saved(0), n.saved(1)
    shared = where(a == b, div(g, 2), g)
    return (kept(shared, ~(a > b)) if n.needs(0) else None,
            kept(shared, ~(b > a)) if n.needs(1) else None)

cdef OpDef MINIMUM = op("minimum", minimum_rule).row(saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="minimum")

cpdef Tensor minimum(object input, object other, Tensor out=None):
    """The smaller of two tensors' elements, with broadcasting; nan if either is.

    Saves both. Gradient: g for the smaller; where they are equal each gets half. Raises RuntimeError for complex
    tensors and for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.minimum(cygrad.tensor([1.0, 4.0]), cygrad.tensor([3.0, 2.0]))
    tensor([1., 2.])
    """
    no_complex(MINIMUM, input, other)
    return apply2(MINIMUM, input, other, out)


cdef object fmax_rule(OpNode n, object g):
    a, b = n.saved(0), n.saved(1)
    first = (a >= b) | (b != b)
    return kept(g, first) if n.needs(0) else None, kept(g, ~first) if n.needs(1) else None

cdef OpDef FMAX = op("fmax", fmax_rule).row(saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="fmax")

cpdef Tensor fmax(object input, object other, Tensor out=None):
    """The larger of two tensors' elements, with broadcasting; the other one if one is nan.

    Saves both. Gradient: g for the one taken, `input` if they are equal. Raises RuntimeError for complex tensors and
    for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.fmax(cygrad.tensor([1.0, float("nan")]), cygrad.tensor([3.0, 2.0]))
    tensor([3., 2.])
    """
    no_complex(FMAX, input, other)
    return apply2(FMAX, input, other, out)


cdef object fmin_rule(OpNode n, object g):
    a, b = n.saved(0), n.saved(1)
    first = (a <= b) | (b != b)
    return kept(g, first) if n.needs(0) else None, kept(g, ~first) if n.needs(1) else None

cdef OpDef FMIN = op("fmin", fmin_rule).row(saves=IN0 | IN1, flags=ELEMENTWISE, ufunc="fmin")

cpdef Tensor fmin(object input, object other, Tensor out=None):
    """The smaller of two tensors' elements, with broadcasting; the other one if one is nan.

    Saves both. Gradient: g for the one taken, `input` if they are equal. Raises RuntimeError for complex tensors and
    for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.fmin(cygrad.tensor([1.0, float("nan")]), cygrad.tensor([3.0, 2.0]))
    tensor([1., 2.])
    """
    no_complex(FMIN, input, other)
    return apply2(FMIN, input, other, out)


# -- bounds ------------------------------------------------------------------------------------------------

cdef object clamp_rule(OpNode n, object g):
    x = n.saved(0)
    low, high = n.args
    if low is None:
        return kept(g, x <= high)
    if high is None:
        return kept(g, x >= low)
    return kept(g, (x >= low) & (x <= high))

cdef OpDef CLAMP = op("clamp", clamp_rule).row(
    saves=IN0, flags=ELEMENTWISE | INPLACE, node="ClampBackward1", inputs="self", attributes="min max", aliases="clip")

cdef object clamp_tensor_rule(OpNode n, object g):
    x, low, high = n.saved(0), n.saved(1), n.saved(2)
    inside = below = above = None
    if low is not None:
        inside, below = x >= low, x < low
    if high is not None:
        inside = x <= high if inside is None else inside & (x <= high)
        above = x > high
        if low is not None:         # where the bounds are the wrong way round the upper one holds
            below, above = below & (low < high), above | (high < low)
    return (kept(g, inside) if n.needs(0) else None,
            kept(g, below) if n.needs(1) else None,
            kept(g, above) if n.needs(2) else None)

cdef OpDef CLAMP_TENSOR = op("clamp.Tensor", clamp_tensor_rule).row(
    saves=IN0 | IN1 | IN2, flags=ELEMENTWISE | PRIVATE, node="ClampBackward0", inputs="self min max")

cdef tuple CLAMP_SIGNATURES = (
    "Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None",
    "Tensor input, Number min = None, Number max = None, *, Tensor out = None")

cpdef Tensor clamp(object input, object min=None, object max=None, Tensor out=None):
    """`input` kept between `min` and `max`, elementwise; where `min` > `max` it is `max`.

    The bounds are both numbers or both tensors (which broadcast), or one of them is None. Saves `input` and tensor
    bounds. Gradient: g for `input` where it lies between the bounds or on one, else for the bound that it passes.
    Raises RuntimeError without bounds or for complex tensors, TypeError for a number with a tensor as bounds.

    >>> import cygrad
    >>> cygrad.clamp(cygrad.tensor([-2.0, 0.5, 3.0]), min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if isinstance(input, Tensor) and isinstance(min, Tensor) != isinstance(max, Tensor):
        min, max = as_number(min, max), as_number(max, min)
    by_tensors = check_bounds(CLAMP, input, min, max, out)
    array = clamp_array(<Tensor>input, min, max)
    if by_tensors:
        return finish(CLAMP_TENSOR, array, (input, min, max), None, out)
    return finish(CLAMP, array, (input,), (min, max), out)


cdef object as_number(object bound, object other):
    """A 0-dim tensor without gradient counts as a number beside a number."""
    if isinstance(bound, Tensor) and isinstance(other, (int, float)) and bound.ndim == 0 and not bound.requires_grad:
        return bound.item()
    return bound


cdef bint check_bounds(OpDef op, object input, object low, object high, Tensor out) except -1:
    """Raise unless the bounds are all numbers (False) or all tensors (True); None goes with both."""
    cdef bint by_tensors = isinstance(low, Tensor) or isinstance(high, Tensor)
    accepted = (Tensor, type(None)) if by_tensors else (int, float, type(None))
    if not isinstance(input, Tensor) or not isinstance(low, accepted) or not isinstance(high, accepted):
        given = [value for value in (input, low, high) if value is not None]
        raise messages.no_such_call(op.name, given, {}, CLAMP_SIGNATURES)
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if out is not None and not by_tensors:
        messages.check_clamp_type(result_type((input, low, high)), out)
    return by_tensors


cdef object clamp_array(Tensor input, object low, object high):
    cdef dtype kind = result_type((input, low, high))
    if kind.category == COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")
    check_fits(low, kind)
    check_fits(high, kind)
    return kernels.clamp(as_type(input, kind), as_type(low, kind) if isinstance(low, Tensor) else low,
                         as_type(high, kind) if isinstance(high, Tensor) else high)


cdef int check_fits(object number, dtype kind) except -1:
    """Raise if a number (rather than a tensor or None) is too large for the type it is to have."""
    if isinstance(number, (int, float)) and (kind.category == INTEGRAL or not -6e4 < number < 6e4):
        element(number, kind.numpy)
    return 0


cdef Tensor finish(OpDef op, object array, tuple inputs, tuple args, Tensor out):
    if out is not None:
        return write_into(op, out, array, inputs, args)
    return record_n(op, array, inputs, args)


cdef object clamp_min_rule(OpNode n, object g):
    return kept(g, n.saved(0) >= n.args[0])

cdef OpDef CLAMP_MIN = op("clamp_min", clamp_min_rule).row(
    saves=IN0, flags=ELEMENTWISE | INPLACE, inputs="self", attributes="min")

cdef object clamp_min_tensor_rule(OpNode n, object g):
    inside = n.saved(0) >= n.saved(1)
    return (kept(g, inside) if n.needs(0) else None,
            kept(g, n.saved(0) < n.saved(1)) if n.needs(1) else None)

cdef OpDef CLAMP_MIN_TENSOR = op("clamp_min.Tensor", clamp_min_tensor_rule).row(
    saves=IN0 | IN1, flags=ELEMENTWISE | PRIVATE, node="ClampMinBackward1", inputs="self min")

cpdef Tensor clamp_min(object input, object min, Tensor out=None):
    """`clamp` with a lower bound alone, a number or a tensor.

    >>> import cygrad
    >>> cygrad.clamp_min(cygrad.tensor([-2.0, 0.5]), 0)
    tensor([0.0000, 0.5000])
    """
    by_tensors = check_bounds(CLAMP_MIN, input, min, None, out)
    array = clamp_array(<Tensor>input, min, None)
    if by_tensors:
        return finish(CLAMP_MIN_TENSOR, array, (input, min), None, out)
    return finish(CLAMP_MIN, array, (input,), (min,), out)


cdef object clamp_max_rule(OpNode n, object g):
    return kept(g, n.saved(0) <= n.args[0])

cdef OpDef CLAMP_MAX = op("clamp_max", clamp_max_rule).row(
    saves=IN0, flags=ELEMENTWISE | INPLACE, inputs="self", attributes="max")

cdef object clamp_max_tensor_rule(OpNode n, object g):
    inside = n.saved(0) <= n.saved(1)
    return (kept(g, inside) if n.needs(0) else None,
            kept(g, n.saved(0) > n.saved(1)) if n.needs(1) else None)

cdef OpDef CLAMP_MAX_TENSOR = op("clamp_max.Tensor", clamp_max_tensor_rule).row(
    saves=IN0 | IN1, flags=ELEMENTWISE | PRIVATE, node="ClampMaxBackward1", inputs="self max")

cpdef Tensor clamp_max(object input, object max, Tensor out=None):
    """`clamp` with an upper bound alone, a number or a tensor.

    >>> import cygrad
    >>> cygrad.clamp_max(cygrad.tensor([-2.0, 0.5]), 0)
    tensor([-2.,  0.])
    """
    by_tensors = check_bounds(CLAMP_MAX, input, None, max, out)
    array = clamp_array(<Tensor>input, None, max)
    if by_tensors:
        return finish(CLAMP_MAX_TENSOR, array, (input, max), None, out)
    return finish(CLAMP_MAX, array, (input,), (max,), out)


# -- by a condition ----------------------------------------------------------------------------------------

cdef object where_rule(OpNode n, object g):
    condition = n.saved(2)
    return (where(condition, g, 0.0) if n.needs(0) else None,
            where(condition, 0.0, g) if n.needs(1) else None)

cdef OpDef WHERE = op("where", where_rule).row(
    saves=(0, 0, IN2), flags=ELEMENTWISE, inputs="self other condition")

cdef tuple WHERE_SIGNATURES = (
    "Tensor condition", "Tensor condition, Tensor input, Tensor other, *, Tensor out = None",
    "Tensor condition, Number self, Tensor other", "Tensor condition, Tensor input, Number other",
    "Tensor condition, Number self, Number other")

cpdef object where(object condition, object input=None, object other=None, Tensor out=None):
    """Elements of `input` where `condition` holds, elements of `other` elsewhere; all three broadcast.

    `input` and `other` may be numbers; types are promoted. Saves `condition`. Gradients: g where the condition holds,
    and g elsewhere; 0 for what is not taken. With `condition` alone: the indices of what is not zero, as
    `nonzero(condition, as_tuple=True)`.

    Raises RuntimeError for a condition that is not boolean and for shapes that do not broadcast.

    >>> import cygrad
    >>> x = cygrad.tensor([-1.0, 2.0])
    >>> cygrad.where(x > 0, x, 0.0)
    tensor([0., 2.])
    >>> cygrad.where(x > 0)
    (tensor([1]),)
    """
    cdef Tensor result
    cdef dtype kind, widest
    if input is None and other is None and isinstance(condition, Tensor):
        return lookup("nonzero").entry(condition, as_tuple=True)
    if not (isinstance(condition, Tensor) and isinstance(input, (Tensor, int, float, complex))
            and isinstance(other, (Tensor, int, float, complex))):
        given = [value for value in (condition, input) if value is not None]
        raise messages.no_such_call("where", given if other is None and input is not None else (
            condition, input, other), {}, WHERE_SIGNATURES)
    check_condition(<Tensor>condition)
    kind = result_type((input, other))
    widest = promote_types(kind, default_dtype()) if kind.category == FLOATING else kind
    check_fits(input, widest)
    check_fits(other, widest)
    array = pointwise.where((<Tensor>condition).array, as_type(input, kind), as_type(other, kind))
    if out is not None:
        if dtype_of(out) is not kind:
            raise RuntimeError(f"Expected out type to be {kind.type_name} but got {dtype_of(out).type_name}")
        return write_into(WHERE, out, array, (input, other), None)
    result = record2(WHERE, array, input, other, None)
    if result.grad_fn_ is not None:
        (<OpNode>result.grad_fn_).save_input(2, condition)      # saved, but no input of the node
    return result


cdef int check_condition(Tensor condition) except -1:
    cdef dtype kind = dtype_of(condition)
    if kind.category == BOOLEAN:
        return 0
    if kind.name != "uint8":
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                           f"{kind.type_name}\n  compare it with something first: `condition != 0`")
    warnings.warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
                  "future version of PyTorch. Use a boolean condition instead.", UserWarning, stacklevel=2)
    return 0


def where_method(self, condition, other):
    """Elements of this tensor where `condition` holds, elements of `other` elsewhere; see `cygrad.where`."""
    return where(condition, self, other)


where_method.__name__ = where_method.__qualname__ = "where"

methods = {"where": where_method}
functions = publish(globals())
