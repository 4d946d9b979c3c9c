/* Elementwise loops that NumPy lacks, or that are faster than NumPy's. */

#ifndef CYGRAD_ELEMENTWISE_H
#define CYGRAD_ELEMENTWISE_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"
#include "simd/vector_math.h"

CYGRAD_BEGIN_PLAIN_LOOPS

/* min(max(x, low), high), where NaN stays NaN; bounds must not be NaN. */
#define DEFINE_CLAMP(NAME, REAL)                                                                                \
    static CYGRAD_CLONES void NAME(const REAL *x, REAL *out, Py_ssize_t n, REAL low, REAL high)                 \
    {                                                                                                           \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            REAL raised = x[i] < low ? low : x[i];                                                              \
            out[i] = raised > high ? high : raised;                                                             \
        }                                                                                                       \
    }

DEFINE_CLAMP(clamp_float, float)
DEFINE_CLAMP(clamp_double, double)
DEFINE_CLAMP(clamp_int64, int64_t)

#undef DEFINE_CLAMP

#define DEFINE_FUNCTION(NAME, REAL, ...)                                                                        \
    static CYGRAD_CLONES void NAME(const REAL *xs, REAL *out, Py_ssize_t n)                                     \
    {                                                                                                           \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const REAL x = xs[i];                                                                               \
            out[i] = __VA_ARGS__;                                                                               \
        }                                                                                                       \
    }

/* -1, 0 or 1; 0 for NaN */
DEFINE_FUNCTION(sign_float, float, (x > 0 ? 1.0f : 0.0f) - (x < 0 ? 1.0f : 0.0f))
DEFINE_FUNCTION(sign_double, double, (x > 0 ? 1.0 : 0.0) - (x < 0 ? 1.0 : 0.0))

DEFINE_FUNCTION(rsqrt_float, float, 1 / sqrtf(x))
DEFINE_FUNCTION(rsqrt_double, double, 1 / sqrt(x))

#undef DEFINE_FUNCTION

enum { SIGN, RSQRT };

static void run_function(char **data, Py_ssize_t n, int function, int is_single)
{
    if (is_single) (function == SIGN ? sign_float : rsqrt_float)((const float *)data[0], (float *)data[1], n);
    else (function == SIGN ? sign_double : rsqrt_double)((const double *)data[0], (double *)data[1], n);
}

/* Selects a where the condition holds (bytes of 0 or 1), else b, by bit masks: unpredictable branches cost ten times as
   much. One of a and b may be a single number. */
#define DEFINE_SELECT(NAME, BITS)                                                                               \
    static CYGRAD_CLONES void NAME(const uint8_t *c, const BITS *a, const BITS *b, BITS *out, Py_ssize_t n,     \
                                   int a_is_one, int b_is_one)                                                  \
    {                                                                                                           \
        if (a_is_one) {                                                                                         \
            BITS one = *a;                                                                                      \
            CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++)                                               \
                out[i] = b[i] ^ ((one ^ b[i]) & -(BITS)c[i]);                                                   \
        }                                                                                                       \
        else if (b_is_one) {                                                                                    \
            BITS one = *b;                                                                                      \
            CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++)                                               \
                out[i] = one ^ ((a[i] ^ one) & -(BITS)c[i]);                                                    \
        }                                                                                                       \
        else                                                                                                    \
            CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++)                                               \
                out[i] = b[i] ^ ((a[i] ^ b[i]) & -(BITS)c[i]);                                                  \
    }

#if defined(__GNUC__)
typedef uint64_t half_aligned __attribute__((aligned(4)));     /* complex64 numbers may begin there */
#else
typedef uint64_t half_aligned;
#endif

DEFINE_SELECT(select_4, uint32_t)
DEFINE_SELECT(select_8, half_aligned)

#undef DEFINE_SELECT

/* The error function of float32 within 0.51 ulp: erf(x) / x as a polynomial in x^2 of degree 18, interpolating at
   Chebyshev points up to |x| = 3.92, beyond which the nearest float32 is 1. */
static CYGRAD_WIDE_CLONES void erf_float(const float *x, float *out, Py_ssize_t n)
{
    const int32_t infinity = 0x7f800000, end = 0x407ae148;         /* 3.92 */
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        int32_t bits, size;                 /* compared as integers, because the loop must not branch */
        memcpy(&bits, x + i, sizeof bits);
        size = bits & 0x7fffffff;
        bits &= ~0x7fffffff;
        size = ((size > end) & (size <= infinity)) ? end : size;      /* NaN stays NaN */
        bits |= size;
        float bounded;
        memcpy(&bounded, &bits, sizeof bits);
        double a = bounded, u = a * a * (2 / (3.92 * 3.92)) - 1;
        double p = 5.787075937596934e-05;
        p = p * u - 0.00015692440032772108;
        p = p * u + 0.0001333098681291298;
        p = p * u - 0.0002723422547827982;
        p = p * u + 0.001041229503650691;
        p = p * u - 0.0022124068209345643;
        p = p * u + 0.003885854594976105;
        p = p * u - 0.007086718702040015;
        p = p * u + 0.012468932335180904;
        p = p * u - 0.020190636119424878;
        p = p * u + 0.030523584258107743;
        p = p * u - 0.04341379006512125;
        p = p * u + 0.058187025170074964;
        p = p * u - 0.07401724522838117;
        p = p * u + 0.09062260302211611;
        p = p * u - 0.10917990035417544;
        p = p * u + 0.13408337042832535;
        p = p * u - 0.18010860288362354;
        p = p * u + 0.3607368202093705;
        out[i] = (float)(a * p);
    }
}

#define REAL double
DEFINE_STAGED_f64(static void erf_double(const double *x, double *out, Py_ssize_t n), , , ERF, x[i], e)
#undef REAL

CYGRAD_END_LOOPS
#endif
