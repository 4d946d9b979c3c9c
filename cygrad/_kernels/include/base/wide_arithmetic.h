/* Sums, differences and products with vectors of 512 bits, where the processor has them.

   NumPy's loops for these use 256 bits. Where operands come from the first cache, as in the blocks of a compiled step,
   512 bits take half of the time; where they come from memory, both take the same. Vectors that lie in two cache lines
   take longer than two of 256 bits, so operands must begin with a line. The results are equal. */

#ifndef CYGRAD_WIDE_ARITHMETIC_H
#define CYGRAD_WIDE_ARITHMETIC_H

#include <stdint.h>
#include <string.h>
#include "platform/target_clones.h"

#if defined(__GNUC__) && defined(__x86_64__) && CYGRAD_WIDEST >= 512
#include <immintrin.h>

typedef struct {
    const char *name;
    void (*loop)(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings);
    void (*numpy)(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings);
    void *settings;             /* of NumPy's loop, which computes what has other steps or begins within a line */
} wide_ufunc;

#define WITH_512 __attribute__((target("avx512f")))
#define BEGINS_A_LINE(AT) (!((uintptr_t)(AT) & 63))
#define LOAD_WIDE(SUFFIX, STEP, FIRST, MASK, AT) ((STEP) ? _mm512_maskz_loadu_##SUFFIX(MASK, AT) : (FIRST))

/* A loop is inlined once for each pair of steps, which are then constants in it. */
#define DEFINE_WIDE(FUNCTION, REAL, VECTOR, MASKS, SUFFIX, LANES)                                                \
    WITH_512 CYGRAD_INLINE void FUNCTION##_##SUFFIX##_along(const REAL *x, const REAL *y, REAL *out, Py_ssize_t n, \
                                                            const int x_step, const int y_step)                  \
    {                                                                                                            \
        const VECTOR x_first = _mm512_set1_##SUFFIX(*x), y_first = _mm512_set1_##SUFFIX(*y);                      \
        Py_ssize_t i = 0;                                                                                        \
        for (; i + LANES <= n; i += LANES)                                                                       \
            _mm512_storeu_##SUFFIX(out + i, _mm512_##FUNCTION##_##SUFFIX(                                        \
                x_step ? _mm512_loadu_##SUFFIX(x + i) : x_first, y_step ? _mm512_loadu_##SUFFIX(y + i) : y_first)); \
        if (i < n) {                                                                                             \
            const MASKS mask = (MASKS)((1u << (n - i)) - 1);                                                     \
            _mm512_mask_storeu_##SUFFIX(out + i, mask, _mm512_##FUNCTION##_##SUFFIX(                              \
                LOAD_WIDE(SUFFIX, x_step, x_first, mask, x + i), LOAD_WIDE(SUFFIX, y_step, y_first, mask, y + i))); \
        }                                                                                                        \
    }                                                                                                            \
    WITH_512 static void FUNCTION##_##SUFFIX(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings) \
    {                                                                                                            \
        const Py_ssize_t size = sizeof(REAL);                                                                    \
        const REAL *x = (const REAL *)data[0], *y = (const REAL *)data[1];                                       \
        REAL *out = (REAL *)data[2];                                                                             \
        const int is_dense = *n > 0 && steps[2] == size && BEGINS_A_LINE(out);                                   \
        const int x_is_dense = steps[0] == size && BEGINS_A_LINE(x), y_is_dense = steps[1] == size && BEGINS_A_LINE(y); \
        if (is_dense && x_is_dense && y_is_dense) FUNCTION##_##SUFFIX##_along(x, y, out, *n, 1, 1);              \
        else if (is_dense && x_is_dense && !steps[1]) FUNCTION##_##SUFFIX##_along(x, y, out, *n, 1, 0);          \
        else if (is_dense && !steps[0] && y_is_dense) FUNCTION##_##SUFFIX##_along(x, y, out, *n, 0, 1);          \
        else {                                                                                                   \
            const wide_ufunc *own = settings;                                                                    \
            own->numpy(data, n, steps, own->settings);                                                           \
        }                                                                                                        \
    }
#define DEFINE_WIDE_PAIR(FUNCTION) \
    DEFINE_WIDE(FUNCTION, float, __m512, __mmask16, ps, 16) DEFINE_WIDE(FUNCTION, double, __m512d, __mmask8, pd, 8)

CYGRAD_BEGIN_PLAIN_LOOPS
DEFINE_WIDE_PAIR(add)
DEFINE_WIDE_PAIR(sub)
DEFINE_WIDE_PAIR(mul)
CYGRAD_END_LOOPS

static wide_ufunc wide_ufuncs[] = {     /* alternating float and double */
    {"add", add_ps, NULL, NULL}, {"add", add_pd, NULL, NULL},
    {"subtract", sub_ps, NULL, NULL}, {"subtract", sub_pd, NULL, NULL},
    {"multiply", mul_ps, NULL, NULL}, {"multiply", mul_pd, NULL, NULL},
};

/* Replaces a loop by one with wide vectors, if there is one and the processor has them. */
static int widen_loop(const char *name, int is_double, ufunc_loop *loop, void **settings)
{
    if (!CYGRAD_SUPPORTS(512)) return 0;
    for (size_t i = is_double != 0; i < sizeof wide_ufuncs / sizeof *wide_ufuncs; i += 2) {
        wide_ufunc *own = wide_ufuncs + i;
        if (strcmp(own->name, name)) continue;
        if (!own->numpy) {
            own->settings = *settings;
            own->numpy = *loop;
        }
        *loop = own->loop;
        *settings = own;
        return 1;
    }
    return 0;
}

#undef BEGINS_A_LINE
#undef LOAD_WIDE
#undef DEFINE_WIDE
#undef DEFINE_WIDE_PAIR
#else
static int widen_loop(const char *name, int is_double, ufunc_loop *loop, void **settings)
{
    (void)name, (void)is_double, (void)loop, (void)settings;
    return 0;
}
#endif
#endif
