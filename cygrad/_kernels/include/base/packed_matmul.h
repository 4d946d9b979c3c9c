/* Float matrix products whose right matrix is stored in panels: 32 or 16 columns of all rows, row by row, then the next
   columns. Code that produces matrices can write them in this layout, into which BLAS would have to copy them first
   (winograd.h). */

#ifndef WIDTH                   /* the file includes itself once for each instruction set */
#ifndef CYGRAD_PANELS_H
#define CYGRAD_PANELS_H

#include "platform/target_clones.h"

/* Vectors are written out below; GCC 12 and Clang can also shuffle them. */
#if defined(__GNUC__) && defined(__has_builtin) && (!defined(__x86_64__) || CYGRAD_WIDEST >= 256)
#if __has_builtin(__builtin_shufflevector)
#define CYGRAD_VECTORS
#endif
#endif

#ifdef CYGRAD_VECTORS

#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#define ROLLED _Pragma("nounroll")
#else
#define UNROLLED _Pragma("GCC unroll 9")
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* Precedes loops with written-out vectors; other code is a third smaller this way. */
#ifdef __clang__
#define BEGIN_VECTORS CYGRAD_BEGIN_LOOPS
#else
#define BEGIN_VECTORS \
    _Pragma("GCC push_options") CYGRAD_FUSED CYGRAD_PRAGMA(GCC optimize( \
        "O2", "expensive-optimizations", "move-loop-invariants", "no-tree-vectorize", "no-unroll-loops"))
#endif

BEGIN_VECTORS

#if defined(__x86_64__)
#define WIDTH 16
#define ROWS 8
#define VECTORS 2
#define TUNED __attribute__((target("avx512f")))
#define NAME(name) name##_avx512
#include "base/packed_matmul.h"

#define WIDTH 8
#define ROWS 6                  /* of two vectors: as many sums as leave registers for their operands */
#define VECTORS 2
#define TUNED __attribute__((target("avx2,fma")))
#define NAME(name) name##_avx2
#include "base/packed_matmul.h"

#define HAS_PANELS CYGRAD_SUPPORTS(256)
#else
#define WIDTH 4
#define ROWS 4
#define VECTORS 4
#define TUNED
#define NAME(name) name##_any
#include "base/packed_matmul.h"

#define HAS_PANELS 1
#endif

CYGRAD_END_LOOPS

#if defined(__x86_64__)         /* older processors use BLAS */
#define WIDE 8                  /* floats in a vector */
#define TUNED __attribute__((target("avx2,fma")))
#else
#define WIDE 4
#define TUNED
#endif

typedef float lanes __attribute__((vector_size(4 * WIDE)));
typedef float anywhere __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

#define LOAD(p) ((lanes)*(const anywhere *)(p))
#define STORE(p, v) (*(anywhere *)(p) = (v))

/* Loads elements `stride` apart. */
TUNED CYGRAD_INLINE lanes load_apart(const float *p, Py_ssize_t stride)
{
    if (stride == 1) return LOAD(p);
#if WIDE == 8
    if (stride == 2) return __builtin_shufflevector(LOAD(p), LOAD(p + 7), 0, 2, 4, 6, 9, 11, 13, 15);
    return (lanes){p[0], p[stride], p[2 * stride], p[3 * stride],
                   p[4 * stride], p[5 * stride], p[6 * stride], p[7 * stride]};
#else
    return (lanes){p[0], p[stride], p[2 * stride], p[3 * stride]};
#endif
}

/* The number of columns of a panel. */
static Py_ssize_t panel_width(void)
{
#if defined(__x86_64__)
    return CYGRAD_SUPPORTS(512) ? 32 : 16;
#else
    return 16;
#endif
}

/* The position of column j of row i, where j is a multiple of 4; the last panel may have 16 columns. */
CYGRAD_INLINE Py_ssize_t in_panels(Py_ssize_t i, Py_ssize_t j, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t panel)
{
    const Py_ssize_t begin = j / panel * panel, width = columns - begin < panel ? columns - begin : panel;
    return begin * rows + i * width + (j - begin);
}

/* Transposes four elements of each of four columns into parts of four rows of a panel. */
TUNED CYGRAD_INLINE void turn_four(const float *from, Py_ssize_t column, float *to, Py_ssize_t width)
{
    const four p = *(const four *)from, q = *(const four *)(from + column);
    const four r = *(const four *)(from + 2 * column), s = *(const four *)(from + 3 * column);
    const four pq = __builtin_shufflevector(p, q, 0, 4, 1, 5), rs = __builtin_shufflevector(r, s, 0, 4, 1, 5);
    const four pq2 = __builtin_shufflevector(p, q, 2, 6, 3, 7), rs2 = __builtin_shufflevector(r, s, 2, 6, 3, 7);
    *(four *)to = __builtin_shufflevector(pq, rs, 0, 1, 4, 5);
    *(four *)(to + width) = __builtin_shufflevector(pq, rs, 2, 3, 6, 7);
    *(four *)(to + 2 * width) = __builtin_shufflevector(pq2, rs2, 0, 1, 4, 5);
    *(four *)(to + 3 * width) = __builtin_shufflevector(pq2, rs2, 2, 3, 6, 7);
}

/* Packs `width` columns of b, a multiple of 16, into a panel. Either the rows or the columns of b are contiguous. The
   hardware does not prefetch distant rows for the next panel, so we do; of distant columns the L1 cache holds few, so
   each line is read at once. */
TUNED static void fill_panel(const float *b, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t width,
                             float *to)
{
    const Py_ssize_t whole = rows - (rows & 3);
    if (column == 1) {
        for (Py_ssize_t i = 0; i < rows; i++) {
            __builtin_prefetch(b + i * row + width, 0, 2);
            for (Py_ssize_t j = 0; j < width; j += WIDE) STORE(to + i * width + j, LOAD(b + i * row + j));
        }
        return;
    }
    for (Py_ssize_t begin = 0, end; begin < whole; begin = end) {
        end = whole - begin < 16 ? whole : begin + 16;
        for (Py_ssize_t j = 0; j < width; j += 4) {
            const float *from = b + begin * row + j * column;
            float *place = to + begin * width + j;
            for (Py_ssize_t i = begin; i < end; i += 4, from += 4 * row, place += 4 * width)
                turn_four(from, column, place, width);
        }
    }
    for (Py_ssize_t i = whole; i < rows; i++)
        for (Py_ssize_t j = 0; j < width; j++) to[i * width + j] = b[i * row + j * column];
}

/* The product (m, n), added to `out` if `add`, where m is a multiple of 8 and n of 16. The strides of the left matrix
   (m, depth) are `row` and `step`; that of the rows of `out` is `out_row`. */
static void multiply_panels(Py_ssize_t m, Py_ssize_t n, Py_ssize_t depth, const float *a, Py_ssize_t row,
                            Py_ssize_t step, const float *b, float *out, Py_ssize_t out_row, int add)
{
#if defined(__x86_64__)
    if (CYGRAD_SUPPORTS(512)) multiply_avx512(m, n, depth, a, row, step, b, out, out_row, add);
    else multiply_avx2(m, n, depth, a, row, step, b, out, out_row, add);
#else
    multiply_any(m, n, depth, a, row, step, b, out, out_row, add);
#endif
}

#else
#define HAS_PANELS 0
#endif
#endif
#else

typedef float NAME(lanes) __attribute__((vector_size(4 * WIDTH)));
typedef float NAME(anywhere) __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

#define COLUMNS (VECTORS * WIDTH)
#define LOAD(p) ((NAME(lanes))*(const NAME(anywhere) *)(p))
#define STORE(p, v) (*(NAME(anywhere) *)(p) = (v))

/* `rows` rows, at most ROWS, of `vectors` vectors of a product, summed over `depth`; added to `out` if `add`, else
   stored. */
TUNED CYGRAD_INLINE void NAME(block)(int rows, int vectors, Py_ssize_t depth, const float *a, Py_ssize_t row,
                                    Py_ssize_t step, const float *b, float *out, Py_ssize_t out_row, int add)
{
    NAME(lanes) sums[ROWS][VECTORS];
    UNROLLED for (int i = 0; i < rows; i++)
        UNROLLED for (int j = 0; j < vectors; j++) sums[i][j] = (NAME(lanes)){0};
    for (; depth > 0; depth--, a += step, b += vectors * WIDTH)
        UNROLLED for (int i = 0; i < rows; i++)
            UNROLLED for (int j = 0; j < vectors; j++) sums[i][j] += a[i * row] * LOAD(b + j * WIDTH);
    if (add)
        UNROLLED for (int i = 0; i < rows; i++)
            UNROLLED for (int j = 0; j < vectors; j++) sums[i][j] += LOAD(out + i * out_row + j * WIDTH);
    UNROLLED for (int i = 0; i < rows; i++)
        UNROLLED for (int j = 0; j < vectors; j++) STORE(out + i * out_row + j * WIDTH, sums[i][j]);
}

TUNED static void NAME(multiply)(Py_ssize_t m, Py_ssize_t n, Py_ssize_t depth, const float *a, Py_ssize_t row,
                                 Py_ssize_t step, const float *b, float *out, Py_ssize_t out_row, int add)
{
    for (Py_ssize_t j = 0; j < n; j += COLUMNS, b += COLUMNS * depth)
        for (Py_ssize_t i = 0, rows; i < m; i += rows) {
            const float *const from = a + i * row;
            float *const to = out + i * out_row + j;
            rows = ROWS == 6 && (m - i == 8 || m - i == 4) ? 4 : ROWS;      /* the remainder is never 2 */
            if (COLUMNS > 16 && n - j < COLUMNS)
                NAME(block)(ROWS, 16 / WIDTH, depth, from, row, step, b, to, out_row, add);
            else if (rows == ROWS)
                NAME(block)(ROWS, VECTORS, depth, from, row, step, b, to, out_row, add);
            else
                NAME(block)(4, VECTORS, depth, from, row, step, b, to, out_row, add);
        }
}

#undef COLUMNS
#undef LOAD
#undef STORE
#undef WIDTH
#undef ROWS
#undef VECTORS
#undef TUNED
#undef NAME
#endif
