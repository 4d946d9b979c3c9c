/* Reductions that replace NumPy's loops where each step waits for the one before. */

#ifndef CYGRAD_FOLDS_H
#define CYGRAD_FOLDS_H

#include <stdint.h>
#include "platform/target_clones.h"

CYGRAD_BEGIN_LOOPS

/* Functions that reduce n elements to one, with independent accumulators. */
#define DEFINE_FOLD(FUNCTION, TYPE, NONE, OP)                                                                   \
    static CYGRAD_CLONES void FUNCTION(const char *from, Py_ssize_t n, char *result)                            \
    {                                                                                                           \
        const TYPE *x = (const TYPE *)from;                                                                     \
        TYPE lanes[32], *const out = (TYPE *)result;                                                            \
        for (int j = 0; j < 32; j++) lanes[j] = NONE;                                                           \
        for (; n >= 32; n -= 32, x += 32)                                                                       \
            for (int j = 0; j < 32; j++) lanes[j] OP x[j];                                                      \
        for (int j = 0; j < 16; j++) lanes[j] OP lanes[j + 16];                                                 \
        for (int j = 0; j < 8; j++) lanes[j] OP lanes[j + 8];                                                   \
        for (int j = 0; j < 4; j++) lanes[j] OP lanes[j + 4];                                                   \
        for (int j = 1; j < 4; j++) lanes[0] OP lanes[j];                                                       \
        for (; n > 0; n--) lanes[0] OP *x++;                                                                    \
        *out OP lanes[0];                                                                                       \
    }

DEFINE_FOLD(product_f32, float, 1, *=)
DEFINE_FOLD(product_f64, double, 1, *=)
DEFINE_FOLD(product_i64, uint64_t, 1, *=)
DEFINE_FOLD(sum_i64, uint64_t, 0, +=)

CYGRAD_END_LOOPS

typedef void (*ufunc_loop)(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings);

/* A loop of NumPy's that also reduces, and our replacement for reductions. */
typedef struct {
    void (*fold)(const char *from, Py_ssize_t n, char *result);
    Py_ssize_t size;
    ufunc_loop numpy;
    void *settings;
} own_reduction;

static void run_reduction_of(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings)
{
    const own_reduction *own = settings;
    if (steps[0] == 0 && steps[2] == 0 && steps[1] == own->size && *n >= 32) own->fold(data[1], *n, data[2]);
    else own->numpy(data, n, steps, own->settings);
}

/* Replaces NumPy's reduction of this kind ('f', 'd', 'i' for int64) by ours. */
static void replace_reduction(int is_product, char kind, ufunc_loop *loop, void **settings)
{
    static own_reduction own_reductions[] = {{product_f32, 4, NULL, NULL}, {product_f64, 8, NULL, NULL},
                                             {product_i64, 8, NULL, NULL}, {sum_i64, 8, NULL, NULL}};
    own_reduction *own = own_reductions + (!is_product ? 3 : kind == 'f' ? 0 : kind == 'd' ? 1 : 2);
    own->numpy = *loop;
    own->settings = *settings;
    *loop = run_reduction_of;
    *settings = own;
}

#endif
