/* Includes the file LOOPS, with loops over float32, for one element at a time, for short vectors and for
   vectors of 16. The loops use
   these words, which keep their meaning for one element (of any type) afterwards:

       ELEMENTS                the type of what is computed at a time, of `count` elements
       OF(name)                a function of exp_float.h for it
       FOR_ALL(n, ...)         does the statements for all i below n at which `count` elements begin
       TAKE(x), GIVE(out, e)   x[i], out[i] = e
       NAME(name)              the loop's name for this width
       VECTORIZED                   stands before a loop

   WIDTHS(name) lists the versions of a loop, CALL_WIDEST(name, ...) calls one (float_vectors.h). */

#include "simd/float_vectors.h"

#undef ELEMENTS
#undef OF
#undef TAKE
#undef GIVE
#undef FOR_ALL
#ifdef LOOPS

#define FOR_ALL(n, ...)                                                                                         \
    {                                                                                                           \
        Py_ssize_t i = 0;                                                                                       \
        for (; i + WIDTH <= (n); i += WIDTH) {                                                                  \
            const Py_ssize_t count = WIDTH;                                                                     \
            __VA_ARGS__                                                                                         \
        }                                                                                                       \
        if (i < (n)) {                                                                                          \
            const Py_ssize_t count = (n) - i;                                                                   \
            __VA_ARGS__                                                                                         \
        }                                                                                                       \
    }

#ifdef CYGRAD_SHORT
#define WIDTH CYGRAD_SHORT
#define ELEMENTS floats_short
#define OF(name) name##_short
#define TAKE(x) load_short((x) + i, count)
#define GIVE(out, ...) store_short((out) + i, __VA_ARGS__, count)
#define NAME(name) name##_xshort
#define VECTORIZED WITH_SHORT
#include LOOPS
#undef WIDTH
#undef ELEMENTS
#undef OF
#undef TAKE
#undef GIVE
#undef NAME
#undef VECTORIZED
#endif

#ifdef CYGRAD_HAS_16
#define WIDTH 16
#define ELEMENTS floats_16
#define OF(name) name##_16
#define TAKE(x) load_16((x) + i, count)
#define GIVE(out, ...) store_16((out) + i, __VA_ARGS__, count)
#define NAME(name) name##_x16
#define VECTORIZED WITH_16
#include LOOPS
#undef WIDTH
#undef ELEMENTS
#undef OF
#undef TAKE
#undef GIVE
#undef NAME
#undef VECTORIZED
#endif

#undef FOR_ALL
#endif

#define ELEMENTS REAL
#define OF(name) name
#define TAKE(x) (x)[i]
#define GIVE(out, ...) (out)[i] = __VA_ARGS__
#define FOR_ALL(n, ...) CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < (n); i++) { __VA_ARGS__ }

#ifdef LOOPS
#define WIDTH 1
#define NAME(name) name##_x1
#define VECTORIZED
#include LOOPS
#undef WIDTH
#undef NAME
#undef VECTORIZED
#undef LOOPS
#endif
