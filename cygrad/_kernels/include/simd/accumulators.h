/* Reductions to one number, with enough accumulators side by side to be vectorized. */

#ifndef CYGRAD_LANES_H
#define CYGRAD_LANES_H

#define LANES 32

/* Adds the upper half of `lanes` to the lower half, which has `width` elements. */
#define FOLD(width) for (int j = 0; j < width; j++) lanes[j] += lanes[j + width]

/* Defines a function that returns the sum of TERM(i) for i < n; TERM uses the other arguments. */
#define DEFINE_SUM(FUNCTION, TERM, ...)                                                                         \
    static CYGRAD_WIDE_CLONES REAL NAME(FUNCTION)(Py_ssize_t n, __VA_ARGS__)                                         \
    {                                                                                                           \
        REAL lanes[LANES] = {0};                                                                                \
        Py_ssize_t i = 0;                                                                                       \
        for (; i + LANES <= n; i += LANES)                                                                      \
            for (int j = 0; j < LANES; j++) lanes[j] += TERM(i + j);                                            \
        FOLD(16);                                                                                               \
        FOLD(8);                                                                                                \
        FOLD(4);                                                                                                \
        for (; i + 4 <= n; i += 4)                                                                              \
            for (int j = 0; j < 4; j++) lanes[j] += TERM(i + j);                                                \
        for (; i < n; i++) lanes[0] += TERM(i);                                                                 \
        return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);                                                   \
    }

#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* Defines functions that return the largest of n > 0 numbers; a NaN may be missed. */
#define DEFINE_LARGEST(CLONES)                                                                                  \
    static CLONES REAL NAME(largest_of_many)(const REAL *x, Py_ssize_t n)                                       \
    {                                                                                                           \
        REAL lanes[LANES], best;                                                                                \
        Py_ssize_t i = LANES;                                                                                   \
        for (int j = 0; j < LANES; j++) lanes[j] = LARGER(x[j], x[n - LANES + j]);                              \
        for (; i + LANES <= n; i += LANES)                                                                      \
            for (int j = 0; j < LANES; j++) lanes[j] = LARGER(x[i + j], lanes[j]);                              \
        for (int j = 0; j < 16; j++) lanes[j] = LARGER(lanes[j], lanes[j + 16]);                                \
        for (int j = 0; j < 8; j++) lanes[j] = LARGER(lanes[j], lanes[j + 8]);                                  \
        best = lanes[0];                                                                                        \
        for (int j = 1; j < 8; j++) best = LARGER(lanes[j], best);                                              \
        return best;                                                                                            \
    }                                                                                                           \
                                                                                                                \
    static REAL NAME(largest)(const REAL *x, Py_ssize_t n)                                                      \
    {                                                                                                           \
        REAL a = *x, b = a, c = a, d = a;                                                                       \
        if (n >= LANES) return NAME(largest_of_many)(x, n);                                                     \
        for (; n >= 4; n -= 4, x += 4)                                                                          \
            a = LARGER(x[0], a), b = LARGER(x[1], b), c = LARGER(x[2], c), d = LARGER(x[3], d);                 \
        for (; n > 0; n--, x++) a = LARGER(*x, a);                                                              \
        a = LARGER(a, b);                                                                                       \
        c = LARGER(c, d);                                                                                       \
        return LARGER(a, c);                                                                                    \
    }

#endif
