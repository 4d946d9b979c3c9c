"""Random arrays with PyTorch's numbers; takes the arguments of random.py, with a `Twister` for `numbers`.

The loops (twister_draws.h, twister_samples.h) make floats, doubles and int64 integers; other types are converted from
these, as PyTorch converts them.
"""

import numpy as np

from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.copying import copy_into
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.random.draw import DRAWS, draw, scaled
from cygrad._kernels.cpu.random.random import spread
from cygrad._kernels.cpu.random.twister import KINDS, are_weights, draw_alike, draw_each, draw_picks
from cygrad._kernels.tape.calls import noted

__all__ = ["draw", "spread"]

_SINGLE: np.dtype
_DOUBLE: np.dtype
_WHOLE: np.dtype
_SINGLE, _DOUBLE, _WHOLE = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
_MADE = _SINGLE.num, _DOUBLE.num
_GROUP = 16  # so many normal numbers are made together
_LARGE = 2**30
_INT64, _INTEGERS = _WHOLE.num, DRAWS.INTEGERS
_WHOLE_NUMBERS = DRAWS.INTEGERS, DRAWS.SHUFFLED, KINDS.WORDS_BELOW


def order_in_memory(array):
    """Return the dimensions of an array from the largest stride to the least: PyTorch fills the last one first."""
    return sorted(range(array.ndim), key=lambda i: (-abs(array.strides[i]), i))


@silent
def fill(numbers, out, what, a, b):
    """Overwrite an array of any type and layout with random numbers, and return it; see `draw`."""
    kind = out.dtype
    if kind.kind == "c":
        return _fill_complex(numbers, out, what, a, b)
    if what in _WHOLE_NUMBERS:
        made = _WHOLE
    elif what == DRAWS.COINS:
        made = _SINGLE
    elif kind.kind in "iub":
        made = _DOUBLE
    else:
        made = kind if kind == _DOUBLE else _SINGLE
    is_dense = out.flags.c_contiguous
    flat = np.empty(out.size, made)
    if what == DRAWS.NORMALS and not is_dense:
        draw_alike(numbers, flat, what, a, b)
    elif what == DRAWS.NORMALS and kind != made and out.size >= _GROUP:
        draw_alike(numbers, flat, KINDS.ROUNDED_NORMALS, a, b)
    else:
        draw(numbers, flat, what, a, b)
    if what == DRAWS.UNIFORMS and kind != made:
        flat = flat.astype(kind)
        flat[flat == kind.type(b)] = a  # where rounding reached the open end
    return _spread_out(flat, out)


def _spread_out(flat, out):
    """Copy numbers into an array, in the order of its memory."""
    order = order_in_memory(out)
    copy_into(out.transpose(order), flat.reshape([out.shape[i] for i in order]))
    return out


def _fill_complex(numbers, out, what, a, b):
    """The parts are independent; those of normal numbers have half the variance."""
    flat = np.empty(out.size, out.dtype)
    parts = flat.view(_SINGLE if out.itemsize == 8 else _DOUBLE)
    if what == DRAWS.NORMALS:
        b /= np.sqrt(2.0)
        (draw if out.flags.c_contiguous else draw_alike)(numbers, parts, what, a, b)
    else:
        draw(numbers, parts, what, a, b)
    return _spread_out(flat, out)


def uniform(numbers, shape, dtype):
    """Uniform on [0, 1), floating point or complex."""
    return draw(numbers, np.empty(shape, dtype), DRAWS.UNIFORMS)


def gaussian(numbers, shape, dtype):
    """Normal with mean 0 and variance 1, floating point or complex."""
    return draw(numbers, np.empty(shape, dtype), DRAWS.NORMALS)


def permutation(numbers, count, dtype):
    """0, ..., count - 1 in random order."""
    return draw(numbers, np.empty(count, _WHOLE), DRAWS.SHUFFLED).astype(dtype, copy=False)


def whole_numbers(numbers, shape, low, high, dtype):
    """Integers low, ..., high - 1, all of which the type can hold."""
    span = high - low
    if dtype is _WHOLE and span <= _LARGE and -_LARGE <= low <= _LARGE:  # almost always
        return draw(numbers, new_array(shape, _INT64), _INTEGERS, low, span)
    if high <= 2**63 and span <= 2**64:
        return draw(numbers, np.empty(shape, dtype), _INTEGERS, low, span % 2**64)
    made = draw(numbers, np.empty(shape, _WHOLE), DRAWS.INTEGERS, 0, (high - low) % 2**64)
    return np.asarray(made.view(np.uint64) + np.uint64(low)).astype(dtype)


def keep_mask(numbers, shape, probability):
    """True with that probability, which may be an array that broadcasts to the shape."""
    if isinstance(probability, np.ndarray):
        if probability.shape != shape:
            probability = np.broadcast_to(probability, shape)
        return _each(numbers, KINDS.CHANCES, probability)
    return _are_set(draw(numbers, new_array(shape, _SINGLE.num), DRAWS.COINS, probability))


@noted
def _are_set(drawn):
    return drawn != 0


def scaled_coins(numbers, shape, probability, scale):
    """An array of `scale` with that probability, and of 0 otherwise."""
    return scaled(draw(numbers, new_array(shape, _SINGLE.num), DRAWS.COINS, probability), scale)


def _each(numbers, what, first, second=None):
    """A number for each parameter; computed in single precision for narrower types."""
    if second is None and first.dtype.num in _MADE and first.flags.c_contiguous:
        return draw_each(numbers, what, first)
    given = [dense(np.asarray(array, _wide(first.dtype))) for array in (first, second) if array is not None]
    return draw_each(numbers, what, *given)


def _wide(dtype):
    return _DOUBLE if dtype == _DOUBLE else _SINGLE


@noted
def running_weights(weights):
    """Return True; None if a weight is negative or the sum of a row is 0 or not finite."""
    valid = are_weights(weights)
    return (are_weights(_made(weights)) if valid is None else valid) or None


def _made(weights):
    """Dense weights in a type for which there are loops."""
    return dense(np.asarray(weights, _wide(weights.dtype)))


def picked(numbers, weights, edges, count):
    """Draw `count` indices for each row of weights, with probabilities proportional to the weights."""
    if count == 1:
        return picked_once(numbers, weights, edges, count)
    drawn = draw_picks(numbers, weights, count)
    return draw_picks(numbers, _made(weights), count) if drawn is None else drawn


def picked_once(numbers, weights, edges, count):
    """Like `picked`, but without repeating an index within a row."""
    return _first(weights, draw(numbers, np.empty_like(weights), DRAWS.EXPONENTIALS, 1), count)


@noted
@silent
def _first(weights, waiting, count):
    rates = np.divide(weights, waiting).astype(_wide(weights.dtype), copy=False)
    if count == 1:
        return rates.argmax(1)[:, None]
    return _smallest(np.negative(rates, rates), count)


def _smallest(keys, count):
    """Return the indices of the smallest keys in each row, in ascending order of the keys."""
    if 4 * count > keys.shape[1]:
        return np.argsort(keys, 1, kind="stable")[:, :count]
    found = np.argpartition(keys, count - 1, 1)[:, :count]
    found.sort(1)  # of equal keys, the first comes first
    rows = np.arange(len(keys))[:, None]
    return found[rows, np.argsort(keys[rows, found], 1, kind="stable")]


def poisson(numbers, rates):
    """Poisson numbers in the type of `rates`, which must not be negative."""
    return _each(numbers, KINDS.RATES, rates).astype(rates.dtype, copy=False)


def binomial(numbers, trials, chance, shape):
    """Binomial numbers in the type of `trials`; NaN where the probability or the number of trials is NaN."""
    first, second = (np.broadcast_to(array, shape) for array in (trials, chance))
    return _each(numbers, KINDS.COUNTS, first, second).astype(trials.dtype, copy=False)


def gamma(numbers, concentration):
    """Gamma-distributed numbers with these concentrations and rate 1."""
    return _above_zero(_each(numbers, KINDS.SHAPES, concentration), concentration.dtype)


@noted
def _above_zero(drawn, dtype):
    return np.maximum(drawn, np.finfo(drawn.dtype).tiny).astype(dtype, copy=False)


def log_gamma(numbers, concentration):
    """Logarithms of gamma-distributed numbers with these concentrations, all float64."""
    return _each(numbers, KINDS.LOG_SHAPES, concentration)
