/* Elements picked along one dimension: by index (indexing.py), or the largest or smallest (sorting.py). */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_PICKS_H
#define CYGRAD_PICKS_H

#include <string.h>
#include "platform/target_clones.h"

enum { LOOKED_AT = 64 };         /* elements checked together for one that may be among the first */

CYGRAD_BEGIN_PLAIN_LOOPS

enum { ALL_FIRSTS, KTH, MEDIAN, NANMEDIAN, MODE, MOST_FIRSTS = 32 };      /* what is wanted: in the order of sorting.py */

#define REAL float
#define IS_NAN(x) ((x) != (x))
#define CLONES CYGRAD_CLONES
#define NAME(name) name##_f32
#include "indexing/gather.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_f64
#include "indexing/gather.h"
#undef REAL
#undef IS_NAN
#undef CLONES
#undef NAME

#define REAL int64_t
#define IS_NAN(x) 0
#define NAME(name) name##_i64
#define CLONES
#define IN_ORDER_ONLY
#include "indexing/gather.h"
#undef REAL
#undef IS_NAN
#undef CLONES
#undef NAME
#undef IN_ORDER_ONLY

/* Copies n elements, or rows of bytes, at indices that may count from the end; returns 0 if one is out of range. */
#define DEFINE_TAKE(NAME, COPY)                                                                                 \
    static int NAME(const char *from, int64_t length, const int64_t *index, char *out, Py_ssize_t n, size_t size) \
    {                                                                                                           \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                    \
            const int64_t given = (int64_t)INDEX(index + i), at = given + (given < 0 ? length : 0);             \
            if ((uint64_t)at >= (uint64_t)length) return 0;                                                     \
            COPY;                                                                                               \
        }                                                                                                       \
        (void)size;                                                                                             \
        return 1;                                                                                               \
    }
DEFINE_TAKE(take_4, ((uint32_t *)out)[i] = ((const uint32_t *)from)[at])
DEFINE_TAKE(take_8, ((packed_8 *)out)[i] = ((const packed_8 *)from)[at])
DEFINE_TAKE(take_rows, memcpy(out + i * size, from + at * size, size))
#undef DEFINE_TAKE

CYGRAD_END_LOOPS

/* data: array (outer, length, inner), indices and results (outer, count, inner); n: length, count, inner. Items are
   rows of the results. Fails if an index is negative or too large. */
static void gather_part(void *context, Py_ssize_t first, Py_ssize_t rows)
{
    native_call *c = context;
    const Py_ssize_t inner = c->n[2];
    const int64_t *index = (const int64_t *)c->data[1] + first * inner;
    if (!BY_TYPE(c->is_double, gather_rows, AT(0, 0), index, AT(2, first * inner), first, rows, c->n)) c->failed = 1;
}

/* data: array (outer, length, inner), indices (count), results (outer, count, inner); n: length, count, bytes of inner.
   Items are rows of the results; negative indices count from the end. Fails if an index is out of range. */
static void take_part(void *context, Py_ssize_t first, Py_ssize_t rows)
{
    native_call *c = context;
    const Py_ssize_t length = c->n[0], count = c->n[1], size = c->n[2];
    for (Py_ssize_t row = first, n; row < first + rows; row += n) {
        const char *from = c->data[0] + row / count * length * size;
        const int64_t *index = (const int64_t *)c->data[1] + row % count;
        char *out = c->data[2] + row * size;
        n = count - row % count < first + rows - row ? count - row % count : first + rows - row;
        if (!(size == 4 ? take_4 : size == 8 ? take_8 : take_rows)(from, length, index, out, n, size)) c->failed = 1;
    }
}

/* data: rows of n elements, the first k of each in order, their places. n: n, k, whether the largest come first, what
   is wanted (if not ALL_FIRSTS, k is n, at most MOST_FIRSTS, and there is one result per row), the number of the k-th,
   whether int64. Items are rows. */
static void firsts_part(void *context, Py_ssize_t first, Py_ssize_t rows)
{
    const native_call *c = context;
    const Py_ssize_t n = c->n[0], k = c->n[1];
    for (Py_ssize_t i = first; i < first + rows; i++)
        if (c->n[3] == ALL_FIRSTS)
            WHOLE_OR_BY_TYPE(c->n[5], firsts_of_row, AT(0, i * n), n, AT(1, i * k), (int64_t *)c->data[2] + i * k, k,
                             c->n[2] != 0);
        else WHOLE_OR_BY_TYPE(c->n[5], one_of_row, AT(0, i * n), n, AT(1, i), (int64_t *)c->data[2] + i, c->n);
}

#endif
#else

#ifndef IN_ORDER_ONLY
static int NAME(gather_rows)(const REAL *x, const int64_t *index, REAL *out, Py_ssize_t row, Py_ssize_t rows,
                             const Py_ssize_t *n)
{
    const Py_ssize_t length = n[0], count = n[1], inner = n[2];
    for (Py_ssize_t end = row + rows; row < end;) {
        const REAL *from = x + row / count * length * inner;
        Py_ssize_t here = count - row % count;
        if (here > end - row) here = end - row;
        row += here;
        if (inner == 1) {
            for (; here > 0; here--, index++, out++) {
                const uint64_t at = INDEX(index);
                if (at >= (uint64_t)length) return 0;
                *out = from[at];
            }
            continue;
        }
        for (; here > 0; here--, index += inner, out += inner)
            for (Py_ssize_t i = 0; i < inner; i++) {
                const uint64_t at = INDEX(index + i);
                if (at >= (uint64_t)length) return 0;
                out[i] = from[at * inner + i];
            }
    }
    return 1;
}
#endif

/* Whether a comes before b; NaN is larger than all numbers. */
CYGRAD_INLINE int NAME(is_before)(REAL a, REAL b, int largest)
{
    return largest ? a > b || (IS_NAN(a) && !IS_NAN(b)) : a < b || (!IS_NAN(a) && IS_NAN(b));
}

/* The number of elements, in multiples of LOOKED_AT, before a group with one that may come before `last`. */
static CLONES Py_ssize_t NAME(later_ones)(const REAL *x, Py_ssize_t n, REAL last, int largest)
{
    Py_ssize_t i = 0;
    for (; i + LOOKED_AT <= n; i += LOOKED_AT) {
        int is_any = 0;
        if (largest) for (int j = 0; j < LOOKED_AT; j++) is_any |= !(x[i + j] <= last);
        else for (int j = 0; j < LOOKED_AT; j++) is_any |= !(x[i + j] >= last);
        if (is_any) break;
    }
    return i;
}

static void NAME(firsts_of_row)(const REAL *x, Py_ssize_t n, REAL *values, int64_t *order, Py_ssize_t k, int largest)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t place;
        if (found == k) {
            if (i % LOOKED_AT == 0) i += NAME(later_ones)(x + i, n - i, values[k - 1], largest);
            if (i == n) break;
            if (!NAME(is_before)(x[i], values[k - 1], largest)) continue;
        }
        place = found < k ? found++ : k - 1;
        for (; place > 0 && NAME(is_before)(x[i], values[place - 1], largest); place--)
            values[place] = values[place - 1], order[place] = order[place - 1];
        values[place] = x[i];
        order[place] = i;
    }
}

/* The k-th of a row in order, counted from 1; or its lower median, either the first NaN if there is one, or ignoring
   NaN; or the last of the most frequent elements, the smallest on ties. */
static void NAME(one_of_row)(const REAL *x, Py_ssize_t n, REAL *value, int64_t *place, const Py_ssize_t *how)
{
    REAL ordered[MOST_FIRSTS];
    int64_t order[MOST_FIRSTS];
    Py_ssize_t numbers = n, at = how[4] - 1, longest = 0;
    NAME(firsts_of_row)(x, n, ordered, order, n, 0);
    while (numbers > 0 && ordered[numbers - 1] != ordered[numbers - 1]) numbers--;
    if (how[3] == MEDIAN) at = numbers < n ? numbers : (n - 1) / 2;
    if (how[3] == NANMEDIAN) at = numbers ? (numbers - 1) / 2 : 0;
    for (Py_ssize_t i = 0, end = 0; how[3] == MODE && i < n; i = end) {
        while (end < n && (end == i || ordered[end] == ordered[i])) end++;
        if (end - i > longest) longest = end - i, at = end - 1;
    }
    *value = ordered[at];
    *place = order[at];
}

#endif
