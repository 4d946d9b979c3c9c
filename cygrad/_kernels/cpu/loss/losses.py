"""Loss functions per element or per row. All arrays have the same floating-point type."""

import math

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array, private
from cygrad._kernels.cpu.base.elementary import exp, log, log1p
from cygrad._kernels.cpu.base.elementwise import clamp
from cygrad._kernels.cpu.base.elementwise import where as select
from cygrad._kernels.cpu.base.half_sums import widened
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.device.cupy_library import as_array, is_array
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

LABEL_MARGINS = LOOPS.LABEL_MARGINS
PIECE = 1 << 12  # elements per chunk


@by_loop("squared_error", 2)
def squared_error(x, y):
    """(x - y)^2."""
    with np.errstate(all="ignore"):
        d = as_array(x - y)
        return np.multiply(d, d, d)


def absolute_error(x, y):
    """|x - y|."""
    with np.errstate(all="ignore"):
        d = as_array(x - y)
        return np.abs(d, out=d)


@by_loop("smooth_l1", 2, lambda beta: (beta, 0.5 / beta))
def smooth_l1(x, y, beta):
    """0.5 * d^2 / beta for differences |d| up to beta, |d| - 0.5 * beta beyond."""
    with np.errstate(all="ignore"):
        d = np.abs(as_array(x - y))
        near = np.minimum(d, d.dtype.type(beta))
        return as_array(near * (d - near * d.dtype.type(0.5)) / d.dtype.type(beta))


@by_loop("huber", 2)
def huber(x, y, delta):
    """0.5 * d^2 for differences |d| up to delta, delta * (|d| - 0.5 * delta) beyond."""
    with np.errstate(all="ignore"):
        d = np.abs(as_array(x - y))
        near = np.minimum(d, d.dtype.type(delta))
        return as_array(near * (d - near * d.dtype.type(0.5)))


@by_loop("soft_margin", 2)
def soft_margin(x, y):
    """log(1 + exp(-x * y))."""
    with np.errstate(all="ignore"):
        z = as_array(-x * y)
        out = as_array(np.log1p(np.exp(z)))
        too_large = np.isinf(out)
        if is_array(out):
            return np.where(too_large, z, out)
        if too_large.any():
            np.copyto(out, z, where=too_large)
        return out


def soft_margin_of_labels(x, y):
    """`soft_margin` for integers `y`."""
    return soft_margin(x, y.astype(x.dtype))


def hinge(x, y, margin):
    """x where y is not -1, plus max(0, margin - x) where y is not 1; other values of y get both terms."""
    zero = np.zeros((), x.dtype, like=x)
    with np.errstate(all="ignore"):
        apart = as_array(np.maximum(x.dtype.type(margin) - x, zero))
        return as_array(select(as_array(y != -1), x, zero) + select(as_array(y != 1), apart, zero))


def margin_ranking(a, b, y, margin):
    """max(0, margin - y * (a - b))."""
    with np.errstate(all="ignore"):
        losses = as_array((b - a) * y)
        losses += losses.dtype.type(margin)
        return np.maximum(losses, losses.dtype.type(0), out=losses)


def poisson(x, y, log_input, full, eps):
    """Negative log-likelihood of counts y with expected values exp(x), or x; `full` adds log(y!) for y > 1."""
    with np.errstate(all="ignore"):
        losses = as_array(exp(x) - y * x if log_input else x - y * log(x + x.dtype.type(eps)))
        if full:
            stirling = y * log(y) - y + log(y * y.dtype.type(2 * math.pi)) * y.dtype.type(0.5)
            losses = as_array(losses + select(as_array(y > 1), as_array(stirling), np.zeros((), y.dtype, like=y)))
        return losses


def gaussian(x, y, var, constant):
    """(log(var) + (x - y)^2 / var) / 2 + constant; of half precision in float32, because the mean may be smaller."""
    x, y, var = map(widened, (x, y, var))
    with np.errstate(all="ignore"):
        away = as_array(x - y)
        losses = as_array(away / var)  # before the product, which may leave the range
        losses *= away
        losses += log(var)
        losses *= losses.dtype.type(0.5)
        losses += losses.dtype.type(constant)
        return losses


def kl_divergence(x, y):
    """y * (log(y) - x), with 0 * log(0) = 0."""
    with np.errstate(all="ignore"):
        losses = as_array(log(y) - x)
        losses = as_array(losses * y)
        if is_array(y):
            return np.where(y == 0, -x * y, losses)
        if y.size and not y.min() > 0:
            np.copyto(losses, -x * y, where=y == 0)
        return losses


@noted
@over_stacks(1, 0)
def multi_margin(x, target, weight, margin, p):
    """For each row, the mean over all classes of max(0, margin - x[target] + x)^p, skipping the target class."""
    rows, target = np.arange(len(x), like=x), private(target)
    with np.errstate(all="ignore"):
        gap = np.fmax(x - x[rows, target][:, None] + x.dtype.type(margin), 0)  # fmax ignores NaN
        gap[rows, target] = 0
        losses = (gap if p == 1 else gap * gap).sum(1) / x.dtype.type(x.shape[1])
        return losses if weight is None else losses * weight[target]


def multilabel_margin(x, target):
    """Return (losses, their derivatives, label masks) of rows: 1 - x[label] + x[other] where positive.

    Labels are those in `target` before the first -1. Sums are divided by the number of classes. Returns None if a label
    is out of range.
    """
    if not loop_table.has_loops(x):
        target = private(target)
        is_within = not target.size or (target.min() >= -1 and target.max() < x.shape[1])
        return _margins_by_numpy(x, target) if is_within else None
    found = (new_array(x.shape[:1], x.dtype.num), *(new_array(x.shape, x.dtype.num) for _ in range(2)))
    arrays = dense(x), dense(target), *found
    return (
        None
        if loop_table.run(LABEL_MARGINS, arrays, x.shape[1:], 0, len(x), max(1, PIECE // (x.shape[1] or 1)))
        else found
    )


@over_stacks(1, 1)
def _margins_by_numpy(x, target):
    n, classes = x.shape
    ends = target < 0
    counts = np.where(ends.any(1), ends.argmax(1), classes) if x.size else np.zeros(n, np.int64)
    counted = np.arange(counts.max(initial=0)) < counts[:, None]
    is_target = np.zeros(x.shape, x.dtype)
    for k in range(counted.shape[1]):
        rows = np.flatnonzero(counted[:, k])
        is_target[rows, target[rows, k]] = 1
    losses, slopes = np.zeros(n, x.dtype), np.zeros(x.shape, x.dtype)
    step = max(1, chunks.SIZE // (4 * max(1, classes)))
    for start in range(0, n, step):
        block = slice(start, start + step)
        _add_margins(x[block], target[block], counted[block], is_target[block] == 0, losses[block], slopes[block])
    for sums in (losses, slopes):
        sums /= x.dtype.type(classes)
    return losses, slopes, is_target


def _add_margins(x, target, counted, others, losses, slopes):
    for k in range(counted.shape[1]):  # one label per row at a time, which avoids a third dimension
        rows = np.nonzero(counted[:, k])[0]
        label = target[rows, k]
        part = slice(None) if len(rows) == len(x) else rows  # a slice avoids copies
        with np.errstate(all="ignore"):
            gap = (1 - x[rows, label])[:, None] + x[part]
        active = gap > 0
        active &= others[part]
        losses[part] += select(active, gap, np.zeros((), x.dtype)).sum(1)
        del gap
        step = active.astype(x.dtype)
        slopes[part] += step
        slopes[rows, label] -= step.sum(1)


def binary_cross_entropy(x, y, weight):
    """-(y * log(x) + (1 - y) * log(1 - x)) * weight, with logarithms clamped at -100. `weight` may be None."""
    with np.errstate(all="ignore"):
        losses = clamp(as_array(log1p(-x)), -100.0, None)
        losses *= y - 1
        likely = clamp(as_array(log(x)), -100.0, None)
        likely *= y
        losses -= likely
        return as_array(losses if weight is None else losses * weight)


def _none_if_weighted(weight, pos_weight):
    return () if weight is None and pos_weight is None else None


@by_loop("binary_cross_entropy_with_logits", 2, _none_if_weighted)
def binary_cross_entropy_with_logits(x, y, weight, pos_weight):
    """`binary_cross_entropy` of sigmoid(x), accurate for large |x|.

    `pos_weight` scales the first term. Both weights may be None.
    """
    with np.errstate(all="ignore"):
        minus_log_sigmoid = np.maximum(-x, 0) + log1p(exp(-np.abs(x)))
        if pos_weight is not None:
            minus_log_sigmoid = ((pos_weight - 1) * y + 1) * minus_log_sigmoid
        losses = (1 - y) * x + minus_log_sigmoid
        return as_array(losses if weight is None else losses * weight)


dispatching(globals(), "multilabel_margin")
