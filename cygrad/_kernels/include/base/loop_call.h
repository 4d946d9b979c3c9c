/* What loops that are called by number are given; what `data` and `n` hold is told beside each (native.h). */

#ifndef CYGRAD_NATIVE_CALL_H
#define CYGRAD_NATIVE_CALL_H

#include <Python.h>
#include <stdint.h>

typedef struct {
    int is_double;
    Py_ssize_t itemsize, piece;
    char *data[23];
    Py_ssize_t n[23];
    double real;
    int failed;
} native_call;

/* Any element of 8 bytes: numbers of complex64 may begin where integers do not. */
#if defined(__GNUC__)
typedef uint64_t packed_8 __attribute__((aligned(4)));
#else
typedef uint64_t packed_8;
#endif

/* An index, read once: what writes where it tells compares it first, and another thread may change it meanwhile. */
#define INDEX(place) (*(const volatile uint64_t *)(place))

#endif
