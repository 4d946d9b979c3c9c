"""Unfolds windows of images into columns on GPUs, and folds them back.

Takes the arguments of `cpu/image/folding.py`.
"""

import math

from cygrad._kernels.cpu.image.folding import shuffle, unshuffle
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.image.window_geometry import TEXT, places, taps
from cygrad._kernels.gpu.launch.program import FLOATS, Program

__all__ = ["add_columns", "columns_of", "fold", "shuffle", "unfold", "unshuffle"]

_PACK = 4
_TYPES = (*FLOATS, "bool", "int8", "uint8", "int16", "int32", "int64")

# Columns are indexed [image, channel * taps + tap, place], with strides `each`, `down` and 1. A thread writes PACK
# neighbors, which are in one row of places.
_UNFOLD = Program(
    "unfold",
    TEXT
    + """
struct alignas(PACK * sizeof(T) < 16 ? PACK * sizeof(T) : 16) Pack { T v[PACK]; };
extern "C" __global__ void unfold(const T* images, T* columns, Places g, whole total, whole channels, whole each,
                                  whole down) {
    const int packs = g.size[0] * g.size[1] * g.size[2] / PACK, image = g.image[0] * g.image[1] * g.image[2];
    const int taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    EACH_OF(i, total) {
        whole plane = quotient(i, packs);
        int p = (i - plane * packs) * PACK;
        whole n = quotient(plane, channels), c = plane - n * channels;
        At o = at(p, g.size);
        const T* from = images + plane * image;
        T* to = columns + n * each + c * taps * down + p;
        for (int k0 = 0; k0 < g.kernel[0]; k0++)
            for (int k1 = 0; k1 < g.kernel[1]; k1++) {
                const int a = seen(g, 0, o.x[0], k0), b = seen(g, 1, o.x[1], k1);
                const bool is_inside = inside(a, g.image[0]) && inside(b, g.image[1]);
                const T* line = from + (a * g.image[1] + b) * g.image[2];
                for (int k2 = 0; k2 < g.kernel[2]; k2++, to += down) {
                    Pack pack;
                    #pragma unroll
                    for (int j = 0; j < PACK; j++) {
                        const int c2 = seen(g, 2, o.x[2] + j, k2);
                        pack.v[j] = is_inside && inside(c2, g.image[2]) ? line[c2] : T(0);
                    }
                    *(Pack*)to = pack;
                }
            }
    }
}
""",
    _TYPES,
)
_FOLD = Program(
    "fold",
    TEXT
    + """
extern "C" __global__ void fold(const T* columns, T* images, Places g, whole total, whole channels, whole each,
                                whole down) {
    const int image = g.image[0] * g.image[1] * g.image[2], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    EACH_OF(i, total) {
        whole plane = quotient(i, image);
        whole n = quotient(plane, channels), c = plane - n * channels;
        At p = at(i - plane * image, g.image);
        const T* from = columns + n * each + c * taps * down;
        W sum = 0;
        for (int k0 = 0; k0 < g.kernel[0]; k0++) {
            int a = seeing(g, 0, p.x[0], k0);
            if (a < 0) continue;
            for (int k1 = 0; k1 < g.kernel[1]; k1++) {
                int b = seeing(g, 1, p.x[1], k1);
                if (b < 0) continue;
                for (int k2 = 0; k2 < g.kernel[2]; k2++) {
                    int c2 = seeing(g, 2, p.x[2], k2);
                    if (c2 < 0) continue;
                    whole tap = (k0 * g.kernel[1] + k1) * g.kernel[2] + k2;
                    sum += W(from[tap * down + (a * g.size[1] + b) * g.size[2] + c2]);
                }
            }
        }
        images[i] = T(sum);
    }
}
""",
    _TYPES,
)


def columns_of(images, where, columns, each, down):
    """Unfold contiguous images into `columns`, with these strides from image to image and from row to row."""
    pack = 1 if where.size[-1] % _PACK or each % _PACK or down % _PACK else _PACK
    total = len(images) * images.shape[1] * math.prod(where.size) // pack
    args = images, columns, places(where), total, images.shape[1], each, down
    _UNFOLD.over(images.dtype, total, args, PACK=pack)


def add_columns(columns, where, images, each, down):
    """Overwrite contiguous images with the sums of columns, laid out as by `columns_of`."""
    _FOLD.over(images.dtype, images.size, (columns, images, places(where), images.size, images.shape[1], each, down))


def unfold(x, where):
    """Return the windows of images (n, channels, *image) as (n, channels * taps, places of the result)."""
    if x.dtype.kind == "c":
        return _joined(unfold(x.real, where), unfold(x.imag, where))
    rows, count = x.shape[1] * taps(where), math.prod(where.size)
    columns = cupy().empty((len(x), rows, count), x.dtype)
    columns_of(dense(x), where, columns, rows * count, count)
    return columns


def fold(columns, where):
    """Return images in which each column is added at its window: the transpose of `unfold`."""
    if columns.dtype.kind == "c":
        return _joined(fold(columns.real, where), fold(columns.imag, where))
    rows, count = columns.shape[1], math.prod(where.size)
    images = cupy().empty((len(columns), rows // taps(where), *where.image), columns.dtype)
    add_columns(dense(columns), where, images, rows * count, count)
    return images


def _joined(real, imag):
    """Return complex numbers with these parts."""
    out = cupy().empty(real.shape, cupy().result_type(real.dtype, "complex64"))
    out.real, out.imag = real, imag
    return out
