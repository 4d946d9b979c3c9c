"""Cross-entropy of rows of scores (N, C) with classes (N,) of int64, by loops over rows (`scores.h`).

Softmax and its logarithm are one pass over the scores, and so is the gradient. Types that have no loops take more.
"""

import numpy as np

import cygrad._kernels.native as native
from cygrad._kernels.arrays import new_array
from cygrad._kernels.nn import log_softmax, nll, nll_backward
from cygrad._kernels.norms import dense, floats

CROSS_ENTROPY, CROSS_ENTROPY_GRADIENT = 12, 13  # as in native.h
PIECE = 1 << 14  # scores that one thread works on
NONE, MEAN = 0, 1  # reductions; the third is the sum

has_loops = native.has_loops


def _classes(target, rows):
    if target.shape != (rows,):
        raise ValueError(f"classes of shape {target.shape} for {rows} rows")
    return np.require(target, np.int64, ["C", "A"])


def cross_entropy(x, target, weight, ignore_index, reduction):
    """(loss, the sum of the weights of the rows' classes, softmax of the rows). `reduction` is that of `nll`.

    A class that is none raises ``IndexError``.
    """
    if not native.has_loops(x) or not x.size:
        logs = log_softmax(x, 1)
        return *nll(logs, target, weight, ignore_index, reduction), np.exp(logs)
    x = floats(x, 2)
    rows, classes = x.shape
    target = _classes(target, rows)
    softmax, logs = new_array(x.shape, x.dtype.num), np.empty((rows, 1), x.dtype)
    native.run(CROSS_ENTROPY, (x, target, softmax, logs), (classes,), 0, rows, PIECE // classes)
    # the logarithms that count, as if they were those of all classes
    loss, total = nll(np.broadcast_to(logs, x.shape), target, weight, ignore_index, reduction)
    return loss, total, softmax


def cross_entropy_backward(grad, softmax, target, weight, ignore_index, reduction, total):
    """The gradient of the scores, from that of the loss, of shape (N,) or ()."""
    if not native.has_loops(softmax) or not softmax.size:
        of_logs = nll_backward(grad, softmax, target, weight, ignore_index, reduction, total)
        return of_logs - softmax * of_logs.sum(1, keepdims=True)
    rows, classes = softmax.shape
    target = _classes(target, rows)
    factors = np.empty(rows, softmax.dtype)
    with np.errstate(all="ignore"):
        factors[...] = grad / total if reduction == MEAN else grad
        if weight is not None:
            factors *= weight.take(target, mode="clip")
    factors[target == ignore_index] = 0
    out = new_array(softmax.shape, softmax.dtype.num)
    arrays = dense(softmax, softmax, (rows, classes)), target, factors, out
    native.run(CROSS_ENTROPY_GRADIENT, arrays, (classes,), 0, rows, PIECE // classes)
    return out
