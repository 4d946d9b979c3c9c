"""LDL factorization on GPUs, one thread block per matrix; format and arguments are those of `cpu/linalg/ldl.py`."""

import math

import numpy as np

from cygrad._kernels.cpu.linalg.ldl import ALPHA
from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.device.gpu_forms import device_of, half_as_float32
from cygrad._kernels.gpu.launch.matrix_program import launch

_SHARED = """
typedef long long whole;
__device__ T mirrored(T x, bool hermitian) { return hermitian ? conjugate(x) : x; }
__device__ void exchanged(T* x, T* y) { T before = *x; *x = *y; *y = before; }
"""
# The first thread chooses the pivot: the first among equals, NaN counting as largest. Only the lower triangle is read.
_FACTOR = (
    _SHARED
    + """
__device__ bool is_more(R a, R b) { return a > b || (a != a && b == b); }
extern "C" __global__ void ldl_factor(T* a, int* pivots, int* info, whole n, bool hermitian, double alpha) {
    __shared__ whole row, width;
    const whole t = threadIdx.x, threads = blockDim.x;
    a += blockIdx.x * n * n;
    pivots += blockIdx.x * n;
    info += blockIdx.x;
    for (whole k = 0; k < n; k += width) {
        __syncthreads();
        if (!t) {
            if (hermitian) a[k * n + k] = T(real_of(a[k * n + k]));
            R own = size_of(a[k * n + k]), largest = 0;
            whole i = k;
            for (whole r = k + 1; r < n; r++)
                if (r == k + 1 || is_more(size_of(a[r * n + k]), largest)) {
                    largest = size_of(a[r * n + k]);
                    i = r;
                }
            row = k;
            width = 1;
            if (own == 0 && largest == 0) {
                if (!*info) *info = (int)k + 1;
                row = -1;
            } else if (i > k && !(own >= R(alpha) * largest)) {
                R in_row = 0;
                for (whole c = k; c < i; c++)
                    if (is_more(size_of(a[i * n + c]), in_row)) in_row = size_of(a[i * n + c]);
                for (whole r = i + 1; r < n; r++)
                    if (is_more(size_of(a[r * n + i]), in_row)) in_row = size_of(a[r * n + i]);
                if (!(own >= R(alpha) * largest * (largest / in_row))) {
                    row = i;
                    width = size_of(a[i * n + i]) >= R(alpha) * in_row ? 1 : 2;
                }
            }
            for (whole w = 0; w < width; w++)
                pivots[k + w] = row < 0 ? (int)k + 1 : width == 1 ? (int)row + 1 : -((int)row + 1);
        }
        __syncthreads();
        if (row < 0) continue;
        const whole p = k + width - 1, q = row, end = k + width, rest = n - end;
        if (q != p) {
            for (whole r = p + 1 + t; r < n; r += threads) {
                if (r > q) exchanged(&a[r * n + p], &a[r * n + q]);
                else if (r == q) a[q * n + p] = mirrored(a[q * n + p], hermitian);
                else {
                    T before = a[r * n + p];
                    a[r * n + p] = mirrored(a[q * n + r], hermitian);
                    a[q * n + r] = mirrored(before, hermitian);
                }
            }
            if (!t) {
                exchanged(&a[p * n + p], &a[q * n + q]);
                if (p > k) exchanged(&a[p * n + k], &a[q * n + k]);
            }
        }
        __syncthreads();
        const T d0 = a[k * n + k], down = width == 2 ? a[p * n + k] : T(0), up = mirrored(down, hermitian);
        const T d1 = width == 2 ? a[p * n + p] : T(1), determinant = d0 * d1 - up * down;
        for (whole at = t; at < rest * rest; at += threads) {
            const whole i = end + at / rest, j = end + at % rest;
            if (j > i) continue;
            T x = a[i * n + k], y = width == 2 ? a[i * n + p] : T(0);
            T change = (x * d1 - y * down) / determinant * mirrored(a[j * n + k], hermitian);
            if (width == 2) change += (y * d0 - x * up) / determinant * mirrored(a[j * n + p], hermitian);
            a[i * n + j] -= change;
        }
        __syncthreads();
        for (whole i = end + t; i < n; i += threads) {
            T x = a[i * n + k], y = width == 2 ? a[i * n + p] : T(0);
            a[i * n + k] = (x * d1 - y * down) / determinant;
            if (width == 2) a[i * n + p] = (y * d0 - x * up) / determinant;
        }
    }
}
"""
)
_SOLVE = (
    _SHARED
    + """
__device__ void swapped(T* x, whole i, whole j, whole n, whole m) {
    if (i != j && j >= 0 && j < n) exchanged(x + i * m, x + j * m);
}
extern "C" __global__ void ldl_solve(const T* a, const int* pivots, T* b, whole n, whole m, bool hermitian) {
    a += blockIdx.x * n * n;
    pivots += blockIdx.x * n;
    for (whole c = threadIdx.x; c < m; c += blockDim.x) {
        T* x = b + blockIdx.x * n * m + c;
        whole width;
        for (whole k = 0; k < n; k += width) {
            width = pivots[k] > 0 || k + 1 == n ? 1 : 2;
            const whole end = k + width;
            swapped(x, end - 1, (pivots[k] < 0 ? -(whole)pivots[k] : pivots[k]) - 1, n, m);
            for (whole i = end; i < n; i++)
                for (whole j = k; j < end; j++) x[i * m] -= a[i * n + j] * x[j * m];
            if (width == 1) {
                x[k * m] /= a[k * n + k];
            } else {
                T d0 = a[k * n + k], down = a[(k + 1) * n + k], d1 = a[(k + 1) * n + k + 1];
                T up = mirrored(down, hermitian), determinant = d0 * d1 - up * down, y = x[k * m], z = x[(k + 1) * m];
                x[k * m] = (y * d1 - z * up) / determinant;
                x[(k + 1) * m] = (z * d0 - y * down) / determinant;
            }
        }
        for (whole end = n; end > 0; end -= width) {
            width = pivots[end - 1] > 0 || end == 1 ? 1 : 2;
            for (whole j = end - width; j < end; j++)
                for (whole i = end; i < n; i++) x[j * m] -= mirrored(a[i * n + j], hermitian) * x[i * m];
            const whole pivot = pivots[end - width];
            swapped(x, end - 1, (pivot < 0 ? -pivot : pivot) - 1, n, m);
        }
    }
}
"""
)


@half_as_float32
def ldl_factor(a, hermitian):
    """Return (LD, pivots, info) without synchronizing."""
    ld, n = cupy().array(a, order="C"), a.shape[-1]
    pivots, info = cupy().empty(a.shape[:-1], np.int32), cupy().zeros(a.shape[:-2], np.int32)
    args = ld, pivots, info, n, bool(hermitian) and a.dtype.kind == "c", ALPHA
    launch("ldl_factor", _FACTOR, a.dtype, math.prod(a.shape[:-2]) if n else 0, args)
    return cupy().tril(ld), pivots, info


@half_as_float32
def ldl_solve(ld, pivots, b, hermitian):
    """Return A^-1 B from the factors of A; batches broadcast."""
    device_of((ld, pivots, b))
    stack, (n, m) = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2]), b.shape[-2:]
    x = cupy().array(cupy().broadcast_to(b, (*stack, n, m)), order="C")
    factors = cupy().ascontiguousarray(cupy().broadcast_to(ld, (*stack, n, n)))
    pivots = cupy().ascontiguousarray(cupy().broadcast_to(pivots, (*stack, n)).astype(np.int32, copy=False))
    args = factors, pivots, x, n, m, bool(hermitian) and ld.dtype.kind == "c"
    launch("ldl_solve", _SOLVE, ld.dtype, math.prod(stack) if x.size else 0, args)
    return x
