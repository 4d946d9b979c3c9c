"""Per-thread state, and sites in the user's program.

Note [Sites]
------------
Every node, and every action that an error may later refer to (an in-place change, a `detach`, ...), keeps a *site*: the
code object of the Python line that caused it and the instruction offset within it. Recording a site costs a few
nanoseconds because nothing is resolved: no line number, no file name, no traceback. `sites.py` turns a site into
`file:line` when an error needs it.

Lines inside cygrad's own Python files (an `nn.Module`, an optimizer) are of no use to a user, so the search walks
outwards to the first frame that is not ours. A small table keyed by the address of a code object caches whether it is
ours. The table holds no references: our own code objects live as long as the package, so an entry can only go stale
from "user's" to "ours", which is harmless.
"""

cimport cython

import os

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad._kernels.platform.memory_pool cimport connect

cdef extern from *:
    """
    #include "frames.h"

    #if defined(_MSC_VER)
    #define CYGRAD_THREAD_LOCAL __declspec(thread)
    #else
    #define CYGRAD_THREAD_LOCAL __thread
    #endif

    /* The few bytes of state fit into the space that glibc reserves for libraries loaded late, so accessing them
     * takes one instruction instead of a call. */
    #if defined(__GLIBC__) && defined(__GNUC__)
    #define CYGRAD_NEAR __attribute__((tls_model("initial-exec")))
    #else
    #define CYGRAD_NEAR
    #endif

    typedef struct { unsigned int modes; unsigned long long sequence; void *run;
        unsigned long long unwanted; void *spare; unsigned int watch; void *on_save; void *on_write;
        void *stream; void *observers; unsigned int dispatching; void *changing; void *generator; unsigned long long draws;
    } cygrad_thread_state;
    static CYGRAD_THREAD_LOCAL cygrad_thread_state CYGRAD_NEAR cygrad_state;

    /* An entry is a code object's address, whose lowest bit tells whether it is ours: one word, which threads can
     * read and write concurrently without the GIL. */
    #define CYGRAD_CODES 256
    static size_t cygrad_codes[CYGRAD_CODES];

    static inline size_t *cygrad_code_entry(PyObject *code) {
        return &cygrad_codes[(((size_t)code) >> 5) % CYGRAD_CODES];
    }
    """
    ctypedef struct cygrad_thread_state:        # the same fields as ThreadState
        unsigned int modes
        unsigned int watch
        unsigned long long sequence
        void* on_save
        void* on_write
        void* stream
        void* observers
        unsigned int dispatching
        void* generator
    cygrad_thread_state cygrad_state
    size_t* cygrad_code_entry(PyObject* code) noexcept
    ctypedef struct cygrad_frame
    cygrad_frame* cygrad_current_frame() noexcept
    cygrad_frame* cygrad_outer_frame(cygrad_frame*) noexcept
    PyObject* cygrad_frame_code(cygrad_frame*) noexcept
    int cygrad_frame_lasti(cygrad_frame*) noexcept

cdef str _our_files = os.path.dirname(os.path.abspath(__file__)) + os.sep     # the compiled library is in `cygrad/` itself


cdef ThreadState* thread_state() noexcept:
    return <ThreadState*>&cygrad_state


cdef inline int _is_ours(PyObject* code) except -1:
    cdef size_t entry = cygrad_code_entry(code)[0]
    return entry & 1 if entry | 1 == <size_t>code | 1 else _look_at(<object>code)


cdef int _look_at(object code) except -1:
    cdef bint ours = (<str>code.co_filename).startswith(_our_files)
    cygrad_code_entry(<PyObject*>code)[0] = <size_t><PyObject*>code | ours
    return ours


cdef object current_site(int* lasti):
    cdef cygrad_frame* frame = cygrad_current_frame()
    cdef cygrad_frame* outer
    cdef PyObject* code
    if frame == NULL:
        lasti[0] = -1
        return None
    code = cygrad_frame_code(frame)
    while _is_ours(code):
        outer = cygrad_outer_frame(frame)
        if outer == NULL:               # all frames are ours; keep the outermost
            break
        frame = outer
        code = cygrad_frame_code(frame)
    lasti[0] = cygrad_frame_lasti(frame)
    return <object>code


def _explain_shortage(text):
    from cygrad._core.runtime.memory_stats import explained  # needed only for errors
    return explained(text)

connect(&current_site, _explain_shortage)


def current_place():
    """Return (code, offset) of the innermost Python line outside cygrad."""
    cdef int lasti
    code = current_site(&lasti)
    return code, lasti


def take_sites(int n):
    """Take the current site `n` times, as recording `n` ops does, to benchmark the cost of one."""
    cdef int _, lasti
    for _ in range(n):
        current_site(&lasti)


# The bits that thread_state.pxd defines, for Python modules.
globals().update(NO_GRAD=NO_GRAD, INFERENCE=INFERENCE, IN_RULE=IN_RULE,
                 WATCH_NAN=WATCH_NAN, WATCH_RESULTS=WATCH_RESULTS, WATCH_INF=WATCH_INF)


def get_modes():
    """Return this thread's mode bits except FORWARD, which is set separately; see `thread_state.pxd`."""
    return cygrad_state.modes & ~FORWARD


def set_modes(unsigned int modes):
    """Set this thread's mode bits except FORWARD, and return the former ones."""
    former = get_modes()
    cygrad_state.modes = (modes & ~FORWARD) | (cygrad_state.modes & FORWARD)
    return former


def get_watch():
    """Return the bits for what this thread's results are checked for."""
    return cygrad_state.watch


def set_watch(unsigned int watch):
    """Set what this thread's results are checked for, and return the former bits."""
    former = cygrad_state.watch
    cygrad_state.watch = watch
    return former


cdef object exchange(void** place, object function):
    """Replace the object in a slot of this thread by a function or None, and return the former one."""
    former = None if place[0] == NULL else <object>place[0]
    Py_XDECREF(<PyObject*>place[0])
    if function is not None:
        Py_INCREF(function)
    place[0] = NULL if function is None else <void*>function
    return former


def set_stream(place):
    """Set the token of the stream for nodes recorded in this thread, or None; return the former one."""
    return exchange(&cygrad_state.stream, place)


def exchange_generator(generator):
    """Set the generator that this thread draws from, or None for the default one; return the former one."""
    return exchange(&cygrad_state.generator, generator)


def is_observed():
    """Whether the profiler or another observer sees the ops of this thread."""
    return cygrad_state.observers != NULL


def is_dispatching():
    """Whether a mode of `__torch_dispatch__` sees the ops of this thread."""
    return cygrad_state.dispatching != 0


def saving_is_watched():
    """Whether hooks on saved tensors are active in this thread."""
    return cygrad_state.on_save != NULL


def set_forward(bint on):
    """Set whether results get tangents, and return the former setting."""
    former = bool(cygrad_state.modes & FORWARD)
    cygrad_state.modes = cygrad_state.modes | FORWARD if on else cygrad_state.modes & ~FORWARD
    return former


def is_forward():
    """Whether results get tangents or samples."""
    return bool(cygrad_state.modes & FORWARD)


def next_sequence_nr():
    """Return the sequence number that the next node of this thread will get."""
    return cygrad_state.sequence


# -- interrupt-safe context managers -----------------------------------------------------------------------
# `__enter__` and `__exit__` of context managers written in Python. Since they are compiled, a KeyboardInterrupt can
# arrive before or after them, but never at a point that leaves a block entered without its exit.

cdef object _saving = None


def take_saving(thread):
    """Set the thread-local object whose `hooks` attribute holds the saved-tensor hooks."""
    global _saving
    _saving = thread


cdef tuple entered_hooks():
    return _saving.hooks


cpdef save_by(tuple hooks):
    """Activate the last of these hooks; each is a tuple of (pack, unpack, `on_save`, `on_write`)."""
    cdef tuple last = hooks[len(hooks) - 1] if hooks else (None,) * 4
    _saving.hooks = hooks
    exchange(&cygrad_state.on_save, last[2])
    exchange(&cygrad_state.on_write, last[3])


@cython.binding(True)
def begin_block(self):
    """Enter the block that `self._plan()` describes: (compiled function, argument on entry, argument on exit).

    Returns `self._context`.
    """
    cdef tuple plan = self._plan()
    context = self._context             # read before entering: it may be a property written in Python
    self._plans = plan, self._plans
    try:
        plan[0](plan[1])
    except BaseException:
        end_block(self)
        raise
    return context


@cython.binding(True)
def end_block(self, *exc_info):
    """Undo the latest `begin_block` with the same function, or with the plan's fourth item; then call `self._ended`."""
    cdef tuple plans = self._plans, plan = plans[0]
    self._plans = plans[1]
    plan[0 if len(plan) == 3 else 3](plan[2])
    if self._ended is not None:
        self._ended()


@cython.binding(True)
def leave_hooks(self, *exc_info):
    """End the innermost hooks on saved tensors of this thread, whoever entered them; then call `self._ended`."""
    cdef tuple plans = self._plans, hooks = entered_hooks()
    if not hooks:
        raise RuntimeError("saved_tensors_hooks: there are no hooks in this thread that could end")
    self._plans = None if plans is None else plans[1]
    save_by(hooks[:len(hooks) - 1])
    if self._ended is not None:
        self._ended()
