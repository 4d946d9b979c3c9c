"""Cumulative extrema and log-sum-exp along an axis."""

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.indexing.axis_ops import has_scans, lines
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

RUNNING_EXTREMA = LOOPS.RUNNING_EXTREMA


@silent
def accumulated(ufunc, a, axis):
    """`ufunc.accumulate`, also for 0-dim arrays."""
    return ufunc.accumulate(a, axis, out=np.empty(a.shape, a.dtype, like=a)) if a.ndim else a.copy()


def running_extremum(a, axis, largest):
    """Return (cumulative maximum or minimum along an axis, its index). The last of equal ones wins; NaN propagates."""
    if a.ndim and a.size and has_scans(a) and a.shape[axis] < 1 << 31:
        values, indices = new_array(a.shape, a.dtype.num), new_array(a.shape, np.dtype(np.int64).num)
        n, inner, items, piece = lines(a, axis)
        loop_table.run(
            RUNNING_EXTREMA, (dense(a), values, indices), (n, inner, not largest, a.dtype.kind == "i"), 0, items, piece
        )
        return values, indices
    values = accumulated(np.maximum if largest else np.minimum, a, axis)
    indices = np.zeros(a.shape, np.int64)
    if a.ndim:
        places = np.arange(a.shape[axis]).reshape([-1] + [1] * (a.ndim - 1 - axis))
        # NaN equals nothing; where the extremum is NaN, the index is that of the last NaN
        np.copyto(indices, places, where=(a == values) | (a != a))
        np.maximum.accumulate(indices, axis, out=indices)
    return values, indices


def logcumsumexp(a, axis):
    """log(exp(a[0]) + ... + exp(a[i])) without overflow."""
    if a.dtype.kind != "c" or a.ndim == 0:
        return accumulated(np.logaddexp, a, axis)
    # Factor out the element with the larger real part: exp(larger) * (1 + rest).
    out = a.copy()
    rows, result = np.moveaxis(a, axis, 0), np.moveaxis(out, axis, 0)
    with np.errstate(all="ignore"):
        before = np.full(rows.shape[1:], -np.inf, a.dtype)
        for i in range(len(rows)):
            before = result[i] = log_of_sum(rows[i], before)
    return out


@noted
def logcumsumexp_gradient(g, x, y, axis):
    """The sum over k >= i of g[k] * exp(x[i] - y[k]), real, where y is `logcumsumexp` of x.

    Computed in logarithms, since neither factor is bounded, hence separately for g > 0 and g < 0; chunk by chunk from
    the end.
    """
    out = np.empty_like(x)
    rows, points, sums, result = (np.moveaxis(a, axis, 0) for a in (g, x, y, out))
    after = {1: -np.inf, -1: -np.inf}  # log-sums over all later rows
    step = max(1, len(rows) * chunks.SIZE // g.size)
    with np.errstate(all="ignore"):
        for start in reversed(range(0, len(rows), step)):
            part = slice(start, start + step)
            g, y = rows[part], sums[part]
            sizes = np.log(np.abs(g)) - np.where(y == -np.inf, 0, y)
            found = []
            for sign in after:
                logs = np.where((np.sign(g) == sign) & (y > -np.inf), sizes, x.dtype.type(-np.inf))[::-1]
                logs[0] = np.logaddexp(logs[0], after[sign])
                np.logaddexp.accumulate(logs, 0, out=logs)
                after[sign] = logs[-1].copy()
                found.append(np.exp(logs[::-1] + points[part]))
            positive, negative = found
            np.subtract(positive, negative, out=result[part])
    return out


@noted
def log_of_sum(a, b):
    """log(exp(a) + exp(b)) of complex numbers, without overflow; of two zeros, exp(-inf), that of `b`."""
    is_less = a.real < b.real
    larger, smaller = np.where(is_less, b, a), np.where(is_less, a, b)
    found = larger + np.log1p(np.exp(smaller - larger))
    is_infinite = np.isinf(a.real) & (a.real == b.real)  # so that their difference is NaN
    if is_array(a) or is_infinite.any():  # whether a GPU found one is not asked, which would wait for it
        found = np.where(is_infinite, np.where(a.real < 0, b, np.log(np.exp(a) + np.exp(b))), found)
    return np.where(np.isnan(a) | np.isnan(b), np.nan * (1 + 1j), found).astype(found.dtype, copy=False)


dispatching(globals(), "running_extremum logcumsumexp")
