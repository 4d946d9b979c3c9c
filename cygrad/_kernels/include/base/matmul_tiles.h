/* Tiled products of float32 matrices, for use where BLAS is an OpenBLAS and the processor has AVX2.

   An OpenBLAS that does not recognize a processor with longer vectors uses the loops of an older one, at half the
   speed. One that does packs both matrices first, where here only a panel of the second is packed. */

#ifndef CYGRAD_TILES_H
#define CYGRAD_TILES_H

#include <stdlib.h>

#include "base/packed_matmul.h"

#if defined(CYGRAD_VECTORS) && defined(__x86_64__)

enum {
    PANEL_ROWS = 256,  /* of a panel, which stays in the L1 cache while the other matrix is multiplied by it */
    TURNED_ROWS = 512,          /* rows that are packed together, PANEL_ROWS elements each, into the L2 cache */
    FAR = 1024,                 /* elements between columns */
    OFTEN = 4                   /* panels */
};

static int can_tile(void) { return HAS_PANELS; }
static int has_long_vectors(void) { return CYGRAD_SUPPORTS(512); }

/* Packs the rows of a matrix with contiguous columns, eight at a time: all their first elements, then the second
   ones. */
__attribute__((target("avx2,fma"))) static void fill_rows(const float *a, Py_ssize_t column, Py_ssize_t m, Py_ssize_t depth, float *to)
{
    for (Py_ssize_t begin = 0; begin < m; begin += 64)      /* as many lines as the L1 cache holds */
        for (Py_ssize_t k = 0; k < depth; k++)
            for (Py_ssize_t i = begin; i < m && i < begin + 64; i += 8)
                STORE(to + i * depth + k * 8, LOAD(a + k * column + i));
}

/* Multiplies rows of a by a panel; reads them in place or from `turned`. */
static void multiply_rows(Py_ssize_t m, Py_ssize_t width, Py_ssize_t depth, const float *a, Py_ssize_t a_row,
                          Py_ssize_t a_column, const float *turned, const float *panel, float *out, Py_ssize_t out_row,
                          int add)
{
    if (turned)
        for (Py_ssize_t i = 0; i < m; i += 8)
            multiply_panels(8, width, depth, turned + i * depth, 1, 8, panel, out + i * out_row, out_row, add);
    else
        multiply_panels(m, width, depth, a, a_row, a_column, panel, out, out_row, add);
}

/* a (m, depth) @ b (depth, n) into out, where m is a multiple of 8 and n of 16. Strides are in elements; b has stride 1
   along one dimension. */
static void multiply_tile(Py_ssize_t m, Py_ssize_t n, Py_ssize_t depth, const float *a, Py_ssize_t a_row,
                          Py_ssize_t a_column, const float *b, Py_ssize_t b_row, Py_ssize_t b_column, float *out,
                          Py_ssize_t out_row)
{
    const Py_ssize_t most = panel_width();
    /* Columns far apart are on separate pages and collide in the L1 cache, so elements that are often reused are
       packed. */
    const int turns = a_row == 1 && a_column >= FAR && n >= OFTEN * most;
    float *turned = turns ? malloc(sizeof(float) * PANEL_ROWS * (m < TURNED_ROWS ? m : TURNED_ROWS)) : NULL;
    const Py_ssize_t together = turned ? TURNED_ROWS : m;
    _Alignas(64) float panel[PANEL_ROWS * 32];   /* keeps vectors within cache lines */
    for (Py_ssize_t i = 0; i < m; i += together, a += together * a_row, out += together * out_row)
        for (Py_ssize_t k = 0; k < depth; k += PANEL_ROWS) {
            const Py_ssize_t rows = depth - k < PANEL_ROWS ? depth - k : PANEL_ROWS;
            const Py_ssize_t many = m - i < together ? m - i : together;
            if (turned) fill_rows(a + k * a_column, a_column, many, rows, turned);
            for (Py_ssize_t j = 0, width; j < n; j += width) {
                width = n - j < most ? 16 : most;
                fill_panel(b + k * b_row + j * b_column, b_row, b_column, rows, width, panel);
                multiply_rows(many, width, rows, a + k * a_column, a_row, a_column, turned, panel, out + j, out_row, k > 0);
            }
        }
    free(turned);
}

#else

static int can_tile(void) { return 0; }
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
