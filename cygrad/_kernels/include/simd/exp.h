/* The exponential: several times as fast as NumPy's for float32, twice as fast for float64, and within 1.1 ulp.

   With x = k log(2) + r and |r| <= log(2) / 2, exp(x) is 2^k exp(r). exp(r) is approximated by the first terms of its
   series, with coefficients adjusted so that fewer terms suffice (the maximum relative errors are 3e-9 and 4e-18). Each
   step is a vector instruction on all processors, and none branches. For NaN, k is arbitrary; it is shifted as an
   unsigned number. The functions of float32 are in exp_float.h. */

#ifndef CYGRAD_EXP_H
#define CYGRAD_EXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_LOOPS

CYGRAD_INLINE int32_t bits_of(float x) { int32_t bits; memcpy(&bits, &x, sizeof x); return bits; }
CYGRAD_INLINE float float_of(int32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
CYGRAD_INLINE float power_of_2(int32_t k) { return float_of((int32_t)(((uint32_t)k + 127) << 23)); }

CYGRAD_INLINE float lowered(float x, float a) { return x > a ? a : x; }
CYGRAD_INLINE float raised(float x, float a) { return x < a ? a : x; }

/* k plus a multiple of 512, which shifts drop. */
CYGRAD_INLINE int32_t exponent_of(float rounded) { return bits_of(rounded); }

/* In two steps, because 2^k alone may not be representable: one step is by 2^-64 if x < 0, else by 2^64. */
CYGRAD_INLINE float scaled(float e, int32_t k, float x)
{
    const uint32_t of_1 = 127, of_64 = 64, below = (uint32_t)(bits_of(x) >> 31) & 2 * of_64 << 23;
    const float p = (e + 1) * float_of((int32_t)(((uint32_t)k << 23) + ((of_1 - of_64) << 23) + below));
    return p * float_of((int32_t)(((of_1 + of_64) << 23) - below));
}

CYGRAD_INLINE float scaled_down(float e, int32_t k)
{
    return (e + 1) * power_of_2((int32_t)((uint32_t)k + 64)) * 5.42101086e-20f;         /* 2^-64 */
}

CYGRAD_INLINE float scaled_normal(float e, int32_t k) { return (e + 1) * power_of_2(k); }

CYGRAD_INLINE float scaled_up(float e, int32_t k)
{
    return (2 * e + 2) * power_of_2((int32_t)((uint32_t)k - 1));                        /* 2^128 is not representable */
}

#define FLOATS float
#define POWERS int32_t
#define OF(name) name
#define INLINED CYGRAD_INLINE
#define LEAST_BELOW_0 -88
#include "simd/exp_float.h"
#undef FLOATS
#undef POWERS
#undef OF
#undef INLINED
#undef LEAST_BELOW_0

CYGRAD_INLINE float hyperbolic_tangent(float x) { return copysignf(tanh_of_half(2 * x), x); }

CYGRAD_INLINE int64_t bits_of_double(double x) { int64_t bits; memcpy(&bits, &x, sizeof x); return bits; }
CYGRAD_INLINE double double_of(int64_t bits) { double x; memcpy(&x, &bits, sizeof x); return x; }

CYGRAD_INLINE double power_of_2_double(uint64_t k) { return double_of((int64_t)((k + 1023) << 52)); }

CYGRAD_INLINE double of_rest_double(double r)
{
    const double square = r * r, fourth = square * square;
    double p = (2.5000042896525087e-8 * r + 2.7630248066541508e-7) * fourth
               + ((2.7557586430346133e-6 * r + 2.4801493099877015e-5) * square
                  + (1.9841269506519687e-4 * r + 1.3888888943629077e-3));
    p = p * fourth + ((8.3333333334944861e-3 * r + 4.1666666666530163e-2) * square
                      + (1.6666666666666412e-1 * r + 5.0000000000000106e-1));
    return p * square + r;
}

CYGRAD_INLINE double reduced_double(double x, uint64_t *k)
{
    const double log2_e = 1.4426950408889634, log_2 = 0.6931471803691238, rest_of_log_2 = 1.9082149292705877e-10;
    const double rounder = 6755399441055744.0;                      /* 1.5 * 2^52 */
    double rounded = x * log2_e + rounder;
    *k = (uint64_t)bits_of_double(rounded) - (uint64_t)bits_of_double(rounder);
    rounded -= rounder;
    return of_rest_double((x - rounded * log_2) - rounded * rest_of_log_2);
}

CYGRAD_INLINE double exponential_of_double(double x)
{
    const double limit = 760;
    uint64_t k, half;
    double p;
    x = x > limit ? limit : x;                                      /* NaN stays NaN */
    x = x < -limit ? -limit : x;
    p = reduced_double(x, &k) + 1;
    half = ((k + 2048) >> 1) - 1024;                                /* vectors have no signed shift */
    return p * power_of_2_double(half) * power_of_2_double(k - half);
}

/* tanh(x / 2) or the logistic function of x: with m as in `tanh_of_half`, (m + q) / (m + 2) with q = 0 or 1. */
CYGRAD_INLINE double squashed_double(double x, double q)
{
    uint64_t k;
    double e, m;
    x = x > 80 ? 80 : x;
    x = x < -80 ? -80 : x;
    e = reduced_double(x, &k);
    m = e * power_of_2_double(k) + (power_of_2_double(k) - 1);
    return (m + q) / (m + 2);
}

CYGRAD_END_LOOPS
#endif
