"""Maxima of windows and their places on GPUs; takes the arguments of `_kernels/cpu/image/max_pooling.py`."""

import math

import numpy as np

from cygrad._kernels.cpu.image.max_pooling import lowest
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.image.window_geometry import TEXT, places
from cygrad._kernels.gpu.launch.program import FLOATS, Program, on_gpu

_TYPES = (*FLOATS, "uint8", "int8", "int16", "int32", "int64")
_TAKE = """
struct Largest {
    T value;
    int place;
    bool any;
    // Of equal elements the first counts, of several nan the last.
    __device__ void take(T v, int i) {
        W w = W(v), mine = W(value);
        if (!any || w > mine || w != w) { value = v; place = i; any = true; }
    }
};
"""
_OF_WINDOWS = Program(
    "of_windows",
    TEXT
    + _TAKE
    + """
extern "C" __global__ void of_windows(const T* images, T* values, whole* places, Places g, LOWEST_TYPE lowest,
                                      whole total) {
    const int count = g.size[0] * g.size[1] * g.size[2], image = g.image[0] * g.image[1] * g.image[2];
    EACH_OF(i, total) {
        whole plane = quotient(i, count);
        At o = at(i - plane * count, g.size);
        const T* x = images + plane * image;
        Largest best;
        best.value = T(lowest);
        best.any = false;
        best.place = (seen(g, 0, o.x[0], 0) * g.image[1] + seen(g, 1, o.x[1], 0)) * g.image[2] + seen(g, 2, o.x[2], 0);
        for (int k0 = 0; k0 < g.kernel[0]; k0++) {
            int a = seen(g, 0, o.x[0], k0);
            if (!inside(a, g.image[0])) continue;
            for (int k1 = 0; k1 < g.kernel[1]; k1++) {
                int b = seen(g, 1, o.x[1], k1);
                if (!inside(b, g.image[1])) continue;
                for (int k2 = 0; k2 < g.kernel[2]; k2++) {
                    int c = seen(g, 2, o.x[2], k2);
                    int place = (a * g.image[1] + b) * g.image[2] + c;
                    if (inside(c, g.image[2])) best.take(x[place], place);
                }
            }
        }
        values[i] = best.value;
        if (places) places[i] = best.place < 0 ? 0 : best.place >= image ? image - 1 : best.place;
    }
}
""",
    _TYPES,
)
# Tables (planes or 1, windows, taps) of places along three dimensions.
_OF_PLACES = Program(
    "of_places",
    TEXT
    + _TAKE
    + """
extern "C" __global__ void of_places(const T* images, T* values, whole* places, const whole* t0, const whole* t1,
                                     const whole* t2, Places g, whole own, whole total) {
    const int count = g.size[0] * g.size[1] * g.size[2], image = g.image[0] * g.image[1] * g.image[2];
    EACH_OF(i, total) {
        whole plane = quotient(i, count), table = own ? plane : 0;
        At o = at(i - plane * count, g.size);
        const T* x = images + plane * image;
        const whole* a = t0 + (table * g.size[0] + o.x[0]) * g.kernel[0];
        const whole* b = t1 + (table * g.size[1] + o.x[1]) * g.kernel[1];
        const whole* c = t2 + (table * g.size[2] + o.x[2]) * g.kernel[2];
        Largest best;
        best.any = false;
        for (int k0 = 0; k0 < g.kernel[0]; k0++)
            for (int k1 = 0; k1 < g.kernel[1]; k1++)
                for (int k2 = 0; k2 < g.kernel[2]; k2++) {
                    int place = (a[k0] * g.image[1] + b[k1]) * g.image[2] + c[k2];
                    best.take(x[place], place);
                }
        values[i] = best.value;
        places[i] = best.place;
    }
}
""",
    _TYPES,
)


def of_windows(x, where, with_places):
    """Return (maxima, their places or None) of windows of one size."""
    shape = *x.shape[: x.ndim - len(where.size)], *where.size
    values = cupy().empty(shape, x.dtype)
    found = cupy().empty(shape, np.int64) if with_places else None
    kind = "whole" if x.dtype.kind in "iu" else "double"
    args = dense(x), values, found, places(where), lowest(x.dtype), values.size
    _OF_WINDOWS.over(x.dtype, values.size, args, LOWEST_TYPE=kind)
    return values, found


# A thread visits the windows that see its place of the image, in order.
_TO_MAXIMA = Program(
    "to_maxima",
    TEXT
    + """
extern "C" __global__ void to_maxima(const T* grads, const whole* places, T* out, Places g, whole total) {
    const int count = g.size[0] * g.size[1] * g.size[2], image = g.image[0] * g.image[1] * g.image[2];
    EACH_OF(i, total) {
        const whole plane = quotient(i, image);
        const int place = (int)(i - plane * image);
        const At p = at(place, g.image);
        int low[3], high[3];
        #pragma unroll
        for (int d = 0; d < 3; d++) {
            const int end = p.x[d] + g.low[d], begin = end - g.kernel[d] + 1;
            low[d] = begin > 0 ? (begin + g.stride[d] - 1) / g.stride[d] : 0;
            high[d] = end / g.stride[d] < g.size[d] ? end / g.stride[d] : g.size[d] - 1;
        }
        W sum = W(0);
        for (int a = low[0]; a <= high[0]; a++)
            for (int b = low[1]; b <= high[1]; b++)
                for (int c = low[2]; c <= high[2]; c++) {
                    const whole window = plane * count + (a * g.size[1] + b) * g.size[2] + c;
                    if (places[window] == place) sum += W(grads[window]);
                }
        out[i] = T(sum);
    }
}
""",
)


def to_maxima(grads, places_of_maxima, where, shape):
    """Return zeros of this shape plus each window's gradient at the place of its maximum; without dilation."""
    out = cupy().empty(shape, grads.dtype)
    args = dense(grads), dense(places_of_maxima), out, places(where), out.size
    _TO_MAXIMA.over(grads.dtype, out.size, args)
    return out


def has_gradient(array, where):
    """Whether `to_maxima` applies: each window has seen an element."""
    return set(where.dilation) <= {1} and _TO_MAXIMA.takes(array)


class _Tables:
    """The geometry that `places` expects, for windows given by tables."""

    def __init__(self, image, tables):
        self.image, self.size = image, [table.shape[-2] for table in tables]
        self.kernel = [table.shape[-1] for table in tables]
        self.stride = self.dilation = [1] * len(tables)
        self.low = [0] * len(tables)


def of_places(x, dims, indices):
    """Return (maxima, their places) of windows given by tables of their places along each dimension."""
    image = x.shape[x.ndim - dims :]
    where, own = _Tables(image, indices), indices[0].ndim == 3
    shape = *x.shape[: x.ndim - dims], *where.size
    values, found = cupy().empty(shape, x.dtype), cupy().empty(shape, np.int64)
    none = np.zeros((math.prod(x.shape[: x.ndim - dims]) if own else 1, 1, 1), np.int64)
    tables = [on_gpu(table) for table in ([none] * (3 - dims) + list(indices))]
    args = dense(x), values, found, *map(dense, tables), places(where), int(own), values.size
    _OF_PLACES.over(x.dtype, values.size, args)
    return values, found


_UNPOOLED = Program(
    "unpooled",
    """
extern "C" __global__ void unpooled(const T* planes, const whole* places, T* out, whole each, whole count,
                                    whole total) {
    EACH_OF(i, total) {
        whole place = places[i];
        if (place >= 0 && place < count) out[quotient(i, each) * count + place] = planes[i];
    }
}
""",
    _TYPES,
)


def unpooled(planes, places, count):
    """Scatter planes to these places of zeros (planes, count); out-of-bounds places are ignored."""
    out = cupy().zeros((len(planes), count), planes.dtype)
    args = dense(planes), dense(places), out, planes.shape[1], count, planes.size
    _UNPOOLED.over(planes.dtype, planes.size, args)
    return out
