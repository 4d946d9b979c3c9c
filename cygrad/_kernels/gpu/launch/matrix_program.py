"""Our own kernels for stacks of matrices, one thread block per matrix, for what CuPy cannot do without synchronizing.

Matrices are factored in panels of a few columns; the updates between panels are matrix products by cuBLAS.
"""

from functools import cache

from cygrad._kernels.device.cupy_library import cupy

_REAL = """
typedef {0} T;
typedef {0} R;
__device__ R size_of(T x) {{ return x < 0 ? -x : x; }}
__device__ R real_of(T x) {{ return x; }}
__device__ T conjugate(T x) {{ return x; }}
"""
_COMPLEX = """
#include <cupy/complex.cuh>
typedef complex<{0}> T;
typedef {0} R;
__device__ R size_of(T x) {{
    R a = x.real(), b = x.imag();
    return (a < 0 ? -a : a) + (b < 0 ? -b : b);
}}
__device__ R real_of(T x) {{ return x.real(); }}
__device__ T conjugate(T x) {{ return conj(x); }}
"""
_TYPES = {
    "f": _REAL.format("float"),
    "d": _REAL.format("double"),
    "F": _COMPLEX.format("float"),
    "D": _COMPLEX.format("double"),
}
_THREADS = 256


@cache
def _kernel(name, text, kind, _library):
    return _library.RawKernel((_TYPES[kind] if kind else "") + text, name)


def launch(name, text, dtype, count, args):
    """Run a kernel on `count` matrices, with one thread block each."""
    if count:
        _kernel(name, text, dtype.char, cupy())((count,), (_THREADS,), args)


# Pivot search: NaN counts as the largest, and ties go to the first.
_LU = """
__device__ bool comes_first(R a, long long i, R b, long long j) {
    if (a != a) return b == b || i < j;
    return a > b || (a == b && i < j);
}
extern "C" __global__ void lu_panel(T* lu, int* pivots, int* info, long long m, long long n, long long k,
                                    long long start, long long stop) {
    __shared__ R best[256];
    __shared__ long long at[256];
    const long long t = threadIdx.x, threads = blockDim.x;
    lu += blockIdx.x * m * n;
    pivots += blockIdx.x * k;
    info += blockIdx.x;
    for (long long j = start; j < stop; j++) {
        best[t] = -1;
        at[t] = m;
        for (long long i = j + t; i < m; i += threads) {
            R size = size_of(lu[i * n + j]);
            if (comes_first(size, i, best[t], at[t])) { best[t] = size; at[t] = i; }
        }
        __syncthreads();
        for (long long s = threads / 2; s; s >>= 1) {
            if (t < s && comes_first(best[t + s], at[t + s], best[t], at[t])) {
                best[t] = best[t + s];
                at[t] = at[t + s];
            }
            __syncthreads();
        }
        const long long p = at[0];
        if (p != j)
            for (long long c = t; c < n; c += threads) {
                T x = lu[j * n + c];
                lu[j * n + c] = lu[p * n + c];
                lu[p * n + c] = x;
            }
        __syncthreads();
        const T pivot = lu[j * n + j];
        const bool is_zero = pivot == T(0);
        if (t == 0) {
            pivots[j] = p + 1;
            if (is_zero && !*info) *info = j + 1;
        }
        if (!is_zero)
            for (long long i = j + 1 + t; i < m; i += threads) lu[i * n + j] /= pivot;
        __syncthreads();
        const long long width = stop - j - 1;
        for (long long e = t; e < (m - j - 1) * width; e += threads) {
            long long i = j + 1 + e / width, c = j + 1 + e % width;
            lu[i * n + c] -= lu[i * n + j] * lu[j * n + c];
        }
        __syncthreads();
    }
}
"""


def lu_panel(lu, pivots, info, start, stop):
    """Eliminate within a panel of columns of a stack (count, m, n), swapping whole rows."""
    count, m, n = lu.shape
    run = _kernel("lu_panel", _LU, lu.dtype.char, cupy())
    run((count,), (_threads(m),), (lu, pivots, info, m, n, pivots.shape[1], start, stop))


def _threads(rows):
    return 32 if rows <= 16 else 64 if rows <= 64 else _THREADS


_CHOLESKY = """
extern "C" __global__ void cholesky_panel(T* a, int* info, long long n, long long start, long long stop) {
    const long long t = threadIdx.x, threads = blockDim.x;
    a += blockIdx.x * n * n;
    info += blockIdx.x;
    if (*info) return;
    for (long long j = start; j < stop; j++) {
        const R square = real_of(a[j * n + j]);
        __syncthreads();
        if (!(square > 0)) {
            if (t == 0) *info = j + 1;
            return;
        }
        const R root = sqrt(square);
        if (t == 0) a[j * n + j] = T(root);
        for (long long i = j + 1 + t; i < n; i += threads) a[i * n + j] /= root;
        __syncthreads();
        const long long width = stop - j - 1;
        for (long long e = t; e < (n - j - 1) * width; e += threads) {
            long long i = j + 1 + e / width, c = j + 1 + e % width;
            if (c <= i) a[i * n + c] -= a[i * n + j] * conjugate(a[c * n + j]);
        }
        __syncthreads();
    }
}
"""


def cholesky_panel(a, info, start, stop):
    """Factor a panel of columns of a stack (count, n, n), reading the lower triangles."""
    count, n, _ = a.shape
    run = _kernel("cholesky_panel", _CHOLESKY, a.dtype.char, cupy())
    run((count,), (_threads(n),), (a, info, n, start, stop))


_SUBSTITUTE = """
extern "C" __global__ void substitute(const T* a, T* x, long long n, long long width, long long count,
                                      bool upper, bool unit) {
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < count * width;
         e += gridDim.x * (long long)blockDim.x) {
        const T* row = a + e / width * n * n;
        T* solved = x + e / width * n * width + e % width;
        for (long long s = 0; s < n; s++) {
            const long long i = upper ? n - 1 - s : s;
            T value = solved[i * width];
            for (long long j = upper ? i + 1 : 0; j < (upper ? n : i); j++)
                value -= row[i * n + j] * solved[j * width];
            solved[i * width] = unit ? value : value / row[i * n + i];
        }
    }
}
"""


def substitute(a, x, upper, unit):
    """Overwrite x (count, n, width) with the solutions for triangles (count, n, n), one thread per column."""
    count, n, width = x.shape
    blocks = min(-(-count * width // _THREADS), 1 << 20)
    if blocks and n:
        run = _kernel("substitute", _SUBSTITUTE, x.dtype.char, cupy())
        run((blocks,), (_THREADS,), (a, x, n, width, count, upper, unit))


_ORDER = """
extern "C" __global__ void order_of_rows(const int* pivots, long long* order, long long k, long long m,
                                         long long count) {
    const long long matrix = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (matrix >= count) return;
    pivots += matrix * k;
    order += matrix * m;
    for (long long i = 0; i < m; i++) order[i] = i;
    for (long long i = 0; i < k; i++) {
        const long long other = pivots[i] - 1;
        if (other < 0 || other >= m) continue;
        const long long moved = order[other];
        order[other] = order[i];
        order[i] = moved;
    }
}
"""


def order_of_rows(pivots, m):
    """Return the permutations (count, m) of m rows that the 1-based pivots (count, k) describe."""
    count, k = pivots.shape
    order = cupy().empty((count, m), "int64")
    if order.size:
        run = _kernel("order_of_rows", _ORDER, "", cupy())
        run((-(-count // _THREADS),), (_THREADS,), (cupy().ascontiguousarray(pivots), order, k, m, count))
    return order
