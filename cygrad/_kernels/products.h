/* Products of matrices of float and double, behind the loops of NumPy's matmul, which call BLAS.

   BLAS takes longer to begin than to multiply small matrices, so these have loops of their own, as have a column and a
   row, of which nothing is summed. Where BLAS leaves half of a processor's vectors unused, larger matrices of float have
   them, too, in tiles (tiles.h). All else goes to BLAS. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_PRODUCTS_H
#define CYGRAD_PRODUCTS_H

#include "clones.h"
#include "tiles.h"

enum { SMALL_PRODUCT = 1 << 13 };       /* multiplications */

/* A loop of NumPy's for all that ours leave, and its data. */
typedef struct { void (*function)(char **, const Py_ssize_t *, const Py_ssize_t *, void *); void *data; } blas_loop;

/* a (m, depth) @ b (depth, n). The steps, in elements, of a's rows and columns, b's, and the rows of the result. */
typedef struct { Py_ssize_t m, depth, n, a_row, a_column, b_row, b_column, out_row; } product;

static int has_own_tiles;       /* set when the module is imported */

#define EXP_CLONES CYGRAD_WIDE_CLONES

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
#include "products.h"
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
#include "products.h"
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

/* In tiles the rows and columns that these can have, the last ones by BLAS; tells whether there are tiles. */
static int by_tiles(const blas_loop *blas, char *a, char *b, char *out, const product *p)
{
    const Py_ssize_t rows = p->m / 8 * 8, columns = p->n / 16 * 16, size = sizeof(float);
    product rest = *p;
    if (rows == 0 || columns == 0) return 0;
    multiply_tile(rows, columns, p->depth, (float *)a, p->a_row, p->a_column, (float *)b, p->b_row, p->b_column,
                  (float *)out, p->out_row);
    if (rows < p->m) {
        rest.m = p->m - rows;
        by_blas(blas, a + rows * p->a_row * size, b, out + rows * p->out_row * size, &rest, size);
    }
    if (columns < p->n) {
        rest.m = rows;
        rest.n = p->n - columns;
        by_blas(blas, a, b + columns * p->b_column * size, out + columns * size, &rest, size);
    }
    return 1;
}

/* A loop as NumPy has it for matmul; `data` is a blas_loop. */
static void multiply_all(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps, void *data, int is_double)
{
    const blas_loop *blas = data;
    const Py_ssize_t size = is_double ? sizeof(double) : sizeof(float), *s = steps + 3;
    const product p = {counts[1], counts[2], counts[3], s[0] / size, s[1] / size, s[2] / size, s[3] / size, s[4] / size};
    const int fits = s[5] == size && !(s[0] % size | s[1] % size | s[2] % size | s[3] % size | s[4] % size);
    const int is_small = p.depth == 1 || p.m * p.depth * p.n <= SMALL_PRODUCT;
    if (!fits || !(is_small || (has_own_tiles && !is_double))) {
        blas->function(args, counts, steps, blas->data);
        return;
    }
    for (Py_ssize_t i = 0; i < counts[0]; i++) {
        char *a = args[0] + i * steps[0], *b = args[1] + i * steps[1], *out = args[2] + i * steps[2];
        if (a == b && p.a_row == p.b_column && p.a_column == p.b_row) {
            /* a matrix times itself transposed, of which BLAS computes one half */
        } else if (is_small) {
            if (is_double ? small_f64(&p, (double *)a, (double *)b, (double *)out)
                          : small_f32(&p, (float *)a, (float *)b, (float *)out)) continue;
        } else if (by_tiles(blas, a, b, out, &p)) continue;
        by_blas(blas, a, b, out, &p, size);
    }
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
#endif
#else

/* out[j] = or += the products of one element of a, or of four, and the rows of b. */
#define FOR_ROW(SET, TERM) CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) out[j] SET (TERM)
#define ONE a[0] * b[j]
#define FOUR (a[0] * b[j] + a[step] * b[j + row]) + (a[2 * step] * b[j + 2 * row] + a[3 * step] * b[j + 3 * row])

/* A product whose right matrix has rows without gaps. */
static EXP_CLONES void NAME(by_rows)(const product *p, const REAL *left, const REAL *right, REAL *out)
{
    const Py_ssize_t n = p->n, depth = p->depth, step = p->a_column, row = p->b_row;
    for (Py_ssize_t i = 0; i < p->m; i++, left += p->a_row, out += p->out_row) {
        const REAL *a = left, *b = right;
        Py_ssize_t k = depth < 4 ? 1 : 4;
        if (k == 1) FOR_ROW(=, ONE);
        else FOR_ROW(=, FOUR);
        for (a += k * step, b += k * row; k + 4 <= depth; k += 4, a += 4 * step, b += 4 * row) FOR_ROW(+=, FOUR);
        for (; k < depth; k++, a += step, b += row) FOR_ROW(+=, ONE);
    }
}

#ifdef CYGRAD_VECTORS

typedef REAL NAME(lanes) __attribute__((vector_size(32)));
typedef REAL NAME(unaligned) __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));

#define WIDTH (Py_ssize_t)(32 / sizeof(REAL))
#define READ(p) ((NAME(lanes))*(const NAME(unaligned) *)(p))

/* A row of a product whose right matrix has columns without gaps, as has this row of the left one: four sums at once. */
static CYGRAD_CLONES void NAME(row_by_columns)(Py_ssize_t depth, Py_ssize_t n, const REAL *a, const REAL *b,
                                               Py_ssize_t column, REAL *out)
{
    for (Py_ssize_t j = 0; j < n; j += 4) {
        const Py_ssize_t most = n - 1 - j;      /* what would lie beyond the last column is that one again */
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

#undef WIDTH
#undef READ
#endif

/* A product of few multiplications, if one of its dimensions allows it; tells whether it did. */
static int NAME(small)(const product *p, const REAL *a, const REAL *b, REAL *out)
{
    if (p->b_column == 1 && p->n > 1) {
        NAME(by_rows)(p, a, b, out);
        return 1;
    }
#ifdef CYGRAD_VECTORS
    if (p->a_column == 1 && p->b_row == 1) {
        if (p->n == 1 && p->out_row == 1)       /* the same, transposed */
            NAME(row_by_columns)(p->depth, p->m, b, a, p->a_row, out);
        else
            for (Py_ssize_t i = 0; i < p->m; i++)
                NAME(row_by_columns)(p->depth, p->n, a + i * p->a_row, b, p->b_column, out + i * p->out_row);
        return 1;
    }
#endif
    return 0;
}

#undef FOR_ROW
#undef ONE
#undef FOUR
#endif
