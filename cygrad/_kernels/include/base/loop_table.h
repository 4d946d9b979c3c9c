/* The table of loops that loop_table.pyx calls by number, on arrays and numbers that Python has checked.

   A loop (`..._part`) processes `count` of the items of a call, starting at `first`. The meaning of `data` and `n` is
   documented at each loop. */

#ifndef CYGRAD_NATIVE_H
#define CYGRAD_NATIVE_H

#include <Python.h>
#include <stdint.h>
#include "base/loop_call.h"
#include "platform/sanitized.h"
#define CYGRAD_DEFINES_STAGES
#include "simd/vector_math.h"

typedef void (*native_part)(void *context, Py_ssize_t first, Py_ssize_t count);

/* The address `elements` elements after the beginning of an array, or NULL if there is no array. */
#define AT(i, elements) ((void *)(c->data[i] ? c->data[i] + (elements) * c->itemsize : NULL))

/* NumPy's matmul loops for float and double, which call BLAS; set by loop_table.pyx. */
static struct {
    void (*function)(char **, const Py_ssize_t *, const Py_ssize_t *, void *);
    void *data;
} product_loops[2];

/* a (m, n) @ b (n, p) into out (m, p). Strides are in elements; each matrix has a stride of 1 along one dimension. */
static void multiply_strided(const native_call *c, void *a, Py_ssize_t a_row, Py_ssize_t a_column, void *b,
                             Py_ssize_t b_row, Py_ssize_t b_column, void *out, Py_ssize_t out_row, Py_ssize_t m,
                             Py_ssize_t n, Py_ssize_t p)
{
    char *data[3] = {a, b, out};
    const Py_ssize_t size = c->itemsize, counts[4] = {1, m, n, p};
    const Py_ssize_t steps[9] = {0, 0, 0, a_row * size, a_column * size, b_row * size, b_column * size,
                                 out_row * size, size};
    touch_ends(data, counts, steps, 3, 1);
    product_loops[c->is_double].function(data, counts, steps, product_loops[c->is_double].data);
}

/* The same for contiguous matrices. */
static void multiply(const native_call *c, void *a, void *b, void *out, Py_ssize_t m, Py_ssize_t n, Py_ssize_t p)
{
    multiply_strided(c, a, n, 1, b, p, 1, out, p, m, n, p);
}

#include "nn/normalization.h"
#include "image/patches.h"
#include "nn/cross_entropy.h"
#include "nn/attention.h"
#include "nn/recurrent.h"
#include "image/winograd.h"
#include "image/patch_convolution.h"
#include "reduction/scans.h"
#include "elementwise/gamma.h"
#include "elementwise/fused_loops.h"
#include "indexing/gather.h"
#include "random/philox.h"
#include "indexing/scatter.h"
#include "nn/distances.h"
#include "image/resampling.h"
#include "image/grid_sampling.h"
#include "elementwise/polynomial_tables.h"
#include "indexing/search.h"
#include "nn/ctc.h"
#include "random/linspace.h"

enum {
    NORMALIZE_ROWS, ROWS_GRADIENT, NORMALIZE_RUNS, RUNS_GRADIENT, NORMALIZE_COLUMNS, COLUMNS_GRADIENT,
    COPY_PATCHES, ADD_PATCHES, LARGEST, COMBINE, RECURRENT, RECURRENT_GRADIENT,
    CROSS_ENTROPY, CROSS_ENTROPY_GRADIENT, ATTENTION, ATTENTION_GRADIENT, RUNNING_SUMS,
    WINOGRAD_FILTERS, WINOGRAD_RESULTS, WINOGRAD_SUMS, PATCHWISE_RESULTS, PATCHWISE_IMAGES, PATCHWISE_SUMS,
    FUSED, GATHER, FIRSTS, GATED, TAKE, RUNNING_EXTREMA,
    SCATTER, TRIANGLE, NONZERO, COUNT_NONZERO, UNIFORM, DISTANCES, RESAMPLE, TABLED, FOLLOW,
    RESAMPLE_PLANES, LABEL_MARGINS, COMPRESS, SAMPLE, SAMPLE_GRADIENT, SEARCH, SHAPE_DRAWS,
    CTC, LARGEST_OF_PLACES, PAIRS_GRADIENT, SUM_WEIGHTS, PICK, TRIANGLE_PLACES, SPACED, LOOPS
};

static const native_part native_parts[LOOPS] = {
    normalize_rows_part, rows_gradient_part, normalize_runs_part, runs_gradient_part, normalize_columns_part,
    columns_gradient_part,
    copy_patches_part, add_patches_part, largest_part, combine_part, recurrent_part, recurrent_gradient_part,
    cross_entropy_part, cross_entropy_gradient_part, attention_part, attention_gradient_part, running_sums_part,
#ifdef CYGRAD_VECTORS
    winograd_filters_part, winograd_results_part, winograd_sums_part, patchwise_results_part,
    patchwise_images_part, patchwise_sums_part,
#else
    NULL, NULL, NULL, NULL, NULL, NULL,
#endif
    fused_part, gather_part, firsts_part, gated_part, take_part, running_extrema_part,
    scatter_part, triangle_part, nonzero_part, count_nonzero_part, uniform_part, distances_part, resample_part,
    tabled_part, follow_part, resample_planes_part, label_margins_part, compress_part, sample_part, sample_gradient_part,
    search_part, shape_part,
    ctc_part, largest_of_places_part, pairs_gradient_part, sum_weights_part, pick_part, triangle_places_part, spaced_part,
};

/* Whether the compiler could build a loop and the processor can run it. */
static int native_has(int loop) { return loop < WINOGRAD_FILTERS || loop >= FUSED || HAS_PANELS; }

/* Whether a loop only moves elements of 4 or 8 bytes, whatever their type, or gets int64 as a flag. */
static int native_moves(int loop)
{
    return loop == GATHER || loop == TAKE || loop == SCATTER || loop == TRIANGLE || loop == COMPRESS ||
           loop == TRIANGLE_PLACES || loop == RUNNING_SUMS || loop == RUNNING_EXTREMA || loop == FIRSTS;
}

#endif
