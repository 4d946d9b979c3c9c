/* Loops for float16 and bfloat16 that run float32 loops chunk by chunk, with the same results as converting element by
   element. Functions that only need the bits of numbers work on those. */

#ifndef CYGRAD_NARROW_H
#define CYGRAD_NARROW_H

#include <string.h>
#include "base/ufuncs.h"

enum { NARROW_RUN = 512 };

typedef struct {
    int nin;
    void (*widen)(const void *, void *, Py_ssize_t);
    void (*narrow)(const void *, void *, Py_ssize_t);   /* NULL: results are booleans */
    ufunc_loop wide, numpy;                             /* the float32 loop, and NumPy's own, which can reduce */
    void *settings, *numpy_settings;
    uint16_t infinity, kept, turned;  /* for work on bits: infinity's pattern, bits to keep, bits to flip */
    int number;  /* 1-based, the operand that is a single float32 number; 0: none */
} narrow_ufunc;

static void run_narrow(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings)
{
    const narrow_ufunc *own = settings;
    const int nin = own->nin;
    float room[3][NARROW_RUN];
    uint16_t apart[NARROW_RUN];
    if (steps[nin] == 0) {
        own->numpy(data, n, steps, own->numpy_settings);
        return;
    }
    for (Py_ssize_t done = 0; done < *n; done += NARROW_RUN) {
        const Py_ssize_t m = *n - done < NARROW_RUN ? *n - done : NARROW_RUN;
        char *given[3], *const out = data[nin] + done * steps[nin];
        Py_ssize_t taken[3];
        for (int k = 0; k < nin; k++) {
            const char *in = data[k] + done * steps[k];
            const Py_ssize_t count = steps[k] ? m : 1;
            given[k] = (char *)room[k];
            taken[k] = steps[k] ? 4 : 0;
            if (done && !steps[k]) continue;        /* one number for all chunks */
            if (own->number == k + 1) {
                room[k][0] = *(const float *)in;
                continue;
            }
            if (steps[k] != 2) {
                for (Py_ssize_t i = 0; i < count; i++) memcpy(apart + i, in + i * steps[k], 2);
                in = (const char *)apart;
            }
            own->widen(in, room[k], count);
        }
        given[nin] = own->narrow ? (char *)room[2] : out;
        taken[nin] = own->narrow ? 4 : steps[nin];
        own->wide(given, &m, taken, own->settings);
        if (!own->narrow) continue;
        own->narrow(room[2], steps[nin] == 2 ? (void *)out : apart, m);
        for (Py_ssize_t i = 0; steps[nin] != 2 && i < m; i++) memcpy(out + i * steps[nin], apart + i, 2);
    }
}

CYGRAD_BEGIN_CHOOSING_LOOPS

static void change_bits(const uint16_t *x, uint16_t *out, Py_ssize_t n, uint16_t kept, uint16_t turned)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) out[i] = (uint16_t)((x[i] & kept) ^ turned);
}

/* The larger of two numbers, or the smaller if `turned` flips all bits, and NaN if one is. As integers, bit patterns
   have the order of the numbers once the magnitude bits of negative ones are flipped. */
static CYGRAD_CLONES void choose_by_bits(const int16_t *x, const int16_t *y, int16_t *out, Py_ssize_t n, int16_t turned,
                                         int16_t infinity)
{
    CYGRAD_INDEPENDENT for (Py_ssize_t i = 0; i < n; i++) {
        const int16_t a = x[i], b = y[i];
        const int16_t of_a = (int16_t)(a ^ ((a >> 15) & 0x7fff) ^ turned), of_b = (int16_t)(b ^ ((b >> 15) & 0x7fff) ^ turned);
        const int16_t better = of_a >= of_b ? a : b, or_nan = (int16_t)(b & 0x7fff) > infinity ? b : better;
        out[i] = (int16_t)(a & 0x7fff) > infinity ? a : or_nan;
    }
}

CYGRAD_END_LOOPS

static void run_narrow_bits(char **data, const Py_ssize_t *n, const Py_ssize_t *steps, void *settings)
{
    const narrow_ufunc *own = settings;
    const int nin = own->nin;
    uint16_t room[3][NARROW_RUN];
    if (steps[nin] == 0) {
        own->numpy(data, n, steps, own->numpy_settings);
        return;
    }
    for (Py_ssize_t done = 0; done < *n; done += NARROW_RUN) {
        const Py_ssize_t m = *n - done < NARROW_RUN ? *n - done : NARROW_RUN;
        char *const out = data[nin] + done * steps[nin];
        void *given[3], *const found = steps[nin] == 2 ? (void *)out : room[2];
        for (int k = 0; k < nin; k++) {
            const char *in = data[k] + done * steps[k];
            given[k] = steps[k] == 2 ? (void *)in : room[k];
            if (steps[k] == 2 || (done && !steps[k])) continue;         /* one number for all chunks */
            for (Py_ssize_t i = 0; i < m; i++) memcpy(room[k] + i, in + i * steps[k], 2);
        }
        if (nin == 1) change_bits(given[0], found, m, own->kept, own->turned);
        else choose_by_bits(given[0], given[1], found, m, (int16_t)own->turned, (int16_t)own->infinity);
        for (Py_ssize_t i = 0; found != out && i < m; i++) memcpy(out + i * steps[nin], room[2] + i, 2);
    }
}

/* The settings of a loop like another one, with a float32 number as an operand, or NULL if there is none. */
static void *taking_number(ufunc_loop loop, void *settings, int operand)
{
    return loop == run_narrow ? (narrow_ufunc *)settings + operand + 1 : NULL;
}

/* Replaces NumPy's loop. Ufuncs exist for the whole process, so the settings are never freed. */
static void replace_narrow(const char *name, int is_bfloat16, const narrow_ufunc *own, ufunc_loop *loop, void **settings)
{
    narrow_ufunc *kept = malloc(3 * sizeof *kept);      /* without a number, with one as the first operand, as the second */
    const int is_negative = !strcmp(name, "negative"), is_minimum = !strcmp(name, "minimum");
    if (!kept) return;
    *kept = *own;
    kept->number = 0;
    kept->numpy = *loop;
    kept->numpy_settings = *settings;
    kept->infinity = is_bfloat16 ? 0x7f80 : 0x7c00;
    kept->kept = is_negative ? 0xffff : 0x7fff;
    kept->turned = is_negative ? 0x8000 : is_minimum ? 0xffff : 0;
    kept[1] = kept[2] = *kept;
    kept[1].number = 1;
    kept[2].number = 2;
    *loop = is_negative || is_minimum || !strcmp(name, "absolute") || !strcmp(name, "maximum") ? run_narrow_bits
                                                                                              : run_narrow;
    *settings = kept;
}

#endif
