/* Conversions from float32 to float16 and bfloat16 and back, rounding to nearest, ties to even (IEEE 754).
   ARM processors have instructions for float16. Others with 256-bit vectors do, too, for whole vectors; elements left
   over are converted without them. */

#ifndef CYGRAD_HALF_H
#define CYGRAD_HALF_H

#include <stdint.h>
#include "platform/target_clones.h"
#include "simd/exp.h"

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#include <immintrin.h>
#define CYGRAD_HAS_F16C

__attribute__((target("avx,f16c"))) static Py_ssize_t eights_to_half(const float *x, uint16_t *out, Py_ssize_t n)
{
    Py_ssize_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

__attribute__((target("avx,f16c"))) static Py_ssize_t eights_to_float(const uint16_t *x, float *out, Py_ssize_t n)
{
    Py_ssize_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    return i;
}

#define DONE_BY(FUNCTION, ...) (CYGRAD_SUPPORTS(256) ? FUNCTION(__VA_ARGS__) : 0)
#else
#define DONE_BY(FUNCTION, ...) 0
#endif

CYGRAD_BEGIN_CHOOSING_LOOPS

#if defined(__GNUC__) && defined(__aarch64__)
typedef __fp16 half_number __attribute__((may_alias));  /* which others write and read as integers */

static void float_to_half(const void *from, void *to, Py_ssize_t n)
{
    const float *x = from;
    half_number *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = (half_number)x[i];
}

static void half_to_float(const void *from, void *to, Py_ssize_t n)
{
    const half_number *x = from;
    float *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = x[i];
}
#else
/* Below 2^-14, adding 1/2 moves the mantissa to its place in a half and rounds it. Beyond 65504, rounding carries into
   the exponent, up to infinity. A NaN keeps the payload bits that fit, and becomes quiet. */
static void float_to_half(const void *from, void *to, Py_ssize_t n)
{
    const float *x = from;
    uint16_t *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = DONE_BY(eights_to_half, x, out, n); i < n; i++) {
        const uint32_t bits = (uint32_t)bits_of(x[i]), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
        const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
        const uint32_t tiny = (uint32_t)bits_of(float_of((int32_t)size) + 0.5f) - (126u << 23);
        const uint32_t special = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
        const uint32_t finite = size < (113u << 23) ? tiny : normal;
        out[i] = (uint16_t)(sign | (size >= (143u << 23) ? special : finite));
    }
}

static void half_to_float(const void *from, void *to, Py_ssize_t n)
{
    const uint16_t *x = from;
    float *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = DONE_BY(eights_to_float, x, out, n); i < n; i++) {
        const uint32_t size = x[i] & 0x7fffu, sign = (x[i] & 0x8000u) << 16, shifted = size << 13;
        const uint32_t tiny = (uint32_t)bits_of(float_of((int32_t)(shifted + (113u << 23))) - float_of(113 << 23));
        const uint32_t large = size >= 0x7c00 ? shifted + (224u << 23) : shifted + (112u << 23);
        out[i] = float_of((int32_t)(sign | (size < 0x400 ? tiny : large)));
    }
}
#endif

/* A bfloat16 is the upper half of a float. All NaNs become the same one, except for the sign. */
static CYGRAD_CLONES void float_to_bfloat16(const void *from, void *to, Py_ssize_t n)
{
    const float *x = from;
    uint16_t *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)bits_of(x[i]);
        const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = (bits >> 16 & 0x8000) | 0x7fc0;
        out[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : nearest);
    }
}

static CYGRAD_CLONES void bfloat16_to_float(const void *from, void *to, Py_ssize_t n)
{
    const uint16_t *x = from;
    float *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = float_of((int32_t)((uint32_t)x[i] << 16));
}

CYGRAD_END_LOOPS
#endif
