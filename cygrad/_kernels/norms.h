/* Loops of normalisations, for float and double; called from norms.py.

   Two kinds of memory. Rows of n elements, each with statistics of its own, and with weights that are the same for all
   rows. And groups of runs: the elements of a group, which has its own statistics, are so many runs of adjacent
   elements, and weights are the same all along a run. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_NORMS_H
#define CYGRAD_NORMS_H

#include <math.h>
#include <string.h>
#include "clones.h"
#include "lanes.h"

#define SEGMENT 4096            /* elements whose sum may be taken in their own type */

#define NEAR 2048               /* numbers that stay in the nearest cache until the next pass, with results */
#define ROWS_TOGETHER 16        /* at most */

typedef struct { Py_ssize_t groups, group_step, runs, run_step, length; } run_layout;

CYGRAD_BEGIN_LOOPS

/* How many rows of n numbers go through each pass before the next: so many that none waits until its own sums are added
   up, and so few that they stay in the nearest cache. */
static Py_ssize_t rows_together(Py_ssize_t rows, Py_ssize_t n)
{
    const Py_ssize_t most = n * ROWS_TOGETHER < NEAR ? ROWS_TOGETHER : n < NEAR ? NEAR / n : 1;
    return rows < most ? rows : most;
}

#define REAL float
#define SQRT sqrtf
#define ROW_CLONES CYGRAD_WIDE_CLONES   /* a row stays in the nearest cache for all its passes */
#define NAME(name) name##_f32
#include "norms.h"
#undef REAL
#undef SQRT
#undef ROW_CLONES
#undef NAME

#define REAL double
#define SQRT sqrt
#define ROW_CLONES CYGRAD_CLONES
#define NAME(name) name##_f64
#include "norms.h"
#undef REAL
#undef SQRT
#undef ROW_CLONES
#undef NAME

CYGRAD_END_LOOPS

/* Called with untyped pointers and a flag that tells the type. */
#define BY_TYPE(is_double, name, ...) ((is_double) ? name##_f64(__VA_ARGS__) : name##_f32(__VA_ARGS__))

/* data: x, weight, bias, out, mean, factor; n: elements of a row, centered; real: eps */
static void normalize_rows_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], at = first * n;
    BY_TYPE(c->is_double, normalize_rows, AT(0, at), AT(1, 0), AT(2, 0), AT(3, at), AT(4, first), AT(5, first), count,
            n, c->real, c->n[1] != 0);
}

/* data: g, x, weight, mean, factor, gradients of x, of weight, of bias, the last two with a row for each piece;
   n: elements of a row, centered */
static void rows_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], at = first * n, own = first / c->piece * n;
    BY_TYPE(c->is_double, rows_gradient, AT(0, at), AT(1, at), AT(2, 0), AT(3, first), AT(4, first), AT(5, at),
            AT(6, own), AT(7, own), count, n, c->n[1] != 0);
}

/* The layout of some groups; n: runs, elements of a run, steps between groups and between runs. */
static run_layout layout_of(const native_call *c, Py_ssize_t groups)
{
    run_layout layout = {groups, c->n[2], c->n[0], c->n[3], c->n[1]};
    return layout;
}

/* data: x, mean, mean square */
static void moments_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const run_layout layout = layout_of(c, count);
    BY_TYPE(c->is_double, moments_of_groups, AT(0, first * layout.group_step), AT(1, first), AT(2, first), &layout);
}

/* data: x, out, mean, scale, shift */
static void scale_runs_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const run_layout layout = layout_of(c, count);
    const Py_ssize_t at = first * layout.group_step, run = first * layout.runs;
    BY_TYPE(c->is_double, scale_runs, AT(0, at), AT(1, at), AT(2, first), AT(3, run), AT(4, run), &layout);
}

/* data: g, x, mean, sums, sums of products */
static void sums_of_runs_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const run_layout layout = layout_of(c, count);
    const Py_ssize_t at = first * layout.group_step, run = first * layout.runs;
    BY_TYPE(c->is_double, sums_of_runs, AT(0, at), AT(1, at), AT(2, first), AT(3, run), AT(4, run), &layout);
}

/* data: g, x, out, mean, scale, along, level */
static void combine_runs_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const run_layout layout = layout_of(c, count);
    const Py_ssize_t at = first * layout.group_step;
    BY_TYPE(c->is_double, combine_runs, AT(0, at), AT(1, at), AT(2, at), AT(3, first), AT(4, first * layout.runs),
            AT(5, first), AT(6, first), &layout);
}

#endif
#else

#define DEFINE_LOOP(CLONES, FUNCTION, RESULT, ...)                                                              \
    static CLONES void NAME(FUNCTION)(Py_ssize_t n, __VA_ARGS__)                                         \
    {                                                                                                           \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) RESULT;                                           \
    }

#define ITSELF(i) x[i]
#define SQUARE(i) (x[i] - c) * (x[i] - c)
#define PRODUCT(i) g[i] * (x[i] - c)
DEFINE_SUM(total, ITSELF, const REAL *x)
DEFINE_SUM(squares, SQUARE, const REAL *x, REAL c)
DEFINE_SUM(products, PRODUCT, const REAL *g, const REAL *x, REAL c)
#undef ITSELF
#undef SQUARE
#undef PRODUCT

DEFINE_LOOP(CYGRAD_CLONES, scale, out[i] = (x[i] - c) * a + b, const REAL *x, REAL *out, REAL c, REAL a, REAL b)
DEFINE_LOOP(ROW_CLONES, scale_by_row, out[i] = (x[i] - c) * f * w[i] + b[i],
            const REAL *x, REAL *out, REAL c, REAL f, const REAL *w, const REAL *b)
DEFINE_LOOP(CYGRAD_CLONES, add, out[i] += g[i], const REAL *g, REAL *out)
DEFINE_LOOP(ROW_CLONES, combine_by_row, out[i] = g[i] * w[i] * a + ((x[i] - c) * b + d),
            const REAL *g, const REAL *x, const REAL *w, REAL *out, REAL c, REAL a, REAL b, REAL d)
DEFINE_LOOP(CYGRAD_CLONES, combine, out[i] = g[i] * a + ((x[i] - c) * b + d),
            const REAL *g, const REAL *x, REAL *out, REAL c, REAL a, REAL b, REAL d)
#undef DEFINE_LOOP

/* out = (x - mean) * factor * w + b; the mean is 0 if not `centered`. */
static void NAME(normalize_rows)(const REAL *x, const REAL *w, const REAL *b, REAL *out, REAL *mean, REAL *factor,
                                 Py_ssize_t rows, Py_ssize_t n, double eps, int centered)
{
    for (Py_ssize_t count; rows > 0; rows -= count, x += count * n, out += count * n, mean += count, factor += count) {
        count = rows_together(rows, n);
        for (Py_ssize_t i = 0; i < count; i++) mean[i] = centered ? NAME(total)(n, x + i * n) / n : 0;
        for (Py_ssize_t i = 0; i < count; i++)
            factor[i] = 1 / SQRT(NAME(squares)(n, x + i * n, mean[i]) / n + (REAL)eps);
        for (Py_ssize_t i = 0; i < count; i++)
            NAME(scale_by_row)(n, x + i * n, out + i * n, mean[i], factor[i], w, b);
    }
}

#define ADD_TERMS(i, j) {                                                                                       \
        const REAL away = x[i] - c, weighted = g[i] * w[i];                                                     \
        level[j] += weighted;                                                                                   \
        along[j] += weighted * away;                                                                            \
        grad_w[i] += g[i] * (away * f);                                                                         \
        grad_b[i] += g[i];                                                                                      \
    }
#define FOLD_TERMS(width) for (int j = 0; j < width; j++) level[j] += level[j + width], along[j] += along[j + width]

/* All that the gradients of a row need to know of it, in one pass: adds to the gradients of w and b, and gives the sums
   of g * w and of g * w * (x - c). */
static ROW_CLONES void NAME(add_row)(const REAL *g, const REAL *x, const REAL *w, Py_ssize_t n, REAL c, REAL f,
                                     REAL *grad_w, REAL *grad_b, REAL sums[2])
{
    REAL level[16] = {0}, along[16] = {0};
    Py_ssize_t i = 0;
    for (; i + 16 <= n; i += 16) {
        CYGRAD_INDEPENDENT for (int j = 0; j < 16; j++) ADD_TERMS(i + j, j)
    }
    FOLD_TERMS(8);
    FOLD_TERMS(4);
    for (; i < n; i++) ADD_TERMS(i, 0)
    sums[0] = (level[0] + level[1]) + (level[2] + level[3]);
    sums[1] = (along[0] + along[1]) + (along[2] + along[3]);
}

#undef ADD_TERMS
#undef FOLD_TERMS

/* Writes the gradient of x, unless it is NULL, and adds to those of w and b. */
static void NAME(rows_gradient)(const REAL *g, const REAL *x, const REAL *w, const REAL *mean, const REAL *factor,
                                REAL *grad_x, REAL *grad_w, REAL *grad_b, Py_ssize_t rows, Py_ssize_t n, int centered)
{
    REAL sums[ROWS_TOGETHER][2];
    for (Py_ssize_t count; rows > 0; rows -= count, g += count * n, x += count * n, mean += count, factor += count) {
        count = rows_together(rows, 2 * n);
        for (Py_ssize_t i = 0; i < count; i++)
            NAME(add_row)(g + i * n, x + i * n, w, n, mean[i], factor[i], grad_w, grad_b, sums[i]);
        for (Py_ssize_t i = 0; grad_x && i < count; i++, grad_x += n) {
            const REAL f = factor[i], level = centered ? sums[i][0] / n : 0, along = f * f * sums[i][1] / n;
            NAME(combine_by_row)(n, g + i * n, x + i * n, w, grad_x, mean[i], f, -f * along, -f * level);
        }
    }
}

#define FOR_RUNS                                                                                                \
    for (Py_ssize_t group = 0; group < layout->groups; group++)                                                 \
        for (Py_ssize_t run = 0, at = group * layout->group_step; run < layout->runs; run++, at += layout->run_step)

/* Adds TERM, a sum of `length` elements from `at` on, for all segments of a run. */
#define ADD_SEGMENTS(sum, TERM)                                                                                 \
    for (Py_ssize_t end = at + layout->length, begin = at, length; begin < end; begin += length) {              \
        length = end - begin < SEGMENT ? end - begin : SEGMENT;                                                 \
        sum += TERM;                                                                                            \
    }

/* The mean of each group, and the mean square about it. */
static void NAME(moments_of_groups)(const REAL *x, REAL *mean, REAL *square, const run_layout *layout)
{
    const double count = (double)layout->runs * layout->length;
    for (Py_ssize_t group = 0; group < layout->groups; group++) {
        double sum = 0, sum_of_squares = 0;
        for (Py_ssize_t run = 0, at = group * layout->group_step; run < layout->runs; run++, at += layout->run_step)
            ADD_SEGMENTS(sum, NAME(total)(length, x + begin))
        mean[group] = (REAL)(sum / count);
        for (Py_ssize_t run = 0, at = group * layout->group_step; run < layout->runs; run++, at += layout->run_step)
            ADD_SEGMENTS(sum_of_squares, NAME(squares)(length, x + begin, mean[group]))
        square[group] = (REAL)(sum_of_squares / count);
    }
}

/* out = (x - mean) * scale + shift, the last two being those of the run */
static void NAME(scale_runs)(const REAL *x, REAL *out, const REAL *mean, const REAL *scale, const REAL *shift,
                             const run_layout *layout)
{
    FOR_RUNS NAME(scale)(layout->length, x + at, out + at, mean[group], *scale++, *shift++);
}

/* For each run the sum of g, and that of g * (x - mean). */
static void NAME(sums_of_runs)(const REAL *g, const REAL *x, const REAL *mean, REAL *sums, REAL *sums_of_products,
                               const run_layout *layout)
{
    FOR_RUNS {
        double sum = 0, sum_of_products = 0;
        ADD_SEGMENTS(sum, NAME(total)(length, g + begin))
        ADD_SEGMENTS(sum_of_products, NAME(products)(length, g + begin, x + begin, mean[group]))
        *sums++ = (REAL)sum;
        *sums_of_products++ = (REAL)sum_of_products;
    }
}

/* out = g * scale + (x - mean) * along + level; scale is that of the run, the others are those of the group */
static void NAME(combine_runs)(const REAL *g, const REAL *x, REAL *out, const REAL *mean, const REAL *scale,
                               const REAL *along, const REAL *level, const run_layout *layout)
{
    FOR_RUNS NAME(combine)(layout->length, g + at, x + at, out + at, mean[group], *scale++, along[group],
                           level[group]);
}

#undef FOR_RUNS
#undef ADD_SEGMENTS
#endif
