"""Subtracting means and dividing by deviations, over some axes of an array, forward and backward.

An array is normalised by a `Frame`. Statistics keep the axes they are over, of length 1. float16 and its kin are
computed in float32.

float32 and float64 have loops of their own (norms.py) for statistics over the last axes, over all axes but the second,
and over all axes after the second; all else is put together of NumPy's functions.
"""

import math
from functools import cached_property
from typing import Any

import numpy as np

import cygrad._kernels.cpu.nn.fused_normalization as fused_normalization
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import mean, sum_to
from cygrad._kernels.cpu.base.stack_chunks import cut
from cygrad._kernels.device.cupy_library import as_array
from cygrad._kernels.device.dispatch import dispatching

LONGEST_ROW = 1 << 16  # elements whose sum may be taken in their own type
SHORTEST_RUN = 8  # for fewer elements a loop is not worth its start
FEW = 4096  # elements in all, for which it always is


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
    def has_groups(self):
        """Whether elements are in groups, along the second axis or the first two, and weights are those of channels."""
        ndim, start = len(self.view), 3 if self.groups_first else 2
        axes, of_channels = tuple(range(2, ndim)), (1, *self.view[1:start]) + (1,) * (ndim - start)
        return ndim > 1 and self.axes in (axes, (0, *axes)) and self.parameter == of_channels and 0 not in self.view

    @cached_property
    def groups(self):
        """The groups of an array in C order, if there are loops that are worth their start; or None."""
        first, second, *sizes = self.view
        if self.groups_first:
            runs, *sizes = sizes
        length = math.prod(sizes)
        if length == 1 and not self.groups_first:
            return fused_normalization.Columns(first, second)
        if length < SHORTEST_RUN and math.prod(self.view) > FEW:
            return None
        if self.groups_first:
            return fused_normalization.Runs(first * second, runs, length, (runs * length, length), second, (runs, 1))
        return fused_normalization.Runs(second, first, length, (length, second * length), second, (1, 0))

    @cached_property
    def channels_last(self):
        """(the groups of an image that has its channels last, the order of dimensions in memory, the order back)."""
        ndim, (n, channels, *sizes) = len(self.view), self.view
        orders = (0, *range(2, ndim), 1), (0, ndim - 1, *range(1, ndim - 1))
        return fused_normalization.Columns(n * math.prod(sizes), channels), *orders

    def groups_of(self, x):
        """(groups for which there are loops, or None, the order of dimensions in which they are, the order back)."""
        if not self.has_groups:
            return None, None, None
        if len(self.view) > 3 and not (self.groups_first or x.flags.c_contiguous):
            if x.transpose(self.channels_last[1]).flags.c_contiguous:
                return self.channels_last
        return self.groups, None, None


def wide(a, shape):
    """The array in that shape, and in a type to compute in, which on GPUs kernels care for."""
    if a.shape != shape:
        a = a.reshape(shape)
    return a.astype(np.float32) if a.itemsize == 2 and isinstance(a, np.ndarray) else a


def normalized(x, weight, bias, frame, given, running=None):
    """(result, mean, 1 / deviation, mean square about the mean or None) of an array of shape `frame.view`.

    `given` is (mean, mean square) or None; weight and bias have the shape `frame.parameter`, or are None. `running`
    statistics, (means, variances, momentum), follow those of channels.
    """
    if running is not None:
        return normalized_and_followed(x, weight, bias, frame, running)
    if fused_normalization.has_loops(x):
        if frame.row:
            return (
                *fused_normalization.normalize_rows(x, weight, bias, frame.row, frame.kept, frame.eps, frame.centered),
                None,
            )
        groups, *orders = frame.groups_of(x)
        if groups:
            return _normalized_groups(x, weight, bias, frame, given, groups, *orders)
    return _in_passes(x, weight, bias, frame, given)


def normalized_and_followed(x, weight, bias, frame, running):
    """`normalized`, and then running statistics follow."""
    means, variances, momentum = running
    found = _, middle, _, squares = normalized(x, weight, bias, frame, None)
    follow(means, middle, variances, squares, x.size // middle.size, momentum)
    return found


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
        if fused_normalization.has_loops(x):
            if frame.row:
                return fused_normalization.rows_gradients(
                    g, x, weight, middle, factor, frame.parameter, frame.centered, *needs
                )
            groups, *orders = frame.groups_of(x)
            if groups:
                return _gradients_of_groups(g, x, weight, middle, factor, frame, needs, groups, *orders)
        axis = next((i for i, n in enumerate(x.shape) if n > 1), 0)
        if type(x) is np.ndarray and x.size > chunks.SIZE:
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
    step = max(1, length * chunks.SIZE // x.size)
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


# -- by NumPy --


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


# -- groups --


def _in_order(a, order):
    return a if order is None else a.transpose(order)


def _normalized_groups(x, weight, bias, frame, given, groups, order, back):
    if order is None:
        return fused_normalization.normalize_groups(x, weight, bias, groups, frame.kept, frame.eps, given)
    out, *found = fused_normalization.normalize_groups(
        x.transpose(order), weight, bias, groups, frame.kept, frame.eps, given
    )
    return out.transpose(back), *found


def _gradients_of_groups(g, x, weight, middle, factor, frame, needs, groups, order, back):
    of_input, of_weight, of_bias = needs
    arrays = _in_order(g, order), _in_order(x, order), weight, middle, factor
    wanted = frame.fixed, of_input, of_weight or of_bias
    grad, sums, products = fused_normalization.groups_gradients(*arrays, groups, *wanted)
    grad_weight, grad_bias = (
        _of_weights(a, groups).reshape(frame.parameter) if needed else None
        for a, needed in ((products, of_weight), (sums, of_bias))
    )
    return grad if grad is None else _in_order(grad, back), grad_weight, grad_bias


def _of_weights(sums, groups):
    """Sums over all groups that share a weight."""
    return sums if groups.sums == groups.weights else sums.reshape(-1, groups.weights).sum(0)


def follow(means, middle, variances, squares, count, momentum):
    """Let running statistics take over a part of new ones, of so many elements each.

    As in PyTorch, that is no change that is counted.
    """
    if fused_normalization.follow(means, middle, variances, squares, count, momentum):
        return
    with np.errstate(all="ignore"):
        means *= 1 - momentum
        means += middle.reshape(means.shape) * momentum
        variances *= 1 - momentum
        variances += (squares * (count / (count - 1) if count > 1 else math.nan)).reshape(variances.shape) * momentum


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
