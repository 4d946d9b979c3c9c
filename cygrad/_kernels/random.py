"""Arrays of random numbers. `numbers` is NumPy's generator to draw from; loops over many numbers are NumPy's own."""

import math
from functools import partial

import numpy as np

import cygrad._kernels.native as native
from cygrad._kernels import blocks
from cygrad._kernels.arrays import new_array
from cygrad._kernels.by_numpy import silent
from cygrad._kernels.picking import gather
from cygrad._kernels.reduce import amax, amin

_SINGLE = np.dtype(np.float32)
_FLOAT, _INT64 = _SINGLE.num, np.dtype(np.int64).num
_BLOCK = 8192  # numbers: what fits into the cache several times
_FEW = 64  # up to here, one by one is faster
_LONG = 2048  # from here on, NumPy is asked for its place in the stream
UNIFORM = 33  # as in native.h
_BELOW_1, _INTEGERS, _SHUFFLED = range(3)  # as in draws.h
_NARROW = 1024  # spans up to here are found in 16 random bits, of which then few are drawn anew
_STEP = np.float32(2.0**-24)  # between numbers of single precision in [0.5, 1)


def words(numbers, count, kind=np.uint32):
    """(first, random bits of that type each) of blocks of numbers, in which they are drawn faster than one by one."""
    draw, each = numbers.bit_generator.random_raw, 8 // np.dtype(kind).itemsize
    for start in range(0, count, _BLOCK):
        n = min(_BLOCK, count - start)
        yield start, draw(-(-n // each)).view(kind)[:n]


def singles(numbers, shape):
    """Of [0, 1), of single precision."""
    if math.prod(shape) < _FEW:
        out = new_array(shape, _FLOAT)
        return out if native.draw(numbers, out, _BELOW_1) is not None else numbers.random(None, _SINGLE, out)
    out = new_array(shape, _FLOAT)
    rest = out.reshape(-1)
    if rest.size >= _LONG and native.has_loops(rest):
        rest = rest[_by_counters(numbers, rest) :]
    for start, bits in words(numbers, rest.size):
        _scale(bits, rest[start : start + len(bits)])
    return out


def _scale(bits, part):
    """Numbers of [0, 1) from as many random words of 32 bits, of which the upper 24 count."""
    part[...] = np.right_shift(bits, 8, out=bits).view(np.int32)
    part *= _STEP


def _by_counters(numbers, flat):
    """Draw what whole counters of Philox give, by threads: NumPy's numbers, from its place; tell how many."""
    generator = numbers.bit_generator
    with generator.lock:
        place = generator.state
        kept = place["buffer"][place["buffer_pos"] :].view(np.uint32)  # drawn, but not yet given
        counter, blocks = place["state"]["counter"], (flat.size - kept.size) // 8
        if int(counter[0]) + blocks >= 2**63:
            return 0
        state = np.concatenate([counter, place["state"]["key"]]).view(np.int64).tolist()
        counter[0] += blocks
        generator.state = place | {"buffer_pos": 4}
    _scale(kept.copy(), flat[: kept.size])
    drawn = flat[kept.size : kept.size + 8 * blocks]
    native.run(UNIFORM, (drawn,), tuple(state), 0, blocks, _BLOCK // 8)
    return kept.size + drawn.size


def uniform(numbers, shape, dtype):
    """Of [0, 1), floating point or complex."""
    if dtype.kind == "c":
        return _pairs(numbers.random, shape, dtype)
    if dtype.itemsize == 4:
        return singles(numbers, shape)
    if dtype.itemsize > 4:
        out = native.draw(numbers, new_array(shape, dtype.num), _BELOW_1)
        return np.asarray(numbers.random(shape, dtype), dtype) if out is None else out
    # as many bits as the short type has, so that none is rounded up to 1
    steps = 2 ** (np.finfo(dtype).nmant + 1 if dtype.kind == "f" else 8)  # else bfloat16
    return np.asarray(np.floor(singles(numbers, shape) * steps) / steps).astype(dtype)


def gaussian(numbers, shape, dtype):
    """Of mean 0 and variance 1, floating point or complex."""
    size = math.prod(shape)
    if dtype.num == _FLOAT and size < _FEW:
        return numbers.standard_normal(None, _SINGLE, new_array(shape, _FLOAT))
    if dtype.kind == "c":
        return np.asarray(_pairs(numbers.standard_normal, shape, dtype) * dtype.type(math.sqrt(0.5)))
    if dtype.itemsize > 4:
        return np.asarray(numbers.standard_normal(shape, dtype), dtype)
    few = size < _FEW
    drawn = np.asarray(numbers.standard_normal(shape, _SINGLE)) if few else _box_muller(numbers, size).reshape(shape)
    return drawn if dtype.itemsize == 4 else drawn.astype(dtype)


def _box_muller(numbers, size):
    """Normal numbers of single precision, three times faster than one by one: by loops that NumPy has vectorised.

    A point of uniform angle whose distance from 0 is sqrt(-2 log(u)) has two of them as coordinates. In blocks, which
    stay in the cache.
    """
    half = (size + 1) // 2
    out = new_array((2 * half,), _FLOAT)
    for start in range(0, half, _BLOCK):
        n = min(_BLOCK, half - start)
        angle, distance = singles(numbers, (2, n))
        np.subtract(1, distance, distance)  # (0, 1]: no logarithm of 0
        np.log(distance, distance)
        np.multiply(distance, -2, distance)
        np.sqrt(distance, distance)
        np.multiply(angle, 2 * math.pi, angle)
        np.multiply(np.cos(angle), distance, out[start : start + n])
        np.multiply(np.sin(angle), distance, out[half + start : half + start + n])
    return out[:size]


def _pairs(draw, shape, dtype):
    """Complex numbers of independent parts."""
    part = np.float32 if dtype.itemsize == 8 else np.float64
    return draw((*shape, 2), part).view(dtype)[..., 0]


def exponential(numbers, shape, dtype):
    """Of the density exp(-x), of single precision for shorter types."""
    return np.asarray(numbers.standard_exponential(shape, dtype if dtype.itemsize >= 4 else np.float32))


def permutation(numbers, count, dtype):
    """0, ..., count - 1 in random order."""
    out = native.draw(numbers, new_array((count,), _INT64), _SHUFFLED)
    return (numbers.permutation(count) if out is None else out).astype(dtype, copy=False)


def stretched(array, low, high):
    """Numbers of [0, 1) stretched to [low, high)."""
    if low == 0 and high == 1:
        return array
    number = array.dtype.type
    array = np.asarray(array * number(high - low) + number(low))
    if low < high:
        array[array >= high] = low  # where rounding has reached the open end
    return array


def spread(array, mean, std):
    """Standard normal numbers with another mean and standard deviation, which are numbers or arrays."""
    if isinstance(mean, (int, float)) and isinstance(std, (int, float)) and mean == 0 and std == 1:
        return array
    with np.errstate(all="ignore"):
        return np.asarray(array * np.asarray(std, array.dtype) + np.asarray(mean, array.dtype))


def whole_numbers(numbers, shape, low, high, dtype):
    """Of low, ..., high - 1, all of which the type can hold."""
    if high - low <= 2**32:
        if math.prod(shape) >= _FEW:
            return _scaled_words(numbers, shape, low, high - low, dtype)
        if dtype.num == _INT64:
            out = native.draw(numbers, new_array(shape, _INT64), _INTEGERS, low, high - low)
            if out is not None:
                return out
    if dtype.kind in "iub":
        return np.asarray(numbers.integers(low, high, shape, dtype), dtype)
    return np.asarray(numbers.integers(low, high, shape)).astype(dtype)


def _scaled_words(numbers, shape, low, span, dtype):
    """The same by multiplication: of 16 or 32 random bits times `span`, those above the first 16 or 32.

    D. Lemire, "Fast random integer generation in an interval" (2019), which also tells what is to be drawn anew, so
    that all numbers have the same probability.
    """
    out = np.empty(shape, dtype)
    flat = out.reshape(-1)
    bits, half, whole = (16, np.uint16, np.uint32) if span <= _NARROW else (32, np.uint32, np.uint64)
    surplus = (2**bits - span) % span
    for start, drawn in words(numbers, flat.size, half):
        product = np.multiply(drawn, span, dtype=whole)
        if surplus:
            again = product.astype(half) < surplus
            if again.any():
                product[again] = numbers.integers(0, span, np.count_nonzero(again), whole) << bits
        part = flat[start : start + len(drawn)]
        np.right_shift(product, bits, out=product)
        if low:
            np.add(product.view(product.dtype.char.lower()), low, out=part, dtype=np.int64, casting="unsafe")
        else:
            part[...] = product
    return out


def are_probabilities(array):
    """Whether all elements are in [0, 1], of which nan is not."""
    wide = array if array.itemsize > 2 else array.astype(_SINGLE)
    return not wide.size or (amin(wide).item() >= 0 and amax(wide).item() <= 1)


def keep_mask(numbers, shape, probability):
    """True with that probability, which may be an array that broadcasts to the shape."""
    return np.asarray(singles(numbers, shape) < probability)


def picked(numbers, weights, count):
    """For each row of weights `count` indices, each drawn with a probability proportional to its weight."""
    edges = weights.cumsum(1)
    total = edges[:, -1:]
    drawn = numbers.random((len(weights), count)) * total
    np.minimum(drawn, np.nextafter(total, 0), out=drawn)  # where rounding has reached the open end
    indices = [np.searchsorted(edge, values, "right") for edge, values in zip(edges, drawn)]
    return np.array(indices, np.int64).reshape(len(weights), count)


@silent
def picked_once(numbers, weights, count):
    """As `picked`, but no index of a row twice."""
    # the smallest of exponential waiting times, as if the events came at these rates
    waiting = numbers.standard_exponential(weights.shape)
    np.divide(waiting, weights, waiting)
    if count == waiting.shape[1]:
        return waiting.argsort(1, kind="stable").astype(np.int64)
    first = waiting.argpartition(count - 1, 1)[:, :count]
    order = gather(waiting, 1, first).argsort(1)
    return gather(first, 1, order).astype(np.int64, copy=False)


# -- distributions with a parameter for each element --


def poisson(numbers, rates):
    """Of the type of `rates`, which are not negative."""
    return (
        blocks.in_blocks(partial(_poisson, numbers), (rates,)) if rates.size > blocks.SIZE else _poisson(numbers, rates)
    )


def _poisson(numbers, rates):
    limit = 2.0**62  # NumPy's integers end near; from there on the normal distribution is the same to rounding
    wide = rates.astype(np.float64)
    drawn = np.asarray(numbers.poisson(np.minimum(wide, limit)), np.float64)
    large = wide > limit
    if large.any():
        noise = np.sqrt(np.minimum(wide, 1e300)) * numbers.standard_normal(wide.shape)
        drawn = np.where(large, wide + noise, drawn)
    with np.errstate(over="ignore"):
        return np.asarray(drawn).astype(rates.dtype)


def binomial(numbers, trials, chance, shape):
    """Of the type of `trials`; nan where the chance or the number of trials is nan."""
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


def log_gamma(numbers, concentration):
    """Logarithms of numbers of the gamma distributions of these parameters, all float64."""
    with np.errstate(all="ignore"):
        return np.log(numbers.standard_gamma(concentration + 1)) - (
            numbers.standard_exponential(concentration.shape) / concentration
        )


def cauchy(numbers, shape, dtype, median, sigma):
    """Of density sigma / (pi * (sigma^2 + (x - median)^2))."""
    with np.errstate(over="ignore"):
        return np.asarray(median + sigma * numbers.standard_cauchy(shape)).astype(dtype)


def geometric(numbers, shape, dtype, chance):
    """Trials up to the first success."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers.geometric(chance, shape)).astype(dtype)
