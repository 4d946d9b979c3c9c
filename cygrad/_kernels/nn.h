/* Loops of the fused kernels in nn.pyx, for float and double.

   Blocks have the shape (n, inner) and are worked on along n: `column` has `inner` numbers for each of them. Long rows
   (inner = 1) stay in the nearest cache while all is done with them; for them there are functions of their own. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_NN_H
#define CYGRAD_NN_H

#include <math.h>
#include <string.h>
#include "clones.h"
#include "exp.h"
#include "lanes.h"

CYGRAD_BEGIN_LOOPS

#define REAL float
#define EXP exponential
#define LOG logf
#define NAME(name) name##_f32
#include "nn.h"
#undef REAL
#undef EXP
#undef LOG
#undef NAME

#define REAL double
#define EXP exponential_of_double
#define LOG log
#define NAME(name) name##_f64
#include "nn.h"
#undef REAL
#undef EXP
#undef LOG
#undef NAME

CYGRAD_END_LOOPS

/* Called with untyped pointers and a flag that tells the type. */
#define BY_TYPE(is_double, name, ...) ((is_double) ? name##_f64(__VA_ARGS__) : name##_f32(__VA_ARGS__))
#define find_largest(is_double, ...) BY_TYPE(is_double, find_largest, __VA_ARGS__)
#define add_products(is_double, ...) BY_TYPE(is_double, add_products, __VA_ARGS__)
#define invert(is_double, ...) BY_TYPE(is_double, invert, __VA_ARGS__)
#define subtract(is_double, ...) BY_TYPE(is_double, subtract, __VA_ARGS__)
#define multiply(is_double, ...) BY_TYPE(is_double, multiply, __VA_ARGS__)
#define softmax_gradient(is_double, ...) BY_TYPE(is_double, softmax_gradient, __VA_ARGS__)
#define log_softmax_gradient(is_double, ...) BY_TYPE(is_double, log_softmax_gradient, __VA_ARGS__)
#define exponentials(is_double, ...) BY_TYPE(is_double, exponentials, __VA_ARGS__)
#define logarithms(is_double, ...) BY_TYPE(is_double, logarithms, __VA_ARGS__)
#define softmax_rows(is_double, ...) BY_TYPE(is_double, softmax_rows, __VA_ARGS__)
#define log_softmax_rows(is_double, ...) BY_TYPE(is_double, log_softmax_rows, __VA_ARGS__)
#define softmax_gradient_rows(is_double, ...) BY_TYPE(is_double, softmax_gradient_rows, __VA_ARGS__)
#define log_softmax_gradient_rows(is_double, ...) BY_TYPE(is_double, log_softmax_gradient_rows, __VA_ARGS__)

#endif
#else

#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* The largest of n >= LANES numbers. */
CYGRAD_INLINE REAL NAME(largest_of_many)(const REAL *x, Py_ssize_t n)
{
    REAL lanes[LANES], best;
    Py_ssize_t i = LANES;
    for (int j = 0; j < LANES; j++) lanes[j] = LARGER(x[j], x[n - LANES + j]);
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] = LARGER(x[i + j], lanes[j]);
    for (int j = 0; j < 16; j++) lanes[j] = LARGER(lanes[j], lanes[j + 16]);
    for (int j = 0; j < 8; j++) lanes[j] = LARGER(lanes[j], lanes[j + 8]);
    best = lanes[0];
    for (int j = 1; j < 8; j++) best = LARGER(lanes[j], best);
    return best;
}

static CYGRAD_CLONES REAL NAME(largest)(const REAL *x, Py_ssize_t n) { return NAME(largest_of_many)(x, n); }

static CYGRAD_CLONES void NAME(raise_columns)(const REAL *x, Py_ssize_t n, Py_ssize_t inner, REAL *column)
{
    for (; n > 0; n--, x += inner)
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < inner; j++) column[j] = LARGER(x[j], column[j]);
}

/* The same of 0 < n < LANES numbers. */
static REAL NAME(largest_of_few)(const REAL *x, Py_ssize_t n)
{
    REAL a = *x, b = a, c = a, d = a;
    for (; n >= 4; n -= 4, x += 4) a = LARGER(x[0], a), b = LARGER(x[1], b), c = LARGER(x[2], c), d = LARGER(x[3], d);
    for (; n > 0; n--, x++) a = LARGER(*x, a);
    a = LARGER(a, b);
    c = LARGER(c, d);
    return LARGER(a, c);
}

/* A nan may be missed: it comes back when the largest is subtracted from it. */
static void NAME(find_largest)(const REAL *x, Py_ssize_t blocks, Py_ssize_t n, Py_ssize_t inner, REAL *column)
{
    for (; blocks > 0; blocks--, x += n * inner, column += inner)
        if (inner > 1) {
            memcpy(column, x, inner * sizeof(REAL));
            NAME(raise_columns)(x + inner, n - 1, inner, column);
        }
        else *column = n < LANES ? NAME(largest_of_few)(x, n) : NAME(largest)(x, n);
}

/* The sum of TERM(i) for i < n, where n >= LANES. */
#define RETURN_SUM(TERM)                                                                                        \
    REAL lanes[LANES];                                                                                          \
    Py_ssize_t i = LANES;                                                                                       \
    for (int j = 0; j < LANES; j++) lanes[j] = 0 + TERM(j);                                                     \
    for (; i + LANES <= n; i += LANES)                                                                          \
        for (int j = 0; j < LANES; j++) lanes[j] += TERM(i + j);                                                \
    FOLD(16);                                                                                                   \
    FOLD(8);                                                                                                    \
    FOLD(4);                                                                                                    \
    for (; i + 4 <= n; i += 4)                                                                                  \
        for (int j = 0; j < 4; j++) lanes[j] += TERM(i + j);                                                    \
    for (; i < n; i++) lanes[0] += TERM(i);                                                                     \
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);

#define ITSELF(i) x[i]
#define PRODUCT(i) x[i] * y[i]
CYGRAD_INLINE REAL NAME(total)(const REAL *x, Py_ssize_t n) { RETURN_SUM(ITSELF) }
CYGRAD_INLINE REAL NAME(total_of_products)(const REAL *x, const REAL *y, Py_ssize_t n) { RETURN_SUM(PRODUCT) }
#undef ITSELF
#undef PRODUCT
#undef RETURN_SUM

static CYGRAD_CLONES REAL NAME(inner_product)(const REAL *x, const REAL *y, Py_ssize_t n)
{
    return NAME(total_of_products)(x, y, n);
}

static CYGRAD_CLONES void NAME(add_to_columns)(const REAL *x, const REAL *y, Py_ssize_t n, Py_ssize_t inner,
                                               REAL *column)
{
    for (; n > 0; n--, x += inner, y += inner)
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < inner; j++) column[j] += x[j] * y[j];
}

static void NAME(add_products)(const REAL *x, const REAL *y, Py_ssize_t blocks, Py_ssize_t n, Py_ssize_t inner,
                               REAL *column)
{
    memset(column, 0, blocks * inner * sizeof(REAL));
    for (; blocks > 0; blocks--, x += n * inner, y += n * inner, column += inner) {
        if (inner > 1) NAME(add_to_columns)(x, y, n, inner, column);
        else if (n >= LANES) *column = NAME(inner_product)(x, y, n);
        else {
            REAL a = 0, b = 0, c = 0, d = 0;
            Py_ssize_t i = 0;
            for (; i + 4 <= n; i += 4)
                a += x[i] * y[i], b += x[i + 1] * y[i + 1], c += x[i + 2] * y[i + 2], d += x[i + 3] * y[i + 3];
            for (; i < n; i++) a += x[i] * y[i];
            *column = (a + b) + (c + d);
        }
    }
}

static void NAME(invert)(REAL *x, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) x[i] = 1 / x[i];
}

static CYGRAD_WIDE_CLONES void NAME(exponentials)(const REAL *x, REAL *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = EXP(x[i]);
}

static void NAME(logarithms)(REAL *x, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) x[i] = LOG(x[i]);
}

/* A pass in which c is the number of the element's column. */
#define DEFINE_PASS(FUNCTION, RESULT)                                                                           \
    static CYGRAD_CLONES void NAME(FUNCTION)(const REAL *x, const REAL *y, REAL *out, Py_ssize_t blocks,        \
                                             Py_ssize_t n, Py_ssize_t inner, const REAL *column)                \
    {                                                                                                           \
        for (; blocks > 0; blocks--, column += inner) {                                                         \
            if (inner == 1) {                                                                                   \
                const REAL c = *column;                                                                         \
                CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = RESULT;                          \
                x += n, y += n, out += n;                                                                       \
            }                                                                                                   \
            else                                                                                                \
                for (Py_ssize_t rest = n; rest > 0; rest--, x += inner, y += inner, out += inner)               \
                    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < inner; i++) {                                 \
                        const REAL c = column[i];                                                               \
                        out[i] = RESULT;                                                                        \
                    }                                                                                           \
        }                                                                                                       \
    }

DEFINE_PASS(subtract, x[i] - c)
DEFINE_PASS(multiply, x[i] * c)
DEFINE_PASS(softmax_gradient, (x[i] - c) * y[i])
DEFINE_PASS(log_softmax_gradient, x[i] - y[i] * c)
#undef DEFINE_PASS

/* Rows of n >= LANES elements, each from its beginning to its end; `y` is the result of the forward pass. Sums are over
   rows, which are too short for the error of one to matter. */
#define DEFINE_ROWS(FUNCTION, ...)                                                                              \
    static CYGRAD_WIDE_CLONES void NAME(FUNCTION)(const REAL *x, const REAL *y, REAL *out, Py_ssize_t rows,     \
                                                  Py_ssize_t n)                                                 \
    {                                                                                                           \
        for (; rows > 0; rows--, x += n, y += n, out += n) { __VA_ARGS__ }                                      \
    }
#define EACH CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++)

DEFINE_ROWS(softmax_rows,
    const REAL c = NAME(largest_of_many)(x, n);
    EACH out[i] = EXP(x[i] - c);
    const REAL factor = 1 / NAME(total)(out, n);
    EACH out[i] *= factor;)

DEFINE_ROWS(log_softmax_rows,
    const REAL c = NAME(largest_of_many)(x, n);
    EACH out[i] = EXP(x[i] - c);
    const REAL log_of_total = LOG(NAME(total)(out, n));
    EACH out[i] = (x[i] - c) - log_of_total;)

DEFINE_ROWS(softmax_gradient_rows,
    const REAL c = NAME(total_of_products)(x, y, n);
    EACH out[i] = (x[i] - c) * y[i];)

DEFINE_ROWS(log_softmax_gradient_rows,
    const REAL c = NAME(total)(x, n);
    EACH out[i] = x[i] - EXP(y[i]) * c;)

#undef EACH
#undef DEFINE_ROWS
#undef LARGER
#endif
