"""Normalization by mean and standard deviation over some axes of an array, forward and backward.

A `Frame` describes the normalization of an array. Statistics keep the axes they are over, with length 1. float16 and
bfloat16 are computed in float32.

float32 and float64 have compiled loops (fused_normalization.py) for statistics over the last axes, over all axes but
the second, and
over all axes after the second; everything else is composed of NumPy functions.
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
from cygrad._kernels.tape.calls import noted

LONGEST_ROW = 1 << 16  # elements whose sum may be accumulated in their own type
SHORTEST_RUN = 8  # for fewer elements a loop is not worth its overhead
FEW = 4096  # total elements; up to this it always is


class Frame:
    """The shape in which an input is viewed, and how its statistics are computed."""

    def __init__(self, view, axes, parameter, shared, centered, fixed, eps):
        self.view = view  # the shape
        self.axes = axes  # of the statistics
        self.parameter = parameter  # the shape of weight and bias, which broadcasts
        self.shared = shared  # axes along which it broadcasts
        self.centered = centered  # whether the mean is subtracted
        self.fixed = fixed  # whether the statistics are given instead of computed from the input
        self.eps = eps
        self.kept = tuple([1 if axis in axes else n for axis, n in enumerate(view)])  # the shape of the statistics

    def of_part(self, view, parameter):
        """The frame for a part of the input."""
        return Frame(view, self.axes, parameter, self.shared, self.centered, self.fixed, self.eps)

    @cached_property
    def first(self):
        """The first axis of the statistics, if statistics and weights cover it and all later axes; else -1."""
        first = len(self.view) - len(self.axes)
        return first if self.axes[:1] == (first,) and self.parameter == (1,) * first + self.view[first:] else -1

    @cached_property
    def row(self):
        """The number of elements that share statistics, if these are rows for which there are loops; else 0."""
        length = 0 if self.fixed or self.first < 0 else math.prod(self.view[self.first :])
        return length if length <= LONGEST_ROW else 0

    @cached_property
    def groups_first(self):
        """Whether groups are along the first two axes (group norm); otherwise along the second (batch norm)."""
        return self.axes[:1] == (2,)

    @cached_property
    def has_groups(self):
        """Whether groups are along the second axis or the first two, and weights are per channel."""
        ndim, start = len(self.view), 3 if self.groups_first else 2
        axes, of_channels = tuple(range(2, ndim)), (1, *self.view[1:start]) + (1,) * (ndim - start)
        return ndim > 1 and self.axes in (axes, (0, *axes)) and self.parameter == of_channels and 0 not in self.view

    @cached_property
    def groups(self):
        """The groups of an array in C order, if there are loops that are worth their overhead; else None."""
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
        """Return (groups of a channels-last image, order of its dimensions in memory, inverse order)."""
        ndim, (n, channels, *sizes) = len(self.view), self.view
        orders = (0, *range(2, ndim), 1), (0, ndim - 1, *range(1, ndim - 1))
        return fused_normalization.Columns(n * math.prod(sizes), channels), *orders

    def groups_of(self, x):
        """Return (groups for which there are loops, or None; the order of dimensions for them; the inverse order)."""
        if not self.has_groups:
            return None, None, None
        if len(self.view) > 3 and not (self.groups_first or x.flags.c_contiguous):
            if x.transpose(self.channels_last[1]).flags.c_contiguous:
                return self.channels_last
        return self.groups, None, None


@noted
def wide(a, shape):
    """Reshape the array, and widen it to a type to compute in. On GPUs the kernels take care of the type."""
    if a.shape != shape:
        a = a.reshape(shape)
    return a.astype(np.float32) if a.itemsize == 2 and isinstance(a, np.ndarray) else a


def normalized(x, weight, bias, frame, given, running=None):
    """Normalize an array of shape `frame.view`.

    Returns (result, mean, 1 / deviation, mean square about the mean or None). `given` is (mean, mean square) or None;
    weight and bias have the shape `frame.parameter`, or are None. `running` statistics, (means, variances, momentum),
    are updated from those of the channels.
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
    """`normalized`, followed by an update of the running statistics."""
    means, variances, momentum = running
    found = _, middle, _, squares = normalized(x, weight, bias, frame, None)
    follow(means, middle, variances, squares, x.size // middle.size, momentum)
    return found


@silent
def _in_passes(x, weight, bias, frame, given):
    middle, squares = given or statistics(x, frame.axes, frame.centered)
    factor = as_array(1 / np.sqrt(squares + frame.eps)).astype(x.dtype, copy=False)
    if given is None and type(x) is np.ndarray and not are_accurate(factor):
        factor = _relative_factor(x, middle, factor, frame)
    return scaled(standardized(x, middle, factor), weight, bias), middle, factor, squares


def are_accurate(factor):
    """Whether no mean square is near the ends of the range, so that even the sum of 2^40 squares is in it."""
    return bool(_is_accurate(factor).all())


def _is_accurate(factor):
    info = np.finfo(factor.dtype)
    return (factor > 2.0**20 / np.sqrt(info.max)) & (factor < np.sqrt(info.eps / info.tiny))


@silent
def scale_of_squares(factor):
    """Powers of two near the factors, by which to multiply numbers before they are squared; None if no square needs it.

    On GPUs always powers of two, because looking at the factors would wait for them.
    """
    if type(factor) is np.ndarray and are_accurate(factor):
        return None
    _, exponent = np.frexp(factor)
    exponent[~np.isfinite(factor)] = 0
    return np.ldexp(np.ones_like(factor), exponent)


def _relative_factor(x, middle, plain, frame):
    """1 / sqrt(mean square + eps) from numbers divided by the largest; `plain` where that is accurate or no number is
    finite and not 0."""
    away = np.abs(x - middle)
    largest = away.max(frame.axes, keepdims=True, initial=0)
    largest = np.where((largest > 0) & np.isfinite(largest), largest, np.nan)
    away /= largest
    found = 1 / np.sqrt(mean(np.square(away, out=away), frame.axes, True) + frame.eps / largest / largest) / largest
    return np.where(np.isnan(largest) | _is_accurate(plain), plain, found).astype(x.dtype)


@silent
def gradients(g, x, weight, middle, factor, frame, needs):
    """Gradients of input, weight and bias from that of the result; `needs` selects them. Others are None.

    The input x is not used for the gradient of the bias alone.
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
    """Compute the gradients by NumPy, in chunks along an axis whose indices have separate statistics."""
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
    """Compute the gradients by NumPy if each weight has its own statistics, as in batch norm.

    Works chunk by chunk, with a first pass for the sums.
    """
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
        if grad_weight is not None and grad_weight is products:  # nothing was summed
            products = products.copy()
        grad_input = input_gradient(g, xhat, products, factor, weight, frame.axes, frame.centered, frame.fixed)
    return grad_input, grad_weight, grad_bias


# -- by NumPy --


def statistics(x, axes, centered):
    """Return (mean, or 0 if not centered; mean square about it)."""
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
    """a * weight + bias, in place in `a`; both may be None."""
    if weight is not None:
        np.multiply(a, weight, out=a)
    if bias is not None:
        np.add(a, bias, out=a)
    return a


def input_gradient(g, xhat, products, factor, weight, axes, centered, fixed):
    """Gradient of `standardized` with respect to x, with x's own statistics or, if `fixed`, given ones.

    `products` are g * xhat; xhat and products are overwritten.
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
    """Sum over all groups that share a weight."""
    return sums if groups.sums == groups.weights else sums.reshape(-1, groups.weights).sum(0)


@noted
def follow(means, middle, variances, squares, count, momentum):
    """Update running statistics with new ones, computed over `count` elements each.

    As in PyTorch, this does not count as an in-place modification.
    """
    if fused_normalization.follow(means, middle, variances, squares, count, momentum):
        return
    with np.errstate(all="ignore"):
        means *= 1 - momentum
        means += middle.reshape(means.shape) * momentum
        variances *= 1 - momentum
        variances += (squares * (count / (count - 1) if count > 1 else math.nan)).reshape(variances.shape) * momentum


@noted
def window_sums(a, size, before):
    """Sums over windows along dimension 1: each element, `before` elements before it, and the rest after it."""
    out = np.zeros_like(a)
    length = a.shape[1]
    for shift in range(-before, size - before):
        low, high = max(0, -shift), min(length, length - shift)
        if low < high:
            out[:, low:high] += a[:, low + shift : high + shift]
    return out


dispatching(globals(), "normalized gradients")
