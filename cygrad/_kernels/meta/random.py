"""Random arrays on the device "meta"; takes the arguments of `_kernels/cpu/random/random.py`, and draws nothing."""

import numpy as np

from cygrad._kernels.device import cupy_library

ndarray = cupy_library.meta().ndarray  # by this function, from which all others learn that there are meta arrays


def singles(numbers, shape):
    """Return a meta array of uniform float32 numbers."""
    return ndarray(shape, np.float32)


def draw(numbers, out, what, a=0, b=1):
    """Return `out`, which has no elements to fill."""
    return out


fill = draw


def uniform(numbers, shape, dtype):
    """Return a meta array."""
    return ndarray(shape, dtype)


gaussian = exponential = uniform


def cauchy(numbers, shape, dtype, *parameters):
    """Return a meta array, whatever the parameters of the distribution."""
    return ndarray(shape, dtype)


geometric = log_normal = cauchy


def whole_numbers(numbers, shape, low, high, dtype):
    """Return a meta array of integers."""
    return ndarray(shape, dtype)


def keep_mask(numbers, shape, probability):
    """Return a meta array of Booleans."""
    return ndarray(shape, np.bool_)


def permutation(numbers, count, dtype):
    """Return a meta array of `count` integers."""
    return ndarray((count,), dtype)


def stretched(array, low, high):
    """Return an array as it is: it has no elements to change."""
    return array


spread = stretched


def running_weights(weights):
    """Return an array of the shape of cumulative sums."""
    return weights


def picked(numbers, weights, edges, count):
    """Return a meta array of `count` indices for each row of weights."""
    return ndarray((len(weights), count), np.int64)


picked_once = picked


def poisson(numbers, rates):
    """Return a meta array of the shape and dtype of the rates."""
    return ndarray(rates.shape, rates.dtype)


gamma = log_gamma = poisson


def binomial(numbers, trials, chance, shape):
    """Return a meta array of the dtype of `trials`."""
    return ndarray(shape, trials.dtype)
