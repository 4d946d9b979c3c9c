"""Random arrays. `numbers` is the NumPy generator to draw from.

Our own loops (draw.h, philox.h) draw most of them; `fill` handles the rest.
"""

import math
from functools import partial

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks as blocks
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.copying import copy_into
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import amax, amin
from cygrad._kernels.cpu.indexing.indexing import gather
from cygrad._kernels.cpu.random.draw import DRAWS, draw
from cygrad._kernels.cpu.random.twister import KINDS, lie_between
from cygrad._kernels.tape.calls import noted
from cygrad._kernels.tape.tape import refuse_step

_SINGLE = np.dtype(np.float32)
_FLOAT, _DOUBLE, _INT64 = _SINGLE.num, np.dtype(float).num, np.dtype(np.int64).num
_FEW = 64  # up to this, NumPy draws one by one
_BLOCK = 8192  # numbers; fits into the cache several times
UNIFORM, SHAPE_DRAWS, SUM_WEIGHTS, PICK = LOOPS.UNIFORM, LOOPS.SHAPE_DRAWS, LOOPS.SUM_WEIGHTS, LOOPS.PICK
UNIFORMS, NORMALS, EXPONENTIALS = DRAWS.UNIFORMS, DRAWS.NORMALS, DRAWS.EXPONENTIALS
COINS, INTEGERS, SHUFFLED = DRAWS.COINS, DRAWS.INTEGERS, DRAWS.SHUFFLED
_PIECE = 128  # numbers transformed together
_IN_NUMPY = "draws random numbers in NumPy"


@silent
def fill(numbers, out, what, a, b):
    """Overwrite an array of any type with random numbers, and return it.

    Depending on `what`: uniform on [a, b), normal with mean a and deviation b, exponential with rate a, Bernoulli with
    probability a, integers from the b values starting at a, or a random permutation of 0, 1, ...
    """
    if what == SHUFFLED:
        out[...] = numbers.permutation(out.size)
    elif what == INTEGERS:
        _fill_with_integers(numbers, out, a, b)
    elif (
        not (out.flags.carray and out.dtype.num in (_FLOAT, _DOUBLE))
        or (what == COINS and out.dtype.num == _DOUBLE)
        or what in _SHAPED
    ):
        copy_into(out, _drawn(numbers, out.shape, out.dtype, what, a, b))
    elif out.dtype == _SINGLE and loop_table.has_loops(out):
        _fill_by_threads(numbers, out.reshape(-1), what, a, b)
    else:
        _fill_by_numpy(numbers, out, what, a, b)
    return out


def _drawn(numbers, shape, dtype, what, a, b):
    if what == UNIFORMS:
        return stretched(uniform(numbers, shape, dtype), a, b)
    if what == NORMALS:
        return spread(gaussian(numbers, shape, dtype), a, b)
    if what in _SHAPED:
        return _SHAPED[what](numbers, shape, dtype, a, b)
    return exponential(numbers, shape, dtype) / a if what == EXPONENTIALS else keep_mask(numbers, shape, a)


def _fill_with_integers(numbers, out, low, span):
    if not out.flags.c_contiguous:  # else `flat` would be a copy
        out[...] = draw(numbers, np.empty(out.shape, out.dtype), INTEGERS, low, span)
        return
    flat = out.reshape(-1)
    if out.dtype.num == _INT64:  # not drawn by our own loops
        flat[...] = numbers.integers(low, low + span, flat.size)
        return
    for start in range(0, flat.size, _BLOCK):
        part = flat[start : start + _BLOCK]
        part[...] = draw(numbers, new_array(part.shape, _INT64), INTEGERS, low, span)


def _fill_by_threads(numbers, flat, what, a, b):
    bounds = np.array([a, b] if what == UNIFORMS else [0, 1], float)
    rest = flat[_by_counters(numbers, flat, bounds) :]
    rest[...] = _halves(numbers, rest.size, *bounds.tolist())
    if what != UNIFORMS:
        spare = float(numbers.random(None, _SINGLE)) if what == NORMALS and flat.size % 2 else 0
        pieces = -(-flat.size // _PIECE)
        loop_table.run(SHAPE_DRAWS, (flat, np.array([a, b], float)), (what, flat.size), spare, pieces, _BLOCK // _PIECE)


def _fill_by_numpy(numbers, out, what, a, b):
    if what == NORMALS:
        numbers.standard_normal(None, out.dtype, out)
        spread(out, a, b, out)
    elif what == EXPONENTIALS:
        numbers.standard_exponential(None, out.dtype, out=out)
        np.divide(out, a, out)
    else:
        if out.dtype == _SINGLE and out.size >= _FEW:
            out.reshape(-1)[...] = _halves(numbers, out.size, 0, 1)
        else:
            numbers.random(None, out.dtype, out)
        out[...] = out < a if what == COINS else stretched(out, a, b)


def _halves(numbers, count, low, high):
    """Uniform numbers on [low, high) from halves of random words."""
    return _units(numbers.bit_generator.random_raw(-(-count // 2)).view(np.uint32)[:count], low, high)


def _units(bits, low, high):
    """Uniform numbers from the upper 24 of 32 random bits each."""
    return stretched((bits >> 8).astype(_SINGLE) * np.float32(2.0**-24), low, high)


def _by_counters(numbers, flat, bounds):
    """Draw as many numbers as whole Philox counters yield, in threads; return how many.

    They equal those NumPy's generator would draw next, stretched to [bounds[0], bounds[1]).
    """
    generator = numbers.bit_generator
    with generator.lock:
        place = generator.state
        kept = place["buffer"][place["buffer_pos"] :].view(np.uint32)  # already generated, but not yet consumed
        counter, blocks = place["state"]["counter"], (flat.size - kept.size) // 8
        if int(counter[0]) + blocks >= 2**63:
            return 0
        state = np.concatenate([counter, place["state"]["key"]]).view(np.int64).tolist()
        counter[0] += blocks
        generator.state = place | {"buffer_pos": 4}
    flat[: kept.size] = _units(kept, *bounds.tolist())
    drawn = flat[kept.size : kept.size + 8 * blocks]
    loop_table.run(UNIFORM, (drawn, bounds), tuple(state), 0, blocks, _BLOCK // 8)
    return kept.size + drawn.size


def singles(numbers, shape):
    """Uniform on [0, 1), in single precision."""
    return draw(numbers, new_array(shape, _FLOAT), UNIFORMS)


def uniform(numbers, shape, dtype):
    """Uniform on [0, 1), floating point or complex."""
    if dtype.kind == "c":
        return _pairs(numbers.random, shape, dtype)
    if dtype.itemsize >= 4:
        return draw(numbers, new_array(shape, dtype.num), UNIFORMS)
    # only as many bits as the short type has, so that none is rounded up to 1
    steps = 2 ** (np.finfo(dtype).nmant + 1 if dtype.kind == "f" else 8)  # else bfloat16
    return np.asarray(np.floor(singles(numbers, shape) * steps) / steps).astype(dtype)


def gaussian(numbers, shape, dtype):
    """Normal with mean 0 and variance 1, floating point or complex."""
    if dtype.kind == "c":
        return np.asarray(_pairs(numbers.standard_normal, shape, dtype) * dtype.type(math.sqrt(0.5)))
    if dtype.itemsize >= 4:
        return draw(numbers, new_array(shape, dtype.num), NORMALS)
    return draw(numbers, new_array(shape, _FLOAT), NORMALS).astype(dtype)


def _pairs(draw, shape, dtype):
    """Complex numbers with independent parts."""
    refuse_step(_IN_NUMPY)
    part = np.float32 if dtype.itemsize == 8 else np.float64
    return draw((*shape, 2), part).view(dtype)[..., 0]


def exponential(numbers, shape, dtype):
    """Exponential with density exp(-x); in single precision for narrower types."""
    return draw(numbers, new_array(shape, dtype.num if dtype.itemsize >= 4 else _FLOAT), EXPONENTIALS, 1)


def permutation(numbers, count, dtype):
    """0, ..., count - 1 in random order."""
    return draw(numbers, new_array((count,), _INT64), SHUFFLED).astype(dtype, copy=False)


def stretched(array, low, high):
    """Map numbers of [0, 1) to [low, high)."""
    if low == 0 and high == 1:
        return array
    number = array.dtype.type
    array = np.asarray(array * number(high - low) + number(low))
    if low < high:
        array[array >= high] = low  # where rounding reached the open end
    return array


def spread(array, mean, std, out=None):
    """Transform standard normal numbers to another mean and standard deviation, which may be scalars or arrays."""
    if isinstance(mean, (int, float)) and isinstance(std, (int, float)) and mean == 0 and std == 1:
        return array
    return _spread(array, mean, std, out)


@noted
@silent
def _spread(array, mean, std, out):
    mean, std = (np.asarray(value, array.dtype) for value in (mean, std))
    return np.asarray(np.add(np.multiply(array, std, out), mean, out))


def whole_numbers(numbers, shape, low, high, dtype):
    """Integers low, ..., high - 1, all of which the type can hold."""
    if high - low < 2**64 and high <= 2**63:
        return draw(numbers, np.empty(shape, dtype), INTEGERS, low, high - low)
    if dtype.kind in "iub":
        return np.asarray(numbers.integers(low, high, shape, dtype), dtype)
    return np.asarray(numbers.integers(low, high, shape)).astype(dtype)


@noted
def are_probabilities(array):
    """Whether all elements are in [0, 1]; NaN is not."""
    found = lie_between(array, 0, 1)
    if found is not None:
        return found
    wide = array if array.itemsize > 2 else array.astype(_SINGLE)
    return not wide.size or (amin(wide).item() >= 0 and amax(wide).item() <= 1)


@noted
def are_rates(array):
    """Whether no element is negative or NaN."""
    found = lie_between(array, 0, math.inf)
    return bool((array >= 0).all()) if found is None else found


@noted
def of_type(array, dtype):
    """A copy in another type."""
    return array.astype(dtype)


def keep_mask(numbers, shape, probability):
    """True with that probability, which may be an array that broadcasts to the shape."""
    return np.asarray(singles(numbers, shape) < probability)


def scaled_coins(numbers, shape, probability, scale):
    """An array of `scale` with that probability, and of 0 otherwise."""
    return np.asarray(keep_mask(numbers, shape, probability) * scale)


def running_weights(weights):
    """Cumulative sums of rows of weights in float64; None if a weight is negative or a sum is 0 or not finite."""
    weights = weights.astype(np.float64, copy=False)
    if loop_table.has_loops(weights):
        weights, sums = dense(weights), new_array(weights.shape, _DOUBLE)
        rows, count = weights.shape
        failed = loop_table.run(SUM_WEIGHTS, (weights, sums), (count,), 0, rows, _BLOCK // max(count, 1))
        return None if failed else sums
    total = weights.sum(1)
    return weights.cumsum(1) if (weights >= 0).all() and ((total > 0) & (total < np.inf)).all() else None


def picked(numbers, weights, edges, count):
    """Draw `count` indices for each row of weights, with probabilities proportional to the weights.

    `edges` are the cumulative sums of the weights.
    """
    drawn = draw(numbers, new_array((len(edges), count), _DOUBLE), UNIFORMS)
    indices = new_array(drawn.shape, _INT64)
    if loop_table.has_loops(edges):
        loop_table.run(PICK, (edges, drawn, indices), (edges.shape[1], count), 0, len(edges), 1 + _FEW // count)
        return indices
    drawn *= edges[:, -1:]
    np.minimum(drawn, np.nextafter(edges[:, -1:], 0), out=drawn)  # where rounding reached the open end
    for row, edge, values in zip(indices, edges, drawn):
        row[...] = np.searchsorted(edge, values, "right")
    return indices


@silent
def picked_once(numbers, weights, edges, count):
    """Like `picked`, but without repeating an index within a row."""
    refuse_step(_IN_NUMPY)
    # the smallest exponential waiting times, as of events that occur at these rates
    waiting = numbers.standard_exponential(weights.shape)
    np.divide(waiting, weights, waiting)
    if count == waiting.shape[1]:
        return waiting.argsort(1, kind="stable").astype(np.int64)
    first = waiting.argpartition(count - 1, 1)[:, :count]
    order = gather(waiting, 1, first).argsort(1)
    return gather(first, 1, order).astype(np.int64, copy=False)


# -- distributions with a parameter per element --


def poisson(numbers, rates):
    """Poisson numbers in the type of `rates`, which must not be negative."""
    refuse_step(_IN_NUMPY)
    return (
        blocks.in_blocks(partial(_poisson, numbers), (rates,)) if rates.size > blocks.SIZE else _poisson(numbers, rates)
    )


@silent
def _poisson(numbers, rates):
    limit = 2.0**62  # near the end of NumPy's integers; from there on the normal distribution agrees to rounding
    wide = rates.astype(np.float64)
    if not wide.size or wide.max() <= limit:
        return np.asarray(numbers.poisson(wide)).astype(rates.dtype)
    drawn = np.asarray(numbers.poisson(np.minimum(wide, limit)), np.float64)
    noise = np.sqrt(np.minimum(wide, 1e300)) * numbers.standard_normal(wide.shape)
    drawn = np.where(wide > limit, wide + noise, drawn)
    return np.asarray(drawn).astype(rates.dtype)


def binomial(numbers, trials, chance, shape):
    """Binomial numbers in the type of `trials`; NaN where the probability or the number of trials is NaN."""
    out = np.empty(shape, trials.dtype)
    drawn, n, p = out.reshape(-1), np.broadcast_to(trials, shape).flat, np.broadcast_to(chance, shape).flat
    for start in range(0, out.size, blocks.SIZE):
        part = slice(start, start + blocks.SIZE)
        drawn[part] = _binomial(numbers, n[part], p[part])
    return out


def _binomial(numbers, trials, chance):
    p = np.clip(chance.astype(np.float64), 0, 1)
    n = np.clip(trials.astype(np.float64), 0, 2.0**62)
    unknown = np.isnan(p) | np.isnan(n)
    drawn = numbers.binomial(np.where(np.isnan(n), 0, n).astype(np.int64), np.where(np.isnan(p), 0, p))
    return np.where(unknown, np.nan, drawn)


def gamma(numbers, concentration):
    """Gamma-distributed numbers with these concentrations and rate 1."""
    return np.exp(log_gamma(numbers, concentration.astype(np.float64))).astype(concentration.dtype)


def log_normal(numbers, shape, dtype, mean, std):
    """Numbers whose logarithms are normally distributed."""
    return np.exp(spread(gaussian(numbers, shape, dtype), mean, std))


def log_gamma(numbers, concentration):
    """Logarithms of gamma-distributed numbers with these concentrations, all float64."""
    refuse_step(_IN_NUMPY)
    with np.errstate(all="ignore"):
        return np.log(numbers.standard_gamma(concentration + 1)) - (
            numbers.standard_exponential(concentration.shape) / concentration
        )


@silent
def cauchy(numbers, shape, dtype, median, sigma):
    """Cauchy with density sigma / (pi * (sigma^2 + (x - median)^2))."""
    return np.asarray(spread(numbers.standard_cauchy(shape), median, sigma)).astype(dtype)


@silent
def geometric(numbers, shape, dtype, chance, _):
    """The number of trials up to and including the first success."""
    return np.asarray(numbers.geometric(chance, shape)).astype(dtype)


_SHAPED = {KINDS.CAUCHY: cauchy, KINDS.LOG_NORMAL: log_normal, KINDS.TRIALS: geometric}
