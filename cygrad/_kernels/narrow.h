/* Loops of float16 and bfloat16 by those of float32, run by run: results are those of loops that convert one by one. */

#ifndef CYGRAD_NARROW_H
#define CYGRAD_NARROW_H

#include <string.h>
#include "ufuncs.h"

enum { NARROW_RUN = 512 };

typedef struct {
    int nin;
    void (*widen)(const void *, void *, Py_ssize_t);
    void (*narrow)(const void *, void *, Py_ssize_t);   /* NULL: results are truth values */
    ufunc_loop wide, numpy;                             /* that of float32, and NumPy's own, which can reduce */
    void *settings, *numpy_settings;
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
            if (done && !steps[k]) continue;        /* one number for all runs */
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

/* Puts it in the place of NumPy's loop. Ufuncs are made once, so that what it needs is never given back. */
static void replace_narrow(const narrow_ufunc *own, ufunc_loop *loop, void **settings)
{
    narrow_ufunc *kept = malloc(sizeof *kept);
    if (!kept) return;
    *kept = *own;
    kept->numpy = *loop;
    kept->numpy_settings = *settings;
    *loop = run_narrow;
    *settings = kept;
}

#endif
