/* Fused elementwise functions of up to three operands, and gradients, for which NumPy would need several passes. Their
   formulas are in fused_formulas.h; fused_loops.py calls them by name.

   Each is a loop over a short chunk of elements. Operands of one element are expanded to a chunk. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_FUSED_H
#define CYGRAD_FUSED_H

#include <math.h>
#include <string.h>
#include "elementwise/fused_formulas.h"
#include "nn/activations.h"
#include "platform/target_clones.h"
#include "simd/exp.h"

enum { RUN = STAGE_RUN };
enum { ONE, EACH, SPREAD };     /* elements of an operand: one, one per result, or one for several results */

CYGRAD_BEGIN_CHOOSING_LOOPS

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
#define RUN_STAGE RUN_STAGE_f32
#define NAME(name) name##_f32
#include "elementwise/fused_loops.h"
#undef REAL
#undef FINITE
#undef NEAREST
#undef WHOLE
#undef ABS
#undef COPYSIGN
#undef EXP_CLONES
#undef RUN_STAGE
#undef NAME

#define REAL double
#define FINITE 1.7976931348623157e308
#define NEAREST rint
#define WHOLE trunc
#define ABS fabs
#define COPYSIGN copysign
#define EXP_CLONES              /* the stages have clones */
#define RUN_STAGE RUN_STAGE_f64
#define NAME(name) name##_f64
#include "elementwise/fused_loops.h"
#undef REAL
#undef FINITE
#undef NEAREST
#undef WHOLE
#undef ABS
#undef COPYSIGN
#undef EXP_CLONES
#undef RUN_STAGE
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
#define DEFINE(FUNCTION, OPERANDS, ...) DEFINE_LOOP(CYGRAD_CLONES, FUNCTION, OF##OPERANDS, __VA_ARGS__)
#define DEFINE_CALLS(FUNCTION, OPERANDS, ...) DEFINE_LOOP(, FUNCTION, OF##OPERANDS, __VA_ARGS__)
#define DEFINE_STAGES(FUNCTION, OPERANDS, ...)                                                                  \
    DEFINE_IN_RUNS(RUN_STAGE, HEAD(EXP_CLONES, FUNCTION), NUMBERS, OF##OPERANDS, __VA_ARGS__)
#define WITHIN(bound, BEYOND, x) ((((x) BEYOND (bound)) | ((bound) != (bound))) ? (bound) : (x))  /* NaN stays NaN */
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x))    /* NaN stays NaN */
#define BETWEEN(x, low, high) (AT_LEAST(x, low) > (high) ? (high) : AT_LEAST(x, low))
#define KEPT(x, condition) NAME(kept)(x, condition)
#define BY_POWER_OF_2(x, y) NAME(by_power_of_2)(x, y)

CYGRAD_FORMULAS(DEFINE, DEFINE_STAGES, DEFINE_CALLS)
CYGRAD_FORMULAS_OF_CPU(DEFINE, DEFINE_STAGES, DEFINE_CALLS)

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

/* -- halves of one array */

DEFINE_STAGES(gated, 2, LOGISTIC, y, x * e)
DEFINE_STAGES(gate_gradient, 3, LOGISTIC, -ABS(y), x * z * e * (1 - e))      /* even in y */

/* In the order of `fused_formulas`. */
#define FUNCTION_OF(FUNCTION, ...) NAME(FUNCTION),
static void (*const NAME(fused)[])(const REAL *, const REAL *, const REAL *, REAL *, Py_ssize_t, const double *) = {
    CYGRAD_FORMULAS(FUNCTION_OF, FUNCTION_OF, FUNCTION_OF)
    CYGRAD_FORMULAS_OF_CPU(FUNCTION_OF, FUNCTION_OF, FUNCTION_OF)
    NAME(finite)};

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
#undef DEFINE
#undef DEFINE_CALLS
#undef DEFINE_STAGES
#undef FUNCTION_OF
#undef WITHIN
#undef BY_POWER_OF_2
#undef BETWEEN
#undef AT_LEAST
#undef KEPT
#endif
