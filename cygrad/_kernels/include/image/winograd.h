/* 3x3 convolutions with stride 1 by Winograd's method, for float; called from winograd_convolution.py.

   Four by four results of a channel are computed from a tile of six by six places of the image. Tile and filter are
   transformed to six by six numbers, these are multiplied elementwise and summed over channels, and the sums are
   transformed to the results. That takes 36 multiplications instead of 144. The sums over channels are 36 matrix
   products. Method: S. Winograd, Arithmetic complexity of computations (1980); A. Lavin, S. Gray, Fast algorithms for
   convolutional neural networks (2015). The transforms interpolate at 0, +-3/4, +-3/2 and infinity. All but the
   filter's have exact coefficients, and they keep four times as many digits as 0, +-1, +-2.

   Images are transposed to rows of places with adjacent channels, so all transforms work on vectors of channels. A
   strip is a row of tiles. Numbers of channels are rounded up to multiples of 16 internally. */

#ifndef CYGRAD_WINOGRAD_H
#define CYGRAD_WINOGRAD_H

#include <stdint.h>
#include <string.h>
#include "base/packed_matmul.h"

#define POINTS 36
#define TAIL 16                 /* elements between matrices, so that they do not all begin in one cache set */

#ifdef CYGRAD_VECTORS

#define ROUNDED(n) (((n) + 15) / 16 * 16)

typedef struct { Py_ssize_t height, width, channels, rounded; const float *data; } image_stack;

typedef struct {
    image_stack images, results;        /* sources of tiles of six by six and of four by four places */
    Py_ssize_t low[2], rows, columns;   /* zeros before an image; number of tiles that cover it */
    Py_ssize_t strips;                  /* maximum number at a time */
    float *strip_of_image, *strip_of_results, *tiles, *weighted, *sums;
} winograd;

BEGIN_VECTORS

/* -- the transforms ---------------------------------------------------------------------------------- */

/* The points p and q; interpolation is at these, their negatives, 0 and infinity. */
#define P 0.75f
#define Q 1.5f
#define PP (P * P)
#define QQ (Q * Q)
#define OVER_0 (1 / (PP * QQ))                  /* divisors of the Lagrange polynomials */
#define OVER_P (1 / (2 * PP * (PP - QQ)))
#define OVER_Q (1 / (2 * QQ * (QQ - PP)))

TUNED CYGRAD_INLINE void tile(const lanes *d, lanes *v)
{
    const lanes even_p = d[4] - QQ * d[2], odd_p = P * (d[3] - QQ * d[1]);
    const lanes even_q = d[4] - PP * d[2], odd_q = Q * (d[3] - PP * d[1]);
    v[0] = d[4] + (PP * QQ * d[0] - (PP + QQ) * d[2]);
    v[1] = even_p + odd_p;
    v[2] = even_p - odd_p;
    v[3] = even_q + odd_q;
    v[4] = even_q - odd_q;
    v[5] = d[5] + (PP * QQ * d[1] - (PP + QQ) * d[3]);
}

TUNED CYGRAD_INLINE void filter(const lanes *d, lanes *v)
{
    const lanes even_p = OVER_P * (d[0] + PP * d[2]), odd_p = P * OVER_P * d[1];
    const lanes even_q = OVER_Q * (d[0] + QQ * d[2]), odd_q = Q * OVER_Q * d[1];
    v[0] = OVER_0 * d[0];
    v[1] = even_p + odd_p;
    v[2] = even_p - odd_p;
    v[3] = even_q + odd_q;
    v[4] = even_q - odd_q;
    v[5] = d[2];
}

TUNED CYGRAD_INLINE void result(const lanes *d, lanes *v)
{
    const lanes even_p = d[1] + d[2], odd_p = d[1] - d[2], even_q = d[3] + d[4], odd_q = d[3] - d[4];
    v[0] = d[0] + even_p + even_q;
    v[1] = P * odd_p + Q * odd_q;
    v[2] = PP * even_p + QQ * even_q;
    v[3] = d[5] + (P * PP * odd_p + Q * QQ * odd_q);
}

/* The transposes of the last two. */
TUNED CYGRAD_INLINE void result_back(const lanes *d, lanes *v)
{
    const lanes even_p = d[0] + PP * d[2], odd_p = P * d[1] + P * PP * d[3];
    const lanes even_q = d[0] + QQ * d[2], odd_q = Q * d[1] + Q * QQ * d[3];
    v[0] = d[0];
    v[1] = even_p + odd_p;
    v[2] = even_p - odd_p;
    v[3] = even_q + odd_q;
    v[4] = even_q - odd_q;
    v[5] = d[3];
}

TUNED CYGRAD_INLINE void filter_back(const lanes *d, lanes *v)
{
    const lanes even_p = OVER_P * (d[1] + d[2]), odd_p = OVER_P * (d[1] - d[2]);
    const lanes even_q = OVER_Q * (d[3] + d[4]), odd_q = OVER_Q * (d[3] - d[4]);
    v[0] = OVER_0 * d[0] + even_p + even_q;
    v[1] = P * odd_p + Q * odd_q;
    v[2] = d[5] + (PP * even_p + QQ * even_q);
}

/* Transforms FROM x FROM vectors, `row` and `column` elements apart, to TO x TO vectors. */
#define DEFINE_BOTH_WAYS(TRANSFORM, FROM, TO)                                                               \
    TUNED CYGRAD_INLINE void TRANSFORM##_both_ways(const float *in, Py_ssize_t row, Py_ssize_t column,             \
                                            float *out, Py_ssize_t out_row, Py_ssize_t out_column)          \
    {                                                                                                       \
        lanes between[TO][FROM];                                                                            \
        ROLLED for (int j = 0; j < FROM; j++) {                                                             \
            lanes d[FROM], v[TO];                                                                           \
            UNROLLED for (int i = 0; i < FROM; i++) d[i] = LOAD(in + i * row + j * column);                 \
            TRANSFORM(d, v);                                                                          \
            UNROLLED for (int i = 0; i < TO; i++) between[i][j] = v[i];                                     \
        }                                                                                                   \
        ROLLED for (int i = 0; i < TO; i++) {                                                               \
            lanes v[TO];                                                                                    \
            TRANSFORM(between[i], v);                                                                 \
            UNROLLED for (int j = 0; j < TO; j++) STORE(out + i * out_row + j * out_column, v[j]);          \
        }                                                                                                   \
    }

DEFINE_BOTH_WAYS(tile, 6, 6)
DEFINE_BOTH_WAYS(filter, 3, 6)
DEFINE_BOTH_WAYS(result, 6, 4)
DEFINE_BOTH_WAYS(result_back, 4, 6)
DEFINE_BOTH_WAYS(filter_back, 6, 3)
#undef DEFINE_BOTH_WAYS
#undef P
#undef Q
#undef PP
#undef QQ
#undef OVER_0
#undef OVER_P
#undef OVER_Q

/* -- filters ----------------------------------------------------------------------------------------- */

/* Transforms the filters of some produced channels into matrices (channels summed over, channels produced) in panels;
   produced channels are counted in blocks of 16. */
static TUNED void transform_filters(const float *filters, float *out, const Py_ssize_t *n, Py_ssize_t first,
                                    Py_ssize_t count)
{
    const Py_ssize_t depth = n[0], made = n[1], rounded = ROUNDED(made), panel = panel_width();
    for (Py_ssize_t j = 16 * first; j < 16 * (first + count); j += WIDE)
        for (Py_ssize_t i = 0; i < depth; i++) {
            float taps[9 * WIDE] = {0};
            for (Py_ssize_t l = 0; l < WIDE && j + l < made; l++)
                for (int k = 0; k < 9; k++)
                    taps[k * WIDE + l] = filters[i * n[2] + (j + l) * n[3] + (n[4] ? 8 - k : k)];
            filter_both_ways(taps, 3 * WIDE, WIDE, out + in_panels(i, j, depth, rounded, panel),
                             6 * depth * rounded, depth * rounded);
        }
}

/* -- from planes to channels side by side, and back -------------------------------------------------- */

/* out[j][i] = in[i][j], four by four. */
TUNED CYGRAD_INLINE void turn_block(const float *in, Py_ssize_t row, float *out, Py_ssize_t out_row)
{
    const four a = *(const four *)in, b = *(const four *)(in + row);
    const four c = *(const four *)(in + 2 * row), d = *(const four *)(in + 3 * row);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const four AB = __builtin_shufflevector(a, b, 2, 6, 3, 7), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four *)out = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(four *)(out + out_row) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(four *)(out + 2 * out_row) = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
    *(four *)(out + 3 * out_row) = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}

/* out[j][i] = in[i][j] for m rows of n elements. The larger stride is that of the outer loop. */
static TUNED void turn(const float *in, Py_ssize_t row, Py_ssize_t m, Py_ssize_t n, float *out, Py_ssize_t out_row)
{
    const Py_ssize_t whole_m = m / 4 * 4, whole_n = n / 4 * 4;
    if (row > out_row)
        for (Py_ssize_t i = 0; i < whole_m; i += 4)
            for (Py_ssize_t j = 0; j < whole_n; j += 4)
                turn_block(in + i * row + j, row, out + j * out_row + i, out_row);
    else
        for (Py_ssize_t j = 0; j < whole_n; j += 4)
            for (Py_ssize_t i = 0; i < whole_m; i += 4)
                turn_block(in + i * row + j, row, out + j * out_row + i, out_row);
    for (Py_ssize_t i = 0; i < m; i++)
        for (Py_ssize_t j = i < whole_m ? whole_n : 0; j < n; j++) out[j * out_row + i] = in[i * row + j];
}

/* Loads rows of an image from row y and column x on, with adjacent channels; zero outside of the image. */
static TUNED void load_rows(const image_stack *images, Py_ssize_t number, Py_ssize_t y, Py_ssize_t x,
                            Py_ssize_t rows, Py_ssize_t columns, float *out)
{
    const Py_ssize_t width = images->rounded, plane = images->height * images->width;
    const Py_ssize_t left = x < 0 ? (-x < columns ? -x : columns) : 0;
    const Py_ssize_t seen = images->width - x - left < columns - left ? images->width - x - left : columns - left;
    const float *image = images->data + number * images->channels * plane;
    for (const Py_ssize_t end = y + rows; y < end; y++, out += columns * width) {
        const int inside = y >= 0 && y < images->height && seen > 0;
        if (!inside || seen < columns || images->channels < width) memset(out, 0, columns * width * sizeof(float));
        if (inside)
            turn(image + y * images->width + x + left, plane, images->channels, seen, out + left * width, width);
    }
}

/* -- the three passes over strips -------------------------------------------------------------------- */

/* Transforms the tiles of `count` strips of images into matrices (tiles, channels). */
static TUNED void load_tiles(const winograd *w, Py_ssize_t first, Py_ssize_t count)
{
    const Py_ssize_t width = w->images.rounded, row = (4 * w->columns + 2) * width, tiles = count * w->columns;
    const Py_ssize_t matrix = (tiles + 7) / 8 * 8 * width + TAIL;
    for (Py_ssize_t strip = first; strip < first + count; strip++) {
        const Py_ssize_t y = strip % w->rows, shared = strip > first && y > 0 ? 2 : 0;  /* rows of the previous strip */
        if (shared) memcpy(w->strip_of_image, w->strip_of_image + 4 * row, 2 * row * sizeof(float));
        load_rows(&w->images, strip / w->rows, 4 * y - w->low[0] + shared, -w->low[1], 6 - shared,
                  4 * w->columns + 2, w->strip_of_image + shared * row);
        for (Py_ssize_t x = 0; x < w->columns; x++)
            for (Py_ssize_t i = 0; i < width; i += WIDE)
                tile_both_ways(w->strip_of_image + 4 * x * width + i, row, width,
                               w->tiles + ((strip - first) * w->columns + x) * width + i, 6 * matrix, matrix);
    }
    if (tiles % 8)
        for (int k = 0; k < POINTS; k++)
            memset(w->tiles + k * matrix + tiles * width, 0, (8 - tiles % 8) * width * sizeof(float));
}

/* Computes the results of one strip from its sums, matrices (tiles, channels); returns whether they are finite. */
static TUNED int store_strip(const winograd *w, Py_ssize_t strip, const float *sums, Py_ssize_t matrix,
                             const float *bias, float *out)
{
    const image_stack *results = &w->results;
    const Py_ssize_t width = results->rounded, row = 4 * w->columns * width, plane = results->height * results->width;
    const Py_ssize_t top = strip % w->rows * 4;
    for (Py_ssize_t x = 0; x < w->columns; x++)
        for (Py_ssize_t i = 0; i < width; i += WIDE)
            result_both_ways(sums + x * width + i, 6 * matrix, matrix, w->strip_of_results + 4 * x * width + i,
                             row, width);
    lanes doubt = {0};                          /* x - x is 0 unless x is infinite or NaN */
    for (float *p = w->strip_of_results; p < w->strip_of_results + 4 * row; p += width)
        for (Py_ssize_t i = 0; i < width; i += WIDE) {
            const lanes value = LOAD(p + i) + LOAD(bias + i);
            doubt += value - value;
            STORE(p + i, value);
        }
    out += strip / w->rows * results->channels * plane + top * results->width;
    for (Py_ssize_t y = 0; y < 4 && top + y < results->height; y++)
        turn(w->strip_of_results + y * row, width, results->width, results->channels, out + y * results->width,
             plane);
    for (int i = 0; i < WIDE; i++)
        if (doubt[i] != 0) return 0;
    return 1;
}

/* Computes the results of `count` strips, plus the bias; returns whether they are finite. */
static TUNED int make_results(const winograd *w, const float *filters, const float *bias, float *out,
                              Py_ssize_t first, Py_ssize_t count)
{
    const Py_ssize_t depth = w->images.channels, made = w->results.rounded;
    int finite = 1;
    for (const Py_ssize_t end = first + count; first < end; first += w->strips) {
        const Py_ssize_t strips = end - first < w->strips ? end - first : w->strips;
        const Py_ssize_t tiles = (strips * w->columns + 7) / 8 * 8;
        const Py_ssize_t left = tiles * w->images.rounded + TAIL, matrix = tiles * made + TAIL;
        load_tiles(w, first, strips);
        for (int k = 0; k < POINTS; k++)
            multiply_panels(tiles, made, depth, w->tiles + k * left, w->images.rounded, 1, filters + k * depth * made,
                            w->weighted + k * matrix, made, 0);
        for (Py_ssize_t i = 0; i < strips; i++)
            finite &= store_strip(w, first + i, w->weighted + i * w->columns * made, matrix, bias, out);
    }
    return finite;
}

/* Transforms the tiles of strips of results into matrices (tiles, channels) in panels. */
static TUNED void load_results(const winograd *w, Py_ssize_t first, Py_ssize_t count)
{
    const Py_ssize_t width = w->results.rounded, row = 4 * w->columns * width, tiles = count * w->columns;
    const Py_ssize_t matrix = tiles * width + TAIL, panel = panel_width();
    for (Py_ssize_t i = 0; i < count; i++) {
        load_rows(&w->results, (first + i) / w->rows, (first + i) % w->rows * 4, 0, 4, 4 * w->columns,
                  w->strip_of_results);
        for (Py_ssize_t x = 0; x < w->columns; x++)
            for (Py_ssize_t j = 0; j < width; j += WIDE)
                result_back_both_ways(w->strip_of_results + 4 * x * width + j, row, width,
                                      w->weighted + in_panels(i * w->columns + x, j, tiles, width, panel),
                                      6 * matrix, matrix);
    }
}

/* The gradient of the filters from `count` strips of images and results: (channels of images, taps, channels of
   results). */
static TUNED void sum_products(const winograd *w, float *out, Py_ssize_t first, Py_ssize_t count)
{
    const Py_ssize_t m = w->images.rounded, n = w->results.rounded, begin = first;
    for (const Py_ssize_t end = first + count; first < end; first += w->strips) {
        const Py_ssize_t strips = end - first < w->strips ? end - first : w->strips, tiles = strips * w->columns;
        load_tiles(w, first, strips);
        load_results(w, first, strips);
        for (int k = 0; k < POINTS; k++)
            multiply_panels(m, n, tiles, w->tiles + k * ((tiles + 7) / 8 * 8 * m + TAIL), 1, m,
                            w->weighted + k * (tiles * n + TAIL), w->sums + k * m * n, n, first > begin);
    }
    for (Py_ssize_t i = 0; i < w->images.channels; i++, out += 9 * n)
        for (Py_ssize_t j = 0; j < n; j += WIDE)
            filter_back_both_ways(w->sums + i * n + j, 6 * m * n, m * n, out + j, 3 * n, n);
}

CYGRAD_END_LOOPS

/* -- for threads ------------------------------------------------------------------------------------- */

/* Acquires a free scratch buffer; there are as many as threads. */
static Py_ssize_t take_scratch(int32_t *taken, Py_ssize_t count)
{
    for (Py_ssize_t i = 0;; i = (i + 1) % count)
        if (!__atomic_exchange_n(&taken[i], 1, __ATOMIC_ACQUIRE)) return i;
}

/* n: height, width and channels of images, and of results, the zeros above and left of images, number of scratch
   buffers, elements of each, strips at a time. There are as many scratch buffers as threads. */
static winograd winograd_of(const native_call *c, const void *images, const void *results, float *scratch)
{
    winograd w = {{c->n[0], c->n[1], c->n[2], ROUNDED(c->n[2]), images},
                  {c->n[3], c->n[4], c->n[5], ROUNDED(c->n[5]), results}, {c->n[6], c->n[7]}};
    w.rows = (w.results.height + 3) / 4;
    w.columns = (w.results.width + 3) / 4;
    w.strips = c->n[10];
    const Py_ssize_t tiles = (w.strips * w.columns + 7) / 8 * 8;
    w.strip_of_image = scratch;
    w.strip_of_results = w.strip_of_image + 6 * (4 * w.columns + 2) * w.images.rounded;
    w.tiles = w.strip_of_results + 16 * w.columns * w.results.rounded;
    w.weighted = w.tiles + POINTS * (tiles * w.images.rounded + TAIL);
    w.sums = w.weighted + POINTS * (tiles * w.results.rounded + TAIL);
    return w;
}

/* data: filters, transformed filters; n: channels summed over, channels produced, strides of both, whether taps are in
   reverse order. */
static void winograd_filters_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    transform_filters(AT(0, 0), AT(1, 0), c->n, first, count);
}

/* data: images, transformed filters, results, bias (rounded up), scratch, marks of used scratch; n as in
   `winograd_of` */
static void winograd_results_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    int32_t *taken = (int32_t *)c->data[5];
    const Py_ssize_t slot = take_scratch(taken, c->n[8]);
    const winograd w = winograd_of(c, AT(0, 0), AT(2, 0), AT(4, slot * c->n[9]));
    if (!make_results(&w, AT(1, 0), AT(3, 0), AT(2, 0), first, count)) c->failed = 1;
    __atomic_store_n(&taken[slot], 0, __ATOMIC_RELEASE);
}

/* data: images, results, sums over strips (chunks, channels of images, taps, channels of results), scratch, marks */
static void winograd_sums_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    int32_t *taken = (int32_t *)c->data[4];
    const Py_ssize_t slot = take_scratch(taken, c->n[8]);
    const winograd w = winograd_of(c, AT(0, 0), AT(1, 0), AT(3, slot * c->n[9]));
    sum_products(&w, AT(2, first / c->piece * 9 * w.images.channels * w.results.rounded), first, count);
    __atomic_store_n(&taken[slot], 0, __ATOMIC_RELEASE);
}

#endif
#endif
