/* Float convolutions of any stride and dilation, by patches in panels; called from patch_convolution.py.

   A band is several rows of the results of one image. The places of a channel that it reads are copied into zero-padded
   planes, one for each remainder of places by the stride. Read as one row, a plane that begins at a tap is what that
   tap reads, with some unwanted places between the rows: the patches of a tap are one run of memory.

   Volumes are processed slice by slice: what a slice of results reads of a channel, one slice for each tap of depth,
   counts as that many channels of an image. Images are volumes of one slice. */

#ifndef CYGRAD_PATCHWISE_H
#define CYGRAD_PATCHWISE_H

#include "image/winograd.h"

#define DEPTH 128               /* places summed over at a time, at least the columns of a panel */

#ifdef CYGRAD_VECTORS

/* In the order of a call's numbers. `channels` are those of a slice of results; `taps` counts those of all channels; a
   band has at most `rows` rows; there are as many `scratches` of `length` elements as threads; `plane` is the rows and
   width of a plane. Groups of channels count as separate images, which cycle through the
   filters of the groups. */
typedef struct {
    Py_ssize_t image[2], channels, results[2], filters, low[2], stride[2], plane[2], taps, rows, groups;
    struct { Py_ssize_t image, results, taps, low, stride, dilation; } depth;
    Py_ssize_t scratches, length;
} patchwise;

/* A band's image, its slice, its first row and number of rows; places in the runs of a tap. */
typedef struct { Py_ssize_t image, slice, first, rows, places; } band;

/* The contents of a scratch buffer: planes, patches, the results of a band or their gradient, and some of that
   transposed. */
typedef struct { float *planes, *patches, *results, *turned; } room;

#define TAPS(p) (((p)->taps + 7) / 8 * 8)

BEGIN_VECTORS

/* out = from + bias for n elements; the two must not overlap. */
static TUNED void copy_places(const float *from, Py_ssize_t n, float bias, float *out)
{
    Py_ssize_t i = 0;
    for (; i + WIDE <= n; i += WIDE) STORE(out + i, LOAD(from + i) + bias);
    if (n >= WIDE) STORE(out + n - WIDE, LOAD(from + n - WIDE) + bias);
    else for (; i < n; i++) out[i] = from[i] + bias;
}

/* out[i] = from[stride * i] for n elements, and its transpose. */

static TUNED void copy_apart(const float *from, Py_ssize_t stride, Py_ssize_t n, float *out)
{
    Py_ssize_t i = 0;
    if (stride == 2 && n >= WIDE) {
        for (; i + WIDE < n; i += WIDE) STORE(out + i, load_apart(from + 2 * i, 2));
        STORE(out + n - WIDE, load_apart(from + 2 * (n - WIDE), 2));
    } else for (; i < n; i++) out[i] = from[stride * i];
}

static TUNED void add_apart(const float *from, Py_ssize_t stride, Py_ssize_t n, float *out)
{
    for (Py_ssize_t i = 0; i < n; i++) out[stride * i] += from[i];
}

/* Copies runs of `n` places from several offsets, one after the other; and the transpose. */
static TUNED void copy_runs(const float *from, const int64_t *offsets, Py_ssize_t count, Py_ssize_t n, float *out)
{
    for (Py_ssize_t k = 0; k < count; k++, out += n)
        for (Py_ssize_t i = 0; i < n; i += WIDE) STORE(out + i, LOAD(from + offsets[k] + i));
}

static TUNED void add_runs(const float *runs, const int64_t *offsets, Py_ssize_t count, Py_ssize_t n, float *out)
{
    for (Py_ssize_t k = 0; k < count; k++, runs += n)
        for (Py_ssize_t i = 0; i < n; i += WIDE) {
            float *to = out + offsets[k] + i;
            STORE(to, LOAD(to) + LOAD(runs + i));
        }
}

/* For a single filter: the weighted sum of runs, and its transpose in the source of the runs. */

static TUNED void sum_runs(const float *from, const int64_t *offsets, Py_ssize_t count, const float *weights,
                           Py_ssize_t n, float *out)
{
    for (Py_ssize_t i = 0; i < n; i += 2 * WIDE) {
        lanes low = {0}, high = {0};
        for (Py_ssize_t k = 0; k < count; k++) {
            low += weights[k] * LOAD(from + offsets[k] + i);
            high += weights[k] * LOAD(from + offsets[k] + i + WIDE);
        }
        STORE(out + i, low);
        STORE(out + i + WIDE, high);
    }
}

static TUNED void add_run(const float *run, const int64_t *offsets, Py_ssize_t count, const float *weights,
                          Py_ssize_t n, float *out)
{
    for (Py_ssize_t k = 0; k < count; k++)
        for (Py_ssize_t i = 0; i < n; i += WIDE) {
            float *to = out + offsets[k] + i;
            STORE(to, LOAD(to) + weights[k] * LOAD(run + i));
        }
}

/* Adds to sums the products of a few runs with the gradients of a few filters, whose rows are `row` apart. */
TUNED CYGRAD_INLINE void few_products(int taps, int filters, const float *from, const int64_t *offsets, const float *g,
                                      Py_ssize_t row, Py_ssize_t n, float *out, Py_ssize_t out_row)
{
    lanes sums[4][3];
    UNROLLED for (int k = 0; k < taps; k++)
        UNROLLED for (int f = 0; f < filters; f++) sums[k][f] = (lanes){0};
    for (Py_ssize_t i = 0; i < n; i += WIDE)
        UNROLLED for (int k = 0; k < taps; k++)
            UNROLLED for (int f = 0; f < filters; f++)
                sums[k][f] += LOAD(from + offsets[k] + i) * LOAD(g + f * row + i);
    for (int k = 0; k < taps; k++)
        for (int f = 0; f < filters; f++)
            for (int i = 0; i < WIDE; i++) out[k * out_row + f] += sums[k][f][i];
}

/* The same for all runs and filters; for few filters, which would leave most of a panel empty. */
static TUNED void products_of_runs(const float *from, const int64_t *offsets, Py_ssize_t taps, const float *g,
                                   Py_ssize_t row, Py_ssize_t filters, Py_ssize_t n, float *out, Py_ssize_t out_row)
{
    for (Py_ssize_t k = 0, some; k < taps; k += some) {
        some = k + 4 <= taps && filters >= 3 ? 4 : 1;
        for (Py_ssize_t f = 0, few; f < filters; f += few) {
            float *to = out + k * out_row + f;
            few = some == 4 && f + 3 <= filters ? 3 : 1;
            if (few == 3) few_products(4, 3, from, offsets + k, g + f * row, row, n, to, out_row);
            else for (Py_ssize_t l = 0; l < some; l++)
                few_products(1, 1, from, offsets + k + l, g + f * row, row, n, to + l * out_row, out_row);
        }
    }
}

CYGRAD_END_LOOPS

static band band_of(const patchwise *p, Py_ssize_t number)
{
    const Py_ssize_t bands = (p->results[0] + p->rows - 1) / p->rows, first = number % bands * p->rows;
    const Py_ssize_t rows = p->results[0] - first < p->rows ? p->results[0] - first : p->rows;
    const Py_ssize_t slice = number / bands;
    const band b = {slice / p->depth.results, slice % p->depth.results, first, rows, ROUNDED(rows * p->plane[1])};
    return b;
}

/* The first place of a band for a filter, in results or their gradient. */
static float *results_of(const patchwise *p, const band *b, float *results, Py_ssize_t filter)
{
    const Py_ssize_t slice = (b->image * p->filters + filter) * p->depth.results + b->slice;
    return results + (slice * p->results[0] + b->first) * p->results[1];
}

static room room_of(const patchwise *p, float *memory)
{
    const Py_ssize_t places = ROUNDED(p->rows * p->plane[1]);
    room r = {memory};
    r.patches = memory + p->channels * p->stride[0] * p->stride[1] * p->plane[0] * p->plane[1] + p->plane[1] + 16;
    r.results = r.patches + TAPS(p) * DEPTH;
    r.turned = r.results + (p->filters + 7) / 8 * 8 * places;
    return r;
}

/* Copies the places of a band's image into zero-padded planes; or, with `back`, adds planes to the image. The runs of
   the last plane end in zeros beyond it. */
static void visit_planes(const patchwise *p, const band *b, float *image, float *planes, int back)
{
    const Py_ssize_t width = p->plane[1], stride = p->stride[1];
    for (Py_ssize_t c = 0; c < p->channels; c++) {
        const Py_ssize_t z = b->slice * p->depth.stride + c % p->depth.taps * p->depth.dilation - p->depth.low;
        const Py_ssize_t channel = (b->image * p->channels + c) / p->depth.taps, seen = z >= 0 && z < p->depth.image;
        float *slice = image + (channel * p->depth.image + z) * p->image[0] * p->image[1];
        for (Py_ssize_t dy = 0; dy < p->stride[0]; dy++)
            for (Py_ssize_t dx = 0; dx < stride; dx++)
                for (Py_ssize_t i = 0; i < p->plane[0]; i++, planes += width) {
                    const Py_ssize_t y = (b->first + i) * p->stride[0] + dy - p->low[0], before = p->low[1] - dx;
                    const Py_ssize_t left = before > 0 ? (before + stride - 1) / stride : 0;
                    const Py_ssize_t past = (p->image[1] + before + stride - 1) / stride;
                    const Py_ssize_t right = !seen || y < 0 || y >= p->image[0] ? 0 : past < width ? past : width;
                    float *row = slice + y * p->image[1] - before;
                    if (back) add_apart(planes + left, stride, right - left, row + left * stride);
                    else {
                        if (left > 0 || right < width) memset(planes, 0, width * sizeof(float));
                        if (stride == 1 && left < right) copy_places(row + left, right - left, 0, planes + left);
                        else copy_apart(row + left * stride, stride, right - left, planes + left);
                    }
                }
    }
    if (!back) memset(planes, 0, (width + 16) * sizeof(float));
}

/* Loads the gradient of a band's results, in runs like those of taps, with 0 at unwanted places. */
static void load_gradient(const patchwise *p, const band *b, const room *r, float *g)
{
    const Py_ssize_t width = p->plane[1];
    memset(r->results, 0, p->filters * b->places * sizeof(float));
    for (Py_ssize_t f = 0; f < p->filters; f++)
        for (Py_ssize_t y = 0; y < b->rows; y++)
            copy_places(results_of(p, b, g, f) + y * p->results[1], p->results[1], 0,
                        r->results + f * b->places + y * width);
}

/* Transposes `count` of a band's places from j on to adjacent filters, in panels. */
static void turn_gradient(const patchwise *p, const band *b, const room *r, Py_ssize_t j, Py_ssize_t count)
{
    const Py_ssize_t n = ROUNDED(p->filters), panel = panel_width();
    for (Py_ssize_t f = 0; f < n; f += panel) {
        const Py_ssize_t width = n - f < panel ? n - f : panel, some = p->filters - f < width ? p->filters - f : width;
        if (some < width) memset(r->turned + f * count, 0, width * count * sizeof(float));
        turn(r->results + f * b->places + j, b->places, some, count, r->turned + f * count, width);
    }
}

static void patchwise_results(const patchwise *p, const band *b, const room *r, float *images, const float *filters,
                              const int64_t *taps, const float *bias, float *out)
{
    const Py_ssize_t panel = panel_width(), rounded = (p->filters + 7) / 8 * 8;
    filters += b->image % p->groups * rounded * p->taps;
    visit_planes(p, b, images, r->planes, 0);
    if (p->filters == 1) sum_runs(r->planes, taps, p->taps, filters, b->places, r->results);
    else for (Py_ssize_t j = 0; j < b->places; j += panel) {
        const Py_ssize_t count = b->places - j < panel ? b->places - j : panel;
        copy_runs(r->planes + j, taps, p->taps, count, r->patches);
        multiply_panels(rounded, count, p->taps, filters, p->taps, 1, r->patches, r->results + j, b->places, 0);
    }
    bias += b->image % p->groups * p->filters;
    for (Py_ssize_t f = 0; f < p->filters; f++)
        for (Py_ssize_t y = 0; y < b->rows; y++)
            copy_places(r->results + f * b->places + y * p->plane[1], p->results[1], bias[f],
                        results_of(p, b, out, f) + y * p->results[1]);
}

static void patchwise_images(const patchwise *p, const band *b, const room *r, float *g, const float *filters,
                             const int64_t *taps, float *images)
{
    const Py_ssize_t panel = panel_width();
    filters += b->image % p->groups * TAPS(p) * p->filters;
    load_gradient(p, b, r, g);
    memset(r->planes, 0, (r->patches - r->planes) * sizeof(float));
    if (p->filters == 1) add_run(r->results, taps, p->taps, filters, b->places, r->planes);
    else for (Py_ssize_t j = 0; j < b->places; j += panel) {
        const Py_ssize_t count = b->places - j < panel ? b->places - j : panel;
        for (Py_ssize_t f = 0; f < p->filters; f++)
            memcpy(r->turned + f * count, r->results + f * b->places + j, count * sizeof(float));
        multiply_panels(TAPS(p), count, p->filters, filters, p->filters, 1, r->turned, r->patches, count, 0);
        add_runs(r->patches, taps, p->taps, count, r->planes + j);
    }
    visit_planes(p, b, images, r->planes, 1);
}

static void patchwise_sums(const patchwise *p, const band *b, const room *r, float *images, float *g,
                           const int64_t *taps, float *sums)
{
    const Py_ssize_t n = ROUNDED(p->filters);
    sums += b->image % p->groups * TAPS(p) * n;
    visit_planes(p, b, images, r->planes, 0);
    load_gradient(p, b, r, g);
    if (p->filters < 8)
        products_of_runs(r->planes, taps, p->taps, r->results, b->places, p->filters, b->places, sums, n);
    else for (Py_ssize_t j = 0; j < b->places; j += DEPTH) {
        const Py_ssize_t count = b->places - j < DEPTH ? b->places - j : DEPTH;
        copy_runs(r->planes + j, taps, p->taps, count, r->patches);
        memset(r->patches + p->taps * count, 0, (TAPS(p) - p->taps) * count * sizeof(float));
        turn_gradient(p, b, r, j, count);
        multiply_panels(TAPS(p), n, count, r->patches, count, 1, r->turned, sums, n, 1);
    }
}

/* Items are bands, or images whose bands are processed one after the other. */
#define DEFINE_PART(NAME, MARKS, SCRATCHES, BANDS, ...)                                                     \
    static void NAME##_part(void *context, Py_ssize_t first, Py_ssize_t count)                              \
    {                                                                                                       \
        const native_call *c = context;                                                                     \
        const patchwise *p = (const patchwise *)c->n;                                                       \
        const Py_ssize_t slot = take_scratch((int32_t *)c->data[MARKS], p->scratches), bands = BANDS;       \
        const room r = room_of(p, AT(SCRATCHES, slot * p->length));                                         \
        for (Py_ssize_t i = first * bands; i < (first + count) * bands; i++) {                              \
            const band b = band_of(p, i);                                                                   \
            NAME(p, &b, &r, __VA_ARGS__);                                                                   \
        }                                                                                                   \
        __atomic_store_n((int32_t *)c->data[MARKS] + slot, 0, __ATOMIC_RELEASE);                            \
    }

/* data: images, filters (rounded up to 8, taps), places of taps, bias, results, scratches, marks */
DEFINE_PART(patchwise_results, 6, 5, 1, AT(0, 0), AT(1, 0), AT(2, 0), AT(3, 0), AT(4, 0))

/* data: results, filters (taps rounded up to 8, filters), places of taps, images, scratches, marks; items are images */
DEFINE_PART(patchwise_images, 5, 4, (p->results[0] + p->rows - 1) / p->rows * p->depth.results, AT(0, 0), AT(1, 0), AT(2, 0), AT(3, 0))

/* data: images, results, places of taps, sums per chunk, scratches, marks */
DEFINE_PART(patchwise_sums, 5, 4, 1, AT(0, 0), AT(1, 0), AT(2, 0),
            AT(3, first / c->piece * p->groups * TAPS(p) * ROUNDED(p->filters)))

#endif
#endif
