/* Elementwise functions of up to three operands, and gradients of such, that NumPy would need several passes for; called
   from fused.py, which names them.

   Each is a loop over a short run of elements. Operands of one element are written out as such a run. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_FUSED_H
#define CYGRAD_FUSED_H

#include <math.h>
#include <string.h>
#include "activations.h"
#include "clones.h"
#include "exp.h"

enum { RUN = 1024 };
enum { ONE, EACH, SPREAD };     /* elements of an operand: one, one for each of the result, some for more than one */

#define QUICK_CLONES CYGRAD_CLONES      /* of what many call; the others without an exponential wait for memory */

CYGRAD_BEGIN_CHOOSING_LOOPS

/* exp(x) - 1 for x up to 80. */
CYGRAD_INLINE float exponential_less_1(float x)
{
    int32_t k;
    const float e = reduced(x < -30 ? -30 : x, &k);
    return e * power_of_2(k) + (power_of_2(k) - 1);
}

CYGRAD_INLINE double exponential_less_1_double(double x)
{
    uint64_t k;
    const double e = reduced_double(x < -60 ? -60 : x, &k);
    return e * power_of_2_double(k) + (power_of_2_double(k) - 1);
}

/* log(1 + t) for t from 0 to 1, by the series of 2 artanh(t / (t + 2)), whose terms left out are below 1.5e-8 of it. */
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

CYGRAD_INLINE float kept_f32(float x, int holds) { return float_of(bits_of(x) & -holds); }
CYGRAD_INLINE double kept_f64(double x, int holds) { return double_of(bits_of_double(x) & -(int64_t)holds); }

#define REAL float
#define FINITE 3.4028234663852886e38f
#define NEAREST rintf
#define WHOLE truncf
#define EXP exponential
#define EXP_BELOW_0 exponential_below_0
#define EXPM1 exponential_less_1
#define LOG1P log_of_1_and
#define ABS fabsf
#define COPYSIGN copysignf
#define CLONES                  /* these wait for memory */
#define EXP_CLONES CYGRAD_CLONES
#define NAME(name) name##_f32
#include "fused.h"
#undef REAL
#undef FINITE
#undef NEAREST
#undef WHOLE
#undef EXP
#undef EXP_BELOW_0
#undef EXPM1
#undef LOG1P
#undef ABS
#undef COPYSIGN
#undef CLONES
#undef EXP_CLONES
#undef NAME

#define REAL double
#define FINITE 1.7976931348623157e308
#define NEAREST rint
#define WHOLE trunc
#define EXP exponential_of_double
#define EXP_BELOW_0 exponential_of_double
#define EXPM1 exponential_less_1_double
#define LOG1P log1p
#define ABS fabs
#define COPYSIGN copysign
#define EXP_CLONES
#define CLONES                  /* double is seldom trained in, and clones take room */
#define NAME(name) name##_f64
#include "fused.h"
#undef REAL
#undef FINITE
#undef NEAREST
#undef WHOLE
#undef EXP
#undef EXP_BELOW_0
#undef EXPM1
#undef LOG1P
#undef ABS
#undef COPYSIGN
#undef CLONES
#undef EXP_CLONES
#undef NAME

CYGRAD_END_LOOPS

/* data: out, three operands or NULL, three numbers of double precision; n: the function, for each operand which of these
   it is, and of what is spread for each how many results in turn take an element, and how many elements there are. An
   item is an element. */
static void fused_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    BY_TYPE(c->is_double, run_fused, c, first, count);
}

/* data: array (outer, 2, width), of which the second halves are gates of the first, and results (outer, width); or array,
   gradient of the results, gradient of the array. n: width, whether it is the gradient. An item is a run of a half. */
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

/* x, y and z are elements of the operands, a and b the first two of the numbers p. */
#define DEFINE_LOOP(CLONES, FUNCTION, OPERANDS, ...)                                                            \
    static CLONES void NAME(FUNCTION)(const REAL *xs, const REAL *ys, const REAL *zs, REAL *out, Py_ssize_t n,  \
                                      const double *p)                                                          \
    {                                                                                                           \
        const REAL a = (REAL)p[0], b = (REAL)p[1];                                                              \
        (void)a, (void)b, (void)ys, (void)zs;                                                                   \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const REAL OPERANDS;                                                                                \
            out[i] = __VA_ARGS__;                                                                               \
        }                                                                                                       \
    }
#define COMMA ,
#define DEFINE1(FUNCTION, ...) DEFINE_LOOP(CLONES, FUNCTION, x = xs[i], __VA_ARGS__)
#define DEFINE2(FUNCTION, ...) DEFINE_LOOP(CLONES, FUNCTION, x = xs[i] COMMA y = ys[i], __VA_ARGS__)
#define DEFINE3(FUNCTION, ...) DEFINE_LOOP(CLONES, FUNCTION, x = xs[i] COMMA y = ys[i] COMMA z = zs[i], __VA_ARGS__)
#define DEFINE1_EXP(FUNCTION, ...) DEFINE_LOOP(EXP_CLONES, FUNCTION, x = xs[i], __VA_ARGS__)
#define DEFINE2_EXP(FUNCTION, ...) DEFINE_LOOP(EXP_CLONES, FUNCTION, x = xs[i] COMMA y = ys[i], __VA_ARGS__)
#define DEFINE3_EXP(FUNCTION, ...) DEFINE_LOOP(EXP_CLONES, FUNCTION, x = xs[i] COMMA y = ys[i] COMMA z = zs[i], __VA_ARGS__)
#define DEFINE1_QUICK(FUNCTION, ...) DEFINE_LOOP(QUICK_CLONES, FUNCTION, x = xs[i], __VA_ARGS__)
#define DEFINE2_QUICK(FUNCTION, ...) DEFINE_LOOP(QUICK_CLONES, FUNCTION, x = xs[i] COMMA y = ys[i], __VA_ARGS__)
#define DEFINE3_QUICK(FUNCTION, ...) \
    DEFINE_LOOP(QUICK_CLONES, FUNCTION, x = xs[i] COMMA y = ys[i] COMMA z = zs[i], __VA_ARGS__)
#define WITHIN(bound, BEYOND, x) (((x) BEYOND (bound)) | ((bound) != (bound)) ? (bound) : (x))  /* nan stays nan */
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x))    /* nan stays nan */
#define BETWEEN(x, low, high) (AT_LEAST(x, low) > (high) ? (high) : AT_LEAST(x, low))
#define SIGMOID_OF(x) (1 / (1 + EXP(-(x))))
#define KEPT(x, condition) NAME(kept)(x, condition)

/* -- functions of x */

DEFINE2(leaky_relu, x * (x > 0 ? 1 : y))
DEFINE1(threshold, x <= a ? b : x)
DEFINE1(hardtanh, BETWEEN(x, a, b))
DEFINE1(hardsigmoid, BETWEEN(x + 3, 0, 6) / 6)
DEFINE1(hardswish, x * (BETWEEN(x + 3, 0, 6) / 6))
DEFINE1(hardshrink, KEPT(x, !((x >= -a) & (x <= a))))
DEFINE1(softshrink, x * (ABS(x) > a) - COPYSIGN(ABS(x) > a ? a : 0, x))
DEFINE1_QUICK(frac, x - WHOLE(x))
DEFINE1_QUICK(rounded, NEAREST(x * a / b) / a * b)
DEFINE1_EXP(softplus, x * a > b ? x : ((x * a > 0 ? x * a : 0) + LOG1P(EXP_BELOW_0(-ABS(x * a)))) / a)
DEFINE1_EXP(logsigmoid, (x < 0 ? x : 0) - LOG1P(EXP_BELOW_0(-ABS(x))))
DEFINE_LOOP(, erfc, x = xs[i], (REAL)erfc(x))      /* of many in float32 see tables.py */

/* Nan becomes a, what is infinite p[1] or p[2], or the largest and the least number of the type where these are nan. */
static QUICK_CLONES void NAME(finite)(const REAL *xs, const REAL *ys, const REAL *zs, REAL *out, Py_ssize_t n,
                                      const double *p)
{
    const REAL a = (REAL)p[0], b = p[1] == p[1] ? (REAL)p[1] : FINITE, negative = p[2] == p[2] ? (REAL)p[2] : -FINITE;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const REAL x = xs[i], bounded = x > FINITE ? b : x < -FINITE ? negative : x;
        out[i] = x == x ? bounded : a;
    }
}

/* For x > 0 it is b x, below a (exp(p[2] x) - 1). */
static EXP_CLONES void NAME(elu)(const REAL *xs, const REAL *ys, const REAL *zs, REAL *out, Py_ssize_t n, const double *p)
{
    const REAL a = (REAL)p[0], b = (REAL)p[1], within = (REAL)p[2];
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const REAL x = xs[i], below = EXPM1(x > 0 ? 0 : x * within) * a;
        out[i] = x > 0 ? x * b : below;
    }
}

/* -- gradients: x is the one that comes in, y the input */

DEFINE3(leaky_relu_gradient, x * (y > 0 ? 1 : z))
DEFINE2(negative_products, KEPT(x * y, !(y > 0)))
DEFINE2(above, KEPT(x, !(y <= a)))
DEFINE2(inside, KEPT(x, !((y <= a) | (y >= b))))
DEFINE2(hardsigmoid_gradient, KEPT(x * (REAL)(1.0 / 6), (y > -3) & (y < 3)))
DEFINE2(hardswish_gradient, KEPT(x * (y < 3 ? y * (REAL)(1.0 / 3) + (REAL)0.5 : 1), !(y <= -3)))
DEFINE2(outside, KEPT(x, !((y >= -a) & (y <= a))))
DEFINE2(where_finite, KEPT(x, ABS(y) <= FINITE))
DEFINE2_EXP(softplus_gradient, x * (y * a > b ? 1 : SIGMOID_OF(y * a)))
DEFINE2_EXP(logsigmoid_gradient, x * SIGMOID_OF(-y))

/* a, b and within as for the function. */
static EXP_CLONES void NAME(elu_gradient)(const REAL *xs, const REAL *ys, const REAL *zs, REAL *out, Py_ssize_t n,
                                      const double *p)
{
    const REAL b = (REAL)p[1], within = (REAL)p[2], slope = (REAL)(p[0] * p[2]);
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const REAL y = ys[i], below = EXP(y > 0 ? 0 : y * within) * slope;
        out[i] = xs[i] * (y <= 0 ? below : b);
    }
}

/* -- of two operands */

DEFINE2(squared_error, (x - y) * (x - y))
DEFINE2(smooth_l1, ABS(x - y) < a ? (x - y) * (x - y) * b : ABS(x - y) - (REAL)0.5 * a)
DEFINE2(huber, ABS(x - y) < a ? (x - y) * (x - y) * (REAL)0.5 : a * (ABS(x - y) - (REAL)0.5 * a))
DEFINE2_EXP(binary_cross_entropy_with_logits, (1 - y) * x + ((x < 0 ? -x : 0) + LOG1P(EXP_BELOW_0(-ABS(x)))))
DEFINE2_EXP(soft_margin, (x * y < 0 ? -x * y : 0) + LOG1P(EXP_BELOW_0(-ABS(x * y))))
DEFINE2_EXP(logaddexp, (x < y ? y : x) + LOG1P(EXP_BELOW_0(x == y ? 0 : -ABS(x - y) * a)) * b)
DEFINE2_QUICK(whole_quotient, WHOLE(x / y))
DEFINE2_QUICK(lerp_by_number, (y - x) * a + (b > 0 ? y : x))

/* -- of three */

DEFINE3_QUICK(lerp, (y - x) * (ABS(z) < (REAL)0.5 ? z : z - 1) + (ABS(z) < (REAL)0.5 ? x : y))
DEFINE3_QUICK(addcmul, x + a * y * z)
DEFINE3_QUICK(addcdiv, x + y / z * a)
DEFINE3_QUICK(clamped, WITHIN(z, >=, WITHIN(y, <=, x)))

/* -- their gradients for x; z is the one that comes in */

DEFINE3(squared_error_gradient, 2 * (x - y) * z)
DEFINE3(bounded_difference, BETWEEN((x - y) * b, -a, a) * z)
DEFINE3_EXP(binary_cross_entropy_with_logits_gradient, (SIGMOID_OF(x) - y) * z)
DEFINE3_EXP(exponential_share, SIGMOID_OF(x == y ? 0 : (x - y) * a) * z)
DEFINE3_EXP(soft_margin_gradient, -y * SIGMOID_OF(-x * y) * z)

/* -- halves of one array */

DEFINE2_EXP(gated, x * SIGMOID_OF(y))
DEFINE3_EXP(gate_gradient, x * z * SIGMOID_OF(y) * SIGMOID_OF(-y))

/* In the order of fused.py. */
static void (*const NAME(fused)[])(const REAL *, const REAL *, const REAL *, REAL *, Py_ssize_t, const double *) = {
    NAME(leaky_relu), NAME(threshold), NAME(hardtanh), NAME(hardsigmoid), NAME(hardswish), NAME(hardshrink),
    NAME(softshrink), NAME(softplus), NAME(logsigmoid), NAME(erfc), NAME(elu), NAME(leaky_relu_gradient),
    NAME(negative_products), NAME(above), NAME(inside), NAME(hardsigmoid_gradient), NAME(hardswish_gradient),
    NAME(outside), NAME(softplus_gradient), NAME(logsigmoid_gradient), NAME(elu_gradient), NAME(squared_error),
    NAME(smooth_l1), NAME(huber), NAME(binary_cross_entropy_with_logits), NAME(soft_margin), NAME(logaddexp),
    NAME(squared_error_gradient), NAME(bounded_difference), NAME(binary_cross_entropy_with_logits_gradient),
    NAME(exponential_share), NAME(soft_margin_gradient), NAME(frac), NAME(rounded), NAME(finite), NAME(where_finite),
    NAME(lerp_by_number), NAME(lerp), NAME(addcmul), NAME(addcdiv), NAME(clamped),
    NAME(whole_quotient)};

/* So many elements, from `first` on, of an operand that is spread. */
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
#undef COMMA
#undef DEFINE1
#undef DEFINE2
#undef DEFINE3
#undef DEFINE1_QUICK
#undef DEFINE2_QUICK
#undef DEFINE3_QUICK
#undef WITHIN
#undef DEFINE1_EXP
#undef DEFINE2_EXP
#undef DEFINE3_EXP
#undef BETWEEN
#undef AT_LEAST
#undef SIGMOID_OF
#undef KEPT
#endif
