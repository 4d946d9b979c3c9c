"""Normalisations of float32 and float64, forward and backward, in as few passes as there are (`norms.h`).

Of rows: `normalize_rows` and `rows_gradients`. Of groups of runs, an array (a, b, length) whose groups are along its
first dimension and each group's runs along the second, or the other way round: its passes one by one, which
normalizing.py puts together. Numbers that belong to runs are arrays (groups, runs), those of groups (groups,).
"""

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
    if type(x) is not np.ndarray or x.ndim != ndim or x.dtype not in (np.float32, np.float64):
        raise ValueError(f"not an array of {ndim} dimensions of float32 or float64")
    return dense(x)


# -- rows --------------------------------------------------------------------------------------------------


def rows_of_piece(n):
    return max(FEWEST_ROWS, PIECE // max(n, 1))


def normalize_rows(x, weight, bias, eps, centered):
    """(result, mean, factor) for rows x (m, n): (x - mean) * factor * weight + bias.

    factor is 1 / sqrt(variance + eps), weight and bias are (n,). Not `centered`: the mean is 0. The last two results
    are (m,).
    """
    x = floats(x, 2)
    m, n = x.shape
    weight, bias = fitting(weight, x, (n,)), fitting(bias, x, (n,))
    out, mean, factor = new_array(x.shape, x.dtype.num), np.empty(m, x.dtype), np.empty(m, x.dtype)
    native.run(NORMALIZE_ROWS, (x, weight, bias, out, mean, factor), (n, centered), eps, m, rows_of_piece(n))
    return out, mean, factor


def rows_gradients(g, x, weight, mean, factor, centered, of_input, of_weight, of_bias):
    """(gradient of x, of weight, of bias) of `normalize_rows`, from that of its result; None for what is not wanted."""
    x = floats(x, 2)
    m, n = x.shape
    g, weight, mean, factor = (
        fitting(g, x, (m, n)),
        fitting(weight, x, (n,)),
        fitting(mean, x, (m,)),
        fitting(factor, x, (m,)),
    )
    piece = rows_of_piece(n)
    out = new_array(x.shape, x.dtype.num) if of_input else None
    sums = zeros((2, -(-m // piece), n), x.dtype.num)  # of pieces, those for the weight and those for the bias
    native.run(ROWS_GRADIENT, (g, x, weight, mean, factor, out, *sums), (n, centered), 0, m, piece)
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
    mean, square = (np.empty(shapes(x, groups_first)[0], x.dtype) for _ in range(2))
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
