/* Binary search in sorted rows, for many values at once, without branches, which would be mispredicted for values in no
   order. For double precision only: converting other types takes less time than the search. */

#ifndef CYGRAD_SEARCH_H
#define CYGRAD_SEARCH_H

#include <stdint.h>
#include "platform/target_clones.h"

enum { SEARCHED = 128 };        /* values at once */

CYGRAD_BEGIN_CHOOSING_LOOPS

/* NaN sorts after all numbers, as in NumPy. */
static CYGRAD_CLONES void search_row(const double *row, Py_ssize_t length, const double *values, int64_t *at,
                                     Py_ssize_t n, int past_equal)
{
    for (Py_ssize_t j = 0; j < n; j++) at[j] = 0;
    for (int64_t left = length, half; left > 0; left -= half) {
        half = (left + 1) / 2;
        const double *middle = row + half - 1;
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < n; j++) {
            const double x = middle[at[j]], v = values[j];
            const int is_before = (x < v) | (past_equal & (x == v)) | ((v != v) & (past_equal | (x == x)));
            at[j] += half & -(int64_t)is_before;
        }
    }
}

CYGRAD_END_LOOPS

/* data: sorted rows, values, results (int64); n: row length, values per row (of all, if there is one row), whether
   equal elements come before a value. Items are values. */
static void search_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const Py_ssize_t length = c->n[0], width = c->n[1];
    for (Py_ssize_t i = first, m; i < first + count; i += m) {
        m = width - i % width;
        if (m > SEARCHED) m = SEARCHED;
        if (m > first + count - i) m = first + count - i;
        search_row(AT(0, i / width * length), length, AT(1, i), (int64_t *)c->data[2] + i, m, c->n[2] != 0);
    }
}

#endif
