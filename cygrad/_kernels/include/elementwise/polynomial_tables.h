/* A function of one float32, as polynomials of degree 7 on intervals that polynomial_tables.py has chosen. */

#ifndef CYGRAD_TABLES_H
#define CYGRAD_TABLES_H

#include <stdint.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_PLAIN_LOOPS

/* data: x, results, two numbers for each sign and exponent (its first row; how many bits of the mantissa give the place
   in a row's interval, the others select the row), rows of 8 double coefficients, the constant first. Row 0 marks a
   missing polynomial. Items are elements. */
static CYGRAD_CLONES void tabled_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const volatile uint32_t *x = (const volatile uint32_t *)c->data[0] + first;    /* each is read once, see INDEX */
    float *out = (float *)c->data[1] + first;
    const int32_t *places = (const int32_t *)c->data[2];
    int missed = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint32_t bits = x[i], mantissa = bits & 0x7fffff;
        const int32_t *at = places + (bits >> 23) * 2, row = at[0] + (int32_t)(mantissa >> at[1]);
        const double *p = (const double *)c->data[3] + 8 * row;
        const double t = (int32_t)(mantissa & ((1u << at[1]) - 1)), t2 = t * t;
        const double low = (p[3] * t + p[2]) * t2 + (p[1] * t + p[0]);
        const double high = (p[7] * t + p[6]) * t2 + (p[5] * t + p[4]);
        out[i] = (float)(t == 0 ? p[0] : high * (t2 * t2) + low);      /* p[0] may be -0 */
        missed |= row == 0;
    }
    if (missed) c->failed = 1;
}

CYGRAD_END_LOOPS

#endif
