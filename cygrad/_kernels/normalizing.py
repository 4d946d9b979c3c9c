"""Subtracting means and dividing by deviations, over some axes of an array, forward and backward.

An array is normalised by a `frame` (_ops/normalization.py): its shape, the axes of the statistics, the shape of weight
and bias, and whether statistics are given. Statistics keep the axes they are over, of length 1. float16 and its kin are
computed in float32.

float32 and float64 have loops of their own (norms.pyx) for statistics over the last axes, over all axes but the second,
and over all axes after the second; all else is put together of NumPy's functions.
"""

import math
from typing import Any

import numpy as np

import cygrad._kernels.norms as norms
from cygrad._kernels import blocks
from cygrad._kernels.by_numpy import silent
from cygrad._kernels.dispatch import dispatching
from cygrad._kernels.gpu.library import as_array
from cygrad._kernels.reduce import mean, sum_to
from cygrad._kernels.stacks import cut

LONGEST_ROW = 1 << 16  # elements whose sum may be taken in their own type
SHORTEST_RUN = 8  # for fewer elements a loop is not worth its start


def wide(a):
    """The array in a type to compute in, which on GPUs kernels care for; None for None."""
    return a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype.itemsize == 2 else a


def normalized(x, weight, bias, frame, given):
    """(result, mean, 1 / deviation, mean square about the mean or None) of an array of shape `frame.view`.

    `given` is (mean, mean square) or None; weight and bias have the shape `frame.parameter`, or are None.
    """
    first = _first_of_rows(x, frame)
    return _normalized_rows(x, weight, bias, frame, first) if first >= 0 else _in_passes(x, weight, bias, frame, given)


@silent
def _in_passes(x, weight, bias, frame, given):
    middle, squares = given or ((None, None) if _are_runs(x, frame) else statistics(x, frame.axes, frame.centered))
    if _are_runs(x, frame):
        return _normalized_runs(x, weight, bias, frame, middle, squares)
    factor = as_array(1 / np.sqrt(squares + frame.eps)).astype(x.dtype, copy=False)
    return scaled(standardized(x, middle, factor), weight, bias), middle, factor, squares


@silent
def gradients(g, x, weight, middle, factor, frame, needs):
    """The gradients of input, weight and bias, from that of the result; `needs` tells which. Others are None.

    The input x is not looked at for the gradient of the bias alone.
    """
    of_input, of_weight, of_bias = needs
    if of_input or of_weight:
        first = _first_of_rows(x, frame)
        if first >= 0:
            return _gradients_of_rows(g, x, weight, middle, factor, frame, needs, first)
        if _are_runs(x, frame):
            return _gradients_of_runs(g, x, weight, middle, factor, frame, needs)
        axis = next((i for i, n in enumerate(x.shape) if n > 1), 0)
        if type(x) is np.ndarray and x.size > blocks.SIZE:
            if axis not in frame.axes:
                return _gradients_in_parts(g, x, weight, middle, factor, frame, needs, axis)
            if axis == 0 and frame.parameter == np.shape(middle):
                return _gradients_by_sums(g, x, weight, middle, factor, frame, needs)
    return _gradients(g, x, weight, middle, factor, frame, needs)


def _gradients_in_parts(g, x, weight, middle, factor, frame, needs, axis):
    """By NumPy, for one part after the other of the first axis, along which statistics are apart."""
    found: list[Any] = [np.empty(x.shape, x.dtype) if needs[0] else None]
    found += [np.zeros(frame.parameter, x.dtype) if wanted else None for wanted in needs[1:]]
    for part in _blocks_of(x, axis):
        arrays = [
            cut(a, part, axis) if isinstance(a, np.ndarray) and a.ndim else a for a in (g, x, weight, middle, factor)
        ]
        view, parameter = (
            (*shape[:axis], min(shape[axis], part.stop - part.start), *shape[axis + 1 :])
            for shape in (frame.view, frame.parameter)
        )
        grads = _gradients(*(*arrays, frame._replace(view=view, parameter=parameter), needs))
        for whole, grad in zip(found, grads):
            if grad is not None and whole.shape[axis] > 1:
                cut(whole, part, axis)[...] = grad
            elif grad is not None:
                whole += grad
        del grads, grad
    return found


def _blocks_of(x, axis=0):
    length = x.shape[axis]
    step = max(1, length * blocks.SIZE // x.size)
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _gradients_by_sums(g, x, weight, middle, factor, frame, needs):
    """By NumPy, where each weight has statistics of its own, as in batch norm: block by block, first only the sums."""
    products: Any = 0.0
    sums: Any = 0.0
    for part in _blocks_of(x):
        xhat = standardized(x[part], middle, factor)
        products = products + sum_to(np.multiply(xhat, g[part], out=xhat), frame.parameter).astype(np.float64)
        sums = sums + sum_to(np.ascontiguousarray(g[part]), frame.parameter).astype(np.float64)
    grad_input = None
    if needs[0]:
        count = 0 if frame.fixed else factor.size / x.size
        w = factor.dtype.type(1) if weight is None else weight
        along, level, scale = ((a * factor * w).astype(x.dtype) for a in (products * count, sums * count, 1))
        grad_input = np.empty(x.shape, x.dtype)
        for part in _blocks_of(x):
            xhat, scaled = standardized(x[part], middle, factor), np.multiply(g[part], scale, out=grad_input[part])
            scaled -= np.multiply(xhat, along, out=xhat)
            scaled -= level
    grads = (products.astype(x.dtype), sums.astype(x.dtype))
    return grad_input, *[grad if wanted else None for grad, wanted in zip(grads, needs[1:])]


def _gradients(g, x, weight, middle, factor, frame, needs):
    of_input, of_weight, of_bias = needs
    if of_input or of_weight:
        xhat = standardized(x, middle, factor)
        products = as_array(g * xhat)
    grad_weight = sum_to(products, frame.parameter) if of_weight else None
    grad_bias = sum_to(np.ascontiguousarray(g), frame.parameter) if of_bias else None
    grad_input = None
    if of_input:
        if grad_weight is not None and grad_weight is products:  # not summed over anything
            products = products.copy()
        grad_input = input_gradient(g, xhat, products, factor, weight, frame.axes, frame.centered, frame.fixed)
    return grad_input, grad_weight, grad_bias


# -- by NumPy ----------------------------------------------------------------------------------------------


def statistics(x, axes, centered):
    """(mean, or 0 if not centered, and mean square about it)."""
    middle = mean(x, axes, True) if centered else x.dtype.type(0)
    d = x - middle if centered else x
    return middle, mean(np.multiply(d, d, out=d if centered else None), axes, True)


def standardized(x, middle, factor):
    """(x - middle) * factor."""
    if not isinstance(middle, np.ndarray):
        return as_array(x * factor)
    d = as_array(x - middle)
    return np.multiply(d, factor, out=d)


def scaled(a, weight, bias):
    """a * weight + bias in a's memory; both may be None."""
    if weight is not None:
        np.multiply(a, weight, out=a)
    if bias is not None:
        np.add(a, bias, out=a)
    return a


def input_gradient(g, xhat, products, factor, weight, axes, centered, fixed):
    """The gradient of the input: of `standardized` with statistics of x itself, or, if `fixed`, with given ones.

    `products` are g * xhat; both are overwritten.
    """
    own = weight is None or weight.dtype == xhat.dtype == products.dtype == g.dtype
    if fixed:
        return (g if weight is None else g * weight) * factor
    out = products if weight is None else np.multiply(products, weight, out=products if own else None)
    np.multiply(xhat, mean(out, axes, True), out=out)
    h = g if weight is None else np.multiply(g, weight, out=xhat if own else None)
    np.subtract(h, out, out=out)
    if centered:
        np.subtract(out, mean(np.ascontiguousarray(h), axes, True), out=out)
    return np.multiply(out, factor, out=out)


# -- rows --------------------------------------------------------------------------------------------------


def _first(frame):
    """The first axis of the statistics, if they are over that and all later ones, and weights are over the same."""
    first = len(frame.view) - len(frame.axes)
    return first if frame.axes[:1] == (first,) and frame.parameter == (1,) * first + frame.view[first:] else -1


def _first_of_rows(x, frame):
    """The same for arrays whose rows have a loop; else -1."""
    first = -1 if frame.fixed or not norms.has_loops(x) else _first(frame)
    return first if first >= 0 and 0 < math.prod(frame.view[first:]) <= LONGEST_ROW else -1


def shaped(a, shape):
    """The array with that shape."""
    return a if a.shape == shape else a.reshape(shape)


def _flat_weight(x, weight, fill, length):
    return np.full(length, fill, x.dtype) if weight is None else weight.reshape(-1)


def _normalized_rows(x, weight, bias, frame, first):
    view = frame.view
    n = math.prod(view[first:])
    w, b = _flat_weight(x, weight, 1, n), _flat_weight(x, bias, 0, n)
    rows = shaped(x, (math.prod(view[:first]), n))
    out, middle, factor = norms.normalize_rows(rows, w, b, frame.eps, frame.centered)
    kept = view[:first] + (1,) * (len(view) - first)
    return shaped(out, view), middle.reshape(kept), factor.reshape(kept), None


def _gradients_of_rows(g, x, weight, middle, factor, frame, needs, first):
    n = math.prod(frame.view[first:])
    shape = math.prod(frame.view[:first]), n
    given = shaped(x, shape), _flat_weight(x, weight, 1, n), middle.reshape(-1), factor.reshape(-1)
    found = norms.rows_gradients(shaped(g, shape), *given, frame.centered, *needs)
    return [None if a is None else shaped(a, s) for a, s in zip(found, (frame.view, frame.parameter, frame.parameter))]


# -- groups of runs ----------------------------------------------------------------------------------------


def _groups_first(frame):
    """Whether groups are along the first two axes, as with group norm, or along the second, as with batch norm."""
    return frame.axes[:1] == (2,)


def _are_runs(x, frame):
    ndim = len(frame.view)
    start = 3 if _groups_first(frame) else 2
    return (
        frame.axes in ((0, *range(2, ndim)), tuple(range(2, ndim)))
        and frame.parameter[start:] == (1,) * (ndim - start)
        and norms.has_loops(x)
        and math.prod(frame.view[start:]) >= SHORTEST_RUN
        and math.prod(frame.view) > 0
    )


def _as_runs(x, frame):
    first, second, *rest = frame.view
    if _groups_first(frame):
        return x.reshape(first * second, rest[0], math.prod(rest[1:]))
    return x.reshape(first, second, math.prod(rest))


def _for_runs(values, frame):
    """Weights as an array (groups, runs)."""
    first, second, *rest = frame.view
    if _groups_first(frame):
        return np.broadcast_to(values.reshape(1, second, rest[0]), (first, second, rest[0])).reshape(-1, rest[0])
    return np.broadcast_to(values.reshape(second, 1), (second, first))


def _over_runs(sums, frame):
    """Sums (groups, runs) over all that share a weight."""
    if _groups_first(frame):
        return sums.reshape(frame.view[:3]).sum(0)
    return sums.sum(1)


def _normalized_runs(x, weight, bias, frame, middle, squares):
    runs, groups_first = _as_runs(x, frame), _groups_first(frame)
    if middle is None:
        middle, squares = norms.moments(runs, groups_first)
    kept = tuple(1 if axis in frame.axes else n for axis, n in enumerate(frame.view))
    middle, squares = middle.astype(x.dtype, copy=False).reshape(-1), squares.reshape(-1)
    factor = (1 / np.sqrt(squares + frame.eps)).astype(x.dtype, copy=False)
    scale = factor[:, None] * _for_runs(np.ones(frame.parameter, x.dtype) if weight is None else weight, frame)
    shift = _for_runs(np.zeros(frame.parameter, x.dtype) if bias is None else bias, frame)
    out = norms.scale_runs(runs, middle, scale, np.ascontiguousarray(shift), groups_first)
    return out.reshape(frame.view), middle.reshape(kept), factor.reshape(kept), squares.reshape(kept)


def _gradients_of_runs(g, x, weight, middle, factor, frame, needs):
    of_input, of_weight, of_bias = needs
    groups_first = _groups_first(frame)
    runs, grads, middle, factor = _as_runs(x, frame), _as_runs(g, frame), middle.reshape(-1), factor.reshape(-1)
    w = _for_runs(np.ones(frame.parameter, x.dtype) if weight is None else weight, frame)
    grad_input = grad_weight = grad_bias = None
    if of_weight or of_bias or not frame.fixed:
        sums, products = norms.sums_of_runs(grads, runs, middle, groups_first)
        if of_weight:
            grad_weight = _over_runs(products * factor[:, None], frame).reshape(frame.parameter)
        if of_bias:
            grad_bias = _over_runs(sums, frame).reshape(frame.parameter)
    if of_input:
        scale = factor[:, None] * w
        if frame.fixed:
            none = np.zeros_like(scale)
            grad_input = norms.scale_runs(grads, np.zeros_like(middle), scale, none, groups_first)
        else:
            count = runs.size // len(middle)
            level = -factor * (w * sums).sum(1) / count
            along = -(factor**3) * (w * products).sum(1) / count
            grad_input = norms.combine_runs(grads, runs, middle, scale, along, level, groups_first)
        grad_input = grad_input.reshape(frame.view)
    return grad_input, grad_weight, grad_bias


def window_sums(a, size, before):
    """The sum over windows of dimension 1: the element, `before` elements before it, and others after it."""
    out = np.zeros_like(a)
    length = a.shape[1]
    for shift in range(-before, size - before):
        low, high = max(0, -shift), min(length, length - shift)
        if low < high:
            out[:, low:high] += a[:, low + shift : high + shift]
    return out


dispatching(globals(), "normalized gradients")
