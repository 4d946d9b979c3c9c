"""Programs over the rows of a matrix, with a warp or thread block per row; short rows stay in registers.

The text of a program runs in `EACH_ROW(row, rows)`. There, `Row x(memory of a row, length)` holds this thread's share
of the row, `EACH(i, k, length)` iterates over the thread's elements i, and `x.get(k, i)` returns them. `Line<E>
x{memory}` has the same `get` but keeps nothing, and `Made y{memory}` has `y.put(k, i, value)`; both must visit all
elements in order. All of them move PACK neighbors at once, which are 16 bytes if the rows are aligned to that.
`over_row` reduces one number per thread of the row, in an order that depends only on the length and PACK.
"""

from functools import lru_cache

from cygrad._kernels.device.cupy_library import gpu_class
from cygrad._kernels.gpu.launch.program import FLOATS, Program

OVER_ROW = """
struct Add { template <typename V> __device__ V operator()(V a, V b) const { return a + b; } };
// Whether a sum of squares has neither overflowed nor, by underflow, lost digits; false for NaN.
__device__ inline bool is_accurate(float s) { return s >= 1e-31f && s <= 3.4028235e38f; }
__device__ inline bool is_accurate(double s) { return s >= 1e-292 && s <= 1.7976931348623157e308; }
struct Larger { template <typename V> __device__ V operator()(V a, V b) const { return a > b || a != a ? a : b; } };

template <typename V, typename F> __device__ V over_row(V v, F f) {
    for (int s = 16; s; s >>= 1) v = f(v, __shfl_xor_sync(0xffffffffu, v, s));
    if (blockDim.x > 32) {
        __shared__ V parts[32];
        __syncthreads();
        if (!(threadIdx.x & 31)) parts[threadIdx.x >> 5] = v;
        __syncthreads();
        v = parts[0];
        for (int i = 1; i < blockDim.x >> 5; i++) v = f(v, parts[i]);
    }
    return v;
}
"""
_TEXT = (
    OVER_ROW
    + """
// PACK neighbours.
template <typename E> struct alignas(PACK * sizeof(E) < 16 ? PACK * sizeof(E) : 16) Pack { E v[PACK]; };
template <typename E> __device__ inline void move_pack(E* to, const E* from) {
    if (PACK * sizeof(E) % 16) {
        #pragma unroll
        for (int j = 0; j < PACK; j++) to[j] = from[j];
    } else {
        #pragma unroll
        for (int j = 0; j < PACK * sizeof(E) / 16; j++) ((uint4*)to)[j] = ((const uint4*)from)[j];
    }
}
template <typename E> struct Line {
    const E* memory;
    Pack<E> pack;
    __device__ W get(whole k, whole i) {
        if (k % PACK == 0) move_pack<E>(pack.v, memory + i);
        return W(pack.v[k % PACK]);
    }
};
struct Made {
    T* memory;
    Pack<T> pack;
    __device__ void put(whole k, whole i, W value) {
        pack.v[k % PACK] = T(value);
        if (k % PACK == PACK - 1) move_pack<T>(memory + i - (PACK - 1), pack.v);
    }
};
struct Row {
    const T* memory;
    W kept[ITEMS ? ITEMS : 1];
    __device__ Row(const T* from, whole n) : memory(from) {
        if (ITEMS) {
            #pragma unroll
            for (int k = 0; k < ITEMS; k += PACK) {
                whole i = (threadIdx.x + k / PACK * (whole)blockDim.x) * PACK;
                if (i < n) {
                    Pack<T> pack;
                    move_pack<T>(pack.v, from + i);
                    #pragma unroll
                    for (int j = 0; j < PACK; j++) kept[k + j] = W(pack.v[j]);
                }
            }
        }
    }
    __device__ W get(int k, whole i) const { return ITEMS ? kept[k] : W(memory[i]); }
};
#define EACH(i, k, n) \\
    for (whole i##_of = threadIdx.x * (whole)PACK, k##_of = 0; ITEMS ? k##_of < ITEMS : i##_of < (n); \\
         k##_of += ITEMS ? PACK : 0, i##_of += blockDim.x * (whole)PACK) \\
        if (i##_of < (n)) \\
            for (whole i = i##_of, k = k##_of; k < k##_of + PACK; k++, i++)
#define EACH_ROW(row, rows) \\
    for (whole row = blockIdx.x * (whole)blockDim.y + threadIdx.y; row < (rows); row += gridDim.x * (whole)blockDim.y)
"""
)
WARP, LONGEST_BLOCK, MANY = 32, 1024, 16
MOST_BLOCKS = 1 << 16
_FEW, _LONG = 64, 1 << 16


def are_for_many_blocks(rows, length):
    """Whether rows are so long, and so few relative to the multiprocessors, that several blocks should share each."""
    return rows < _FEW and length >= _LONG


class RowProgram(Program):
    """A program over the rows of a matrix."""

    def __init__(self, name, text, types=FLOATS):
        # A multiprocessor has 64 registers for each of 1024 threads; without a bound the compiler uses more.
        super().__init__(
            name, _TEXT + text.replace("__global__ void", "__global__ void __launch_bounds__(MOST)"), types
        )

    def over_rows(self, dtype, rows, length, args):
        """Run it on a matrix of `rows` rows of this length; `args` are arrays with such rows and other arguments."""
        if not rows:
            return
        ndarray, is_aligned = gpu_class(), True
        for a in args:
            is_aligned = is_aligned and not (isinstance(a, ndarray) and a.data.ptr % 16)
        blocks, threads, macros = _how(dtype.itemsize, rows, length, is_aligned)
        self.launch(dtype, blocks, threads, (*args, rows, length), **macros)


@lru_cache(256)
def _how(itemsize, rows, length, is_aligned):
    """Return (blocks, threads, macros) for rows of this length."""
    pack = 16 // itemsize if is_aligned and not length % (16 // itemsize) else 1
    few, many, threads = max(pack, 4), min(MANY, 64 // itemsize), WARP
    while threads < LONGEST_BLOCK and threads * many < length:
        threads *= 2
    items = few if length <= threads * few else many if length <= threads * many else 0
    at_once = 4 if threads == WARP else 1
    blocks = min(-(-rows // at_once), MOST_BLOCKS)
    return blocks, (threads, at_once), {"ITEMS": items, "PACK": pack, "MOST": max(threads, 256)}


def split(shape, axis):
    """Return (size before the axis, its length, size after it)."""
    before = after = 1
    for n in shape[:axis]:
        before *= n
    for n in shape[axis + 1 :]:
        after *= n
    return before, shape[axis], after
