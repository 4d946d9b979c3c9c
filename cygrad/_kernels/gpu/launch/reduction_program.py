"""Reductions of many elements on GPUs, in two launches if there are few results.

A thread block reduces a chunk of the elements of one result, or of several neighboring results; a second launch reduces
the chunks' partial results. No two blocks add to the same location, so the order of all sums depends on shapes alone.
"""

from functools import cache

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.launch.program import FLOATS, MOST_BLOCKS, Program, wide_type
from cygrad._kernels.gpu.launch.row_program import OVER_ROW

_TEXT = (
    OVER_ROW
    + """
typedef FOLD_TYPE V;  // in which elements are folded
// What an element x becomes, with y beside it and m, which belongs to its result.
__device__ inline V mapped(V x, V y, V m) { return FOLD_MAP; }
#define N (int)(16 / sizeof(T))
struct alignas(16) Sixteen { T v[N]; };
__device__ inline Sixteen sixteen(const T* from, bool at_once) {
    Sixteen found;
    if (at_once) *(uint4*)&found = *(const uint4*)from;
    else for (int j = 0; j < N; j++) found.v[j] = from[j];
    return found;
}
"""
)
_OF_ROWS = Program(
    "fold_rows",
    _TEXT
    + """
extern "C" __global__ void __launch_bounds__(256) fold_rows(const T* a, const T* b, const V* middle, FOLD_RESULT* out,
                                                            double scale, whole n, whole parts, whole each,
                                                            whole count) {
    for (whole r = blockIdx.x * (whole)blockDim.y + threadIdx.y; r < count; r += gridDim.x * (whole)blockDim.y) {
        const whole row = quotient(r, parts), first = (r - row * parts) * each;
        const whole last = first + each < n ? first + each : n;
        const T *x = a + row * n, *y = b ? b + row * n : x;
        const bool at_once = !(((size_t)x | (size_t)y) % 16);
        const V m = middle ? middle[row] : V(0);
        V v[N];
        #pragma unroll
        for (int j = 0; j < N; j++) v[j] = FOLD_START;
        for (whole i = first + threadIdx.x * (whole)N; i < last; i += blockDim.x * (whole)N) {
            if (i + N <= last) {
                const Sixteen p = sixteen(x + i, at_once), q = b ? sixteen(y + i, at_once) : p;
                #pragma unroll
                for (int j = 0; j < N; j++) v[j] = FOLD_JOIN()(v[j], mapped(V(p.v[j]), V(q.v[j]), m));
            } else {
                #pragma unroll
                for (int j = 0; j < N; j++)
                    if (i + j < last) v[j] = FOLD_JOIN()(v[j], mapped(V(x[i + j]), V(y[i + j]), m));
            }
        }
        #pragma unroll
        for (int j = 1; j < N; j++) v[0] = FOLD_JOIN()(v[0], v[j]);
        const V total = over_row(v[0], FOLD_JOIN());
        if (!threadIdx.x) out[r] = FOLD_RESULT(total * V(scale));
    }
}
""",
)
# A block handles `tile` columns, and as many rows at a time as its threads allow.
_OF_COLUMNS = Program(
    "fold_columns",
    _TEXT
    + """
extern "C" __global__ void __launch_bounds__(256) fold_columns(const T* a, const T* b, const V* middle,
                                                               FOLD_RESULT* out, double scale, whole n, whole after,
                                                               whole parts, whole each, whole tile) {
    __shared__ V kept[256];
    const whole tiles = (after + tile - 1) / tile, block = blockIdx.x / tiles, before = block / parts;
    const int rows = 256 / (int)tile, down = threadIdx.x / (int)tile, across = threadIdx.x - down * (int)tile;
    const whole c = (blockIdx.x - block * tiles) * tile + across, first = (block - before * parts) * each;
    const whole last = first + each < n ? first + each : n;
    const bool is_mine = down < rows && across < tile && c < after;
    V v[4] = {FOLD_START, FOLD_START, FOLD_START, FOLD_START};
    if (is_mine) {
        const T *x = a + before * n * after + c, *y = b ? b + before * n * after + c : x;
        const V m = middle ? middle[before * after + c] : V(0);
        for (whole i = first + down; i < last; i += 4 * rows) {
            #pragma unroll
            for (int k = 0; k < 4; k++) {
                const whole at = (i + k * rows) * after;
                if (i + k * rows < last) v[k] = FOLD_JOIN()(v[k], mapped(V(x[at]), V(y[at]), m));
            }
        }
    }
    V total = FOLD_JOIN()(FOLD_JOIN()(v[0], v[1]), FOLD_JOIN()(v[2], v[3]));
    kept[threadIdx.x] = total;
    __syncthreads();
    if (is_mine && down == 0) {
        for (int k = 1; k < rows; k++) total = FOLD_JOIN()(total, kept[k * (int)tile + across]);
        out[block * after + c] = FOLD_RESULT(total * V(scale));
    }
}
""",
)
# A block reduces the planes of one channel.
_OF_PLANES = Program(
    "fold_planes",
    _TEXT
    + """
extern "C" __global__ void __launch_bounds__(1024) fold_planes(const T* a, FOLD_RESULT* out, double scale, whole n,
                                                               whole channels, whole each) {
    const T* x = a + blockIdx.x * each;
    const bool at_once = !((size_t)x % 16) && !(each % N);
    V v[N];
    #pragma unroll
    for (int j = 0; j < N; j++) v[j] = FOLD_START;
    if (at_once) {
        const whole packs = each / N;
        for (whole i = threadIdx.x; i < n * packs; i += blockDim.x) {
            const whole plane = quotient(i, packs);
            const Sixteen p = sixteen(x + plane * channels * each + (i - plane * packs) * N, true);
            #pragma unroll
            for (int j = 0; j < N; j++) v[j] = FOLD_JOIN()(v[j], mapped(V(p.v[j]), V(p.v[j]), V(0)));
        }
    } else {
        for (whole i = threadIdx.x; i < n * each; i += blockDim.x) {
            const whole plane = quotient(i, each);
            const T one = x[plane * channels * each + i - plane * each];
            v[0] = FOLD_JOIN()(v[0], mapped(V(one), V(one), V(0)));
        }
    }
    #pragma unroll
    for (int j = 1; j < N; j++) v[0] = FOLD_JOIN()(v[0], v[j]);
    const V total = over_row(v[0], FOLD_JOIN());
    if (!threadIdx.x) out[blockIdx.x] = FOLD_RESULT(total * V(scale));
}
""",
)
# By reduction: how each element is mapped, how two values are combined, and the initial value.
HOW = {
    "sum": ("x", "Add", "V(0)"),
    "squares": ("x * x", "Add", "V(0)"),
    "sizes": ("fabs(x)", "Add", "V(0)"),
    "not zero": ("x != V(0) ? V(1) : V(0)", "Add", "V(0)"),
    "centred squares": ("(x - m) * (x - m)", "Add", "V(0)"),
    "exponentials": ("exp(x - m)", "Add", "V(0)"),
    "products": ("x * y", "Add", "V(0)"),
    "centred products": ("x * (y - m)", "Add", "V(0)"),
    "largest": ("x", "Larger", "-infinity(V())"),
    "smallest": ("x", "Smaller", "infinity(V())"),
    "largest size": ("fabs(x)", "Larger", "V(0)"),
    "smallest size": ("fabs(x)", "Smaller", "infinity(V())"),
}
# Squares are added up in float64: those of float32 may leave its range although their root does not.
_SQUARES = "squares", "centred squares"
_AGAIN = {"Add": "sum", "Larger": "largest", "Smaller": "smallest"}  # combines partial results of chunks
_BLOCKS, _LEAST = 1 << 10, 1 << 13  # blocks to aim for in a launch, minimum elements of each
_WARP = 32
_FEW_CHANNELS = 32  # that leave too many multiprocessors idle, with a block each
_WHOLE = "bool", "int8", "uint8", "int16", "int32", "int64"


@cache
def _wide(dtype):
    """Return (the type to accumulate elements in, its name in programs), or None if unsupported."""
    if dtype.name in _WHOLE:
        return np.dtype(np.int64), "whole"
    return (wide_type(dtype), "W") if dtype.name in FLOATS else None


def _accumulator(dtype, how):
    return (np.dtype(np.float64), "double") if how in _SQUARES else _wide(dtype)


def _takes(a, how, dtype):
    """Whether these elements can be reduced here: not empty, and floating-point, or integers to be summed as int64."""
    found = _wide(a.dtype) if a.size else None
    return found is not None and (found[1] == "W" or (how == "sum" and dtype == np.int64))


def runs_of(shape, axes):
    """Merge adjacent axes into [(are they reduced, number of elements)]; `axes` None reduces all."""
    folded = range(len(shape)) if axes is None else {axis % len(shape) for axis in axes}
    runs: list = []
    for axis, length in enumerate(shape):
        if length != 1:
            own = axis in folded
            if runs and runs[-1][0] == own:
                runs[-1] = own, runs[-1][1] * length
            else:
                runs.append((own, length))
    return runs


def folded(a, axes, how, keepdim=False, dtype=None, scale=1.0, middle=None, beside=None):
    """Reduce the elements along axes and multiply by `scale`; None if unsupported.

    `middle` is a contiguous array with one number per result. `beside` is an array like `a`.
    """
    if not _takes(a, how, dtype):
        return None
    if not a.flags.c_contiguous:
        is_alone = middle is None and beside is None
        return _folded_in_order(a, axes, how, keepdim, dtype, scale) if is_alone else None
    if beside is not None and not (beside.dtype == a.dtype and beside.flags.c_contiguous):
        return None
    runs = runs_of(a.shape, axes)
    if middle is not None and sum(own for own, _ in runs) != 1:
        return None
    dims = range(a.ndim) if axes is None else {axis % a.ndim for axis in axes}
    shape = tuple(1 if d in dims else n for d, n in enumerate(a.shape) if keepdim or d not in dims)
    if not any(own for own, _ in runs):
        runs.append((True, 1))
    found, given = a, (beside, None if middle is None else middle.astype(_accumulator(a.dtype, how)[0], copy=False))
    if middle is None and beside is None and _are_planes(runs):
        found, runs = _fold_planes(a, [length for _, length in runs], how, float(scale), dtype), []
    while any(own for own, _ in runs):
        i = max(i for i, (own, _) in enumerate(runs) if own)
        (_, n), before, after = runs.pop(i), 1, 1
        for _, length in runs[:i]:
            before *= length
        for _, length in runs[i:]:
            after *= length
        is_last = not any(own for own, _ in runs)
        found = _fold(
            found, before, n, after, how, given, float(scale) if is_last else 1.0, is_last and dtype == a.dtype
        )
        given, how = (None, None), _AGAIN[HOW[how][1]]
    return found.reshape(shape).astype(dtype or wide_type(a.dtype), copy=False)


def _folded_in_order(a, axes, how, keepdim, dtype, scale):
    """`folded` for arrays that are contiguous in another axis order; None for others."""
    order = sorted(range(a.ndim), key=lambda axis: -a.strides[axis])
    turned = a.transpose(order)
    if not turned.flags.c_contiguous:
        return None
    own = range(a.ndim) if axes is None else {axis % a.ndim for axis in axes}
    found = folded(turned, [i for i, axis in enumerate(order) if axis in own], how, True, dtype, scale)
    shape = [1 if axis in own else n for axis, n in enumerate(a.shape) if keepdim or axis not in own]
    return dense(found.transpose(sorted(range(a.ndim), key=order.__getitem__))).reshape(-1).reshape(shape)


def _are_planes(runs):
    """Whether to reduce all but the channels of images at once: if these are many, or have few elements."""
    if [own for own, _ in runs] != [True, False, True]:
        return False
    (_, n), (_, channels), (_, each) = runs
    return channels <= MOST_BLOCKS and (channels >= _FEW_CHANNELS or n * each <= _LEAST)


def _fold_planes(a, lengths, how, scale, dtype):
    n, channels, each = lengths
    wide, word = _accumulator(a.dtype, how)
    dtype = a.dtype if dtype == a.dtype else wide
    out = cupy().empty(channels, dtype)
    macros = _macros(how, word, dtype == a.dtype)
    _OF_PLANES.launch(a.dtype, channels, 1024 if n * each > _LEAST else 256, (a, out, scale, *lengths), **macros)
    return out


def parts_of(blocks, n, tile):
    """Return how many blocks share the reduction of `n` elements of `tile` results, if there are `blocks` tiles."""
    return max(1, min(_BLOCKS // blocks, n * tile // _LEAST))


def _macros(how, word, is_final):
    formula, join, start = HOW[how]
    return {
        "FOLD_MAP": formula,
        "FOLD_JOIN": join,
        "FOLD_START": start,
        "FOLD_TYPE": word,
        "FOLD_RESULT": "T" if is_final else "V",
    }


def _fold(a, before, n, after, how, given, scale, is_final):
    """Reduce in one or two launches; results have the accumulation type, or the type of `a` if `is_final`."""
    tile = -(-after // -(-after // 128))
    blocks = before * -(-after // tile) if after > 1 else before
    parts = parts_of(blocks, n, tile)
    step = 16 * _WARP  # so that chunks begin at multiples of 16 bytes
    each = (n + parts * step - 1) // (parts * step) * step if parts > 1 else n
    parts = -(-n // each)
    wide, word = _accumulator(a.dtype, how)
    dtype = a.dtype if parts == 1 and is_final else wide
    out = cupy().empty((before, parts, after), dtype)
    macros = _macros(how, word, dtype == a.dtype)
    args = a, *given, out, scale if parts == 1 else 1.0, n
    if after == 1:
        count, threads = before * parts, (_WARP, 8) if n <= 1024 else (256, 1)
        grid = min(-(-count // threads[1]), MOST_BLOCKS)
        _OF_ROWS.launch(a.dtype, grid, threads, (*args, parts, each, count), **macros)
    else:
        _OF_COLUMNS.launch(a.dtype, blocks * parts, 256, (*args, after, parts, each, tile), **macros)
    return out if parts == 1 else _fold(out, before, parts, after, _AGAIN[HOW[how][1]], (None, None), scale, is_final)
