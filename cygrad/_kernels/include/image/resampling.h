/* Weighted sums of input places given by tables, along one or two axes; called from resampling.py for arrays of few
   elements. */

#ifndef CYGRAD_RESAMPLING_H
#define CYGRAD_RESAMPLING_H

#include <stdint.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_PLAIN_LOOPS

/* out (m, inner) from x (n, inner): result i is the sum of x[places[i][t]] * weights[i][t] for t below counts[i]. */
#define DEFINE_RESAMPLED(NAME, REAL)                                                                                \
    static void NAME(const REAL *x, REAL *out, const native_call *c)                                                \
    {                                                                                                               \
        const int64_t *places = (const int64_t *)c->data[2], *counts = (const int64_t *)c->data[3];                 \
        const double *weights = (const double *)c->data[4];                                                         \
        const Py_ssize_t m = c->n[0], width = c->n[1], inner = c->n[3];                                             \
        for (Py_ssize_t i = 0; i < m; i++, out += inner) {                                                          \
            for (Py_ssize_t k = 0; counts[i] == 0 && k < inner; k++) out[k] = 0;                                    \
            for (Py_ssize_t t = 0; t < counts[i]; t++) {                                                            \
                const REAL *from = x + places[i * width + t] * inner;                                               \
                const REAL weight = weights ? (REAL)weights[i * width + t] : 1;                                     \
                for (Py_ssize_t k = 0; k < inner; k++)                                                              \
                    out[k] = t ? out[k] + weight * from[k] : weight * from[k];                                      \
            }                                                                                                       \
        }                                                                                                           \
    }

DEFINE_RESAMPLED(resampled_f32, float)
DEFINE_RESAMPLED(resampled_f64, double)

CYGRAD_END_LOOPS

/* data: x (outer, n, inner), out (outer, m, inner), places (m, width), counts (m,), weights like places or NULL;
   n: m, width, n, inner */
static void resample_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    for (Py_ssize_t i = first; i < first + count; i++)
        BY_TYPE(c->is_double, resampled, AT(0, i * c->n[2] * c->n[3]), AT(1, i * c->n[0] * c->n[3]), c);
}

enum { FEW_RESAMPLED = 4096 };   /* elements; up to this, NumPy's call overhead exceeds a plain loop */

/* The same along both axes of planes of up to FEW_RESAMPLED elements, in two passes, and then divided by `real`.
   data: x (planes, ...), out (planes, ...), places, counts and weights of the first pass, and of the second;
   n: m, width, n, inner, outer of the first pass, and of the second; elements of a plane of x, and of out */
static void resample_planes_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    native_call passes[2] = {*c, *c};
    double between[FEW_RESAMPLED];
    memcpy(passes[1].data + 2, c->data + 5, 3 * sizeof(*c->data));
    memcpy(passes[1].n, c->n + 5, 5 * sizeof(*c->n));
    passes[0].data[1] = passes[1].data[0] = (char *)between;
    for (Py_ssize_t i = first; i < first + count; i++) {
        passes[0].data[0] = AT(0, i * c->n[10]);
        passes[1].data[1] = AT(1, i * c->n[11]);
        for (int k = 0; k < 2; k++) resample_part(passes + k, 0, passes[k].n[4]);
    }
    if (c->real == 1) return;
    for (Py_ssize_t k = first * c->n[11]; k < (first + count) * c->n[11]; k++)
        if (c->is_double) ((double *)c->data[1])[k] /= c->real;
        else ((float *)c->data[1])[k] /= (float)c->real;
}

#endif
