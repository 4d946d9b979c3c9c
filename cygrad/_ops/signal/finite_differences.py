"""Numerical derivatives of sampled functions by finite differences; composed of other ops."""

from cygrad._core.engine.blocked_gradients import owned
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, facts, publish, variant
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.signal import finite_differences as kernels
from cygrad._ops.base.arguments import integer, integers, is_integer, require, wrap_dims
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.slicing import cat, narrow
from cygrad._ops.base.views import reshape
from cygrad._ops.common.blocked_composites import LINEAR_STEPS, is_own_number, linear_steps


@facts(overloads="1")
def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """Estimate the derivatives along each of `dim` (default: all) with second-order accuracy, as a tuple of tensors.

    With spacing h, the derivative at an inner sample i is (x[i + 1] - x[i - 1]) / (2 h), at the first
    (x[1] - x[0]) / h, or (-3 x[0] + 4 x[1] - x[2]) / (2 h) with `edge_order` 2, and likewise at the last.

    `spacing` is the distance between neighboring samples, one number for all dimensions or one per dimension, 1 by
    default; or a vector of coordinates per dimension. At the ends, one-sided differences of order `edge_order`, 1 or 2,
    are used. Raises RuntimeError for a spacing that does not fit and for dimensions shorter than edge_order + 1.

    >>> import cygrad
    >>> cygrad.gradient(cygrad.tensor([1.0, 2.0, 4.0, 8.0]))
    (tensor([1.0000, 1.5000, 3.0000, 4.0000]),)
    """
    t, order = require(input, "gradient"), integer(edge_order, "gradient", "edge_order", 4)
    given = dim is not None
    wanted = tuple(range(t.ndim)) if not given else (dim,) if is_integer(dim) else integers(dim, "gradient", "dim", 3)
    steps = _steps(t, spacing, len(wanted), given)
    if order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for step in steps:
        if isinstance(step, Tensor) and step.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{step.ndim} dimensions!"
            )
    dims = wrap_dims(wanted, t.ndim)
    if dims and not t.ndim:
        raise messages.no_dimensions(wanted[0])
    for d in dims:
        if array_of(t).shape[d] < order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    if is_own_number(t, *steps) and len(dims) > 1:
        args = (dims, steps, order)
        return linear_steps(_along_each, kernels.each_difference, kernels.from_each_difference, t, args, EVENLY)
    return _along_each(t, dims, steps, order)


def _along_each(t, dims, steps, order):
    return tuple(_along(t, d, step, order) for d, step in zip(dims, steps))


def _along(t, d, step, order):
    if isinstance(step, Tensor):
        return _by_coordinates(t, d, step, order)
    if not is_own_number(t, step):
        return _evenly(t, d, step, order)
    return linear_steps(
        _evenly, kernels.central_differences, kernels.from_central_differences, t, (d, step, order), EVENLY
    )


def _steps(t, spacing, count, given):
    """Return a number or a vector of coordinates for each dimension."""
    if isinstance(spacing, Tensor) and not spacing.ndim and not spacing.requires_grad:
        spacing = spacing.item()
    if spacing is None or not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else spacing] * count
    if len(spacing) != count and given:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacing)} and a dim argument of length {count}."
        )
    if len(spacing) != count:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{t.ndim}', since dim argument was not given, but got a list of length {len(spacing)}"
        )
    return list(spacing)


def _parts(t, d):
    """Return (the length of dimension d, a function that returns `count` elements along it from a start index)."""
    length = array_of(t).shape[d]
    return length, lambda start, count=1: narrow(t, d, start % length, count)


EVENLY = variant(LINEAR_STEPS, "CatBackward0")


def _evenly(t, d, step, order):
    length, part = _parts(t, d)
    inner = sub(part(2, length - 2), part(0, length - 2))
    inner = div(inner, 2 * step, out=owned(inner))
    if order == 1:
        first, last = div(sub(part(1), part(0)), step), div(sub(part(-1), part(-2)), step)
    else:
        first = div(_weighted(part, (0, 1, 2), (-1.5, 2, -0.5)), step)
        last = div(_weighted(part, (-3, -2, -1), (0.5, -2, 1.5)), step)
    return cat((first, inner, last), d)


def _weighted(part, places, weights):
    """Return the weighted sum of three slices."""
    a, b, c = (mul(part(place), weight) for place, weight in zip(places, weights))
    return add(add(a, b), c)


def _by_coordinates(t, d, coordinates, order):
    """Differentiate the parabola through three neighbors, for coordinates with any spacing."""
    length, part = _parts(t, d)
    steps = sub(coordinates[1:], coordinates[:-1])

    def along(vector):
        return reshape(vector, (-1,) + (1,) * (t.ndim - 1 - d))

    before, after = along(steps[:-1]), along(steps[1:])
    both = add(before, after)
    weights = (  # divided twice, because products of steps may leave the range
        neg(div(div(after, both), before)),
        div(div(sub(after, before), before), after),
        div(div(before, both), after),
    )
    left, middle, right = (part(start, length - 2) for start in range(3))
    inner = add(add(mul(left, weights[0]), mul(middle, weights[1])), mul(right, weights[2]))
    if order == 1:
        return cat((div(sub(part(1), part(0)), steps[0]), inner, div(sub(part(-1), part(-2)), steps[-1])), d)
    first = _weighted(part, (0, 1, 2), _of_end(steps[0], steps[1], -1))
    last = _weighted(part, (-1, -2, -3), _of_end(steps[-1], steps[-2], 1))
    return cat((first, inner, last), d)


def _of_end(near, far, sign):
    """Return the weights of the end and the next two samples, given their distances; `sign` is -1 at the start."""
    both = add(near, far)
    return (
        mul(div(div(add(both, near), both), near), sign),
        mul(div(div(both, near), far), -sign),
        mul(div(div(near, both), far), sign),
    )


composite = {"gradient": FUNCTION_ONLY}
functions = publish(globals())
