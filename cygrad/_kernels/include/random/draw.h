/* Random numbers from NumPy's bit generator, without the overhead of its methods; called from draw.pyx. Uniform
   numbers, permutations and small arrays of integers are those that NumPy draws. */

#ifndef CYGRAD_DRAWS_H
#define CYGRAD_DRAWS_H

#include <float.h>
#include <math.h>
#include <numpy/random/bitgen.h>
#if defined(_MSC_VER)
#include <intrin.h>
#endif
#include "base/loop_call.h"
#include "simd/exp.h"

enum { UNIFORM_NUMBERS, NORMAL_NUMBERS, EXPONENTIAL_NUMBERS, COINS, INTEGERS, SHUFFLED };
enum { FEW_DRAWS = 64, PAIRS = 64, NARROW = 1024, MOST_DRAWS = 8192 };

CYGRAD_BEGIN_CHOOSING_LOOPS

/* log(x) for x > 0 that are not subnormal: x = 2^k m with m from sqrt(1/2) to sqrt(2), so it is k log(2) + 2
   artanh(s). */
CYGRAD_INLINE float log_of(float x)
{
    const int32_t root_of_half = 0x3F3504F3, above = bits_of(x) - root_of_half;
    const float m = float_of((above & 0x7FFFFF) + root_of_half), s = (m - 1) / (m + 1), z = s * s;
    return (float)(above >> 23) * 0.693147181f
           + s * (2 + z * (0.666666667f + z * (0.4f + z * (0.285714286f + z * 0.222222222f))));
}

/* Turns uniform numbers into exponential ones of that mean; never 0. */
static void make_exponential(float *run, Py_ssize_t n, float mean)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const float drawn = -log_of(1 - run[i]), least = 2.98023224e-8f;                /* 2^-25 */
        run[i] = (drawn > least ? drawn : least) * mean;
    }
}

/* Turns uniform numbers `turns` and exponential ones of mean 2 into normal ones: the coordinates of points in random
   directions whose squared distance from 0 is the latter (G. E. P. Box, M. E. Muller, 1958). Sine and cosine are
   computed for a fourth of the angle, up to pi / 4, by the first terms of their series, and doubled twice. */
static CYGRAD_CLONES void make_normal(float *turns, float *squares, Py_ssize_t n, float mean, float deviation)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const float distance = deviation * sqrtf(squares[i]);
        const float a = (turns[i] - 0.5f) * 1.57079633f, z = a * a;
        const float sine = a + a * z * (-0.166666667f + z * (8.33333333e-3f + z * (-1.98412698e-4f + z * 2.75573192e-6f)));
        const float cosine = 1 + z * (-0.5f + z * (4.16666667e-2f + z * (-1.38888889e-3f + z * 2.48015873e-5f)));
        const float sine_of_2 = 2 * sine * cosine, cosine_of_2 = 1 - 2 * sine * sine;
        turns[i] = mean + distance * (1 - 2 * sine_of_2 * sine_of_2);
        squares[i] = mean + distance * (2 * sine_of_2 * cosine_of_2);
    }
}

/* Turns random 32-bit words into numbers of [0, 1), using their upper 24 bits, scaled to [low, high); where rounding
   reaches the open end, `low` is used. */
static void make_uniform(float *run, Py_ssize_t n, float low, float high, float width)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const float part = (float)(int32_t)((uint32_t)bits_of(run[i]) >> 8) * 5.9604644775390625e-8f;  /* 2^-24 */
        const float x = part * width + low;
        run[i] = x < high ? x : low;
    }
}

CYGRAD_END_LOOPS

/* Numbers of [low, high). Few are drawn one by one, as by NumPy; more are drawn two per 64-bit word. */
static void draw_uniform(bitgen_t *source, float *out, Py_ssize_t size, double low, double high)
{
    if (size < FEW_DRAWS)
        for (Py_ssize_t i = 0; i < size; i++) {
            const uint32_t word = source->next_uint32(source->state);
            memcpy(out + i, &word, 4);
        }
    else
        for (Py_ssize_t i = 0; i < size; i += 2) {
            const uint64_t word = source->next_uint64(source->state);
            memcpy(out + i, &word, i + 1 < size ? 8 : 4);
        }
    make_uniform(out, size, (float)low, (float)high, (float)(high - low));
}

static void toss(float *run, Py_ssize_t n, float chance)
{
    for (Py_ssize_t i = 0; i < n; i++) run[i] = run[i] < chance ? 1 : 0;
}

/* Turns uniform numbers of [0, 1) into another distribution with two parameters, in place. Normal numbers, which are
   made from two, go in chunks of 2 PAIRS, the last of which may need one more number, `spare`. */
static void shape_floats(int what, float *run, Py_ssize_t n, double a, double b, float spare)
{
    if (what == EXPONENTIAL_NUMBERS) make_exponential(run, n, (float)(1 / a));
    else if (what == COINS) toss(run, n, (float)a);
    else if (what == NORMAL_NUMBERS)
        for (; n > 0; n -= 2 * PAIRS, run += 2 * PAIRS) {
            const Py_ssize_t half = n < 2 * PAIRS ? n / 2 : PAIRS;
            make_exponential(run + half, half, 2);
            make_normal(run, run + half, half, (float)a, (float)b);
            if (n < 2 * PAIRS && n % 2) {
                make_exponential(&spare, 1, 2);
                make_normal(run + n - 1, &spare, 1, (float)a, (float)b);
            }
        }
}

/* data: floats, two doubles; n: the distribution, number of floats; real: `spare`. Items are chunks. */
static void shape_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t start = first * 2 * PAIRS, rest = c->n[1] - start;
    const double *given = (const double *)c->data[1];
    shape_floats((int)c->n[0], (float *)c->data[0] + start, rest < count * 2 * PAIRS ? rest : count * 2 * PAIRS,
                 given[0], given[1], (float)c->real);
}

/* The upper half of a product. */
static inline uint64_t upper_half(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__)
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    return __umulh(a, b);
#else
    const uint64_t low = 0xFFFFFFFF, cross = (a >> 32) * (b & low), lowest = (a & low) * (b & low);
    const uint64_t middle = (a & low) * (b >> 32) + (cross & low) + (lowest >> 32);
    return (a >> 32) * (b >> 32) + (cross >> 32) + (middle >> 32);
#endif
}

/* Uniform on 0, ..., span - 1; span < 2^32. D. Lemire, "Fast random integer generation in an interval" (2019): the
   upper half of a product, redrawn where the lower half shows that the result would occur too often. */
static inline uint64_t integer_below(bitgen_t *source, uint64_t span)
{
    uint64_t product;
    if (span == 1) return 0;
    product = source->next_uint32(source->state) * span;
    if ((uint32_t)product < span) {
        const uint32_t surplus = (uint32_t)((((uint64_t)1 << 32) - span) % span);
        while ((uint32_t)product < surplus) product = source->next_uint32(source->state) * span;
    }
    return product >> 32;
}

/* The same for spans from 2^32 on. */
static inline uint64_t wide_integer_below(bitgen_t *source, uint64_t span)
{
    uint64_t word;
    if (span == (uint64_t)1 << 32) return source->next_uint32(source->state);
    word = source->next_uint64(source->state);
    if (word * span < span) {
        const uint64_t surplus = (0 - span) % span;
        while (word * span < surplus) word = source->next_uint64(source->state);
    }
    return upper_half(word, span);
}

/* 0, ..., size - 1 in random order; size < 2^32. From the last one on, each element is swapped with one up to its own
   index, which is drawn with as many bits as that index has, and redrawn if it is above. No processor could predict
   that branch, so there is none: an element is swapped with itself, and its turn comes again. */
static void shuffled(bitgen_t *source, int64_t *out, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) out[i] = i;
    for (uint32_t i = size - (size > 0), mask = UINT32_MAX; i > 0;) {
        uint32_t drawn, is_below;
        int64_t kept = out[i];
        while (mask >> 1 >= i) mask >>= 1;
        drawn = source->next_uint32(source->state) & mask;
        is_below = drawn <= i;
        drawn = i ^ ((i ^ drawn) & -is_below);
        out[i] = out[drawn];
        out[drawn] = kept;
        i -= is_below;
    }
}

/* low, ..., low + span - 1. Few, and those of wide spans, are drawn as by NumPy, more with as many bits as the span
   needs. */
static void draw_integers(bitgen_t *source, int64_t *out, Py_ssize_t size, int64_t low, uint64_t span)
{
    const int bits = span <= NARROW ? 16 : 32;
    const uint64_t whole = (uint64_t)1 << bits, surplus = (whole - span) % span;
    uint64_t word = 0, product;
    int left = 0;
    if (span >> 32)
        for (Py_ssize_t i = 0; i < size; i++) out[i] = (int64_t)((uint64_t)low + wide_integer_below(source, span));
    else if (size < FEW_DRAWS)
        for (Py_ssize_t i = 0; i < size; i++) out[i] = (int64_t)((uint64_t)low + integer_below(source, span));
    else
        for (Py_ssize_t i = 0; i < size; i++) {
            do {
                if (left == 0) word = source->next_uint64(source->state), left = 64;
                product = (word & (whole - 1)) * span;
                word >>= bits, left -= bits;
            } while ((product & (whole - 1)) < surplus);
            out[i] = (int64_t)((uint64_t)low + (product >> bits));
        }
}

/* What to draw: `size` floats of a distribution with the parameters a and b, or doubles of [0, 1), or int64 integers
   low, ..., low + span - 1, or 0, ... in random order. */
typedef struct {
    bitgen_t *source;
    int what, is_float;
    void *out;
    Py_ssize_t size;
    int64_t low;
    uint64_t span;
    double a, b;
} draws;

static void draw_numbers(const draws *d)
{
    double *doubles = d->out;
    if (d->what == SHUFFLED) shuffled(d->source, d->out, (uint32_t)d->size);
    else if (d->what == INTEGERS) draw_integers(d->source, d->out, d->size, d->low, d->span);
    else if (d->is_float) {
        const int is_uniform = d->what == UNIFORM_NUMBERS;
        float spare = 0;
        draw_uniform(d->source, d->out, d->size, is_uniform ? d->a : 0, is_uniform ? d->b : 1);
        if (d->what == NORMAL_NUMBERS && d->size % 2) draw_uniform(d->source, &spare, 1, 0, 1);
        shape_floats(d->what, d->out, d->size, d->a, d->b, spare);
    }
    else for (Py_ssize_t i = 0; i < d->size; i++) doubles[i] = d->source->next_double(d->source->state);
}

/* data: weights, their cumulative sums (doubles); n: row length. Items are rows. Fails if a weight is negative or NaN,
   or the sum of a row is 0 or infinite. */
static void sum_weights_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    for (Py_ssize_t row = first; row < first + count; row++) {
        const double *weights = AT(0, row * c->n[0]);
        double *sums = AT(1, row * c->n[0]), sum = 0;
        int is_wrong = 0;
        for (Py_ssize_t i = 0; i < c->n[0]; i++) {
            is_wrong |= !(weights[i] >= 0);
            sums[i] = sum += weights[i];
        }
        if (is_wrong || !(sum > 0 && sum <= DBL_MAX)) c->failed = 1;
    }
}

/* data: cumulative sums of weights, numbers of [0, 1) (doubles), for each the index (int64) whose weight covers that
   fraction of the sum; n: weights and numbers per row. Items are rows. */
static void pick_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    for (Py_ssize_t k = first * c->n[1]; k < (first + count) * c->n[1]; k++) {
        const double *sums = AT(0, k / c->n[1] * c->n[0]), total = sums[c->n[0] - 1];
        double value = *(const double *)AT(1, k) * total;
        int64_t at = 0;
        if (!(value < total)) value = nextafter(total, 0);      /* rounding has reached the open end */
        for (int64_t left = c->n[0] - 1, half; left > 0; left -= half) {
            half = (left + 1) / 2;
            at += half & -(int64_t)(sums[at + half - 1] <= value);
        }
        ((int64_t *)c->data[2])[k] = at;
    }
}

#endif
