/* The arguments of loops that are called by number; the meaning of `data` and `n` is documented at each loop
   (loop_table.h). */

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

/* The address `elements` elements after the beginning of an array, or NULL if there is no array. */
#define AT(i, elements) ((void *)(c->data[i] ? c->data[i] + (elements) * c->itemsize : NULL))

/* Any element of 8 bytes: complex64 numbers may be aligned to 4. */
#if defined(__GNUC__)
typedef uint64_t packed_8 __attribute__((aligned(4)));
#else
typedef uint64_t packed_8;
#endif

/* An index, read exactly once: it is bounds-checked before use, and another thread may change it in between. */
#define INDEX(place) (*(const volatile uint64_t *)(place))

#endif
