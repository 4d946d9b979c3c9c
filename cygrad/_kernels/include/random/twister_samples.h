/* Random numbers with parameters per element from the Mersenne Twister, by PyTorch's algorithms; called from
   twister.pyx. Numbers are compared in the precision in which PyTorch compares them: `is_float` tells whether the
   parameters are of single precision. */

#ifndef CYGRAD_TWISTER_SAMPLES_H
#define CYGRAD_TWISTER_SAMPLES_H

#include <float.h>
#include <math.h>
#include "random/twister.h"
#include "random/normal_pairs.h"

CYGRAD_BEGIN_PLAIN_LOOPS

#define DEFINE_RANGE_CHECK(TYPE, NAME)                                                                          \
    static CYGRAD_CLONES int NAME(const TYPE *x, Py_ssize_t n, double low, double high)                         \
    {                                                                                                           \
        const TYPE least = (TYPE)low, most = (TYPE)high;                                                        \
        int is_out = 0;                                                                                         \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) is_out |= !(x[i] >= least) | !(x[i] <= most);     \
        return !is_out;                                                                                         \
    }
DEFINE_RANGE_CHECK(float, floats_lie_between)
DEFINE_RANGE_CHECK(double, doubles_lie_between)
#undef DEFINE_RANGE_CHECK

/* Whether no weight is negative and the sum of each row is above 0 and finite. */
#define DEFINE_WEIGHT_CHECK(TYPE, NAME)                                                                         \
    static CYGRAD_CLONES int NAME(const TYPE *x, Py_ssize_t rows, Py_ssize_t length)                            \
    {                                                                                                           \
        for (; rows > 0; rows--, x += length) {                                                                 \
            double sums[8] = {0};                                                                               \
            int is_out = 0;                                                                                     \
            Py_ssize_t i = 0;                                                                                   \
            for (; i + 8 <= length; i += 8)                                                                     \
                for (int j = 0; j < 8; j++) {                                                                   \
                    is_out |= !(x[i + j] >= 0);                                                                 \
                    sums[j] += x[i + j];                                                                        \
                }                                                                                               \
            for (; i < length; i++) {                                                                           \
                is_out |= !(x[i] >= 0);                                                                         \
                sums[0] += x[i];                                                                                \
            }                                                                                                   \
            const double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])); \
            if (is_out || !(sum > 0 && sum <= DBL_MAX)) return 0;                                               \
        }                                                                                                       \
        return 1;                                                                                               \
    }
DEFINE_WEIGHT_CHECK(float, floats_are_weights)
DEFINE_WEIGHT_CHECK(double, doubles_are_weights)
#undef DEFINE_WEIGHT_CHECK

CYGRAD_END_LOOPS

/* From this rate on, counts do not fit into 64 bits; the normal distribution agrees to rounding. */
static const double MOST_COUNTED = 4611686018427387904.0;               /* 2^62 */

/* Small rates: the number of uniform numbers whose product stays above exp(-rate). Others: transformed rejection
   (W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993). */
static double poisson_number(twister *t, double rate)
{
    if (rate == 0) return 0;
    if (!(rate <= MOST_COUNTED)) return rate + sqrt(rate) * next_normal(t);
    if (rate < 10) {
        const double least = exp(-rate);
        int64_t count = 0;
        for (double product = next_unit(t); product > least; product *= next_unit(t)) count++;
        return (double)count;
    }
    const double root = sqrt(rate), log_rate = log(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), tight = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = next_unit(t) - 0.5, v = next_unit(t), inside = 0.5 - fabs(u);
        const double count = floor((2 * a / inside + b) * u + rate + 0.43);
        if (!(count <= 2 * MOST_COUNTED)) continue;
        if (inside >= 0.07 && v <= tight) return count;
        if (count < 0 || (inside < 0.013 && v > inside)) continue;
        if (log(v) + log(inverse) - log(a / (inside * inside) + b) <= -rate + count * log_rate - lgamma(count + 1))
            return count;
    }
}

/* Rejection with a cube of a normal number (G. Marsaglia, W. W. Tsang, "A simple method for generating gamma
   variables", 2000). Below 1, a number of the next larger shape is scaled. `is_log`: its logarithm, for doubles, which
   does not underflow. */
static double gamma_number(twister *t, double shape, int is_float, int is_log)
{
    double scale = is_log ? 0 : 1, d;
    if (!(shape >= 0)) return NAN;
    if (shape == 0) return is_log ? -INFINITY : 0;
    if (is_float) {
        float s = (float)shape;
        if (s < 1) {
            scale = pow(1 - next_unit(t), 1.0f / s);
            s += 1;
        }
        d = s - 1.0f / 3.0f;
    } else {
        if (shape < 1) {
            scale = 1 - next_unit(t);
            scale = is_log ? log(scale) / shape : pow(scale, 1.0 / shape);
            shape += 1;
        }
        d = shape - 1.0f / 3.0f;
    }
    const double c = 1 / sqrt(9 * d);
    for (;;) {
        double x, y;
        do {
            x = next_normal(t);
            y = 1 + c * x;
        } while (y <= 0);
        const double v = y * y * y, u = 1 - next_unit(t), xx = x * x;
        if (u < 1.0 - 0.0331f * xx * xx || log(u) < 0.5 * xx + d * (1.0 - v + log(v)))
            return is_log ? scale + log(d * v) : scale * d * v;
    }
}

/* What Stirling's formula lacks of log(k!). */
static double stirling_rest(double k)
{
    static const double rests[] = {
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
        0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
    };
    if (k < 10) return rests[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* The number of successes up to `trials`, from the waiting times between them. */
static double binomial_by_waiting(twister *t, double trials, double log_failure)
{
    double passed = 0, count = 0;
    for (;;) {
        passed += ceil(log(next_unit(t)) / log_failure);
        if (passed > trials) return count;
        count++;
    }
}

/* Transformed rejection (W. Hoermann, "The generation of binomial random variates", 1993). */
static double binomial_by_rejection(twister *t, double n, double p, double deviation, double product, double odds,
                                    double mode, int is_float)
{
    const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = product + 0.5;
    const double tight = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation;
    const double above = is_float ? (float)n + 1 : n + 1;
    for (;;) {
        const double u = next_unit(t) - 0.5, v = next_unit(t), inside = 0.5 - fabs(u);
        double k = floor((2 * a / inside + b) * u + c), failures, next;
        if (is_float) k = (float)k;
        if (!(k >= 0 && k <= n)) continue;
        if (inside >= 0.07 && v <= tight) return k;
        failures = is_float ? (float)n - (float)k : n - k;
        next = is_float ? (float)k + 1 : k + 1;
        const double failures_1 = is_float ? (float)failures + 1 : failures + 1;
        const double bound = (mode + 0.5) * log((mode + 1) / (odds * (n - mode + 1)))
                             + above * log((n - mode + 1) / failures_1) + (k + 0.5) * log(odds * failures_1 / next)
                             + stirling_rest(mode) + stirling_rest(n - mode) - stirling_rest(k) - stirling_rest(failures);
        if (log(v * alpha / (a / (inside * inside) + b)) <= bound) return k;
    }
}

static double binomial_up_to_half(twister *t, double n, double p, int is_float)
{
    const float nf = (float)n, pf = (float)p;
    const double product = is_float ? nf * pf : n * p;
    if (!(product >= 10)) return binomial_by_waiting(t, n, is_float ? log1pf(-pf) : log1p(-p));
    if (is_float)
        return binomial_by_rejection(t, n, p, sqrtf(nf * pf * (1 - pf)), product, pf / (1 - pf), floorf((nf + 1) * pf), 1);
    return binomial_by_rejection(t, n, p, sqrt(n * p * (1 - p)), product, p / (1 - p), floor((n + 1) * p), 0);
}

static double binomial_number(twister *t, double n, double p, int is_float)
{
    if (isnan(n) || isnan(p)) return NAN;
    if (n <= 0 || p <= 0) return 0;
    if (p >= 1 || isinf(n)) return n;
    if (p <= 0.5) return binomial_up_to_half(t, n, p, is_float);
    return n - binomial_up_to_half(t, n, is_float ? (float)(1.0 - p) : 1.0 - p, is_float);
}

enum { BY_RATE, BY_SHAPE, BY_SHAPE_TO_LOG, BY_TRIALS, BY_CHANCE };

/* One number for each of `size` parameters (and second parameters), floats or doubles; `out` has the same type, but
   coins are bytes. */
static void sample_each(twister *t, int what, int is_float, const void *first, const void *second, void *out,
                        Py_ssize_t size)
{
    const float *floats = first, *more_floats = second;
    const double *doubles = first, *more_doubles = second;
    for (Py_ssize_t i = 0; i < size; i++) {
        const double a = is_float ? floats[i] : doubles[i];
        double made;
        switch (what) {
        case BY_RATE: made = poisson_number(t, a); break;
        case BY_SHAPE: made = gamma_number(t, a, is_float, 0); break;
        case BY_SHAPE_TO_LOG: made = gamma_number(t, a, is_float, 1); break;
        case BY_TRIALS: made = binomial_number(t, a, is_float ? more_floats[i] : more_doubles[i], is_float); break;
        default:
            ((unsigned char *)out)[i] =
                is_float ? (float)(int32_t)(next_word(t) & 0xFFFFFF) * 5.9604644775390625e-8f < floats[i] : next_unit(t) < a;
            continue;
        }
        if (is_float) ((float *)out)[i] = (float)made;
        else ((double *)out)[i] = made;
    }
}

/* `count` indices for each of `rows` rows of weights of this length: those whose running sums, which `sums` has room
   for, divided by the last, first reach a uniform number. Weights are floats or doubles, and so are the sums. All are
   divided at once, unless fewer are looked at. */
#define DEFINE_PICKS(TYPE, NAME)                                                                                \
    static CYGRAD_CLONES void NAME##_divided(TYPE *sums, Py_ssize_t n, TYPE sum)                                \
    {                                                                                                           \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) sums[i] /= sum;                                   \
    }                                                                                                           \
                                                                                                                \
    CYGRAD_INLINE Py_ssize_t NAME##_first(const TYPE *sums, Py_ssize_t last, TYPE sum, int is_divided, double drawn) \
    {                                                                                                           \
        Py_ssize_t low = 0;                                                                                     \
        for (Py_ssize_t rest = last, half; rest > 0; rest -= half) {    /* the last sum is at least `drawn` */  \
            half = (rest + 1) / 2;                                                                              \
            const TYPE at = sums[low + half - 1], part = is_divided ? at : at / sum;                            \
            low += part < drawn ? half : 0;                                                                     \
        }                                                                                                       \
        return low;                                                                                             \
    }                                                                                                           \
                                                                                                                \
    static void NAME(twister *t, const TYPE *weights, TYPE *sums, int64_t *out, Py_ssize_t rows,                \
                     Py_ssize_t length, Py_ssize_t count)                                                       \
    {                                                                                                           \
        const int is_divided = 16 * count > length;                                                             \
        for (; rows > 0; rows--, weights += length) {                                                           \
            TYPE sum = 0;                                                                                       \
            for (Py_ssize_t i = 0; i < length; i++) sums[i] = sum += weights[i];                                \
            if (is_divided) NAME##_divided(sums, length, sum);                                                  \
            for (Py_ssize_t k = 0; k < count; k++) {                                                            \
                const double drawn = next_unit(t);                                                              \
                *out++ = is_divided ? NAME##_first(sums, length - 1, sum, 1, drawn)                             \
                                    : NAME##_first(sums, length - 1, sum, 0, drawn);                            \
            }                                                                                                   \
        }                                                                                                       \
    }
CYGRAD_BEGIN_PLAIN_LOOPS
DEFINE_PICKS(float, pick_by_floats)
DEFINE_PICKS(double, pick_by_doubles)
CYGRAD_END_LOOPS
#undef DEFINE_PICKS

#endif
