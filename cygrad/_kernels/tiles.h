/* Tiles of products of float32 matrices, where BLAS does not use the longest vectors that the processor has (an OpenBLAS
   that does not know the processor takes the loops of an older one, at half the speed). */

#ifndef CYGRAD_TILES_H
#define CYGRAD_TILES_H

#include "panels.h"

#if defined(CYGRAD_VECTORS) && defined(__x86_64__)

enum { PANEL_ROWS = 256 };      /* of 32 columns, in the nearest cache while all rows of the other matrix meet them */

static int has_long_vectors(void) { return !!__builtin_cpu_supports("avx512f"); }

/* a (m, depth) @ b (depth, n) into out, where m is a multiple of 8 and n one of 16. Steps are in elements; those of b are 1
   along one of its dimensions. */
static void multiply_tile(Py_ssize_t m, Py_ssize_t n, Py_ssize_t depth, const float *a, Py_ssize_t a_row,
                          Py_ssize_t a_column, const float *b, Py_ssize_t b_row, Py_ssize_t b_column, float *out,
                          Py_ssize_t out_row)
{
    const Py_ssize_t most = panel_width();
    _Alignas(64) float panel[PANEL_ROWS * 32];   /* vectors within lines of the cache */
    for (Py_ssize_t k = 0; k < depth; k += PANEL_ROWS) {
        const Py_ssize_t rows = depth - k < PANEL_ROWS ? depth - k : PANEL_ROWS;
        for (Py_ssize_t j = 0, width; j < n; j += width) {
            width = n - j < most ? 16 : most;
            fill_panel(b + k * b_row + j * b_column, b_row, b_column, rows, width, panel);
            multiply_panels(m, width, rows, a + k * a_column, a_row, a_column, panel, out + j, out_row, k > 0);
        }
    }
}

#else

static int has_long_vectors(void) { return 0; }

static void multiply_tile(Py_ssize_t m, Py_ssize_t n, Py_ssize_t depth, const float *a, Py_ssize_t a_row,
                          Py_ssize_t a_column, const float *b, Py_ssize_t b_row, Py_ssize_t b_column, float *out,
                          Py_ssize_t out_row)
{
    (void)m, (void)n, (void)depth, (void)a, (void)a_row, (void)a_column, (void)b, (void)b_row, (void)b_column;
    (void)out, (void)out_row;
}

#endif
#endif
