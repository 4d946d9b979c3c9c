"""Subtracting means and dividing by deviations, over some axes of an array, forward and backward.

An array is normalised by a `Frame`. Statistics keep the axes they are over, of length 1. float16 and its kin are
computed in float32.

float32 and float64 have loops of their own (norms.pyx) for statistics over the last axes, over all axes but the second,
and over all axes after the second; all else is put together of NumPy's functions.
"""

import math
from functools import cached_property
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


class Frame:
    """How an input is looked at, and what its statistics are."""

    def __init__(self, view, axes, parameter, shared, centered, fixed, eps):
        self.view = view  # the shape
        self.axes = axes  # over which the statistics are
        self.parameter = parameter  # the shape of weight and bias, which broadcasts
        self.shared = shared  # the axes along which it does
        self.centered = centered  # is a mean subtracted?
        self.fixed = fixed  # are the statistics given, and not those of the input?
        self.eps = eps
        self.kept = tuple([1 if axis in axes else n for axis, n in enumerate(view)])  # the shape of statistics

    def of_part(self, view, parameter):
        """The same for a part of the input."""
        return Frame(view, self.axes, parameter, self.shared, self.centered, self.fixed, self.eps)

    @cached_property
    def first(self):
        """The first axis of the statistics, if they and weights are over that and all later ones; or -1."""
        first = len(self.view) - len(self.axes)
        return first if self.axes[:1] == (first,) and self.parameter == (1,) * first + self.view[first:] else -1

    @cached_property
    def row(self):
        """How many elements have statistics in common, if these are rows for which there are loops; or 0."""
        length = 0 if self.fixed or self.first < 0 else math.prod(self.view[self.first :])
        return length if length <= LONGEST_ROW else 0

    @cached_property
    def groups_first(self):
        """Whether groups are along the first two axes, as with group norm, or along the second, as with batch norm."""
        return self.axes[:1] == (2,)

    @cached_property
    def runs(self):
        """The shape of the input as groups of runs, for which there are loops; or None."""
        ndim, start = len(self.view), 3 if self.groups_first else 2
        length = math.prod(self.view[start:])
        if (
            self.axes not in ((0, *range(2, ndim)), tuple(range(2, ndim)))
            or self.parameter[start:] != (1,) * (ndim - start)
            or length < SHORTEST_RUN
            or 0 in self.view
        ):
            return None
        first, second = self.view[:2]
        return (first * second, self.view[2], length) if self.groups_first else (first, second, length)

    @cached_property
    def spread(self):
        """(the shape of what belongs to runs, of what belongs to groups, of weights), which broadcast."""
        first, second = self.view[:2]
        if self.groups_first:
            inner = self.view[2]
            return (first, second, inner), (first, second, 1), (1, second, inner)
        return (second, first), (second, 1), (second, 1)


def wide(a):
    """The array in a type to compute in, which on GPUs kernels care for; None for None."""
    return a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype.itemsize == 2 else a


def normalized(x, weight, bias, frame, given):
    """(result, mean, 1 / deviation, mean square about the mean or None) of an array of shape `frame.view`.

    `given` is (mean, mean square) or None; weight and bias have the shape `frame.parameter`, or are None.
    """
    if norms.has_loops(x):
        if frame.row:
            return (*norms.normalize_rows(x, weight, bias, frame.row, frame.kept, frame.eps, frame.centered), None)
        if frame.runs:
            return _normalized_runs(x, weight, bias, frame, *given or (None, None))
    return _in_passes(x, weight, bias, frame, given)


@silent
def _in_passes(x, weight, bias, frame, given):
    middle, squares = given or statistics(x, frame.axes, frame.centered)
    factor = as_array(1 / np.sqrt(squares + frame.eps)).astype(x.dtype, copy=False)
    return scaled(standardized(x, middle, factor), weight, bias), middle, factor, squares


@silent
def gradients(g, x, weight, middle, factor, frame, needs):
    """The gradients of input, weight and bias, from that of the result; `needs` tells which. Others are None.

    The input x is not looked at for the gradient of the bias alone.
    """
    of_input, of_weight, of_bias = needs
    if of_input or of_weight:
        if norms.has_loops(x):
            if frame.row:
                return norms.rows_gradients(g, x, weight, middle, factor, frame.parameter, frame.centered, *needs)
            if frame.runs:
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
        grads = _gradients(*(*arrays, frame.of_part(view, parameter), needs))
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


def shaped(a, shape):
    """The array with that shape."""
    return a if a.shape == shape else a.reshape(shape)


# -- groups of runs ----------------------------------------------------------------------------------------


def _for_runs(frame, dtype, of_groups, weight):
    """Numbers of groups times weights, or numbers alone: an array (groups, runs)."""
    shape, groups_shape, weights_shape = frame.spread
    out = np.empty(shape, dtype)
    if weight is None:
        out[...] = of_groups if type(of_groups) is int else of_groups.reshape(groups_shape)
    elif type(of_groups) is int:
        out[...] = weight.reshape(weights_shape)
    else:
        np.multiply(of_groups.reshape(groups_shape), weight.reshape(weights_shape), out)
    return out if out.ndim == 2 else out.reshape(-1, shape[2])


def _over_runs(sums, frame):
    """Sums (groups, runs) over all that share a weight."""
    if frame.groups_first:
        return sums.reshape(frame.view[:3]).sum(0)
    return sums.sum(1)


@silent
def _normalized_runs(x, weight, bias, frame, middle, squares):
    runs, groups_first = x.reshape(frame.runs), frame.groups_first
    if middle is None:
        middle, squares = norms.moments(runs, groups_first)
    else:
        middle, squares = middle.astype(x.dtype, copy=False).reshape(-1), squares.reshape(-1)
    factor = (1 / np.sqrt(squares + frame.eps)).astype(x.dtype, copy=False)
    scale, shift = _for_runs(frame, x.dtype, factor, weight), _for_runs(frame, x.dtype, 0, bias)
    out = norms.scale_runs(runs, middle, scale, shift, groups_first)
    kept = frame.kept
    return out.reshape(frame.view), middle.reshape(kept), factor.reshape(kept), squares.reshape(kept)


def _gradients_of_runs(g, x, weight, middle, factor, frame, needs):
    of_input, of_weight, of_bias = needs
    groups_first = frame.groups_first
    runs, grads, middle, factor = x.reshape(frame.runs), g.reshape(frame.runs), middle.reshape(-1), factor.reshape(-1)
    grad_input = grad_weight = grad_bias = None
    if of_weight or of_bias or not frame.fixed:
        sums, products = norms.sums_of_runs(grads, runs, middle, groups_first)
        if of_weight:
            grad_weight = _over_runs(products * factor[:, None], frame).reshape(frame.parameter)
        if of_bias:
            grad_bias = _over_runs(sums, frame).reshape(frame.parameter)
    if of_input:
        scale = _for_runs(frame, x.dtype, factor, weight)
        if frame.fixed:
            none = np.zeros_like(scale)
            grad_input = norms.scale_runs(grads, np.zeros_like(middle), scale, none, groups_first)
        else:
            count = runs.size // len(middle)
            if weight is not None:
                w = _for_runs(frame, x.dtype, 1, weight)
                sums, products = w * sums, w * products
            level = -factor * sums.sum(1) / count
            along = -(factor**3) * products.sum(1) / count
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
