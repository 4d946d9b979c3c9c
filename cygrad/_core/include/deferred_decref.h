/* Note [Former values]

   Without the GIL, a thread may read a field of a shared tensor while another thread replaces the value: the reader has
   the pointer, but no reference yet. Locking every read would be too expensive for ops on few elements, so readers take
   no lock. Instead, whoever replaces an array, a gradient or a history holds the tensor's lock and then releases the
   former value through this file. If there are other threads, the value is kept until all of them have been stopped
   once: threads stop only between Python instructions, never between loading a pointer and taking its reference. They
   are stopped when CYGRAD_WAITING values or CYGRAD_WAITING_BYTES of memory are pending, for each large array, and
   before each garbage collection. */

#ifndef CYGRAD_LET_GO_H
#define CYGRAD_LET_GO_H

#ifndef Py_GIL_DISABLED
#define CYGRAD_LETS_WAIT 0
#define cygrad_let_go(value, bytes) ((void)(value), (void)(bytes))
#define cygrad_let_all_go() ((void)0)
#else
#define CYGRAD_LETS_WAIT 1

#define CYGRAD_WAITING 256
#define CYGRAD_WAITING_BYTES (1 << 25)

typedef struct {
    PyMutex lock;
    Py_ssize_t count;
    size_t bytes;
    PyObject* values[CYGRAD_WAITING];
} cygrad_waiting;

static cygrad_waiting cygrad_former;

static int cygrad_stop_at_once(PyObject* object, void* nothing) {
    (void)object, (void)nothing;
    return 0;
}

/* Inspects only the thread's own state, since others may be freed meanwhile. New states are inserted before it. */
static int cygrad_is_alone(void) {
    PyThreadState* own = PyThreadState_Get();
    return PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own)) == own && !PyThreadState_Next(own);
}

static void cygrad_let_all_go(void) {
    PyObject* values[CYGRAD_WAITING];
    int alone = cygrad_is_alone();          /* e.g. in a forked process, where a lost thread may hold the lock */
    if (!alone) PyMutex_Lock(&cygrad_former.lock);
    Py_ssize_t n = cygrad_former.count;
    memcpy(values, cygrad_former.values, n * sizeof(PyObject*));
    cygrad_former.count = 0;
    cygrad_former.bytes = 0;
    if (!alone) PyMutex_Unlock(&cygrad_former.lock);
    if (n && !alone) PyUnstable_GC_VisitObjects(cygrad_stop_at_once, NULL);     /* stops all other threads */
    while (n) Py_DECREF(values[--n]);
}

/* Keep `value`, which the caller holds, alive for as long as other threads may be about to read it. */
static void cygrad_let_go(PyObject* value, size_t bytes) {
    int full;
    if (value == Py_None) return;
    if (cygrad_is_alone()) {
        if (cygrad_former.count) cygrad_let_all_go();
        return;
    }
    do {
        PyMutex_Lock(&cygrad_former.lock);
        full = cygrad_former.count == CYGRAD_WAITING;
        if (!full) {
            cygrad_former.values[cygrad_former.count++] = Py_NewRef(value);
            cygrad_former.bytes += bytes;
        }
        int enough = full || cygrad_former.bytes > CYGRAD_WAITING_BYTES;
        PyMutex_Unlock(&cygrad_former.lock);
        if (enough) cygrad_let_all_go();
    } while (full);
}

#endif
#endif
