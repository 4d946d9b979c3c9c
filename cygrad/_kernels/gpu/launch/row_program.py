"""Programs over the rows of a matrix, with a warp or thread block per row; short rows stay in registers.

The text of a program runs in `EACH_ROW(row, rows)`. There, `Row x(memory of a row, length)` holds this thread's share
of the row, `EACH(i, k, length)` iterates over the thread's elements i, and `x.get(k, i)` returns them. `Line<E>
x{memory}` has the same `get` but keeps nothing, and `Made y{memory}` has `y.put(k, i, value)`; both must visit all
elements in order. All of them move PACK neighbors, which are 16 bytes; at once if the rows are ALIGNED to that.
`over_row` reduces one number per thread of the row, in an order that depends only on the length and PACK.
"""

from functools import lru_cache

from cygrad._kernels.device.cupy_library import cupy, gpu_class
from cygrad._kernels.gpu.launch.program import EXACT, FLOATS, Program, wide_type

OVER_ROW = """
struct Add { template <typename V> __device__ V operator()(V a, V b) const { return a + b; } };
// Whether a sum of squares has neither overflowed nor, by underflow, lost digits; false for NaN.
__device__ inline bool is_accurate(float s) { return s >= 1e-31f && s <= 3.4028235e38f; }
__device__ inline bool is_accurate(double s) { return s >= 1e-292 && s <= 1.7976931348623157e308; }
struct Larger { template <typename V> __device__ V operator()(V a, V b) const { return a > b || a != a ? a : b; } };
struct Smaller { template <typename V> __device__ V operator()(V a, V b) const { return a < b || a != a ? a : b; } };

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
ROWS = (
    OVER_ROW
    + """
#if ITEMS
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif
// PACK neighbours.
template <typename E> struct alignas(PACK * sizeof(E) < 16 ? PACK * sizeof(E) : 16) Pack { E v[PACK]; };
template <typename E> __device__ inline void move_pack(E* to, const E* from) {
    if (!ALIGNED || PACK * sizeof(E) % 16) {
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
    __device__ E own(whole k, whole i) {
        if (k % PACK == 0) move_pack<E>(pack.v, memory + i);
        return pack.v[k % PACK];
    }
    __device__ W get(whole k, whole i) { return W(own(k, i)); }
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
    UNROLLED for (whole i##_of = threadIdx.x * (whole)PACK, k##_of = 0; ITEMS ? k##_of < ITEMS : i##_of < (n); \\
         k##_of += ITEMS ? PACK : 0, i##_of += blockDim.x * (whole)PACK) \\
        if (i##_of < (n)) \\
            UNROLLED for (whole i = i##_of, k = k##_of; k < k##_of + PACK; k++, i++)
#define EACH_ROW(row, rows) \\
    for (whole row = blockIdx.x * (whole)blockDim.y + threadIdx.y; row < (rows); row += gridDim.x * (whole)blockDim.y)
"""
)
_FEW_ROWS, _SMALL = 16, 1 << 11  # rows and elements: with fewer rows of more elements, functions are not joined
WARP, LONGEST_BLOCK, MANY = 32, 1024, 16
MOST_BLOCKS = 1 << 16
_FEW, _LONG = 64, 1 << 16


def are_for_many_blocks(rows, length):
    """Whether rows are so long, and so few relative to the multiprocessors, that several blocks should share each."""
    return rows < _FEW and length >= _LONG


class RowProgram(Program):
    """A program over the rows of a matrix."""

    def __init__(self, name, text, types=FLOATS, options=()):
        # A multiprocessor has 64 registers for each of 1024 threads; without a bound the compiler uses more.
        text = text.replace("__global__ void", "__global__ void __launch_bounds__(MOST)")
        super().__init__(name, ROWS + text, types, options)

    def over_rows(self, dtype, rows, length, args, **more):
        """Run it on a matrix of `rows` rows of this length; `args` are arrays with such rows and other arguments.

        `more` are macros.
        """
        if not rows:
            return
        blocks, threads, macros = how(dtype.itemsize, rows, length)
        self.launch(dtype, blocks, threads, (*args, rows, length), **macros, ALIGNED=are_aligned(args), **more)


def are_aligned(args):
    """Return 1 if all arrays among these begin at multiples of 16 bytes, else 0."""
    ndarray = gpu_class()
    return int(not any(isinstance(a, ndarray) and a.data.ptr % 16 for a in args))


@lru_cache(256)
def how(itemsize, rows, length, size=0):
    """Return (blocks, threads, macros) for rows of this length, see `Layout` for `size`.

    They do not depend on where arrays begin, so that sums do not either.
    """
    pack = 1 if length % (16 // itemsize) or size % (16 // itemsize) else 16 // itemsize
    few, many, threads = max(pack, 4), min(MANY, 64 // itemsize), WARP
    while threads < LONGEST_BLOCK and threads * many < length:
        threads *= 2
    items = few if length <= threads * few else many if length <= threads * many else 0
    at_once = 4 if threads == WARP else 1
    blocks = min(-(-rows // at_once), MOST_BLOCKS)
    return blocks, (threads, at_once), {"ITEMS": items, "PACK": pack, "MOST": max(threads, 256)}


class Layout:
    """The rows of a call of a `RowFunction`, and how they are launched. Equal ones are one object (`layout`).

    `size` is 0, or the number of elements of an array of which the rows are chunks: the last one may then be shorter.
    """

    def __init__(self, rows, length, size, blocks, threads, items, pack, most):
        self.rows, self.length, self.size, self.blocks, self.threads = rows, length, size, blocks, threads
        self.items, self.pack, self.most = items, pack, most


@lru_cache(1024)
def layout(itemsize, rows, length, size=0):
    """Return the `Layout` for rows of this length."""
    blocks, threads, macros = how(itemsize, rows, length, size)
    return Layout(rows, length, size, blocks, threads, macros["ITEMS"], macros["PACK"], macros["MOST"])


ROW, LINE, VALUE, NUMBER = "row", "line", "value", "number"  # kinds of operands


class RowFunction:
    """A function of rows of one length, see Note [Functions of rows].

    `operands` are (name, kind): rows of the element type, lines along all rows, values of each row, or numbers.
    A line may be None. `text` defines the struct, and `built` is its constructor's call; in `made`, which gives an
    element of the result, `self` is the struct, and an operand's name is its element. `values` are (formula, whether it
    has the wide type) of the numbers that it yields for each row.
    """

    def __init__(self, name, text, operands, built, made=None, values=()):
        self.__name__ = name
        self.text, self.operands, self.built, self.made, self.values = text, operands, built, made, values

    def call(self, operands, shape, rows, length, kept, result, size=0):
        """Return (what groups let wait, operands); `kept` is the shape of the values of rows.

        `result` is given the array of the result, if there is one, and those of values, and returns the value of the
        call. None if there are so few rows that a joined kernel would leave most multiprocessors idle.
        """
        if rows < _FEW_ROWS and rows * length > _SMALL:
            return None
        dtype, ndarray = operands[0].dtype, gpu_class()
        wide = wide_type(dtype)
        outs = [] if self.made is None else [cupy().empty(shape, dtype)]
        outs += [cupy().ndarray(kept, wide if is_wide else dtype) for _, is_wide in self.values]
        of_rows = layout(dtype.itemsize, rows, length, size)
        return RowCall(self, operands, of_rows, outs, result), tuple(a for a in operands if isinstance(a, ndarray))


class RowCall:
    """A call of a `RowFunction` that may wait."""

    def __init__(self, function, operands, layout, outs, result):
        self.function, self.operands, self.layout = function, operands, layout
        self.outs, self.result = outs, result


class RowReduction(RowFunction):
    """A function that yields one number of the element type for each row, computed from numbers, too."""

    def __init__(self, name, text, built, value, numbers=()):
        operands = (("x", ROW), *((number, NUMBER) for number in numbers))
        super().__init__(name, text, operands, built, None, ((value, False),))
        given = "".join(f", double {number}" for number in numbers)
        names = {"self": "found", "x": "x"} | {number: number for number in numbers}
        self._program = RowProgram(
            name,
            f"""{text}
extern "C" __global__ void {name}(const T* a, T* out{given}, whole rows, whole n) {{
    EACH_ROW(row, rows) {{
        Row x(a + row * n, n);
        {built.format(**names)};
        if (!threadIdx.x) out[row] = T({value.format(**names)});
    }}
}}
""",
            options=EXACT,
        )

    def __call__(self, a, rows, length, kept, *numbers):
        """Return the numbers of the rows of a contiguous array, in an array of the shape `kept`."""
        out = cupy().ndarray(kept, a.dtype)
        self._program.over_rows(a.dtype, rows, length, (a, out, *numbers))
        return out

    def described(self, a, rows, length, kept, *numbers):
        """Return (what groups let wait, operands) of such a call."""
        return self.call((a, *numbers), a.shape, rows, length, kept, lambda out: out)


def split(shape, axis):
    """Return (size before the axis, its length, size after it)."""
    before = after = 1
    for n in shape[:axis]:
        before *= n
    for n in shape[axis + 1 :]:
        after *= n
    return before, shape[axis], after
