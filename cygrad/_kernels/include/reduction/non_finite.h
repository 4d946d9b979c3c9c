/* Searches contiguous memory for NaN and infinite numbers, for float and double. */

#ifndef BITS                    /* the file includes itself once for each type */
#ifndef CYGRAD_BAD_NUMBERS_H
#define CYGRAD_BAD_NUMBERS_H

#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_LOOPS

#define REAL float
#define BITS int32_t
#define LARGEST 0x7F7FFFFF      /* the bits of the largest finite number; one more is infinity */
#define LEAST 0x00800000        /* those of the smallest normal one */
#define SMALL 0x58800000        /* the bits of 2^50: sums of 2^26 products of two such numbers are finite */
#define NAME(name) name##_f32
#include "reduction/non_finite.h"
#undef REAL
#undef BITS
#undef LARGEST
#undef LEAST
#undef SMALL
#undef NAME

#define REAL double
#define BITS int64_t
#define LARGEST 0x7FEFFFFFFFFFFFFF
#define LEAST 0x0010000000000000
#define SMALL 0x5E90000000000000    /* 2^490 */
#define NAME(name) name##_f64
#include "reduction/non_finite.h"
#undef REAL
#undef BITS
#undef LARGEST
#undef LEAST
#undef SMALL
#undef NAME

CYGRAD_END_LOOPS

/* Called with an untyped pointer and a flag for the type. */
#define is_bad(is_double, ...) ((is_double) ? is_bad_f64(__VA_ARGS__) : is_bad_f32(__VA_ARGS__))
#define is_not_normal(is_double, ...) ((is_double) ? is_not_normal_f64(__VA_ARGS__) : is_not_normal_f32(__VA_ARGS__))

#endif
#else

/* Whether a number is NaN; or, with `bad` 1, not finite; or, with 2, not small. They are compared as integers, without
   branches, in independent vectors: a dependency chain would take twice as long, and more vectors would not stay in
   registers. */
static CYGRAD_WIDE_CLONES int NAME(is_bad)(const REAL *x, Py_ssize_t n, int bad)
{
    enum { LANES = 128 / sizeof(BITS) };
    const BITS all = (BITS)(((uint64_t)1 << (8 * sizeof(BITS) - 1)) - 1), most = bad == 2 ? SMALL : LARGEST + (BITS)!bad;
    BITS found[LANES] = {0}, any = 0, bits;
    Py_ssize_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            memcpy(&bits, x + i + j, sizeof bits);
            found[j] |= most - (bits & all);        /* negative if it is larger */
        }
    for (; i < n; i++) {
        memcpy(&bits, x + i, sizeof bits);
        any |= most - (bits & all);
    }
    for (int j = 0; j < LANES; j++) any |= found[j];
    return any < 0;
}

/* Whether a number is zero or has lost digits (is subnormal), is infinite, or NaN. */
static CYGRAD_WIDE_CLONES int NAME(is_not_normal)(const REAL *x, Py_ssize_t n)
{
    enum { LANES = 128 / sizeof(BITS) };
    const BITS all = (BITS)(((uint64_t)1 << (8 * sizeof(BITS) - 1)) - 1);
    BITS found[LANES] = {0}, any = 0, bits;
    Py_ssize_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            memcpy(&bits, x + i + j, sizeof bits);
            found[j] |= (LARGEST - (bits & all)) | ((bits & all) - LEAST);
        }
    for (; i < n; i++) {
        memcpy(&bits, x + i, sizeof bits);
        any |= (LARGEST - (bits & all)) | ((bits & all) - LEAST);
    }
    for (int j = 0; j < LANES; j++) any |= found[j];
    return any < 0;
}

#endif
