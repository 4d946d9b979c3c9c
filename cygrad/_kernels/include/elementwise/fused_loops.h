/* Fused elementwise functions of up to three operands, and gradients, for which NumPy would need several passes. Called
   from fused_loops.py, which names them.

   Each is a loop over a short chunk of elements. Operands of one element are expanded to a chunk. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_FUSED_H
#define CYGRAD_FUSED_H

#include <math.h>
#include <string.h>
#include "nn/activations.h"
#include "platform/target_clones.h"
#include "simd/exp.h"

enum { RUN = STAGE_RUN };
enum { ONE, EACH, SPREAD };     /* elements of an operand: one, one per result, or one for several results */

CYGRAD_BEGIN_CHOOSING_LOOPS

/* exp(x) - 1 for x up to 80. */
CYGRAD_INLINE float exponential_less_1(float x)
{
    int32_t k;
    const float e = reduced(x < -30 ? -30 : x, &k);
    return e * power_of_2(k) + (power_of_2(k) - 1);
}

/* log(1 + t) for t from 0 to 1, by the series of 2 artanh(t / (t + 2)); omitted terms are below 1.5e-8 of it. */
CYGRAD_INLINE float log_of_1_and(float t)
{
    const float s = t / (t + 2), q = s * s;
    float p = 1.0f / 13;
    p = p * q + 1.0f / 11;
    p = p * q + 1.0f / 9;
    p = p * q + 1.0f / 7;
    p = p * q + 1.0f / 5;
    p = p * q + 1.0f / 3;
    return 2 * s + 2 * s * q * p;
}

#define EXPM1_f32 exponential_less_1
#define LOG1PEXP_f32(x) log_of_1_and(exponential_below_0(x))

CYGRAD_INLINE float kept_f32(float x, int holds) { return float_of(bits_of(x) & -holds); }
CYGRAD_INLINE double kept_f64(double x, int holds) { return double_of(bits_of_double(x) & -(int64_t)holds); }

/* x 2^y for an integer y, rounded once: a double can represent each such product. */
CYGRAD_INLINE float by_power_of_2_f32(float x, float y)
{
    const float rounder = 12582912.0f, bounded = y > 300 ? 300 : y < -300 ? -300 : y;           /* 1.5 * 2^23 */
    const int32_t k = bits_of(bounded + rounder) - bits_of(rounder);
    return (float)(x * power_of_2_double((uint64_t)(int64_t)k));
}

/* By three representable powers; only the last product rounds, because what underflows earlier is 0 anyway. */
CYGRAD_INLINE double by_power_of_2_f64(double x, double y)
{
    const double rounder = 6755399441055744.0;                                                  /* 1.5 * 2^52 */
    const double last = y > 1000 ? 1000 : y < -1000 ? -1000 : y, rest = y - last;
    const double bounded = rest > 1200 ? 1200 : rest < -1200 ? -1200 : rest;
    const uint64_t zero = (uint64_t)bits_of_double(rounder), k = (uint64_t)bits_of_double(bounded + rounder) - zero;
    const uint64_t half = ((k + 2048) >> 1) - 1024, end = (uint64_t)bits_of_double(last + rounder) - zero;
    return x * power_of_2_double(half) * power_of_2_double(k - half) * power_of_2_double(end);
}

#define REAL float
#define FINITE 3.4028234663852886e38f
#define NEAREST rintf
#define WHOLE truncf
#define ABS fabsf
#define COPYSIGN copysignf
#define EXP_CLONES CYGRAD_CLONES
#define DEFINE_STAGED DEFINE_STAGED_f32
#define NAME(name) name##_f32
#include "elementwise/fused_loops.h"
#undef REAL
#undef FINITE
#undef NEAREST
#undef WHOLE
#undef ABS
#undef COPYSIGN
#undef EXP_CLONES
#undef DEFINE_STAGED
#undef NAME

#define REAL double
#define FINITE 1.7976931348623157e308
#define NEAREST rint
#define WHOLE trunc
#define ABS fabs
#define COPYSIGN copysign
#define EXP_CLONES              /* the stages have clones */
#define DEFINE_STAGED DEFINE_STAGED_f64
#define NAME(name) name##_f64
#include "elementwise/fused_loops.h"
#undef REAL
#undef FINITE
#undef NEAREST
#undef WHOLE
#undef ABS
#undef COPYSIGN
#undef EXP_CLONES
#undef DEFINE_STAGED
#undef NAME

CYGRAD_END_LOOPS

/* data: out, three operands or NULL, three doubles. n: the function; ONE, EACH or SPREAD for each operand; for spread
   ones, how many results in a row share an element; how many elements they have. Items are elements. */
static void fused_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    BY_TYPE(c->is_double, run_fused, c, first, count);
}

/* data: arrays (outer, 2, width), whose second halves are gates of the first, and results (outer, width); or arrays,
   gradients of the results, gradients of the arrays. n: width, whether to compute gradients. Items are chunks of a
   half. */
static void gated_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t width = c->n[0], runs = (width + RUN - 1) / RUN;
    const double none[3] = {0};
    for (Py_ssize_t i = first; i < first + count; i++) {
        const Py_ssize_t run = i % runs * RUN, n = width - run < RUN ? width - run : RUN;
        const Py_ssize_t at = i / runs * width + run, twice = 2 * at - run;
        void *x = AT(0, twice), *gate = AT(0, twice + width);
        if (!c->n[1]) {
            BY_TYPE(c->is_double, gated, x, gate, NULL, AT(1, at), n, none);
            continue;
        }
        BY_TYPE(c->is_double, gated, AT(1, at), gate, NULL, AT(2, twice), n, none);
        BY_TYPE(c->is_double, gate_gradient, x, gate, AT(1, at), AT(2, twice + width), n, none);
    }
}

#endif
#else

/* x, y and z are elements of the operands; a, b and c are the numbers p. */
#define HEAD(CLONES, FUNCTION)                                                                                  \
    static CLONES void NAME(FUNCTION)(const REAL *xs, const REAL *ys, const REAL *zs, REAL *out, Py_ssize_t n,  \
                                      const double *p)
#define NUMBERS                                                                                                 \
    const REAL a = (REAL)p[0]; const REAL b = (REAL)p[1]; const REAL c = (REAL)p[2];                            \
    (void)a; (void)b; (void)c; (void)ys; (void)zs;
#define DEFINE_LOOP(CLONES, FUNCTION, OPERANDS, ...)                                                            \
    HEAD(CLONES, FUNCTION)                                                                                      \
    {                                                                                                           \
        NUMBERS                                                                                                 \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            OPERANDS                                                                                            \
            out[i] = __VA_ARGS__;                                                                               \
        }                                                                                                       \
    }
#define OF1 const REAL x = xs[i]; (void)x;
#define OF2 OF1 const REAL y = ys[i]; (void)y;
#define OF3 OF2 const REAL z = zs[i]; (void)z;
#define DEFINE1(FUNCTION, ...) DEFINE_LOOP(CYGRAD_CLONES, FUNCTION, OF1, __VA_ARGS__)
#define DEFINE2(FUNCTION, ...) DEFINE_LOOP(CYGRAD_CLONES, FUNCTION, OF2, __VA_ARGS__)
#define DEFINE3(FUNCTION, ...) DEFINE_LOOP(CYGRAD_CLONES, FUNCTION, OF3, __VA_ARGS__)
#define DEFINE1_EXP(FUNCTION, ...) DEFINE_STAGED(HEAD(EXP_CLONES, FUNCTION), NUMBERS, OF1, __VA_ARGS__)
#define DEFINE2_EXP(FUNCTION, ...) DEFINE_STAGED(HEAD(EXP_CLONES, FUNCTION), NUMBERS, OF2, __VA_ARGS__)
#define DEFINE3_EXP(FUNCTION, ...) DEFINE_STAGED(HEAD(EXP_CLONES, FUNCTION), NUMBERS, OF3, __VA_ARGS__)
#define WITHIN(bound, BEYOND, x) (((x) BEYOND (bound)) | ((bound) != (bound)) ? (bound) : (x))  /* NaN stays NaN */
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x))    /* NaN stays NaN */
#define BETWEEN(x, low, high) (AT_LEAST(x, low) > (high) ? (high) : AT_LEAST(x, low))
#define KEPT(x, condition) NAME(kept)(x, condition)

/* -- functions of x */

DEFINE2(leaky_relu, x * (x > 0 ? 1 : y))
DEFINE1(threshold, x <= a ? b : x)
DEFINE1(hardtanh, BETWEEN(x, a, b))
DEFINE1(hardsigmoid, BETWEEN(x + 3, 0, 6) / 6)
DEFINE1(hardswish, x * (BETWEEN(x + 3, 0, 6) / 6))
DEFINE1(hardshrink, KEPT(x, !((x >= -a) & (x <= a))))
DEFINE1(softshrink, x * (ABS(x) > a) - COPYSIGN(ABS(x) > a ? a : 0, x))
DEFINE1(frac, x - WHOLE(x))
DEFINE1(rounded, NEAREST(x * a / b) / a * b)
DEFINE1_EXP(softplus, LOG1PEXP, -ABS(x * a), x * a > b ? x : ((x * a > 0 ? x * a : 0) + e) / a)
DEFINE1_EXP(logsigmoid, LOG1PEXP, -ABS(x), (x < 0 ? x : 0) - e)
DEFINE_LOOP(, erfc, OF1, (REAL)erfc(x))      /* for many float32 elements see polynomial_tables.py */

/* NaN becomes a, infinities become p[1] or p[2], or the largest or smallest number of the type where these are NaN. */
static CYGRAD_CLONES void NAME(finite)(const REAL *xs, const REAL *ys, const REAL *zs, REAL *out, Py_ssize_t n,
                                      const double *p)
{
    const REAL a = (REAL)p[0], b = p[1] == p[1] ? (REAL)p[1] : FINITE, negative = p[2] == p[2] ? (REAL)p[2] : -FINITE;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const REAL x = xs[i], bounded = x > FINITE ? b : x < -FINITE ? negative : x;
        out[i] = x == x ? bounded : a;
    }
}

/* b x for x > 0, else a (exp(c x) - 1). */
DEFINE1_EXP(elu, EXPM1, x > 0 ? 0 : x * c, x > 0 ? x * b : e * a)

/* -- gradients: x is the incoming gradient, y the input */

DEFINE3(leaky_relu_gradient, x * (y > 0 ? 1 : z))
DEFINE2(negative_products, KEPT(x * y, !(y > 0)))
DEFINE2(above, KEPT(x, !(y <= a)))
DEFINE2(inside, KEPT(x, !((y <= a) | (y >= b))))
DEFINE2(hardsigmoid_gradient, KEPT(x * (REAL)(1.0 / 6), (y > -3) & (y < 3)))
DEFINE2(hardswish_gradient, KEPT(x * (y < 3 ? y * (REAL)(1.0 / 3) + (REAL)0.5 : 1), !(y <= -3)))
DEFINE2(outside, KEPT(x, !((y >= -a) & (y <= a))))
DEFINE2(where_finite, KEPT(x, ABS(y) <= FINITE))
DEFINE2_EXP(softplus_gradient, LOGISTIC, y * a, x * (y * a > b ? 1 : e))
DEFINE2_EXP(logsigmoid_gradient, LOGISTIC, -y, x * e)

/* a, b and c as for the function. */
DEFINE2_EXP(elu_gradient, EXP, y > 0 ? 0 : y * c, x * (y <= 0 ? e * (a * c) : b))

/* -- of two operands */

DEFINE2(squared_error, (x - y) * (x - y))
DEFINE2(smooth_l1, ABS(x - y) < a ? (x - y) * (x - y) * b : ABS(x - y) - (REAL)0.5 * a)
DEFINE2(huber, ABS(x - y) < a ? (x - y) * (x - y) * (REAL)0.5 : a * (ABS(x - y) - (REAL)0.5 * a))
DEFINE2_EXP(binary_cross_entropy_with_logits, LOG1PEXP, -ABS(x), (1 - y) * x + ((x < 0 ? -x : 0) + e))
DEFINE2_EXP(soft_margin, LOG1PEXP, -ABS(x * y), (x * y < 0 ? -x * y : 0) + e)
DEFINE2_EXP(logaddexp, LOG1PEXP, x == y ? 0 : -ABS(x - y) * a, (x < y ? y : x) + e * b)
DEFINE2(whole_quotient, WHOLE(x / y))
DEFINE2(heaviside, x == 0 ? y : x > 0 ? (REAL)1 : 0)
DEFINE2(ldexp, NAME(by_power_of_2)(x, y))
DEFINE_LOOP(, incomplete_gamma, OF2, (REAL)incomplete_gamma(x, y, a != 0))
DEFINE2(lerp_by_number, (y - x) * a + (b > 0 ? y : x))

/* -- of three */

DEFINE3(lerp, (y - x) * (ABS(z) < (REAL)0.5 ? z : z - 1) + (ABS(z) < (REAL)0.5 ? x : y))
DEFINE3(addcmul, x + a * y * z)
DEFINE3(addcdiv, x + y / z * a)
DEFINE3(clamped, WITHIN(z, >=, WITHIN(y, <=, x)))

/* -- their gradients for x; z is the incoming gradient */

DEFINE3(squared_error_gradient, 2 * (x - y) * z)
DEFINE3(bounded_difference, BETWEEN((x - y) * b, -a, a) * z)
DEFINE3_EXP(binary_cross_entropy_with_logits_gradient, LOGISTIC, x, (e - y) * z)
DEFINE3_EXP(exponential_share, LOGISTIC, x == y ? 0 : (x - y) * a, e * z)
DEFINE3_EXP(soft_margin_gradient, LOGISTIC, -x * y, -y * e * z)

/* -- halves of one array */

DEFINE2_EXP(gated, LOGISTIC, y, x * e)
DEFINE3_EXP(gate_gradient, LOGISTIC, -ABS(y), x * z * e * (1 - e))      /* even in y */

/* In the order of fused_loops.py. */
static void (*const NAME(fused)[])(const REAL *, const REAL *, const REAL *, REAL *, Py_ssize_t, const double *) = {
    NAME(leaky_relu), NAME(threshold), NAME(hardtanh), NAME(hardsigmoid), NAME(hardswish), NAME(hardshrink),
    NAME(softshrink), NAME(softplus), NAME(logsigmoid), NAME(erfc), NAME(elu), NAME(leaky_relu_gradient),
    NAME(negative_products), NAME(above), NAME(inside), NAME(hardsigmoid_gradient), NAME(hardswish_gradient),
    NAME(outside), NAME(softplus_gradient), NAME(logsigmoid_gradient), NAME(elu_gradient), NAME(squared_error),
    NAME(smooth_l1), NAME(huber), NAME(binary_cross_entropy_with_logits), NAME(soft_margin), NAME(logaddexp),
    NAME(squared_error_gradient), NAME(bounded_difference), NAME(binary_cross_entropy_with_logits_gradient),
    NAME(exponential_share), NAME(soft_margin_gradient), NAME(frac), NAME(rounded), NAME(finite), NAME(where_finite),
    NAME(lerp_by_number), NAME(lerp), NAME(addcmul), NAME(addcdiv), NAME(clamped),
    NAME(whole_quotient), NAME(heaviside), NAME(ldexp), NAME(incomplete_gamma)};

/* Expands n elements, from `first` on, of a spread operand. */
static void NAME(spread)(const REAL *from, REAL *to, Py_ssize_t first, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t period)
{
    Py_ssize_t at = first / inner % period, left = inner - first % inner;
    while (n > 0) {
        Py_ssize_t m = inner == 1 ? period - at : left;
        if (m > n) m = n;
        if (inner == 1) memcpy(to, from + at, m * sizeof *to);
        else
            for (Py_ssize_t i = 0; i < m; i++) to[i] = from[at];
        at += inner == 1 ? m : 1;
        if (at == period) at = 0;
        left = inner;
        to += m;
        n -= m;
    }
}

static void NAME(run_fused)(const native_call *c, Py_ssize_t first, Py_ssize_t count)
{
    REAL room[3][RUN], *out = (REAL *)c->data[0] + first;
    const REAL *in[3];
    for (int k = 0; k < 3; k++) {
        in[k] = (const REAL *)c->data[k + 1];
        if (in[k] && c->n[k + 1] == EACH) in[k] += first;
        else if (in[k]) {
            for (int i = 0; i < RUN; i++) room[k][i] = *in[k];
            in[k] = room[k];
        }
    }
    for (; count > 0; count -= RUN, out += RUN, first += RUN) {
        const Py_ssize_t n = count < RUN ? count : RUN;
        for (int k = 0; k < 3; k++)
            if (c->n[k + 1] == SPREAD)
                NAME(spread)((const REAL *)c->data[k + 1], room[k], first, n, c->n[k + 4], c->n[k + 7]);
        NAME(fused)[c->n[0]](in[0], in[1], in[2], out, n, (const double *)c->data[4]);
        for (int k = 0; k < 3; k++)
            if (c->n[k + 1] == EACH) in[k] += RUN;
    }
}

#undef DEFINE_LOOP
#undef HEAD
#undef NUMBERS
#undef OF1
#undef OF2
#undef OF3
#undef DEFINE1
#undef DEFINE2
#undef DEFINE3
#undef WITHIN
#undef DEFINE1_EXP
#undef DEFINE2_EXP
#undef DEFINE3_EXP
#undef BETWEEN
#undef AT_LEAST
#undef KEPT
#endif
