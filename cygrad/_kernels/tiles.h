/* Tiles of products of float32 matrices, where BLAS does not use the longest vectors that the processor has (an OpenBLAS
   that does not know the processor takes the loops of an older one, at half the speed). */

#ifndef CYGRAD_TILES_H
#define CYGRAD_TILES_H

#include "panels.h"

#if defined(CYGRAD_VECTORS) && defined(__x86_64__)

enum { PANEL_ROWS = 256 };      /* of 32 columns, in the nearest cache while all rows of the other matrix meet them */

static int has_long_vectors(void) { return !!__builtin_cpu_supports("avx512f"); }

/* `width` columns of b, a multiple of 16, as a panel. Either the rows or the columns of b have no gaps. */
TUNED static void fill_panel(const float *b, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t width,
                             float *to)
{
    Py_ssize_t i = 0;
    if (column == 1) {
        for (; i < rows; i++)
            for (Py_ssize_t j = 0; j < width; j += WIDE) STORE(to + i * width + j, LOAD(b + i * row + j));
        return;
    }
    for (; i + 4 <= rows; i += 4)
        for (Py_ssize_t j = 0; j < width; j += 4) {
            const float *from = b + i * row + j * column;
            const four p = *(const four *)from, q = *(const four *)(from + column);
            const four r = *(const four *)(from + 2 * column), s = *(const four *)(from + 3 * column);
            const four pq = __builtin_shufflevector(p, q, 0, 4, 1, 5), rs = __builtin_shufflevector(r, s, 0, 4, 1, 5);
            const four pq2 = __builtin_shufflevector(p, q, 2, 6, 3, 7), rs2 = __builtin_shufflevector(r, s, 2, 6, 3, 7);
            float *place = to + i * width + j;
            *(four *)place = __builtin_shufflevector(pq, rs, 0, 1, 4, 5);
            *(four *)(place + width) = __builtin_shufflevector(pq, rs, 2, 3, 6, 7);
            *(four *)(place + 2 * width) = __builtin_shufflevector(pq2, rs2, 0, 1, 4, 5);
            *(four *)(place + 3 * width) = __builtin_shufflevector(pq2, rs2, 2, 3, 6, 7);
        }
    for (; i < rows; i++)
        for (Py_ssize_t j = 0; j < width; j++) to[i * width + j] = b[i * row + j * column];
}

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
