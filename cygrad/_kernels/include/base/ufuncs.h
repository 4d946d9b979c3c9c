/* Loops that replace NumPy's where those call a C function for each element; as fast as other elementwise loops.

   Each computes a short chunk of results. Where a loop is unsure of a result (a quotient too large to be exact, an
   intermediate overflow), it leaves a NaN, and NumPy's own loop computes that element. Results thus equal NumPy's, also
   for unusual operands. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_UFUNCS_H
#define CYGRAD_UFUNCS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"
#include "simd/vector_math.h"

/* The largest number of elements per call of a loop, and the multiple that loops round it up to, to need no scalar
   remainder. */
enum { OWN_RUN = 256, OWN_PIECE = 16 };

typedef void (*ufunc_loop)(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings);
enum { REST, REST_OF_DIVISOR, QUOTIENT };       /* which result of a division */
typedef int (*run_loop)(const void *xs, const void *ys, void *out, Py_ssize_t n, int wanted);   /* is there a NaN? */
typedef void (*float_stage)(const float *x, float *out, Py_ssize_t n);

/* Where our loop beats NumPy's, whose elementary functions use 512-bit vectors on Linux. */
enum { EVERYWHERE, IF_FMA, IF_NARROW };

typedef struct {
    const char *name;
    int nin;
    run_loop loop;
    int wanted;
    int where;
    float_stage stage;          /* does the same for any number of contiguous elements, if not NULL */
    ufunc_loop numpy;           /* NumPy's loop and its settings */
    void *settings;
} own_ufunc;

/* Divisions need a vectorized fused multiply-add, on which the elementary functions are built, too. */
#if defined(__GNUC__) && defined(__x86_64__)
#define WITH_FMA __attribute__((target("avx2,fma")))
#define HAS_FMA CYGRAD_SUPPORTS(256)
#ifdef __linux__
#define IS_NARROW (HAS_FMA && !CYGRAD_SUPPORTS(512))
#else
#define IS_NARROW HAS_FMA
#endif
#else
#define WITH_FMA
#define IS_NARROW HAS_FMA
#if defined(__aarch64__) || defined(_M_ARM64) || defined(FP_FAST_FMA)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif
#endif

CYGRAD_BEGIN_CHOOSING_LOOPS

/* 2^x as 2^k exp(t log(2)) with t from -1/2 to 1/2. */
CYGRAD_INLINE float power_with_base_2(float x)
{
    const float rounder = 12582912.0f;
    const float bounded = x > 129 ? 129 : x < -191 ? -191 : x, rounded = bounded + rounder;
    const int32_t k = (int32_t)((uint32_t)bits_of(rounded) - (uint32_t)bits_of(rounder));
    return scaled(of_rest((bounded - (rounded - rounder)) * 0.693147181f), k, bounded);
}

CYGRAD_INLINE double power_with_base_2_double(double x)
{
    const double rounder = 6755399441055744.0, limit = 1100;
    const double bounded = x > limit ? limit : x < -limit ? -limit : x, rounded = bounded + rounder;
    const uint64_t k = (uint64_t)bits_of_double(rounded) - (uint64_t)bits_of_double(rounder), half = ((k + 2048) >> 1) - 1024;
    const double p = of_rest_double((bounded - (rounded - rounder)) * 0.6931471805599453) + 1;
    return p * power_of_2_double(half) * power_of_2_double(k - half);
}

#define REAL float
#define BITS int32_t
#define BITS_OF bits_of
#define OF_BITS float_of
#define WIDE double
#define LARGEST 1e38            /* its square is representable in WIDE */
#define LEAST 0
#define COPYSIGN copysignf
#define ABS fabsf
#define FMA fmaf
#define SQRT sqrtf
#define UNSIGNED uint32_t
#define IS_FLOAT
#define ROUNDER 12582912.0f     /* 1.5 * 2^23 */
#define LIMIT (1 << 21)
#define ROOT_CLONES CYGRAD_CLONES
#define NAME(name) name##_f32
#include "base/ufuncs.h"
#undef REAL
#undef BITS
#undef BITS_OF
#undef OF_BITS
#undef WIDE
#undef LARGEST
#undef LEAST
#undef COPYSIGN
#undef ABS
#undef FMA
#undef SQRT
#undef UNSIGNED
#undef IS_FLOAT
#undef ROUNDER
#undef LIMIT
#undef ROOT_CLONES
#undef NAME

#define REAL double
#define BITS int64_t
#define BITS_OF bits_of_double
#define OF_BITS double_of
#define WIDE double
#define LARGEST 1e150
#define LEAST 1e-140
#define COPYSIGN copysign
#define ABS fabs
#define FMA fma
#define SQRT sqrt
#define UNSIGNED uint64_t
#define ROUNDER 6755399441055744.0      /* 1.5 * 2^52 */
#define LIMIT (1LL << 50)
#define ROOT_CLONES             /* no clones, as below: memory-bound or rarely used */
#define NAME(name) name##_f64
#include "base/ufuncs.h"
#undef REAL
#undef BITS
#undef BITS_OF
#undef OF_BITS
#undef WIDE
#undef LARGEST
#undef LEAST
#undef COPYSIGN
#undef ABS
#undef FMA
#undef SQRT
#undef UNSIGNED
#undef IS_FLOAT
#undef ROUNDER
#undef LIMIT
#undef ROOT_CLONES
#undef NAME

#define DEFINE_BY_STAGE(FUNCTION, UNSURE, STAGE, ...)                                                           \
    static int FUNCTION(const void *xs, const void *ys, void *outs, Py_ssize_t n, int wanted)                   \
    {                                                                                                           \
        double *out = outs;                                                                                     \
        int64_t is_nan = 0;                                                                                     \
        (void)ys, (void)wanted;                                                                                 \
        memcpy(out, xs, n * sizeof *out);                                                                       \
        STAGE(out, __VA_ARGS__);                                                                                \
        for (Py_ssize_t i = 0; UNSURE && i < n; i++)                                                            \
            is_nan |= (fabs(((const double *)xs)[i]) < INFINITY) & (out[i] != out[i]);                          \
        return is_nan != 0;                                                                                     \
    }
#define DEFINE_BY_FLOAT_STAGE(FUNCTION, STAGE)                                                                  \
    static int FUNCTION(const void *xs, const void *ys, void *outs, Py_ssize_t n, int wanted)                   \
    {                                                                                                           \
        (void)ys, (void)wanted;                                                                                 \
        STAGE(xs, outs, n);                                                                                     \
        return 0;                                                                                               \
    }
DEFINE_BY_FLOAT_STAGE(exponentials_f32, cygrad_EXP_f32)
DEFINE_BY_FLOAT_STAGE(hyperbolic_tangents_f32, cygrad_TANH_f32)
DEFINE_BY_STAGE(exponentials_f64, 0, cygrad_EXP_f64, n)
DEFINE_BY_STAGE(sines_f64, 1, cygrad_sines_f64, n, 0)
DEFINE_BY_STAGE(cosines_f64, 1, cygrad_sines_f64, n, 1)

static int tangents_f64(const void *xs, const void *ys, void *outs, Py_ssize_t n, int wanted)
{
    double cosines[OWN_RUN], *const out = outs;
    const int is_nan = sines_f64(xs, ys, out, n, wanted);
    cosines_f64(xs, ys, cosines, n, wanted);
    for (Py_ssize_t i = 0; i < n; i++) out[i] /= cosines[i];
    return is_nan;
}

CYGRAD_END_LOOPS

#include "base/wide_arithmetic.h"

static own_ufunc own_ufuncs[] = {       /* alternating float and double */
#define STAGED(NAME, FUNCTION, WHERE, STAGE) {NAME, 1, FUNCTION, 0, WHERE, STAGE, NULL, NULL},
#define ONE(NAME, NIN, FUNCTION, WANTED, WHERE) {NAME, NIN, FUNCTION, WANTED, WHERE, NULL, NULL, NULL},
#define BOTH(NAME, NIN, FUNCTION, WANTED, WHERE) \
    ONE(NAME, NIN, FUNCTION##_f32, WANTED, WHERE) ONE(NAME, NIN, FUNCTION##_f64, WANTED, WHERE)
    BOTH("fmod", 2, divided, REST, IF_FMA) BOTH("remainder", 2, divided, REST_OF_DIVISOR, IF_FMA)
    BOTH("floor_divide", 2, divided, QUOTIENT, IF_FMA) BOTH("hypot", 2, hypots, 0, EVERYWHERE)
    BOTH("copysign", 2, copied_signs, 0, EVERYWHERE) BOTH("nextafter", 2, neighbours, 0, EVERYWHERE)
    STAGED("exp", exponentials_f32, EVERYWHERE, cygrad_EXP_f32) ONE("exp", 1, exponentials_f64, 0, EVERYWHERE)
    ONE("exp2", 1, powers_of_2_f32, 0, EVERYWHERE) ONE("exp2", 1, powers_of_2_f64, 0, IF_NARROW)
    ONE("sin", 1, sines_f32, 0, IF_NARROW) ONE("sin", 1, sines_f64, 0, EVERYWHERE)
    ONE("cos", 1, cosines_f32, 0, IF_NARROW) ONE("cos", 1, cosines_f64, 0, EVERYWHERE)
    BOTH("tan", 1, tangents, 0, IF_NARROW)
    BOTH("log", 1, logarithms, 0, IF_NARROW) BOTH("log2", 1, logarithms_to_2, 0, IF_NARROW)
    BOTH("log10", 1, logarithms_to_10, 0, IF_FMA) BOTH("log1p", 1, logarithms_of_1_and, 0, IF_NARROW)
    BOTH("expm1", 1, exponentials_less_1, 0, IF_NARROW)
    BOTH("sinh", 1, hyperbolic_sines, 0, IF_NARROW) BOTH("cosh", 1, hyperbolic_cosines, 0, IF_NARROW)
    STAGED("tanh", hyperbolic_tangents_f32, IF_FMA, cygrad_TANH_f32)
    ONE("tanh", 1, hyperbolic_tangents_f64, 0, IF_NARROW) BOTH("arcsinh", 1, inverse_hyperbolic_sines, 0, IF_NARROW)
    BOTH("arccosh", 1, inverse_hyperbolic_cosines, 0, IF_NARROW)
    BOTH("arctanh", 1, inverse_hyperbolic_tangents, 0, IF_NARROW)
    BOTH("arcsin", 1, arcsines, 0, IF_NARROW) BOTH("arccos", 1, arccosines, 0, IF_NARROW)
    BOTH("arctan", 1, arctangents, 0, IF_NARROW) BOTH("arctan2", 2, angles, 0, IF_NARROW)
#undef STAGED
#undef ONE
#undef BOTH
};

static void copy_steps(char *to, Py_ssize_t to_step, const char *from, Py_ssize_t step, Py_ssize_t n, int is_double)
{
    for (; n > 0; n--, from += step, to += to_step)
        if (is_double) memcpy(to, from, 8);
        else memcpy(to, from, 4);
}

static void run_own(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings)
{
    const own_ufunc *own = settings;
    if (own->stage && steps[0] == sizeof(float) && steps[1] == sizeof(float)) {
        own->stage((const float *)data[0], (float *)data[1], *n);
        return;
    }
    const int is_double = (own - own_ufuncs) % 2, nin = own->nin;
    const Py_ssize_t size = is_double ? 8 : 4, to_step = steps[nin];
    double room[3][OWN_RUN];
    const char *in[2] = {data[0], data[nin - 1]};
    char *out = data[nin];
    for (Py_ssize_t done = 0; done < *n; done += OWN_RUN, out += OWN_RUN * to_step) {
        const Py_ssize_t m = *n - done < OWN_RUN ? *n - done : OWN_RUN;
        const int is_whole = m % OWN_PIECE == 0;
        const void *given[2] = {in[0], in[1]};
        for (int k = 0; k < nin; k++) {
            if (steps[k] == size && is_whole) continue;
            if (steps[k] || !done) copy_steps((char *)room[k], size, in[k], steps[k], m, is_double);
            given[k] = room[k];
        }
        /* operands must stay intact until the end of the chunk, in case NumPy's loop has to read them */
        const int is_apart = to_step == size && is_whole && out != in[0] && out != in[1];
        char *const made = is_apart ? out : (char *)room[2];
        if (own->loop(given[0], given[nin - 1], made, m, own->wanted))
            for (Py_ssize_t i = 0; i < m; i++) {
                const Py_ssize_t one = 1, none[3] = {0};
                char *at[3] = {(char *)in[0] + i * steps[0], (char *)in[1] + i * steps[nin - 1]};
                at[nin] = made + i * size;
                if (is_double ? isnan(*(double *)at[nin]) : isnan(*(float *)at[nin]))
                    own->numpy(at, &one, none, own->settings);
            }
        if (!is_apart) copy_steps(out, to_step, made, size, m, is_double);
        in[0] += m * steps[0];
        in[1] += m * steps[nin - 1];
    }
}

/* Logical functions by NumPy's loop for !=, which is vectorized, unlike its loops for logical functions. */
typedef struct {
    uint8_t of_both, of_one;    /* the result where both are true, and where one is */
    ufunc_loop differ;
    void *settings;
} own_logical;

enum { LOGICAL_RUN = 1024 };

CYGRAD_BEGIN_PLAIN_LOOPS
static void join_truths(uint8_t *a, const uint8_t *b, uint8_t of_both, uint8_t of_one)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < LOGICAL_RUN; i++)
        a[i] = (a[i] & b[i] & of_both) | ((a[i] ^ b[i]) & of_one);
}
CYGRAD_END_LOOPS

static void run_logical(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings)
{
    const own_logical *own = settings;
    double zero = 0;
    uint8_t truths[2][LOGICAL_RUN];
    for (Py_ssize_t done = 0; done < *n; done += LOGICAL_RUN) {
        const Py_ssize_t m = *n - done < LOGICAL_RUN ? *n - done : LOGICAL_RUN;
        char *out = data[2] + done * steps[2];
        for (int k = 0; k < 2; k++) {
            const Py_ssize_t taken[3] = {steps[k], 0, 1};
            char *given[3] = {data[k] + done * steps[k], (char *)&zero, (char *)truths[k]};
            own->differ(given, &m, taken, own->settings);
        }
        join_truths(truths[0], truths[1], own->of_both, own->of_one);
        if (steps[2] == 1) memcpy(out, truths[0], m);
        else for (Py_ssize_t i = 0; i < m; i++) out[i * steps[2]] = (char)truths[0][i];
    }
}

/* Replaces the loop of logical_or, logical_and or logical_xor by one that uses the loop of not_equal. */
static void replace_logical(const char *name, int is_double, ufunc_loop differ, void *differ_settings, ufunc_loop *loop,
                            void **settings)
{
    static own_logical owns[6] = {{1, 1}, {1, 1}, {1, 0}, {1, 0}, {0, 1}, {0, 1}};
    own_logical *own = owns + (name[8] == 'o' ? 0 : name[8] == 'a' ? 2 : 4) + (is_double != 0);
    own->differ = differ;
    own->settings = differ_settings;
    *loop = run_logical;
    *settings = own;
}

/* Replaces NumPy's loop by ours if there is one; returns whether there is. */
static int replace_loop(const char *name, int is_double, ufunc_loop *loop, void **settings)
{
    const int has_fma = HAS_FMA, is_narrow = IS_NARROW;
    for (size_t i = is_double != 0; i < sizeof own_ufuncs / sizeof *own_ufuncs; i += 2) {
        own_ufunc *own = own_ufuncs + i;
        if (strcmp(own->name, name) || (own->where == IF_FMA && !has_fma) || (own->where == IF_NARROW && !is_narrow)) continue;
        if (!own->numpy) {
            own->settings = *settings;
            own->numpy = *loop;
        }
        *loop = run_own;
        *settings = own;
        return 1;
    }
    return widen_loop(name, is_double, loop, settings);
}

#endif
#else

/* UNSURE selects the operands for which a NaN is left to NumPy. */
#define DEFINE_RUN(CLONES, FUNCTION, UNSURE, ...)                                                               \
    static CLONES int NAME(FUNCTION)(const void *xs, const void *ys, void *outs, Py_ssize_t n, int wanted)      \
    {                                                                                                           \
        BITS is_nan = 0;                                                                                        \
        const REAL rounds_down = wanted != REST;                                                                \
        const BITS of_divisor = -(wanted == REST_OF_DIVISOR), of_quotient = -(wanted == QUOTIENT);              \
        REAL *const out = outs;                                                                                 \
        (void)ys, (void)rounds_down, (void)of_divisor, (void)of_quotient;                                       \
        n = (n + OWN_PIECE - 1) & -(Py_ssize_t)OWN_PIECE;                                                       \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const REAL x = ((const REAL *)xs)[i];                                                               \
            REAL r;                                                                                             \
            __VA_ARGS__                                                                                         \
            out[i] = r;                                                                                         \
            is_nan |= (UNSURE) & (r != r);                                                                      \
        }                                                                                                       \
        return is_nan != 0;                                                                                     \
    }
#define DEFINE_RUN2(CLONES, FUNCTION, UNSURE, ...) \
    DEFINE_RUN(CLONES, FUNCTION, UNSURE, const REAL y = ((const REAL *)ys)[i]; __VA_ARGS__)

/* The remainder of x / y, with the sign of x or of y, or the quotient, rounded down. The remainder is exact, because
   FMA rounds once, after subtracting the product from x. The integer nearest to the quotient may be one too far from
   0. */
DEFINE_RUN2(WITH_FMA, divided, (x == x) & (y == y),
    const REAL exact = x / y;
    const REAL size = ABS(exact) < LIMIT ? ABS(exact) : (REAL)NAN;
    REAL q = COPYSIGN((size + ROUNDER) - ROUNDER, exact);
    REAL rest = FMA(-q, y, x);
    const REAL over = COPYSIGN(1, x) * rest;
    rest = over < 0 ? rest + COPYSIGN(y, x) : rest;
    q = over < 0 ? q - COPYSIGN(1, exact) : q;
    const REAL beside = COPYSIGN(rounds_down, y) * rest;
    q = beside < 0 ? q - 1 : q;
    q = q == 0 ? COPYSIGN(0, exact) : q;
    q = rest == rest ? q : rest;
    rest = COPYSIGN(beside < 0 ? rest + y : rest, OF_BITS((BITS_OF(y) & of_divisor) | (BITS_OF(x) & ~of_divisor)));
    r = OF_BITS((BITS_OF(q) & of_quotient) | (BITS_OF(rest) & ~of_quotient));)

DEFINE_RUN2(ROOT_CLONES, hypots, 1,
    const WIDE wide = x;
    const WIDE s = sqrt(wide * wide + (WIDE)y * y);
    r = (REAL)s;
    r = s <= LARGEST && s >= LEAST ? r : (REAL)NAN;)

DEFINE_RUN2(, copied_signs, 0, r = COPYSIGN(x, y);)

/* The bit pattern of the next number away from 0 is larger by one. */
DEFINE_RUN2(, neighbours, 0,
    const BITS step = x != x || x == 0 ? 0 : (x < y) == (x > 0) ? 1 : -1;
    r = x == 0 ? COPYSIGN(OF_BITS(1), y) : OF_BITS(BITS_OF(x) + step);
    r = x == y ? y : r;
    r = x != x || y != y ? x + y : r;)

#include "elementwise/elementary.h"

DEFINE_RUN(WITH_FMA, logarithms, x > 0, r = NAME(logarithm)(x);)
DEFINE_RUN(WITH_FMA, logarithms_to_2, x > 0, r = NAME(logarithm_to_2)(x);)
DEFINE_RUN(WITH_FMA, logarithms_to_10, x > 0, r = NAME(logarithm_to_10)(x);)
DEFINE_RUN(WITH_FMA, logarithms_of_1_and, x > 0, r = NAME(log_of_1_and)(x);)
DEFINE_RUN(WITH_FMA, exponentials_less_1, 0, r = NAME(exp_less_1)(x);)
DEFINE_RUN(WITH_FMA, hyperbolic_sines, x == x, r = NAME(hyperbolic_sine)(x);)
DEFINE_RUN(WITH_FMA, hyperbolic_cosines, x == x, r = NAME(hyperbolic_cosine)(x);)
DEFINE_RUN(WITH_FMA, inverse_hyperbolic_sines, x == x, r = NAME(inverse_hyperbolic_sine)(x);)
DEFINE_RUN(WITH_FMA, inverse_hyperbolic_cosines, x > 1, r = NAME(inverse_hyperbolic_cosine)(x);)
DEFINE_RUN(WITH_FMA, inverse_hyperbolic_tangents, 0, r = NAME(inverse_hyperbolic_tangent)(x);)
DEFINE_RUN(WITH_FMA, arcsines, 0, r = NAME(arcsine)(x);)
DEFINE_RUN(WITH_FMA, arccosines, 0, r = NAME(arccosine)(x);)
DEFINE_RUN(WITH_FMA, arctangents, 0, r = NAME(arctangent)(x);)
DEFINE_RUN2(WITH_FMA, angles, (x == x) & (y == y), r = NAME(angle)(x, y);)
#ifdef IS_FLOAT
DEFINE_RUN(CYGRAD_WIDE_CLONES, powers_of_2, 0, r = power_with_base_2(x);)
DEFINE_RUN(WITH_FMA, sines, ABS(x) < INFINITY, r = sine_of_float(x, 0);)
DEFINE_RUN(WITH_FMA, cosines, ABS(x) < INFINITY, r = sine_of_float(x, 1);)
DEFINE_RUN(WITH_FMA, tangents, ABS(x) < INFINITY, r = tangent_of_float(x);)
#else
DEFINE_RUN(WITH_FMA, powers_of_2, 0, r = power_with_base_2_double(x);)
DEFINE_RUN(WITH_FMA, hyperbolic_tangents, 0, r = NAME(hyperbolic_tangent)(x);)
#endif

#undef DEFINE_RUN
#undef DEFINE_RUN2
#endif
