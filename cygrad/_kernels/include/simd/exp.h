/* The exponential: several times as fast as NumPy's for float32, twice as fast for float64, and within 1.1 ulp.

   With x = k log(2) + r and |r| <= log(2) / 2, exp(x) is 2^k exp(r). exp(r) is approximated by the first terms of its
   series, with coefficients adjusted so that fewer terms suffice (the maximum relative errors are 3e-9 and 4e-18). Each
   step is a vector instruction on all processors, and none branches. For NaN, k is arbitrary; it is shifted as an
   unsigned number.

   With m = exp(x) - 1 = 2^k (exp(r) - 1) + (2^k - 1), tanh(x / 2) is m / (m + 2), within 3 ulp, and the logistic
   function of x is (m + 1) / (m + 2). `squashed` computes either, with q = 0 or 1. */

#ifndef CYGRAD_EXP_H
#define CYGRAD_EXP_H

#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_LOOPS

CYGRAD_INLINE int32_t bits_of(float x) { int32_t bits; memcpy(&bits, &x, sizeof x); return bits; }
CYGRAD_INLINE float float_of(int32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
CYGRAD_INLINE float power_of_2(int32_t k) { return float_of((int32_t)(((uint32_t)k + 127) << 23)); }

/* exp(r) - 1 for r up to log(2) / 2. */
CYGRAD_INLINE float of_rest(float r)
{
    const float square = r * r;             /* pairs without a dependency chain (Estrin) */
    float p = 1.3814396e-3f * square + (8.36874666e-3f * r + 4.16683932e-2f);
    p = p * square + (0.166665204f * r + 0.499999934f);
    return p * square + r;
}

/* exp(r) - 1 for the r of x; sets k. */
CYGRAD_INLINE float reduced(float x, int32_t *k)
{
    const float log2_e = 1.44269504f, log_2 = 0.693359375f, rest_of_log_2 = -2.12194440e-4f;
    const float rounder = 12582912.0f;      /* 1.5 * 2^23: adding it leaves no room for a fraction */
    float rounded = x * log2_e + rounder;
    *k = (int32_t)((uint32_t)bits_of(rounded) - (uint32_t)bits_of(rounder));
    rounded -= rounder;
    return of_rest((x - rounded * log_2) - rounded * rest_of_log_2);
}

/* p 2^k in two steps, because 2^k alone may not be representable: one step is by 2^-64 if x < 0, else by 2^64. */
CYGRAD_INLINE float scaled(float p, int32_t k, float x)
{
    const uint32_t of_1 = 127, of_64 = 64, below = (uint32_t)(bits_of(x) >> 31) & 2 * of_64 << 23;
    p *= float_of((int32_t)(((uint32_t)k << 23) + ((of_1 - of_64) << 23) + below));
    return p * float_of((int32_t)(((of_1 + of_64) << 23) - below));
}

CYGRAD_INLINE float exponential(float x)
{
    int32_t k;
    float p;
    x = x > 89 ? 89 : x;                                            /* infinite above; NaN stays NaN */
    x = x < -132.4f ? -132.4f : x;      /* 2^(k + 64) is 0 here: avoids underflow, which takes 100 times as long */
    p = reduced(x, &k) + 1;
    return scaled(p, k, x);
}

/* 1 / (1 + exp(-x)); the exponential overflows below -88.73. NaN stays NaN. */
CYGRAD_INLINE float logistic_of_float(float x)
{
    int32_t k;
    float p;
    x = x > 87 ? 87 : x;                                            /* 1 above 17 */
    x = x < -89 ? -89 : x;
    p = 2 * reduced(-x, &k) + 2;
    return 1 / (1 + p * power_of_2(k - 1));                         /* 2^128 is not representable */
}

/* exp(x) for x <= 0, in three quarters of the time. Far below, p and the power are arbitrary and both are set to 0, so
   nothing underflows. Clamping x instead would delay everything that depends on it. */
CYGRAD_INLINE float exponential_up_to_0(float x)
{
    int32_t k;
    float p = reduced(x, &k) + 1, power = float_of((int32_t)(((uint32_t)k + 127 + 30) << 23));
    p = x <= -104 ? 0 : p;
    power = x <= -104 ? 0 : power;
    return p * power * (1.0f / (1 << 30));                          /* may give a subnormal number */
}

/* The same in two thirds of the time; subnormal results become 0. */
CYGRAD_INLINE float exponential_below_0(float x)
{
    int32_t k;
    float p = reduced(x, &k) + 1, power = power_of_2(k);
    p = x < -87.3f ? 0 : p;
    power = x < -87.3f ? 0 : power;
    return p * power;
}

CYGRAD_INLINE float squashed(float x, float q)
{
    int32_t k;
    float e, m;
    x = x > 80 ? 80 : x;                                            /* 1 above 18; NaN stays NaN */
    x = x < -80 ? -80 : x;
    e = reduced(x, &k);
    m = e * power_of_2(k) + (power_of_2(k) - 1);
    return (m + q) / (m + 2);
}

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
