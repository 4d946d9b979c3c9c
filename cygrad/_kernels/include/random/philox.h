/* Uniform random numbers of single precision; called from random.py.

   Philox4x64 with 10 rounds (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as
   1, 2, 3", 2011), in NumPy's order: the words of consecutive counters, the lower half of each word first. */

#ifndef CYGRAD_PHILOX_H
#define CYGRAD_PHILOX_H

#include "random/draw.h"

CYGRAD_BEGIN_PLAIN_LOOPS

/* data: floats, two doubles that bound them; n: the four words of the last used counter, the two of the key. Items are
   the eight numbers of a counter; the lowest word must not overflow. */
static void uniform_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    const native_call *c = context;
    const uint64_t once = 0xD2E7470EE14C6C93, twice = 0xCA5A826395121157;
    const double *bounds = (const double *)c->data[1];
    char *out = c->data[0] + 32 * first;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t k = (uint64_t)c->n[4], l = (uint64_t)c->n[5], word[4];
        uint64_t p = (uint64_t)(c->n[0] + first + 1 + i);
        uint64_t q = (uint64_t)c->n[1], r = (uint64_t)c->n[2], s = (uint64_t)c->n[3];
        for (int round = 0; round < 10; round++) {
            const uint64_t a = p, b = r;
            p = upper_half(twice, b) ^ q ^ k;
            r = upper_half(once, a) ^ s ^ l;
            q = twice * b;
            s = once * a;
            k += 0x9E3779B97F4A7C15;
            l += 0xBB67AE8584CAA73B;
        }
        word[0] = p, word[1] = q, word[2] = r, word[3] = s;
        memcpy(out + 32 * i, word, 32);
    }
    make_uniform((float *)out, 8 * count, (float)bounds[0], (float)bounds[1], (float)(bounds[1] - bounds[0]));
}

CYGRAD_END_LOOPS

#endif
