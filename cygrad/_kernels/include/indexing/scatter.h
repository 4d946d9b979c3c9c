/* Scatter, tril/triu, nonzero and boolean-mask compress loops.

   Called from scatter.py, diagonals.py, axis_ops.py and indexing.py. Elements have 4 or 8 bytes, or 1 where stated. */

#ifndef CYGRAD_PLACES_H
#define CYGRAD_PLACES_H

#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_PLAIN_LOOPS

#define DEFINE_SCATTER(NAME, TYPE)                                                                              \
    static int NAME(TYPE *out, const int64_t *index, const TYPE *values, const Py_ssize_t *n)                   \
    {                                                                                                           \
        const Py_ssize_t count = n[1], inner = n[2], step = n[3] != 0;                                          \
        int is_outside = 0;                                                                                     \
        for (Py_ssize_t k = count * inner, i = 0; k > 0; k--, index++, values += step) {                        \
            const uint64_t at = INDEX(index);                                                                   \
            if (at < (uint64_t)n[0]) out[at * inner + i] = *values;                                             \
            else is_outside = 1;                                                                                \
            if (++i == inner) i = 0;                                                                            \
        }                                                                                                       \
        return is_outside;                                                                                      \
    }

DEFINE_SCATTER(scatter_4, uint32_t)
DEFINE_SCATTER(scatter_8, packed_8)
#undef DEFINE_SCATTER

/* Scatter that adds, multiplies or takes extrema with existing values, up to the first out-of-bounds index. */
#define DEFINE_COMBINE(NAME, REAL, BITS)                                                                        \
    static int NAME(REAL *out, const int64_t *index, const REAL *values, const Py_ssize_t *n)                   \
    {                                                                                                           \
        const Py_ssize_t count = n[1], inner = n[2], step = n[3] != 0;                                          \
        const uint64_t length = (uint64_t)n[0];                                                                 \
        if (n[4] == 0 && inner == 1) {                                                                          \
            for (Py_ssize_t k = 0; k < count; k++, values += step) {                                            \
                const uint64_t at = INDEX(index + k);                                                           \
                if (at >= length) return 1;                                                                     \
                out[at] += *values;                                                                             \
            }                                                                                                   \
            return 0;                                                                                           \
        }                                                                                                       \
        for (Py_ssize_t k = count * inner, i = 0; k > 0; k--, index++, values += step) {                        \
            const uint64_t at = INDEX(index);                                                                   \
            if (at >= length) return 1;                                                                         \
            REAL *to = out + at * inner + i;                                                                    \
            union { REAL real; BITS bits; } a = {*to}, b = {*values};                                           \
            const REAL x = a.real, y = b.real;                                                                  \
            const BITS stays = -(BITS)((n[4] == 2 ? x >= y : x <= y) | (x != x));   /* branch-free */           \
            b.bits = (a.bits & stays) | (b.bits & ~stays);                                                      \
            *to = n[4] == 0 ? x + y : n[4] == 1 ? x * y : b.real;                                               \
            if (++i == inner) i = 0;                                                                            \
        }                                                                                                       \
        return 0;                                                                                               \
    }

DEFINE_COMBINE(reduce_at_f32, float, uint32_t)
DEFINE_COMBINE(reduce_at_f64, double, uint64_t)
#undef DEFINE_COMBINE

/* The places of the first `count` nonzero elements of rows of `columns` elements, comparing only the bits of `mask`.
   Returns whether there were as many: another thread may change them after they were counted. */
#define DEFINE_NONZERO(NAME, TYPE)                                                                              \
    static int NAME(const void *from, int64_t *row, int64_t *column, Py_ssize_t rows, Py_ssize_t columns,       \
                    uint64_t mask, Py_ssize_t count)                                                            \
    {                                                                                                           \
        const TYPE *x = from;                                                                                   \
        Py_ssize_t found = 0;                                                                                   \
        for (Py_ssize_t i = 0; i < rows; i++, x += columns)                                                     \
            for (Py_ssize_t j = 0; j < columns; j++) {                                                          \
                if (found == count) return 1;                                                                   \
                if (row) row[found] = i;                                                                        \
                column[found] = j;                                                                              \
                found += (x[j] & (TYPE)mask) != 0;                                                              \
            }                                                                                                   \
        return found == count;                                                                                  \
    }                                                                                                           \
                                                                                                                \
    static CYGRAD_CLONES Py_ssize_t NAME##_count(const void *from, Py_ssize_t n, uint64_t mask)                 \
    {                                                                                                           \
        const TYPE *x = from;                                                                                   \
        TYPE found = 0;     /* n is at most 255 */                                                              \
        for (Py_ssize_t i = 0; i < n; i++) found += (TYPE)((x[i] & (TYPE)mask) != 0);                           \
        return (Py_ssize_t)found;                                                                               \
    }

DEFINE_NONZERO(nonzero_1, uint8_t)
DEFINE_NONZERO(nonzero_4, uint32_t)
DEFINE_NONZERO(nonzero_8, uint64_t)
#undef DEFINE_NONZERO

/* The first `count` elements where the mask is 1. Eight equal mask bytes are handled at once. Returns whether there were
   as many. */
#define DEFINE_COMPRESS(NAME, TYPE)                                                                             \
    static int NAME(const TYPE *x, const uint8_t *mask, TYPE *out, Py_ssize_t n, Py_ssize_t count)              \
    {                                                                                                           \
        Py_ssize_t found = 0, i = 0;                                                                            \
        while (found < count && i < n) {                                                                        \
            uint64_t eight = 2;                                                                                 \
            if (i % 8 == 0 && i + 8 <= n) memcpy(&eight, mask + i, 8);                                          \
            if (eight == 0) {                                                                                   \
                i += 8;                                                                                         \
            } else if (eight == 0x0101010101010101 && found + 8 <= count) {                                     \
                memcpy(out + found, x + i, 8 * sizeof *x);                                                      \
                found += 8;                                                                                     \
                i += 8;                                                                                         \
            } else {                                                                                            \
                out[found] = x[i];                                                                              \
                found += mask[i++] != 0;                                                                        \
            }                                                                                                   \
        }                                                                                                       \
        return found == count;                                                                                  \
    }

DEFINE_COMPRESS(compress_4, uint32_t)
DEFINE_COMPRESS(compress_8, packed_8)
#undef DEFINE_COMPRESS

CYGRAD_END_LOOPS

/* data: out (outer, length, inner), indices (outer, count, inner), values (outer, given, inner). n: length, count,
   inner, given, which is at least count, or 0 for one value for all. Items are outer indices. Fails for negative or too
   large indices, which are skipped. */
static void scatter_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    for (Py_ssize_t i = first; i < first + count; i++) {
        const int64_t *index = (const int64_t *)c->data[1] + i * c->n[1] * c->n[2];
        void *out = AT(0, i * c->n[0] * c->n[2]), *values = AT(2, i * c->n[3] * c->n[2]);
        if (c->is_double ? scatter_8(out, index, values, c->n) : scatter_4(out, index, values, c->n)) c->failed = 1;
    }
}

/* The same, combining with existing values; further n: operation (0 sum, 1 product, 2 maximum, 3 minimum), whether to
   zero out first. */
static void combine_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const Py_ssize_t size = c->n[0] * c->n[2];
    if (c->n[5]) memset(AT(0, first * size), 0, count * size * c->itemsize);
    for (Py_ssize_t i = first; i < first + count; i++)
        if (BY_TYPE(c->is_double, reduce_at, (void *)AT(0, i * size), (const int64_t *)c->data[1] + i * c->n[1] * c->n[2],
                    (void *)AT(2, i * c->n[3] * c->n[2]), c->n))
            c->failed = 1;
}

/* data: matrices, results with zeros above or below a diagonal. n: rows, columns, the diagonal, whether to keep the
   upper part. Items are rows. */
static void triangle_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t columns = c->n[1], size = c->itemsize;
    for (Py_ssize_t row = first; row < first + count; row++) {
        const char *from = AT(0, row * columns);
        char *to = AT(1, row * columns);
        Py_ssize_t end = row % c->n[0] + c->n[2] + (c->n[3] ? 0 : 1);      /* of the left part */
        end = end < 0 ? 0 : end > columns ? columns : end;
        if (c->n[3]) {
            memset(to, 0, end * size);
            memcpy(to + end * size, from + end * size, (columns - end) * size);
        } else {
            memcpy(to, from, end * size);
            memset(to + end * size, 0, (columns - end) * size);
        }
    }
}

/* data: the rows of the elements that `triangle_part` keeps, followed by their columns (int64). n: as there, and their
   number. There is one item. */
static void triangle_places_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t columns = c->n[1];
    int64_t *row_of = (int64_t *)c->data[0], *column_of = row_of + c->n[4], *const end = column_of;
    (void)first, (void)count;
    for (Py_ssize_t row = c->n[3] || c->n[2] >= 0 ? 0 : -c->n[2]; row_of < end; row++) {  /* skip empty rows */
        Py_ssize_t from = 0, to = row + c->n[2] + (c->n[3] ? 0 : 1);
        to = to < 0 ? 0 : to > columns ? columns : to;
        if (c->n[3]) from = to, to = columns;
        for (Py_ssize_t column = from; column < to; column++) *row_of++ = row, *column_of++ = column;
    }
}

/* data: any array of doubles, elements, their rows or NULL, their columns. n: rows, columns, element size in bytes,
   whether floating point, number of nonzero elements. There is one item. Fails if there are fewer. */
static void nonzero_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const uint64_t mask = !c->n[3] ? UINT64_MAX : c->n[2] == 4 ? 0x7fffffff : 0x7fffffffffffffff;
    int64_t *rows = (int64_t *)c->data[2], *columns = (int64_t *)c->data[3];
    (void)first, (void)count;
    if (!(c->n[2] == 1 ? nonzero_1 : c->n[2] == 4 ? nonzero_4 : nonzero_8)(c->data[1], rows, columns, c->n[0], c->n[1],
                                                                          mask, c->n[4]))
        c->failed = 1;
}

/* data: elements, a mask of bytes, the selected elements. n: number of elements, number of selected ones. There is one
   item. Fails if fewer are selected. */
static void compress_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const uint8_t *mask = (const uint8_t *)c->data[1];
    (void)first, (void)count;
    c->failed = !(c->is_double
        ? compress_8((const packed_8 *)c->data[0], mask, (packed_8 *)c->data[2], c->n[0], c->n[1])
        : compress_4((const uint32_t *)c->data[0], mask, (uint32_t *)c->data[2], c->n[0], c->n[1]));
}

enum { COUNTED = 255 };      /* elements whose count fits into a byte */

/* data: any array of doubles, elements, a count for each chunk of n[0] elements. n: chunk length, elements, element
   size in bytes, whether floating point. Items are chunks. */
static void count_nonzero_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const uint64_t mask = !c->n[3] ? UINT64_MAX : c->n[2] == 4 ? 0x7fffffff : 0x7fffffffffffffff;
    for (Py_ssize_t i = first; i < first + count; i++) {
        const Py_ssize_t stop = (i + 1) * c->n[0] < c->n[1] ? (i + 1) * c->n[0] : c->n[1];
        Py_ssize_t found = 0;
        for (Py_ssize_t at = i * c->n[0]; at < stop; at += COUNTED) {
            const Py_ssize_t n = stop - at < COUNTED ? stop - at : COUNTED;
            found += (c->n[2] == 1 ? nonzero_1_count : c->n[2] == 4 ? nonzero_4_count : nonzero_8_count)(
                c->data[1] + at * c->n[2], n, mask);
        }
        ((int64_t *)c->data[2])[i] = found;
    }
}

#endif
