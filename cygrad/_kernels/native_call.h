/* What loops that are called by number are given; what `data` and `n` hold is told beside each (native.h). */

#ifndef CYGRAD_NATIVE_CALL_H
#define CYGRAD_NATIVE_CALL_H

#include <Python.h>

typedef struct {
    int is_double;
    Py_ssize_t itemsize, piece;
    char *data[23];
    Py_ssize_t n[17];
    double real;
    int failed;
} native_call;

/* An index, read once: what writes where it tells compares it first, and another thread may change it meanwhile. */
#define INDEX(place) (*(const volatile uint64_t *)(place))

#endif
