"""Random arrays on GPUs; takes the arguments of `_kernels/cpu/random/random.py`, with a `Stream` for `numbers`.

The generator is Philox4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as
1, 2, 3", 2011): it maps a key, which is the seed, and a counter to four 32-bit words. An element's counter is its
position in the stream, so the numbers do not depend on how many threads draw them. If an element needs more words, the
upper half of the counter is incremented.
"""

import math
from functools import cache
from threading import Lock

import numpy as np

from cygrad._kernels.cpu.random.random import EXPONENTIALS, NORMALS, UNIFORMS
from cygrad._kernels.cpu.random.twister import KINDS
from cygrad._kernels.device.cupy_library import as_number, cupy, is_array, on_device
from cygrad._kernels.gpu.runtime.graph_capture import current, settle


class Stream:
    """The position of a generator in the numbers of a seed, for the GPU `place`."""

    def __init__(self, place, seed, offset=0):
        self.place, self.seed, self.offset = place, seed, offset
        self._is_used = False
        self._lock = Lock()

    def restart(self, seed, offset=0):
        """Seek to a position in the numbers of a seed. Raises RuntimeError in a capture, unless the stream is new."""
        if self._is_used and current() is not None:
            raise RuntimeError(
                "Cannot call CUDAGeneratorImpl::set_current_seed during CUDA graph capture.\n"
                "  a replay starts from the generator's state at that time: seed it before"
            )
        with self._lock:
            self.seed, self.offset, self._is_used = seed, offset % 2**64, True

    def take(self, count):
        """Reserve `count` counters; return (seed, first counter)."""
        with self._lock:
            first = self.offset
            self.offset = (first + count) % 2**64
        return np.uint64(self.seed), np.uint64(first)


_PHILOX = """
__device__ void philox(unsigned long long key, unsigned long long counter, unsigned long long more, unsigned* out) {
    unsigned a = (unsigned)counter, b = (unsigned)(counter >> 32), c = (unsigned)more, d = (unsigned)(more >> 32);
    unsigned k = (unsigned)key, l = (unsigned)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const unsigned long long p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
        a = (unsigned)(q >> 32) ^ b ^ k;
        b = (unsigned)q;
        c = (unsigned)(p >> 32) ^ d ^ l;
        d = (unsigned)p;
        k += 0x9E3779B9u;
        l += 0xBB67AE85u;
    }
    out[0] = a; out[1] = b; out[2] = c; out[3] = d;
}
// Of [0, 1).
__device__ float unit(unsigned word) { return (word >> 8) * 5.9604644775390625e-8f; }
__device__ double unit(unsigned high, unsigned low) {
    return (((unsigned long long)high << 32 | low) >> 11) * 1.1102230246251565e-16;
}
// Of (0, 1].
__device__ float part(unsigned word) { return ((float)word + 0.5f) * 2.3283064365386963e-10f; }
__device__ double part(unsigned high, unsigned low) { return 1 - unit(high, low); }

// The numbers of one element, as many as it wants.
struct Own {
    unsigned long long key, counter, drawn;
    __device__ Own(unsigned long long seed, unsigned long long at) : key(seed), counter(at), drawn(0) {}
    __device__ void words(unsigned* out) { philox(key, counter, ++drawn, out); }
    __device__ double uniform() {
        unsigned w[4];
        words(w);
        return part(w[0], w[1]);
    }
    __device__ double normal() {
        unsigned w[4];
        words(w);
        return sqrt(-2 * log(part(w[0], w[1]))) * cos(6.283185307179586 * unit(w[2], w[3]));
    }
};
"""
_DRAWN = "uint64 seed, uint64 first"
_CAPTURED = "raw uint64 start, uint64 before"  # Note [Captures]
_READ = "const unsigned long long seed = start[0], first = start[1] + before; "


@cache
def _kernel(name, inputs, outputs, operation, preamble, is_captured, _library):
    drawn = _CAPTURED if is_captured else _DRAWN
    return _library.ElementwiseKernel(
        f"{drawn}, {inputs}" if inputs else drawn,
        outputs,
        _READ + operation if is_captured else operation,
        f"cygrad_{name}{'_captured' if is_captured else ''}",
        preamble=_PHILOX + preamble,
    )


def _run(numbers, count, name, inputs, outputs, operation, preamble, arrays, **how):
    """Launch a kernel that draws `count` counters."""
    capture = current()
    drawn = numbers.take(count) if capture is None else capture.draw(numbers, count)
    _kernel(name, inputs, outputs, operation, preamble, capture is not None, cupy())(*drawn, *arrays, **how)


def set_start(numbers, count, start):
    """Write the start of a replay that draws `count` counters, with a launch on the current stream."""
    text = "start[0] = seed; start[1] = first"
    _kernel("start", "", "raw uint64 start", text, "", False, cupy())(*numbers.take(count), start, size=1)


def _in_groups(numbers, shape, dtype, name, each, lines, inputs="", values=()):
    """Return an array with groups of `each` elements per counter; `lines` make x[0], x[1], ... from words w."""
    with on_device(numbers.place):
        out = cupy().empty(shape, dtype)
        groups = -(-out.size // each)
        if groups:
            text = (
                f"unsigned w[4]; philox(seed, first + i, 0, w); T x[{each}]; {lines} "
                f"for (int k = 0; k < {each}; k++) if ({each} * i + k < count) out[{each} * i + k] = x[k];"
            )
            inputs = "int64 count" + (", " + inputs if inputs else "")
            _run(numbers, groups, name, inputs, "raw T out", text, "", (out.size, *values, out), size=groups)
    return out


def _for_each(numbers, name, inputs, arrays, out, operation, preamble=""):
    """Fill `out`: `operation` computes each element from those of `arrays` and the random numbers `own`."""
    if out.size:
        settle()  # it may read arrays that wait, or overwrite what these read
        text = f"Own own(seed, first + i); {operation}"
        _run(numbers, out.size, name, inputs, "T out", text, preamble, (*arrays, out))
    return out


# -- of one distribution --

_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


def singles(numbers, shape):
    """Uniform on [0, 1), single precision."""
    return _in_groups(numbers, shape, _SINGLE, "uniform", 4, "for (int k = 0; k < 4; k++) x[k] = unit(w[k]);")


def _doubles(numbers, shape):
    lines = "for (int k = 0; k < 2; k++) x[k] = unit(w[2 * k], w[2 * k + 1]);"
    return _in_groups(numbers, shape, _DOUBLE, "uniform_double", 2, lines)


def draw(numbers, out, what, a=0, b=1):
    """Like `fill` of `_kernels/cpu/random/random.py`, but without integers."""
    settle()
    shape, dtype = out.shape, out.dtype
    if what == UNIFORMS:
        out[...] = stretched(uniform(numbers, shape, dtype), a, b)
    elif what == NORMALS:
        out[...] = spread(gaussian(numbers, shape, dtype), a, b)
    elif what in _SHAPED:
        out[...] = _SHAPED[what](numbers, shape, dtype, a, b)
    else:
        out[...] = exponential(numbers, shape, dtype) / a if what == EXPONENTIALS else keep_mask(numbers, shape, a)
    return out


def uniform(numbers, shape, dtype):
    """Uniform on [0, 1), floating point or complex."""
    if dtype.kind == "c":
        return _pairs(uniform, numbers, shape, dtype)
    if dtype.itemsize >= 4:
        return singles(numbers, shape) if dtype.itemsize == 4 else _doubles(numbers, shape)
    # use only as many bits as the short type has, so that no number rounds up to 1
    steps = np.float32(2 ** (np.finfo(dtype).nmant + 1 if dtype.kind == "f" else 8))
    return (cupy().floor(singles(numbers, shape) * steps) / steps).astype(dtype)


_NORMAL = """
    const float r = sqrtf(-2 * logf(part(w[{0}]))), s = 6.2831853071795865f * unit(w[{1}]);
    x[{0}] = r * cosf(s);
    x[{1}] = r * sinf(s);
"""


def gaussian(numbers, shape, dtype):
    """Normal with mean 0 and variance 1, floating point or complex, by the Box-Muller method."""
    if dtype.kind == "c":
        return _pairs(gaussian, numbers, shape, dtype) * dtype.type(math.sqrt(0.5))
    if dtype.itemsize > 4:
        lines = (
            "const double r = sqrt(-2 * log(part(w[0], w[1]))), s = 6.283185307179586 * unit(w[2], w[3]);"
            "x[0] = r * cos(s); x[1] = r * sin(s);"
        )
        return _in_groups(numbers, shape, dtype, "gaussian_double", 2, lines)
    lines = "".join("{" + _NORMAL.format(i, i + 1) + "}" for i in (0, 2))
    return _in_groups(numbers, shape, _SINGLE, "gaussian", 4, lines).astype(dtype, copy=False)


def _pairs(draw, numbers, shape, dtype):
    """Complex numbers with independent parts."""
    part = _SINGLE if dtype.itemsize == 8 else _DOUBLE
    return draw(numbers, (*shape, 2), part).view(dtype)[..., 0]


def exponential(numbers, shape, dtype):
    """Exponential, with density exp(-x)."""
    if dtype.itemsize > 4:
        lines = "for (int k = 0; k < 2; k++) x[k] = -log(part(w[2 * k], w[2 * k + 1]));"
        return _in_groups(numbers, shape, dtype, "exponential_double", 2, lines)
    lines = "for (int k = 0; k < 4; k++) x[k] = -logf(part(w[k]));"
    return _in_groups(numbers, shape, _SINGLE, "exponential", 4, lines).astype(dtype, copy=False)


def stretched(array, low, high):
    """Scale numbers of [0, 1) to [low, high)."""
    if low == 0 and high == 1:
        return array
    number = array.dtype.type
    array = array * number(high - low) + number(low)
    if low < high:  # rounding may have reached the open end
        array = cupy().where(array >= number(high), number(low), array)
    return array


def spread(array, mean, std):
    """Scale standard normal numbers to another mean and standard deviation (numbers or arrays)."""
    mean, std = (
        as_number(value).astype(array.dtype)
        if is_array(value) or isinstance(value, np.ndarray)
        else array.dtype.type(value)
        for value in (mean, std)
    )
    return array * std + mean


def whole_numbers(numbers, shape, low, high, dtype):
    """Integers low, ..., high - 1 of a type that holds them all: the upper half of (64 random bits * their number)."""
    kind = np.dtype(np.int64) if dtype.kind == "b" or dtype.num >= 24 else dtype  # 24 and up: user-defined dtypes
    lines = """for (int k = 0; k < 2; k++) {
        const unsigned long long bits = (unsigned long long)w[2 * k] << 32 | w[2 * k + 1];
        x[k] = T((long long)(low + (span ? __umul64hi(bits, span) : bits)));
    }"""
    bounds = np.uint64(low % 2**64), np.uint64((high - low) % 2**64)
    found = _in_groups(numbers, shape, kind, "whole", 2, lines, "uint64 low, uint64 span", bounds)
    return found.astype(dtype, copy=False)


def keep_mask(numbers, shape, probability):
    """True with that probability, which may be an array that broadcasts to the shape."""
    if is_array(probability) or isinstance(probability, np.ndarray):
        return singles(numbers, shape) < as_number(probability)
    lines = "for (int k = 0; k < 4; k++) x[k] = unit(w[k]) < chance;"
    return _in_groups(numbers, shape, np.dtype(bool), "keep", 4, lines, "float64 chance", (float(probability),))


def permutation(numbers, count, dtype):
    """0, ..., count - 1 in random order."""
    with on_device(numbers.place):
        keys = whole_numbers(numbers, (count,), -(2**63), 2**63, np.dtype(np.int64))
        return cupy().argsort(keys).astype(dtype, copy=False)


def cauchy(numbers, shape, dtype, median, sigma):
    """Cauchy, with density sigma / (pi * (sigma^2 + (x - median)^2))."""
    drawn = _doubles(numbers, shape)
    return (median + sigma * cupy().tan(math.pi * (drawn - 0.5))).astype(dtype)


def log_normal(numbers, shape, dtype, mean, std):
    """Numbers whose logarithms are normally distributed."""
    return cupy().exp(spread(gaussian(numbers, shape, dtype), mean, std))


def geometric(numbers, shape, dtype, chance, _):
    """Geometric: the number of trials up to the first success."""
    trials = cupy().ceil(exponential(numbers, shape, _DOUBLE) / -math.log1p(-chance))
    return cupy().maximum(trials, 1).astype(dtype)


_SHAPED = {KINDS.CAUCHY: cauchy, KINDS.LOG_NORMAL: log_normal, KINDS.TRIALS: geometric}


# -- with a parameter for each element --

_PICK = """
    const double at = own.uniform() * edges[i / count * columns + columns - 1];
    long long low = 0, high = columns - 1;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if (edges[i / count * columns + middle] < at) low = middle + 1; else high = middle;
    }
    out = low;
"""


def running_weights(weights):
    """Return the cumulative sums of rows of weights, float64; None if a weight is negative or a sum not in (0, inf)."""
    weights = weights.astype(_DOUBLE, copy=False)
    total = weights.sum(1)
    return weights.cumsum(1) if (weights >= 0).all() and ((total > 0) & (total < math.inf)).all() else None


def picked(numbers, weights, edges, count):
    """Draw `count` indices for each row of weights, with probabilities proportional to the weights.

    `edges` are the cumulative sums of the weights.
    """
    out = cupy().empty((len(weights), count), np.int64)
    values = edges, weights.shape[1], count
    return _for_each(numbers, "pick", "raw float64 edges, int64 columns, int64 count", values, out, _PICK)


def picked_once(numbers, weights, edges, count):
    """Like `picked`, but without replacement."""
    # take the smallest of exponential waiting times of events with these rates
    waiting = exponential(numbers, weights.shape, _DOUBLE) / weights
    return cupy().ascontiguousarray(cupy().argsort(waiting, 1)[:, :count]).astype(np.int64, copy=False)


# Rates up to 10 use products of uniform numbers, larger ones transformed rejection: W. Hoermann, "The transformed
# rejection method for generating Poisson random variables" (1993), algorithm PTRS.
_POISSON = """
__device__ double poisson(double rate, Own& own) {
    if (!(rate > 0)) return rate == 0 ? 0.0 : log(-1.0);
    if (rate > 4e18) return rate + sqrt(rate < 1e300 ? rate : 1e300) * own.normal();
    if (rate < 10) {
        const double limit = exp(-rate);
        double product = own.uniform(), count = 0;
        while (product > limit) { product *= own.uniform(); count++; }
        return count;
    }
    const double root = sqrt(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double scale = 1.1239 + 1.1328 / (b - 3.4), sure = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = own.uniform() - 0.5, v = own.uniform(), s = 0.5 - fabs(u);
        const double k = floor((2 * a / s + b) * u + rate + 0.43);
        if (s >= 0.07 && v <= sure) return k;
        if (k < 0 || (s < 0.013 && v > s)) continue;
        if (log(v) + log(scale) - log(a / (s * s) + b) <= -rate + k * log(rate) - lgamma(k + 1)) return k;
    }
}
"""


def poisson(numbers, rates):
    """Poisson numbers of the type of `rates`, which must not be negative."""
    drawn = cupy().empty(rates.shape, _DOUBLE)
    _for_each(
        numbers, "poisson", "float64 rate", (rates.astype(_DOUBLE),), drawn, "out = poisson(rate, own);", _POISSON
    )
    return drawn.astype(rates.dtype)


# From the cube of a normal number: G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables" (2000).
_LOG_GAMMA = """
__device__ double log_gamma(double a, Own& own) {
    const double d = a + 2.0 / 3, c = 1 / sqrt(9 * d);
    while (a > 0) {
        const double x = own.normal(), v = 1 + c * x, cube = v * v * v;
        if (v > 0 && log(own.uniform()) < 0.5 * x * x + d * (1 - cube + log(cube)))
            return log(d * cube) + log(own.uniform()) / a;
    }
    return log(-1.0);
}
"""


def log_gamma(numbers, concentration):
    """Logarithms of gamma-distributed numbers with these shape parameters, all float64."""
    drawn = cupy().empty(concentration.shape, _DOUBLE)
    text = "out = log_gamma(a, own);"
    return _for_each(numbers, "log_gamma", "float64 a", (concentration,), drawn, text, _LOG_GAMMA)


def gamma(numbers, concentration):
    """Gamma-distributed numbers with these shape parameters, in their type."""
    return cupy().exp(log_gamma(numbers, concentration.astype(_DOUBLE))).astype(concentration.dtype)


# Few expected successes are counted by the waits between them, many drawn by transformed rejection: W. Hoermann, "The
# generation of binomial random variates" (1993), algorithm BTRS.
_BINOMIAL = """
__device__ double stirling(double k) { return lgamma(k + 1) - ((k + 0.5) * log(k + 1) - (k + 1) + 0.9189385332046727); }
__device__ double successes(double n, double p, Own& own) {
    if (n <= 0 || p <= 0) return 0;
    if (n * p < 10) {
        const double wait = log1p(-p);
        double at = 0, count = 0;
        for (;;) {
            at += ceil(log(own.uniform()) / wait);
            if (!(at <= n)) return count;
            count++;
        }
    }
    const double root = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * root, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double c = n * p + 0.5, sure = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * root;
    const double m = floor((n + 1) * p);
    for (;;) {
        const double u = own.uniform() - 0.5, s = 0.5 - fabs(u);
        double v = own.uniform();
        const double k = floor((2 * a / s + b) * u + c);
        if (s >= 0.07 && v <= sure) return k;
        if (k < 0 || k > n) continue;
        v = log(v * alpha / (a / (s * s) + b));
        if (v <= (m + 0.5) * log((m + 1) / (r * (n - m + 1))) + (n + 1) * log((n - m + 1) / (n - k + 1))
                 + (k + 0.5) * log(r * (n - k + 1) / (k + 1))
                 + stirling(m) + stirling(n - m) - stirling(k) - stirling(n - k))
            return k;
    }
}
__device__ double binomial(double trials, double chance, Own& own) {
    if (trials != trials || chance != chance) return trials + chance;
    const double n = floor(trials), p = chance < 0 ? 0 : chance > 1 ? 1 : chance;
    return p <= 0.5 ? successes(n, p, own) : n - successes(n, 1 - p, own);
}
"""


def binomial(numbers, trials, chance, shape):
    """Binomial numbers of the type of `trials`; NaN where the chance or the number of trials is NaN."""
    given = [
        cupy().broadcast_to(a, shape).astype(_DOUBLE) if is_array(a) else a.astype(_DOUBLE)[()]
        for a in (trials, chance)
    ]
    drawn = cupy().empty(shape, _DOUBLE)
    text = "out = binomial(trials, chance, own);"
    _for_each(numbers, "binomial", "float64 trials, float64 chance", given, drawn, text, _BINOMIAL)
    return drawn.astype(trials.dtype)
