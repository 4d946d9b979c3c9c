"""Normalisations of float32 and float64, forward and backward, in as few passes as there are (`norms.h`).

Of rows: `normalize_rows` and `rows_gradients`. Of groups of runs, an array (a, b, length) whose groups are along its
first dimension and each group's runs along the second, or the other way round: its passes one by one, which
normalizing.py puts together. Numbers that belong to runs are arrays (groups, runs), those of groups (groups,).
"""

import math

import numpy as np

import cygrad._kernels.native as native
from cygrad._kernels.arrays import dense, new_array, zeros

NORMALIZE_ROWS, ROWS_GRADIENT, MOMENTS, SCALE_RUNS, SUMS_OF_RUNS, COMBINE_RUNS = range(6)  # as in native.h
PIECE = 1 << 14  # elements that one thread works on
FEWEST_ROWS = 16  # of a piece, so that sums of pieces take little memory

has_loops = native.has_loops


def fitting(a, like, shape):
    """The array, dense, which must have that shape and the type of another."""
    if a.shape != shape or a.dtype != like.dtype:
        raise ValueError(f"an array of shape {a.shape} and type {a.dtype} instead of {shape} and {like.dtype}")
    return dense(a)


def floats(x, ndim):
    """The array, dense, of so many dimensions and of a type that has loops."""
    if type(x) is not np.ndarray or x.ndim != ndim or not has_loops(x):
        raise ValueError(f"not an array of {ndim} dimensions of float32 or float64")
    return dense(x)


# -- rows --------------------------------------------------------------------------------------------------


def rows_of_piece(n):
    return max(FEWEST_ROWS, PIECE // max(n, 1))


def each(values, like, count, fill=1):
    """The array, dense, which must have so many elements of the type of another; for None one filled with a number."""
    if values is None:
        values = new_array((count,), like.dtype.num)
        values.fill(fill)
    elif values.size != count or values.dtype != like.dtype:
        raise ValueError(f"an array of {values.size} elements and type {values.dtype}, not {count} and {like.dtype}")
    return dense(values)


def normalize_rows(x, weight, bias, n, kept, eps, centered):
    """(result, mean, factor) for an array of rows of n elements: (x - mean) * factor * weight + bias.

    factor is 1 / sqrt(variance + eps); weight and bias have n elements, or are None. Not `centered`: the mean is 0. The
    last two results have the shape `kept`.
    """
    x = dense(x)
    typenum, m = x.dtype.num, x.size // n
    out, mean, factor = new_array(x.shape, typenum), new_array(kept, typenum), new_array(kept, typenum)
    if mean.size != m:
        raise ValueError(f"statistics of shape {kept} for {m} rows")
    arrays = x, each(weight, x, n), each(bias, x, n, 0), out, mean, factor
    native.run(NORMALIZE_ROWS, arrays, (n, centered), eps, m, rows_of_piece(n))
    return out, mean, factor


def rows_gradients(g, x, weight, mean, factor, shape, centered, of_input, of_weight, of_bias):
    """(gradient of x, of weight, of bias) of `normalize_rows`, from that of its result; None for what is not wanted.

    The last two have that shape, of as many elements as a row.
    """
    x, n = dense(x), math.prod(shape)
    m, piece = x.size // n, rows_of_piece(n)
    given = each(g, x, x.size), x, each(weight, x, n), each(mean, x, m), each(factor, x, m)
    out = new_array(x.shape, x.dtype.num) if of_input else None
    sums = zeros((2, -(-m // piece), *shape), x.dtype.num)  # of pieces, those for the weight and those for the bias
    native.run(ROWS_GRADIENT, (*given, out, *sums), (n, centered), 0, m, piece)
    grad_weight, grad_bias = sums.sum(1)
    return out, grad_weight if of_weight else None, grad_bias if of_bias else None


# -- groups of runs ----------------------------------------------------------------------------------------


def run_groups(loop, x, groups_first, arrays):
    """Run a loop over the groups of x."""
    a, b, length = x.shape
    groups, runs, steps = (a, b, (b * length, length)) if groups_first else (b, a, (length, b * length))
    native.run(loop, arrays, (runs, length, *steps), 0, groups, PIECE // max(runs * length, 1))


def shapes(x, groups_first):
    """The shapes of what belongs to groups and to runs."""
    groups, runs = x.shape[:2] if groups_first else x.shape[1::-1]
    return (groups,), (groups, runs)


def moments(x, groups_first):
    """(mean, mean square about it) of each group."""
    x = floats(x, 3)
    of_groups = shapes(x, groups_first)[0]
    mean, square = np.empty(of_groups, x.dtype), np.empty(of_groups, x.dtype)
    run_groups(MOMENTS, x, groups_first, (x, mean, square))
    return mean, square


def scale_runs(x, mean, scale, shift, groups_first):
    """(x - mean) * scale + shift: the mean that of the group, scale and shift those of the run."""
    x = floats(x, 3)
    of_groups, of_runs = shapes(x, groups_first)
    out = new_array(x.shape, x.dtype.num)
    arrays = x, out, fitting(mean, x, of_groups), fitting(scale, x, of_runs), fitting(shift, x, of_runs)
    run_groups(SCALE_RUNS, x, groups_first, arrays)
    return out


def sums_of_runs(g, x, mean, groups_first):
    """For each run (the sum of g, the sum of g * (x - mean))."""
    x = floats(x, 3)
    of_groups, of_runs = shapes(x, groups_first)
    sums, products = np.empty(of_runs, x.dtype), np.empty(of_runs, x.dtype)
    arrays = fitting(g, x, x.shape), x, fitting(mean, x, of_groups), sums, products
    run_groups(SUMS_OF_RUNS, x, groups_first, arrays)
    return sums, products


def combine_runs(g, x, mean, scale, along, level, groups_first):
    """g * scale + (x - mean) * along + level: the scale that of the run, the others those of the group."""
    x = floats(x, 3)
    of_groups, of_runs = shapes(x, groups_first)
    out = new_array(x.shape, x.dtype.num)
    middle, slope, base = (fitting(a, x, of_groups) for a in (mean, along, level))
    arrays = fitting(g, x, x.shape), x, out, middle, fitting(scale, x, of_runs), slope, base
    run_groups(COMBINE_RUNS, x, groups_first, arrays)
    return out
