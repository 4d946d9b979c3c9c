/* Activation functions and their gradients, for float and double, on contiguous memory.

   The exponential is our own (exp.h), so each function is one loop without temporaries. */

#ifndef REAL                    /* the file includes itself once for each type and each width of float vectors */
#ifndef CYGRAD_ACTIVATIONS_H
#define CYGRAD_ACTIVATIONS_H

#include <math.h>
#include <stdint.h>
#include "platform/target_clones.h"
#include "simd/exp.h"
#include "simd/vector_math.h"

typedef void (*map_t)(const void *x, void *out, Py_ssize_t n);
typedef void (*gradient_t)(const void *g, const void *x, void *out, Py_ssize_t n);

CYGRAD_BEGIN_CHOOSING_LOOPS

/* The normal distribution function, and the derivative of x times it. Less 1/2, they are x times rational functions of
   x^2 with minimax errors 8e-9 and 3e-9 before rounding. Where they round to 0 or 1, they are exactly that. They need
   no exponential, which would take half of the time. */
CYGRAD_INLINE float distribution(float x)
{
    const float u = x * x, u2 = u * u;
    const float p = ((2.27493416e-8f * u + 6.35207408e-6f) * u2 + (1.68823728e-4f * u + 4.67724844e-3f)) * u2
                    + (3.385249e-2f * u + 0.398942235f);
    const float q = ((1.19749997e-6f * u + 7.36467174e-5f) * u2 + (1.88443396e-3f * u + 2.86457753e-2f)) * u2
                    + (0.251521527f * u + 1);
    float y = 0.5f + x * p / q;
    y = y < 0 ? 0 : y;
    y = x < -5.5f ? 0 : y;
    return x > 5.5f ? 1 : y;
}

CYGRAD_INLINE float gelu_slope(float x)
{
    const float u = x * x, u2 = u * u, u4 = u2 * u2;
    const float p = ((1.97391882e-4f * u + 1.37636743e-2f) * u2 + (0.797884537f - 2.2900032e-2f * u))
                    + ((1.15328519e-8f - 2.80800012e-11f * u) * u2 + (8.91658546e-7f * u + 3.20590988e-5f)) * u4;
    const float q = ((3.90192531e-3f * u + 4.37951217e-2f) * u2 + (0.304632101f * u + 1))
                    + (3.02329563e-7f * u2 + (9.68187291e-6f * u + 2.36922252e-4f)) * u4;
    float y = 0.5f + x * p / q;
    y = x < -5.8f ? 0 : y;
    return x > 5.8f ? 1 : y;
}

#define NORMAL_f32 distribution
#define GELU_SLOPE_f32 gelu_slope

static void cygrad_NORMAL_f64(double *run, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) run[i] *= 0.7071067811865476;
    cygrad_ERF_f64(run, n);
    for (Py_ssize_t i = 0; i < n; i++) run[i] = 0.5 + 0.5 * run[i];
}

static void cygrad_GELU_SLOPE_f64(double *run, Py_ssize_t n)
{
    double slopes[STAGE_RUN];
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) slopes[i] = -0.5 * run[i] * run[i];
    cygrad_EXP_f64(slopes, n);
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) slopes[i] *= 0.3989422804014327 * run[i];
    cygrad_NORMAL_f64(run, n);
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) run[i] += slopes[i];
}

#define REAL float
#define LOOPS "nn/activations.h"
#define TYPED DEFINE_STAGED_f32
#define UP_TO(x, a) OF(lowered)(x, a)
#define FROM(x, a) OF(raised)(x, a)
#include "simd/each_width.h"
#undef UP_TO
#undef FROM

#define BITS uint32_t
#define EXP_CLONES CYGRAD_WIDE_CLONES
#define NAME(name) name##_f32
#include "nn/activations.h"
#undef REAL
#undef TYPED
#undef BITS
#undef EXP_CLONES
#undef NAME

#define REAL double
#define TYPED DEFINE_STAGED_f64
#define VECTORIZED                   /* the stages have clones */
#define UP_TO(x, a) ((x) > (a) ? (a) : (x))
#define FROM(x, a) ((x) < (a) ? (a) : (x))
#define BITS uint64_t
#define EXP_CLONES
#define NAME(name) name##_f64
#include "nn/activations.h"
#undef REAL
#undef TYPED
#undef VECTORIZED
#undef UP_TO
#undef FROM
#undef BITS
#undef EXP_CLONES
#undef NAME

CYGRAD_END_LOOPS

enum { SIGMOID, SILU, MISH, GELU, GELU_TANH };      /* functions of their input */
enum { TANH_OF_RESULT = GELU_TANH + 1, SIGMOID_OF_RESULT, THRESHOLD_OF_RESULT };

/* The versions of a loop: by `float_width`, then for double. */
#define EVERY(name) {WIDTHS(name), name##_f64}
#define BOTH(name) {name##_f32, name##_f32, name##_f32, name##_f64}
static const map_t maps[][4] = {EVERY(sigmoid), EVERY(silu), EVERY(mish), BOTH(gelu), EVERY(gelu_tanh)};
static const gradient_t gradients[][4] = {
    {NULL}, EVERY(silu_gradient), EVERY(mish_gradient), BOTH(gelu_gradient), EVERY(gelu_tanh_gradient),
    BOTH(tanh_gradient), BOTH(sigmoid_gradient), BOTH(threshold_gradient)};
#undef EVERY
#undef BOTH

static map_t map_of(int function, int is_double) { return maps[function][is_double ? 3 : float_width()]; }
static gradient_t gradient_of(int function, int is_double) { return gradients[function][is_double ? 3 : float_width()]; }

#endif
#else

#define DEFINE_MAP(CLONES, FUNCTION, STAGE, ARGUMENT, ...)                                                      \
    TYPED(static CLONES void NAME(FUNCTION)(const void *from, void *to, Py_ssize_t n),                          \
          const REAL *in = from; REAL *out = to;, const ELEMENTS x = TAKE(in); (void)x;, STAGE, ARGUMENT, __VA_ARGS__)

/* d is the incoming gradient. */
#define DEFINE_GRADIENT(CLONES, FUNCTION, STAGE, ARGUMENT, ...)                                                 \
    TYPED(static CLONES void NAME(FUNCTION)(const void *grad, const void *from, void *to, Py_ssize_t n),        \
          const REAL *g = grad; const REAL *in = from; REAL *out = to;,                                         \
          const ELEMENTS x = TAKE(in); const ELEMENTS d = TAKE(g); (void)x; (void)d;, STAGE, ARGUMENT, __VA_ARGS__)

#ifdef VECTORIZED                    /* of double, and of each width of float */
DEFINE_MAP(VECTORIZED, sigmoid, LOGISTIC, x, e)
DEFINE_MAP(VECTORIZED, silu, LOGISTIC, x, x * e)
DEFINE_GRADIENT(VECTORIZED, silu_gradient, LOGISTIC, x, d * (e * (1 + x * (1 - e))))

/* With e = exp(x), tanh(softplus(x)) is m / (m + 2) with m = e (e + 2), and the logistic function is e / (1 + e); both
   are 1 beyond 20. */
#define TANH_OF_SOFTPLUS (e * (e + 2) / (e * (e + 2) + 2))
DEFINE_MAP(VECTORIZED, mish, EXP, UP_TO(x, 20), x * TANH_OF_SOFTPLUS)
DEFINE_GRADIENT(VECTORIZED, mish_gradient, EXP, UP_TO(x, 20),
                d * (TANH_OF_SOFTPLUS + x * (e / (1 + e)) * (1 - TANH_OF_SOFTPLUS * TANH_OF_SOFTPLUS)))
#undef TANH_OF_SOFTPLUS

/* (1 + tanh(u)) / 2 is the logistic function of 2 u. */
#define TWICE_INNER (REAL)1.5957691216057308 * x * (1 + (REAL)0.044715 * x * x)
#define WITHIN_30 FROM(UP_TO(x, 30), -30)
#define ITS_SLOPE ((REAL)1.5957691216057308 * (1 + 3 * (REAL)0.044715 * WITHIN_30 * WITHIN_30))
DEFINE_MAP(VECTORIZED, gelu_tanh, LOGISTIC, TWICE_INNER, x * e)
DEFINE_GRADIENT(VECTORIZED, gelu_tanh_gradient, LOGISTIC, TWICE_INNER, d * (e + x * e * (1 - e) * ITS_SLOPE))
#undef TWICE_INNER
#undef WITHIN_30
#undef ITS_SLOPE
#endif

#ifdef BITS                     /* of both types */
DEFINE_MAP(EXP_CLONES, gelu, NORMAL, x, x * e)
DEFINE_GRADIENT(EXP_CLONES, gelu_gradient, GELU_SLOPE, x, d * e)

/* x is the result. */
#define DEFINE_GRADIENT_OF_RESULT(FUNCTION, ...)                                                                \
    static CYGRAD_WIDE_CLONES void NAME(FUNCTION)(const void *grad, const void *from, void *to, Py_ssize_t n)   \
    {                                                                                                           \
        const REAL *g = grad, *in = from;                                                                       \
        REAL *out = to;                                                                                         \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const REAL x = in[i];                                                                               \
            out[i] = __VA_ARGS__;                                                                               \
        }                                                                                                       \
    }
DEFINE_GRADIENT_OF_RESULT(tanh_gradient, g[i] * (1 - x * x))
DEFINE_GRADIENT_OF_RESULT(sigmoid_gradient, g[i] * (1 - x) * x)
#undef DEFINE_GRADIENT_OF_RESULT

/* The gradient passes where x is NaN, as in PyTorch. Done on bits, because compilers turn `?:` into a slow masked
   load. */
static CYGRAD_CLONES void NAME(threshold_gradient)(const void *grad, const void *from, void *to, Py_ssize_t n)
{
    const BITS *g = grad;
    const REAL *x = from;
    BITS *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = g[i] & -(BITS)!(x[i] <= 0);
}
#endif

#undef DEFINE_MAP
#undef DEFINE_GRADIENT
#endif
