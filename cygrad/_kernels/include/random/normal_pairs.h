/* Pairs of normal numbers by the Box-Muller transform, as PyTorch makes them: from the uniform numbers u and v of [0, 1)
   come sqrt(-2 log(1 - u)) cos(2 pi v) and the same with the sine (G. E. P. Box, M. E. Muller, 1958).

   In single precision, logarithm, sine and cosine are those of the Cephes library (S. L. Moshier): the same polynomials,
   evaluated in the same order, so that results are PyTorch's to the last bit where the compiler fuses multiplication and
   addition, as on every x86-64 processor with AVX2. Elsewhere they differ in that bit. */

#ifndef CYGRAD_NORMAL_PAIRS_H
#define CYGRAD_NORMAL_PAIRS_H

#include <math.h>
#include "simd/exp.h"

enum { PAIR_GROUP = 16, GROUPS_AT_ONCE = 32 };

CYGRAD_BEGIN_CHOOSING_LOOPS

/* log(x) for 2^-24 <= x <= 1: x = 2^k m with m from sqrt(1/2) to sqrt(2). */
CYGRAD_INLINE float cephes_log(float x)
{
    const int32_t bits = bits_of(x);
    const float half = float_of((bits & 0x007FFFFF) | 0x3F000000);
    const int is_below = half < 0.707106781186547524f;
    const float k = (float)((bits >> 23) - 126) - (is_below ? 1.0f : 0.0f);
    const float m = (half - 1) + (is_below ? half : 0.0f), z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m + -1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m + -1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m + -1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m + -2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m;
    p = p * z;                              /* before the next product: compilers fuse the first one of a sum */
    const float low = k * -2.12194440e-4f;
    p = p + low;
    p = p - z * 0.5f;
    return k * 0.693359375f + (m + p);
}

/* Sine and cosine of 0 <= x <= 2 pi: x = j pi / 4 + r with an even j and |r| <= pi / 4. */
CYGRAD_INLINE void cephes_sine_cosine(float x, float *sine, float *cosine)
{
    const int32_t j = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    const float turns = (float)j;
    float r = turns * -0.78515625f + x;
    r = turns * -2.4187564849853515625e-4f + r;
    r = turns * -3.77489497744594108e-8f + r;
    const float z = r * r;
    float even = 2.443315711809948e-5f, odd = -1.9515295891e-4f;
    even = even * z + -1.388731625493765e-3f;
    even = even * z + 4.166664568298827e-2f;
    even = even * z;
    even = even * z;                        /* as above */
    const float half_z = z * 0.5f;
    even = even - half_z;
    even = even + 1;
    odd = odd * z + 8.3321608736e-3f;
    odd = odd * z + -1.6666654611e-1f;
    odd = odd * z;
    odd = odd * r + r;
    const int32_t is_even = -(int32_t)((j & 2) != 0), of_sine = (bits_of(even) & is_even) | (bits_of(odd) & ~is_even);
    const int32_t of_cosine = (bits_of(odd) & is_even) | (bits_of(even) & ~is_even);
    *sine = float_of(of_sine ^ (int32_t)((uint32_t)(j & 4) << 29));
    *cosine = float_of(of_cosine ^ (int32_t)((uint32_t)(~(j - 2) & 4) << 29));
}

/* Turns random words into normal numbers: u and v come from the words of `first` and of `second`. */
static CYGRAD_CLONES void make_pairs(const uint32_t *first, const uint32_t *second, float *with_cosine,
                                     float *with_sine, Py_ssize_t n, float mean, float deviation)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const float u = (float)(int32_t)(first[i] & 0xFFFFFF) * 5.9604644775390625e-8f;             /* 2^-24 */
        const float v = (float)(int32_t)(second[i] & 0xFFFFFF) * 5.9604644775390625e-8f;
        const float distance = sqrtf(-2 * cephes_log(1 - u));
        float sine, cosine;
        cephes_sine_cosine(6.283185307179586f * v, &sine, &cosine);
        const float x = distance * cosine, y = distance * sine;
        with_cosine[i] = x * deviation + mean;
        with_sine[i] = y * deviation + mean;
    }
}

CYGRAD_END_LOOPS

/* `count` is a multiple of 16: of each 16 words, the first eight are for u, the others for v. */
static void normal_floats(twister *t, float *out, Py_ssize_t count, float mean, float deviation)
{
    enum { HALF = PAIR_GROUP / 2, MOST = GROUPS_AT_ONCE * HALF };
    uint32_t words[2 * MOST], sorted[2][MOST];
    float made[2][MOST];
    for (Py_ssize_t n; count > 0; count -= n, out += n) {
        n = count < 2 * MOST ? count : 2 * MOST;
        take_words(t, words, n);
        for (Py_ssize_t g = 0; g < n / PAIR_GROUP; g++)
            for (int side = 0; side < 2; side++)
                memcpy(sorted[side] + g * HALF, words + g * PAIR_GROUP + side * HALF, HALF * sizeof *words);
        make_pairs(sorted[0], sorted[1], made[0], made[1], n / 2, mean, deviation);
        for (Py_ssize_t g = 0; g < n / PAIR_GROUP; g++)
            for (int side = 0; side < 2; side++)
                memcpy(out + g * PAIR_GROUP + side * HALF, made[side] + g * HALF, HALF * sizeof *out);
    }
}

static void normal_doubles(twister *t, double *out, Py_ssize_t count, double mean, double deviation)
{
    double units[PAIR_GROUP];
    for (Py_ssize_t start = 0; start < count; start += PAIR_GROUP, out += PAIR_GROUP) {
        for (int i = 0; i < PAIR_GROUP; i++) units[i] = next_unit(t);
        for (int i = 0; i < PAIR_GROUP / 2; i++) {
            const double distance = sqrt(-2 * log(1 - units[i])), angle = 6.283185307179586 * units[i + PAIR_GROUP / 2];
            out[i] = fma(distance * cos(angle), deviation, mean);
            out[i + PAIR_GROUP / 2] = fma(distance * sin(angle), deviation, mean);
        }
    }
}

/* One normal number; every second one is the other half of a pair. */
static double next_normal(twister *t)
{
    if (t->has_spare) {
        t->has_spare = 0;
        return t->spare;
    }
    const double turn = next_unit(t), distance = sqrt(-2 * log1p(-next_unit(t))), angle = 6.283185307179586 * turn;
    t->spare = distance * sin(angle);
    t->has_spare = 1;
    return distance * cos(angle);
}

#endif
