/* Rows of scores: cross-entropy, called from softmax.pyx, and margins between labels and other classes (losses.py). */

#ifndef REAL                    /* the file includes itself once for each type and each width of float vectors */
#ifndef CYGRAD_SCORES_H
#define CYGRAD_SCORES_H

#include <math.h>
#include "platform/target_clones.h"
#include "simd/accumulators.h"
#include "simd/vector_math.h"

CYGRAD_BEGIN_LOOPS

#define REAL float
#define DEFINE_STAGED DEFINE_STAGED_f32
#define LOOPS "nn/cross_entropy.h"
#include "simd/each_width.h"
#undef DEFINE_STAGED
#define exponentials_f32(...) CALL_WIDEST(exponentials, __VA_ARGS__)

#define WIDE_CLONES CYGRAD_WIDE_CLONES
#define LOG logf
#define NAME(name) name##_f32
#include "nn/cross_entropy.h"
#undef REAL
#undef WIDE_CLONES
#undef LOG
#undef NAME

#define REAL double
#define DEFINE_STAGED DEFINE_STAGED_f64
#define VECTORIZED                   /* the stages have clones */
#define WIDE_CLONES             /* training in double is rare, and clones cost code size */
#define LOG log
#define NAME(name) name##_f64
#include "nn/cross_entropy.h"
#undef REAL
#undef DEFINE_STAGED
#undef VECTORIZED
#undef WIDE_CLONES
#undef LOG
#undef NAME

CYGRAD_END_LOOPS

/* data: scores, classes (int64), probabilities, log-probabilities of the classes; n: scores of a row, the class that is
   ignored. Fails for other classes that are out of bounds. */
static void cross_entropy_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const int64_t *classes = (const int64_t *)c->data[1] + first;
    if (BY_TYPE(c->is_double, cross_entropy, AT(0, first * c->n[0]), classes, AT(2, first * c->n[0]), AT(3, first), count,
                c->n[0], c->n[1]))
        c->failed = 1;
}

/* data: probabilities, classes (int64), a factor for each row, gradients of the scores; n and failure: as above */
static void cross_entropy_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const int64_t *classes = (const int64_t *)c->data[1] + first;
    if (BY_TYPE(c->is_double, cross_entropy_gradient, AT(0, first * c->n[0]), classes, AT(2, first),
                AT(3, first * c->n[0]), count, c->n[0], c->n[1]))
        c->failed = 1;
}

/* data: scores, labels (int64), which end at the first negative one, the loss of each row, its derivatives, 1 for
   classes that are labels; n: scores of a row. Fails if a label is below -1 or too large. */
static void label_margins_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const Py_ssize_t n = c->n[0];
    for (Py_ssize_t i = first; i < first + count; i++) {
        const int64_t *labels = (const int64_t *)c->data[1] + i * n;
        for (Py_ssize_t k = 0; k < n; k++)
            if (INDEX(labels + k) + 1 > (uint64_t)n) c->failed = 1;
        BY_TYPE(c->is_double, label_margins, AT(0, i * n), labels, AT(2, i), AT(3, i * n), AT(4, i * n), n);
    }
}

#endif
#else

#ifdef VECTORIZED                    /* of double, and of each width of float */
DEFINE_STAGED(static VECTORIZED void NAME(exponentials)(Py_ssize_t n, const REAL *x, REAL *out, REAL c), , , EXP_BELOW_0,
              TAKE(x) - c, e)
#endif

#ifdef LOG                      /* of both types */
DEFINE_LARGEST(WIDE_CLONES)

/* An invalid class gets 0. Returns whether one is not the ignored one: another thread may change it after the check. */
static int NAME(cross_entropy)(const REAL *x, const int64_t *classes, REAL *p, REAL *logs, Py_ssize_t rows, Py_ssize_t n,
                               int64_t ignored)
{
    int is_outside = 0;
    for (Py_ssize_t i = 0; i < rows; i++, x += n, p += n) {
        const REAL most = NAME(largest)(x, n);
        REAL sum;
        NAME(exponentials)(n, x, p, most);
        sum = NAME(total)(n, p);
        NAME(scale)(n, p, p, 0, 1 / sum, 0);
        const uint64_t at = INDEX(classes + i);
        logs[i] = at < (uint64_t)n ? (x[at] - most) - LOG(sum) : 0;
        is_outside |= at >= (uint64_t)n && (int64_t)at != ignored;
    }
    return is_outside;
}

/* (probability - 1 for the row's class) * its factor, which is 0 for an invalid class. Returns the same. */
static int NAME(cross_entropy_gradient)(const REAL *p, const int64_t *classes, const REAL *factors, REAL *out,
                                        Py_ssize_t rows, Py_ssize_t n, int64_t ignored)
{
    int is_outside = 0;
    for (Py_ssize_t i = 0; i < rows; i++, p += n, out += n) {
        NAME(scale)(n, p, out, 0, factors[i], 0);
        const uint64_t at = INDEX(classes + i);
        if (at < (uint64_t)n) out[at] -= factors[i];
        is_outside |= at >= (uint64_t)n && (int64_t)at != ignored;
    }
    return is_outside;
}

/* Adds the amounts by which classes that are not labels violate the margin to a label of score 1 - `least`; returns how
   many do. */
static CYGRAD_CLONES REAL NAME(add_margins)(const REAL *x, const REAL *is_label, REAL least, Py_ssize_t n, REAL *slopes,
                                            REAL *loss)
{
    REAL lanes[16] = {0}, counts[16] = {0};
    Py_ssize_t i = 0;
#define ADD_MARGIN(i, j)                                                                                        \
        const REAL gap = least + x[i];                                                                          \
        const int counts_here = (gap > 0) & (is_label[i] == 0);                                                 \
        lanes[j] += counts_here ? gap : 0;                                                                      \
        counts[j] += counts_here ? (REAL)1 : 0;                                                                 \
        slopes[i] += counts_here ? (REAL)1 : 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) { ADD_MARGIN(i + j, j) }
    for (; i < n; i++) { ADD_MARGIN(i, 0) }
#undef ADD_MARGIN
    for (int width = 8; width; width /= 2)
        for (int j = 0; j < width; j++) lanes[j] += lanes[j + width], counts[j] += counts[j + width];
    *loss += lanes[0];
    return counts[0];
}

static void NAME(label_margins)(const REAL *x, const int64_t *labels, REAL *loss, REAL *slopes, REAL *is_label,
                                Py_ssize_t n)
{
    uint64_t at;
    memset(slopes, 0, n * sizeof *slopes);
    memset(is_label, 0, n * sizeof *is_label);
    *loss = 0;
    for (Py_ssize_t k = 0; k < n && (at = INDEX(labels + k)) < (uint64_t)n; k++) is_label[at] = 1;
    for (Py_ssize_t k = 0; k < n && (at = INDEX(labels + k)) < (uint64_t)n; k++)
        slopes[at] -= NAME(add_margins)(x, is_label, 1 - x[at], n, slopes, loss);
    *loss /= (REAL)n;
    for (Py_ssize_t i = 0; i < n; i++) slopes[i] /= (REAL)n;
}

#endif
#endif
