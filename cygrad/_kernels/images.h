/* Loops over windows of images (planes, height, width), for float and double; called from images.py.

   Place `o` of the result sees place `o * stride + k * dilation - low` of the image through tap `k`; places outside of
   the image are zero. Patches are an array (planes, taps, ...) of what each tap sees, with steps of any size between
   planes and between taps; one tap's results stand in one row. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_IMAGES_H
#define CYGRAD_IMAGES_H

#include <stdint.h>
#include <string.h>
#include "clones.h"

typedef struct {
    Py_ssize_t image[2], kernel[2], stride[2], dilation[2], low[2];
    Py_ssize_t first, last, width;      /* the rows of the result that are worked on, and its width */
} windows;

/* The results from `begin` on and before `end` that see a place of the image through tap k, along one dimension. */
static void span(const windows *w, int d, Py_ssize_t k, Py_ssize_t *begin, Py_ssize_t *end)
{
    const Py_ssize_t shift = w->low[d] - k * w->dilation[d], stride = w->stride[d], past = w->image[d] + shift;
    const Py_ssize_t low = shift > 0 ? (shift + stride - 1) / stride : 0;
    const Py_ssize_t high = past > 0 ? (past + stride - 1) / stride : 0;
    if (*begin < low) *begin = low < *end ? low : *end;
    if (*end > high) *end = high > *begin ? high : *begin;
}

CYGRAD_BEGIN_LOOPS

#define REAL float
#define NAME(name) name##_f32
#include "images.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_f64
#include "images.h"
#undef REAL
#undef NAME

CYGRAD_END_LOOPS

/* n: image, kernel, stride, dilation and low, each of two dimensions, rows and width of the result; images, channels.
   The low ones may be negative, all others are not. */
static windows windows_of(const native_call *c)
{
    windows w;
    memcpy(&w, c->n, 10 * sizeof(Py_ssize_t));
    w.first = 0;
    w.last = c->n[10];
    w.width = c->n[11];
    return w;
}

/* The first element of a plane's patches, which are (channels, taps, images, rows, width). */
static Py_ssize_t patches_of(const native_call *c, const windows *w, Py_ssize_t plane)
{
    const Py_ssize_t channels = c->n[12], images = c->n[13];
    return (plane % channels * w->kernel[0] * w->kernel[1] * images + plane / channels) * w->last * w->width;
}

/* data: images, patches */
static void copy_patches_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const windows w = windows_of(c);
    for (Py_ssize_t i = first; i < first + count; i++)
        BY_TYPE(c->is_double, copy_patches, AT(0, i * w.image[0] * w.image[1]), AT(1, patches_of(c, &w, i)),
                c->n[13] * w.last * w.width, &w);
}

static void add_patches_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const windows w = windows_of(c);
    for (Py_ssize_t i = first; i < first + count; i++)
        BY_TYPE(c->is_double, add_patches, AT(0, i * w.image[0] * w.image[1]), AT(1, patches_of(c, &w, i)),
                c->n[13] * w.last * w.width, &w);
}

/* data: images, largest elements, their places */
static void largest_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const windows w = windows_of(c);
    const Py_ssize_t size = w.last * w.width;
    for (Py_ssize_t i = first; i < first + count; i++)
        BY_TYPE(c->is_double, largest_of_windows, AT(0, i * w.image[0] * w.image[1]), AT(1, i * size),
                (int64_t *)c->data[2] + i * size, &w);
}

/* data: out, values, places; n: elements of a row of out, and of the others */
static void add_at_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    const Py_ssize_t n = c->n[0], m = c->n[1];
    for (Py_ssize_t i = first; i < first + count; i++)
        if (!BY_TYPE(c->is_double, add_at, AT(0, i * n), n, (const int64_t *)c->data[2] + i * m, AT(1, i * m), m))
            c->failed = 1;
}

#endif
#else

/* The patches of one plane. */
static void NAME(copy_patches)(const REAL *image, REAL *patches, Py_ssize_t tap_step, const windows *w)
{
    for (Py_ssize_t ky = 0; ky < w->kernel[0]; ky++) {
        Py_ssize_t top = w->first, bottom = w->last;
        span(w, 0, ky, &top, &bottom);
        for (Py_ssize_t kx = 0; kx < w->kernel[1]; kx++, patches += tap_step) {
            Py_ssize_t left = 0, right = w->width;
            span(w, 1, kx, &left, &right);
            const Py_ssize_t n = right - left, stride = w->stride[1];
            REAL *out = patches;
            memset(out, 0, (top - w->first) * w->width * sizeof(REAL));
            out += (top - w->first) * w->width;
            for (Py_ssize_t y = top; y < bottom; y++, out += w->width) {
                const REAL *from = image + (y * w->stride[0] + ky * w->dilation[0] - w->low[0]) * w->image[1]
                                 + left * stride + kx * w->dilation[1] - w->low[1];
                REAL *to = out + left;
                for (Py_ssize_t x = 0; x < left; x++) out[x] = 0;
                if (stride == 1) for (Py_ssize_t x = 0; x < n; x++) to[x] = from[x];
                else for (Py_ssize_t x = 0; x < n; x++) to[x] = from[x * stride];
                for (Py_ssize_t x = right; x < w->width; x++) out[x] = 0;
            }
            memset(out, 0, (w->last - bottom) * w->width * sizeof(REAL));
        }
    }
}

static CYGRAD_CLONES void NAME(add_run)(REAL *to, const REAL *from, Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t x = 0; x < n; x++) to[x] += from[x];
}

/* The way back: adds the patches of one plane to it. */
static void NAME(add_patches)(REAL *image, const REAL *patches, Py_ssize_t tap_step, const windows *w)
{
    for (Py_ssize_t ky = 0; ky < w->kernel[0]; ky++) {
        Py_ssize_t top = w->first, bottom = w->last;
        span(w, 0, ky, &top, &bottom);
        for (Py_ssize_t kx = 0; kx < w->kernel[1]; kx++, patches += tap_step) {
            Py_ssize_t left = 0, right = w->width;
            span(w, 1, kx, &left, &right);
            const Py_ssize_t n = right - left, stride = w->stride[1];
            for (Py_ssize_t y = top; y < bottom; y++) {
                REAL *to = image + (y * w->stride[0] + ky * w->dilation[0] - w->low[0]) * w->image[1]
                         + left * stride + kx * w->dilation[1] - w->low[1];
                const REAL *from = patches + (y - w->first) * w->width + left;
                if (stride == 1) NAME(add_run)(to, from, n);
                else for (Py_ssize_t x = 0; x < n; x++) to[x * stride] += from[x];
            }
        }
    }
}

/* out[places[i]] += values[i], one after the other; tells whether all places are below n. */
static int NAME(add_at)(REAL *out, Py_ssize_t n, const int64_t *places, const REAL *values, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if ((uint64_t)places[i] >= (uint64_t)n) return 0;
        out[places[i]] += values[i];
    }
    return 1;
}

/* Lets `best` be no less than the elements before it, and notes where they stand if they are; below 0: nowhere yet. */
static CYGRAD_CLONES void NAME(raise)(const REAL *from, Py_ssize_t stride, REAL *best, int32_t *places, int32_t place,
                                      Py_ssize_t n)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t x = 0; x < n; x++) {
        const REAL value = from[x * stride];
        const int better = (value > best[x]) | (value != value) | (places[x] < 0);
        best[x] = better ? value : best[x];
        places[x] = better ? place : places[x];
    }
}

/* The largest element of each window of one plane, and its place; of equal ones the first, of several nan the last. Each
   window sees some place of the image. */
static void NAME(largest_of_windows)(const REAL *image, REAL *out, int64_t *places, const windows *w)
{
    int32_t from_corner[256];           /* places, counted from that of the window's first tap */
    for (Py_ssize_t y = w->first; y < w->last; y++)
        for (Py_ssize_t x = 0, n; x < w->width; x += n, out += n, places += n) {
            const Py_ssize_t top = y * w->stride[0] - w->low[0], left = x * w->stride[1] - w->low[1];
            n = w->width - x < 256 ? w->width - x : 256;
            for (Py_ssize_t i = 0; i < n; i++) out[i] = 0, from_corner[i] = -1;
            for (Py_ssize_t ky = 0; ky < w->kernel[0]; ky++) {
                const Py_ssize_t row = top + ky * w->dilation[0];
                if (row < 0 || row >= w->image[0]) continue;
                for (Py_ssize_t kx = 0; kx < w->kernel[1]; kx++) {
                    Py_ssize_t begin = x, end = x + n;
                    const Py_ssize_t right = kx * w->dilation[1];
                    span(w, 1, kx, &begin, &end);
                    NAME(raise)(image + row * w->image[1] + begin * w->stride[1] + right - w->low[1], w->stride[1],
                                out + begin - x, from_corner + begin - x,
                                (int32_t)(ky * w->dilation[0] * w->image[1] + right), end - begin);
                }
            }
            for (Py_ssize_t i = 0; i < n; i++)
                places[i] = top * w->image[1] + left + i * w->stride[1] + from_corner[i];
        }
}
#endif
