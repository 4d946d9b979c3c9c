"""Running extrema and log-sums along an axis."""

import numpy as np

from cygrad._kernels.dispatch import dispatching


def accumulated(ufunc, a, axis):
    """`ufunc.accumulate`, for arrays without dimensions too."""
    with np.errstate(all="ignore"):
        return ufunc.accumulate(a, axis) if a.ndim else a.copy()


def running_extremum(a, axis, largest):
    """(the largest or smallest element so far along an axis, its index). Of equal ones the last counts; nan stays."""
    values = accumulated(np.maximum if largest else np.minimum, a, axis)
    indices = np.zeros(a.shape, np.int64)
    if a.ndim:
        places = np.arange(a.shape[axis]).reshape([-1] + [1] * (a.ndim - 1 - axis))
        # nan is unlike all; where the value so far is nan, the index is that of the last nan
        np.copyto(indices, places, where=(a == values) | (a != a))
        np.maximum.accumulate(indices, axis, out=indices)
    return values, indices


def logcumsumexp(a, axis):
    """log(exp(a[0]) + ... + exp(a[i])) without overflow."""
    if a.dtype.kind != "c" or a.ndim == 0:
        return accumulated(np.logaddexp, a, axis)
    # By the larger real part: r = exp(larger) * (1 + what is left).
    out = a.copy()
    rows, result = np.moveaxis(a, axis, 0), np.moveaxis(out, axis, 0)
    with np.errstate(all="ignore"):
        for i in range(1, len(rows)):
            result[i] = log_of_sum(result[i - 1], rows[i])
    return out


def log_of_sum(a, b):
    """log(exp(a) + exp(b)) of complex numbers, without overflow."""
    is_first = a.real >= b.real
    larger, smaller = np.where(is_first, a, b), np.where(is_first, b, a)
    return larger + np.log1p(np.exp(smaller - larger))


dispatching(globals(), "running_extremum logcumsumexp")
