/* Connectionist temporal classification; called from ctc.py. Sums over the paths through the states of a sample, whose
   logarithms are added by the loop of fused_loops.h. The gradient goes through time and states backwards. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_CTC_H
#define CYGRAD_CTC_H

#include <math.h>
#include <string.h>
#include "platform/target_clones.h"
#include "elementwise/fused_loops.h"
#include "nn/cross_entropy.h"

enum { CTC_ROWS = 4 };          /* of scratch for a sample, each with two elements more than there are states */

/* A length, clamped to the maximum. */
static Py_ssize_t length_up_to(Py_ssize_t most, const void *lengths, Py_ssize_t i)
{
    const uint64_t length = INDEX((const int64_t *)lengths + i);
    return length < (uint64_t)most ? (Py_ssize_t)length : most;
}

#define REAL float
#define NAME(name) name##_f32
#include "nn/ctc.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_f64
#include "nn/ctc.h"
#undef REAL
#undef NAME

/* data: log_probs (T, N, C), states (N, W), lengths of inputs and targets (N), all three int64, log-probabilities of
   reaching each state (T, N, W), losses (N), scratch (N, CTC_ROWS, W + 2); for the gradient also those of losses (N)
   and of log_probs (T, N, C). n: T, N, C, W, blank, whether infinite losses have a gradient of 0. Items are samples. */
static void ctc_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    for (Py_ssize_t i = first; i < first + count; i++) BY_TYPE(c->is_double, ctc, c, i);
}

#endif
#else

/* The log of the sum over the states that lead to each state, without its own emission; there is -inf before the
   first. */
static void NAME(ctc_step)(const REAL *from, const REAL *barred, REAL *skipped, REAL *to, Py_ssize_t n)
{
    static const double ones[3] = {1, 1, 1};
    for (Py_ssize_t s = 0; s < n; s++) skipped[s] = barred[s] < 0 ? -(REAL)INFINITY : from[s - 2];
    NAME(logaddexp)(from, from - 1, NULL, to, n, ones);
    NAME(logaddexp)(to, skipped, NULL, to, n, ones);
}

/* One step's gradient: probabilities minus those conditional on the target, whose logarithms are `given` up to a
   constant. They are divided by their sum, which loses less than subtracting logarithms of large size. */
static void NAME(ctc_slopes)(const native_call *c, const REAL *x, REAL *given, const int64_t *states, Py_ssize_t n,
                             REAL loss, REAL grad, REAL *out)
{
    const Py_ssize_t symbols = c->n[2];
    NAME(exponentials)(symbols, x, out, 0);
    for (Py_ssize_t k = 0; k < symbols; k++)
        if (x[k] > 88) out[k] = (REAL)exp(x[k]);        /* not a probability, and too large for the loop */
    REAL most = given[0], total = 0;
    for (Py_ssize_t s = 1; s < n; s++) most = given[s] > most ? given[s] : most;
    for (Py_ssize_t s = 0; s < n; s++) given[s] -= most;
    NAME(exponentials)(n, given, given, 0);
    for (Py_ssize_t s = 0; s < n; s++) total += given[s];
    for (Py_ssize_t s = 0; s < n; s++) {
        const uint64_t symbol = INDEX(states + n - 1 - s);
        if (symbol < (uint64_t)symbols) out[symbol] -= given[s] / total;
    }
    for (Py_ssize_t k = 0; k < symbols; k++) out[k] = isinf(loss) ? (REAL)NAN : out[k] * grad;
}

static void NAME(ctc)(const native_call *c, Py_ssize_t i)
{
    const Py_ssize_t steps = c->n[0], samples = c->n[1], symbols = c->n[2], width = c->n[3];
    const Py_ssize_t length = length_up_to(steps, c->data[2], i), n = 2 * length_up_to(width / 2, c->data[3], i) + 1;
    const int64_t *states = (const int64_t *)c->data[1] + i * width;
    const REAL *x = (const REAL *)c->data[0] + i * symbols, *grad = (const REAL *)c->data[7];
    REAL *alpha = (REAL *)c->data[4] + i * width, *loss = (REAL *)c->data[5] + i;
    REAL *out = grad ? (REAL *)c->data[8] + i * symbols : NULL, *to = (REAL *)c->data[6] + i * CTC_ROWS * (width + 2) + 2;
    REAL *from = to + width + 2, *barred = from + width + 2, *skipped = barred + width + 2;
    const int is_counted = !grad || !c->n[5] || !isinf(*loss);
    for (Py_ssize_t t = is_counted ? length : 0; grad && t < steps; t++)
        memset(out + t * samples * symbols, 0, symbols * sizeof *out);
    if (!is_counted) return;
    for (Py_ssize_t s = -2; s < n; s++) to[s] = from[s] = -(REAL)INFINITY;
    for (Py_ssize_t s = 0; s < n; s++) {        /* whether the state two before leads to it */
        const Py_ssize_t later = grad ? n + 1 - s : s;
        barred[s] = s < 2 || states[later] == c->n[4] || states[later] == states[later - 2] ? -1 : 0;
    }
    for (Py_ssize_t k = 0; k < length; k++) {
        const Py_ssize_t t = grad ? length - 1 - k : k;
        const REAL *row = x + t * samples * symbols;
        REAL *last = from, *ways = alpha + t * samples * width;
        if (k == 0) to[0] = 0, to[n > 1] = 0;
        else NAME(ctc_step)(from, barred, skipped, to, n);
        for (Py_ssize_t s = 0; s < n; s++) {
            const Py_ssize_t at = grad ? n - 1 - s : s;
            const uint64_t symbol = INDEX(states + at);
            const REAL emitted = symbol < (uint64_t)symbols ? row[symbol] : (REAL)NAN;
            if (grad) skipped[s] = ways[at] + to[s];       /* `ways` has the emission, which may be -inf */
            to[s] += emitted;
            if (!grad) ways[s] = to[s];
        }
        if (grad)
            NAME(ctc_slopes)(c, row, skipped, states, n, *loss, grad[i], out + t * samples * symbols);
        from = to;
        to = last;
    }
    if (grad) return;
    if (n > 1 && length) NAME(ctc_step)(from + n - 1, barred, skipped, to, 1);      /* barred[0] is set */
    *loss = -(length == 0 ? n > 1 ? -(REAL)INFINITY : 0 : n > 1 ? *to : *from);
}

#endif
