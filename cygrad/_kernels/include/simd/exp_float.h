/* The exponential of float32, and functions made of it, for one number or a vector of them. Included by exp.h for numbers
   and by float_vectors.h for vectors, which have defined

       FLOATS, POWERS          the type of operands, and of the exponents k of powers of 2
       OF(name)                the name of a function for this type; INLINED precedes each
       OF(lowered)(x, a)       min(x, a); NaN stays NaN
       OF(raised)(x, a)        max(x, a); NaN stays NaN
       OF(exponent_of)(t)      k from k + ROUNDER
       OF(power_of_2)(k)       2^k, for k from -126 to 127
       OF(scaled)(e, k, x)     (e + 1) 2^k, rounded once, for the k of x from -191 to 128
       OF(scaled_down)(e, k)   the same for k from -191 to 0
       OF(scaled_up)(e, k)     the same for k from -126 to 128
       OF(scaled_normal)(e, k) the same for k from -126 to 0, and for that of
       LEAST_BELOW_0           a number so low that this gives 0

   Results do not depend on the length of the vector where compilers fuse multiplication and addition. */

#define ROUNDER 12582912.0f             /* 1.5 * 2^23: adding it leaves no room for a fraction */

/* exp(r) - 1 for r up to log(2) / 2. */
INLINED FLOATS OF(of_rest)(FLOATS r)
{
    const FLOATS square = r * r;            /* pairs without a dependency chain (Estrin) */
    FLOATS p = 1.3814396e-3f * square + (8.36874666e-3f * r + 4.16683932e-2f);
    p = p * square + (0.166665204f * r + 0.499999934f);
    return p * square + r;
}

/* exp(r) - 1 for the r of x; sets k. */
INLINED FLOATS OF(reduced)(FLOATS x, POWERS *k)
{
    const float log2_e = 1.44269504f, log_2 = 0.693359375f, rest_of_log_2 = -2.12194440e-4f;
    FLOATS rounded = x * log2_e + ROUNDER;
    *k = OF(exponent_of)(rounded);
    rounded -= ROUNDER;
    return OF(of_rest)((x - rounded * log_2) - rounded * rest_of_log_2);
}

/* From -132.4 on down, the powers of `scaled` and `scaled_down` are 0, so that nothing underflows, which takes 100 times
   as long. */
INLINED FLOATS OF(exponential)(FLOATS x)
{
    POWERS k;
    x = OF(raised)(OF(lowered)(x, 89), -132.4f);                    /* infinite above */
    const FLOATS e = OF(reduced)(x, &k);
    return OF(scaled)(e, k, x);
}

/* 1 / (1 + exp(-x)); the exponential overflows below -88.73. */
INLINED FLOATS OF(logistic)(FLOATS x)
{
    POWERS k;
    x = OF(raised)(OF(lowered)(x, 87), -89);                        /* 1 above 17 */
    const FLOATS e = OF(reduced)(-x, &k);
    return 1 / (1 + OF(scaled_up)(e, k));
}

/* exp(x) for x <= 0 */
INLINED FLOATS OF(exponential_up_to_0)(FLOATS x)
{
    POWERS k;
    const FLOATS e = OF(reduced)(OF(raised)(x, -132.4f), &k);
    return OF(scaled_down)(e, k);                                   /* may give a subnormal number */
}

/* The same, in less time; where it is subnormal, it may become 0. */
INLINED FLOATS OF(exponential_below_0)(FLOATS x)
{
    POWERS k;
    const FLOATS e = OF(reduced)(OF(raised)(x, LEAST_BELOW_0), &k);
    return OF(scaled_normal)(e, k);
}

/* exp(x) - 1 for x up to 80 */
INLINED FLOATS OF(exponential_less_1)(FLOATS x)
{
    POWERS k;
    const FLOATS e = OF(reduced)(OF(raised)(x, -30), &k);
    return e * OF(power_of_2)(k) + (OF(power_of_2)(k) - 1);
}

/* tanh(x / 2) = m / (m + 2) with m = exp(x) - 1 = 2^k (exp(r) - 1) + (2^k - 1), within 3 ulp; -0 becomes 0 */
INLINED FLOATS OF(tanh_of_half)(FLOATS x)
{
    POWERS k;
    x = OF(raised)(OF(lowered)(x, 80), -80);                        /* 1 above 18 */
    const FLOATS e = OF(reduced)(x, &k), m = e * OF(power_of_2)(k) + (OF(power_of_2)(k) - 1);
    return m / (m + 2);
}

/* log(1 + t) for t from 0 to 1, by the series of 2 artanh(t / (t + 2)); omitted terms are below 1.5e-8 of it. */
INLINED FLOATS OF(log_of_1_and)(FLOATS t)
{
    const FLOATS s = t / (t + 2), q = s * s;
    FLOATS p = q * (1.0f / 13) + 1.0f / 11;
    p = p * q + 1.0f / 9;
    p = p * q + 1.0f / 7;
    p = p * q + 1.0f / 5;
    p = p * q + 1.0f / 3;
    return 2 * s + 2 * s * q * p;
}

/* log(1 + exp(x)) for x <= 0 */
INLINED FLOATS OF(log_of_1_and_exp)(FLOATS x) { return OF(log_of_1_and)(OF(exponential_below_0)(x)); }

#undef ROUNDER
