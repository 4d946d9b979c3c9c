/* Distances between the columns of matrices, and the gradient of distances between rows; called from distances.py. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_DISTANCES_H
#define CYGRAD_DISTANCES_H

#include <float.h>
#include <math.h>
#include <string.h>
#include "platform/target_clones.h"
#include "simd/accumulators.h"

enum { SQUARES, SIZES, LARGEST_SIZE };      /* how the differences of two columns are combined */
enum { MET_TOGETHER = 128, PULLED_TOGETHER = 32 };

CYGRAD_BEGIN_CHOOSING_LOOPS

#define REAL float
#define ABS fabsf
#define SQRT sqrtf
#define LEAST FLT_MIN
#define MOST FLT_MAX
#define CLONES CYGRAD_CLONES
#define NAME(name) name##_f32
#include "nn/distances.h"
#undef REAL
#undef ABS
#undef SQRT
#undef LEAST
#undef MOST
#undef CLONES
#undef NAME

#define REAL double
#define ABS fabs
#define SQRT sqrt
#define LEAST DBL_MIN
#define MOST DBL_MAX
#define CLONES
#define NAME(name) name##_f64
#include "nn/distances.h"
#undef REAL
#undef ABS
#undef SQRT
#undef LEAST
#undef MOST
#undef CLONES
#undef NAME

CYGRAD_END_LOOPS

/* The result of row i of the first matrices, and of its first partner in the second. */
static void finish_row(const native_call *c, Py_ssize_t i, Py_ssize_t k)
{
    const Py_ssize_t rows = c->n[1], m = c->n[2], row = i % rows, skipped = c->n[4] ? row + 1 : 0;
    const Py_ssize_t other = i / rows * m + skipped, start = c->n[4] ? row * (2 * m - 1 - row) / 2 : i * m;
    BY_TYPE(c->is_double, finished_distances, AT(3, i * k), AT(4, other * k), AT(5, i), AT(6, other), k, m - skipped,
            AT(2, start));
}

/* data: matrices (k, rows), matrices (k, m), results (rows, m), and unless they are NULL all columns of the matrices as
   rows, for the roots of squares; n: k, rows, m, how differences are combined, whether both are one matrix, each column
   of which meets only later ones, whether to add to the results, the number of all columns. Items are columns of the
   first. */
static void distances_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t k = c->n[0], rows = c->n[1], m = c->n[2];
    for (Py_ssize_t i = first; i < first + count; i++) {
        const Py_ssize_t row = i % rows, skipped = c->n[4] ? row + 1 : 0;
        void *x = AT(0, i / rows * k * rows + row), *y = AT(1, i / rows * k * m + skipped);
        void *out = AT(2, c->n[4] ? row * (2 * m - 1 - row) / 2 : i * m);
        BY_TYPE(c->is_double, distances, x, rows, y, m, k, m - skipped, (int)c->n[3], (int)c->n[5],
                out);
        if (c->data[3]) finish_row(c, i, c->n[6]);
    }
}

/* data: two that are not used, products (rows, m), matrices (rows, k) and (m, k), the squares of their rows; n: k, rows,
   m, not used, 0. Items are rows of the first. */
static void finished_distances_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    for (Py_ssize_t i = first; i < first + count; i++) finish_row(c, i, c->n[0]);
}

/* data: a matrix (n, k), gradients and distances of its pairs of rows, those of row 0 first, the gradient (n, k); n: n,
   k, how differences are combined. Items are chunks of columns. */
static void pairs_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    for (Py_ssize_t at = first * PULLED_TOGETHER; count > 0; count--, at += PULLED_TOGETHER) {
        const Py_ssize_t left = c->n[1] - at, columns = left < PULLED_TOGETHER ? left : PULLED_TOGETHER;
        BY_TYPE(c->is_double, pairs_gradient, AT(0, at), AT(1, 0), AT(2, 0), AT(3, at), c->n[0], c->n[1], columns,
                (int)c->n[2]);
    }
}

#endif
#else

/* Accumulates the gradients of all pairs of rows, in some of the columns. */
static void NAME(pairs_gradient)(const REAL *x, const REAL *g, const REAL *distance, REAL *out, Py_ssize_t n,
                                        Py_ssize_t step, Py_ssize_t columns, int wanted)
{
    const int is_square = wanted == SQUARES, pulls_all = wanted == SIZES;
    for (Py_ssize_t i = 0; i < n; i++) memset(out + i * step, 0, columns * sizeof *out);
    for (Py_ssize_t i = 0; i < n; i++, x += step, out += step) {
        REAL sums[PULLED_TOGETHER] = {0};
        const REAL *other = x + step;
        REAL *to = out + step;
        for (Py_ssize_t j = i + 1; j < n; j++, other += step, to += step) {
            const REAL far = *distance++, slope = *g++, weight = is_square && far != 0 ? slope / far : slope;
            if (is_square) CYGRAD_INDEPENDENT for (Py_ssize_t k = 0; k < columns; k++) {
                const REAL pull = weight * (x[k] - other[k]);
                sums[k] += pull;
                to[k] -= pull;
            }
            else CYGRAD_INDEPENDENT for (Py_ssize_t k = 0; k < columns; k++) {
                const REAL apart = x[k] - other[k], sign = apart == apart ? (REAL)((apart > 0) - (apart < 0)) : apart;
                const REAL pull = weight * ((pulls_all | (ABS(apart) == far)) ? sign : sign * 0);
                sums[k] += pull;
                to[k] -= pull;
            }
        }
        for (Py_ssize_t k = 0; k < columns; k++) out[k] += sums[k];
    }
}

static CLONES void NAME(distances)(const REAL *x, Py_ssize_t x_step, const REAL *y, Py_ssize_t y_step, Py_ssize_t k,
                                   Py_ssize_t m, int wanted, int adds, REAL *out)
{
    for (; m > 0; m -= MET_TOGETHER, y += MET_TOGETHER, out += MET_TOGETHER) {
        const Py_ssize_t n = m < MET_TOGETHER ? m : MET_TOGETHER;
        if (!adds) memset(out, 0, n * sizeof *out);
        for (Py_ssize_t i = 0; i < k; i++) {
            const REAL a = x[i * x_step], *const b = y + i * y_step;
            if (wanted == SQUARES)
                CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) out[j] += (a - b[j]) * (a - b[j]);
            else if (wanted == SIZES)
                CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) out[j] += ABS(a - b[j]);
            else CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) {
                const REAL size = ABS(a - b[j]), before = out[j];
                out[j] = ((before >= size) | (before != before)) ? before : size;
            }
        }
    }
}

#define SQUARE_APART(i) (x[i] - y[i]) * (x[i] - y[i])
DEFINE_SUM(squares_apart, SQUARE_APART, const REAL *x, const REAL *y)
#undef SQUARE_APART

/* The distance of two rows, divided by the largest difference where squares leave the range. */
static REAL NAME(distance_of)(const REAL *x, const REAL *y, Py_ssize_t k)
{
    const REAL square = NAME(squares_apart)(k, x, y);
    REAL largest = 0;
    double shares = 0;
    if (square >= k * LEAST && square <= MOST) return SQRT(square);
    for (Py_ssize_t i = 0; i < k; i++) {
        const REAL size = ABS(x[i] - y[i]);
        if (size != size) return size;
        if (size > largest) largest = size;
    }
    if (largest == 0 || largest > MOST) return largest;
    for (Py_ssize_t i = 0; i < k; i++) {
        const double share = (double)(x[i] - y[i]) / largest;
        shares += share * share;
    }
    return (REAL)(largest * sqrt(shares));
}

#define CANCELLED (REAL)0.25    /* squares smaller than this share of the squares of both rows are computed again */

/* Turns squares of distances between a row x and rows y or, given the squares of these rows about some center, products
   of them about it, into distances. Those with too few digits are computed again from the rows. */
static CLONES void NAME(finished_distances)(const REAL *x, const REAL *y, const REAL *own, const REAL *others,
                                            Py_ssize_t k, Py_ssize_t m, REAL *out)
{
    const REAL level = k * LEAST, square = own ? *own : 0;
    char are_lost[MET_TOGETHER];
    for (; m > 0; m -= MET_TOGETHER, y += MET_TOGETHER * k, out += MET_TOGETHER) {
        const Py_ssize_t n = m < MET_TOGETHER ? m : MET_TOGETHER;
        int is_any_lost = 0;
        if (others) CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) {
            const REAL both = square + others[j], apart = both - 2 * out[j];
            const int is_lost = !((apart >= both * CANCELLED) & (apart >= level) & (apart <= MOST));
            is_any_lost |= is_lost;
            are_lost[j] = (char)is_lost;
            out[j] = SQRT(apart);
        }
        else CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) {
            const REAL apart = out[j];
            const int is_lost = !((apart >= level) & (apart <= MOST));
            is_any_lost |= is_lost;
            are_lost[j] = (char)is_lost;
            out[j] = SQRT(apart);
        }
        if (is_any_lost) for (Py_ssize_t j = 0; j < n; j++)
            if (are_lost[j]) out[j] = NAME(distance_of)(x, y + j * k, k);
        if (others) others += MET_TOGETHER;
    }
}

#undef CANCELLED

#endif
