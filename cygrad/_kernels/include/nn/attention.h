/* Attention in blocks of queries and keys, forward and backward; called from attention.py.

   Of all scores, only the logarithm of each row's sum of exponentials is kept. Forward, a row that meets a larger score
   than before scales down its sums so far (Milakov and Gimelshein, 2018; Dao et al., 2022). Backward, blocks of weights
   are recomputed. A row that may attend to nothing gives 0. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_ATTENTION_H
#define CYGRAD_ATTENTION_H

#include <math.h>
#include <string.h>
#include "platform/target_clones.h"
#include "nn/cross_entropy.h"

#define QUERIES 64              /* per block; the number of keys is an argument of the call */

typedef struct {                /* how scores of rows of `keys` are computed from products */
    const void *mask;           /* NULL, or what is added to the first row */
    Py_ssize_t mask_row, mask_column, keys;
    Py_ssize_t visible;         /* keys that the first row may attend to; each row may attend to one more */
    double scale;
} score_rule;

CYGRAD_BEGIN_PLAIN_LOOPS

#define REAL float
#define LOG logf
#define EXP exponential_below_0
#define NAME(name) name##_f32
#include "nn/attention.h"
#undef REAL
#undef LOG
#undef EXP
#undef NAME

#define REAL double
#define LOG log
#define EXP exp
#define NAME(name) name##_f64
#include "nn/attention.h"
#undef REAL
#undef LOG
#undef EXP
#undef NAME

CYGRAD_END_LOOPS

/* Numbers of both calls. `.._ROW` are strides of rows in elements; the rows of each head begin at its own address. */
enum {
    LENGTH, KEYS, SIZE, VALUE_SIZE, KEY_BLOCK, CAUSAL, QUERY_ROW, KEY_ROW, VALUE_ROW, MASK_ROW, MASK_COLUMN, OUT_ROW,
    GRAD_ROW
};
enum { QUERY, KEY, VALUE, MASK, OUT, GRAD, PLACES };

/* A row of one of a head's arrays; `places` holds the PLACES addresses of each head. */
static char *attention_row(const native_call *c, const int64_t *places, int which, Py_ssize_t row, int row_number)
{
    char *array = (char *)(intptr_t)places[which];
    return array ? array + row * c->n[row_number] * c->itemsize : NULL;
}

/* The rule for the scores of a block, whose first query is `row` and first key is `column`. */
static score_rule rule_of(const native_call *c, const int64_t *places, Py_ssize_t row, Py_ssize_t column, Py_ssize_t keys)
{
    char *mask = attention_row(c, places, MASK, row, MASK_ROW);
    if (mask) mask += column * c->n[MASK_COLUMN] * c->itemsize;
    score_rule rule = {mask, c->n[MASK_ROW], c->n[MASK_COLUMN], keys, c->n[CAUSAL] ? row + 1 - column : keys + QUERIES,
                       c->real};
    return rule;
}

static Py_ssize_t smaller(Py_ssize_t a, Py_ssize_t b) { return a < b ? a : b; }

/* a (m, n) @ b (n, p) into contiguous `out`, or added to it if not `fresh`; `room` is scratch for m * p elements. */
static void add_product(const native_call *c, void *a, Py_ssize_t a_row, Py_ssize_t a_column, void *b, Py_ssize_t b_row,
                        void *out, int fresh, void *room, Py_ssize_t m, Py_ssize_t n, Py_ssize_t p)
{
    multiply_strided(c, a, a_row, a_column, b, b_row, 1, fresh ? out : room, p, m, n, p);
    if (!fresh) BY_TYPE(c->is_double, add, m * p, room, out);
}

/* data: logarithms of sums (heads, queries), addresses. Items are blocks of queries, head by head. */
static void attention_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const Py_ssize_t *n = c->n, size = c->itemsize, blocks = (n[LENGTH] + QUERIES - 1) / QUERIES;
    char *scores = PyMem_RawMalloc((QUERIES * (n[KEY_BLOCK] + n[VALUE_SIZE] + 3)) * size);
    char *more = scores + QUERIES * n[KEY_BLOCK] * size, *most = more + QUERIES * n[VALUE_SIZE] * size;
    char *sums = most + QUERIES * size, *factors = sums + QUERIES * size;
    if (scores == NULL) {
        c->failed = 1;
        return;
    }
    for (Py_ssize_t item = first; item < first + count; item++) {
        const Py_ssize_t head = item / blocks, row = item % blocks * QUERIES, rows = smaller(QUERIES, n[LENGTH] - row);
        const Py_ssize_t end = n[CAUSAL] ? smaller(n[KEYS], row + rows) : n[KEYS];
        const int64_t *places = (const int64_t *)c->data[1] + head * PLACES;
        char *query = attention_row(c, places, QUERY, row, QUERY_ROW), *out = attention_row(c, places, OUT, row, OUT_ROW);
        for (Py_ssize_t column = 0; column < end; column += n[KEY_BLOCK]) {
            const Py_ssize_t keys = smaller(n[KEY_BLOCK], end - column);
            const score_rule rule = rule_of(c, places, row, column, keys);
            multiply_strided(c, query, n[QUERY_ROW], 1, attention_row(c, places, KEY, column, KEY_ROW), 1, n[KEY_ROW],
                             scores, keys, rows, n[SIZE], keys);
            BY_TYPE(c->is_double, weigh, (void *)scores, rows, &rule, (void *)most, (void *)sums, (void *)factors,
                    column == 0);
            multiply_strided(c, scores, keys, 1, attention_row(c, places, VALUE, column, VALUE_ROW), n[VALUE_ROW], 1,
                             column ? more : out, column ? n[VALUE_SIZE] : n[OUT_ROW], rows, keys, n[VALUE_SIZE]);
            if (column)
                BY_TYPE(c->is_double, scale_and_add, (void *)out, n[OUT_ROW], (void *)more, (void *)factors, rows,
                        n[VALUE_SIZE]);
        }
        BY_TYPE(c->is_double, divide_rows, (void *)out, n[OUT_ROW], (void *)most, (void *)sums,
                AT(0, head * n[LENGTH] + row), rows, n[VALUE_SIZE]);
    }
    PyMem_RawFree(scores);
}

/* data: logarithms of sums, addresses, gradients of queries, keys and values (contiguous, head by head). Items are
   heads. */
static void attention_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const Py_ssize_t *n = c->n, size = c->itemsize, block = n[KEY_BLOCK], widest = n[SIZE] + n[VALUE_SIZE];
    char *weights = PyMem_RawMalloc((2 * QUERIES * block + (QUERIES + block) * widest + n[LENGTH]) * size);
    char *slopes = weights + QUERIES * block * size, *more = slopes + QUERIES * block * size;
    char *along = more + (QUERIES + block) * widest * size;
    if (weights == NULL) {
        c->failed = 1;
        return;
    }
    for (Py_ssize_t head = first; head < first + count; head++) {
        const int64_t *places = (const int64_t *)c->data[1] + head * PLACES;
        BY_TYPE(c->is_double, row_products, (void *)attention_row(c, places, OUT, 0, OUT_ROW), n[OUT_ROW],
                (void *)attention_row(c, places, GRAD, 0, GRAD_ROW), n[GRAD_ROW], (void *)along, n[LENGTH], n[VALUE_SIZE]);
        for (Py_ssize_t column = 0; column < n[KEYS]; column += block) {
            const Py_ssize_t keys = smaller(block, n[KEYS] - column);
            const Py_ssize_t begin = n[CAUSAL] ? column / QUERIES * QUERIES : 0;
            char *key = attention_row(c, places, KEY, column, KEY_ROW);
            char *value = attention_row(c, places, VALUE, column, VALUE_ROW);
            char *of_key = AT(3, (head * n[KEYS] + column) * n[SIZE]);
            char *of_value = AT(4, (head * n[KEYS] + column) * n[VALUE_SIZE]);
            if (begin >= n[LENGTH]) {
                memset(of_key, 0, keys * n[SIZE] * size);
                memset(of_value, 0, keys * n[VALUE_SIZE] * size);
            }
            for (Py_ssize_t row = begin; row < n[LENGTH]; row += QUERIES) {
                const Py_ssize_t rows = smaller(QUERIES, n[LENGTH] - row);
                const score_rule rule = rule_of(c, places, row, column, keys);
                char *query = attention_row(c, places, QUERY, row, QUERY_ROW);
                char *grad = attention_row(c, places, GRAD, row, GRAD_ROW);
                multiply_strided(c, query, n[QUERY_ROW], 1, key, 1, n[KEY_ROW], weights, keys, rows, n[SIZE], keys);
                BY_TYPE(c->is_double, weigh_again, (void *)weights, rows, &rule, AT(0, head * n[LENGTH] + row));
                add_product(c, weights, 1, keys, grad, n[GRAD_ROW], of_value, row == begin, more, keys, rows,
                            n[VALUE_SIZE]);
                multiply_strided(c, grad, n[GRAD_ROW], 1, value, 1, n[VALUE_ROW], slopes, keys, rows, n[VALUE_SIZE],
                                 keys);
                BY_TYPE(c->is_double, score_gradient, (void *)weights, (void *)slopes, (void *)(along + row * size), rows,
                        keys, c->real);
                add_product(c, slopes, keys, 1, key, n[KEY_ROW], AT(2, (head * n[LENGTH] + row) * n[SIZE]), column == 0,
                            more, rows, keys, n[SIZE]);
                add_product(c, slopes, 1, keys, query, n[QUERY_ROW], of_key, row == begin, more, keys, rows, n[SIZE]);
            }
        }
    }
    PyMem_RawFree(weights);
}

#endif
#else

/* Turns the products of a row into scores; returns how many of them, from the first on, causality does not hide. */
static Py_ssize_t NAME(score)(REAL *x, const score_rule *rule, Py_ssize_t row)
{
    const REAL *mask = rule->mask ? (const REAL *)rule->mask + row * rule->mask_row : NULL;
    const Py_ssize_t last = rule->visible + row, n = last < 0 ? 0 : last < rule->keys ? last : rule->keys;
    NAME(scale)(n, x, x, 0, (REAL)rule->scale, mask && !rule->mask_column ? *mask : 0);
    if (mask && rule->mask_column) NAME(add)(n, mask, x);
    return n;
}

/* Turns the n scores of a row into weights, and zeroes the others. */
static void NAME(weigh_row)(REAL *x, const score_rule *rule, Py_ssize_t n, REAL base)
{
    NAME(exponentials)(n, x, x, base);
    if (n < rule->keys) memset(x + n, 0, (rule->keys - n) * sizeof(REAL));
}

/* Turns products into weights relative to the running maximum; `factors` are what earlier sums must be scaled by. */
static void NAME(weigh)(REAL *x, Py_ssize_t rows, const score_rule *rule, REAL *most, REAL *sums, REAL *factors, int first)
{
    for (Py_ssize_t i = 0; i < rows; i++, x += rule->keys) {
        const Py_ssize_t n = NAME(score)(x, rule, i);
        const REAL before = first ? -INFINITY : most[i], own = n ? NAME(largest)(x, n) : -INFINITY;
        const REAL largest = own > before ? own : before, base = largest == -INFINITY ? 0 : largest;
        NAME(weigh_row)(x, rule, n, base);
        factors[i] = before == -INFINITY ? 0 : EXP(before - base);
        sums[i] = (first ? 0 : sums[i] * factors[i]) + NAME(total)(n, x);
        most[i] = largest;
    }
}

/* out = out * factor + more, row by row */
static void NAME(scale_and_add)(REAL *out, Py_ssize_t out_row, const REAL *more, const REAL *factors, Py_ssize_t rows,
                                Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < rows; i++, out += out_row, more += n) {
        if (factors[i] != 1) NAME(scale)(n, out, out, 0, factors[i], 0);
        NAME(add)(n, more, out);
    }
}

static void NAME(divide_rows)(REAL *out, Py_ssize_t out_row, const REAL *most, const REAL *sums, REAL *logs,
                              Py_ssize_t rows, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < rows; i++, out += out_row) {
        const int is_hidden = sums[i] == 0;
        NAME(scale)(n, out, out, 0, is_hidden ? 0 : 1 / sums[i], 0);
        logs[i] = is_hidden ? INFINITY : most[i] + LOG(sums[i]);
    }
}

/* Turns products into weights again. */
static void NAME(weigh_again)(REAL *x, Py_ssize_t rows, const score_rule *rule, const REAL *logs)
{
    for (Py_ssize_t i = 0; i < rows; i++, x += rule->keys)
        NAME(weigh_row)(x, rule, NAME(score)(x, rule, i), logs[i]);
}

static void NAME(row_products)(const REAL *x, Py_ssize_t x_row, const REAL *y, Py_ssize_t y_row, REAL *out,
                               Py_ssize_t rows, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < rows; i++, x += x_row, y += y_row) out[i] = NAME(products)(n, x, y, 0);
}

/* Turns gradients of weights into gradients of products: weight * (gradient - row's sum of result * gradient) *
   scale. */
static CYGRAD_CLONES void NAME(score_gradient)(const REAL *weights, REAL *slopes, const REAL *along, Py_ssize_t rows,
                                               Py_ssize_t keys, double scale)
{
    for (Py_ssize_t i = 0; i < rows; i++, weights += keys, slopes += keys) {
        const REAL c = along[i], factor = (REAL)scale;
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < keys; j++) slopes[j] = weights[j] * (slopes[j] - c) * factor;
    }
}

#endif
