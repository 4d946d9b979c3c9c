/* Evenly spaced numbers, each computed from its index, so that rounding errors do not add up; called from
   linspace.py. */

#ifndef CYGRAD_SPACED_H
#define CYGRAD_SPACED_H

#include <stdint.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_PLAIN_LOOPS
CYGRAD_ROUND_PRODUCTS

/* The first `half` are computed from the lower end, the others from the upper end, which has the index `last`. */
#define DEFINE_SPACED(NAME, TYPE, REAL)                                                                         \
    static void NAME(TYPE *out, int32_t first, int32_t end, int32_t half, int32_t last, REAL low, REAL high,    \
                     REAL step)                                                                                 \
    {                                                                                                           \
        const int32_t middle = end < half ? end : half;                                                         \
        int32_t i = first;                                                                                      \
        for (; i < middle; i++) *out++ = (TYPE)(low + (REAL)i * step);                                          \
        for (; i < end; i++) *out++ = (TYPE)(high - (REAL)(last - i) * step);                                   \
    }

DEFINE_SPACED(spaced_f32, float, float)
DEFINE_SPACED(spaced_f64, double, double)
DEFINE_SPACED(ranged_f32, float, double)
#undef DEFINE_SPACED

CYGRAD_END_LOOPS

/* data: results, two doubles: the first and the last number or, if n[1], the first one and the step; n: count, whether
   all are computed from the first, in double precision. Items are numbers, fewer than 2^31. */
static void spaced_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const int32_t begin = (int32_t)first, end = (int32_t)(first + count), last = (int32_t)c->n[0] - 1;
    const int32_t half = c->n[1] ? INT32_MAX : last < 2 ? 1 : (last + 1) / 2;
    const double *given = (const double *)c->data[1], low = given[0], high = given[1];
    if (c->n[1] && !c->is_double)
        ranged_f32(AT(0, first), begin, end, half, last, low, high, high);
    else if (c->is_double)
        spaced_f64(AT(0, first), begin, end, half, last, low, high, c->n[1] ? high : last ? (high - low) / last : 0);
    else
        spaced_f32(AT(0, first), begin, end, half, last, (float)low, (float)high,
                   last ? ((float)high - (float)low) / (float)last : 0);
}

#endif
