/* Elementwise functions of neural networks and their gradients, for float and double, on contiguous memory.

   The exponential is our own (exp.h), so that each function is one loop without temporaries. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_ACTIVATIONS_H
#define CYGRAD_ACTIVATIONS_H

#include <math.h>
#include <stdint.h>
#include "clones.h"
#include "exp.h"

typedef void (*map_t)(const void *x, void *out, Py_ssize_t n);
typedef void (*gradient_t)(const void *g, const void *x, void *out, Py_ssize_t n);

CYGRAD_BEGIN_CHOOSING_LOOPS

/* The probability that a standard normal number is smaller than x, and the derivative of x times it. Less a half they
   are x times rational functions of x^2, whose greatest errors are least: 8e-9 and 3e-9 before rounding. Where they are
   0 or 1 up to rounding, they are just that. No exponential is needed, half of what they would take. */
CYGRAD_INLINE float distribution_f32(float x)
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

CYGRAD_INLINE float gelu_slope_f32(float x)
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

CYGRAD_INLINE double distribution_f64(double x) { return 0.5 * erfc(x * -0.7071067811865476); }

CYGRAD_INLINE double gelu_slope_f64(double x)
{
    return distribution_f64(x) + x * (exponential_of_double(-0.5 * x * x) * 0.3989422804014327);
}

#define REAL float
#define BITS uint32_t
#define EXP exponential
#define EXP_CLONES CYGRAD_WIDE_CLONES
#define MISH_CLONES EXP_CLONES
#define NAME(name) name##_f32
#include "activations.h"
#undef REAL
#undef BITS
#undef EXP
#undef EXP_CLONES
#undef MISH_CLONES
#undef NAME

#define REAL double
#define BITS uint64_t
#define EXP exponential_of_double
#define EXP_CLONES CYGRAD_CLONES
#define MISH_CLONES                     /* clones take room */
#define NAME(name) name##_f64
#include "activations.h"
#undef REAL
#undef BITS
#undef EXP
#undef EXP_CLONES
#undef MISH_CLONES
#undef NAME

CYGRAD_END_LOOPS

enum { SIGMOID, SILU, MISH, GELU, GELU_TANH };      /* functions of their input */
enum { TANH_OF_RESULT = GELU_TANH + 1, SIGMOID_OF_RESULT, THRESHOLD_OF_RESULT };

#define BOTH(name) {name##_f32, name##_f64}
static const map_t maps[][2] = {BOTH(sigmoid), BOTH(silu), BOTH(mish), BOTH(gelu), BOTH(gelu_tanh)};
static const gradient_t gradients[][2] = {
    {NULL, NULL}, BOTH(silu_gradient), BOTH(mish_gradient), BOTH(gelu_gradient), BOTH(gelu_tanh_gradient),
    BOTH(tanh_gradient), BOTH(sigmoid_gradient), BOTH(threshold_gradient)};
#undef BOTH

#endif
#else

#define DEFINE_MAP(CLONES, FUNCTION, ...)                                                                       \
    static CLONES void NAME(FUNCTION)(const void *from, void *to, Py_ssize_t n)                                 \
    {                                                                                                           \
        const REAL *in = from;                                                                                  \
        REAL *out = to;                                                                                         \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const REAL x = in[i];                                                                               \
            __VA_ARGS__                                                                                         \
        }                                                                                                       \
    }

/* x is the input, or for the last three functions the result. */
#define DEFINE_GRADIENT(CLONES, FUNCTION, ...)                                                                  \
    static CLONES void NAME(FUNCTION)(const void *grad, const void *from, void *to, Py_ssize_t n)               \
    {                                                                                                           \
        const REAL *g = grad, *in = from;                                                                       \
        REAL *out = to;                                                                                         \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const REAL x = in[i];                                                                               \
            __VA_ARGS__                                                                                         \
        }                                                                                                       \
    }

/* The tangent of softplus(x) is m / (m + 2) for m = e^x (e^x + 2); beyond 20 it is 1. */
CYGRAD_INLINE REAL NAME(tanh_of_softplus)(REAL x)
{
    const REAL e = EXP(x > 20 ? 20 : x), m = e * (e + 2);
    return m / (m + 2);
}

DEFINE_MAP(EXP_CLONES, sigmoid, out[i] = 1 / (1 + EXP(-x));)
DEFINE_MAP(EXP_CLONES, silu, out[i] = x / (1 + EXP(-x));)
DEFINE_GRADIENT(EXP_CLONES, silu_gradient,
    const REAL s = 1 / (1 + EXP(-x));
    out[i] = g[i] * (s * (1 + x * (1 - s)));)

DEFINE_MAP(MISH_CLONES, mish, out[i] = x * NAME(tanh_of_softplus)(x);)
DEFINE_GRADIENT(MISH_CLONES, mish_gradient,
    const REAL t = NAME(tanh_of_softplus)(x), s = 1 / (1 + EXP(-x));
    out[i] = g[i] * (t + x * s * (1 - t * t));)

DEFINE_MAP(EXP_CLONES, gelu, out[i] = x * NAME(distribution)(x);)
DEFINE_GRADIENT(EXP_CLONES, gelu_gradient, out[i] = g[i] * NAME(gelu_slope)(x);)

/* (1 + tanh(u)) / 2 is the logistic function of 2 u. */
#define TWICE_INNER (REAL)1.5957691216057308 * x * (1 + (REAL)0.044715 * x * x)
#define ITS_SLOPE (REAL)1.5957691216057308 * (1 + 3 * (REAL)0.044715 * near * near)
DEFINE_MAP(EXP_CLONES, gelu_tanh, out[i] = x / (1 + EXP(-TWICE_INNER));)
DEFINE_GRADIENT(EXP_CLONES, gelu_tanh_gradient,
    const REAL s = 1 / (1 + EXP(-TWICE_INNER)), below = x > 30 ? 30 : x, near = below < -30 ? -30 : below;
    out[i] = g[i] * (s + x * s * (1 - s) * ITS_SLOPE);)
#undef TWICE_INNER
#undef ITS_SLOPE

DEFINE_GRADIENT(CYGRAD_CLONES, tanh_gradient, out[i] = g[i] * (1 - x * x);)
DEFINE_GRADIENT(CYGRAD_CLONES, sigmoid_gradient, out[i] = g[i] * (1 - x) * x;)

/* Where x is nan the gradient passes, as in PyTorch. By bits, because compilers make a slow masked load of `?:`. */
static CYGRAD_CLONES void NAME(threshold_gradient)(const void *grad, const void *from, void *to, Py_ssize_t n)
{
    const BITS *g = grad;
    const REAL *x = from;
    BITS *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = g[i] & -(BITS)!(x[i] <= 0);
}

#undef DEFINE_MAP
#undef DEFINE_GRADIENT
#endif
