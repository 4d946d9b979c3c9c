/* Divisions of integers of 4 and 8 bytes that replace NumPy's loops.

   Numbers below 2^51 are divided as doubles, in vectors: a quotient that is not an integer is further from integers
   than its rounding error. A chunk with a larger number, or a divisor 0, is divided one by one. */

#ifndef CYGRAD_WHOLE_DIVISION_H
#define CYGRAD_WHOLE_DIVISION_H

#include "base/ufuncs.h"

/* The supported results: the odd ones are quotients, the last two belong to quotients rounded down, not towards 0. */
static const char *const whole_divisions[] = {"fmod", "whole_quotient", "remainder", "floor_divide"};
enum { ROUNDED_DOWN = 2 };

#define ROUND_NUMBER 6755399441055744.0         /* 1.5 * 2^52: its bits plus an integer are the bits of their sum */
#define ROUND_BITS (uint64_t)bits_of_double(ROUND_NUMBER)

CYGRAD_BEGIN_CHOOSING_LOOPS

CYGRAD_INLINE double double_of_whole(uint64_t x) { return double_of((int64_t)(ROUND_BITS + x)) - ROUND_NUMBER; }

CYGRAD_INLINE uint64_t is_large(uint64_t x) { return (x + (1ull << 51)) >> 52; }

/* Division by 0 gives 0, and overflow wraps around. */
static int64_t divided_alone(int64_t x, int64_t y, int wanted)
{
    int64_t quotient = y ? (int64_t)(0 - (uint64_t)x) : 0, rest = 0;
    if (y != 0 && y != -1) quotient = x / y, rest = x % y;
    if (wanted >= ROUNDED_DOWN && rest != 0 && (rest < 0) != (y < 0)) quotient--, rest += y;
    return wanted & 1 ? quotient : rest;
}

/* `out` must not be one of the operands. */
#define DEFINE_DIVISION(TYPE, NAME)                                                                             \
    static WITH_FMA void divide_##NAME(const TYPE *xs, const TYPE *ys, TYPE *out, Py_ssize_t n, int wanted)     \
    {                                                                                                           \
        const int64_t of_quotient = -(int64_t)(wanted & 1), down = -(int64_t)(wanted >= ROUNDED_DOWN);          \
        uint64_t unsure = 0;                                                                                    \
        CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {                                                 \
            const uint64_t a = (uint64_t)(int64_t)xs[i], b = (uint64_t)(int64_t)ys[i];                          \
            const double x = double_of_whole(a), y = double_of_whole(b), exact = x / y;                         \
            const double q = double_of((bits_of_double(floor(exact)) & down) | (bits_of_double(trunc(exact)) & ~down)); \
            const double rest = fma(-q, y, x) + ROUND_NUMBER;                                                   \
            unsure |= is_large(a) | is_large(b) | (b == 0);                                                     \
            const int64_t bits = (bits_of_double(q + ROUND_NUMBER) & of_quotient) | (bits_of_double(rest) & ~of_quotient); \
            out[i] = (TYPE)(int64_t)((uint64_t)bits - ROUND_BITS);                                              \
        }                                                                                                       \
        for (Py_ssize_t i = 0; unsure && i < n; i++) out[i] = (TYPE)divided_alone(xs[i], ys[i], wanted);        \
    }
DEFINE_DIVISION(int32_t, narrow)
DEFINE_DIVISION(int64_t, wide)
#undef DEFINE_DIVISION

CYGRAD_END_LOOPS

/* `settings` points into whole_divisions. */
static void divide_runs(char **data, Py_ssize_t n, const Py_ssize_t *steps, const void *settings, int is_wide)
{
    const int wanted = (int)((const char *const *)settings - whole_divisions);
    const Py_ssize_t size = is_wide ? 8 : 4;
    int64_t room[3][OWN_RUN];
    for (Py_ssize_t done = 0; done < n; done += OWN_RUN) {
        const Py_ssize_t m = n - done < OWN_RUN ? n - done : OWN_RUN;
        char *const out = data[2] + done * steps[2];
        const void *in[2];
        for (int k = 0; k < 2; k++) {
            in[k] = data[k] + done * steps[k];
            if (steps[k] == size && in[k] != out) continue;
            if (steps[k] || !done) copy_steps((char *)room[k], size, in[k], steps[k], m, is_wide);
            in[k] = room[k];
        }
        void *const made = steps[2] == size ? out : (char *)room[2];
        if (is_wide) divide_wide(in[0], in[1], made, m, wanted);
        else divide_narrow(in[0], in[1], made, m, wanted);
        if (made != out) copy_steps(out, steps[2], made, size, m, is_wide);
    }
}

static void divide_runs_of_4(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings)
{
    divide_runs(data, *n, steps, settings, 0);
}

static void divide_runs_of_8(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings)
{
    divide_runs(data, *n, steps, settings, 1);
}

/* Replaces the loop of a ufunc if it is a supported division; returns whether it is. */
static int replace_division(const char *name, int is_wide, ufunc_loop *loop, void **settings)
{
    for (int wanted = 0; HAS_FMA && wanted < 4; wanted++)
        if (!strcmp(whole_divisions[wanted], name)) {
            *loop = is_wide ? divide_runs_of_8 : divide_runs_of_4;
            *settings = (void *)(whole_divisions + wanted);
            return 1;
        }
    return 0;
}

#endif
