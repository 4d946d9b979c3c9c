/* Loops of the fused kernels in softmax.pyx, for float and double.

   Blocks have the shape (n, inner) and are processed along n; `column` has `inner` numbers for each. */

#ifndef REAL                    /* the file includes itself once for each type and each width of float vectors */
#ifndef CYGRAD_NN_H
#define CYGRAD_NN_H

#include <math.h>
#include <string.h>
#include "platform/target_clones.h"
#include "simd/accumulators.h"
#include "simd/vector_math.h"

CYGRAD_BEGIN_LOOPS

#define REAL float
#define LOOPS "nn/softmax.h"
#include "simd/each_width.h"
#define exponentials_f32(...) CALL_WIDEST(exponentials, __VA_ARGS__)
#define exponentials_of_differences_f32(...) CALL_WIDEST(exponentials_of_differences, __VA_ARGS__)
#define log_softmax_gradient_f32(...) CALL_WIDEST(log_softmax_gradient, __VA_ARGS__)

#define EXP_CLONES CYGRAD_WIDE_CLONES
#define LOG logf
#define NAME(name) name##_f32
#include "nn/softmax.h"
#undef REAL
#undef EXP_CLONES
#undef LOG
#undef NAME

#define REAL double
#define EXP_CLONES CYGRAD_CLONES
#define LOG log
#define NAME(name) name##_f64
#include "nn/softmax.h"

DEFINE_STAGED_f64(static void exponentials_f64(const double *x, double *out, Py_ssize_t n), , , EXP_UP_TO_0, x[i], e)
#undef REAL
#undef EXP_CLONES
#undef LOG
#undef NAME

static void exponentials_of_differences_f64(const double *x, const double *y, double *out, Py_ssize_t blocks,
                                            Py_ssize_t n, Py_ssize_t inner, const double *column)
{
    subtract_f64(x, y, out, blocks, n, inner, column);
    exponentials_f64(out, out, blocks * n * inner);
}

static void log_softmax_gradient_f64(const double *x, const double *y, double *out, Py_ssize_t blocks, Py_ssize_t n,
                                     Py_ssize_t inner, const double *column)
{
    double run[STAGE_RUN];
    for (; blocks > 0; blocks--, column += inner)
        for (Py_ssize_t rest = n * inner, at = 0; rest > 0; rest -= STAGE_RUN) {
            const Py_ssize_t m = rest < STAGE_RUN ? rest : STAGE_RUN;
            exponentials_f64(y, run, m);
            for (Py_ssize_t i = 0; i < m;) {
                const Py_ssize_t row = inner == 1 ? m : inner - at, end = i + (row < m - i ? row : m - i);
                if (inner == 1)
                    CYGRAD_INDEPENDENT for (; i < end; i++) out[i] = x[i] - run[i] * *column;
                else
                    CYGRAD_INDEPENDENT for (; i < end; i++, at++) out[i] = x[i] - run[i] * column[at];
                if (at == inner) at = 0;
            }
            x += m, y += m, out += m;
        }
}

CYGRAD_END_LOOPS

/* Called with untyped pointers and a flag for the type. */
#define BY_TYPE(is_double, name, ...) ((is_double) ? name##_f64(__VA_ARGS__) : name##_f32(__VA_ARGS__))
#define find_largest(is_double, ...) BY_TYPE(is_double, find_largest, __VA_ARGS__)
#define add_products(is_double, ...) BY_TYPE(is_double, add_products, __VA_ARGS__)
#define invert(is_double, ...) BY_TYPE(is_double, invert, __VA_ARGS__)
#define subtract(is_double, ...) BY_TYPE(is_double, subtract, __VA_ARGS__)
#define multiply(is_double, ...) BY_TYPE(is_double, multiply, __VA_ARGS__)
#define softmax_gradient(is_double, ...) BY_TYPE(is_double, softmax_gradient, __VA_ARGS__)
#define log_softmax_gradient(is_double, ...) BY_TYPE(is_double, log_softmax_gradient, __VA_ARGS__)
#define exponentials_of_differences(is_double, ...) BY_TYPE(is_double, exponentials_of_differences, __VA_ARGS__)
#define exponentials(is_double, ...) BY_TYPE(is_double, exponentials, __VA_ARGS__)
#define logarithms(is_double, ...) BY_TYPE(is_double, logarithms, __VA_ARGS__)

#endif
#else

/* A pass over the elements, where c is the number for the element's column. */
#define DEFINE_PASS(CLONES, FUNCTION, ...)                                                                      \
    static CLONES void NAME(FUNCTION)(const REAL *x, const REAL *y, REAL *out, Py_ssize_t blocks,               \
                                      Py_ssize_t n, Py_ssize_t inner, const REAL *column)                       \
    {                                                                                                           \
        for (; blocks > 0; blocks--, column += inner) {                                                         \
            if (inner == 1) {                                                                                   \
                const REAL c = *column;                                                                         \
                FOR_ALL(n, GIVE(out, __VA_ARGS__);)                                                             \
                x += n, y += n, out += n;                                                                       \
            }                                                                                                   \
            else                                                                                                \
                for (Py_ssize_t rest = n; rest > 0; rest--, x += inner, y += inner, out += inner)               \
                    FOR_ALL(inner, const ELEMENTS c = TAKE(column); GIVE(out, __VA_ARGS__);)                    \
        }                                                                                                       \
    }

#ifdef WIDTH                    /* exponentials of differences from the maximum, and of log-probabilities */
DEFINE_STAGED_f32(static VECTORIZED void NAME(exponentials)(const REAL *x, REAL *out, Py_ssize_t n), , , EXP_UP_TO_0, TAKE(x), e)
DEFINE_PASS(VECTORIZED, exponentials_of_differences, OF(exponential_up_to_0)(TAKE(x) - c))
DEFINE_PASS(VECTORIZED, log_softmax_gradient, TAKE(x) - OF(exponential_up_to_0)(TAKE(y)) * c)
#else

DEFINE_LARGEST(CYGRAD_WIDE_CLONES)

static CYGRAD_CLONES void NAME(raise_columns)(const REAL *x, Py_ssize_t n, Py_ssize_t inner, REAL *column)
{
    for (; n > 0; n--, x += inner)
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < inner; j++) column[j] = LARGER(x[j], column[j]);
}

/* A NaN may be missed; it reappears when the maximum is subtracted from it. */
static void NAME(find_largest)(const REAL *x, Py_ssize_t blocks, Py_ssize_t n, Py_ssize_t inner, REAL *column)
{
    for (; blocks > 0; blocks--, x += n * inner, column += inner)
        if (inner > 1) {
            memcpy(column, x, inner * sizeof(REAL));
            NAME(raise_columns)(x + inner, n - 1, inner, column);
        }
        else *column = NAME(largest)(x, n);
}

#define PRODUCT(i) x[i] * y[i]
DEFINE_SUM(inner_product, PRODUCT, const REAL *x, const REAL *y)
#undef PRODUCT

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
        else if (n >= LANES) *column = NAME(inner_product)(n, x, y);
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

static void NAME(logarithms)(REAL *x, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) x[i] = LOG(x[i]);
}

DEFINE_PASS(CYGRAD_CLONES, subtract, x[i] - c)
DEFINE_PASS(EXP_CLONES, multiply, x[i] * c)
DEFINE_PASS(EXP_CLONES, softmax_gradient, (x[i] - c) * y[i])
#endif
#undef DEFINE_PASS
#endif
