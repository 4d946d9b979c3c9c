"""Attention on tensor cores, whose copies of keys and values are under way while it multiplies; see `attention.py`.

Note [Streams of attention]
---------------------------
A block of four warps handles ROWS queries of one head, 16 or 32 for each warp, and iterates over the keys, COLS at a
time. While it computes with one tile, the next is being copied to the other half of the shared memory. Scores and
weights never leave registers: the thread that holds a score as an element of the first product also needs its weight
as an element of the second. (Products of TF32 go through the keys in another order, for which this is true as well.) A
row of scores belongs to four neighboring lanes.

In the backward pass a block handles either queries, for their gradient, or keys (OF_KEYS), whose scores are those of
the transposed product. Both recompute the scores, so no two blocks add to one element and all sums have a fixed order.

Float32 is multiplied as TF32 if that is allowed. Otherwise each factor is split into two numbers of TF32, and three of
their four products are added up, smallest first (EXACT). An infinite factor then gives NaN, as 0 times infinity does.

Rows must consist of whole chunks of 16 bytes, and lie at multiples of 16 bytes. Everything else, and what older GPUs
compute, is left to the tiles of `attention.py`.
"""

from cygrad._kernels.device.cupy_library import cupy, current_device
from cygrad._kernels.gpu.launch import tensor_cores
from cygrad._kernels.gpu.launch.program import Program
from cygrad._kernels.gpu.nn.attention_views import ARGUMENTS, VIEWS
from cygrad._kernels.gpu.runtime.matmul_precision import Precision

THREADS = 128
_ROWS = THREADS // 32 * 16  # of a block, with one product of 16 for each warp
_CHUNK = 16  # bytes
_MULTIPROCESSORS, _MOST_SHARED = 16, 97  # cudaDevAttrMultiProcessorCount, cudaDevAttrMaxSharedMemoryPerBlockOptin
# By bytes of an element and padded width of a head: products of 16 queries for each warp, and keys at a time, in the
# forward pass; and keys or queries at a time in the backward pass. Registers limit all of them.
_SIZES = {
    (2, 32): (2, 32, 64),
    (2, 64): (2, 32, 64),
    (2, 128): (2, 32, 32),
    (4, 32): (2, 32, 32),
    (4, 64): (1, 32, 32),
    (4, 128): (1, 32, 16),
}

_PARTS = (
    tensor_cores.COPIES
    + tensor_cores.PRODUCT
    + tensor_cores.ROUNDED
    + """
#define WARP (int)(threadIdx.x >> 5)
#define LANE (int)(threadIdx.x & 31)
#define THREADS 128
#define ROWS (64 * DEEP)                // of a block: DEEP products of 16 for each warp
#define ROOM (D / EACH + 1)             // chunks of a row in shared memory: odd, for eight rows in different banks
#define HALF_ROOM (2 * COLS * ROOM)     // of the two tiles that are copied at a time
#define ROW(m, e) (int)((WARP * DEEP + (m)) * 16 + (LANE >> 2) + (e) / 2 * 8)
#define COLUMN(n, e) (int)((n) * 8 + (LANE & 3) * 2 + (e) % 2)
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

typedef float Tile[DEEP][COLS / 8][4];
typedef float Result[DEEP][D / 8][4];
__device__ inline void clear(Result& c) {
    #pragma unroll
    for (int m = 0; m < DEEP; m++)
        #pragma unroll
        for (int n = 0; n < D / 8; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) c[m][n][e] = 0;
}

// Begins to copy COUNT rows from `first` on of a matrix (length, width), with zeros beyond.
template <int COUNT>
__device__ inline void fetch(Chunk* to, const T* from, whole step, whole first, whole length, whole width) {
    #pragma unroll
    for (int e = threadIdx.x; e < COUNT * (D / EACH); e += THREADS) {
        const int r = e / (D / EACH), c = e % (D / EACH);
        const bool is_there = first + r < length && c * EACH < width;
        copy(to + r * ROOM + c, (const Chunk*)(from + (is_there ? (first + r) * step + c * EACH : 0)), is_there);
    }
}

#if EXACT
// Products of float32: each factor is a sum of two that TF32 has. What is left out is below the last bit but two.
__device__ inline unsigned word_of(float x) { return (unsigned)__float_as_int(x); }
__device__ inline unsigned rest_of(unsigned x) {
    const float all = __int_as_float((int)x), first = __int_as_float((int)(x & 0xffffe000u));
    return all == first ? 0u : word_of(all - first);
}
__device__ inline void multiply(float* c, const unsigned* a, const unsigned* b) {
    const unsigned a1[4] = {a[0] & 0xffffe000u, a[1] & 0xffffe000u, a[2] & 0xffffe000u, a[3] & 0xffffe000u};
    const unsigned a2[4] = {rest_of(a[0]), rest_of(a[1]), rest_of(a[2]), rest_of(a[3])};
    const unsigned b1[2] = {b[0] & 0xffffe000u, b[1] & 0xffffe000u}, b2[2] = {rest_of(b[0]), rest_of(b[1])};
    mma(c, a2, b1), mma(c, a1, b2), mma(c, a1, b1);
}
__device__ inline void round_words(unsigned* a) {}
#else
#define multiply mma
#if IS_SINGLE
#define word_of tf32
// Elements of shared memory are rounded when they have been loaded.
__device__ inline void round_words(unsigned* a) {
    #pragma unroll
    for (int i = 0; i < 4; i++) a[i] = tf32(__int_as_float((int)a[i]));
}
#else
__device__ inline void round_words(unsigned* a) {}
#endif
#endif
#if IS_SINGLE
// The weights of eight neighbors: key 2 l of a lane's counts as l, key 2 l + 1 as l + 4.
__device__ inline void first_factor(unsigned* a, const float (*p)[4]) {
    a[0] = word_of(p[0][0]), a[1] = word_of(p[0][2]), a[2] = word_of(p[0][1]), a[3] = word_of(p[0][3]);
}
__device__ inline void second_factor(unsigned* b, const Chunk* y, int n) {
    const float* at = (const float*)(y + (LANE & 3) * 2 * ROOM) + n * 8 + (LANE >> 2);
    b[0] = word_of(at[0]), b[1] = word_of(at[ROOM * EACH]), b[2] = word_of(at[8]), b[3] = word_of(at[ROOM * EACH + 8]);
}
#else
__device__ inline void first_factor(unsigned* a, const float (*p)[4]) {
    #pragma unroll
    for (int i = 0; i < 4; i++) a[i] = both(p[i / 2][i % 2 * 2], p[i / 2][i % 2 * 2 + 1]);
}
__device__ inline void second_factor(unsigned* b, const Chunk* y, int n) {
    load_turned(b, y + (LANE & 15) * ROOM + n + (LANE >> 4));
}
#endif

// c = x y^T, of rows of D elements.
__device__ inline void scores_of(Tile& c, const Chunk* x, const Chunk* y) {
    #pragma unroll
    for (int m = 0; m < DEEP; m++)
        #pragma unroll
        for (int n = 0; n < COLS / 8; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) c[m][n][e] = 0;
    #pragma unroll
    for (int k = 0; k < D / EACH; k += 2) {
        unsigned a[DEEP][4], b[4];
        #pragma unroll
        for (int m = 0; m < DEEP; m++) {
            load(a[m], x + ((WARP * DEEP + m) * 16 + (LANE & 15)) * ROOM + k + (LANE >> 4));
            round_words(a[m]);
        }
        #pragma unroll
        for (int n = 0; n < COLS / 8; n += 2) {
            load(b, y + (n * 8 + (LANE & 7) + (LANE >> 4) * 8) * ROOM + k + (LANE >> 3 & 1));
            round_words(b);
            #pragma unroll
            for (int m = 0; m < DEEP; m++) multiply(c[m][n], a[m], b), multiply(c[m][n + 1], a[m], b + 2);
        }
    }
}
// c += p y, of a tile p and rows of D elements.
__device__ inline void add_product(Result& c, const Tile& p, const Chunk* y) {
    #pragma unroll
    for (int k = 0; k < COLS; k += 2 * EACH) {
        unsigned a[DEEP][4], b[4];
        #pragma unroll
        for (int m = 0; m < DEEP; m++) first_factor(a[m], p[m] + k / 8);
        #pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            second_factor(b, y + k * ROOM, n);
            #pragma unroll
            for (int m = 0; m < DEEP; m++) multiply(c[m][n], a[m], b), multiply(c[m][n + 1], a[m], b + 2);
        }
    }
}

// A difference of places, as far as it matters for those of a tile.
__device__ inline int small(whole difference) {
    return difference > (1 << 20) ? 1 << 20 : difference < -(1 << 20) ? -(1 << 20) : (int)difference;
}
// Makes scores of products, in units of log(2): -inf for keys that are not there or come later. Rows begin at `first`.
__device__ inline void finish(Tile& s, double scale, const T* mask, const View& of_mask, whole first, whole start,
                              whole queries, whole keys, whole causal) {
    const float factor = float(scale * 1.4426950408889634);
    const whole last_key = OF_KEYS ? first + ROWS : start + COLS, first_query = OF_KEYS ? start : first;
    const bool is_plain = !mask && last_key <= keys && !(causal && last_key > first_query + 1);
    #pragma unroll
    for (int m = 0; m < DEEP; m++)
        #pragma unroll
        for (int n = 0; n < COLS / 8; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) s[m][n][e] *= factor;
    if (is_plain) return;
    // Places are relative to the tile from here on.
    const int rows = small((OF_KEYS ? keys : queries) - first), columns = small((OF_KEYS ? queries : keys) - start);
    const int before = small(first - start);  // row r is as late as column r + before
    const T* at = mask + (OF_KEYS ? start : first) * of_mask.row + (OF_KEYS ? first : start) * of_mask.column;
    const whole down = OF_KEYS ? of_mask.column : of_mask.row, across = OF_KEYS ? of_mask.row : of_mask.column;
    #pragma unroll
    for (int m = 0; m < DEEP; m++)
        #pragma unroll
        for (int n = 0; n < COLS / 8; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = ROW(m, e), column = COLUMN(n, e);
                const bool is_later = causal && (OF_KEYS ? row + before > column : column > row + before);
                if (row >= rows || column >= columns || is_later)
                    s[m][n][e] = -infinity(0.0f);
                else if (mask)
                    s[m][n][e] += LOG2E * float(at[row * down + column * across]);
            }
}

// Writes rows of results, through shared memory that nobody needs any more.
__device__ inline void store(T* to, const Result& c, Chunk* room, whole step, whole first, whole length, whole width) {
    __syncthreads();
    #pragma unroll
    for (int m = 0; m < DEEP; m++)
        #pragma unroll
        for (int n = 0; n < D / 8; n++)
            #pragma unroll
            for (int e = 0; e < 4; e += 2) {
                unsigned* at = (unsigned*)(room + ROW(m, e) * ROOM);
#if IS_SINGLE
                at[COLUMN(n, 0)] = __float_as_int(c[m][n][e]), at[COLUMN(n, 1)] = __float_as_int(c[m][n][e + 1]);
#else
                at[COLUMN(n, 0) / 2] = both(c[m][n][e], c[m][n][e + 1]);
#endif
            }
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * (D / EACH); e += THREADS) {
        const int r = e / (D / EACH), i = e % (D / EACH);
        if (first + r < length && i * EACH < width)
            *(uint4*)(to + (first + r) * step + i * EACH) = *(const uint4*)(room + r * ROOM + i);
    }
}
"""
)
_FORWARD = Program(
    "attention_stream",
    VIEWS
    + "#define OF_KEYS 0\n"
    + _PARTS
    + f"""
extern "C" __global__ void __launch_bounds__(THREADS) attention_stream(
    const T* q, const T* k, const T* v_, T* out, float* logs, {ARGUMENTS}) {{
    extern __shared__ __align__(16) unsigned char memory[];
    const whole tiles = (queries + ROWS - 1) / ROWS, head = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const whole first = (causal ? tiles - 1 - tile : tile) * ROWS;  // those with the most keys are the first to begin
    Chunk *own = (Chunk*)memory, *others = own + ROWS * ROOM;
    k = matrix(k, v, 1, head), v_ = matrix(v_, v, 2, head);
    if (mask) mask = matrix(mask, v, 4, head);
    const whole stop = causal && first + ROWS < keys ? first + ROWS : keys;
    fetch<ROWS>(own, matrix(q, v, 0, head), v.at[0].row, first, queries, size);
    fetch<COLS>(others, k, v.at[1].row, 0, keys, size);
    fetch<COLS>(others + COLS * ROOM, v_, v.at[2].row, 0, keys, width);
    end_group();
    Result result;
    clear(result);
    float most[DEEP][2], total[DEEP][2];  // of a row: the largest score, and the sum of this lane's exponentials
    #pragma unroll
    for (int m = 0; m < DEEP; m++)
        #pragma unroll
        for (int h = 0; h < 2; h++) most[m][h] = -infinity(0.0f), total[m][h] = 0;
    int half = 0;
    for (whole start = 0; start < stop; start += COLS, half ^= 1) {{
        wait_for_groups<0>();
        __syncthreads();
        if (start + COLS < stop) {{
            Chunk* next = others + (half ^ 1) * HALF_ROOM;
            fetch<COLS>(next, k, v.at[1].row, start + COLS, keys, size);
            fetch<COLS>(next + COLS * ROOM, v_, v.at[2].row, start + COLS, keys, width);
        }}
        end_group();
        const Chunk* of_keys = others + half * HALF_ROOM;
        Tile s;
        scores_of(s, own, of_keys);
        finish(s, scale, mask, v.at[4], first, start, queries, keys, causal);
        #pragma unroll
        for (int m = 0; m < DEEP; m++)
            #pragma unroll
            for (int h = 0; h < 2; h++) {{
                float high = most[m][h], sum = 0;
                #pragma unroll
                for (int n = 0; n < COLS / 8; n++) high = fmaxf(high, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
                high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
                high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
                const float base = high == -infinity(0.0f) ? 0.0f : high, kept = exp2f(most[m][h] - base);
                #pragma unroll
                for (int n = 0; n < COLS / 8; n++)
                    #pragma unroll
                    for (int e = 2 * h; e < 2 * h + 2; e++) sum += s[m][n][e] = exp2f(s[m][n][e] - base);
                total[m][h] = total[m][h] * kept + sum, most[m][h] = high;
                #pragma unroll
                for (int n = 0; n < D / 8; n++) result[m][n][2 * h] *= kept, result[m][n][2 * h + 1] *= kept;
            }}
        add_product(result, s, of_keys + COLS * ROOM);
    }}
    #pragma unroll
    for (int m = 0; m < DEEP; m++)
        #pragma unroll
        for (int h = 0; h < 2; h++) {{
            float sum = total[m][h];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            const float factor = sum == 0 ? 0.0f : 1 / sum;  // a query may have only hidden keys
            #pragma unroll
            for (int n = 0; n < D / 8; n++) result[m][n][2 * h] *= factor, result[m][n][2 * h + 1] *= factor;
            const whole query = first + ROW(m, 2 * h);
            if (!(LANE & 3) && query < queries)
                logs[head * queries + query] = sum == 0 ? -infinity(0.0f) : most[m][h] * LN2 + logf(sum);
        }}
    store(matrix(out, v, 3, head), result, own, v.at[3].row, first, queries, width);
}}
""",
    tensor_cores.TYPES,
)
# `dots` are the dot products of result rows with their gradients.
_BACKWARD = Program(
    "attention_stream_backward",
    VIEWS
    + "#define DEEP 1\n"
    + _PARTS
    + f"""
// The logarithm of a query's sum in units of log(2), infinite for one that is not there, and its dot product.
__device__ inline float2 of_query(const float* logs, const float* dots, whole query, whole queries) {{
    const float log = query < queries ? logs[query] * LOG2E : infinity(0.0f);
    return make_float2(log == -infinity(0.0f) ? infinity(0.0f) : log, query < queries ? dots[query] : 0.0f);
}}
extern "C" __global__ void __launch_bounds__(THREADS) attention_stream_backward(
    const T* q, const T* k, const T* v_, const T* grad, const float* logs, const float* dots, T* of_first, T* of_second,
    {ARGUMENTS}) {{
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float2 of_columns[2][OF_KEYS ? COLS : 1];
    const whole length = OF_KEYS ? keys : queries, others = OF_KEYS ? queries : keys;
    const whole tiles = (length + ROWS - 1) / ROWS, head = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const whole first = (causal && !OF_KEYS ? tiles - 1 - tile : tile) * ROWS;
    Chunk *x = (Chunk*)memory, *x2 = x + ROWS * ROOM, *moving = x2 + ROWS * ROOM;
    q = matrix(q, v, 0, head), k = matrix(k, v, 1, head), v_ = matrix(v_, v, 2, head), grad = matrix(grad, v, 3, head);
    if (mask) mask = matrix(mask, v, 4, head);
    logs += head * queries, dots += head * queries;
    const T *y = OF_KEYS ? q : k, *y2 = OF_KEYS ? grad : v_;
    const whole step = v.at[OF_KEYS ? 0 : 1].row, step2 = v.at[OF_KEYS ? 3 : 2].row;
    const whole begin = OF_KEYS && causal ? first / COLS * COLS : 0;
    const whole end = !OF_KEYS && causal && first + ROWS < others ? first + ROWS : others;
    fetch<ROWS>(x, OF_KEYS ? k : q, v.at[OF_KEYS ? 1 : 0].row, first, length, size);
    fetch<ROWS>(x2, OF_KEYS ? v_ : grad, v.at[OF_KEYS ? 2 : 3].row, first, length, width);
    fetch<COLS>(moving, y, step, begin, others, size);
    fetch<COLS>(moving + COLS * ROOM, y2, step2, begin, others, width);
    end_group();
    float2 of_rows[2];
    if (OF_KEYS) {{
        if (threadIdx.x < COLS) of_columns[0][threadIdx.x] = of_query(logs, dots, begin + threadIdx.x, queries);
    }} else {{
        #pragma unroll
        for (int h = 0; h < 2; h++) of_rows[h] = of_query(logs, dots, first + ROW(0, 2 * h), queries);
    }}
    Result one, two;
    clear(one);
    if (OF_KEYS) clear(two);
    int half = 0;
    for (whole start = begin; start < end; start += COLS, half ^= 1) {{
        wait_for_groups<0>();
        __syncthreads();
        const bool is_more = start + COLS < end;
        if (is_more) {{
            Chunk* next = moving + (half ^ 1) * HALF_ROOM;
            fetch<COLS>(next, y, step, start + COLS, others, size);
            fetch<COLS>(next + COLS * ROOM, y2, step2, start + COLS, others, width);
        }}
        end_group();
        float2 coming;
        if (OF_KEYS && is_more && threadIdx.x < COLS)
            coming = of_query(logs, dots, start + COLS + threadIdx.x, queries);
        const Chunk *here = moving + half * HALF_ROOM, *here2 = here + COLS * ROOM;
        Tile s, g;
        scores_of(s, x, here);
        finish(s, scale, mask, v.at[4], first, start, queries, keys, causal);
        scores_of(g, x2, here2);
        #pragma unroll
        for (int n = 0; n < COLS / 8; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {{
                const float2 own = OF_KEYS ? of_columns[half][COLUMN(n, e)] : of_rows[e / 2];
                s[0][n][e] = exp2f(s[0][n][e] - own.x);
                g[0][n][e] = s[0][n][e] * (g[0][n][e] - own.y) * float(scale);
            }}
        if (OF_KEYS) add_product(two, s, here2);
        add_product(one, g, here);
        if (OF_KEYS && is_more && threadIdx.x < COLS) of_columns[half ^ 1][threadIdx.x] = coming;
    }}
    wait_for_groups<0>();  // without other rows, none has been waited for
    store(matrix(of_first, v, OF_KEYS ? 6 : 5, head), one, x, v.at[OF_KEYS ? 6 : 5].row, first, length, size);
    if (OF_KEYS) store(matrix(of_second, v, 7, head), two, x2, v.at[7].row, first, length, width);
}}
""",
    tensor_cores.TYPES,
)


def fits(arrays, dtype, width):
    """Whether these arrays of rows, of heads at most `width` wide, can be copied by chunks to tensor cores."""
    if not tensor_cores.takes(dtype) or width > 128:
        return False
    for a in arrays:
        if a.shape[-1] * a.itemsize % _CHUNK or a.data.ptr % _CHUNK or any(step % _CHUNK for step in a.strides[:-1]):
            return False
    return max(_shared(dtype, width)) <= most_shared()


def _sizes(dtype, width):
    """Return (padded width of a head, products of 16 queries for each warp, keys at a time, the same backward)."""
    padded = next(d for d in (32, 64, 128) if width <= d)
    return (padded, *_SIZES[dtype.itemsize, padded])


def _shared(dtype, width):
    """Return the bytes of shared memory of a block, in the forward pass and in the backward pass."""
    padded, deep, columns, columns_backward = _sizes(dtype, width)
    row = padded * dtype.itemsize + _CHUNK
    return (_ROWS * deep + 4 * columns) * row, (2 * _ROWS + 4 * columns_backward) * row


def most_shared():
    """Return how many bytes of shared memory a block may have on the current GPU."""
    return cupy().cuda.runtime.deviceGetAttribute(_MOST_SHARED, current_device())


def multiprocessors():
    """Return how many multiprocessors the current GPU has."""
    return cupy().cuda.runtime.deviceGetAttribute(_MULTIPROCESSORS, current_device())


def _launch(program, dtype, blocks, args, shared, **macros):
    is_single = dtype.itemsize == 4
    is_exact = is_single and Precision.matmul == "highest"
    macros |= {"IS_SINGLE": int(is_single), "EXACT": int(is_exact), **tensor_cores.macros(dtype)}
    program.launch(dtype, blocks, THREADS, args, shared, **macros)


def attend(dtype, width, heads, queries, args):
    """Launch the forward pass for heads that are at most `width` wide."""
    padded, deep, columns, _ = _sizes(dtype, width)
    if heads * -(-queries // (_ROWS * deep)) < multiprocessors():
        deep = 1  # more blocks, which give the same bits
    blocks = heads * -(-queries // (_ROWS * deep))
    _launch(_FORWARD, dtype, blocks, args, _shared(dtype, width)[0], D=padded, COLS=columns, DEEP=deep)


def attend_backward(dtype, width, heads, rows, args, of_keys):
    """Launch the backward pass of queries or, if `of_keys`, of keys and values."""
    padded, _, _, columns = _sizes(dtype, width)
    blocks = heads * -(-rows // _ROWS)
    _launch(_BACKWARD, dtype, blocks, args, _shared(dtype, width)[1], D=padded, COLS=columns, OF_KEYS=int(of_keys))
