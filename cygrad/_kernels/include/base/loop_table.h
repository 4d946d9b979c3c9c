/* The functions of the loops listed in loop_numbers.h, which loop_table.pyx calls by number, on arrays and numbers that
   Python has checked.

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
#include "elementwise/recurrences.h"
#include "indexing/search.h"
#include "nn/ctc.h"
#include "random/linspace.h"
#include "base/loop_numbers.h"      /* last, so that its names are not in the way of those above */

#ifdef CYGRAD_VECTORS
#define WITH_VECTORS(function) function
#else
#define WITH_VECTORS(function) NULL
#endif

#define CYGRAD_FUNCTION(name, function) function,
static const native_part native_parts[LOOP_COUNT] = { CYGRAD_LOOPS(CYGRAD_FUNCTION) };
#undef CYGRAD_FUNCTION

#define CYGRAD_NAME(name, function) #name,
static const char *const loop_names[LOOP_COUNT] = { CYGRAD_LOOPS(CYGRAD_NAME) };
#undef CYGRAD_NAME

/* Whether the compiler could build a loop and the processor can run it. */
static int native_has(int loop) { return loop < WINOGRAD_FILTERS || loop >= FUSED || HAS_PANELS; }

/* Whether a loop only moves elements of 4 or 8 bytes, whatever their type, or gets int64 as a flag. */
static int native_moves(int loop)
{
    return loop == GATHER || loop == TAKE || loop == SCATTER || loop == TRIANGLE || loop == COMPRESS ||
           loop == TRIANGLE_PLACES || loop == RUNNING_SUMS || loop == RUNNING_EXTREMA || loop == FIRSTS;
}

#endif
