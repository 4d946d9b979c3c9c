/* Rows of scores, of which softmax makes probabilities: cross-entropy; called from nn.pyx. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_SCORES_H
#define CYGRAD_SCORES_H

#include <math.h>
#include "clones.h"
#include "lanes.h"
#include "vector_math.h"

CYGRAD_BEGIN_LOOPS

#define REAL float
#define DEFINE_STAGED DEFINE_STAGED_f32
#define WIDE_CLONES CYGRAD_WIDE_CLONES
#define LOG logf
#define NAME(name) name##_f32
#include "scores.h"
#undef REAL
#undef DEFINE_STAGED
#undef WIDE_CLONES
#undef LOG
#undef NAME

#define REAL double
#define DEFINE_STAGED DEFINE_STAGED_f64
#define WIDE_CLONES             /* double is seldom trained in, and clones take room */
#define LOG log
#define NAME(name) name##_f64
#include "scores.h"
#undef REAL
#undef DEFINE_STAGED
#undef WIDE_CLONES
#undef LOG
#undef NAME

CYGRAD_END_LOOPS

/* data: scores, classes (int64), probabilities, logarithms of those of the classes; n: scores of a row */
static void cross_entropy_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const int64_t *classes = (const int64_t *)c->data[1] + first;
    BY_TYPE(c->is_double, cross_entropy, AT(0, first * c->n[0]), classes, AT(2, first * c->n[0]), AT(3, first), count,
            c->n[0]);
}

/* data: probabilities, classes (int64), a factor for each row, gradients of the scores; n: scores of a row */
static void cross_entropy_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const int64_t *classes = (const int64_t *)c->data[1] + first;
    BY_TYPE(c->is_double, cross_entropy_gradient, AT(0, first * c->n[0]), classes, AT(2, first), AT(3, first * c->n[0]),
            count, c->n[0]);
}

#endif
#else

DEFINE_LARGEST(WIDE_CLONES)

DEFINE_STAGED(static WIDE_CLONES void NAME(exponentials)(Py_ssize_t n, const REAL *x, REAL *out, REAL c), , , EXP_BELOW_0,
              x[i] - c, e)

/* A class that is none gets a 0; who called finds it. */
static void NAME(cross_entropy)(const REAL *x, const int64_t *classes, REAL *p, REAL *logs, Py_ssize_t rows,
                                Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < rows; i++, x += n, p += n) {
        const REAL most = NAME(largest)(x, n);
        REAL sum;
        NAME(exponentials)(n, x, p, most);
        sum = NAME(total)(n, p);
        NAME(scale)(n, p, p, 0, 1 / sum, 0);
        const uint64_t at = INDEX(classes + i);
        logs[i] = at < (uint64_t)n ? (x[at] - most) - LOG(sum) : 0;
    }
}

/* (probability - 1 for the row's class) * its factor; the factor of a class that is none is 0. */
static void NAME(cross_entropy_gradient)(const REAL *p, const int64_t *classes, const REAL *factors, REAL *out,
                                         Py_ssize_t rows, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < rows; i++, p += n, out += n) {
        NAME(scale)(n, p, out, 0, factors[i], 0);
        const uint64_t at = INDEX(classes + i);
        if (at < (uint64_t)n) out[at] -= factors[i];
    }
}

#endif
