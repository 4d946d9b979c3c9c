/* Normalization loops, for float and double; called from fused_normalization.py.

   There are three memory layouts. Rows of n elements: each row has its own statistics, and all share the same weights.
   Groups of runs: a group, which has its own statistics, consists of several runs of adjacent elements, and the weight
   is constant along a run. Columns: each has its own statistics and weight. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_NORMS_H
#define CYGRAD_NORMS_H

#include <float.h>
#include <math.h>
#include <string.h>
#include "platform/target_clones.h"
#include "simd/accumulators.h"

#define SEGMENT 4096            /* elements that may be summed in their own type */

#define NEAR 2048               /* numbers that stay in the L1 cache until the next pass, with results */
#define ROWS_TOGETHER 16        /* at most */

/* The weight of a run has the index group % kinds * kind_step + run * weight_step. */
typedef struct {
    Py_ssize_t groups, first, group_step, runs, run_step, length, kinds, kind_step, weight_step;
} run_layout;

#define COLUMN_CHUNK 256        /* columns that go through each pass together */
#define ROWS_OF_SUM 256         /* rows that may be summed in their own type */

CYGRAD_BEGIN_LOOPS

/* The number of rows of n numbers that go through each pass before the next: enough that none waits for its own sums,
   and few enough that they stay in the L1 cache. */
static Py_ssize_t rows_together(Py_ssize_t rows, Py_ssize_t n)
{
    const Py_ssize_t most = n * ROWS_TOGETHER < NEAR ? ROWS_TOGETHER : n < NEAR ? NEAR / n : 1;
    return rows < most ? rows : most;
}

#define REAL float
#define SQRT sqrtf
#define LEAST (FLT_MIN / FLT_EPSILON)
#define MOST FLT_MAX
#define NEAREST 1e-15f          /* factors whose third power is used as it is */
#define FARTHEST 1e10f
#define ROW_CLONES CYGRAD_WIDE_CLONES   /* a row stays in the L1 cache for all its passes */
#define COLUMN_CLONES CYGRAD_CLONES
#define NAME(name) name##_f32
#include "nn/normalization.h"
#undef REAL
#undef SQRT
#undef LEAST
#undef MOST
#undef NEAREST
#undef FARTHEST
#undef ROW_CLONES
#undef COLUMN_CLONES
#undef NAME

#define REAL double
#define SQRT sqrt
#define LEAST (DBL_MIN / DBL_EPSILON)
#define MOST DBL_MAX
#define NEAREST 1e-130
#define FARTHEST 1e90
#define ROW_CLONES CYGRAD_CLONES
#define COLUMN_CLONES
#define NAME(name) name##_f64
#include "nn/normalization.h"
#undef REAL
#undef SQRT
#undef LEAST
#undef MOST
#undef NEAREST
#undef FARTHEST
#undef ROW_CLONES
#undef COLUMN_CLONES
#undef NAME

CYGRAD_END_LOOPS

/* Called with untyped pointers and a flag for the type. */
#define BY_TYPE(is_double, name, ...) ((is_double) ? name##_f64(__VA_ARGS__) : name##_f32(__VA_ARGS__))
#define WHOLE_OR_BY_TYPE(is_whole, name, ...) \
    ((is_whole) ? name##_i64(__VA_ARGS__) : BY_TYPE(c->is_double, name, __VA_ARGS__))

/* data: x, weight, bias, out, mean, factor; n: elements of a row, centered; real: eps */
static void normalize_rows_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], at = first * n;
    BY_TYPE(c->is_double, normalize_rows, AT(0, at), AT(1, 0), AT(2, 0), AT(3, at), AT(4, first), AT(5, first), count,
            n, c->real, c->n[1] != 0);
}

/* data: g, x, weight, mean, factor, gradients of x, of weight, of bias, the last two with a row per chunk; n: elements
   of a row, centered */
static void rows_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], at = first * n, own = first / c->piece * n;
    BY_TYPE(c->is_double, rows_gradient, AT(0, at), AT(1, at), AT(2, 0), AT(3, first), AT(4, first), AT(5, at),
            AT(6, own), AT(7, own), count, n, c->n[1] != 0);
}

/* The layout of some groups; n: runs, elements of a run, strides between groups and between runs, number of kinds of
   groups, strides of weights between kinds and between runs. */
static run_layout layout_of(const native_call *c, Py_ssize_t first, Py_ssize_t groups)
{
    run_layout layout = {groups, first, c->n[2], c->n[0], c->n[3], c->n[1], c->n[4], c->n[5], c->n[6]};
    return layout;
}

/* data: x, weight, bias, out, mean, mean square, factor; n: a layout, whether statistics are given; real: eps */
static void normalize_runs_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const run_layout layout = layout_of(c, first, count);
    const Py_ssize_t at = first * layout.group_step;
    BY_TYPE(c->is_double, normalize_runs, AT(0, at), AT(1, 0), AT(2, 0), AT(3, at), AT(4, first), AT(5, first),
            AT(6, first), &layout, c->real, c->n[7] != 0);
}

/* data: g, x, weight, mean, factor, gradient of x, sums of g and of g * (x - mean) * factor for each weight of a group;
   n: a layout, whether statistics are given */
static void runs_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const run_layout layout = layout_of(c, first, count);
    const Py_ssize_t at = first * layout.group_step, sum = first * (layout.weight_step ? layout.runs : 1);
    BY_TYPE(c->is_double, runs_gradient, AT(0, at), AT(1, at), AT(2, 0), AT(3, first), AT(4, first), AT(5, at),
            AT(6, sum), AT(7, sum), &layout, c->n[7] != 0);
}

/* For chunks of columns that go through each pass together. */
#define FOR_COLUMNS                                                                                             \
    for (Py_ssize_t n; count > 0; first += n, count -= n)                                                       \
        if (n = count < COLUMN_CHUNK ? count : COLUMN_CHUNK, 1)

/* data: as for normalize_runs; n: rows, columns, whether statistics are given; real: eps */
static void normalize_columns_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    FOR_COLUMNS BY_TYPE(c->is_double, normalize_columns, AT(0, first), AT(1, first), AT(2, first), AT(3, first),
                        AT(4, first), AT(5, first), AT(6, first), n, c->n[0], c->n[1], c->real, c->n[2] != 0);
}

/* data: as for runs_gradient; n: rows, columns, whether statistics are given */
static void columns_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    FOR_COLUMNS BY_TYPE(c->is_double, columns_gradient, AT(0, first), AT(1, first), AT(2, first), AT(3, first),
                        AT(4, first), AT(5, first), AT(6, first), AT(7, first), n, c->n[0], c->n[1], c->n[2] != 0);
}

/* data: running mean, mean, running variance, mean square; n: number of elements of each mean; real: momentum */
static void follow_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const double samples = (double)c->n[0], unbiased = samples > 1 ? samples / (samples - 1) : NAN;
    BY_TYPE(c->is_double, follow, AT(0, first), AT(1, first), count, 1 - c->real, c->real);
    BY_TYPE(c->is_double, follow, AT(2, first), AT(3, first), count, 1 - c->real, c->real * unbiased);
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
DEFINE_LOOP(ROW_CLONES, combine_by_row, out[i] = g[i] * w[i] * a + ((x[i] - c) * b + d),
            const REAL *g, const REAL *x, const REAL *w, REAL *out, REAL c, REAL a, REAL b, REAL d)
DEFINE_LOOP(CYGRAD_CLONES, combine, out[i] = g[i] * a + ((x[i] - c) * b + d),
            const REAL *g, const REAL *x, REAL *out, REAL c, REAL a, REAL b, REAL d)
#undef DEFINE_LOOP

#define ADD_TERMS(i, j) {                                                                                       \
        const REAL away = (x[i] - c) * f, weighted = g[i] * w[i];                                               \
        level[j] += weighted;                                                                                   \
        along[j] += weighted * away;                                                                            \
        grad_w[i] += g[i] * away;                                                                               \
        grad_b[i] += g[i];                                                                                      \
    }
#define FOLD_TERMS(width) for (int j = 0; j < width; j++) level[j] += level[j + width], along[j] += along[j + width]

/* Everything the gradients of a row need, in one pass: adds to the gradients of w and b, and returns the sums of g * w
   and of g * w * (x - c) * f. */
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

CYGRAD_END_LOOPS
CYGRAD_BEGIN_PLAIN_LOOPS

/* A function of n columns for all rows, with pointers to the values of each column. */
#define DEFINE_COLUMNS(FUNCTION, TERM, STEP, ...)                                                               \
    static COLUMN_CLONES void NAME(FUNCTION)(Py_ssize_t rows, Py_ssize_t step, Py_ssize_t n, __VA_ARGS__)       \
    {                                                                                                           \
        for (; rows > 0; rows--, STEP) CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) TERM;              \
    }

DEFINE_COLUMNS(add_columns, sums[i] += x[i], x += step, const REAL *x, REAL *sums)
DEFINE_COLUMNS(add_squares, sums[i] += (x[i] - c[i]) * (x[i] - c[i]), x += step, const REAL *x, const REAL *c, REAL *sums)
DEFINE_COLUMNS(add_products, sums[i] += g[i] * (x[i] - c[i]), (g += step, x += step),
               const REAL *g, const REAL *x, const REAL *c, REAL *sums)
DEFINE_COLUMNS(scale_columns, out[i] = (x[i] - c[i]) * a[i] + b[i], (x += step, out += step),
               const REAL *x, REAL *out, const REAL *c, const REAL *a, const REAL *b)
DEFINE_COLUMNS(combine_columns, out[i] = g[i] * a[i] + ((x[i] - c[i]) * b[i] + d[i]),
               (g += step, x += step, out += step),
               const REAL *g, const REAL *x, REAL *out, const REAL *c, const REAL *a, const REAL *b, const REAL *d)
#undef DEFINE_COLUMNS

/* out += g */
static void NAME(add)(Py_ssize_t n, const REAL *g, REAL *out) { NAME(add_columns)(1, 0, n, g, out); }

/* The functions that follow only call these loops. */
CYGRAD_END_LOOPS

/* Squares of float32 beyond 1e19 are infinite, and without eps those below 1e-19 vanish. If the mean square shows that,
   the sum is repeated with numbers divided by the largest. */

static REAL NAME(largest_distance)(const REAL *x, Py_ssize_t n, Py_ssize_t step, REAL c, REAL largest)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        const REAL away = x[i * step] - c, size = away < 0 ? -away : away;
        if (!(size <= largest)) largest = size;
        if (size != size) break;
    }
    return largest;
}

static double NAME(relative_squares)(const REAL *x, Py_ssize_t n, Py_ssize_t step, REAL c, REAL largest)
{
    double sum = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        const double share = (double)(x[i * step] - c) / largest;
        sum += share * share;
    }
    return sum;
}

/* 1 / sqrt(mean square + eps), from the mean of the squares divided by that of the largest number. */
static REAL NAME(relative_factor)(double square, REAL largest, double eps)
{
    return (REAL)(1 / sqrt(square + eps / largest / largest) / largest);
}

#define IS_ACCURATE(square) ((square) >= LEAST && (square) <= MOST)

/* The same for n numbers with a step. */
static REAL NAME(factor_of)(const REAL *x, Py_ssize_t n, Py_ssize_t step, REAL c, REAL square, double eps)
{
    REAL largest;
    square += (REAL)eps;
    if (IS_ACCURATE(square)) return 1 / SQRT(square);
    largest = NAME(largest_distance)(x, n, step, c, 0);
    if (!(largest > 0 && largest <= MOST)) return 1 / SQRT(square);
    return NAME(relative_factor)(NAME(relative_squares)(x, n, step, c, largest) / n, largest, eps);
}

/* The gradient of x where powers of the factor f leave the range: along is the mean of g * w * (x - c) * f, level that
   of g * w. */
static void NAME(combine_far)(Py_ssize_t n, Py_ssize_t step, const REAL *g, const REAL *x, const REAL *w,
                              Py_ssize_t w_step, REAL *out, REAL c, REAL f, REAL along, REAL level)
{
    for (Py_ssize_t i = 0; i < n; i++)
        out[i * step] = f * (g[i * step] * (w ? w[i * w_step] : 1) - (x[i * step] - c) * f * along - level);
}

#define IS_FAR(f) ((f) < NEAREST || (f) > FARTHEST)

/* out = (x - mean) * factor * w + b; the mean is 0 if not `centered`. */
static void NAME(normalize_rows)(const REAL *x, const REAL *w, const REAL *b, REAL *out, REAL *mean, REAL *factor,
                                 Py_ssize_t rows, Py_ssize_t n, double eps, int centered)
{
    for (Py_ssize_t count; rows > 0; rows -= count, x += count * n, out += count * n, mean += count, factor += count) {
        count = rows_together(rows, n);
        for (Py_ssize_t i = 0; i < count; i++) mean[i] = centered ? NAME(total)(n, x + i * n) / n : 0;
        for (Py_ssize_t i = 0; i < count; i++)
            factor[i] = NAME(squares)(n, x + i * n, mean[i]) / n;
        for (Py_ssize_t i = 0; i < count; i++) factor[i] = NAME(factor_of)(x + i * n, n, 1, mean[i], factor[i], eps);
        for (Py_ssize_t i = 0; i < count; i++)
            NAME(scale_by_row)(n, x + i * n, out + i * n, mean[i], factor[i], w, b);
    }
}

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
            const REAL f = factor[i], level = centered ? sums[i][0] / n : 0, along = sums[i][1] / n;
            if (IS_FAR(f)) NAME(combine_far)(n, 1, g + i * n, x + i * n, w, 1, grad_x, mean[i], f, along, level);
            else NAME(combine_by_row)(n, g + i * n, x + i * n, w, grad_x, mean[i], f, -f * f * along, -f * level);
        }
    }
}

/* For all runs of a group. */
#define FOR_RUNS                                                                                                \
    for (Py_ssize_t run = 0, at = group * layout->group_step; run < layout->runs; run++, at += layout->run_step)

/* Adds TERM, a sum of `length` elements from `begin` on, for all segments of a run. */
#define ADD_SEGMENTS(sum, TERM)                                                                                 \
    for (Py_ssize_t end = at + layout->length, begin = at, length; begin < end; begin += length) {              \
        length = end - begin < SEGMENT ? end - begin : SEGMENT;                                                 \
        sum += TERM;                                                                                            \
    }

#define WEIGHTS(w) ((w) ? (w) + (layout->first + group) % layout->kinds * layout->kind_step : NULL)
#define WEIGHT(own, otherwise) ((own) ? (own)[run * layout->weight_step] : (otherwise))

/* out = (x - mean) * factor * w + b, with the mean of each group and factor = 1 / sqrt(mean square about it + eps); w
   and b may be NULL. */
static void NAME(normalize_runs)(const REAL *x, const REAL *w, const REAL *b, REAL *out, REAL *mean, REAL *square,
                                 REAL *factor, const run_layout *layout, double eps, int given)
{
    const double count = (double)layout->runs * layout->length;
    for (Py_ssize_t group = 0; group < layout->groups; group++) {
        const REAL *own_w = WEIGHTS(w), *own_b = WEIGHTS(b);
        if (!given) {
            double sum = 0, sum_of_squares = 0;
            FOR_RUNS ADD_SEGMENTS(sum, NAME(total)(length, x + begin))
            mean[group] = (REAL)(sum / count);
            FOR_RUNS ADD_SEGMENTS(sum_of_squares, NAME(squares)(length, x + begin, mean[group]))
            square[group] = (REAL)(sum_of_squares / count);
        }
        factor[group] = 1 / SQRT(square[group] + (REAL)eps);
        if (!given && !IS_ACCURATE(square[group] + (REAL)eps)) {
            REAL largest = 0;
            double shares = 0;
            FOR_RUNS largest = NAME(largest_distance)(x + at, layout->length, 1, mean[group], largest);
            FOR_RUNS shares += NAME(relative_squares)(x + at, layout->length, 1, mean[group], largest);
            if (largest > 0 && largest <= MOST)
                factor[group] = NAME(relative_factor)(shares / count, largest, eps);
        }
        FOR_RUNS NAME(scale)(layout->length, x + at, out + at, mean[group], factor[group] * WEIGHT(own_w, 1),
                             WEIGHT(own_b, 0));
    }
}

/* Writes the gradient of x, and for each weight of a group the sums of g and of g * (x - mean) * factor, unless these
   are NULL. */
static void NAME(runs_gradient)(const REAL *g, const REAL *x, const REAL *w, const REAL *mean, const REAL *factor,
                                REAL *grad_x, REAL *sums, REAL *products, const run_layout *layout, int given)
{
    const double count = (double)layout->runs * layout->length;
    for (Py_ssize_t group = 0; group < layout->groups; group++) {
        const REAL *own_w = WEIGHTS(w), c = mean[group], f = factor[group];
        double level = 0, along = 0, all = 0, all_products = 0;
        if (sums) FOR_RUNS {
            double sum = 0, product = 0;
            ADD_SEGMENTS(sum, NAME(total)(length, g + begin))
            ADD_SEGMENTS(product, NAME(products)(length, g + begin, x + begin, c))
            level += sum * WEIGHT(own_w, 1);
            along += product * WEIGHT(own_w, 1);
            all += sum;
            all_products += product;
            if (layout->weight_step || run + 1 == layout->runs) {
                *sums++ = (REAL)all;
                *products++ = (REAL)(all_products * f);
                all = all_products = 0;
            }
        }
        level /= count;
        along = along * f / count;
        if (grad_x && IS_FAR(f) && !given) {
            FOR_RUNS NAME(combine_far)(layout->length, 1, g + at, x + at, own_w ? &own_w[run * layout->weight_step] : NULL,
                                       0, grad_x + at, c, f, (REAL)along, (REAL)level);
            continue;
        }
        level *= -f;
        along *= -f * f;
        if (grad_x) FOR_RUNS {
            const REAL slope = f * WEIGHT(own_w, 1);
            if (given) NAME(scale)(layout->length, g + at, grad_x + at, 0, slope, 0);
            else NAME(combine)(layout->length, g + at, x + at, grad_x + at, c, slope, (REAL)along, (REAL)level);
        }
    }
}

#undef FOR_RUNS
#undef ADD_SEGMENTS
#undef WEIGHTS
#undef WEIGHT

/* Sums n columns into `sums`: CALL sums few `rows` of them, the first of which is `row`, into `part`. */
#define SUM_COLUMNS(sums, CALL)                                                                                 \
    for (Py_ssize_t i = 0; i < n; i++) sums[i] = 0;                                                             \
    for (Py_ssize_t row = 0, rows; row < all; row += rows) {                                                    \
        REAL part[COLUMN_CHUNK] = {0};                                                                          \
        rows = all - row < ROWS_OF_SUM ? all - row : ROWS_OF_SUM;                                               \
        CALL;                                                                                                   \
        for (Py_ssize_t i = 0; i < n; i++) sums[i] += part[i];                                                  \
    }

/* normalize_runs for n columns of `all` rows. */
static void NAME(normalize_columns)(const REAL *x, const REAL *w, const REAL *b, REAL *out, REAL *mean, REAL *square,
                                    REAL *factor, Py_ssize_t n, Py_ssize_t all, Py_ssize_t step, double eps, int given)
{
    double sums[COLUMN_CHUNK];
    REAL slope[COLUMN_CHUNK], base[COLUMN_CHUNK];
    if (!given) {
        SUM_COLUMNS(sums, NAME(add_columns)(rows, step, n, x + row * step, part))
        for (Py_ssize_t i = 0; i < n; i++) mean[i] = (REAL)(sums[i] / all);
        SUM_COLUMNS(sums, NAME(add_squares)(rows, step, n, x + row * step, mean, part))
        for (Py_ssize_t i = 0; i < n; i++) square[i] = (REAL)(sums[i] / all);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        factor[i] = given ? 1 / SQRT(square[i] + (REAL)eps)
                          : NAME(factor_of)(x + i, all, step, mean[i], square[i], eps);
        slope[i] = w ? factor[i] * w[i] : factor[i];
        base[i] = b ? b[i] : 0;
    }
    NAME(scale_columns)(all, step, n, x, out, mean, slope, base);
}

/* runs_gradient for n columns of `all` rows. */
static void NAME(columns_gradient)(const REAL *g, const REAL *x, const REAL *w, const REAL *mean, const REAL *factor,
                                   REAL *grad_x, REAL *sums, REAL *products, Py_ssize_t n, Py_ssize_t all,
                                   Py_ssize_t step, int given)
{
    double level[COLUMN_CHUNK], along[COLUMN_CHUNK];
    REAL slope[COLUMN_CHUNK], b[COLUMN_CHUNK] = {0}, d[COLUMN_CHUNK] = {0};
    for (Py_ssize_t i = 0; i < n; i++) slope[i] = w ? factor[i] * w[i] : factor[i];
    if (sums) {
        SUM_COLUMNS(level, NAME(add_columns)(rows, step, n, g + row * step, part))
        SUM_COLUMNS(along, NAME(add_products)(rows, step, n, g + row * step, x + row * step, mean, part))
        for (Py_ssize_t i = 0; i < n; i++) {
            sums[i] = (REAL)level[i];
            products[i] = (REAL)(along[i] * factor[i]);
            if (given) continue;
            d[i] = (REAL)(-slope[i] * level[i] / all);
            b[i] = (REAL)(-slope[i] * factor[i] * (factor[i] * along[i]) / all);
        }
    }
    if (grad_x && given) NAME(scale_columns)(all, step, n, g, grad_x, b, slope, d);
    else if (grad_x) {
        NAME(combine_columns)(all, step, n, g, x, grad_x, mean, slope, b, d);
        for (Py_ssize_t i = 0; i < n; i++)
            if (IS_FAR(factor[i])) {
                const REAL weight = w ? w[i] : 1;
                NAME(combine_far)(all, step, g + i, x + i, w ? &weight : NULL, 0, grad_x + i, mean[i], factor[i],
                                  (REAL)(along[i] * factor[i] / all * weight), (REAL)(level[i] / all * weight));
            }
    }
}

#undef SUM_COLUMNS
#undef IS_ACCURATE
#undef IS_FAR

static void NAME(follow)(REAL *running, const REAL *new, Py_ssize_t n, double kept, double taken)
{
    for (Py_ssize_t i = 0; i < n; i++) running[i] = (REAL)(running[i] * kept + new[i] * taken);
}

CYGRAD_BEGIN_LOOPS
#endif
