/* Running sums, products and extrema along one dimension of contiguous arrays; called from axis_ops.py and scans.py. Sums
   and products of floats accumulate in double precision; sums of integers wrap.

   A line is n elements `inner` places apart. Adjacent lines are processed together, in vectors; where inner is 1, four
   at a time, since each sum depends on the previous one. `out` may be the array itself. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_SCANS_H
#define CYGRAD_SCANS_H

#include "platform/target_clones.h"

enum { SUMS_TOGETHER = 256 };   /* lines side by side */

CYGRAD_BEGIN_PLAIN_LOOPS

#define REAL float
#define CLONES CYGRAD_CLONES
#define SUM double
#define PLACE int32_t
#define SIGN(smallest) ((smallest) ? -1 : 1)
#define TURNED(x) ((x) * sign)
#define IS_NAN(x) ((x) != (x))
#define NAME(name) name##_f32
#include "reduction/scans.h"
#undef REAL
#undef PLACE
#undef NAME

#define REAL double
#define PLACE int64_t
#define NAME(name) name##_f64
#include "reduction/scans.h"
#undef REAL
#undef CLONES
#undef SUM
#undef SIGN
#undef TURNED
#undef IS_NAN
#undef NAME

#define REAL int64_t
#define CLONES                          /* wider vectors save no time */
#define SUM uint64_t
#define SIGN(smallest) (-(REAL)(smallest))
#define TURNED(x) ((x) ^ sign)          /* the smallest integer has no negative */
#define IS_NAN(x) 0
#define SUMS_ALONE                      /* NumPy's products are as fast */
#define NAME(name) name##_i64
#include "reduction/scans.h"
#undef SUMS_ALONE
#undef REAL
#undef CLONES
#undef SUM
#undef SIGN
#undef TURNED
#undef IS_NAN
#undef PLACE
#undef NAME

CYGRAD_END_LOOPS


/* data: array, sums; n: elements of a line, inner, whether from the end, whether products, whether int64 (sums only).
   Items are lines, or groups of lines that are processed together. */
static void running_sums_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], inner = c->n[1], step = c->n[2] ? -inner : inner;
    const Py_ssize_t groups = (inner + SUMS_TOGETHER - 1) / SUMS_TOGETHER, start = c->n[2] ? (n - 1) * inner : 0;
    if (inner == 1) {
        if (c->n[3])
            BY_TYPE(c->is_double, products_of_lines, AT(0, first * n), AT(1, first * n), count, n, step);
        else
            WHOLE_OR_BY_TYPE(c->n[4], sums_of_lines, AT(0, first * n + start), AT(1, first * n + start), count, n, step);
        return;
    }
    for (Py_ssize_t i = first; i < first + count; i++) {
        const Py_ssize_t column = i % groups * SUMS_TOGETHER, at = i / groups * n * inner + start + column;
        const Py_ssize_t lines = inner - column < SUMS_TOGETHER ? inner - column : SUMS_TOGETHER;
        if (c->n[3]) BY_TYPE(c->is_double, products_side_by_side, AT(0, at), AT(1, at), lines, n, step);
        else WHOLE_OR_BY_TYPE(c->n[4], sums_side_by_side, AT(0, at), AT(1, at), lines, n, step);
    }
}

/* data: array, running extrema, their places; n: elements of a line, inner, whether minima, whether int64. Items are as
   for sums. The last of equal elements counts; NaN persists. */
static void running_extrema_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], inner = c->n[1], groups = (inner + SUMS_TOGETHER - 1) / SUMS_TOGETHER;
    for (Py_ssize_t i = first; i < first + count; i++) {
        const Py_ssize_t column = i % groups * SUMS_TOGETHER, at = i / groups * n * inner + column;
        const Py_ssize_t lines = inner - column < SUMS_TOGETHER ? inner - column : SUMS_TOGETHER;
        int64_t *places = (int64_t *)c->data[2] + at;
        if (inner == 1) WHOLE_OR_BY_TYPE(c->n[3], extrema_of_line, AT(0, at), AT(1, at), places, n, c->n[2] != 0);
        else WHOLE_OR_BY_TYPE(c->n[3], extrema_side_by_side, AT(0, at), AT(1, at), places, lines, n, inner, c->n[2] != 0);
    }
}

#endif
#else

#define DEFINE_SCAN(SCAN, NONE, OP)                                                                             \
    static void NAME(SCAN##_of_lines)(const REAL *x, REAL *out, Py_ssize_t lines, Py_ssize_t n, Py_ssize_t step) \
    {                                                                                                           \
        for (; lines >= 4; lines -= 4, x += 4 * n, out += 4 * n) {                                              \
            SUM a = NONE, b = NONE, c = NONE, d = NONE;                                                         \
            for (Py_ssize_t i = 0, at = 0; i < n; i++, at += step) {                                            \
                out[at] = (REAL)(a OP x[at]);                                                                   \
                out[at + n] = (REAL)(b OP x[at + n]);                                                           \
                out[at + 2 * n] = (REAL)(c OP x[at + 2 * n]);                                                   \
                out[at + 3 * n] = (REAL)(d OP x[at + 3 * n]);                                                   \
            }                                                                                                   \
        }                                                                                                       \
        for (; lines > 0; lines--, x += n, out += n) {                                                          \
            SUM a = NONE;                                                                                       \
            for (Py_ssize_t i = 0, at = 0; i < n; i++, at += step) out[at] = (REAL)(a OP x[at]);                \
        }                                                                                                       \
    }                                                                                                           \
                                                                                                                \
    static CLONES void NAME(SCAN##_side_by_side)(const REAL *x, REAL *out, Py_ssize_t lines, Py_ssize_t n,      \
                                                 Py_ssize_t step)                                               \
    {                                                                                                           \
        SUM found[SUMS_TOGETHER];                                                                               \
        for (Py_ssize_t j = 0; j < lines; j++) found[j] = NONE;                                                 \
        for (Py_ssize_t i = 0; i < n; i++, x += step, out += step)                                              \
            CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < lines; j++) out[j] = (REAL)(found[j] OP x[j]);        \
    }

DEFINE_SCAN(sums, 0, +=)
#ifndef SUMS_ALONE
DEFINE_SCAN(products, 1, *=)
#endif
#undef DEFINE_SCAN

/* New extrema are rare, so a branch costs less than waiting for the previous comparison. */
static void NAME(extrema_of_line)(const REAL *x, REAL *out, int64_t *places, Py_ssize_t n, int smallest)
{
    const REAL sign = SIGN(smallest);
    for (Py_ssize_t i = 0, place = 0; i < n; place = i) {
        const REAL best = TURNED(x[place]);
        do {
            out[i] = x[place];
            places[i] = place;
            i++;
        } while (i < n && !(TURNED(x[i]) >= best) && !IS_NAN(x[i]));
    }
}

static CLONES void NAME(extrema_side_by_side)(const REAL *x, REAL *out, int64_t *places, Py_ssize_t lines,
                                              Py_ssize_t n, Py_ssize_t step, int smallest)
{
    const REAL sign = SIGN(smallest);
    REAL best[SUMS_TOGETHER];
    PLACE place[SUMS_TOGETHER] = {0};
    for (Py_ssize_t j = 0; j < lines; j++) best[j] = TURNED(x[j]);
    for (Py_ssize_t i = 0; i < n; i++, x += step, out += step, places += step)
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < lines; j++) {
            const REAL y = TURNED(x[j]);
            const PLACE taken = -(PLACE)((y >= best[j]) | IS_NAN(y));
            place[j] = ((PLACE)i & taken) | (place[j] & ~taken);
            best[j] = ((y >= best[j]) | IS_NAN(y)) ? y : best[j];
            out[j] = TURNED(best[j]);
            places[j] = place[j];
        }
}

#endif
