"""Attention on GPUs in tiles of scores that never leave a multiprocessor; see `_kernels/cpu/nn/attention.py`.

Note [Tiles of attention]
-------------------------
A block of 256 threads handles ROWS queries of one head and iterates over the keys, COLS at a time: one product gives
the scores, which are exponentiated relative to the running maximum, then a second product multiplies by the values. In
the backward pass a block handles either queries, for their gradient, or keys (OF_KEYS), for the gradients of keys and
values. Both recompute the scores, so no two blocks add to one element and all sums have a fixed order. With TENSOR, for
16-bit types from compute capability 8.0 on, products run on tensor cores, whose fragment layout determines which tile
elements a thread holds; otherwise each thread multiplies rows 16 apart. D is the head width, zero-padded.
"""

from typing import Any

from cygrad._kernels.device.cupy_library import cupy, dense
from cygrad._kernels.gpu.launch import tensor_cores
from cygrad._kernels.gpu.launch.program import FLOATS, Program, wide_type
from cygrad._kernels.gpu.launch.row_program import RowProgram
from cygrad._kernels.gpu.nn import attention_streams
from cygrad._kernels.gpu.nn.attention_views import ARGUMENTS, VIEWS, views

_THREADS = 256

_TILES = (
    """
#if TENSOR
typedef T Held;  // in shared memory
#else
typedef W Held;
#endif
#define PAD (int)(16 / sizeof(Held))  // so that rows do not lie in the same banks
#define LD (D + PAD)
#define LP (COLS + PAD)
#define LS (COLS + (int)(16 / sizeof(W)))
#define OF_TILE (ROWS * COLS / 256)  // elements of a thread
#define OF_RESULT (ROWS * D / 256)

struct alignas(16) Chunk { unsigned words[4]; };

// Rows from `first` on of a matrix (length, width) into shared memory, with zeros beyond.
__device__ inline void load(Held* to, int count, const T* from, whole step, whole first, whole length, int width) {
    const int each = 16 / sizeof(T);
    from += first * step;
    if (sizeof(Held) == sizeof(T) && !(width % each) && !(step % each) && !((size_t)from % 16)) {
        for (int e = threadIdx.x; e < count * (D / each); e += 256) {
            int r = e / (D / each), d = e % (D / each) * each;
            Chunk v = {{0, 0, 0, 0}};
            if (first + r < length && d < width) v = *(const Chunk*)(from + r * step + d);
            *(Chunk*)(to + r * LD + d) = v;
        }
    } else {
        for (int e = threadIdx.x; e < count * D; e += 256) {
            int r = e / D, d = e % D;
            to[r * LD + d] = first + r < length && d < width ? Held(from[r * step + d]) : Held(0.0f);
        }
    }
}

#if TENSOR
#define LANE (threadIdx.x & 31)
#define ROW_OF(n) (int)((threadIdx.x >> 5) % 4 * 16 + (LANE >> 2) + ((n) & 2) * 4)
#define COLUMN(width, n) (int)((threadIdx.x >> 7) * ((width) / 2) + ((n) >> 2) * 8 + (LANE & 3) * 2 + ((n) & 1))
__device__ inline unsigned word(const T* two) { return *(const unsigned*)two; }
__device__ inline unsigned both(const T* low, const T* high) {
    return *(const unsigned short*)low | (unsigned)*(const unsigned short*)high << 16;
}
"""
    + tensor_cores.PRODUCT
    + """
__device__ inline void fragment(unsigned* a, const T* from, int step) {
    from += ((threadIdx.x >> 5) % 4 * 16 + (LANE >> 2)) * step + (LANE & 3) * 2;
    a[0] = word(from), a[1] = word(from + 8 * step), a[2] = word(from + 8), a[3] = word(from + 8 * step + 8);
}
// c = x y^T, of rows of D elements.
__device__ inline void scores_of(W* c, const Held* x, const Held* y) {
    #pragma unroll
    for (int n = 0; n < OF_TILE; n++) c[n] = 0;
    for (int d = 0; d < D; d += 16) {
        unsigned a[4], b[2];
        fragment(a, x + d, LD);
        #pragma unroll
        for (int n = 0; n < OF_TILE; n += 4) {
            const T* from = y + (COLUMN(COLS, n) - (LANE & 3) * 2 + (LANE >> 2)) * LD + d + (LANE & 3) * 2;
            b[0] = word(from), b[1] = word(from + 8);
            mma(c + n, a, b);
        }
    }
}
// c += p y, of a tile p and rows of D elements.
__device__ inline void add_product(W* c, const Held* p, const Held* y) {
    for (int k = 0; k < COLS; k += 16) {
        unsigned a[4], b[2];
        fragment(a, p + k, LP);
        #pragma unroll
        for (int n = 0; n < OF_RESULT; n += 4) {
            const T* from = y + (k + (LANE & 3) * 2) * LD + COLUMN(D, n) - (LANE & 3) * 2 + (LANE >> 2);
            b[0] = both(from, from + LD), b[1] = both(from + 8 * LD, from + 9 * LD);
            mma(c + n, a, b);
        }
    }
}
#define TILE_COLUMN(n) COLUMN(COLS, n)
#define RESULT_ROW(n) ROW_OF(n)
#define RESULT_COLUMN(n) COLUMN(D, n)
#define TILE_ROW(n) ROW_OF(n)
#else
#define X (int)(threadIdx.x % 16)
#define Y (int)(threadIdx.x / 16)
#define TILE_ROW(n) (Y + (n) / (COLS / 16) * 16)
#define TILE_COLUMN(n) (X + (n) % (COLS / 16) * 16)
#define NEXT (D < 64 ? D / 16 : 4)  // neighbours of a row that a thread has
#define RESULT_ROW(n) (Y + (n) / (D / 16) * 16)
#define RESULT_COLUMN(n) ((n) % (D / 16) / NEXT * 16 * NEXT + X * NEXT + (n) % NEXT)
template <int N> struct alignas(N * sizeof(W) < 16 ? N * sizeof(W) : 16) Pack { W v[N]; };
__device__ inline void scores_of(W* c, const Held* x, const Held* y) {
    #pragma unroll
    for (int n = 0; n < OF_TILE; n++) c[n] = 0;
    for (int d = 0; d < D; d += 4) {
        Pack<4> a[ROWS / 16], b[COLS / 16];
        #pragma unroll
        for (int i = 0; i < ROWS / 16; i++) a[i] = *(const Pack<4>*)(x + (Y + 16 * i) * LD + d);
        #pragma unroll
        for (int j = 0; j < COLS / 16; j++) b[j] = *(const Pack<4>*)(y + (X + 16 * j) * LD + d);
        #pragma unroll
        for (int n = 0; n < OF_TILE; n++)
            #pragma unroll
            for (int k = 0; k < 4; k++) c[n] += a[n / (COLS / 16)].v[k] * b[n % (COLS / 16)].v[k];
    }
}
__device__ inline void add_product(W* c, const Held* p, const Held* y) {
    for (int k = 0; k < COLS; k += 4) {
        Pack<4> a[ROWS / 16];
        #pragma unroll
        for (int i = 0; i < ROWS / 16; i++) a[i] = *(const Pack<4>*)(p + (Y + 16 * i) * LP + k);
        #pragma unroll
        for (int l = 0; l < 4; l++) {
            Pack<NEXT> b[D / 16 / NEXT];
            #pragma unroll
            for (int j = 0; j < D / 16 / NEXT; j++)
                b[j] = *(const Pack<NEXT>*)(y + (k + l) * LD + (j * 16 + X) * NEXT);
            #pragma unroll
            for (int n = 0; n < OF_RESULT; n++)
                c[n] += a[n / (D / 16)].v[l] * b[n % (D / 16) / NEXT].v[n % NEXT];
        }
    }
}
#endif
// The score of a key, -inf for one that is not there or comes later.
__device__ inline W score(W product, double scale, const T* mask, const View& of_mask, whole query, whole key,
                          whole queries, whole keys, whole causal) {
    if (query >= queries || key >= keys || (causal && key > query)) return -infinity(W());
    return product * W(scale) + (mask ? W(mask[query * of_mask.row + key * of_mask.column]) : W(0));
}
__device__ inline void store(T* to, const W* c, const View& v, whole first, whole length, int width) {
    #pragma unroll
    for (int n = 0; n < OF_RESULT; n++)
        if (first + RESULT_ROW(n) < length && RESULT_COLUMN(n) < width)
            to[(first + RESULT_ROW(n)) * v.row + RESULT_COLUMN(n)] = T(c[n]);
}
"""
)
_FORWARD = Program(
    "attention_forward",
    VIEWS
    + _TILES
    + f"""
extern "C" __global__ void __launch_bounds__(256) attention_forward(
    const T* q, const T* k, const T* v_, T* out, W* logs,
    {ARGUMENTS}) {{
    extern __shared__ __align__(16) unsigned char memory[];
    const whole tiles = (queries + ROWS - 1) / ROWS, head = blockIdx.x / tiles, first = blockIdx.x % tiles * ROWS;
    Held *own = (Held*)memory, *of_keys = own + ROWS * LD, *of_values = of_keys + COLS * LD;
    W* scores = (W*)(of_values + COLS * LD);
    Held* weights = TENSOR ? (Held*)(scores + ROWS * LS) : (Held*)scores;
    W* largest = (W*)(TENSOR ? (void*)(weights + ROWS * LP) : (void*)(scores + ROWS * LS));
    W *total = largest + ROWS, *kept = total + ROWS;
    if (mask) mask = matrix(mask, v, 4, head);
    load(own, ROWS, matrix(q, v, 0, head), v.at[0].row, first, queries, size);
    for (int r = threadIdx.x; r < ROWS; r += 256) {{ largest[r] = -infinity(W()); total[r] = 0; }}
    W result[OF_RESULT], c[OF_TILE];
    #pragma unroll
    for (int n = 0; n < OF_RESULT; n++) result[n] = 0;
    const whole stop = causal && first + ROWS < keys ? first + ROWS : keys;
    for (whole start = 0; start < stop; start += COLS) {{
        load(of_keys, COLS, matrix(k, v, 1, head), v.at[1].row, start, keys, size);
        load(of_values, COLS, matrix(v_, v, 2, head), v.at[2].row, start, keys, width);
        __syncthreads();
        scores_of(c, own, of_keys);
        #pragma unroll
        for (int n = 0; n < OF_TILE; n++)
            scores[TILE_ROW(n) * LS + TILE_COLUMN(n)] = score(c[n], scale, mask, v.at[4], first + TILE_ROW(n),
                                                              start + TILE_COLUMN(n), queries, keys, causal);
        __syncthreads();
        const int each = 256 / ROWS, r = threadIdx.x / each, lane = threadIdx.x % each;  // threads of a row
        const W before = largest[r];
        W most = before, sum = 0;
        for (int i = lane; i < COLS; i += each) {{
            W s = scores[r * LS + i];
            most = most > s || most != most ? most : s;
        }}
        for (int s = each / 2; s; s >>= 1) {{
            W other = __shfl_xor_sync(0xffffffffu, most, s);
            most = most > other || most != most ? most : other;
        }}
        for (int i = lane; i < COLS; i += each) {{
            W p = most == -infinity(W()) ? W(0) : exp(scores[r * LS + i] - most);
            sum += p;
            weights[r * LP + i] = Held(p);
        }}
        for (int s = each / 2; s; s >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, s);
        if (!lane) {{
            kept[r] = most == -infinity(W()) ? W(1) : exp(before - most);
            total[r] = total[r] * kept[r] + sum;
            largest[r] = most;
        }}
        __syncthreads();
        #pragma unroll
        for (int n = 0; n < OF_RESULT; n++) result[n] *= kept[RESULT_ROW(n)];
        add_product(result, weights, of_values);
        __syncthreads();
    }}
    #pragma unroll
    for (int n = 0; n < OF_RESULT; n++) {{
        int r = RESULT_ROW(n);
        result[n] = largest[r] == -infinity(W()) ? W(0) : result[n] / total[r];
    }}
    store(matrix(out, v, 3, head), result, v.at[3], first, queries, width);
    for (int r = threadIdx.x; r < ROWS; r += 256)
        if (first + r < queries)
            logs[head * queries + first + r] = largest[r] == -infinity(W()) ? largest[r] : largest[r] + log(total[r]);
}}
""",
)
# `dots` are the dot products of result rows with their gradients.
_BACKWARD = Program(
    "attention_backward",
    VIEWS
    + _TILES
    + f"""
extern "C" __global__ void __launch_bounds__(256) attention_backward(
    const T* q, const T* k, const T* v_, const T* grad, const W* logs, const W* dots, T* of_first, T* of_second,
    {ARGUMENTS}) {{
    extern __shared__ __align__(16) unsigned char memory[];
    const whole length = OF_KEYS ? keys : queries, others = OF_KEYS ? queries : keys;
    const whole tiles = (length + ROWS - 1) / ROWS, head = blockIdx.x / tiles, first = blockIdx.x % tiles * ROWS;
    Held *x = (Held*)memory, *x2 = x + ROWS * LD, *y = x2 + ROWS * LD, *y2 = y + COLS * LD;
    Held *slopes = y2 + COLS * LD, *weights = slopes + ROWS * LP;
    W *log_of = (W*)(weights + (OF_KEYS ? ROWS * LP : 0)), *dot_of = log_of + (OF_KEYS ? COLS : ROWS);
    q = matrix(q, v, 0, head), k = matrix(k, v, 1, head), v_ = matrix(v_, v, 2, head), grad = matrix(grad, v, 3, head);
    if (mask) mask = matrix(mask, v, 4, head);
    logs += head * queries, dots += head * queries;
    load(x, ROWS, OF_KEYS ? k : q, v.at[OF_KEYS ? 1 : 0].row, first, length, size);
    load(x2, ROWS, OF_KEYS ? v_ : grad, v.at[OF_KEYS ? 2 : 3].row, first, length, width);
    if (!OF_KEYS)
        for (int r = threadIdx.x; r < ROWS; r += 256) {{
            log_of[r] = first + r < queries ? logs[first + r] : W(0);
            dot_of[r] = first + r < queries ? dots[first + r] : W(0);
        }}
    W one[OF_RESULT], two[OF_KEYS ? OF_RESULT : 1], s[OF_TILE], g[OF_TILE];
    #pragma unroll
    for (int n = 0; n < OF_RESULT; n++) one[n] = 0;
    #pragma unroll
    for (int n = 0; n < (OF_KEYS ? OF_RESULT : 1); n++) two[n] = 0;
    const whole begin = OF_KEYS && causal ? first / COLS * COLS : 0;
    const whole end = !OF_KEYS && causal && first + ROWS < others ? first + ROWS : others;
    for (whole start = begin; start < end; start += COLS) {{
        load(y, COLS, OF_KEYS ? q : k, v.at[OF_KEYS ? 0 : 1].row, start, others, size);
        load(y2, COLS, OF_KEYS ? grad : v_, v.at[OF_KEYS ? 3 : 2].row, start, others, width);
        if (OF_KEYS)
            for (int r = threadIdx.x; r < COLS; r += 256) {{
                log_of[r] = start + r < queries ? logs[start + r] : W(0);
                dot_of[r] = start + r < queries ? dots[start + r] : W(0);
            }}
        __syncthreads();
        scores_of(s, x, y);
        scores_of(g, x2, y2);
        #pragma unroll
        for (int n = 0; n < OF_TILE; n++) {{
            const int row = TILE_ROW(n), column = TILE_COLUMN(n), at = OF_KEYS ? column : row;
            const whole query = OF_KEYS ? start + column : first + row, key = OF_KEYS ? first + row : start + column;
            W value = score(s[n], scale, mask, v.at[4], query, key, queries, keys, causal);
            W p = value == -infinity(W()) || log_of[at] == -infinity(W()) ? W(0) : exp(value - log_of[at]);
            slopes[row * LP + column] = Held(p * (g[n] - dot_of[at]) * W(scale));
            if (OF_KEYS) weights[row * LP + column] = Held(p);
        }}
        __syncthreads();
        add_product(one, slopes, y);
        if (OF_KEYS) add_product(two, weights, y2);
        __syncthreads();
    }}
    store(matrix(of_first, v, OF_KEYS ? 6 : 5, head), one, v.at[OF_KEYS ? 6 : 5], first, length, size);
    if (OF_KEYS) store(matrix(of_second, v, 7, head), two, v.at[7], first, length, width);
}}
""",
)
_DOTS = RowProgram(
    "attention_dots",
    VIEWS
    + """
extern "C" __global__ void attention_dots(const T* out, const T* grad, W* dots, Views v, whole queries, whole rows,
                                      whole n) {
    EACH_ROW(row, rows) {
        whole head = row / queries, query = row % queries;
        const T *a = matrix(out, v, 4, head) + query * v.at[4].row, *b = matrix(grad, v, 3, head) + query * v.at[3].row;
        W sum = 0;
        for (whole i = threadIdx.x; i < n; i += blockDim.x) sum += W(a[i]) * W(b[i]);
        sum = over_row(sum, Add());
        if (!threadIdx.x) dots[row] = sum;
    }
}
""",
)


class _Call:
    """The arrays of a call, and its tiling."""

    def __init__(self, query, key, value, mask, scale, is_causal):
        self.leading, (self.queries, self.size) = query.shape[:-2], query.shape[-2:]
        self.keys, self.width = value.shape[-2:]
        self.arrays = [_in_rows(a) for a in (query, key, value)]
        if mask is not None:
            mask = mask.astype(query.dtype, copy=False)
            mask = _few(cupy().broadcast_to(mask, (*self.leading, self.queries, self.keys)))
        self.mask, self.dtype, self.wide = mask, query.dtype, wide_type(query.dtype)
        self.heads = query.size // (self.queries * self.size)
        self.widest = max(self.size, self.width)
        self.tiles: Any = _tiles(self.dtype, self.widest)
        self.numbers = float(scale), int(is_causal), self.queries, self.keys, self.size, self.width

    def room(self, length, width):
        """Return an uninitialized result, stored in memory as (..., length, heads, width)."""
        if len(self.leading) != 2:
            return cupy().empty((*self.leading, length, width), self.dtype)
        batch, heads = self.leading
        return cupy().empty((batch, length, heads, width), self.dtype).swapaxes(1, 2)

    def views(self, *others):
        """Return the content of a `Views` struct: strides of query, key, value and `others`."""
        inner = self.leading[1] if len(self.leading) == 2 else 1
        given = [None if a is None else (a.strides, a.itemsize) for a in (*self.arrays, *others)]
        return views(inner, len(self.leading), tuple(given))

    def launch(self, program, rows, number, *args, **more):
        macros, sizes = self.tiles
        blocks, args = self.heads * -(-rows // macros["ROWS"]), (*args, *self.numbers)
        program.launch(self.dtype, blocks, _THREADS, args, shared=sizes[number], **macros, **more)


def _few(a):
    """Collapse to at most two leading dimensions."""
    return a if a.ndim <= 4 else dense(a).reshape(-1, *a.shape[-2:])


def _in_rows(a):
    """Make the last dimension contiguous, with at most two leading dimensions."""
    return _few(a if a.strides[-1] == a.itemsize else dense(a))


def takes(query, value):
    """Whether tiles exist for this type and these widths."""
    return _tiles(query.dtype, max(query.shape[-1], value.shape[-1])) is not None


def _tiles(dtype, width):
    """Return (macros, bytes of shared memory for forward, backward by queries, backward by keys), or None."""
    if dtype.name not in FLOATS or width > 256:
        return None
    wide = wide_type(dtype).itemsize
    for tensor in (True, False):
        if tensor and not (dtype.itemsize == 2 and tensor_cores.takes(dtype)):
            continue
        d = next(d for d in (32, 64, 128, 256) if width <= d)
        rows = 64 if tensor else min(64 if wide == 4 else 32, max(16, 16384 // d // wide))
        columns = min(rows, 32)
        held = dtype.itemsize if tensor else wide
        line, tile = (d + 16 // held) * held, rows * (columns + 16 // held) * held
        scores = rows * (columns * wide + 16)
        forward = (rows + 2 * columns) * line + scores + (tile if tensor else 0) + 3 * rows * wide
        backward = 2 * (rows + columns) * line + tile
        sizes = forward, backward + 2 * rows * wide, backward + tile + 2 * columns * wide
        if max(sizes) <= attention_streams.most_shared():
            return {"D": d, "ROWS": rows, "COLS": columns, "TENSOR": int(tensor), **tensor_cores.macros(dtype)}, sizes
    return None


def attend(query, key, value, mask, scale, is_causal):
    """Return (softmax(query @ key^T * scale + mask) @ value, logarithms of the rows' sums of exponentials)."""
    call = _Call(query, key, value, mask, scale, is_causal)
    out = call.room(call.queries, call.width)
    logs = cupy().empty(query.shape[:-1], call.wide)
    args = *call.arrays, out, logs, call.mask, call.views(_few(out), call.mask)
    if attention_streams.fits(call.arrays, call.dtype, call.widest):
        attention_streams.attend(call.dtype, call.widest, call.heads, call.queries, (*args, *call.numbers))
    else:
        call.launch(_FORWARD, call.queries, 0, *args)
    return out, logs


def attend_backward(grad, query, key, value, mask, scale, is_causal, out, logs):
    """Return the gradients of query, key and value, from the result's gradient and what `attend` returned."""
    call = _Call(query, key, value, mask, scale, is_causal)
    grad, logs, out = _in_rows(grad), dense(logs), _in_rows(out)
    rows, dots = call.heads * call.queries, cupy().empty(logs.shape, call.wide)
    _DOTS.over_rows(call.dtype, rows, call.width, (out, grad, dots, call.views(grad, out), call.queries))
    lengths = (call.queries, call.size), (call.keys, call.size), (call.keys, call.width)
    grads = [call.room(*length) for length in lengths]
    places = call.views(grad, call.mask, *map(_few, grads))
    is_streamed = attention_streams.fits((*call.arrays, grad), call.dtype, call.widest)
    for of_keys in (0, 1):
        results, length = grads[1:] if of_keys else (grads[0], None), lengths[of_keys][0]
        args = *call.arrays, grad, logs, dots, *results, call.mask, places
        if is_streamed:
            args = *args, *call.numbers
            attention_streams.attend_backward(call.dtype, call.widest, call.heads, length, args, of_keys)
        else:
            call.launch(_BACKWARD, length, 1 + of_keys, *args, OF_KEYS=of_keys)
    return tuple(grads)
