/* Arrays of random numbers from the Mersenne Twister, in the order and by the formulas of PyTorch's loops on the CPU;
   called from twister.pyx. */

#ifndef CYGRAD_TWISTER_DRAWS_H
#define CYGRAD_TWISTER_DRAWS_H

#include <math.h>
#include "random/draw.h"
#include "random/twister.h"
#include "random/normal_pairs.h"
#include "simd/vector_math.h"

/* Further kinds of numbers, after those of draw.h. */
enum { CAUCHY_NUMBERS = SHUFFLED + 1, LOG_NORMAL_NUMBERS, TRIALS, WORDS_BELOW, DENSE_NORMAL_NUMBERS,
       DENSE_NORMAL_NUMBERS_TO_BE_ROUNDED };
enum { OF_FLOATS, OF_DOUBLES, OF_WHOLES };     /* the types of numbers: float, double, int64 */

enum { RUN = 512 };
static const uint64_t MOST_NARROW = (uint64_t)1 << 28;     /* from this span on, integers are made of 64 bits */

CYGRAD_BEGIN_PLAIN_LOOPS

/* Numbers of [low, high); where rounding reaches the open end, `low`. `out` may be where the words are. */
static CYGRAD_WIDE_CLONES void uniform_floats(const uint32_t *words, float *out, Py_ssize_t n, float low, float high)
{
    const float width = high - low;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const float unit = (float)(int32_t)(words[i] & 0xFFFFFF) * 5.9604644775390625e-8f;          /* 2^-24 */
        const float x = unit * width + low;
        out[i] = x == high ? low : x;
    }
}

/* 53 bits of two words each, as a number of [0, 1). */
CYGRAD_INLINE double unit_of(const uint32_t *words)
{
    return ((double)(int32_t)(words[0] & 0x1FFFFF) * 4294967296.0 + (double)words[1]) * 1.1102230246251565e-16;
}

static CYGRAD_WIDE_CLONES void uniform_doubles(const uint32_t *words, double *out, Py_ssize_t n, double low, double high)
{
    const double width = high - low;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const double x = unit_of(words + 2 * i) * width + low;
        out[i] = x == high ? low : x;
    }
}

static CYGRAD_WIDE_CLONES void plain_floats(const uint32_t *words, float *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++)
        out[i] = (float)(int32_t)(words[i] & 0xFFFFFF) * 5.9604644775390625e-8f;
}

static CYGRAD_WIDE_CLONES void plain_doubles(const uint32_t *words, double *out, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = unit_of(words + 2 * i);
}

static CYGRAD_WIDE_CLONES void coins_of_doubles(const uint32_t *words, float *out, Py_ssize_t n, double chance)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = unit_of(words + 2 * i) < chance ? 1.0f : 0.0f;
}

/* 1 - u for the u that `unit_of` makes of two words each, as 2^k (1 + t), with 1 + t from sqrt(1/2) to sqrt(2); exact. */
static CYGRAD_CLONES void split_chances(const uint32_t *words, double *t, double *k, Py_ssize_t n)
{
    const int64_t root_of_half = 0x3FE6A09E667F3BCD, mantissa = 0xFFFFFFFFFFFFF, shift = 0x4330000000000000;  /* 2^52 */
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t bits = bits_of_double(1 - unit_of(words + 2 * i)), above = bits - root_of_half + ((int64_t)1024 << 52);
        t[i] = double_of((above & mantissa) + root_of_half) - 1;
        k[i] = double_of((int64_t)((uint64_t)above >> 52) | shift) - (4503599627370496.0 + 1024);
    }
}

/* factor * log(1 - u), from the logarithms of 1 + t and from k. Returns whether some results may be rounded to another
   number than the exact product of factor and log1p is: the logarithm is within 2^-49 of it, and each product is rounded
   both a bit up and a bit down. These become NaN. */
static CYGRAD_CLONES int scale_logarithms(const double *logs, const double *k, float *out, Py_ssize_t n, double factor)
{
    int is_unsure = 0;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const double size = factor * (k[i] * 0.6931471803691238 + (k[i] * 1.9082149292705877e-10 + logs[i]));
        const float least = (float)(size * (1 - 1.4210854715202004e-14)), most = (float)(size * (1 + 1.4210854715202004e-14));
        const int differ = !(least == most) | (size == 0);
        out[i] = differ ? NAN : least;
        is_unsure |= differ;
    }
    return is_unsure;
}

CYGRAD_END_LOOPS

static void take_doubles(twister *t, double *out, Py_ssize_t n)
{
    uint32_t words[2 * RUN];
    for (Py_ssize_t k; n > 0; n -= k, out += k) {
        k = n < RUN ? n : RUN;
        take_words(t, words, 2 * k);
        plain_doubles(words, out, k);
    }
}

/* What to draw: `size` numbers with the parameters a and b, or the integers low, ..., low + span - 1. */
typedef struct {
    int what, type;
    void *out;
    Py_ssize_t size;
    int64_t low;
    uint64_t span;
    double a, b;
} twister_wish;

static void fill_uniform(twister *t, const twister_wish *w)
{
    uint32_t words[2 * RUN];
    const int is_unit = w->a == 0 && w->b == 1, each = w->type == OF_DOUBLES ? 2 : 1;
    for (Py_ssize_t start = 0, n; start < w->size; start += n) {
        n = w->size - start < 2 * RUN / each ? w->size - start : 2 * RUN / each;
        take_words(t, words, each * n);
        if (w->type == OF_DOUBLES) {
            double *out = (double *)w->out + start;
            if (is_unit) plain_doubles(words, out, n);
            else uniform_doubles(words, out, n, w->a, w->b);
        } else {
            float *out = (float *)w->out + start;
            if (is_unit) plain_floats(words, out, n);
            else uniform_floats(words, out, n, (float)w->a, (float)w->b);
        }
    }
}

/* 16 numbers at a time. The rest is drawn, too (not if the numbers will be rounded to a short type), but then the last
   16 are drawn anew. */
static void fill_dense_normal(twister *t, const twister_wish *w)
{
    const Py_ssize_t whole = w->size / PAIR_GROUP * PAIR_GROUP, rest = w->size - whole;
    uint32_t unused[2 * PAIR_GROUP];
    if (w->type == OF_DOUBLES) {
        double *out = w->out;
        normal_doubles(t, out, whole, w->a, w->b);
        take_words(t, unused, 2 * rest);
        if (rest) normal_doubles(t, out + w->size - PAIR_GROUP, PAIR_GROUP, w->a, w->b);
    } else {
        float *out = w->out;
        normal_floats(t, out, whole, (float)w->a, (float)w->b);
        if (w->what == DENSE_NORMAL_NUMBERS) take_words(t, unused, rest);
        if (rest) normal_floats(t, out + w->size - PAIR_GROUP, PAIR_GROUP, (float)w->a, (float)w->b);
    }
}

/* Numbers that are made one by one, in double precision. */
static double next_of(twister *t, const twister_wish *w)
{
    switch (w->what) {
    case NORMAL_NUMBERS: return fma(next_normal(t), w->b, w->a);
    case LOG_NORMAL_NUMBERS: return exp(fma(next_normal(t), w->b, w->a));
    case CAUCHY_NUMBERS: return fma(w->b, tan(3.141592653589793 * (next_unit(t) - 0.5)), w->a);
    case EXPONENTIAL_NUMBERS: return -1.0 / w->a * log1p(-next_unit(t));
    default: return ceil(log(next_unit(t)) / w->b);                                 /* TRIALS */
    }
}

static void fill_one_by_one(twister *t, const twister_wish *wanted)
{
    twister_wish wish = *wanted;
    const twister_wish *w = &wish;
    if (w->what == TRIALS) wish.b = log1p(-w->a);
    float *floats = w->out;
    double *doubles = w->out;
    if (w->type == OF_DOUBLES) for (Py_ssize_t i = 0; i < w->size; i++) doubles[i] = next_of(t, w);
    else for (Py_ssize_t i = 0; i < w->size; i++) floats[i] = (float)next_of(t, w);
}

/* The same numbers as `fill_one_by_one`, in a fourth of the time. */
static void fill_exponential_floats(twister *t, const twister_wish *w)
{
    uint32_t words[2 * RUN];
    double logs[RUN], exponents[RUN];
    const double factor = -1.0 / w->a;
    float *out = w->out;
    for (Py_ssize_t n, left = w->size; left > 0; left -= n, out += n) {
        n = left < RUN ? left : RUN;
        take_words(t, words, 2 * n);
        split_chances(words, logs, exponents, n);
        cygrad_LOG1P_f64(logs, n);
        if (scale_logarithms(logs, exponents, out, n, factor))
            for (Py_ssize_t i = 0; i < n; i++)
                if (isnan(out[i])) out[i] = (float)(factor * log1p(-unit_of(words + 2 * i)));
    }
}

static void fill_coins(twister *t, const twister_wish *w)
{
    uint32_t words[2 * RUN];
    float *out = w->out;
    for (Py_ssize_t start = 0, n; start < w->size; start += n) {
        n = w->size - start < RUN ? w->size - start : RUN;
        take_words(t, words, 2 * n);
        coins_of_doubles(words, out + start, n, w->a);
    }
}

/* The remainders of words: of 32 bits by a multiplication with the inverse of the span (D. Lemire, O. Kaser, N. Kurz,
   "Faster remainder by direct computation", 2019). */
static void fill_integers(twister *t, const twister_wish *w)
{
    uint32_t words[2 * RUN];
    int64_t *out = w->out;
    const uint64_t span = w->span, inverse = UINT64_MAX / (span ? span : 1) + 1;
    if (w->what == INTEGERS && (span == 0 || span >= MOST_NARROW)) {        /* span 0 stands for 2^64 */
        for (Py_ssize_t i = 0; i < w->size; i++) {
            const uint64_t word = next_words(t);
            out[i] = (int64_t)((uint64_t)w->low + (span ? word % span : word));
        }
        return;
    }
    for (Py_ssize_t n, start = 0; start < w->size; start += n) {
        n = w->size - start < 2 * RUN ? w->size - start : 2 * RUN;
        take_words(t, words, n);
        for (Py_ssize_t i = 0; i < n; i++)
            out[start + i] = (int64_t)((uint64_t)w->low + upper_half(inverse * words[i], span));
    }
}

/* 0, ..., size - 1 in random order. */
static void fill_shuffled(twister *t, const twister_wish *w)
{
    int64_t *out = w->out;
    const Py_ssize_t size = w->size;
    if (size < (Py_ssize_t)(UINT32_MAX / 20)) {
        uint32_t words[RUN];
        for (Py_ssize_t i = 0; i < size; i++) out[i] = i;
        for (Py_ssize_t start = 0, n; start < size - 1; start += n) {
            n = size - 1 - start < RUN ? size - 1 - start : RUN;
            take_words(t, words, n);
            for (Py_ssize_t i = start; i < start + n; i++) {
                const Py_ssize_t other = i + (Py_ssize_t)(words[i - start] % (uint32_t)(size - i));
                const int64_t kept = out[i];
                out[i] = out[other];
                out[other] = kept;
            }
        }
    } else
        for (Py_ssize_t i = 0; i < size; i++) {     /* the remainders of 32 bits would not be equally likely */
            const Py_ssize_t other = (Py_ssize_t)(next_words(t) % (uint64_t)(i + 1));
            out[i] = i;
            out[i] = out[other];
            out[other] = i;
        }
}

static void twister_fill(twister *t, const twister_wish *w)
{
    switch (w->what) {
    case UNIFORM_NUMBERS: fill_uniform(t, w); break;
    case DENSE_NORMAL_NUMBERS: case DENSE_NORMAL_NUMBERS_TO_BE_ROUNDED: fill_dense_normal(t, w); break;
    case COINS: fill_coins(t, w); break;
    case INTEGERS: case WORDS_BELOW: fill_integers(t, w); break;
    case SHUFFLED: fill_shuffled(t, w); break;
    case EXPONENTIAL_NUMBERS:
        if (w->type == OF_FLOATS && w->size >= FEW_DRAWS) {
            fill_exponential_floats(t, w);
            break;
        }                               /* falls through */
    default: fill_one_by_one(t, w);
    }
}

/* Integers in another type than int64, which `twister_fill` would make one after the other, too. */
enum { AS_FLOATS, AS_DOUBLES, AS_INT32, AS_UINT8 };

static void twister_fill_as(twister *t, const twister_wish *wanted, int kind)
{
    int64_t drawn[RUN];
    twister_wish w = *wanted;
    w.out = drawn;
    for (Py_ssize_t start = 0; start < wanted->size; start += w.size) {
        w.size = wanted->size - start < RUN ? wanted->size - start : RUN;
        twister_fill(t, &w);
#define CONVERT(TYPE) for (Py_ssize_t i = 0; i < w.size; i++) ((TYPE *)wanted->out)[start + i] = (TYPE)drawn[i]
        switch (kind) {
        case AS_FLOATS: CONVERT(float); break;
        case AS_DOUBLES: CONVERT(double); break;
        case AS_INT32: CONVERT(int32_t); break;
        default: CONVERT(uint8_t);
        }
#undef CONVERT
    }
}

#endif
