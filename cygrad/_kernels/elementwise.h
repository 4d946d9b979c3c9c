/* Elementwise loops that NumPy has not, or only slower. */

#ifndef CYGRAD_ELEMENTWISE_H
#define CYGRAD_ELEMENTWISE_H

#include "clones.h"

CYGRAD_BEGIN_LOOPS

/* min(max(x, low), high), where nan stays nan; the bounds are no nan */
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

#undef DEFINE_CLAMP

CYGRAD_END_LOOPS
#endif
