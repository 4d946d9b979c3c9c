"""Sorting and order statistics along an axis on GPUs; see `cpu/reduction/sorting.py`. CuPy's sort is stable."""

import numpy as np

from cygrad._kernels.cpu.reduction.sorting import of_no_numbers, one
from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.device.gpu_forms import half_as_float32
from cygrad._kernels.gpu.base.elementwise import to_sort
from cygrad._kernels.gpu.launch.program import FLOATS, Program
from cygrad._kernels.gpu.reduction.arg_extrema import argmax
from cygrad._kernels.gpu.reduction.scans import running

_LONG, _PART = 1024, 8  # if rows are at least so long, a fraction of them is selected without a full sort
# Radix select with one block per row: finds the k-th element 8 bits of its rank at a time, then writes, in order, the
# places of all smaller elements and of as many equal ones as needed. NaN comes after all numbers.
_FIRST = Program(
    "first_of_rows",
    """
typedef unsigned long long Rank;
__device__ inline Rank rank_of(double v) {
    Rank u = __double_as_longlong(v == 0 ? 0.0 : v), top = 1ull << 63;
    return v != v ? ~0ull : u & top ? ~u : u | top;
}
__device__ inline Rank rank_of(long long v) { return (Rank)v ^ 1ull << 63; }
extern "C" __global__ void first_of_rows(const T* a, whole* places, whole n, whole k, whole largest) {
    __shared__ unsigned counts[256], before_of[8][2];
    __shared__ Rank found;
    __shared__ whole wanted, taken[2];
    const int t = threadIdx.x, lane = t & 31;
    const Rank flip = largest ? ~(Rank)0 : (Rank)0;
    a += blockIdx.x * n;
    places += blockIdx.x * k;
    if (!t) { found = 0; wanted = k; taken[0] = taken[1] = 0; }
    for (int shift = 56; shift >= LOWEST; shift -= 8) {
        counts[t] = 0;
        __syncthreads();
        for (whole i = t; i < n; i += 256) {
            Rank r = rank_of((Wide)W(a[i])) ^ flip;
            if (shift == 56 || r >> (shift + 8) == found >> (shift + 8))
                atomicAdd(&counts[r >> shift & 255], 1u);
        }
        __syncthreads();
        if (!t) {
            int bin = 0;
            for (; counts[bin] < wanted; bin++) wanted -= counts[bin];
            found |= (Rank)bin << shift;
        }
        __syncthreads();
    }
    const Rank last = found >> LOWEST;
    const whole equals = wanted;
    for (whole start = 0; start < n; start += 256) {
        const Rank r = start + t < n ? (rank_of((Wide)W(a[start + t])) ^ flip) >> LOWEST : 0;
        const int is[2] = {start + t < n && r < last, start + t < n && r == last};
        int own[2];
        for (int kind = 0; kind < 2; kind++) {
            unsigned votes = __ballot_sync(0xffffffffu, is[kind]);
            own[kind] = __popc(votes & ((1u << lane) - 1));
            if (!lane) before_of[t >> 5][kind] = __popc(votes);
        }
        __syncthreads();
        for (int kind = 0; kind < 2; kind++) {
            whole at = taken[kind] + own[kind];
            for (int warp = 0; warp < t >> 5; warp++) at += before_of[warp][kind];
            if (is[kind] && (kind == 0 || at < equals)) places[kind ? k - equals + at : at] = start + t;
        }
        __syncthreads();
        if (t < 2) for (int warp = 0; warp < 8; warp++) taken[t] += before_of[warp][t];
        __syncthreads();
    }
}
""",
    (*FLOATS, "int8", "uint8", "int16", "int32", "int64"),
)


@half_as_float32
def sorted_along(a, axis, descending=False):
    """Return (the sorted elements along an axis, their indices)."""
    if descending:
        values, order = sorted_along(cupy().flip(a, axis), axis)
        order = a.shape[axis] - 1 - order
        return tuple(cupy().ascontiguousarray(cupy().flip(found, axis)) for found in (values, order))
    order = _order(a, axis)
    return cupy().take_along_axis(a, order, axis), order


def _order(a, axis):
    if not a.size:
        return cupy().zeros(a.shape, np.int64)
    return cupy().argsort(to_sort(a), axis).astype(np.int64, copy=False)


@half_as_float32
def first_along(a, axis, k, largest):
    """Return (the k largest or smallest elements along an axis, sorted, their indices)."""
    n = a.shape[axis] if a.ndim else 0
    if n >= _LONG and a.size and 0 < k <= n // _PART and _FIRST.takes(a):
        rows = dense(cupy().moveaxis(a, axis, -1))
        places = cupy().empty((*rows.shape[:-1], k), np.int64)
        # float64 values computed in float32 end in zeros
        wide, lowest = ("long long", 0) if a.dtype.kind in "iu" else ("double", 0 if a.dtype.itemsize == 8 else 24)
        args = rows, places, n, k, int(largest)
        _FIRST.launch(a.dtype, rows.size // n, 256, args, Wide=wide, LOWEST=lowest)
        values, order = sorted_along(cupy().take_along_axis(rows, places, -1), -1, largest)
        found = values, cupy().take_along_axis(places, order, -1)
        return tuple(cupy().ascontiguousarray(cupy().moveaxis(f, -1, axis)) for f in found)
    part = (slice(None),) * axis + (slice(0, k),)
    return tuple(cupy().ascontiguousarray(found[part]) for found in sorted_along(a, axis, largest))


@half_as_float32
def kth_along(a, axis, k):
    """Return the index of the k-th smallest element (0-based) along an axis; 0 if there are no elements."""
    return _order(a, axis)[(slice(None),) * axis + (slice(k, k + 1),)] if a.size else _nothing(a, axis)


def _nothing(a, axis):
    return cupy().zeros(one(a, axis), np.int64)


@half_as_float32
def median_along(a, axis):
    """Return the index of the lower median along an axis, or of the first NaN if there is one."""
    middle = kth_along(a, axis, (a.shape[axis] - 1) // 2)
    if a.dtype.kind != "f" or not a.size:
        return middle
    is_nan = cupy().isnan(a)
    first = argmax(is_nan, axis, True)
    return cupy().where(is_nan.any(axis, keepdims=True), first, middle)


@half_as_float32
def middle_along(a, axis):
    """Return the index of the lower median along an axis, ignoring NaN; 0 for an axis of length 0."""
    if a.dtype.kind != "f" or not a.size:
        return kth_along(a, axis, (a.shape[axis] - 1) // 2)
    missing = cupy().isnan(a).sum(axis, keepdims=True)
    places = cupy().maximum(a.shape[axis] - missing - 1, 0) // 2
    return cupy().take_along_axis(_order(a, axis), places, axis)


@half_as_float32
def most_frequent(a, axis):
    """Return the index of the last occurrence of the mode along an axis; ties go to the smallest value."""
    if not a.size:
        return _nothing(a, axis)
    order = _order(a, axis)
    ordered = cupy().moveaxis(cupy().take_along_axis(a, order, axis), axis, -1)
    places = cupy().arange(ordered.shape[-1])
    begins = cupy().ones(ordered.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    starts = running(">=", cupy().where(begins, places, 0), -1)
    last = argmax(places - starts, -1, True)
    return cupy().take_along_axis(order, cupy().moveaxis(last, -1, axis), axis)


@half_as_float32
def median_of_all(a):
    """Return the lower median of all elements; NaN if one is NaN, or there are none."""
    if not a.size:
        return cupy().full((), of_no_numbers(a.dtype), a.dtype)
    ordered = cupy().sort(to_sort(a.reshape(-1)))
    middle = ordered[(a.size - 1) // 2]
    return cupy().where(ordered[-1] != ordered[-1], ordered[-1], middle)  # NaN sorts last


@half_as_float32
def nanmedian_of_all(a):
    """Return the lower median of all elements, ignoring NaN; NaN if there are none."""
    if not a.size or a.dtype.kind != "f":
        return median_of_all(a)
    place = cupy().maximum(a.size - cupy().isnan(a).sum() - 1, 0) // 2
    return cupy().take(cupy().sort(to_sort(a.reshape(-1))), place)
