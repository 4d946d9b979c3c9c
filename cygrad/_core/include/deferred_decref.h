/* Note [Former values]

   Without the GIL a thread may read a field of a tensor that all threads know while another one replaces its value: it
   has the pointer, but no reference yet. To lock what every op reads would cost more than the ops of few elements can
   afford. So readers take no lock, and whoever replaces an array, a gradient or a history holds the tensor's lock and
   then lets the former value go through here: where there are other threads it is kept until they all have stopped for
   a moment, which they do between instructions of Python only, never between a pointer and its reference. They are
   stopped when so many values, or so much memory, are waiting, for each large array, and before each collection of
   garbage. */

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

/* The thread's own state is looked at, no other's, which may be freed meanwhile. New ones are put before it. */
static int cygrad_is_alone(void) {
    PyThreadState* own = PyThreadState_Get();
    return PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own)) == own && !PyThreadState_Next(own);
}

static void cygrad_let_all_go(void) {
    PyObject* values[CYGRAD_WAITING];
    int alone = cygrad_is_alone();          /* as in a forked process, whose lock a lost thread may hold */
    if (!alone) PyMutex_Lock(&cygrad_former.lock);
    Py_ssize_t n = cygrad_former.count;
    memcpy(values, cygrad_former.values, n * sizeof(PyObject*));
    cygrad_former.count = 0;
    cygrad_former.bytes = 0;
    if (!alone) PyMutex_Unlock(&cygrad_former.lock);
    if (n && !alone) PyUnstable_GC_VisitObjects(cygrad_stop_at_once, NULL);     /* stops all other threads */
    while (n) Py_DECREF(values[--n]);
}

/* Keep `value`, which the caller holds and other threads may be about to read, for as long as they may. */
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
