"""Convolution on GPUs; see `cpu/image/convolution.py` for the three forms.

cuDNN is preferred where it is usable (`cudnn.py`), then tensor cores (`implicit_convolution.py`). Otherwise
convolutions are matrix products over windows, by cuBLAS. Windows are unfolded into columns for a chunk of images at a
time, in scratch memory whose size does not grow with the number of images. Depthwise filters are computed as sums over
taps, in one kernel.
"""

import math
from typing import Any

from cygrad._kernels.cpu.image.convolution import backwards, is_depthwise
from cygrad._kernels.cpu.image.convolution import plus as plus_any
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.device.gpu_forms import in_float32
from cygrad._kernels.gpu.base.arrays import cast
from cygrad._kernels.gpu.base.matmul import matmul
from cygrad._kernels.gpu.image import implicit_convolution
from cygrad._kernels.gpu.image.folding import add_columns, columns_of
from cygrad._kernels.gpu.image.window_geometry import TEXT, places, taps
from cygrad._kernels.gpu.launch.program import FLOATS, Program, wide_type
from cygrad._kernels.gpu.launch.row_program import RowProgram
from cygrad._kernels.gpu.libraries import cudnn

_SCRATCH = 1 << 29  # bytes of unfolded columns
_FEW_PLACES = 64  # images with fewer output places are joined into one product

# -- filters with a channel of their own --

_CORRELATE = Program(
    "correlate",
    TEXT
    + """
extern "C" __global__ void correlate(const T* images, const T* filters, T* out, Places g, whole total, whole channels) {
    const int places = g.size[0] * g.size[1] * g.size[2], image = g.image[0] * g.image[1] * g.image[2];
    const int taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    EACH_OF(i, total) {
        whole plane = quotient(i, places);
        At o = at(i - plane * places, g.size);
        const T *x = images + plane * image, *w = filters + rest(plane, channels) * taps;
        W sum = 0;
        for (int k0 = 0; k0 < g.kernel[0]; k0++) {
            int a = seen(g, 0, o.x[0], k0);
            for (int k1 = 0; k1 < g.kernel[1]; k1++) {
                int b = seen(g, 1, o.x[1], k1);
                for (int k2 = 0; k2 < g.kernel[2]; k2++, w++) {
                    int c = seen(g, 2, o.x[2], k2);
                    if (inside(a, g.image[0]) && inside(b, g.image[1]) && inside(c, g.image[2]))
                        sum += W(x[(a * g.image[1] + b) * g.image[2] + c]) * W(*w);
                }
            }
        }
        out[i] = T(sum);
    }
}
""",
)
_SPREAD = Program(
    "spread",
    TEXT
    + """
extern "C" __global__ void spread(const T* results, const T* filters, T* out, Places g, whole total, whole channels) {
    const int places = g.size[0] * g.size[1] * g.size[2], image = g.image[0] * g.image[1] * g.image[2];
    const int taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    EACH_OF(i, total) {
        whole plane = quotient(i, image);
        At p = at(i - plane * image, g.image);
        const T *y = results + plane * places, *w = filters + rest(plane, channels) * taps;
        W sum = 0;
        for (int k0 = 0; k0 < g.kernel[0]; k0++) {
            int a = seeing(g, 0, p.x[0], k0);
            for (int k1 = 0; k1 < g.kernel[1]; k1++) {
                int b = seeing(g, 1, p.x[1], k1);
                for (int k2 = 0; k2 < g.kernel[2]; k2++, w++) {
                    int c = seeing(g, 2, p.x[2], k2);
                    if (a >= 0 && b >= 0 && c >= 0) sum += W(y[(a * g.size[1] + b) * g.size[2] + c]) * W(*w);
                }
            }
        }
        out[i] = T(sum);
    }
}
""",
)
_TAP_SUMS = RowProgram(  # a row is one tap of one channel of an image
    "tap_sums",
    TEXT
    + """
extern "C" __global__ void tap_sums(const T* images, const T* results, W* out, Places g, whole rows, whole n) {
    const int image = g.image[0] * g.image[1] * g.image[2], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    EACH_ROW(row, rows) {
        whole plane = row / taps;
        At k = at(row - plane * taps, g.kernel);
        const T *x = images + plane * image, *y = results + plane * n;
        W sum = 0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            At o = at(i, g.size);
            int a = seen(g, 0, o.x[0], k.x[0]), b = seen(g, 1, o.x[1], k.x[1]), c = seen(g, 2, o.x[2], k.x[2]);
            if (inside(a, g.image[0]) && inside(b, g.image[1]) && inside(c, g.image[2]))
                sum += W(x[(a * g.image[1] + b) * g.image[2] + c]) * W(y[i]);
        }
        sum = over_row(sum, Add());
        if (!threadIdx.x) out[row] = sum;
    }
}
""",
)


def _each_channel(program, given, w, shape, where):
    out = cupy().empty(shape, given.dtype)
    program.over(given.dtype, out.size, (dense(given), dense(w), out, places(where), out.size, len(w)))
    return out


def _tap_sums(x, g, where):
    """Return the gradient of depthwise filters, from images and result gradients."""
    count, places_of_result = taps(where), math.prod(where.size)
    out = cupy().empty((*x.shape[:2], count), wide_type(x.dtype))
    _TAP_SUMS.over_rows(x.dtype, out.size, places_of_result, (dense(x), dense(g), out, places(where)))
    return cast(out.sum(0), x.dtype).reshape(x.shape[1], 1, *where.kernel)


# -- biases --

_ADD_BIAS = Program(  # in place; a thread handles PACK neighbors of one channel
    "add_bias",
    """
struct alignas(PACK * sizeof(T) < 16 ? PACK * sizeof(T) : 16) Pack { T v[PACK]; };
extern "C" __global__ void add_bias(T* out, const T* bias, whole channels, whole packs, whole total) {
    EACH_OF(i, total) {
        const W b = W(bias[rest(quotient(i, packs), channels)]);
        Pack own = *(const Pack*)(out + i * PACK);
        #pragma unroll
        for (int j = 0; j < PACK; j++) own.v[j] = T(W(own.v[j]) + b);
        *(Pack*)(out + i * PACK) = own;
    }
}
""",
)


def plus(out, b):
    """Add a bias, one number per filter, to results in place."""
    if b is None or not out.size:
        return out
    if not (out.flags.c_contiguous and _ADD_BIAS.takes(out, b)):
        return plus_any(out, b)
    each = math.prod(out.shape[2:])
    pack = 1 if each % 4 or out.data.ptr % 16 else 4
    _ADD_BIAS.over(out.dtype, out.size // pack, (out, dense(b), len(b), each // pack, out.size // pack), PACK=pack)
    return out


# -- products --


def _with_bias(function, given, w, b, where, groups):
    """Return images or results by tensor cores, which add a bias of the same type on the way."""
    if b is not None and b.dtype != given.dtype:
        return plus(function(given, w, None, where, groups), b)
    return function(given, w, b, where, groups)


def _product(a, b):
    """Return a @ b at the precision set for convolutions."""
    return matmul(a, b, tf32=cudnn.settings["allow_tf32"])


def _blocks(n, rows, count, itemsize):
    """Return (first, last + 1) of the chunks of images whose columns fit into scratch memory."""
    step = max(1, _SCRATCH // max(1, rows * count * itemsize))
    return [(first, min(first + step, n)) for first in range(0, n, step)]


def _columns(x, where, joined):
    """Unfold contiguous images into (n, rows, places), or into (rows, n * places) if `joined`."""
    n, rows, count = len(x), x.shape[1] * taps(where), math.prod(where.size)
    if joined:
        columns = cupy().empty((rows, n * count), x.dtype)
        columns_of(x, where, columns, count, n * count)
    else:
        columns = cupy().empty((n, rows, count), x.dtype)
        columns_of(x, where, columns, rows * count, count)
    return columns


def _turned(g):
    """Return results (n, filters, places) as (filters, n * places)."""
    return dense(g.swapaxes(0, 1)).reshape(g.shape[1], -1)


def _by_parts(function, first, second):
    """Apply a bilinear function to complex arrays, by parts."""
    a, b, c, d = first.real, first.imag, second.real, second.imag
    out = cupy().empty_like(real := function(a, c) - function(b, d), cupy().result_type(real.dtype, "complex64"))
    out.real, out.imag = real, function(a, d) + function(b, c)
    return out


def correlate(x, w, b, where, groups):
    """Return results (n, filters, *size) for images, filters (filters, channels / groups, *kernel), bias or None."""
    if x.dtype.kind == "c":
        return plus(_by_parts(lambda one, other: correlate(one, other, None, where, groups), x, w), b)
    n, filters, count = len(x), len(w), math.prod(where.size)
    if is_depthwise(w.shape, groups) and x.dtype.name in FLOATS:
        return plus(_each_channel(_CORRELATE, x, w, (n, filters, *where.size), where), b)
    if not (n * filters * count and w.size):
        return plus(cupy().zeros((n, filters, *where.size), x.dtype), b)
    if (found := cudnn.computed("conv_fprop", (x, w), (n, filters, *where.size), where)) is not None:
        return plus(found, b)
    if implicit_convolution.takes(x, w, where, groups):
        return _with_bias(implicit_convolution.correlate, x, w, b, where, groups)
    if x.dtype.itemsize == 2 and not where.is_plain:
        return in_float32(correlate, x, w, b, where, groups)
    x, rows = dense(x), w[0].size
    matrix = dense(w).reshape(groups, filters // groups, rows)
    if where.is_plain:
        out = _product(matrix, x.reshape(n, groups, rows, count))
        return plus(out.reshape(n, filters, *where.size), b)
    joined = groups == 1 and count < _FEW_PLACES and n > 1
    parts = []
    for first, last in _blocks(n, rows * groups, count, x.itemsize):
        columns = _columns(x[first:last], where, joined)
        if joined:
            found = dense(_product(matrix[0], columns).reshape(filters, last - first, count).swapaxes(0, 1))
        else:
            found = _product(matrix, columns.reshape(last - first, groups, rows, count))
        parts.append(found.reshape(last - first, filters, *where.size))
    return plus(parts[0] if len(parts) == 1 else cupy().concatenate(parts), b)


def spread(g, w, b, where, groups):
    """Return images from results, filters, bias or None: the transpose of `correlate` in its images, plus the bias."""
    if g.dtype.kind == "c":
        return plus(_by_parts(lambda one, other: spread(one, other, None, where, groups), g, w), b)
    n, filters, channels, count = len(g), len(w), w.shape[1] * groups, math.prod(where.size)
    if is_depthwise(w.shape, groups) and g.dtype.name in FLOATS:
        return plus(_each_channel(_SPREAD, g, w, (n, channels, *where.image), where), b)
    out = cupy().empty((n, channels, *where.image), g.dtype)
    if not (out.size and g.size and w.size):
        out.fill(0)
        return plus(out, b)
    if (found := cudnn.computed("conv_dgrad", (g, w), out.shape, where)) is not None:
        return plus(found, b)
    if implicit_convolution.takes(g, w, where, groups):
        return _with_bias(implicit_convolution.spread, g, w, b, where, groups)
    if g.dtype.itemsize == 2 and not where.is_plain:
        return in_float32(spread, g, w, b, where, groups)
    rows = w[0].size
    matrix = w.reshape(groups, filters // groups, rows).swapaxes(1, 2)
    g = dense(g).reshape(n, groups, filters // groups, count)
    if where.is_plain:
        return plus(_product(matrix, g).reshape(out.shape), b)
    if set(where.stride) <= {1} and filters <= channels:  # fewer columns
        return correlate(g.reshape(n, filters, *where.size), backwards(w, groups), b, where.backwards, groups)
    joined = groups == 1 and count < _FEW_PLACES and n > 1
    for first, last in _blocks(n, rows * groups, count, g.itemsize):
        if joined:
            columns = _product(matrix[0], _turned(g[first:last, 0]))
            each, down = count, (last - first) * count
        else:
            columns = _product(matrix, g[first:last])
            each, down = groups * rows * count, count
        add_columns(dense(columns), where, out[first:last], each, down)
    return plus(out, b)


def filter_gradient(x, g, where, groups):
    """Return filters (filters, channels / groups, *kernel) from images and results: the transpose in the filters."""
    if x.dtype.kind == "c":
        return _by_parts(lambda one, other: filter_gradient(one, other, where, groups), x, g)
    n, channels, filters, count = len(x), x.shape[1] // groups, g.shape[1], math.prod(where.size)
    shape = filters, channels, *where.kernel
    if channels == 1 and filters == groups > 1 and x.dtype.name in FLOATS:
        return _tap_sums(x, g, where)
    if not (x.size and g.size):
        return cupy().zeros(shape, x.dtype)
    if (found := cudnn.computed("conv_wgrad", (x, g), shape, where)) is not None:
        return found
    if implicit_convolution.takes(x, g, where, groups):
        return implicit_convolution.filter_gradient(x, g, where, groups)
    rows = channels * taps(where)
    blocks = _blocks(n, rows * groups, count, x.itemsize)
    if x.dtype.itemsize == 2 and not (where.is_plain and len(blocks) == 1):
        return in_float32(filter_gradient, x, g, where, groups)
    x, g = dense(x), dense(g).reshape(n, filters, count)
    out: Any = None
    for first, last in blocks:
        if where.is_plain:
            columns = _turned(x[first:last].reshape(last - first, rows * groups, count))
        else:
            columns = _columns(x[first:last], where, True)
        results = _turned(g[first:last]).reshape(groups, filters // groups, -1)
        part = _product(results, columns.reshape(groups, rows, -1).swapaxes(1, 2))
        out = part if out is None else out + part
    return out.reshape(shape)
