"""The parts of a captured step: what tensors must be like, what new tensors are like, and why steps are refused."""

from weakref import getweakrefcount

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF

from cygrad._core.engine.run cimport is_looking_for_anomalies
from cygrad._core.graph.opdef cimport asks_nobody, overrides_nothing
from cygrad._core.graph.tensor cimport REQUIRES_GRAD, Tensor, ViewMeta, counter_of, version_of, wrap
from cygrad._core.runtime.thread_state cimport FORWARD, NO_GRAD, ThreadState, thread_state
from cygrad._kernels.cpu.base.arrays cimport PyArray_ISNOTSWAPPED, empty, empty_strided

from cygrad._core.replay.casts import are_cold, casts_now, may_be_noted, situation, situation_of_pass

cnp.import_array()

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*) noexcept

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        PyTypeObject*, cnp.PyArray_Descr*, int, cnp.npy_intp*, cnp.npy_intp*, void*, int, PyObject*)
    PyTypeObject PyArray_Type


cdef set _passed_over = None        # reasons for which guards do not fail; None outside of tests of the tests

def pass_over(set reasons):
    """Let no guard fail for these reasons: the tests show in this way what each is good for. None: as usual."""
    global _passed_over
    _passed_over = None if reasons is None else {(<str?>each).encode() for each in reasons}


cdef bint matters(const char* reason) noexcept:
    return _passed_over is None or reason not in _passed_over


class Unfit(Exception):
    """A captured step that cannot be replayed."""


class Refusal:
    """Why a step cannot be replayed: `reason`, `op` (a name or None) and `site` (file and line, or None)."""

    def __init__(self, reason, op, place):
        self.reason, self.op = reason, op
        self.site = site_of(place)

    def __str__(self):
        text = f"`{self.op}` {self.reason}" if self.op else self.reason
        return text if self.site is None else f"{text}, at {self.site[0]}:{self.site[1]}"

    def __repr__(self):
        return f"Refusal({str(self)!r})"


def site_of(place):
    """(file, line) of (code object, instruction offset)."""
    if place is None:
        return None
    from cygrad._core.errors.sites import line_of  # needed only for texts

    code, offset = place
    return code.co_filename, line_of(code, offset)


def is_plain_state(bint may_cast=False):
    """Why this thread's modes keep a step from being captured, or None. `may_cast`: autocast does not."""
    cdef ThreadState* state = thread_state()
    if state.modes & FORWARD:
        return "forward mode or vmap is active"
    if state.observers != NULL:
        return "a profiler or another observer is active"
    if state.watch:
        return "results are checked for NaN"
    if state.on_save != NULL or state.on_write != NULL:
        return "hooks on saved tensors are active"
    if state.run != NULL:
        return "a backward pass is running"
    if is_looking_for_anomalies():
        return "anomaly mode is on"
    if not overrides_nothing():
        return "a mode or a class that overrides functions is active"
    if not asks_nobody() and (not may_be_noted() if may_cast else casts_now()):
        return "autocast is active"
    return None


cdef bint is_plain_now(unsigned int modes, bint is_pass) noexcept:
    return are_modes(modes, is_pass) and asks_nobody()


cdef bint is_as_before(unsigned int modes, bint is_pass, object casting, list values) noexcept:
    return are_modes(modes, is_pass) and (casting is None if asks_nobody() else
                                          overrides_nothing() and is_cast_as(is_pass, casting, values))


cdef bint are_modes(unsigned int modes, bint is_pass) noexcept:
    cdef ThreadState* state = thread_state()
    cdef unsigned int ignored = NO_GRAD if is_pass else 0
    return (state.modes | ignored == modes | ignored and state.observers == NULL and state.watch == 0
            and (state.on_save == NULL and state.run == NULL or is_pass) and state.on_write == NULL
            and not is_looking_for_anomalies())


cdef bint is_cast_as(bint is_pass, object casting, list values) noexcept:
    """Whether ops are cast as `situation` said once, and these parameters have not been cast in this block."""
    try:
        return (situation_of_pass() if is_pass else situation()) == casting and are_cold(values)
    except Exception:
        return False


# --------------------------------------------------------------------------------------------------- tensors


cdef class Given:

    cdef int take(self, Tensor t, bint sees_grads, bint is_of_pass) except -1:
        """Have it be like this tensor."""
        self.cls, self.flags, self.is_of_pass = type(t), t.flags, is_of_pass
        self.is_view, self.has_history = t.view is not None, t.grad_fn_ is not None
        self.before = UNSEEN if not sees_grads else NONE if t.grad_ is None else KEPT
        return 0

    cdef const char* misfit_of_class(self, object value) noexcept:
        """Why a tensor does not fit, before its array is looked at, or NULL."""
        if type(value) is not self.cls:
            return "an argument is of another class"
        if (<Tensor>value).attributes:
            return "an argument has attributes"
        return NULL

    cdef const char* misfit_of_history(self, Tensor t) noexcept:
        """Why a tensor does not fit, apart from class and array, or NULL."""
        if t.flags != self.flags or (t.grad_fn_ is not None) != self.has_history:
            return "an argument requires grad, or does no more, or has a history"
        if self.is_of_pass and t.tangents is None:
            return NULL
        if (t.view is not None) != self.is_view or t.view is not None and not self.has_history and (
                t.view.base.flags & REQUIRES_GRAD):
            return "an argument is a view, or is none any more"
        if self.before != UNSEEN and (t.grad_ is not None) != (self.before == KEPT) or t.tangents is not None:
            return "an argument has a grad, or has none any more"
        if t.accumulator is not None and t.accumulator.hooks is not None and self.before != UNSEEN:
            return "an argument has hooks"
        return NULL


@cython.final
cdef class Argument(Given):

    def __init__(self, Tensor t not None, bint sees_grads, bint is_of_pass):
        cdef cnp.ndarray a = t.array
        cdef int i
        self.take(t, sees_grads, is_of_pass)
        self.typenum, self.ndim = cnp.PyArray_TYPE(a), cnp.PyArray_NDIM(a)
        for i in range(self.ndim):
            self.dims[i], self.steps[i] = cnp.PyArray_DIMS(a)[i], cnp.PyArray_STRIDES(a)[i]
            if self.dims[i] and self.steps[i] < 0:
                self.low += (self.dims[i] - 1) * self.steps[i]
            elif self.dims[i]:
                self.high += (self.dims[i] - 1) * self.steps[i]
        self.high += cnp.PyArray_ITEMSIZE(a)
        if cnp.PyArray_SIZE(a) == 0:
            self.low = self.high = 0

    cdef const char* misfit(self, object value) noexcept:
        """Why a tensor does not fit, or NULL."""
        cdef Tensor t = <Tensor>value           # it is one, as its class is compared first
        cdef cnp.ndarray a
        cdef const char* reason = self.misfit_of_class(value)
        cdef int i
        if reason != NULL:
            return reason
        if type(t.array) is not cnp.ndarray:
            return "an argument is not in main memory"
        a = <cnp.ndarray>t.array
        if cnp.PyArray_TYPE(a) != self.typenum or not cnp.PyArray_ISALIGNED(a) or not PyArray_ISNOTSWAPPED(a):
            return "an argument has another dtype"
        if cnp.PyArray_NDIM(a) != self.ndim:
            return "an argument has another shape"
        for i in range(self.ndim):
            if cnp.PyArray_DIMS(a)[i] != self.dims[i]:
                return "an argument has another shape"
            if cnp.PyArray_STRIDES(a)[i] != self.steps[i]:
                return "an argument has other strides"
        return self.misfit_of_history(t)


@cython.final
cdef class External:

    cdef const char* misfit(self) noexcept:
        cdef Tensor t = self.tensor
        if t.array is not self.array or self.data != NULL and cnp.PyArray_BYTES(<cnp.ndarray>self.array) != self.data:
            return "a tensor outside of the step has other memory"
        if t.flags != self.flags and not self.is_of_pass or t.grad_fn_ is not None or t.tangents is not None:
            return "a tensor outside of the step requires grad, or does no more, or has a history"
        if self.is_bare and t.attributes:
            return "a tensor outside of the step has attributes"
        if t.accumulator is not None and t.accumulator.hooks is not None and not self.may_have_hooks:
            return "a tensor outside of the step has hooks"
        if self.before == NONE and t.grad_ is not None or self.before == KEPT and t.grad_ is not self.grad or (
                self.before == REPLACED and t.grad_ is None):
            return "a tensor outside of the step has a grad, or has none any more, or has another"
        return NULL


cdef External external_of(Tensor t, Tensor former, bint sees_grads, bint is_of_pass):
    cdef External e = External.__new__(External)
    e.is_of_pass, e.may_have_hooks, e.is_bare = is_of_pass, is_of_pass or not sees_grads, not is_of_pass and not t.attributes
    if t.grad_fn_ is not None or t.tangents is not None:
        raise Unfit("a tensor outside of the step has a history")
    if t.accumulator is not None and t.accumulator.hooks is not None and not e.may_have_hooks:
        raise Unfit("a tensor outside of the step has hooks")
    e.tensor, e.array, e.flags = t, t.array, t.flags
    if type(t.array) is cnp.ndarray:
        e.data = cnp.PyArray_BYTES(<cnp.ndarray>t.array)
    e.before = NONE if former is None else KEPT if former is t.grad_ else REPLACED
    if t.grad_ is former and (is_of_pass or not sees_grads):
        e.before = UNSEEN
    if e.before == KEPT:
        e.grad = former
    return e


@cython.final
cdef class Result:

    def __init__(self, int kind, Py_ssize_t index):
        self.kind, self.index = kind, index

    cdef int describe(self, Tensor t) except -1:
        """Take over what a fresh twin of a tensor needs, but its memory."""
        cdef cnp.ndarray a = t.array
        cdef int i
        self.grad_fn, self.output_nr, self.flags = t.grad_fn_, t.output_nr_, t.flags
        self.version = version_of(t)
        self.origin = t.origin_kind, t.origin_name, t.origin_code, t.origin_lasti
        self.typenum, self.ndim = cnp.PyArray_TYPE(a), cnp.PyArray_NDIM(a)
        cdef cnp.npy_intp step = cnp.PyArray_ITEMSIZE(a)
        self.is_row_major = True
        for i in reversed(range(self.ndim)):
            self.dims[i], self.steps[i] = cnp.PyArray_DIMS(a)[i], cnp.PyArray_STRIDES(a)[i]
            self.is_row_major = self.is_row_major and self.steps[i] == step    # also of dimensions of length 1
            step *= self.dims[i]
        return 0

    cdef Tensor tensor(self, cnp.ndarray memory):
        """A tensor on a part of `memory`, or, for None, on memory of its own."""
        if memory is not None:
            return self.around(self.array(memory, self.offset))
        if self.is_row_major:
            return self.around(empty(self.ndim, self.dims, self.typenum))
        return self.around(empty_strided(self.ndim, self.dims, self.steps, self.typenum))

    def fresh_array(self):
        """An array for the tensor, with memory of its own."""
        return self.tensor(None).array

    cdef Tensor around(self, object array):
        """A tensor with this array."""
        cdef Tensor t = wrap(array)
        t.flags = self.flags
        t.grad_fn_, t.output_nr_ = self.grad_fn, self.output_nr
        if self.version:
            counter_of(t).version = self.version
        if self.origin[0]:
            t.origin_kind, t.origin_name, t.origin_code, t.origin_lasti = self.origin
        return t

    cdef int become_view(self, Tensor t, Tensor base) except -1:
        """Let a tensor be a view, as the captured one is."""
        cdef ViewMeta view = ViewMeta.__new__(ViewMeta)
        t.counter = counter_of(base)
        view.base, view.attr_version = base, t.counter.version
        view.creation_meta, view.code, view.lasti = self.made
        t.view = view
        return 0

    cdef cnp.ndarray array(self, cnp.ndarray memory, Py_ssize_t offset):
        """An array on a part of `memory`."""
        cdef object dtype = cnp.PyArray_DescrFromType(self.typenum)
        cdef cnp.ndarray found
        Py_INCREF(dtype)                    # PyArray_NewFromDescr steals a reference
        found = PyArray_NewFromDescr(&PyArray_Type, <cnp.PyArray_Descr*>dtype, self.ndim, self.dims, self.steps,
                                     cnp.PyArray_BYTES(memory) + offset, cnp.NPY_ARRAY_WRITEABLE, NULL)
        cnp.set_array_base(found, memory)
        return found

    cdef bint fits(self, Tensor t) except -1:
        """Whether a gradient's tensor and memory may be used again: nothing refers to them but the `grad` field."""
        cdef cnp.ndarray a
        cdef int i
        if (type(t) is not Tensor or Py_REFCNT(<PyObject*>t) > 2 or type(t.array) is not cnp.ndarray
                or Py_REFCNT(<PyObject*>t.array) > 1):
            return False
        a = <cnp.ndarray>t.array
        if (cnp.PyArray_TYPE(a) != self.typenum or cnp.PyArray_NDIM(a) != self.ndim or cnp.PyArray_BASE(a) != NULL
                or not cnp.PyArray_CHKFLAGS(a, cnp.NPY_ARRAY_OWNDATA | cnp.NPY_ARRAY_WRITEABLE)):
            return False
        for i in range(self.ndim):
            if cnp.PyArray_DIMS(a)[i] != self.dims[i] or cnp.PyArray_STRIDES(a)[i] != self.steps[i]:
                return False
        return (t.flags == self.flags and t.view is None and t.grad_fn_ is None and t.grad_ is None
                and t.accumulator is None and t.tangents is None and t.attributes is None
                and (t.counter is None or Py_REFCNT(<PyObject*>t.counter) == 1) and getweakrefcount(t) == 0
                and getweakrefcount(a) == 0)
