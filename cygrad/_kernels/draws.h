/* Random numbers one by one, from NumPy's bit generator and as NumPy draws them, without what a call of its methods
   costs; called from native.pyx. */

#ifndef CYGRAD_DRAWS_H
#define CYGRAD_DRAWS_H

#include <numpy/random/bitgen.h>

enum { BELOW_1, INTEGERS, SHUFFLED };

/* Of 0, ..., span - 1, all of the same probability; span < 2^32. D. Lemire, "Fast random integer generation in an
   interval" (2019): the upper half of a product, drawn anew where the lower half tells that it would come too often. */
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

/* 0, ..., size - 1 in random order; size < 2^32. From the last one on, each element changes places with one up to its
   own, which is drawn in as many bits as that place has, and drawn anew where it is above. No processor could foresee
   that branch; so there is none: an element changes places with itself, and its turn comes again. */
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

/* Overwrites `size` elements of 8 bytes, if they are `wide`, or of 4: with numbers, or with
   integers from `low` on, of which there are `span`, or with 0, ... in random order; integers are wide. */
static void draw_numbers(bitgen_t *source, int what, int wide, void *out, Py_ssize_t size, int64_t low, uint64_t span)
{
    double *doubles = out;
    float *floats = out;
    int64_t *longs = out;
    if (what == SHUFFLED) shuffled(source, longs, (uint32_t)size);
    else if (what == INTEGERS)
        for (Py_ssize_t i = 0; i < size; i++) longs[i] = low + (int64_t)integer_below(source, span);
    else if (wide)
        for (Py_ssize_t i = 0; i < size; i++) doubles[i] = source->next_double(source->state);
    else
        for (Py_ssize_t i = 0; i < size; i++)
            floats[i] = (float)(int32_t)(source->next_uint32(source->state) >> 8) * 5.9604644775390625e-8f; /* 2^-24 */
}

#endif
