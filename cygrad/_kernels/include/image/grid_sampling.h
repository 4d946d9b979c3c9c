/* Samples images at the points of a grid, and computes the gradients; called from grid_sampling.py, which documents the
   semantics. */

#ifndef REAL                    /* the file includes itself once for each type */
#ifndef CYGRAD_SAMPLING_H
#define CYGRAD_SAMPLING_H

#include <math.h>
#include <string.h>
#include "platform/target_clones.h"

enum { BILINEAR, NEAREST, BICUBIC };                        /* modes, and padding beyond the image, as in grid_sampling.py */
enum { ZEROS, BORDER, REFLECTION };
enum { MOST_POINTS = 64, MOST_TAPS = 4, MOST_CORNERS = 16, TOGETHER = 4 };

/* In the order of a call's numbers; a channel has `count` elements, with `sizes` along `dims`. */
typedef struct { Py_ssize_t mode, padding, align_corners, dims, channels, points, count, sizes[3]; } sampling;

static int taps_of(const sampling *s) { return s->mode == BILINEAR ? 2 : s->mode == NEAREST ? 1 : 4; }

CYGRAD_BEGIN_LOOPS

#define REAL float
#define ROUND(name) name##f
#define CLONES CYGRAD_CLONES
#define NAME(name) name##_f32
#include "image/grid_sampling.h"
#undef REAL
#undef ROUND
#undef CLONES
#undef NAME

#define REAL double
#define ROUND(name) name
#define CLONES
#define NAME(name) name##_f64
#include "image/grid_sampling.h"
#undef REAL
#undef ROUND
#undef CLONES
#undef NAME

CYGRAD_END_LOOPS

/* data: images (n, channels, count), grids (n, points, dims), results (n, channels, points); n: a `sampling`. Items are
   MOST_POINTS points of an image. */
static void sample_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const sampling *s = (const sampling *)c->n;
    const Py_ssize_t items = (s->points + MOST_POINTS - 1) / MOST_POINTS;
    for (Py_ssize_t i = first; i < first + count; i++) {
        const Py_ssize_t image = i / items, point = i % items * MOST_POINTS;
        BY_TYPE(c->is_double, sample, s, AT(0, image * s->channels * s->count),
                AT(1, (image * s->points + point) * s->dims), point, AT(2, image * s->channels * s->points));
    }
}

/* data: gradient of the results, grids, images, gradients of the images (zeroed) and of the grids. Either gradient may
   be NULL, and so may images without the latter; n: a `sampling`. Items are images. */
static void sample_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const sampling *s = (const sampling *)c->n;
    for (Py_ssize_t i = first; i < first + count; i++)
        for (Py_ssize_t point = 0; point < s->points; point += MOST_POINTS) {
            const Py_ssize_t image = i * s->channels * s->count, at = (i * s->points + point) * s->dims;
            BY_TYPE(c->is_double, sample_gradient, s, AT(2, image), AT(1, at), point,
                    AT(0, i * s->channels * s->points), AT(3, image), AT(4, at));
        }
}

#endif
#else

/* For points along one dimension and each tap: its place, whether that is inside, its weight, and the weight's
   derivative with respect to the coordinate. */
typedef struct {
    int32_t places[MOST_TAPS][MOST_POINTS], inside[MOST_TAPS][MOST_POINTS];
    REAL weights[MOST_TAPS][MOST_POINTS], slopes[MOST_TAPS][MOST_POINTS];
} NAME(axis);

/* The same for each combination of taps, as places in a plane. */
typedef struct {
    int32_t places[MOST_CORNERS][MOST_POINTS], inside[MOST_CORNERS][MOST_POINTS], all_inside[MOST_POINTS];
    REAL weights[MOST_CORNERS][MOST_POINTS];
} NAME(corners);

/* A coordinate folded into [low, high], and the sign of its slope. */
CYGRAD_INLINE REAL NAME(reflected)(REAL at, REAL low, REAL high, REAL *sign)
{
    const REAL away = ROUND(fabs)(at - low), rest = high > low ? ROUND(fmod)(away, high - low) : 0;
    const REAL turns = high > low ? ROUND(rint)((away - rest) / (high - low)) : 0;
    const int is_odd = ROUND(fmod)(turns, 2) == 1;
    *sign = high == low ? 0 : (at < low) != is_odd ? -1 : 1;
    return high == low ? 0 : is_odd ? high - rest : rest + low;
}

/* A coordinate brought into the image as `padding` demands, and its slope. */
CYGRAD_INLINE REAL NAME(padded)(const sampling *s, REAL at, REAL size, REAL *sign)
{
    *sign = 1;
    if (s->padding == ZEROS) return at;
    if (s->padding == REFLECTION)
        at = NAME(reflected)(at, s->align_corners ? 0 : (REAL)-0.5, s->align_corners ? size - 1 : size - (REAL)0.5, sign);
    if (at != at) {         /* the last element of volumes, as in PyTorch, without a gradient */
        *sign = s->dims == 3 ? at : 0;
        return s->dims == 3 ? size - 1 : 0;
    }
    if (at <= 0 || at >= size - 1) *sign = 0;
    return at < 0 ? 0 : at > size - 1 ? size - 1 : at;
}

CYGRAD_INLINE REAL NAME(near)(REAL x) { return ((REAL)1.25 * x - (REAL)2.25) * x * x + 1; }
CYGRAD_INLINE REAL NAME(near_slope)(REAL x) { return ((REAL)3.75 * x - (REAL)4.5) * x; }
CYGRAD_INLINE REAL NAME(far)(REAL x) { return (((REAL)-0.75 * x + (REAL)3.75) * x - 6) * x + 3; }
CYGRAD_INLINE REAL NAME(far_slope)(REAL x) { return ((REAL)-2.25 * x + (REAL)7.5) * x - 6; }

/* Coordinates in the image, and their slopes. Not compiled with FMA, which would move the centers of elements by a
   rounding error. */
static void NAME(find_coordinates)(const sampling *s, const REAL *grid, Py_ssize_t n, REAL size, REAL *at, REAL *slopes)
{
    const REAL slope = (s->align_corners ? size - 1 : size) / 2;
    for (Py_ssize_t i = 0; i < n; i++) {
        const REAL from_1 = grid[i * s->dims] + 1;
        at[i] = s->align_corners ? from_1 / 2 * (size - 1) : (from_1 * size - 1) / 2;
        slopes[i] = slope;
    }
    for (Py_ssize_t i = 0; i < n && s->mode != BICUBIC && s->padding != ZEROS; i++) {
        REAL sign;
        at[i] = NAME(padded)(s, at[i], size, &sign);
        slopes[i] *= sign;
    }
}

/* The elements from which fractional offsets are measured, and these offsets. */
static CLONES void NAME(find_shares)(int is_nearest, Py_ssize_t n, const REAL *at, REAL *first, REAL *shares)
{
    if (is_nearest)
        for (Py_ssize_t i = 0; i < n; i++) first[i] = ROUND(rint)(at[i]), shares[i] = at[i] - first[i];
    else
        for (Py_ssize_t i = 0; i < n; i++) first[i] = ROUND(floor)(at[i]), shares[i] = at[i] - first[i];
}

static CLONES void NAME(find_places)(Py_ssize_t n, const REAL *at, REAL size, int32_t *places, int32_t *inside)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const int is_inside = (at[i] >= 0) & (at[i] < size);
        const REAL place = is_inside ? at[i] : 0;
        places[i] = (int32_t)place;
        inside[i] = is_inside;
    }
}

static void NAME(find_axis)(const sampling *s, const REAL *grid, Py_ssize_t n, REAL size, NAME(axis) *axis)
{
    REAL at[MOST_POINTS], first[MOST_POINTS], shares[MOST_POINTS], slopes[MOST_POINTS], sign;
    NAME(find_coordinates)(s, grid, n, size, at, slopes);
    NAME(find_shares)(s->mode == NEAREST, n, at, first, shares);
    for (int tap = 0; tap < taps_of(s); tap++) {
        for (Py_ssize_t i = 0; i < n; i++) at[i] = first[i] + (REAL)(tap - (s->mode == BICUBIC));
        for (Py_ssize_t i = 0; i < n && s->mode == BICUBIC; i++) at[i] = NAME(padded)(s, at[i], size, &sign);
        NAME(find_places)(n, at, size, axis->places[tap], axis->inside[tap]);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const REAL share = shares[i], slope = slopes[i];
        if (s->mode != BICUBIC) {
            axis->weights[0][i] = s->mode == NEAREST ? 1 : 1 - share, axis->slopes[0][i] = -slope;
            axis->weights[1][i] = share, axis->slopes[1][i] = slope;
            continue;
        }
        axis->weights[0][i] = NAME(far)(share + 1), axis->slopes[0][i] = slope * NAME(far_slope)(share + 1);
        axis->weights[1][i] = NAME(near)(share), axis->slopes[1][i] = slope * NAME(near_slope)(share);
        axis->weights[2][i] = NAME(near)(1 - share), axis->slopes[2][i] = -slope * NAME(near_slope)(1 - share);
        axis->weights[3][i] = NAME(far)(2 - share), axis->slopes[3][i] = -slope * NAME(far_slope)(2 - share);
    }
}

/* The taps of n points along each dimension; the coordinate of the last dimension comes first. */
static void NAME(find_axes)(const sampling *s, const REAL *grid, Py_ssize_t n, NAME(axis) *axes)
{
    for (Py_ssize_t d = 0; d < s->dims; d++)
        NAME(find_axis)(s, grid + s->dims - 1 - d, n, (REAL)s->sizes[d], axes + d);
}

static int NAME(find_corners)(const sampling *s, const NAME(axis) *axes, Py_ssize_t n, NAME(corners) *found)
{
    int corners = 1;
    for (Py_ssize_t d = 0; d < s->dims; d++) corners *= taps_of(s);
    for (Py_ssize_t i = 0; i < n; i++) found->all_inside[i] = 1;
    for (int k = 0; k < corners; k++)
        for (int d = 0, before = corners; d < s->dims; d++) {
            const int tap = k / (before /= taps_of(s)) % taps_of(s);
            const int32_t size = (int32_t)s->sizes[d];
            CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
                const int32_t place = axes[d].places[tap][i], inside = axes[d].inside[tap][i];
                const REAL weight = axes[d].weights[tap][i];
                found->places[k][i] = d ? found->places[k][i] * size + place : place;
                found->inside[k][i] = d ? found->inside[k][i] & inside : inside;
                found->all_inside[i] &= inside;
                found->weights[k][i] = d ? found->weights[k][i] * weight : weight;
            }
        }
    return corners;
}

/* Samples some channels at a point; corners outside contribute 0. Channels are processed together, because the place
   and weight of a corner are more to load than its value. */
static void NAME(take_point)(const sampling *s, const REAL *x, const NAME(corners) *found, int corners, Py_ssize_t i,
                             Py_ssize_t channels, REAL *out)
{
    REAL sums[TOGETHER] = {0};
    for (int k = 0; k < corners; k++) {
        const int passes = s->dims == 3 && !found->inside[k][i];
        const REAL *from = x + found->places[k][i], weight = passes ? 0 : found->weights[k][i];
        for (Py_ssize_t c = 0; c < channels; c++)
            sums[c] += (found->inside[k][i] ? from[c * s->count] : 0) * weight;
    }
    for (Py_ssize_t c = 0; c < channels; c++) out[c * s->points] = sums[c];
}

/* The same for TOGETHER channels, with all corners inside. */
CYGRAD_INLINE void NAME(take_point_inside)(const sampling *s, const REAL *x, const NAME(corners) *found, int corners,
                                           Py_ssize_t i, REAL *out)
{
    REAL a = 0, b = 0, c = 0, d = 0;
    for (int k = 0; k < corners; k++) {
        const REAL *from = x + found->places[k][i], weight = found->weights[k][i];
        a += from[0] * weight, b += from[s->count] * weight;
        c += from[2 * s->count] * weight, d += from[3 * s->count] * weight;
    }
    out[0] = a, out[s->points] = b, out[2 * s->points] = c, out[3 * s->points] = d;
}

static CLONES void NAME(add_corner_products)(const REAL *x, const int32_t *places, const int32_t *inside, const REAL *g,
                                      Py_ssize_t n, REAL *out)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const REAL product = x[places[i]] * g[i];
        out[i] += inside[i] ? product : 0;
    }
}

static void NAME(sample)(const sampling *s, const REAL *x, const REAL *grid, Py_ssize_t point, REAL *out)
{
    const Py_ssize_t n = s->points - point < MOST_POINTS ? s->points - point : MOST_POINTS;
    NAME(axis) axes[3];
    NAME(corners) found;
    int corners;
    NAME(find_axes)(s, grid, n, axes);
    corners = NAME(find_corners)(s, axes, n, &found);
    for (Py_ssize_t channel = 0; channel < s->channels; channel += TOGETHER) {
        const Py_ssize_t some = s->channels - channel < TOGETHER ? s->channels - channel : TOGETHER;
        const REAL *const from = x + channel * s->count;
        REAL *const to = out + channel * s->points + point;
        for (Py_ssize_t i = 0; i < n; i++)
            if (some == TOGETHER && found.all_inside[i]) NAME(take_point_inside)(s, from, &found, corners, i, to + i);
            else NAME(take_point)(s, from, &found, corners, i, some, to + i);
    }
}

/* The gradient of n points, given the factor of each corner's weight. */
static void NAME(grid_gradient)(const sampling *s, const NAME(axis) *axes, int corners, REAL (*sums)[MOST_POINTS],
                                Py_ssize_t n, REAL *grid)
{
    memset(grid, 0, n * s->dims * sizeof *grid);
    for (int k = 0; k < corners && s->mode != NEAREST; k++)
        for (int d = 0; d < s->dims; d++)
            for (Py_ssize_t i = 0; i < n; i++) {
                REAL change = sums[k][i];
                for (int e = 0, before = corners; e < s->dims; e++) {
                    const int tap = k / (before /= taps_of(s)) % taps_of(s);
                    change *= e == d ? axes[e].slopes[tap][i] : axes[e].weights[tap][i];
                }
                grid[i * s->dims + s->dims - 1 - d] += change;
            }
}

/* PyTorch skips points of volumes with a NaN coordinate, or with an infinite one that padding does not bring into the
   image. */
static void NAME(lose_points)(const sampling *s, Py_ssize_t n, int corners, NAME(axis) *axes, NAME(corners) *found)
{
    for (Py_ssize_t i = 0; i < n && s->dims == 3; i++) {
        REAL sum = 0;
        for (int d = 0; d < 3; d++) sum += axes[d].weights[1][i] * 0 + axes[d].slopes[1][i] * 0;
        if (sum == 0) continue;
        for (int k = 0; k < corners; k++) found->inside[k][i] = 0;
        for (int d = 0; d < 3; d++)
            for (int tap = 0; tap < 2; tap++) axes[d].weights[tap][i] = axes[d].slopes[tap][i] = 0;
    }
}

static void NAME(sample_gradient)(const sampling *s, const REAL *x, const REAL *grid, Py_ssize_t point, const REAL *g,
                                  REAL *grad_x, REAL *grad_grid)
{
    const Py_ssize_t n = s->points - point < MOST_POINTS ? s->points - point : MOST_POINTS;
    NAME(axis) axes[3];
    NAME(corners) found;
    REAL sums[MOST_CORNERS][MOST_POINTS];
    int corners;
    NAME(find_axes)(s, grid, n, axes);
    corners = NAME(find_corners)(s, axes, n, &found);
    NAME(lose_points)(s, n, corners, axes, &found);
    memset(sums, 0, sizeof sums);
    for (Py_ssize_t channel = 0; channel < s->channels; channel++) {
        const REAL *from = g + channel * s->points + point;
        for (int k = 0; k < corners; k++) {
            REAL *const to = grad_x ? grad_x + channel * s->count : NULL;
            for (Py_ssize_t i = 0; to && i < n; i++)
                if (found.inside[k][i]) to[found.places[k][i]] += from[i] * found.weights[k][i];
            if (grad_grid && s->mode != NEAREST)
                NAME(add_corner_products)(x + channel * s->count, found.places[k], found.inside[k], from, n, sums[k]);
        }
    }
    if (grad_grid) NAME(grid_gradient)(s, axes, corners, sums, n, grad_grid);
}

#endif
