"""Convolutions on tensor cores without unfolded windows: float16, bfloat16, and float32 as TF32.

Note [Implicit products]
------------------------
A convolution is a product of filters by windows. We never store the windows: a block copies the elements of its tile
from where they are in the images. Copies go by chunks of 16 bytes, so images are rearranged first, channels last, each
group's padded with zeros to whole chunks, and float32 rounded to TF32. A block of 256 threads computes BM rows times BN
places, in eight warps. Copies for later steps are under way while it multiplies (STAGES of them). All sums are in
float32 and have a fixed order.

Results from images and images from results are one kernel, `implicit_product`. It goes through the taps of the window
and the chunks of the channels. A result at `o` sees, through tap k, the place `o * stride - low + k * dilation` of the
image. Which result sees a place of an image is found by a division by the stride. Whether it leaves a remainder depends
on the tap and on the place modulo the stride. So with SPREAD a block takes places that are equal modulo the stride, and
only the taps that leave no remainder.

`implicit_filters` sums over all places of results, split among blocks if there are few filters (`each` steps for each),
whose sums `sum_of_slices` adds.
"""

import math

from cygrad._kernels.device.cupy_library import cupy, current_device, dense, switches
from cygrad._kernels.gpu.image.window_geometry import TEXT, places, taps
from cygrad._kernels.gpu.launch import tensor_cores
from cygrad._kernels.gpu.launch.program import Program
from cygrad._kernels.gpu.libraries import cudnn

_THREADS = 256
_STAGES = 3
_CHUNK = 16  # bytes
_CHUNKS = 4  # of a row's elements at a time, in `implicit_product`
_MULTIPROCESSORS = 16  # cudaDevAttrMultiProcessorCount
_MOST_PARTIAL = 1 << 26  # bytes of sums that blocks leave for `sum_of_slices`
_MOST_GROUPS, _MOST_BLOCKS = 65535, 2**31 - 1
_TILES = (128, 128), (128, 64), (64, 128), (64, 64), (32, 128), (32, 64)

# -- rearranging --

_ROUND = """
__device__ inline T rounded(T x) { return x; }
"""
_ROUND_SINGLE = """
__device__ inline float rounded(float x) {
    int bits = __float_as_int(x);
    return __int_as_float((bits & 0x7f800000) == 0x7f800000 ? bits | (bits & 0x7fffff ? 0x400000 : 0)
                                                            : (bits + 0x1000) & ~0x1fff);
}
"""
_PARTS = tensor_cores.COPIES + "#if IS_SINGLE\n" + _ROUND_SINGLE + "#else\n" + _ROUND + "#endif\n"

# A block moves 8 chunks of 32 places, through shared memory: neighbors are places before and channels after.
_CHANNELS_LAST = Program(
    "channels_last",
    _PARTS
    + """
extern "C" __global__ void channels_last(const T* images, Chunk* out, whole places, whole channels, whole chunks,
                                         whole groups) {
    const int wide = 8 * EACH + 2;  // so that neighbors in a column lie in different banks
    __shared__ unsigned words[32 * (8 * 16 + 8) / 4];
    T* tile = (T*)words;
    const whole all = groups * chunks, n = blockIdx.z, first = blockIdx.x * (whole)32, chunk = blockIdx.y * (whole)8;
    for (int r = threadIdx.x / 32; r < 8 * EACH; r += 8) {
        const whole q = chunk + r / EACH, p = first + threadIdx.x % 32;
        const whole group = quotient(q, chunks), c = (q - group * chunks) * EACH + r % EACH;
        const bool is_there = q < all && p < places && c < channels;
        tile[threadIdx.x % 32 * wide + r] =
            is_there ? rounded(images[((n * groups + group) * channels + c) * places + p]) : T(0.0f);
    }
    __syncthreads();
    const whole p = first + threadIdx.x / 8, q = chunk + threadIdx.x % 8;
    if (p >= places || q >= all) return;
    Chunk own;
    #pragma unroll
    for (int e = 0; e < EACH; e++) own.v[e] = tile[threadIdx.x / 8 * wide + threadIdx.x % 8 * EACH + e];
    out[(n * places + p) * all + q] = own;
}
""",
    tensor_cores.TYPES,
)
# Filters as rows of chunks [group, row, tap, chunk]; steps are those in memory between groups, rows and columns.
_ROWS_OF_FILTERS = Program(
    "rows_of_filters",
    _PARTS
    + """
extern "C" __global__ void rows_of_filters(const T* filters, Chunk* out, whole rows, whole columns, whole taps,
                                           whole chunks, whole group_step, whole row_step, whole column_step,
                                           whole total) {
    EACH_OF(i, total) {
        const whole q = rest(i, chunks), of_tap = quotient(i, chunks);
        const whole tap = rest(of_tap, taps), of_row = quotient(of_tap, taps);
        const whole row = rest(of_row, rows), group = quotient(of_row, rows);
        const T* from = filters + group * group_step + row * row_step + tap;
        Chunk own;
        #pragma unroll
        for (int e = 0; e < EACH; e++)
            own.v[e] = q * EACH + e < columns ? rounded(from[(q * EACH + e) * column_step]) : T(0.0f);
        out[i] = own;
    }
}
""",
    tensor_cores.TYPES,
)

# -- products --

_WARPS = """
#define LANE (int)(threadIdx.x & 31)
#define FIRST_ROW (int)(threadIdx.x >> 7) * (BM / 2)        // of a warp in the tile: two warps share its columns,
#define FIRST_COLUMN (int)(threadIdx.x >> 5 & 3) * (BN / 4) // four its rows
#define ROWS_OF_WARP (BM / 32)      // products of 16 rows
#define COLUMNS_OF_WARP (BN / 32)   // and of 8 columns
typedef float Sums[ROWS_OF_WARP][COLUMNS_OF_WARP][4];
__device__ inline void clear(Sums& sums) {
    #pragma unroll
    for (int m = 0; m < ROWS_OF_WARP; m++)
        #pragma unroll
        for (int n = 0; n < COLUMNS_OF_WARP; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) sums[m][n][e] = 0;
}
__device__ inline void add_products(Sums& sums, unsigned (&a)[ROWS_OF_WARP][4], unsigned (&b)[COLUMNS_OF_WARP][2]) {
    #pragma unroll
    for (int m = 0; m < ROWS_OF_WARP; m++)
        #pragma unroll
        for (int n = 0; n < COLUMNS_OF_WARP; n++) mma(sums[m][n], a[m], b[n]);
}
#define ROW_OF(m, e) (FIRST_ROW + (m) * 16 + (LANE >> 2) + (e) / 2 * 8)
#define COLUMN_OF(n, e) (FIRST_COLUMN + (n) * 8 + (LANE & 3) * 2 + (e) % 2)
"""
_PRODUCT = Program(
    "implicit_product",
    TEXT
    + tensor_cores.COPIES
    + tensor_cores.PRODUCT
    + _WARPS
    + """
#define ROOM (CHUNKS + 1)  // chunks of a row in shared memory: with an odd number, eight rows lie in different banks

// A dimension: the taps that are gone through, and where the places of the tile see through them.
struct Line {
    int count, tap, tap_step;       // of taps
    int shift, shift_step;          // of the place seen, from tap to tap
    int first, step, length;        // of the places made
    int scale, low;                 // a place j sees j * scale - low, before the shift
};
__device__ inline Line line_of(const Places& g, int d, int remainder) {
    Line l;
    if (!SPREAD) {
        l.count = g.kernel[d], l.tap = 0, l.tap_step = 1, l.shift = 0, l.shift_step = g.dilation[d];
        l.first = 0, l.step = 1, l.length = g.size[d], l.scale = g.stride[d], l.low = g.low[d];
        return l;
    }
    const int s = g.stride[d];
    l.count = 0, l.tap = 0, l.tap_step = 1;
    for (int k = 0; k < g.kernel[d]; k++)
        if ((remainder + g.low[d] - (whole)k * g.dilation[d]) % s == 0) {
            if (!l.count) l.tap = k;
            if (l.count == 1) l.tap_step = k - l.tap;
            l.count++;
        }
    l.shift = (int)((remainder + g.low[d] - (whole)l.tap * g.dilation[d]) / s);
    l.shift_step = -(int)((whole)l.tap_step * g.dilation[d] / s);
    l.first = remainder, l.step = s, l.scale = 1, l.low = 0;
    l.length = g.image[d] > remainder ? (g.image[d] - remainder + s - 1) / s : 0;
    return l;
}

extern "C" __global__ void __launch_bounds__(256, 2) implicit_product(
    const Chunk* filters, const Chunk* given, const T* bias, T* out, Places g, whole images, whole rows, whole chunks,
    whole tiles) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ whole targets[BN];  // where in `out` the columns of the tile begin; -1 for none
    Chunk *of_rows = (Chunk*)memory, *of_places = of_rows + STAGES * BM * ROOM;
    const whole groups = gridDim.z, group = blockIdx.z, first_row = blockIdx.y * (whole)BM;
    const int phase = (int)quotient(blockIdx.x, tiles), *seen_of = SPREAD ? g.size : g.image;
    const int *made_of = SPREAD ? g.image : g.size;
    const At remainder = at(phase, g.stride);
    Line line[3];
    #pragma unroll
    for (int d = 0; d < 3; d++) line[d] = line_of(g, d, SPREAD ? remainder.x[d] : 0);
    const whole each = (whole)line[0].length * line[1].length * line[2].length;  // places of an image
    const whole first = (blockIdx.x - phase * tiles) * BN, total = images * each;
    if (first >= total) return;
    const whole made = (whole)made_of[0] * made_of[1] * made_of[2], seen = (whole)seen_of[0] * seen_of[1] * seen_of[2];
    const int lengths[3] = {line[0].length, line[1].length, line[2].length};
    if (threadIdx.x < BN) {
        const whole p = first + threadIdx.x, n = quotient(p, each);
        const At j = at((int)(p - n * each), lengths);
        whole place = 0;
        #pragma unroll
        for (int d = 0; d < 3; d++) place = place * made_of[d] + line[d].first + j.x[d] * line[d].step;
        targets[threadIdx.x] = p < total ? (n * groups + group) * rows * made + place : -1;
    }

    // A thread copies chunk `threadIdx.x % CHUNKS` of every 64th row and place.
    const int own = threadIdx.x / CHUNKS;
    whole start[BN / 64];
    int from[BN / 64][3];
    #pragma unroll
    for (int i = 0; i < BN / 64; i++) {
        const whole p = first + own + 64 * i, n = quotient(p, each);
        const At j = at((int)(p - n * each), lengths);
        start[i] = p < total ? n * seen : -1;
        #pragma unroll
        for (int d = 0; d < 3; d++) from[i][d] = j.x[d] * line[d].scale - line[d].low;
    }
    const bool is_any = line[0].count && line[1].count && line[2].count;
    int tap[3] = {is_any ? 0 : line[0].count, 0, 0}, q = threadIdx.x % CHUNKS;
    const whole all = (whole)line[0].count * line[1].count * line[2].count * chunks;
    const whole steps = (all + CHUNKS - 1) / CHUNKS;

    auto settle = [&]() {  // q may be beyond the chunks of this tap
        while (q >= chunks && tap[0] < line[0].count) {
            q -= (int)chunks;
            if (++tap[2] < line[2].count) continue;
            tap[2] = 0;
            if (++tap[1] < line[1].count) continue;
            tap[1] = 0;
            ++tap[0];
        }
    };
    auto fetch = [&](int stage) {
        const bool is_more = tap[0] < line[0].count;
        whole number = 0;
        int shift[3];
        #pragma unroll
        for (int d = 0; d < 3; d++) {
            number = number * g.kernel[d] + line[d].tap + tap[d] * line[d].tap_step;
            shift[d] = line[d].shift + tap[d] * line[d].shift_step;
        }
        const whole taps = (whole)g.kernel[0] * g.kernel[1] * g.kernel[2];
        for (int r = own; r < BM; r += 64) {
            const whole row = first_row + r;
            const bool is_there = is_more && row < rows;
            copy(of_rows + (stage * BM + r) * ROOM + threadIdx.x % CHUNKS,
                 filters + (is_there ? ((group * rows + row) * taps + number) * chunks + q : 0), is_there);
        }
        #pragma unroll
        for (int i = 0; i < BN / 64; i++) {
            const int a = from[i][0] + shift[0], b = from[i][1] + shift[1], c = from[i][2] + shift[2];
            const bool is_there = is_more && start[i] >= 0 && inside(a, seen_of[0]) && inside(b, seen_of[1]) &&
                                  inside(c, seen_of[2]);
            const whole place = start[i] + ((whole)a * seen_of[1] + b) * seen_of[2] + c;
            copy(of_places + (stage * BN + own + 64 * i) * ROOM + threadIdx.x % CHUNKS,
                 given + (is_there ? (place * groups + group) * chunks + q : 0), is_there);
        }
        q += CHUNKS;
        settle();
    };

    settle();
    #pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) fetch(s);
        end_group();
    }
    Sums sums;
    clear(sums);
    int stage = 0;
    for (whole s = 0; s < steps; s++) {
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        if (s + STAGES - 1 < steps) fetch((stage + STAGES - 1) % STAGES);
        end_group();
        #pragma unroll
        for (int k = 0; k < CHUNKS; k += 2) {
            unsigned a[ROWS_OF_WARP][4], b[COLUMNS_OF_WARP][2];
            #pragma unroll
            for (int m = 0; m < ROWS_OF_WARP; m++)
                load(a[m], of_rows + (stage * BM + FIRST_ROW + m * 16 + (LANE & 15)) * ROOM + k + (LANE >> 4));
            #pragma unroll
            for (int n = 0; n < COLUMNS_OF_WARP; n += 2)
                load(b[n], of_places + (stage * BN + FIRST_COLUMN + n * 8 + (LANE & 7) + (LANE >> 4) * 8) * ROOM + k +
                               (LANE >> 3 & 1));
            add_products(sums, a, b);
        }
        stage = (stage + 1) % STAGES;
    }
    __syncthreads();  // without steps, `targets` has not been waited for
    #pragma unroll
    for (int m = 0; m < ROWS_OF_WARP; m++)
        #pragma unroll
        for (int n = 0; n < COLUMNS_OF_WARP; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const whole row = first_row + ROW_OF(m, e), target = targets[COLUMN_OF(n, e)];
                if (row < rows && target >= 0)
                    out[target + row * made] = T(sums[m][n][e] + (bias ? W(bias[group * rows + row]) : W(0)));
            }
}
""",
    tensor_cores.TYPES,
)
_FILTERS = Program(
    "implicit_filters",
    TEXT
    + tensor_cores.COPIES
    + tensor_cores.PRODUCT
    + _WARPS
    + """
#define APART (sizeof(T) == 2 ? 1 : 2)  // chunks between rows in shared memory, so that a warp reads from all banks
#define ROOM_OF_ROWS (BM / EACH + APART)
#define ROOM_OF_COLUMNS (BN / EACH + APART)
struct Spot { int image, x[3]; };  // the image, or -1, and the place that a window's first tap sees

extern "C" __global__ void __launch_bounds__(256, 2) implicit_filters(
    const Chunk* given, const Chunk* results, float* out, Places g, whole images, whole rows, whole row_chunks,
    whole chunks, whole column_tiles, whole each) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Spot spots[2][PLACES];
    Chunk *of_rows = (Chunk*)memory, *of_columns = of_rows + STAGES * PLACES * ROOM_OF_ROWS;
    const whole groups = gridDim.z, group = blockIdx.z, slice = blockIdx.y;
    const whole row_tile = quotient(blockIdx.x, column_tiles), column_tile = blockIdx.x - row_tile * column_tiles;
    const whole made = (whole)g.size[0] * g.size[1] * g.size[2], total = images * made;
    const whole seen = (whole)g.image[0] * g.image[1] * g.image[2];
    const whole taps = (whole)g.kernel[0] * g.kernel[1] * g.kernel[2];
    const whole begin = slice * each, all = (total + PLACES - 1) / PLACES, left = all - begin;
    const whole steps = left < each ? left : each;

    // A thread copies one chunk of rows, and one chunk of columns, which is one of a tap.
    const int own_row = threadIdx.x % (BM / EACH), own_column = threadIdx.x % (BN / EACH);
    const whole row_chunk = row_tile * (BM / EACH) + own_row;
    const whole column_chunk = column_tile * (BN / EACH) + own_column, tap = quotient(column_chunk, chunks);
    const whole q = column_chunk - tap * chunks;
    const At k = at(tap < taps ? (int)tap : 0, g.kernel);
    auto look = [&](whole s) {  // where the places of a step are
        if (threadIdx.x >= PLACES) return;
        const whole p = (begin + s) * PLACES + threadIdx.x, n = quotient(p, made);
        const At o = at((int)(p - n * made), g.size);
        Spot spot;
        spot.image = p < total ? (int)n : -1;
        #pragma unroll
        for (int d = 0; d < 3; d++) spot.x[d] = o.x[d] * g.stride[d] - g.low[d];
        spots[s & 1][threadIdx.x] = spot;
    };
    auto fetch = [&](whole s, int stage) {
        for (int r = threadIdx.x / (BM / EACH); r < PLACES; r += 256 / (BM / EACH)) {
            const whole p = (begin + s) * PLACES + r;
            const bool is_there = p < total && row_chunk < row_chunks;
            copy(of_rows + (stage * PLACES + r) * ROOM_OF_ROWS + own_row,
                 results + (is_there ? (p * groups + group) * row_chunks + row_chunk : 0), is_there);
        }
        for (int r = threadIdx.x / (BN / EACH); r < PLACES; r += 256 / (BN / EACH)) {
            const Spot spot = spots[s & 1][r];
            const int a = spot.x[0] + k.x[0] * g.dilation[0], b = spot.x[1] + k.x[1] * g.dilation[1];
            const int c = spot.x[2] + k.x[2] * g.dilation[2];
            const bool is_there = spot.image >= 0 && tap < taps && inside(a, g.image[0]) && inside(b, g.image[1]) &&
                                  inside(c, g.image[2]);
            const whole place = spot.image * seen + ((whole)a * g.image[1] + b) * g.image[2] + c;
            copy(of_columns + (stage * PLACES + r) * ROOM_OF_COLUMNS + own_column,
                 given + (is_there ? (place * groups + group) * chunks + q : 0), is_there);
        }
    };

    #pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        look(s);
        __syncthreads();
        if (s < steps) fetch(s, s);
        end_group();
    }
    look(STAGES - 1);
    Sums sums;
    clear(sums);
    int stage = 0;
    for (whole s = 0; s < steps; s++) {
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        if (s + STAGES - 1 < steps) fetch(s + STAGES - 1, (stage + STAGES - 1) % STAGES);
        end_group();
        look(s + STAGES);
        #pragma unroll
        for (int deep = 0; deep < PLACES; deep += PLACES / 2) {
            unsigned a[ROWS_OF_WARP][4], b[COLUMNS_OF_WARP][2];
            const Chunk *x = of_rows + (stage * PLACES + deep) * ROOM_OF_ROWS;
            const Chunk *y = of_columns + (stage * PLACES + deep) * ROOM_OF_COLUMNS;
            #pragma unroll
            for (int m = 0; m < ROWS_OF_WARP; m++) {
#if IS_SINGLE
                const unsigned* at =
                    (const unsigned*)(x + (LANE & 3) * ROOM_OF_ROWS) + FIRST_ROW + m * 16 + (LANE >> 2);
                a[m][0] = at[0], a[m][1] = at[8];
                a[m][2] = at[4 * ROOM_OF_ROWS * EACH], a[m][3] = at[4 * ROOM_OF_ROWS * EACH + 8];
#else
                load_turned(a[m], x + ((LANE & 7) + (LANE >> 4) * 8) * ROOM_OF_ROWS + (FIRST_ROW + m * 16) / EACH +
                                      (LANE >> 3 & 1));
#endif
            }
            #pragma unroll
            for (int n = 0; n < COLUMNS_OF_WARP; n += 2) {
#if IS_SINGLE
                const unsigned* at =
                    (const unsigned*)(y + (LANE & 3) * ROOM_OF_COLUMNS) + FIRST_COLUMN + n * 8 + (LANE >> 2);
                b[n][0] = at[0], b[n + 1][0] = at[8];
                b[n][1] = at[4 * ROOM_OF_COLUMNS * EACH], b[n + 1][1] = at[4 * ROOM_OF_COLUMNS * EACH + 8];
#else
                load_turned(b[n], y + (LANE & 15) * ROOM_OF_COLUMNS + (FIRST_COLUMN + n * 8) / EACH + (LANE >> 4));
#endif
            }
            add_products(sums, a, b);
        }
        stage = (stage + 1) % STAGES;
    }
    const whole width = taps * chunks * EACH;
    #pragma unroll
    for (int m = 0; m < ROWS_OF_WARP; m++)
        #pragma unroll
        for (int n = 0; n < COLUMNS_OF_WARP; n++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const whole row = row_tile * BM + ROW_OF(m, e), column = column_tile * BN + COLUMN_OF(n, e);
                if (row < rows && column < width)
                    out[((slice * groups + group) * rows + row) * width + column] = sums[m][n][e];
            }
}
""",
    tensor_cores.TYPES,
)
_SUM_OF_SLICES = Program(
    "sum_of_slices",
    """
extern "C" __global__ void sum_of_slices(const float* sums, T* out, whole slices, whole channels, whole taps,
                                         whole padded, whole total) {
    const whole filters = quotient(total, channels * taps), step = filters * taps * padded;
    EACH_OF(i, total) {
        const whole tap = rest(i, taps), of_channel = quotient(i, taps);
        const whole c = rest(of_channel, channels), filter = quotient(of_channel, channels);
        const float* from = sums + (filter * taps + tap) * padded + c;
        float sum = 0;
        for (whole s = 0; s < slices; s++) sum += from[s * step];
        out[i] = T(sum);
    }
}
""",
    tensor_cores.TYPES,
)


def takes(first, second, where, groups):
    """Whether to compute a convolution of these two arrays so, as far as types, settings, GPU and sizes allow.

    Without windows to unfold, cuBLAS needs no rearranging.
    """
    dtype = first.dtype
    if dtype != second.dtype or where.is_plain or not tensor_cores.takes(dtype):
        return False
    if dtype.itemsize == 4 and not cudnn.settings["allow_tf32"]:
        return False
    return switches.own_launches and groups <= _MOST_GROUPS and math.prod(where.image) < _MOST_BLOCKS


def _chunks(dtype, channels):
    """Return the number of chunks for this many channels."""
    return -(-channels * dtype.itemsize // _CHUNK)


def _channels_last(x, groups):
    """Return images (n, channels, *places) with channels last, those of each group padded to chunks."""
    n, channels, count = len(x), x.shape[1] // groups, math.prod(x.shape[2:])
    chunks = _chunks(x.dtype, channels)
    all_chunks, is_single = groups * chunks, int(x.dtype.itemsize == 4)
    out = cupy().empty((n, count, all_chunks * _CHUNK // x.itemsize), x.dtype)
    for first in range(0, n, _MOST_GROUPS):
        part = x[first : first + _MOST_GROUPS]
        grid = -(-count // 32), -(-all_chunks // 8), len(part)
        args = dense(part), out[first:], count, channels, chunks, groups
        _CHANNELS_LAST.launch(x.dtype, grid, _THREADS, args, IS_SINGLE=is_single)
    return out


def _rows_of_filters(w, groups, is_spread):
    """Return filters as rows of chunks: of channels for each filter, or if `is_spread` of filters for each channel."""
    filters, channels, count = len(w) // groups, w.shape[1], math.prod(w.shape[2:])
    steps = channels * count, count
    rows, columns, steps = (channels, filters, steps[::-1]) if is_spread else (filters, channels, steps)
    chunks = _chunks(w.dtype, columns)
    out = cupy().empty((groups, rows, count, chunks * _CHUNK // w.itemsize), w.dtype)
    total = groups * rows * count * chunks
    args = dense(w), out, rows, columns, count, chunks, filters * channels * count, *steps, total
    _ROWS_OF_FILTERS.over(w.dtype, total, args, IS_SINGLE=int(w.dtype.itemsize == 4))
    return out


def _tile(rows, columns, others):
    """Return (BM, BN): the largest tile that is not mostly empty and gives each multiprocessor a block."""
    least = cupy().cuda.runtime.deviceGetAttribute(_MULTIPROCESSORS, current_device())
    fitting = [tile for tile in _TILES if tile[0] < 2 * rows or tile is _TILES[-1]]
    for bm, bn in fitting:
        if -(-rows // bm) * -(-columns // bn) * others >= least:
            return bm, bn
    return fitting[-1]


def _product(given, w, b, out, where, groups, is_spread):
    """Compute `out` (n, channels, *places), results or if `is_spread` images, from the other of the two."""
    n, rows = len(out), out.shape[1] // groups
    phases = math.prod(where.stride) if is_spread else 1
    count = math.prod(-(-i // s) for i, s in zip(where.image, where.stride)) if is_spread else math.prod(where.size)
    bm, bn = _tile(rows, n * count, phases * groups)
    tiles = -(-n * count // bn)
    given, filters = _channels_last(given, groups), _rows_of_filters(w, groups, is_spread)
    chunks = given.shape[2] * given.itemsize // _CHUNK // groups
    args = filters, given, b if b is None else dense(b), out, places(where), n, rows, chunks, tiles
    shared = _STAGES * (bm + bn) * (_CHUNKS + 1) * _CHUNK
    macros = {"BM": bm, "BN": bn, "STAGES": _STAGES, "CHUNKS": _CHUNKS, "SPREAD": int(is_spread)}
    macros |= tensor_cores.macros(out.dtype)
    _PRODUCT.launch(out.dtype, (phases * tiles, -(-rows // bm), groups), _THREADS, args, shared, **macros)
    return out


def correlate(x, w, b, where, groups):
    """Return results (n, filters, *size) from images, filters and a bias or None; nothing is empty."""
    out = cupy().empty((len(x), len(w), *where.size), x.dtype)
    return _product(x, w, b, out, where, groups, False)


def spread(g, w, b, where, groups):
    """Return images (n, channels, *image) from results, filters and a bias or None; nothing is empty."""
    out = cupy().empty((len(g), w.shape[1] * groups, *where.image), g.dtype)
    return _product(g, w, b, out, where, groups, True)


def filter_gradient(x, g, where, groups):
    """Return filters (filters, channels / groups, *kernel) from images and results; nothing is empty."""
    channels, rows, count = x.shape[1] // groups, g.shape[1] // groups, taps(where)
    given, results = _channels_last(x, groups), _channels_last(g, groups)
    row_chunks, chunks = _chunks(g.dtype, rows), _chunks(x.dtype, channels)
    padded = chunks * _CHUNK // x.itemsize
    width, deep = count * padded, 64 // x.itemsize  # places of a step
    bm, bn = _tile(rows, width, groups)
    column_tiles, row_tiles = -(-width // bn), -(-rows // bm)
    steps = -(-len(x) * math.prod(where.size) // deep)
    slices = _slices(steps, column_tiles * row_tiles * groups, 4 * groups * rows * width)
    each = -(-steps // slices)
    slices = -(-steps // each)
    sums = cupy().empty((slices, groups * rows, width), "float32")
    apart = _CHUNK if x.itemsize == 2 else 2 * _CHUNK
    shared = _STAGES * deep * ((bm + bn) * x.itemsize + 2 * apart)
    macros = {"BM": bm, "BN": bn, "STAGES": _STAGES, "PLACES": deep, "IS_SINGLE": int(x.itemsize == 4)}
    macros |= tensor_cores.macros(x.dtype)
    args = given, results, sums, places(where), len(x), rows, row_chunks, chunks, column_tiles, each
    _FILTERS.launch(x.dtype, (column_tiles * row_tiles, slices, groups), _THREADS, args, shared, **macros)
    out = cupy().empty((groups * rows, channels, *where.kernel), x.dtype)
    _SUM_OF_SLICES.over(x.dtype, out.size, (sums, out, slices, channels, count, padded, out.size))
    return out


def _slices(steps, blocks, size):
    """Return how many blocks share the steps of each tile: two for each multiprocessor, with a few steps each."""
    wanted = 2 * cupy().cuda.runtime.deviceGetAttribute(_MULTIPROCESSORS, current_device())
    return max(1, min(wanted // blocks, steps // 4, _MOST_PARTIAL // size, _MOST_GROUPS))
