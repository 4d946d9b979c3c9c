"""Normalization of float32 and float64, forward and backward, in as few passes as possible (`normalization.h`).

`normalize_rows` and `rows_gradients` normalize contiguous rows. `normalize_groups` and `groups_gradients` normalize
groups, which consist of contiguous runs (`Runs`) or of matrix columns (`Columns`).
"""

import math
from functools import lru_cache

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import dense, new_array, zeros
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.platform.thresholds import PIECE

NORMALIZE_ROWS, ROWS_GRADIENT = LOOPS.NORMALIZE_ROWS, LOOPS.ROWS_GRADIENT
NORMALIZE_RUNS, RUNS_GRADIENT = LOOPS.NORMALIZE_RUNS, LOOPS.RUNS_GRADIENT
NORMALIZE_COLUMNS, COLUMNS_GRADIENT = LOOPS.NORMALIZE_COLUMNS, LOOPS.COLUMNS_GRADIENT
FOLLOW = LOOPS.FOLLOW
FEWEST_COLUMNS = 128  # per chunk, so that whole cache lines are read
FEWEST_ROWS = 16  # per chunk, so that the chunks' sums take little memory

has_loops, of_size = loop_table.has_loops, loop_table.of_size


def fitting(a, like, shape):
    """Return the array, made dense, after checking its shape and that its type is that of `like`."""
    if a.shape != shape or a.dtype != like.dtype:
        raise ValueError(f"an array of shape {a.shape} and type {a.dtype} instead of {shape} and {like.dtype}")
    return dense(a)


# -- rows --


@lru_cache(256)
def rows_of_piece(n):
    return max(FEWEST_ROWS, PIECE // max(n, 1))


def each(values, like, count, fill=1):
    """`of_size`, but for None an array filled with a number."""
    if values is None:
        values = new_array((count,), like.dtype.num)
        values.fill(fill)
    return of_size(values, like, count)


def normalize_rows(x, weight, bias, n, kept, eps, centered):
    """Normalize rows of n elements: (x - mean) * factor * weight + bias. Returns (result, mean, factor).

    factor is 1 / sqrt(variance + eps); weight and bias have n elements, or are None. If not `centered`, the mean is 0.
    The last two results have the shape `kept`.
    """
    x = dense(x)
    typenum, m = x.dtype.num, x.size // n
    out, mean, factor = new_array(x.shape, typenum), new_array(kept, typenum), new_array(kept, typenum)
    if mean.size != m:
        raise ValueError(f"statistics of shape {kept} for {m} rows")
    arrays = x, each(weight, x, n), each(bias, x, n, 0), out, mean, factor
    loop_table.run(NORMALIZE_ROWS, arrays, (n, centered), eps, m, rows_of_piece(n))
    return out, mean, factor


def rows_gradients(g, x, weight, mean, factor, shape, centered, of_input, of_weight, of_bias):
    """Gradients of x, weight and bias of `normalize_rows`, from that of its result; None for unwanted ones.

    The last two have the given shape, with as many elements as a row.
    """
    x, n = dense(x), math.prod(shape)
    m, piece = x.size // n, rows_of_piece(n)
    given = each(g, x, x.size), x, each(weight, x, n), each(mean, x, m), each(factor, x, m)
    out = new_array(x.shape, x.dtype.num) if of_input else None
    sums = zeros((2, -(-m // piece), *shape), x.dtype.num)  # per chunk, for the weight and for the bias
    loop_table.run(ROWS_GRADIENT, (*given, out, *sums), (n, centered), 0, m, piece)
    grad_weight, grad_bias = sums.sum(1)
    return out, grad_weight if of_weight else None, grad_bias if of_bias else None


# -- groups --


class Runs:
    """Groups of several contiguous runs each, in a C-order array."""

    normalize, gradient = NORMALIZE_RUNS, RUNS_GRADIENT

    def __init__(self, groups, runs, length, steps, kinds, weight_steps):
        """Set up the groups.

        `steps` are from group to group and from run to run. The weight index is group % kinds * step + run * step.
        """
        self.groups = groups
        self.size = groups * runs * length
        self.sums = groups * runs if weight_steps[1] else groups  # one for each weight of a group
        self.weights = kinds * runs if weight_steps[1] else kinds
        self.numbers = runs, length, *steps, kinds, *weight_steps
        self.piece = PIECE // max(runs * length, 1)


class Columns:
    """Groups that are the columns of a matrix."""

    normalize, gradient = NORMALIZE_COLUMNS, COLUMNS_GRADIENT

    def __init__(self, rows, columns):
        self.groups = self.sums = self.weights = columns
        self.size = rows * columns
        self.numbers = rows, columns
        self.piece = max(FEWEST_COLUMNS, PIECE // max(rows, 1))


def normalize_groups(x, weight, bias, groups, kept, eps, given):
    """Normalize each group: (x - mean) * factor * weight + bias. Returns (result, mean, factor, mean square).

    factor is 1 / sqrt(mean square about the mean + eps); given are mean and mean square, or None. Weight and bias have
    an element for each kind of group, and each run of these, or are None. The last three results have the shape `kept`.
    """
    x = of_size(x, x, groups.size)
    typenum, count = x.dtype.num, groups.groups
    out, factor = new_array(x.shape, typenum), of_size(new_array(kept, typenum), x, count)
    if given is None:
        mean, square = new_array(kept, typenum), new_array(kept, typenum)
    else:
        mean, square = of_size(given[0], x, count), of_size(given[1], x, count)
    arrays = x, of_size(weight, x, groups.weights), of_size(bias, x, groups.weights), out, mean, square, factor
    loop_table.run(groups.normalize, arrays, (*groups.numbers, given is not None), eps, count, groups.piece)
    return out, mean, factor, square


def groups_gradients(g, x, weight, mean, factor, groups, fixed, of_input, of_weights):
    """Return (gradient of x, sums of g, sums of g * (x - mean) * factor) for `normalize_groups`; None for unwanted
    ones.

    There is a sum for each group and weight of it; the caller adds up groups of one kind. `fixed`: statistics were
    given.
    """
    x, typenum = of_size(x, x, groups.size), x.dtype.num
    given = of_size(g, x, groups.size), x, of_size(weight, x, groups.weights)
    out = new_array(x.shape, typenum) if of_input else None
    sums = products = None
    if of_weights or not fixed:
        sums, products = new_array((groups.sums,), typenum), new_array((groups.sums,), typenum)
    arrays = *given, of_size(mean, x, groups.groups), of_size(factor, x, groups.groups), out, sums, products
    loop_table.run(groups.gradient, arrays, (*groups.numbers, fixed), 0, groups.groups, groups.piece)
    return out, sums, products


def follow(means, middle, variances, squares, count, momentum):
    """Update running statistics with new ones over `count` elements each. Return whether there is a loop for it."""
    if type(means) is not np.ndarray or not has_loops(means):
        return False
    if not means.dtype == variances.dtype == middle.dtype == squares.dtype:
        return False
    if not (means.flags.c_contiguous and variances.flags.c_contiguous):
        return False
    arrays = means, dense(middle), variances, dense(squares)
    loop_table.run(FOLLOW, arrays, (count,), momentum, means.size, means.size)
    return True
