/* float32 to float16 and back: rounded to the nearest, of two equally near to the even one, as IEEE 754 has it. */

#ifndef CYGRAD_HALF_H
#define CYGRAD_HALF_H

#include <stdint.h>
#include "clones.h"
#include "exp.h"

CYGRAD_BEGIN_CHOOSING_LOOPS

/* Below 2^-14, adding 1/2 moves the digits to where they stand in a half, and rounds; beyond 65504 rounding carries into
   the exponent, up to infinity. A nan keeps what digits there is room for, and is quiet. */
static CYGRAD_CLONES void float_to_half(const void *from, void *to, Py_ssize_t n)
{
    const float *x = from;
    uint16_t *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)bits_of(x[i]), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
        const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
        const uint32_t tiny = (uint32_t)bits_of(float_of((int32_t)size) + 0.5f) - (126u << 23);
        const uint32_t special = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
        const uint32_t finite = size < (113u << 23) ? tiny : normal;
        out[i] = (uint16_t)(sign | (size >= (143u << 23) ? special : finite));
    }
}

static CYGRAD_CLONES void half_to_float(const void *from, void *to, Py_ssize_t n)
{
    const uint16_t *x = from;
    float *out = to;
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const uint32_t size = x[i] & 0x7fffu, sign = (x[i] & 0x8000u) << 16, shifted = size << 13;
        const uint32_t tiny = (uint32_t)bits_of(float_of((int32_t)(shifted + (113u << 23))) - float_of(113 << 23));
        const uint32_t large = size >= 0x7c00 ? shifted + (224u << 23) : shifted + (112u << 23);
        out[i] = float_of((int32_t)(sign | (size < 0x400 ? tiny : large)));
    }
}

CYGRAD_END_LOOPS
#endif
