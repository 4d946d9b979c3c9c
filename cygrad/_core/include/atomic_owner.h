/* Atomic claims: of a node by an engine run (Note [Claims] in run.pyx), of a leaf's gradient by a thread.

   cygrad_published(object) returns a new reference to an object that is about to be stored where other threads read it
   without a lock. Processors that may write out of order, such as ARM, show them the pointer after what the object
   holds. x86 always writes in order. */
#ifndef CYGRAD_CLAIM_H
#define CYGRAD_CLAIM_H
#ifdef Py_GIL_DISABLED
#include "atomics.h"
static inline int cygrad_claim(unsigned long long *owner, unsigned long long run) {
    return cygrad_swap_if(owner, 0, run);
}
static inline void cygrad_release(unsigned long long *owner) { cygrad_post(owner, 0); }
static inline unsigned long long cygrad_owner(unsigned long long *owner) { return cygrad_load(owner); }
static inline unsigned long long cygrad_next(unsigned long long *counter) { return cygrad_add(counter, 1) + 1; }
static inline PyObject *cygrad_published(PyObject *object) {
    cygrad_order_writes();
    return Py_NewRef(object);
}
#else
static inline int cygrad_claim(unsigned long long *owner, unsigned long long run) {
    if (*owner) return 0;
    *owner = run;
    return 1;
}
static inline void cygrad_release(unsigned long long *owner) { *owner = 0; }
static inline unsigned long long cygrad_owner(unsigned long long *owner) { return *owner; }
static inline unsigned long long cygrad_next(unsigned long long *counter) { return ++*counter; }
#define cygrad_published(object) Py_NewRef(object)
#endif
#endif
