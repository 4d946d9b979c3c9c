/* Loops over windows of images (planes, height, width), for float and double; called from patches.py.

   Place `o` of the result reads place `o * stride + k * dilation - low` of the image through tap `k`; places outside of
   the image are zero. Patches are an array (planes, taps, ...) of what each tap reads, with arbitrary strides between
   planes and between taps; the results of one tap are contiguous. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_IMAGES_H
#define CYGRAD_IMAGES_H

#include <stdint.h>
#include <string.h>
#include "base/packed_matmul.h"

typedef struct {
    Py_ssize_t image[2], kernel[2], stride[2], dilation[2], low[2];
    Py_ssize_t first, last, width;      /* the rows of the result to compute, and its width */
} windows;

/* Narrows `begin` and `end` to the results that read a place of the image through tap k, along one dimension. */
static void span(const windows *w, int d, Py_ssize_t k, Py_ssize_t *begin, Py_ssize_t *end)
{
    const Py_ssize_t shift = w->low[d] - k * w->dilation[d], stride = w->stride[d], past = w->image[d] + shift;
    const Py_ssize_t low = shift > 0 ? (shift - 1) / stride + 1 : 0;
    const Py_ssize_t high = past > 0 ? (past - 1) / stride + 1 : 0;      /* cannot overflow */
    if (*begin < low) *begin = low < *end ? low : *end;
    if (*end > high) *end = high > *begin ? high : *begin;
}

/* The first place of the image that the window of a result reads along one dimension, and one past the last. The window
   may be far larger than the image. */
static Py_ssize_t first_inside(const windows *w, int d, Py_ssize_t result)
{
    const Py_ssize_t first = result * w->stride[d] - w->low[d], step = w->dilation[d];
    return first >= 0 ? first : step == 1 ? 0 : first + (step - 1 - first) / step * step;
}

static Py_ssize_t past_inside(const windows *w, int d, Py_ssize_t result)
{
    const Py_ssize_t first = result * w->stride[d] - w->low[d], room = w->image[d] - first, step = w->dilation[d];
    if (room <= 0) return 0;
    return w->kernel[d] - 1 < room / step ? first + (w->kernel[d] - 1) * step + 1 : w->image[d];
}

CYGRAD_BEGIN_PLAIN_LOOPS

#define REAL float
#define NAME(name) name##_f32
#include "image/patches.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) name##_f64
#include "image/patches.h"
#undef REAL
#undef NAME

CYGRAD_END_LOOPS

/* n: image, kernel, stride, dilation and low, each for two dimensions, rows and width of the result; channels, images.
   Only `low` may be negative. */
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

#ifdef CYGRAD_VECTORS
BEGIN_VECTORS

typedef int32_t whole_lanes __attribute__((vector_size(4 * WIDE)));

/* The maxima of adjacent windows, and their offsets from the first tap. */
static TUNED void largest_of_vectors(const float *corner, Py_ssize_t row, const Py_ssize_t *kernel,
                                     const Py_ssize_t *dilation, Py_ssize_t stride, float *out, int32_t *places)
{
    lanes best = load_apart(corner, stride);
    whole_lanes place = {0};
    for (Py_ssize_t ky = 0; ky < kernel[0]; ky++)
        for (Py_ssize_t kx = ky == 0; kx < kernel[1]; kx++) {
            const Py_ssize_t at = ky * dilation[0] * row + kx * dilation[1];
            const lanes value = load_apart(corner + at, stride);
            const whole_lanes better = (value > best) | (value != value);
            best = (lanes)(((whole_lanes)value & better) | ((whole_lanes)best & ~better));
            place = ((int32_t)at & better) | (place & ~better);
        }
    STORE(out, best);
    memcpy(places, &place, sizeof(place));
}

CYGRAD_END_LOOPS
#endif

/* The maxima, and their places, of the windows from x to `end` of row y, which do not reach beyond the image sideways.
   Returns where it had to stop; `past` is the end of all readable memory. */
static Py_ssize_t largest_side_by_side(const float *image, const float *past, const windows *w, Py_ssize_t y,
                                       Py_ssize_t x, Py_ssize_t end, float *out, int64_t *places)
{
#ifdef CYGRAD_VECTORS
    const Py_ssize_t top = y * w->stride[0] - w->low[0], last = (w->kernel[0] - 1) * w->dilation[0];
    const Py_ssize_t stride = w->stride[1], last_tap = last * w->image[1] + (w->kernel[1] - 1) * w->dilation[1];
    if (!HAS_PANELS || top < 0 || top + last >= w->image[0] || stride > w->image[1]) return x;
    for (; x < end; x += WIDE) {
        const Py_ssize_t corner = top * w->image[1] + x * stride - w->low[1];
        float best[WIDE];
        int32_t taps[WIDE];
        if (past - image < corner + last_tap + (WIDE - 1) * stride + 1) return x;
        largest_of_vectors(image + corner, w->image[1], w->kernel, w->dilation, stride, best, taps);
        for (Py_ssize_t i = 0; i < WIDE && x + i < end; i++) {
            out[x + i] = best[i];
            places[x + i] = corner + i * stride + taps[i];
        }
    }
    return end;
#else
    return x;
#endif
}

/* data: images, maxima, their places. Each window reads some place of the image. */
static void largest_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const windows w = windows_of(c);
    const Py_ssize_t size = w.image[0] * w.image[1], planes = c->n[12] * c->n[13];
    Py_ssize_t begin = 0, end = w.width, row = first * w.last;
    span(&w, 1, 0, &begin, &end);
    span(&w, 1, w.kernel[1] - 1, &begin, &end);
    for (Py_ssize_t plane = first; plane < first + count; plane++)
        for (Py_ssize_t y = 0; y < w.last; y++, row++) {
            int64_t *places = (int64_t *)c->data[2] + row * w.width;
            for (Py_ssize_t x = 0; x < w.width; x++) {
                if (x == begin && !c->is_double)
                    x = largest_side_by_side(AT(0, plane * size), AT(0, planes * size), &w, y, x, end,
                                             AT(1, row * w.width), places);
                if (x < w.width)
                    BY_TYPE(c->is_double, largest_of_window, AT(0, plane * size), &w, y, x, AT(1, row * w.width + x),
                            places + x);
            }
        }
}

/* The maxima of all windows of an image; returns whether all places they read are inside. */
static int largest_of_places(const native_call *c, Py_ssize_t item)
{
    const Py_ssize_t *windows = c->n + 3, *taps = c->n + 6, rows = c->n[1], width = c->n[2], columns = taps[2];
    const uint64_t size = c->n[9];
    const int64_t *begin[3], *a, *b, *at;
    const char *image = AT(0, item * c->n[9]);
    char *out = AT(1, item * c->n[10]);
    int64_t *place = (int64_t *)c->data[2] + item * c->n[10];
    int is_inside = 1;
    for (int d = 0; d < 3; d++) begin[d] = (const int64_t *)c->data[3 + d] + (c->n[11] ? item * windows[d] * taps[d] : 0);
    for (a = begin[0]; a < begin[0] + windows[0] * taps[0]; a += taps[0])
        for (b = begin[1]; b < begin[1] + windows[1] * taps[1]; b += taps[1])
            for (at = begin[2]; at < begin[2] + windows[2] * columns; at += columns) {
                double best = 0;
                uint64_t found = size;          /* none yet */
                for (Py_ssize_t i = 0; i < taps[0]; i++)
                    for (Py_ssize_t j = 0; j < taps[1]; j++) {
                        const uint64_t row = ((uint64_t)a[i] * rows + b[j]) * width;
                        for (Py_ssize_t k = 0; k < columns; k++) {
                            const uint64_t one = row + at[k];
                            const double value = one >= size ? 0 : c->is_double ? ((const double *)image)[one] : ((const float *)image)[one];
                            is_inside &= one < size;
                            if ((value > best) | (value != value) | (found == size)) best = value, found = one;
                        }
                    }
                if (found < size) memcpy(out, image + found * c->itemsize, c->itemsize);
                out += c->itemsize;
                *place++ = (int64_t)found;
            }
    return is_inside;
}

/* data: images, maxima, their places, tables (images or 1, windows, taps) of places along three dimensions (int64). n:
   image, windows and taps, each for three dimensions, elements of an image, windows of it, whether each image has its
   own tables. Items are images. Fails if a place is outside. */
static void largest_of_places_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    native_call *c = context;
    for (Py_ssize_t i = first; i < first + count; i++)
        if (!largest_of_places(c, i)) c->failed = 1;
}

#endif
#else

/* Copies the patches of one plane. */
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

/* The transpose: adds the patches of one plane to it. */
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

/* The maximum of the window at (y, x), and its place. */
static void NAME(largest_of_window)(const REAL *image, const windows *w, Py_ssize_t y, Py_ssize_t x, REAL *out,
                                    int64_t *place)
{
    const Py_ssize_t top = first_inside(w, 0, y), left = first_inside(w, 1, x);
    const Py_ssize_t bottom = past_inside(w, 0, y), right = past_inside(w, 1, x);
    REAL best = 0;
    *place = -1;
    for (Py_ssize_t row = top; row < bottom; row += w->dilation[0]) {
        for (Py_ssize_t column = left; column < right; column += w->dilation[1]) {
            const REAL value = image[row * w->image[1] + column];
            const int better = (value > best) | (value != value) | (*place < 0);
            best = better ? value : best;
            *place = better ? row * w->image[1] + column : *place;
        }
    }
    *out = best;
}
#endif
