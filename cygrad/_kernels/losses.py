"""The losses of all elements. The arrays have one floating-point type."""

import numpy as np


def squared_error(x, y):
    """(x - y)^2."""
    with np.errstate(all="ignore"):
        d = np.asarray(x - y)
        return np.multiply(d, d, d)


def smooth_l1(x, y, beta):
    """0.5 * d^2 / beta up to a difference |d| of beta, |d| - 0.5 * beta beyond."""
    with np.errstate(all="ignore"):
        d = np.abs(np.asarray(x - y))
        half, beta = d.dtype.type(0.5), d.dtype.type(beta)
        return np.where(d < beta, half * d * d / beta, d - half * beta)


def binary_cross_entropy(x, y, weight):
    """-(y * log(x) + (1 - y) * log(1 - x)) * weight; logarithms end at -100. `weight` may be None."""
    least = x.dtype.type(-100)
    with np.errstate(all="ignore"):
        losses = (y - 1) * np.maximum(np.log1p(-x), least) - y * np.maximum(np.log(x), least)
        return np.asarray(losses if weight is None else losses * weight)


def binary_cross_entropy_with_logits(x, y, weight, pos_weight):
    """The same of sigmoid(x), exact for large |x|; `pos_weight` counts the first term more often. Both may be None."""
    with np.errstate(all="ignore"):
        minus_log_sigmoid = np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))
        if pos_weight is not None:
            minus_log_sigmoid = ((pos_weight - 1) * y + 1) * minus_log_sigmoid
        losses = (1 - y) * x + minus_log_sigmoid
        return np.asarray(losses if weight is None else losses * weight)
