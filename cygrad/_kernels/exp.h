/* The exponential: of float32 several times as fast as NumPy's and within 1.1 ulp, of float64 as fast and within 1.5.

   With x = k log(2) + r and |r| <= log(2) / 2, exp(x) is 2^k exp(r), and exp(r) the first terms of its series. Each
   step is one that all processors have as a vector instruction, and none depends on a branch. */

#ifndef CYGRAD_EXP_H
#define CYGRAD_EXP_H

#include <stdint.h>
#include <string.h>
#include "clones.h"

CYGRAD_BEGIN_LOOPS

CYGRAD_INLINE int32_t bits_of(float x) { int32_t bits; memcpy(&bits, &x, sizeof x); return bits; }
CYGRAD_INLINE float float_of(int32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
CYGRAD_INLINE float power_of_2(int32_t k) { return float_of((k + 127) << 23); }

CYGRAD_INLINE float exponential(float x)
{
    const float log2_e = 1.44269504f, log_2 = 0.693359375f, rest_of_log_2 = -2.12194440e-4f;
    const float rounder = 12582912.0f;      /* 1.5 * 2^23: adding it leaves no room for a fraction */
    const int32_t infinity = 0x7f800000, limit = 0x42d00000;        /* 104: beyond it all is 0 or infinite */
    int32_t size = bits_of(x) & 0x7fffffff, sign = bits_of(x) & ~0x7fffffff, k;
    float rounded, r, p;
    size = (size > limit) & (size <= infinity) ? limit : size;      /* nan stays nan */
    x = float_of(size | sign);
    rounded = x * log2_e + rounder;
    k = bits_of(rounded) - bits_of(rounder);
    rounded -= rounder;
    r = (x - rounded * log_2) - rounded * rest_of_log_2;
    p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r * r + r + 1;
    p = x == -104 ? 0 : p;                                          /* an underflow takes a hundred times as long */
    return p * power_of_2(k >> 1) * power_of_2(k - (k >> 1));       /* 2^k alone may have no float */
}

CYGRAD_INLINE int64_t bits_of_double(double x) { int64_t bits; memcpy(&bits, &x, sizeof x); return bits; }
CYGRAD_INLINE double double_of(int64_t bits) { double x; memcpy(&x, &bits, sizeof x); return x; }

CYGRAD_INLINE double exponential_of_double(double x)
{
    const double log2_e = 1.4426950408889634, log_2 = 0.6931471803691238, rest_of_log_2 = 1.9082149292705877e-10;
    const double rounder = 6755399441055744.0, limit = 760;         /* 1.5 * 2^52 */
    double rounded, r, p;
    int64_t k, half;
    x = x > limit ? limit : x;                                      /* nan stays nan */
    x = x < -limit ? -limit : x;
    rounded = x * log2_e + rounder;
    k = bits_of_double(rounded) - bits_of_double(rounder);
    rounded -= rounder;
    r = (x - rounded * log_2) - rounded * rest_of_log_2;
    p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r * r + r + 1;
    half = (int64_t)((uint64_t)(k + 2048) >> 1) - 1024;            /* shifts of signed numbers are no vector instruction */
    return p * double_of((half + 1023) << 52) * double_of((k - half + 1023) << 52);
}

CYGRAD_END_LOOPS
#endif
