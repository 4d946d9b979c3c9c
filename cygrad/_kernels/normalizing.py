"""Subtracting means and dividing by deviations, over some axes of an array, forward and backward.

Statistics keep the axes they are over, of length 1. float16 and the like are computed in float32.
"""

import numpy as np

from cygrad._kernels.reduce import mean, sum_to


def wide(a):
    """The array in a type to compute in; None for None."""
    return a.astype(np.float32) if a is not None and a.dtype.itemsize == 2 else a


def statistics(x, axes, centered):
    """(mean, or 0 if not centered, and mean square about it)."""
    with np.errstate(all="ignore"):
        middle = mean(x, axes, True) if centered else x.dtype.type(0)
        d = x - middle if centered else x
        return middle, mean(np.multiply(d, d, out=d if centered else None), axes, True)


def standardized(x, middle, factor):
    """(x - middle) * factor."""
    with np.errstate(all="ignore"):
        if not isinstance(middle, np.ndarray):
            return np.asarray(x * factor)
        d = np.asarray(x - middle)
        return np.multiply(d, factor, out=d)


def scaled(a, weight, bias):
    """a * weight + bias in a's memory; both may be None."""
    with np.errstate(all="ignore"):
        if weight is not None:
            np.multiply(a, weight, out=a)
        if bias is not None:
            np.add(a, bias, out=a)
        return a


def input_gradient(g, xhat, factor, weight, axes, centered, fixed):
    """The gradient of the input: of `standardized` with statistics of x itself, or, if `fixed`, with given ones."""
    with np.errstate(all="ignore"):
        h = g if weight is None else g * weight
        if fixed:
            return h * factor
        out = np.asarray(h * xhat)
        np.multiply(xhat, mean(out, axes, True), out=out)
        np.subtract(h, out, out=out)
        if centered:
            np.subtract(out, mean(np.ascontiguousarray(h), axes, True), out=out)
        return np.multiply(out, factor, out=out)


def weight_gradient(g, xhat, shape):
    """The gradient of a weight of that shape, which broadcasts."""
    with np.errstate(all="ignore"):
        return sum_to(np.asarray(g * xhat), shape)


def bias_gradient(g, shape):
    """The same of a bias."""
    return sum_to(np.ascontiguousarray(g), shape)


def window_sums(a, size, before):
    """The sum over windows of dimension 1: the element, `before` elements before it, and others after it."""
    out = np.zeros_like(a)
    length = a.shape[1]
    for shift in range(-before, size - before):
        low, high = max(0, -shift), min(length, length - shift)
        if low < high:
            out[:, low:high] += a[:, low + shift : high + shift]
    return out
