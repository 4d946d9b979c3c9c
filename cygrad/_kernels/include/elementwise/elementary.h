/* Vectorized elementary functions, for processors without 512-bit vectors, where NumPy calls a C function for each
   element. Included by `ufuncs.h` once for each type; results are within 3 ulp.

   Polynomials are minimax approximations (Remez); their maximum errors, relative to the function, are noted beside
   them. Inputs that are not handled here (subnormal numbers, large angles) give NaN, and NumPy's own loop computes
   them. */

/* Polynomials given by their coefficients, constant term first. */
#define P2(z, a, b, c) (((c) * z + (b)) * z + (a))
#define P3(z, a, b, ...) (P2(z, b, __VA_ARGS__) * z + (a))
#define P4(z, a, b, ...) (P3(z, b, __VA_ARGS__) * z + (a))
#define P6(z, a, b, c, ...) ((P4(z, c, __VA_ARGS__) * z + (b)) * z + (a))
#define P8(z, a, b, c, ...) ((P6(z, c, __VA_ARGS__) * z + (b)) * z + (a))
#define P11(z, a, b, c, d, ...) (((P8(z, d, __VA_ARGS__) * z + (c)) * z + (b)) * z + (a))
#define P15(z, a, b, c, d, e, ...) ((((P11(z, e, __VA_ARGS__) * z + (d)) * z + (c)) * z + (b)) * z + (a))
#define P19(z, a, b, c, d, e, ...) ((((P15(z, e, __VA_ARGS__) * z + (d)) * z + (c)) * z + (b)) * z + (a))

#ifdef IS_FLOAT
#define DIGITS 23
#define BIAS 127
#define LEAST_NORMAL 1.17549435e-38f
#define TINY 1e-8f                      /* below this, log(1 + x), sinh(x), ... round to x */
#define HUGE_ROOT 1e18f                 /* its square is representable */
#define HALF_ROOT 0.707106769f
#define LOG_2 0.693359375f
#define REST_OF_LOG_2 -2.12194440e-4f
#define LOG10_2 0.301025391f
#define REST_OF_LOG10_2 4.60503898e-6f
#define HALF_PI 1.57079637f
#define REST_OF_HALF_PI -4.37113883e-8f
#define WHOLE int32_t
#define REDUCED reduced
#define POWER_OF_2 power_of_2
#define LARGEST_EXPONENT 88.8f            /* keeps the power of 2 in exp(x) / 2 representable */
#define LOG_TERMS(z) P2(z, 0.666667764f, 0.399775407f, 0.298717473f)        /* 8e-10 */
#define ARCSINE_TERMS(z) P4(z, 0.166667539f, 7.49524188e-2f, 4.54770881e-2f, 2.41476468e-2f, 4.22184963e-2f)   /* 5e-9 */
#define ARCTANGENT_TERMS(z) P8(z, -0.333333019f, 0.199986387f, -0.142652454f, 0.109575753f, -8.41945435e-2f, \
                               5.82344438e-2f, -3.14555754e-2f, 1.10643682e-2f, -1.8271952e-3f)                /* 2e-9 */
#else
#define DIGITS 52
#define BIAS 1023
#define LEAST_NORMAL 2.2250738585072014e-308
#define TINY 1e-17
#define HUGE_ROOT 1e150
#define HALF_ROOT 0.7071067811865476
#define LOG_2 0.6931471803691238
#define REST_OF_LOG_2 1.9082149292705877e-10
#define LOG10_2 0.30102999566361177
#define REST_OF_LOG10_2 3.6942390771589305e-13
#define HALF_PI 1.5707963267948966
#define REST_OF_HALF_PI 6.123233995736766e-17
#define WHOLE uint64_t
#define REDUCED reduced_double
#define POWER_OF_2 power_of_2_double
#define LARGEST_EXPONENT 710.0
#define LOG_TERMS(z) P6(z, 0.6666666666666734, 0.39999999999414687, 0.28571428742386473, 0.22222198573278898, \
                        0.1818356432179074, 0.15314050651414476, 0.14795948827546962)                          /* 1e-18 */
#define ARCSINE_TERMS(z) P11(z, 0.16666666666665383, 0.07500000000343068, 0.0446428568234688, 0.03038195933161565, \
                             0.022371753518390564, 0.017359771138046882, 0.013884598462968929, 0.012173278052968434, \
                             0.006510862496454243, 0.01957387422177692, -0.016294015979015784, 0.03195892248505278) /* 2e-17 */
#define ARCTANGENT_TERMS(z) P19(z, -0.33333333333333093, 0.1999999999995544, -0.14285714282802453, \
                                0.11111111013656745, -0.0909090711934586, 0.07692281187642952, -0.06666415003492865, \
                                0.058805925848734154, -0.05253805671529612, 0.047232937185030466, \
                                -0.042217186378621305, 0.03669354084756223, -0.029985586357869465, \
                                0.02208516443840523, -0.013994996886924236, 0.007263364827550084, \
                                -0.0029193464305275075, 0.0008434866707182279, -0.0001547976242703101, \
                                1.3489350148196501e-5)                                                         /* 4e-18 */
#endif

#define LARGE ((REAL)((BITS)1 << DIGITS))       /* adding it to an integer leaves that in the lowest bits */

/* x = 2^k m with m from sqrt(1/2) to sqrt(2). */
CYGRAD_INLINE REAL NAME(mantissa)(REAL x, REAL *k)
{
    const UNSIGNED mask = ((UNSIGNED)1 << DIGITS) - 1;
    const UNSIGNED shifted = (UNSIGNED)BITS_OF(x) + (UNSIGNED)(BITS_OF(1) - BITS_OF(HALF_ROOT));
    *k = OF_BITS((BITS)(shifted >> DIGITS) | BITS_OF(LARGE)) - (LARGE + BIAS);
    return OF_BITS((BITS)(shifted & mask) + BITS_OF(HALF_ROOT));
}

/* log(1 + f) for 1 + f from sqrt(1/2) to sqrt(2): with s = f / (2 + f) it is 2 s + s^3 p(s^2), and 2 s is computed as f
   - f^2 / 2 + s f^2 / 2, which loses the least precision. */
CYGRAD_INLINE REAL NAME(log_near_1)(REAL f)
{
    const REAL s = f / (2 + f), z = s * s, half = (REAL)0.5 * f * f;
    return f - (half - s * (half + z * LOG_TERMS(z)));
}

/* a log(x), where b + c = a log(2). */
CYGRAD_INLINE REAL NAME(scaled_logarithm)(REAL x, REAL a, REAL b, REAL c)
{
    REAL k;
    const REAL m = NAME(mantissa)(x, &k), r = (a * NAME(log_near_1)(m - 1) + c * k) + b * k;
    const REAL up_to_infinity = x < (REAL)INFINITY ? r : x;
    return x >= LEAST_NORMAL ? up_to_infinity : x == 0 ? -(REAL)INFINITY : (REAL)NAN;
}

CYGRAD_INLINE REAL NAME(logarithm)(REAL x) { return NAME(scaled_logarithm)(x, 1, LOG_2, REST_OF_LOG_2); }
CYGRAD_INLINE REAL NAME(logarithm_to_2)(REAL x) { return NAME(scaled_logarithm)(x, (REAL)1.4426950408889634, 1, 0); }
CYGRAD_INLINE REAL NAME(logarithm_to_10)(REAL x)
{
    return NAME(scaled_logarithm)(x, (REAL)0.43429448190325183, LOG10_2, REST_OF_LOG10_2);
}

/* log(1 + x), corrected for the rounding error of 1 + x. */
CYGRAD_INLINE REAL NAME(log_of_1_and)(REAL x)
{
    const REAL sum = 1 + x, lost = x - (sum - 1);
    REAL k, f, r;
    f = NAME(mantissa)(sum, &k) - 1;
    f += lost * OF_BITS((BITS)((UNSIGNED)BITS_OF(LARGE + (BIAS - k)) << DIGITS));      /* 2^-k */
    r = (NAME(log_near_1)(f) + k * REST_OF_LOG_2) + k * LOG_2;
    r = ABS(x) < TINY || sum == (REAL)INFINITY ? x : r;
    return sum > 0 ? r : sum == 0 ? -(REAL)INFINITY : (REAL)NAN;
}

/* (exp(x) - 1) / 2, which is finite where exp(x) - 1 overflows. */
CYGRAD_INLINE REAL NAME(half_of_exp_less_1)(REAL x)
{
    const REAL least = -60;
    WHOLE k;
    REAL e;
    x = x > LARGEST_EXPONENT ? LARGEST_EXPONENT : x;
    e = REDUCED(x < least ? least : x, &k);
    return e * POWER_OF_2(k - 1) + (POWER_OF_2(k - 1) - (REAL)0.5);
}

CYGRAD_INLINE REAL NAME(exp_less_1)(REAL x) { return ABS(x) < TINY ? x : 2 * NAME(half_of_exp_less_1)(x); }

/* With h = (exp(|x|) - 1) / 2, sinh(|x|) is h + h / (2 h + 1), cosh(x) is h + 1/2 + 1 / (4 h + 2), and tanh(|x| / 2) is
   h / (h + 1). */
CYGRAD_INLINE REAL NAME(hyperbolic_sine)(REAL x)
{
    const REAL h = NAME(half_of_exp_less_1)(ABS(x)), r = h + h / (2 * h + 1);
    const REAL known = ABS(x) < LARGEST_EXPONENT ? COPYSIGN(r, x) : (REAL)NAN;
    return ABS(x) < TINY || ABS(x) == (REAL)INFINITY ? x : known;
}

CYGRAD_INLINE REAL NAME(hyperbolic_cosine)(REAL x)
{
    const REAL h = NAME(half_of_exp_less_1)(ABS(x)) + (REAL)0.5, r = h + (REAL)0.25 / h;
    return ABS(x) < LARGEST_EXPONENT ? r : ABS(x) == (REAL)INFINITY ? (REAL)INFINITY : (REAL)NAN;
}

CYGRAD_INLINE REAL NAME(hyperbolic_tangent)(REAL x)
{
    const REAL h = NAME(half_of_exp_less_1)(2 * (ABS(x) > 20 ? 20 : ABS(x)));
    return ABS(x) < TINY ? x : COPYSIGN(h / (h + 1), x);
}

/* log(1 + 2 a / (1 - a)) / 2 with a = |x|. */
CYGRAD_INLINE REAL NAME(inverse_hyperbolic_tangent)(REAL x)
{
    const REAL a = ABS(x);
    return COPYSIGN((REAL)0.5 * NAME(log_of_1_and)(2 * a / (1 - a)), x);
}

/* log(a + sqrt(1 + a^2)) with a = |x|, as log(1 + ...). */
CYGRAD_INLINE REAL NAME(inverse_hyperbolic_sine)(REAL x)
{
    const REAL a = ABS(x), square = a * a;
    const REAL r = COPYSIGN(NAME(log_of_1_and)(a + square / (1 + SQRT(1 + square))), x);
    return a < TINY || a == (REAL)INFINITY ? x : a < HUGE_ROOT ? r : (REAL)NAN;
}

/* log(x + sqrt(x^2 - 1)), as log(1 + ...) with t = x - 1. */
CYGRAD_INLINE REAL NAME(inverse_hyperbolic_cosine)(REAL x)
{
    const REAL t = x - 1, r = NAME(log_of_1_and)(t + SQRT(t * (t + 2)));
    return x == (REAL)INFINITY ? x : x >= 1 && x < HUGE_ROOT ? r : (REAL)NAN;
}

/* The part `p` of an arcsine that the polynomial computes: arcsin(a) for a from 0 to 1/2, and arcsin(sqrt((1 - a) / 2))
   above, where arcsin(a) is pi/2 - 2 p. */
CYGRAD_INLINE REAL NAME(arcsine_part)(REAL a)
{
    const REAL z = a > (REAL)0.5 ? (REAL)0.5 - (REAL)0.5 * a : a * a, s = a > (REAL)0.5 ? SQRT(z) : a;
    return s + s * z * ARCSINE_TERMS(z);
}

CYGRAD_INLINE REAL NAME(arcsine)(REAL x)
{
    const REAL a = ABS(x), p = NAME(arcsine_part)(a);
    return COPYSIGN(a > (REAL)0.5 ? HALF_PI - (2 * p - REST_OF_HALF_PI) : p, x);
}

CYGRAD_INLINE REAL NAME(arccosine)(REAL x)
{
    const REAL a = ABS(x), p = NAME(arcsine_part)(a), signed_p = COPYSIGN(p, x);
    const REAL far = x < 0 ? 2 * HALF_PI - (2 * p - 2 * REST_OF_HALF_PI) : 2 * p;
    return a > (REAL)0.5 ? far : HALF_PI - (signed_p - REST_OF_HALF_PI);
}

/* arctan(y / x) for nonnegative y and x, by the arctangent of the smaller over the larger. */
CYGRAD_INLINE REAL NAME(arctangent_part)(REAL y, REAL x)
{
    const REAL t = y > x ? x / y : y / x, z = t * t, p = t + t * z * ARCTANGENT_TERMS(z);
    return y > x ? HALF_PI - (p - REST_OF_HALF_PI) : p;
}

CYGRAD_INLINE REAL NAME(arctangent)(REAL x) { return COPYSIGN(NAME(arctangent_part)(ABS(x), 1), x); }

CYGRAD_INLINE REAL NAME(angle)(REAL y, REAL x)
{
    const REAL p = NAME(arctangent_part)(ABS(y), ABS(x));
    return COPYSIGN(x < 0 ? 2 * HALF_PI - (p - 2 * REST_OF_HALF_PI) : p, y);
}

#ifdef IS_FLOAT
/* x = k pi / 2 + r with |r| <= pi / 4. pi / 2 is subtracted in three parts; the first difference is exact, because FMA
   does not round the product. */
CYGRAD_INLINE float rest_of_angle(float x, uint32_t *quarters)
{
    const float rounded = x * 0.636619772f + ROUNDER, k = rounded - ROUNDER;
    *quarters = (uint32_t)bits_of(rounded);
    return FMA(-k, -1.71512449e-15f, FMA(-k, REST_OF_HALF_PI, FMA(-k, HALF_PI, x)));
}

/* The sine of x + quarters pi / 2, as in `vector_math.h`. */
CYGRAD_INLINE float sine_of_float(float x, uint32_t quarters)
{
    uint32_t at;
    const float r = rest_of_angle(x, &at), z = r * r;
    const float odd = r + r * z * P2(z, -0.166666549f, 8.33217791e-3f, -1.95172666e-4f);                       /* 4e-9 */
    const float even = 1 - z * (0.5f - z * P2(z, 4.16666469e-2f, -1.38873672e-3f, 2.44384156e-5f));            /* 1e-10 */
    at += quarters;
    const float size = float_of(bits_of(at & 1 ? even : odd) ^ (int32_t)((at & 2) << 30));
    return x == 0 ? quarters ? 1 : x : fabsf(x) < 1e6f ? size : NAN;
}

CYGRAD_INLINE float tangent_of_float(float x)
{
    uint32_t at;
    const float r = rest_of_angle(x, &at), z = r * r;
    const float p = r + r * z * P6(z, 0.333333514f, 0.133326096f, 5.4065581e-2f, 2.12547440e-2f, 1.09029949e-2f,
                                   8.67070910e-6f, 4.41432003e-3f);                                            /* 1e-9 */
    return x == 0 ? x : fabsf(x) < 1e6f ? at & 1 ? -1 / p : p : NAN;
}
#endif

#undef DIGITS
#undef BIAS
#undef LEAST_NORMAL
#undef TINY
#undef HUGE_ROOT
#undef HALF_ROOT
#undef LOG_2
#undef REST_OF_LOG_2
#undef LOG10_2
#undef REST_OF_LOG10_2
#undef HALF_PI
#undef REST_OF_HALF_PI
#undef WHOLE
#undef REDUCED
#undef POWER_OF_2
#undef LARGEST_EXPONENT
#undef LOG_TERMS
#undef ARCSINE_TERMS
#undef ARCTANGENT_TERMS
#undef LARGE
#undef P2
#undef P3
#undef P4
#undef P6
#undef P8
#undef P11
#undef P15
#undef P19
