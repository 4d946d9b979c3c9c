/* Float and double matrix products, in front of NumPy's matmul loops, which call BLAS.

   BLAS takes longer to start than to multiply small matrices, so small products have loops of their own, and so do
   outer products of a column and a row, which sum nothing. On processors with AVX2, larger float matrices are
   multiplied here, too, in tiles (matmul_tiles.h). Everything else goes to BLAS. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_PRODUCTS_H
#define CYGRAD_PRODUCTS_H

#include "platform/target_clones.h"
#include "base/matmul_tiles.h"

enum {
    SMALL_PRODUCT = 1 << 13,    /* multiplications */
    THIN = 8,                   /* rows or columns */
    LARGE_MATRIX = 1 << 17,     /* elements; packing such a matrix takes longer than multiplying it by few rows */
    DEEP = 1 << 13,             /* maximum length of sums that may be accumulated sequentially */
    ROWS_BY_ROW = 3 * THIN,     /* rows of the left matrix that reuse a row of the right one */
    ROWS_AT_ONCE = 16           /* rows that reuse four columns while these are in the L1 cache */
};

/* A NumPy loop for all products that ours leave over, and its data. */
typedef struct { void (*function)(char **, const Py_ssize_t *, const Py_ssize_t *, void *); void *data; } blas_loop;

/* a (m, depth) @ b (depth, n). Strides, in elements: rows and columns of a, those of b, rows of the result. */
typedef struct { Py_ssize_t m, depth, n, a_row, a_column, b_row, b_column, out_row; } product;

static int has_own_tiles, is_blas_short;   /* set at import; the latter: BLAS uses only half of the vector width */

#define EXP_CLONES CYGRAD_WIDE_CLONES
#if defined(__x86_64__)         /* without FMA, two rows at once are no faster than one */
#define PAIRS_TUNED __attribute__((target("avx2,fma")))
#else
#define PAIRS_TUNED
#endif

CYGRAD_BEGIN_PLAIN_LOOPS

#define SHUFFLE __builtin_shufflevector
#define REAL float
#define NAME(name) name##_f32
#define ADD_LANES(totals, u, v, w, z)                                                                           \
    do {                                                                                                        \
        const lanes_f32 uv = SHUFFLE(u, v, 0, 8, 2, 10, 4, 12, 6, 14) + SHUFFLE(u, v, 1, 9, 3, 11, 5, 13, 7, 15);  \
        const lanes_f32 wz = SHUFFLE(w, z, 0, 8, 2, 10, 4, 12, 6, 14) + SHUFFLE(w, z, 1, 9, 3, 11, 5, 13, 7, 15);  \
        const lanes_f32 all = SHUFFLE(uv, wz, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(uv, wz, 2, 3, 10, 11, 6, 7, 14, 15); \
        for (int i = 0; i < 4; i++) totals[i] = all[i] + all[i + 4];                                            \
    } while (0)
#include "base/matmul.h"
#undef ADD_LANES
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_f64
#define ADD_LANES(totals, u, v, w, z)                                                                           \
    do {                                                                                                        \
        const lanes_f64 uv = SHUFFLE(u, v, 0, 4, 2, 6) + SHUFFLE(u, v, 1, 5, 3, 7);                             \
        const lanes_f64 wz = SHUFFLE(w, z, 0, 4, 2, 6) + SHUFFLE(w, z, 1, 5, 3, 7);                             \
        const lanes_f64 all = SHUFFLE(uv, wz, 0, 1, 4, 5) + SHUFFLE(uv, wz, 2, 3, 6, 7);                        \
        for (int i = 0; i < 4; i++) totals[i] = all[i];                                                         \
    } while (0)
#include "base/matmul.h"
#undef ADD_LANES
#undef SHUFFLE
#undef REAL
#undef NAME

CYGRAD_END_LOOPS

/* One product by BLAS. */
static void by_blas(const blas_loop *blas, char *a, char *b, char *out, const product *p, Py_ssize_t size)
{
    char *data[3] = {a, b, out};
    const Py_ssize_t counts[4] = {1, p->m, p->depth, p->n};
    const Py_ssize_t steps[9] = {0, 0, 0, p->a_row * size, p->a_column * size, p->b_row * size, p->b_column * size,
                                 p->out_row * size, size};
    blas->function(data, counts, steps, blas->data);
}

/* Whether the small-product loops are faster for few rows or columns, too. They read the other matrix in place,
   where others pack it first (BLAS is slower still on processors it does not recognize), and write large results row
   by row. */
static int is_thin(const product *p, int has_tiles)
{
    Py_ssize_t few = THIN - has_tiles;
    if (p->b_column == 1 && is_blas_short && !has_tiles) few = ROWS_BY_ROW;
    if (p->b_column == 1 && p->depth <= THIN && p->m * p->out_row >= 4 * LARGE_MATRIX) few = p->m;
    if (p->b_column != 1 && p->depth * p->n >= LARGE_MATRIX) few = 2 * THIN - 1;
    return p->m > 1 && p->n > 1 && p->depth <= DEEP && (p->m <= few || (p->b_column != 1 && p->n < THIN));
}

/* One product. The rows and columns that tiles leave over are multiplied recursively. */
static void multiply_one(const blas_loop *blas, char *a, char *b, char *out, const product *p, int is_double)
{
    const Py_ssize_t size = is_double ? sizeof(double) : sizeof(float), rows = p->m / 8 * 8, columns = p->n / 16 * 16;
    const int has_tiles = has_own_tiles && !is_double, is_small = p->depth == 1 || p->m * p->depth * p->n <= SMALL_PRODUCT;
    const int is_square = a == b && p->a_row == p->b_column && p->a_column == p->b_row;  /* BLAS computes one half */
    product rest = *p;
    if (!is_square && (is_small || is_thin(p, has_tiles))
        && (is_double ? small_f64(p, (double *)a, (double *)b, (double *)out)
                      : small_f32(p, (float *)a, (float *)b, (float *)out))) return;
    if (is_square || is_small || !(has_tiles && rows && columns)) {
        by_blas(blas, a, b, out, p, size);
        return;
    }
    multiply_tile(rows, columns, p->depth, (float *)a, p->a_row, p->a_column, (float *)b, p->b_row, p->b_column,
                  (float *)out, p->out_row);
    rest.m = p->m - rows;
    if (rest.m) multiply_one(blas, a + rows * p->a_row * size, b, out + rows * p->out_row * size, &rest, 0);
    rest.m = rows;
    rest.n = p->n - columns;
    if (rest.n) multiply_one(blas, a, b + columns * p->b_column * size, out + columns * size, &rest, 0);
}

/* A matmul loop with NumPy's signature; `data` is a blas_loop. */
static void multiply_all(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps, void *data, int is_double)
{
    const blas_loop *blas = data;
    const Py_ssize_t size = is_double ? sizeof(double) : sizeof(float), *s = steps + 3;
    const product p = {counts[1], counts[2], counts[3], s[0] / size, s[1] / size, s[2] / size, s[3] / size, s[4] / size};
    if (s[5] != size || s[0] % size | s[1] % size | s[2] % size | s[3] % size | s[4] % size)
        blas->function(args, counts, steps, blas->data);
    else
        for (Py_ssize_t i = 0; i < counts[0]; i++)
            multiply_one(blas, args[0] + i * steps[0], args[1] + i * steps[1], args[2] + i * steps[2], &p, is_double);
}

static void multiply_float(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps, void *data)
{
    multiply_all(args, counts, steps, data, 0);
}

static void multiply_double(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps, void *data)
{
    multiply_all(args, counts, steps, data, 1);
}

#undef EXP_CLONES
#undef PAIRS_TUNED
#endif
#else

/* out[j] = or += the products of one or four elements of a with rows of b. Sums begin at 0, so none is -0. */
#define FOR_ROW(SET, TERM) CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) target[j] SET (TERM)
#define ONE a[0] * b[j]
#define FOUR (a[0] * b[j] + a[step] * b[j + row]) + (a[2 * step] * b[j + 2 * row] + a[3 * step] * b[j + 3 * row])

/* A product whose right matrix has contiguous rows: each is combined with several rows of the left one. */
static EXP_CLONES void NAME(by_rows)(const product *p, const REAL *left, const REAL *right, REAL *out)
{
    const Py_ssize_t n = p->n, step = p->a_column, row = p->b_row;
    for (Py_ssize_t first = 0; first < p->m; first += ROWS_BY_ROW, left += ROWS_BY_ROW * p->a_row) {
        const Py_ssize_t end = p->m - first < ROWS_BY_ROW ? p->m : first + ROWS_BY_ROW;
        for (Py_ssize_t k = 0, count; k < p->depth; k += count) {
            const REAL *a = left + k * step, *b = right + k * row;
            count = p->depth - k < 4 ? 1 : 4;
            for (Py_ssize_t i = first; i < end; i++, a += p->a_row) {
                REAL *target = out + i * p->out_row;
                if (count == 1) {
                    if (k) FOR_ROW(+=, ONE);
                    else FOR_ROW(=, 0 + ONE);
                } else if (k) FOR_ROW(+=, FOUR);
                else FOR_ROW(=, 0 + (FOUR));
            }
        }
    }
}

CYGRAD_END_LOOPS
#ifdef CYGRAD_VECTORS

typedef REAL NAME(lanes) __attribute__((vector_size(32)));
typedef REAL NAME(unaligned) __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));

#define WIDTH (Py_ssize_t)(32 / sizeof(REAL))
#define READ(p) ((NAME(lanes))*(const NAME(unaligned) *)(p))

/* A row of a product whose right matrix has contiguous columns, as is this row of the left one: four sums at once. */
static CYGRAD_CLONES void NAME(row_by_columns)(Py_ssize_t depth, Py_ssize_t n, const REAL *a, const REAL *b,
                                               Py_ssize_t column, REAL *out)
{
    for (Py_ssize_t j = 0; j < n; j += 4) {
        const Py_ssize_t most = n - 1 - j;      /* columns beyond the last are replaced by the last */
        const REAL *p = b + j * column, *q = p + (most < 1 ? most : 1) * column, *r = p + (most < 2 ? most : 2) * column;
        const REAL *s = p + (most < 3 ? most : 3) * column;
        NAME(lanes) u = {0}, v = {0}, w = {0}, z = {0};
        REAL totals[4];
        Py_ssize_t k = 0;
        for (; k + WIDTH <= depth; k += WIDTH) {
            const NAME(lanes) x = READ(a + k);
            u += x * READ(p + k);
            v += x * READ(q + k);
            w += x * READ(r + k);
            z += x * READ(s + k);
        }
        ADD_LANES(totals, u, v, w, z);
        for (; k < depth; k++) {
            totals[0] += a[k] * p[k];
            totals[1] += a[k] * q[k];
            totals[2] += a[k] * r[k];
            totals[3] += a[k] * s[k];
        }
        for (int i = 0; i < 4 && i <= most; i++) out[j + i] = totals[i];
    }
}

/* The same for all rows, two at a time. */
static PAIRS_TUNED void NAME(pairs_by_columns)(const product *t, const REAL *left, const REAL *right, REAL *out)
{
    for (Py_ssize_t first = 0, j = 0; first < t->m; j + 4 < t->n ? (j += 4) : (j = 0, first += ROWS_AT_ONCE)) {
        const Py_ssize_t most = t->n - 1 - j, column = t->b_column, depth = t->depth;
        const Py_ssize_t end = t->m - first < ROWS_AT_ONCE ? t->m : first + ROWS_AT_ONCE;
        const REAL *p = right + j * column, *q = p + (most < 1 ? most : 1) * column;
        const REAL *r = p + (most < 2 ? most : 2) * column, *s = p + (most < 3 ? most : 3) * column;
        for (Py_ssize_t i = first; i < end; i += 2) {
            const REAL *a = left + i * t->a_row, *b = i + 1 < end ? a + t->a_row : a;
            NAME(lanes) sums[8] = {{0}};
            REAL totals[8];
            Py_ssize_t k = 0;
            for (; k + WIDTH <= depth; k += WIDTH) {
                const NAME(lanes) x = READ(a + k), y = READ(b + k);
                const NAME(lanes) u = READ(p + k), v = READ(q + k), w = READ(r + k), z = READ(s + k);
                sums[0] += x * u, sums[1] += x * v, sums[2] += x * w, sums[3] += x * z;
                sums[4] += y * u, sums[5] += y * v, sums[6] += y * w, sums[7] += y * z;
            }
            ADD_LANES(totals, sums[0], sums[1], sums[2], sums[3]);
            ADD_LANES((totals + 4), sums[4], sums[5], sums[6], sums[7]);
            for (; k < depth; k++) {
                const REAL x = a[k], y = b[k], u = p[k], v = q[k], w = r[k], z = s[k];
                totals[0] += x * u, totals[1] += x * v, totals[2] += x * w, totals[3] += x * z;
                totals[4] += y * u, totals[5] += y * v, totals[6] += y * w, totals[7] += y * z;
            }
            for (int l = 0; l < 4 && l <= most; l++) {
                out[i * t->out_row + j + l] = totals[l];
                if (i + 1 < end) out[(i + 1) * t->out_row + j + l] = totals[4 + l];
            }
        }
    }
}

static void NAME(rows_by_columns)(const product *p, const REAL *a, const REAL *b, REAL *out)
{
    if (p->m > 1 && HAS_PANELS)
        NAME(pairs_by_columns)(p, a, b, out);
    else
        for (Py_ssize_t i = 0; i < p->m; i++)
            NAME(row_by_columns)(p->depth, p->n, a + i * p->a_row, b, p->b_column, out + i * p->out_row);
}

#undef WIDTH
#undef READ
#endif

/* A product of few multiplications, or few rows or columns. Returns whether its strides permit these loops. */
static int NAME(small)(const product *p, const REAL *a, const REAL *b, REAL *out)
{
    if (p->b_column == 1 && p->n > 1) {
        NAME(by_rows)(p, a, b, out);
        return 1;
    }
#ifdef CYGRAD_VECTORS
    if (p->a_column == 1 && p->b_row == 1) {
        if (p->n == 1 && p->out_row == 1)       /* the transposed product */
            NAME(row_by_columns)(p->depth, p->m, b, a, p->a_row, out);
        else
            NAME(rows_by_columns)(p, a, b, out);
        return 1;
    }
#endif
    return 0;
}

#undef FOR_ROW
#undef ONE
#undef FOUR
CYGRAD_BEGIN_PLAIN_LOOPS
#endif
