/* Note [Spare arrays]

   For ops on few elements, NumPy spent half of the time on creating the result array and later destroying it. We
   therefore keep the ndarray of a dying tensor in a freelist (if its refcount is 1) and reuse it for the next result
   with the same dtype and shape. Each slot of the table holds arrays of one type and shape, the last that hashed to it:
   at most 64 * 16 arrays of 1 KB. */

#ifndef CYGRAD_SPARES_H
#define CYGRAD_SPARES_H

#include "platform/sanitized.h"

#define SPARE_SLOTS 64
#define SPARE_DEPTH 16
#define SPARE_BYTES 1024

typedef struct {
    int count;
    PyArrayObject* arrays[SPARE_DEPTH];
} spare_slot;

#if CYGRAD_SANITIZED || defined(Py_GIL_DISABLED)     /* the table would need a lock, which costs what it saves */
#define spare_take(slots, ndim, dims, type) ((void)(slots), (PyObject*)NULL)
#define spare_keep(slots, array, descrs, types) ((void)(slots))
#define spare_drop(slots) ((void)(slots))
#else

static inline spare_slot* spare_find(spare_slot* slots, int ndim, const npy_intp* dims, int type) {
    npy_uintp hash = (npy_uintp)type;
    for (int i = 0; i < ndim; i++) hash = 31 * hash + (npy_uintp)dims[i];
    return slots + (hash ^ hash >> 6) % SPARE_SLOTS;
}

static inline int spare_fits(PyArrayObject* a, int ndim, const npy_intp* dims, int type) {
    if (PyArray_TYPE(a) != type || PyArray_NDIM(a) != ndim) return 0;
    for (int i = 0; i < ndim; i++)
        if (PyArray_DIMS(a)[i] != dims[i]) return 0;
    return 1;
}

/* A new reference to a C-contiguous array of that type and shape, or NULL. */
static inline PyObject* spare_take(spare_slot* slots, int ndim, const npy_intp* dims, int type) {
    spare_slot* slot = spare_find(slots, ndim, dims, type);
    if (!slot->count || !spare_fits(slot->arrays[slot->count - 1], ndim, dims, type)) return NULL;
    return (PyObject*)slot->arrays[--slot->count];
}

static void spare_clear(spare_slot* slot) {
    while (slot->count) Py_DECREF((PyObject*)slot->arrays[--slot->count]);
}

/* Keep an array to which the caller holds the only reference, unless it is unusual in some way. */
static void spare_keep(spare_slot* slots, PyObject* object, PyArray_Descr* const* descrs, int types) {
    const int needed = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_OWNDATA | NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE;
    const int allowed = needed | NPY_ARRAY_F_CONTIGUOUS;
    if (Py_REFCNT(object) != 1 || !PyArray_CheckExact(object)) return;
    PyArrayObject* a = (PyArrayObject*)object;
    int flags = PyArray_FLAGS(a), type = PyArray_TYPE(a);
    if ((flags & needed) != needed || flags & ~allowed || PyArray_BASE(a) != NULL
            || ((PyArrayObject_fields*)a)->weakreflist != NULL || type >= types || type == NPY_OBJECT
            || PyArray_DESCR(a) != descrs[type] || PyArray_NBYTES(a) > SPARE_BYTES)
        return;
    spare_slot* slot = spare_find(slots, PyArray_NDIM(a), PyArray_DIMS(a), type);
    if (slot->count && !spare_fits(slot->arrays[0], PyArray_NDIM(a), PyArray_DIMS(a), type)) spare_clear(slot);
    if (slot->count < SPARE_DEPTH) {
        Py_INCREF(object);
        slot->arrays[slot->count++] = a;
    }
}

static void spare_drop(spare_slot* slots) {
    for (int i = 0; i < SPARE_SLOTS; i++) spare_clear(slots + i);
}
#endif

#endif
