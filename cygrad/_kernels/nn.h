/* Loops of the fused kernels in nn.pyx, for float and double.

   Blocks have the shape (n, inner) and are worked on along n: `column` has `inner` numbers for each of them. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_NN_H
#define CYGRAD_NN_H

#include <stdint.h>
#include <string.h>
#include "clones.h"
#include "lanes.h"

CYGRAD_BEGIN_LOOPS

#define REAL float
#define BITS uint32_t
#define NAME(name) name##_f32
#include "nn.h"
#undef REAL
#undef BITS
#undef NAME

#define REAL double
#define BITS uint64_t
#define NAME(name) name##_f64
#include "nn.h"
#undef REAL
#undef BITS
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
#define negate(is_double, ...) BY_TYPE(is_double, negate, __VA_ARGS__)
#define logistic_of_exp(is_double, ...) BY_TYPE(is_double, logistic_of_exp, __VA_ARGS__)
#define threshold_gradient(is_double, ...) BY_TYPE(is_double, threshold_gradient, __VA_ARGS__)
#define tanh_gradient(is_double, ...) BY_TYPE(is_double, tanh_gradient, __VA_ARGS__)
#define sigmoid_gradient(is_double, ...) BY_TYPE(is_double, sigmoid_gradient, __VA_ARGS__)

#endif
#else

#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* The largest of n >= LANES numbers. */
static CYGRAD_CLONES REAL NAME(largest)(const REAL *x, Py_ssize_t n)
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

/* The sum of x[i] * y[i] for n >= LANES. */
static CYGRAD_CLONES REAL NAME(inner_product)(const REAL *x, const REAL *y, Py_ssize_t n)
{
    REAL lanes[LANES];
    Py_ssize_t i = LANES;
    for (int j = 0; j < LANES; j++) lanes[j] = 0 + x[j] * y[j];
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] += x[i + j] * y[i + j];
    FOLD(16);
    FOLD(8);
    FOLD(4);
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++) lanes[j] += x[i + j] * y[i + j];
    for (; i < n; i++) lanes[0] += x[i] * y[i];
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
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

static CYGRAD_CLONES void NAME(negate)(const REAL *x, REAL *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = -x[i];
}

/* out = 1 / (1 + out) */
static CYGRAD_CLONES void NAME(logistic_of_exp)(REAL *out, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) out[i] = 1 / (1 + out[i]);
}

/* Where y is nan the gradient passes, as in PyTorch. By bits, because compilers make a slow masked load of `?:`. */
static CYGRAD_CLONES void NAME(threshold_gradient)(const BITS *g, const REAL *y, BITS *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = g[i] & -(BITS)!(y[i] <= 0);
}

static CYGRAD_CLONES void NAME(tanh_gradient)(const REAL *g, const REAL *y, REAL *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = g[i] * (1 - y[i] * y[i]);
}

static CYGRAD_CLONES void NAME(sigmoid_gradient)(const REAL *g, const REAL *y, REAL *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = g[i] * (1 - y[i]) * y[i];
}

#undef LARGER
#endif
