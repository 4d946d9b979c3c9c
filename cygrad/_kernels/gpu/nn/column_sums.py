"""Sums over the columns of matrices, and their products with normalized elements: gradients of weights and biases."""

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.launch.program import Program, wide_type
from cygrad._kernels.gpu.launch.reduction_program import folded

# A block handles some of the rows and 32 columns of a matrix: the sums of g and, if x is given, of g * xhat. Statistics
# are per row or, with BY_COLUMN, per column.
_COLUMN_SUMS = Program(
    "column_sums",
    """
extern "C" __global__ void column_sums(const T* grad, const T* a, const W* middle, const W* factor, W* sums,
                                       whole rows, whole n, whole each) {
    __shared__ W of_products[8][32], of_sums[8][32];
    whole c = blockIdx.x * 32 + threadIdx.x, last = (blockIdx.y + 1) * each;
    W p = 0, s = 0;
    if (c < n)
        for (whole row = blockIdx.y * each + threadIdx.y; row < (last < rows ? last : rows); row += 8) {
            W g = W(grad[row * n + c]);
            whole at = BY_COLUMN ? c : row;
            if (a) p += g * (W(a[row * n + c]) - middle[at]) * factor[at];
            s += g;
        }
    of_products[threadIdx.y][threadIdx.x] = p;
    of_sums[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y == 0 && c < n) {
        for (int i = 1; i < 8; i++) { p += of_products[i][threadIdx.x]; s += of_sums[i][threadIdx.x]; }
        sums[blockIdx.y * n + c] = s;
        if (a) sums[(gridDim.y + blockIdx.y) * n + c] = p;
    }
}
""",
)
_MOST_PARTS = 256
OVER_PARTS = """
// The sum over what threads with the same x have.
template <typename V> __device__ V over_parts(V v) {
    __shared__ V kept[32][32];
    __syncthreads();
    kept[threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    v = kept[0][threadIdx.x];
    for (int i = 1; i < blockDim.y; i++) v += kept[i][threadIdx.x];
    return v;
}
"""
_TOTALS = Program(
    "totals",
    OVER_PARTS
    + """
extern "C" __global__ void __launch_bounds__(1024) totals(const T* given, T* first, T* second, whole parts, whole n) {
    const whole c = blockIdx.x * (whole)32 + threadIdx.x;
    const T* from = given + blockIdx.y * parts * n;
    W s = 0;
    if (c < n) for (whole p = threadIdx.y; p < parts; p += blockDim.y) s += from[p * n + c];
    s = over_parts(s);
    if (threadIdx.y == 0 && c < n) (blockIdx.y ? second : first)[c] = s;
}
""",
)
SIDE_BY_SIDE, MANY_PARTS = 32, 1 << 10


def column_sums(g, x, middle, factor, rows, n, by_column, outs=()):
    """Return (sums of g, sums of g * xhat or None if x is None) over the columns of matrices, in arrays if given."""
    each = max(64, -(-rows // _MOST_PARTS))
    parts = -(-rows // each)
    sums = cupy().empty((1 if x is None else 2, parts, n), wide_type(g.dtype))
    args = g, x, middle, factor, sums, rows, n, each
    _COLUMN_SUMS.launch(g.dtype, (-(-n // 32), parts), (32, 8), args, BY_COLUMN=int(by_column))
    return totals(sums, outs)


def totals(sums, outs=()):
    """Return (the first sums, the second or None) of an array (one or two, parts, columns), over the parts.

    They are in the arrays `outs`, if given.
    """
    count, parts, n = sums.shape
    if parts > MANY_PARTS:
        sums, parts = folded(sums, (1,), "sum", True), 1
    first, second = (*outs, *(cupy().empty(n, sums.dtype) for _ in range(len(outs), count)), None)[:2]
    threads = 32, min(parts, SIDE_BY_SIDE)
    _TOTALS.launch(sums.dtype, (-(-n // 32), count), threads, (sums, first, second, parts, n))
    return first, second
