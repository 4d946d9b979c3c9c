/* Reductions to one number: so many accumulators side by side, which become vectors. */

#ifndef CYGRAD_LANES_H
#define CYGRAD_LANES_H

#define LANES 32

/* Adds the upper half of `lanes` to the lower one, of `width`. */
#define FOLD(width) for (int j = 0; j < width; j++) lanes[j] += lanes[j + width]

/* A function that gives the sum of TERM(i) for i < n; TERM is made of the other arguments. */
#define DEFINE_SUM(FUNCTION, TERM, ...)                                                                         \
    static CYGRAD_CLONES REAL NAME(FUNCTION)(Py_ssize_t n, __VA_ARGS__)                                         \
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

#endif
