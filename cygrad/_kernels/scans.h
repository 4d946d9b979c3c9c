/* Running sums along one dimension of dense arrays; called from along.py. Sums are made in double precision.

   A line is n elements `inner` places apart. Lines that stand side by side are added together, by vectors; where inner
   is 1, four at a time, since each sum waits for the one before. `out` may be the array itself. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_SCANS_H
#define CYGRAD_SCANS_H

#include "clones.h"

enum { SUMS_TOGETHER = 256 };   /* lines side by side */

CYGRAD_BEGIN_PLAIN_LOOPS

#define REAL float
#define NAME(name) name##_f32
#include "scans.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_f64
#include "scans.h"
#undef REAL
#undef NAME

CYGRAD_END_LOOPS

/* data: array, sums; n: elements of a line, inner, from the end. An item is a line, or as many as are added together. */
static void running_sums_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], inner = c->n[1], step = c->n[2] ? -inner : inner;
    const Py_ssize_t groups = (inner + SUMS_TOGETHER - 1) / SUMS_TOGETHER, start = c->n[2] ? (n - 1) * inner : 0;
    if (inner == 1) {
        BY_TYPE(c->is_double, sums_of_lines, AT(0, first * n + start), AT(1, first * n + start), count, n, step);
        return;
    }
    for (Py_ssize_t i = first; i < first + count; i++) {
        const Py_ssize_t column = i % groups * SUMS_TOGETHER, at = i / groups * n * inner + start + column;
        const Py_ssize_t lines = inner - column < SUMS_TOGETHER ? inner - column : SUMS_TOGETHER;
        BY_TYPE(c->is_double, sums_side_by_side, AT(0, at), AT(1, at), lines, n, step);
    }
}

#endif
#else

static void NAME(sums_of_lines)(const REAL *x, REAL *out, Py_ssize_t lines, Py_ssize_t n, Py_ssize_t step)
{
    for (; lines >= 4; lines -= 4, x += 4 * n, out += 4 * n) {
        double a = 0, b = 0, c = 0, d = 0;
        for (Py_ssize_t i = 0, at = 0; i < n; i++, at += step) {
            out[at] = (REAL)(a += x[at]);
            out[at + n] = (REAL)(b += x[at + n]);
            out[at + 2 * n] = (REAL)(c += x[at + 2 * n]);
            out[at + 3 * n] = (REAL)(d += x[at + 3 * n]);
        }
    }
    for (; lines > 0; lines--, x += n, out += n) {
        double a = 0;
        for (Py_ssize_t i = 0, at = 0; i < n; i++, at += step) out[at] = (REAL)(a += x[at]);
    }
}

static CYGRAD_CLONES void NAME(sums_side_by_side)(const REAL *x, REAL *out, Py_ssize_t lines, Py_ssize_t n,
                                                  Py_ssize_t step)
{
    double sums[SUMS_TOGETHER] = {0};
    for (Py_ssize_t i = 0; i < n; i++, x += step, out += step)
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < lines; j++) out[j] = (REAL)(sums[j] += x[j]);
}

#endif
