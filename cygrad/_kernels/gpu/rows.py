"""Programs over the rows of a matrix: a warp or a block of threads for each row, which stays in registers if short.

The text of a program runs in `EACH_ROW(row, rows)`, where `Row x(memory of a row, length)` holds what the thread reads
of it and `EACH(i, k, length)` are the elements i of the thread, which `x.get(k, i)` gives. `over_row` reduces a number
of each thread of the row; the order of its sums does not depend on anything but the length.
"""

from cygrad._kernels.gpu.programs import FLOATS, Program

_TEXT = """
struct Add { template <typename V> __device__ V operator()(V a, V b) const { return a + b; } };
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

struct Row {
    const T* memory;
    W kept[ITEMS ? ITEMS : 1];
    __device__ Row(const T* from, whole n) : memory(from) {
        if (ITEMS) {
            #pragma unroll
            for (int k = 0; k < ITEMS; k++) {
                whole i = threadIdx.x + k * (whole)blockDim.x;
                if (i < n) kept[k] = W(from[i]);
            }
        }
    }
    __device__ W get(int k, whole i) const { return ITEMS ? kept[k] : W(memory[i]); }
};
#define EACH(i, k, n) \\
    for (whole i = threadIdx.x, k = 0; ITEMS ? k < ITEMS : i < (n); k++, i += blockDim.x) if (i < (n))
#define EACH_ROW(row, rows) \\
    for (whole row = blockIdx.x * (whole)blockDim.y + threadIdx.y; row < (rows); row += gridDim.x * (whole)blockDim.y)
"""
WARP, LONGEST_BLOCK, FEW, MANY = 32, 1024, 4, 16
MOST_BLOCKS = 1 << 16


class RowProgram(Program):
    """A program over rows."""

    def __init__(self, name, text, types=FLOATS):
        super().__init__(name, _TEXT + text, types)

    def over_rows(self, dtype, rows, length, args):
        """Run it on a matrix of so many rows of this length."""
        if not rows:
            return
        threads = WARP
        while threads < LONGEST_BLOCK and threads * FEW < length:
            threads *= 2
        items = FEW if length <= threads * FEW else MANY if length <= threads * MANY else 0
        at_once = 4 if threads == WARP else 1
        blocks = min(-(-rows // at_once), MOST_BLOCKS)
        self.launch(dtype, blocks, (threads, at_once), (*args, rows, length), ITEMS=items)


def split(shape, axis):
    """(how many before the axis, its length, how many after it)."""
    before = after = 1
    for n in shape[:axis]:
        before *= n
    for n in shape[axis + 1 :]:
        after *= n
    return before, shape[axis], after
