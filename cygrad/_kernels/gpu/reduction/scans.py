"""Running extrema and log-sums along an axis on GPUs; see `_kernels/cpu/reduction/scans.py`.

A thread block scans one line in chunks of one element per thread. Each step of the scan of a chunk doubles the distance
that an element's result reaches back (Hillis-Steele).
"""

from functools import cache

import numpy as np

from cygrad._kernels.cpu.reduction.scans import log_of_sum
from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.device.gpu_forms import half_as_float32

THREADS = 256
MOST_BLOCKS = 1 << 16
_TYPES = {
    "float16": "float16", "float32": "float", "float64": "double", "int8": "signed char", "uint8": "unsigned char",
    "int16": "short", "int32": "int", "int64": "long long",
}  # fmt: skip

_SCAN = """
#include <cupy/carray.cuh>
#include <cupy/float16.cuh>
typedef {type} T;
typedef {wide} W;
// Whether the later of two elements is the result; of a sum both are.
__device__ inline bool wins(W late, W early) {{ return late != late || (early == early && late {order} early); }}
__device__ inline W both(W late, W early) {{
#if {is_sum}
    if (late == early) return late + W(0.6931471805599453);
    W d = late - early;
    return d > 0 ? late + log1p(exp(-d)) : d <= 0 ? early + log1p(exp(d)) : d;
#else
    return late;  // whole numbers have no exp
#endif
}}
extern "C" __global__ void cygrad_scan(const T* a, T* out, long long* places, long long lines, long long n,
                                       long long inner) {{
    __shared__ W values[{threads}];
    __shared__ long long indices[{threads}];
    const int t = threadIdx.x;
    for (long long line = blockIdx.x; line < lines; line += gridDim.x) {{
        const long long first = line / inner * n * inner + line % inner;
        W so_far = 0;
        long long so_far_at = 0;
        for (long long start = 0; start < n; start += {threads}) {{
            const long long i = start + t, count = n - start < {threads} ? n - start : {threads};
            W value = t < count ? W(a[first + i * inner]) : W(0);
            long long at = i;
            if (t == 0 && start > 0) {{
                if ({is_sum}) value = both(value, so_far);
                else if (!wins(value, so_far)) {{ value = so_far; at = so_far_at; }}
            }}
            values[t] = value;
            indices[t] = at;
            __syncthreads();
            for (int back = 1; back < {threads}; back *= 2) {{
                W early = value;
                long long early_at = at;
                if (t >= back) {{ early = values[t - back]; early_at = indices[t - back]; }}
                __syncthreads();
                if (t >= back) {{
                    if ({is_sum}) value = both(value, early);
                    else if (!wins(value, early)) {{ value = early; at = early_at; }}
                }}
                values[t] = value;
                indices[t] = at;
                __syncthreads();
            }}
            if (t < count) {{
                out[first + i * inner] = T(value);
                if (places) places[first + i * inner] = at;
            }}
            so_far = values[count - 1];
            so_far_at = indices[count - 1];
            __syncthreads();
        }}
    }}
}}
"""


@cache
def _kernel(dtype, order, is_sum, _library):
    name = _TYPES[dtype.name]
    wide = "float" if name == "float16" else name
    text = _SCAN.format(type=name, wide=wide, order=order, is_sum=int(is_sum), threads=THREADS)
    return _library.RawKernel(text, "cygrad_scan")


def _scan(a, axis, order, is_sum, with_places):
    a = cupy().ascontiguousarray(a)
    out = cupy().empty(a.shape, a.dtype)
    places = cupy().empty(a.shape, np.int64) if with_places else None
    if a.size:
        n, inner = a.shape[axis], int(np.prod(a.shape[axis:][1:] if axis >= 0 else a.shape[a.ndim + axis + 1 :]))
        lines = a.size // n
        blocks = min(lines, MOST_BLOCKS)
        _kernel(a.dtype, order, is_sum, cupy())((blocks,), (THREADS,), (a, out, places, lines, n, inner))
    return out, places


@half_as_float32
def running_extremum(a, axis, largest):
    """Return (running maximum or minimum along an axis, its index). The last of equal ones counts; NaN persists."""
    if a.ndim == 0:
        return a.copy(), cupy().zeros((), np.int64)
    if a.dtype == np.bool_:
        values, places = running_extremum(a.view(np.uint8), axis, largest)
        return values.view(np.bool_), places
    return _scan(a, axis, ">=" if largest else "<=", False, True)


def running(order, a, axis):
    """Return the running maximum (`order` is ">=") or minimum ("<=") along an axis."""
    return _scan(a, axis, order, False, False)[0]


@half_as_float32
def logcumsumexp(a, axis):
    """log(exp(a[0]) + ... + exp(a[i])) without overflow."""
    if a.ndim == 0:
        return a.copy()
    if a.dtype.kind != "c":
        return _scan(a, axis, ">=", True, False)[0]
    out = cupy().moveaxis(a, axis, 0).copy()
    back = 1
    while back < len(out):
        out[back:] = log_of_sum(out[:-back], out[back:])
        back *= 2
    return cupy().ascontiguousarray(cupy().moveaxis(out, 0, axis))
