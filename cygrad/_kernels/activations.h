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

/* The probability that a standard normal number is smaller than -t, and its density there, for t >= 0. With
   s = 1 / (1 + 0.35 t), the first is exp(-t^2 / 2) times a polynomial of s, whose relative error is least on [0, 14.6]:
   3e-8 before rounding, also far out. */
CYGRAD_INLINE float tail_without_exponential(float t)
{
    const float s = 1 / (1 + 0.35f * t), s2 = s * s, s4 = s2 * s2;
    const float first = 0.13986374567236026f * s + 0.1396212908182001f;
    const float second = 0.105558902393748f * s + 0.11981963468412934f;
    const float third = 0.1593409391506948f * s - 0.023227209986834807f;
    const float fourth = 0.1440396532823972f * s - 0.2558573156777862f;
    return s * ((second * s2 + first) + s4 * ((fourth * s2 + third) - 0.029159656329106085f * s4));
}

CYGRAD_INLINE float tail_f32(float t, float *density)
{
    float e = exponential_below_0(-0.5f * t * t);
    *density = e * 0.3989422804014327f;
    return e * tail_without_exponential(t);
}

CYGRAD_INLINE double tail_f64(double t, double *density)
{
    *density = exponential_of_double(-0.5 * t * t) * 0.3989422804014327;
    return 0.5 * erfc(t * 0.7071067811865476);
}

#define REAL float
#define BITS uint32_t
#define EXP exponential
#define EXP_CLONES CYGRAD_WIDE_CLONES
#define ABS fabsf
#define NAME(name) name##_f32
#include "activations.h"
#undef REAL
#undef BITS
#undef EXP
#undef EXP_CLONES
#undef ABS
#undef NAME

#define REAL double
#define BITS uint64_t
#define EXP exponential_of_double
#define EXP_CLONES CYGRAD_CLONES
#define ABS fabs
#define NAME(name) name##_f64
#include "activations.h"
#undef REAL
#undef BITS
#undef EXP
#undef EXP_CLONES
#undef ABS
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

DEFINE_MAP(EXP_CLONES, mish, out[i] = x * NAME(tanh_of_softplus)(x);)
DEFINE_GRADIENT(EXP_CLONES, mish_gradient,
    const REAL t = NAME(tanh_of_softplus)(x), s = 1 / (1 + EXP(-x));
    out[i] = g[i] * (t + x * s * (1 - t * t));)

DEFINE_MAP(EXP_CLONES, gelu,
    REAL density;
    const REAL tail = NAME(tail)(ABS(x), &density);
    out[i] = x * (x > 0 ? 1 - tail : tail);)
DEFINE_GRADIENT(EXP_CLONES, gelu_gradient,
    REAL density;
    const REAL tail = NAME(tail)(ABS(x), &density);
    out[i] = g[i] * ((x > 0 ? 1 - tail : tail) + x * density);)

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
