/* Functions of chunks of elements, with the widest available vectors, and loops that use them.

   In double precision, functions take so many instructions that each is compiled once, here, for all loops. The stages of
   float32 serve loops that are not themselves compiled for each width (each_width.h); the others inline the function.
   DEFINE_STAGED defines both kinds of loops. All are within 3 ulp. */

#ifndef CYGRAD_VECTOR_MATH_H
#define CYGRAD_VECTOR_MATH_H

#include "platform/target_clones.h"
#include "simd/each_width.h"

#if defined(__GNUC__)
#define CYGRAD_HIDDEN __attribute__((visibility("hidden")))
#else
#define CYGRAD_HIDDEN
#endif

/* Modules compiled for one kind of processors (setup.py) call functions compiled for it. */
#ifdef CYGRAD_PROCESSORS
#define CYGRAD_JOINED(NAME, PROCESSORS) NAME##_##PROCESSORS
#define CYGRAD_OWN(NAME, PROCESSORS) CYGRAD_JOINED(NAME, PROCESSORS)
#define cygrad_EXP_f64 CYGRAD_OWN(cygrad_EXP_f64, CYGRAD_PROCESSORS)
#define cygrad_EXPM1_f64 CYGRAD_OWN(cygrad_EXPM1_f64, CYGRAD_PROCESSORS)
#define cygrad_LOG1P_f64 CYGRAD_OWN(cygrad_LOG1P_f64, CYGRAD_PROCESSORS)
#define cygrad_LOGISTIC_f64 CYGRAD_OWN(cygrad_LOGISTIC_f64, CYGRAD_PROCESSORS)
#define cygrad_ERF_f64 CYGRAD_OWN(cygrad_ERF_f64, CYGRAD_PROCESSORS)
#define cygrad_EXP_f32 CYGRAD_OWN(cygrad_EXP_f32, CYGRAD_PROCESSORS)
#define cygrad_EXPM1_f32 CYGRAD_OWN(cygrad_EXPM1_f32, CYGRAD_PROCESSORS)
#define cygrad_LOG1PEXP_f32 CYGRAD_OWN(cygrad_LOG1PEXP_f32, CYGRAD_PROCESSORS)
#define cygrad_LOGISTIC_f32 CYGRAD_OWN(cygrad_LOGISTIC_f32, CYGRAD_PROCESSORS)
#define cygrad_TANH_f32 CYGRAD_OWN(cygrad_TANH_f32, CYGRAD_PROCESSORS)
#define cygrad_sines_f64 CYGRAD_OWN(cygrad_sines_f64, CYGRAD_PROCESSORS)
#endif

#define STAGES(STAGE)                                                                                           \
    STAGE(EXP, exponential_of_double(x))                                                                        \
    STAGE(EXPM1, exponential_less_1_double(x))          /* x up to 80 */                                        \
    STAGE(LOG1P, log_of_1_and_double(x))                /* x from -0.29 to 1 */                                     \
    STAGE(LOGISTIC, logistic_of_double(x))                                                                                \
    STAGE(ERF, error_function(x))

#define DECLARE_STAGE(NAME, FORMULA) CYGRAD_HIDDEN void cygrad_##NAME##_f64(double *run, Py_ssize_t n);
STAGES(DECLARE_STAGE)
#undef DECLARE_STAGE

/* Of float32, from x to `out`, which may be x. */
#define FLOAT_STAGES(STAGE) STAGE(EXP) STAGE(EXPM1) STAGE(LOG1PEXP) STAGE(LOGISTIC) STAGE(TANH)
#define DECLARE_STAGE(NAME) CYGRAD_HIDDEN void cygrad_##NAME##_f32(const float *x, float *out, Py_ssize_t n);
FLOAT_STAGES(DECLARE_STAGE)
#undef DECLARE_STAGE

/* The function of a float32 stage, for the width at hand. */
#define STAGE_FUNCTION(NAME) OF(NAME)
#define EXP_f32 exponential
#define EXP_UP_TO_0_f32 exponential_up_to_0
#define EXP_BELOW_0_f32 exponential_below_0
#define EXPM1_f32 exponential_less_1            /* x up to 80 */
#define LOG1PEXP_f32 log_of_1_and_exp           /* x up to 0 */
#define LOGISTIC_f32 logistic
#define TANH_f32 hyperbolic_tangent

/* Sines, or cosines for `quarters` = 1; NaN for large arguments. */
CYGRAD_HIDDEN void cygrad_sines_f64(double *run, Py_ssize_t n, int64_t quarters);

#ifdef CYGRAD_DEFINES_STAGES
CYGRAD_BEGIN_CHOOSING_LOOPS

#define LOOPS "simd/float_stages.h"
#define REAL float
#include "simd/each_width.h"
#undef REAL

#define DEFINE_STAGE(NAME)                                                                                      \
    void cygrad_##NAME##_f32(const float *x, float *out, Py_ssize_t n) { CALL_WIDEST(NAME, x, out, n); }
FLOAT_STAGES(DEFINE_STAGE)
#undef DEFINE_STAGE

CYGRAD_INLINE double exponential_less_1_double(double x)
{
    uint64_t k;
    const double e = reduced_double(x < -60 ? -60 : x, &k);
    return e * power_of_2_double(k) + (power_of_2_double(k) - 1);
}

/* 1 / (1 + exp(-x)); the exponential overflows below -709.44. NaN stays NaN. */
CYGRAD_INLINE double logistic_of_double(double x)
{
    uint64_t k;
    double e;
    x = x < -709.7 ? -709.7 : x;
    x = x > 708 ? 708 : x;
    e = reduced_double(-x, &k) + 1;
    return 1 / (1 + e * power_of_2_double(k));
}

/* log(1 + t) for t from -0.29 to 1, via log((1 + t) / 2) where that is nearer to 1, as 2 artanh(s) = 2 s + 2 s q p(q) with
   q = s^2. p is a minimax polynomial with error 1e-18. */
CYGRAD_INLINE double log_of_1_and_double(double t)
{
    const int halved = t > 0.41421356237309503;
    const double s = (halved ? t - 1 : t) / (halved ? t + 3 : t + 2), q = s * s, q2 = q * q;
    const double p = (7.3981322846803528e-2 * q2 + (7.6570103757973753e-2 * q + 9.0917827114752648e-2)) * (q2 * q2)
                     + ((1.1111099276724392e-1 * q + 1.428571437128295e-1) * q2
                        + (1.9999999999706972e-1 * q + 3.3333333333333673e-1));
    return (2 * s * q * p + 2 * s) + (halved ? 0.6931471805599453 : 0);
}

/* The sine of x + quarters pi / 2. With x = k pi / 2 + r and |r| <= pi / 4, it is the sine of r, or the cosine if the
   number of quarters is odd, with the opposite sign from 2 quarters on. They are r + r s p(s) and 1 - s / 2 + s^2 p(s)
   with s = r^2 and minimax polynomials with errors 4e-18 and 5e-20. pi / 2 is subtracted in three parts, the first two
   with 33 bits, so that their products with small k are exact. `rest` is what r has no bits for. */
CYGRAD_INLINE double sine(double x, int64_t quarters)
{
    const double rounder = 6755399441055744.0, rounded = x * 0.6366197723675814 + rounder, k = rounded - rounder;
    const double high = x - k * 1.5707963267341256, middle = k * 6.077100506303966e-11, most = high - middle;
    const double low = k * 2.0222662487959506e-21 - ((high - most) - middle), r = most - low, rest = (most - r) - low;
    const double s = r * r, s2 = s * s, s4 = s2 * s2;
    const double odd = (1.5896226757258135e-10 * s - 2.5050747705274676e-8) * s4
                       + ((2.7557313621023984e-6 * s - 1.9841269829588508e-4) * s2
                          + (8.3333333333221173e-3 * s - 1.6666666666666631e-1));
    const double even = (-1.1359667714654225e-11 * s + 2.0875723644315642e-9) * s4
                        + ((-2.755731435495794e-7 * s + 2.4801587289490885e-5) * s2
                           + (-1.3888888888874137e-3 * s + 4.16666666666666e-2));
    const int64_t at = bits_of_double(rounded) + quarters;
    const double size = at & 1 ? 1 - (0.5 * s - (s2 * even - r * rest)) : r == 0 ? r : r + (r * (s * odd) + rest);
    return fabs(x) <= 1e6 ? double_of(bits_of_double(size) ^ (int64_t)((uint64_t)(at >> 1) << 63)) : NAN;
}

/* x + x p(x^2) up to 1, and 1 - exp(-x^2) p(1 / (x + 2)) above, with minimax polynomials; errors are 7e-18 (relative)
   and 2e-17. */
CYGRAD_INLINE double error_function(double x)
{
    const double size = fabs(x) > 6 ? 6 : fabs(x), u = size * size, t = 1 / (size + 2), t2 = t * t, t4 = t2 * t2;
    const double u2 = u * u, u4 = u2 * u2;
    const double near = (((-7.779467191534695e-10 * u + 1.3710979671121973e-8) * u2
                          + (-1.6206313582529371e-7 * u + 1.644713154718395e-6)) * u4
                         + ((-1.4924712299957764e-5 * u + 1.2055293576788062e-4) * u2
                            + (-8.5483259293105096e-4 * u + 5.2239776061183851e-3))) * u4
                        + ((-2.6866170643111456e-2 * u + 1.1283791670944185e-1) * u2
                           + (-3.761263890318352e-1 * u + 1.2837916709551257e-1));
    const double far = (((50.009613895429569 * t - 103.18228687031072) * t2
                         + (40.412685463385769 * t + 73.161492233350718)) * t4
                        + ((-92.160256075790371 * t + 38.815109813934932) * t2
                           + (-8.5828735516264983 * t + 5.0002705860759118))) * t4
                       + ((1.6889933064302118 * t + 1.1528734879039876) * t2
                          + (5.6294413921914372e-1 * t + 2.8565172448987534e-5));
    uint64_t k;
    const double e = reduced_double(-u, &k) + 1;
    return size < 1 ? x + x * near : copysign(1 - far * (e * power_of_2_double(k)), x);
}

#define DEFINE_STAGE(NAME, FORMULA)                                                                             \
    CYGRAD_WIDE_CLONES void cygrad_##NAME##_f64(double *run, Py_ssize_t n)                                      \
    {                                                                                                           \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const double x = run[i];                                                                            \
            run[i] = FORMULA;                                                                                   \
        }                                                                                                       \
    }
STAGES(DEFINE_STAGE)
#undef DEFINE_STAGE

CYGRAD_WIDE_CLONES void cygrad_sines_f64(double *run, Py_ssize_t n, int64_t quarters)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) run[i] = sine(run[i], quarters);
}

CYGRAD_END_LOOPS
#endif

/* log(1 + exp(x)) for x up to 0 */
CYGRAD_INLINE void cygrad_LOG1PEXP_f64(double *run, Py_ssize_t n)
{
    cygrad_EXP_f64(run, n);
    cygrad_LOG1P_f64(run, n);
}

#define cygrad_EXP_UP_TO_0_f64 cygrad_EXP_f64
#define cygrad_EXP_BELOW_0_f64 cygrad_EXP_f64
enum { STAGE_RUN = 1024 };

/* A loop over n elements: its HEAD, its VARIABLES, the OPERANDS at i, and the result, where e is STAGE applied to
   ARGUMENT. For float32, the function is inlined; DEFINE_IN_RUNS works in runs of elements, whose stage is done by
   RUN_STAGE, one of those below. */
#define DEFINE_STAGED_f32(HEAD, VARIABLES, OPERANDS, STAGE, ARGUMENT, ...)                                      \
    HEAD                                                                                                        \
    {                                                                                                           \
        VARIABLES                                                                                               \
        FOR_ALL(n, OPERANDS const ELEMENTS e = STAGE_FUNCTION(STAGE##_f32)(ARGUMENT); GIVE(out, __VA_ARGS__);)     \
    }
#define DEFINE_IN_RUNS(RUN_STAGE, HEAD, VARIABLES, OPERANDS, STAGE, ARGUMENT, ...)                              \
    HEAD                                                                                                        \
    {                                                                                                           \
        VARIABLES                                                                                               \
        REAL run[STAGE_RUN];                                                                                    \
        for (Py_ssize_t start = 0; start < n; start += STAGE_RUN) {                                             \
            const Py_ssize_t m = n - start < STAGE_RUN ? n - start : STAGE_RUN;                                 \
            CYGRAD_INDEPENDENT for (Py_ssize_t i = start; i < start + m; i++) {                                 \
                OPERANDS                                                                                        \
                run[i - start] = ARGUMENT;                                                                      \
            }                                                                                                   \
            RUN_STAGE(STAGE);                                                                                   \
            CYGRAD_INDEPENDENT for (Py_ssize_t i = start; i < start + m; i++) {                                 \
                OPERANDS                                                                                        \
                const REAL e = run[i - start];                                                                  \
                out[i] = __VA_ARGS__;                                                                           \
            }                                                                                                   \
        }                                                                                                       \
    }
#define RUN_STAGE_f32(STAGE) cygrad_##STAGE##_f32(run, run, m)
#define RUN_STAGE_f64(STAGE) cygrad_##STAGE##_f64(run, m)
#define DEFINE_STAGED_f64(...) DEFINE_IN_RUNS(RUN_STAGE_f64, __VA_ARGS__)

#endif
