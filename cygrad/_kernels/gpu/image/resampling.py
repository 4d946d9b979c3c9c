"""Linear maps along the axes of an array on GPUs, given by the tables of `_kernels/cpu/image/resampling.py`.

Maps of up to three axes run in one kernel if each result depends on few elements, else one after the other.
"""

import math
from weakref import WeakKeyDictionary

import numpy as np

from cygrad._kernels.cpu.image.resampling import growth
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.image.window_geometry import TEXT, places
from cygrad._kernels.gpu.launch.program import FLOATS, Program, on_gpu
from cygrad._kernels.gpu.runtime.graph_capture import current, kept, place, uploaded

_MOST_TAPS = 64  # limit for one kernel, over all axes

# NULL `weights` mean 1, NULL `counts` mean all taps. Divisors have a stride of 0 or 1 along each axis.
_RESAMPLE = Program(
    "resample",
    TEXT
    + """
extern "C" __global__ void resample(const T* a, T* out, Places g, const int* p0, const int* p1, const int* p2,
                                    const int* c0, const int* c1, const int* c2, const double* w0, const double* w1,
                                    const double* w2, const double* divisor, whole back, whole total) {
    const int count = g.size[0] * g.size[1] * g.size[2];
    EACH_OF(i, total) {
        whole plane = quotient(i, count);
        At o = at(i - plane * count, g.size);
        const T* x = a + plane * g.image[0] * g.image[1] * g.image[2];
        int a0 = o.x[0] * g.kernel[0], a1 = o.x[1] * g.kernel[1], a2 = o.x[2] * g.kernel[2];
        int n0 = c0 ? c0[o.x[0]] : g.kernel[0], n1 = c1 ? c1[o.x[1]] : g.kernel[1], n2 = c2 ? c2[o.x[2]] : g.kernel[2];
        W sum = 0;
        for (int k0 = 0; k0 < n0; k0++) {
            int x0 = p0 ? p0[a0 + k0] : o.x[0];
            W u = w0 ? W(w0[a0 + k0]) : W(1);
            for (int k1 = 0; k1 < n1; k1++) {
                int x1 = p1 ? p1[a1 + k1] : o.x[1];
                W v = w1 ? u * W(w1[a1 + k1]) : u;
                for (int k2 = 0; k2 < n2; k2++) {
                    int x2 = p2 ? p2[a2 + k2] : o.x[2];
                    W one = W(x[(x0 * g.image[1] + x1) * g.image[2] + x2]) * (w2 ? v * W(w2[a2 + k2]) : v);
                    if (divisor && back) one /= W(divisor[x0 * g.stride[0] + x1 * g.stride[1] + x2 * g.stride[2]]);
                    sum += one;
                }
            }
        }
        if (divisor && !back) sum /= W(divisor[o.x[0] * g.stride[0] + o.x[1] * g.stride[1] + o.x[2] * g.stride[2]]);
        out[i] = T(sum);
    }
}
""",
    (*FLOATS, "uint8", "int8", "int16", "int32", "int64"),
)
_of_tables: WeakKeyDictionary = WeakKeyDictionary()  # (places, counts, weights) by `place()`


class _Places:
    """The geometry that `places` expects: per axis the lengths before and after, the taps, and the divisor's stride."""

    def __init__(self, image, tables, divisor):
        self.image = image
        self.size = [n if table is None else len(table) for n, table in zip(image, tables)]
        self.kernel = [1 if table is None else table.places.shape[1] for table in tables]
        self.dilation = self.low = [0] * len(image)
        self.stride = [0] * len(image) if divisor is None else _steps(divisor)


def _arrays_of(table):
    """Return places, counts and weights of a table on the current GPU, each None if trivial."""
    if table is None:
        return None, None, None
    found = _of_tables.setdefault(table, {})
    index = place()
    if index not in found:
        counts = None if (table.counts == table.places.shape[1]).all() else table.counts.astype(np.int32)
        weights = None if table.weights is None else np.asarray(table.weights, np.float64)
        given = table.places.astype(np.int32), counts, weights
        arrays = tuple(None if a is None else uploaded(np.ascontiguousarray(a)) for a in given)
        if current() is not None:
            return arrays
        found[index] = arrays
    return kept(found[index])


def _divisor(divisor, dims):
    """Return divisors as a contiguous array with one axis per map."""
    if divisor is None:
        return None
    return np.ascontiguousarray(divisor, np.float64).reshape((1,) * (dims - divisor.ndim) + divisor.shape)


def _steps(divisor):
    """Return the strides of divisors in elements; 0 along axes with one divisor for all."""
    return [0 if n == 1 else s // divisor.itemsize for n, s in zip(divisor.shape, divisor.strides)]


def mapped(a, tables, divisor, back):
    """Apply the tables, then divide by `divisor`; or, with `back`, apply the transpose of this."""
    if a.dtype.kind == "c":
        out = cupy().empty_like(real := mapped(a.real, tables, divisor, back), a.dtype)
        out.real, out.imag = real, mapped(a.imag, tables, divisor, back)
        return out
    tables = [table if table is None or not back else table.transposed for table in tables]
    dims = len(tables)
    divisor = _divisor(divisor, dims)
    a = dense(a)
    if math.prod(_Places(a.shape[a.ndim - dims :], tables, None).kernel) <= _MOST_TAPS:
        return _through(a, tables, divisor, back)
    # Maps that shrink the array come first. The division goes where the results of all maps are.
    order = sorted((d for d in range(dims) if tables[d] is not None), key=lambda d: growth(tables[d]))
    for number, d in enumerate(order):
        one = [table if at == d else None for at, table in enumerate(tables)]
        own = divisor if number == (0 if back else len(order) - 1) else None
        a = _through(a, one, own, back)
    return a


def _through(a, tables, divisor, back):
    dims = len(tables)
    where = _Places(a.shape[a.ndim - dims :], tables, divisor)
    out = cupy().empty((*a.shape[: a.ndim - dims], *where.size), a.dtype)
    arrays = list(zip(*[(None, None, None)] * (3 - dims), *map(_arrays_of, tables)))
    by = on_gpu(divisor)
    args = a, out, places(where), *arrays[0], *arrays[1], *arrays[2], by, int(back), out.size
    _RESAMPLE.over(a.dtype, out.size, args)
    return out
