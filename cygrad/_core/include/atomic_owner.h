/* Atomic claims: of a node by an engine run (Note [Claims] in run.pyx), of a leaf's gradient by a thread.

   cygrad_published(object) returns a new reference to an object that is about to be stored where other threads read it
   without a lock. Processors that may write out of order, such as ARM, show them the pointer after what the object
   holds. x86 always writes in order. */
#ifndef CYGRAD_CLAIM_H
#define CYGRAD_CLAIM_H
#if defined(Py_GIL_DISABLED) && (defined(__GNUC__) || defined(__clang__))
static inline int cygrad_claim(unsigned long long *owner, unsigned long long run) {
    unsigned long long nobody = 0;
    return __atomic_compare_exchange_n(owner, &nobody, run, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
static inline void cygrad_release(unsigned long long *owner) { __atomic_store_n(owner, 0, __ATOMIC_RELEASE); }
static inline unsigned long long cygrad_owner(unsigned long long *owner) {
    return __atomic_load_n(owner, __ATOMIC_ACQUIRE);
}
static inline unsigned long long cygrad_next(unsigned long long *counter) {
    return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}
static inline PyObject *cygrad_published(PyObject *object) {
    __atomic_thread_fence(__ATOMIC_RELEASE);
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
