/* Sums over contiguous memory, for float and double.

   Compilers may not reorder additions, so each loop here has independent accumulators side by side, which can be
   vectorized. Sums of chunks are added pairwise in double, like carries of a binary counter, so the error hardly grows
   with the length. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_REDUCE_H
#define CYGRAD_REDUCE_H

#include <float.h>
#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"
#include "simd/accumulators.h"

#define BLOCK 512               /* elements of a chunk; each accumulator adds BLOCK / LANES of them */

/* A sum to which chunks are added one after the other. */
typedef struct {
    double partial[64];         /* partial[k] is the sum of 2^k chunks if bit k of `chunks` is set */
    size_t chunks;
    double rest;                /* of the elements after the last whole chunk */
} running_sum;

static void begin_sum(running_sum *s) { s->chunks = 0, s->rest = 0; }

static double total_of(const running_sum *s)
{
    double sum = s->rest;
    for (int k = 0; s->chunks >> k; k++)
        if (s->chunks >> k & 1) sum += s->partial[k];
    return sum;
}

CYGRAD_BEGIN_LOOPS

#define REAL float
#define LEAST FLT_MIN
#define MOST FLT_MAX
#define NAME(name) name##_f32
#include "base/reduce.h"
#undef REAL
#undef LEAST
#undef MOST
#undef NAME

#define REAL double
#define LEAST DBL_MIN
#define MOST DBL_MAX
#define NAME(name) name##_f64
#include "base/reduce.h"
#undef REAL
#undef LEAST
#undef MOST
#undef NAME

CYGRAD_END_LOOPS

/* Called with untyped pointers and a flag for the type. */
#define add_middle(is_double, ...) ((is_double) ? add_middle_f64(__VA_ARGS__) : add_middle_f32(__VA_ARGS__))
#define add_columns(is_double, ...) ((is_double) ? add_columns_f64(__VA_ARGS__) : add_columns_f32(__VA_ARGS__))
/* Adds elements: a multiple of BLOCK but for the last time. */
#define add_to_sum(is_double, s, x, n) \
    ((is_double) ? add_chunks_f64(s, x, n, block_f64, 0) : add_chunks_f32(s, x, n, block_f32, 0))
#define sum_of_row(is_double, ...) ((is_double) ? sum_of_row_f64(__VA_ARGS__) : sum_of_row_f32(__VA_ARGS__))
#define add_squares(is_double, ...) ((is_double) ? add_squares_f64(__VA_ARGS__) : add_squares_f32(__VA_ARGS__))
#define are_accurate(is_double, ...) ((is_double) ? are_accurate_f64(__VA_ARGS__) : are_accurate_f32(__VA_ARGS__))

#endif
#else

/* Returns the sum of TERM(i) for i < n. */
#define RETURN_SUM_OF_FEW(TERM)                                                                                 \
    REAL a = 0, b = 0, c = 0, d = 0;                                                                            \
    Py_ssize_t i = 0;                                                                                           \
    for (; i + 4 <= n; i += 4) a += TERM(i), b += TERM(i + 1), c += TERM(i + 2), d += TERM(i + 3);              \
    for (; i < n; i++) a += TERM(i);                                                                            \
    return (a + b) + (c + d);

/* The sum of the terms of n <= BLOCK elements x[i]. */
#define DEFINE_BLOCK(CLONES, FUNCTION, TERM)                                                                    \
    static CLONES REAL NAME(FUNCTION)(const REAL *x, Py_ssize_t n, REAL center)                                 \
    {                                                                                                           \
        REAL lanes[LANES];                                                                                      \
        Py_ssize_t i = LANES;                                                                                   \
        if (n < LANES) { RETURN_SUM_OF_FEW(TERM) }                                                              \
        for (int j = 0; j < LANES; j++) lanes[j] = 0 + TERM(j);                                                 \
        for (; i + LANES <= n; i += LANES)                                                                      \
            for (int j = 0; j < LANES; j++) lanes[j] += TERM(i + j);                                            \
        FOLD(16);                                                                                               \
        FOLD(8);                                                                                                \
        FOLD(4);                                                                                                \
        for (; i + 4 <= n; i += 4)                                                                              \
            for (int j = 0; j < 4; j++) lanes[j] += TERM(i + j);                                                \
        for (; i < n; i++) lanes[0] += TERM(i);                                                                 \
        return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);                                                   \
    }

#define ITSELF(i) x[i]
#define SQUARE(i) (x[i] - center) * (x[i] - center)
DEFINE_BLOCK(CYGRAD_CLONES, block, ITSELF)
DEFINE_BLOCK(CYGRAD_WIDE_CLONES, block_of_squares, SQUARE)

/* For rows so short that calling a clone takes longer than the sum. */
CYGRAD_INLINE REAL NAME(few)(const REAL *x, Py_ssize_t n) { RETURN_SUM_OF_FEW(ITSELF) }

#undef ITSELF
#undef SQUARE
#undef DEFINE_BLOCK
#undef RETURN_SUM_OF_FEW

typedef REAL (*NAME(block_t))(const REAL *x, Py_ssize_t n, REAL center);

static void NAME(add_chunks)(running_sum *s, const REAL *x, Py_ssize_t n, NAME(block_t) block, REAL center)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK) {
        double carry = block(x, BLOCK, center);
        int k = 0;
        for (; s->chunks >> k & 1; k++) carry += s->partial[k];
        s->partial[k] = carry;
        s->chunks++;
    }
    if (n) s->rest = block(x, n, center);
}

/* The sum of the terms of any number of elements. */
static double NAME(row)(const REAL *x, Py_ssize_t n, NAME(block_t) block, REAL center)
{
    running_sum s;
    if (n <= BLOCK) return block(x, n, center);
    begin_sum(&s);
    NAME(add_chunks)(&s, x, n, block, center);
    return total_of(&s);
}

static double NAME(sum_of_row)(const REAL *x, Py_ssize_t n) { return NAME(row)(x, n, NAME(block), 0); }

/* out[j] += the sum over i < n of x[i * step + j] */
static CYGRAD_CLONES void NAME(add_rows)(const REAL *__restrict x, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t step,
                                         REAL *__restrict out)
{
    for (; n >= 8; n -= 8, x += 8 * step)
        for (Py_ssize_t j = 0; j < inner; j++) {
            const REAL *y = x + j;
            out[j] += ((y[0] + y[step]) + (y[2 * step] + y[3 * step]))
                    + ((y[4 * step] + y[5 * step]) + (y[6 * step] + y[7 * step]));
        }
    for (; n > 0; n--, x += step)
        for (Py_ssize_t j = 0; j < inner; j++) out[j] += x[j];
}

/* out[j] = the same sum. Rows too short for vectors are joined to longer ones. */
static void NAME(columns)(const REAL *x, Py_ssize_t n, Py_ssize_t inner, REAL *out)
{
    REAL wide[4 * LANES];
    Py_ssize_t together = 4 * LANES / inner, groups = 0;
    memset(out, 0, inner * sizeof(REAL));
    if (together >= 4 && n >= 2 * together) {
        groups = n / together;
        memset(wide, 0, together * inner * sizeof(REAL));
        NAME(add_rows)(x, groups, together * inner, together * inner, wide);
        NAME(add_rows)(wide, together, inner, inner, out);
        groups *= together;
    }
    NAME(add_rows)(x + groups * inner, n - groups, inner, inner, out);
}

/* Sums x (outer, n, inner) over the middle dimension into out (outer, inner). */
static void NAME(add_middle)(const REAL *x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, REAL *out)
{
    if (inner == 1)
        for (; outer > 0; outer--, x += n) *out++ = n < LANES ? NAME(few)(x, n) : (REAL)NAME(sum_of_row)(x, n);
    else
        for (; outer > 0; outer--, x += n * inner, out += inner) NAME(columns)(x, n, inner, out);
}

/* Sums the first `inner` columns of x (n, step). */
static void NAME(add_columns)(const REAL *x, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t step, REAL *out)
{
    memset(out, 0, inner * sizeof(REAL));
    NAME(add_rows)(x, n, inner, step, out);
}

/* For each row of x (outer, n), the sum of squared distances from the row's center (NULL: from 0). */
static void NAME(add_squares)(const REAL *x, Py_ssize_t outer, Py_ssize_t n, const REAL *center, REAL *out)
{
    for (Py_ssize_t i = 0; i < outer; i++)
        out[i] = (REAL)NAME(row)(x + i * n, n, NAME(block_of_squares), center ? center[i] : 0);
}

/* Whether none of these sums of `count` squares each overflowed, is NaN, or is so small that squares that underflowed may
   have cost it digits. */
static CYGRAD_CLONES int NAME(are_accurate)(const REAL *sums, Py_ssize_t n, Py_ssize_t count)
{
    const REAL least = count * LEAST;
    int all = 1;
    for (Py_ssize_t i = 0; i < n; i++) all &= (sums[i] >= least) & (sums[i] <= MOST);
    return all;
}

#endif
