"""Spent gradients: reuse of the memory of gradients that nobody will read again.

Note [Spent gradients]
----------------------
A backward pass that is not recorded produces gradients that are read once. If nothing else refers to such a gradient, its
memory can hold the next one, which saves an allocation and keeps the cache warm. This happens in three places:

    rules       Before `Run.step` runs a node, `offer` stores the incoming gradient in `ThreadState.spare` if only the rule
                will read it: no hook, profiler, check for NaN or open level, and no second reference. A rule whose last
                use of the gradient is an elementwise op calls `spend`, which writes the result over the gradient; a rule
                in Python checks `is_spare`. The offer ends with the rule, or when it is taken.
    sums        `add_gradients` adds two gradients that meet at a node, in the memory of one of them.
    leaves      AccumulateGrad takes over an unshared first gradient as `leaf.grad` instead of copying it.

`is_unshared` decides whether there is a second reference, by reference counts. Callers therefore state how many references
they hold themselves.
"""

from cpython.object cimport PyObject
from numpy cimport (
    NPY_ARRAY_OWNDATA, NPY_ARRAY_WRITEABLE, PyArray_BASE, PyArray_CHKFLAGS, PyArray_NBYTES,
    PyArray_SAMESHAPE, PyArray_TYPE, ndarray)

from cygrad._core.graph.opdef cimport OpDef, lookup
from cygrad._core.graph.record cimport apply_n, may_write_directly, operate2, run2
from cygrad._core.graph.tensor cimport DISPATCHES, Tensor, requires_grad, wrap, wrap_in_mode
from cygrad._core.runtime.thread_state cimport FORWARD, IN_RULE, NO_GRAD, ThreadState, thread_state
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.array_ops cimport is_contiguous
from cygrad._kernels.cpu.base.arrays cimport is_on_cpu
from cygrad._kernels.device.unresolved cimport is_unresolved

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*) noexcept

cdef OpDef _add = None


cpdef bint is_spare(Tensor g) noexcept:
    """Whether a rule may overwrite its incoming gradient because nobody else refers to it."""
    return thread_state().spare == <void*>g


cdef Tensor spend(OpDef op, Tensor g, object other):
    """Apply an elementwise op to a gradient that the calling rule will not read again.

    In a backward pass that is not recorded, the result reuses the memory of `g` if nothing else refers to it; otherwise that
    of `other`, if `other` is an unshared intermediate of the rule.
    """
    cdef ThreadState* state = thread_state()
    if state.spare != <void*>g or not may_write_directly(op, g, g.array, other):
        if op.kernel is not None:
            return apply_n(op, (g, other), None, None)
        if (type(other) is Tensor and state.modes & (IN_RULE | FORWARD) == IN_RULE and state.observers == NULL
                and is_unshared(<Tensor>other, 1)
                and may_write_directly(op, <Tensor>other, g.array, other)):
            run2(op, g, other, (<Tensor>other).array)
            return <Tensor>other
        return operate2(op, g, other)
    state.spare = NULL
    array = run2(op, g, other, g.array) if op.kernel is None else op.kernel(g.array, (<Tensor>other).array, True)
    return g if array is g.array else wrap(array)


# -- who else refers to a gradient -------------------------------------------------------------------------

cdef bint is_unshared(Tensor t, Py_ssize_t held) except -1:
    """Whether only the caller refers to this tensor and its memory, so that it may be taken over or written to.

    The caller holds `held` references to `t`, and none to its array. A tensor that requires grad (such as a saved tensor
    that an unpack hook returned and nobody else holds) does not qualify, because its history would come with it.
    """
    cdef ndarray array
    cdef PyObject* base
    if (Py_REFCNT(<PyObject*>t) > held or Py_REFCNT(<PyObject*>t.array) > 1 or requires_grad(t)
            or not is_contiguous(t.array)):
        return False
    if not is_on_cpu(t.array):
        if is_unresolved(t.array):
            return False
        return owns_gpu_memory(t.array)
    array = <ndarray>t.array
    base = <PyObject*>PyArray_BASE(array)
    if base == NULL:
        return owns_memory(array)
    # a reshaped view of the whole of an array that nobody else refers to
    return (Py_REFCNT(base) == 1 and type(<object>base) is ndarray and PyArray_BASE(<ndarray>base) == NULL
            and PyArray_NBYTES(<ndarray>base) == PyArray_NBYTES(array) and owns_memory(<ndarray>base)
            and PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEABLE))


cdef bint owns_gpu_memory(object array) except -1:
    """Whether nobody else refers to this GPU memory. Views made by `gpu.view` have no base: they hold the block itself.

    A reshaped view of the whole of an array that nobody else refers to counts as owning the memory, too.
    """
    cdef object base = array.base, pointer = array.data, block = pointer.mem
    cdef Py_ssize_t pointers = 2, blocks = 2
    if base is not None:
        if Py_REFCNT(<PyObject*>base) != 2 or base.base is not None or base.nbytes != array.nbytes:
            return False
        if base.data is pointer:
            pointers += 1
        else:
            blocks += 1
    return Py_REFCNT(<PyObject*>pointer) == pointers and Py_REFCNT(<PyObject*>block) == blocks


cdef inline bint owns_memory(ndarray array) noexcept:
    return PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE)


# -- sums --------------------------------------------------------------------------------------------------

cdef enum:
    HELD_BY_RUN = 3             # references to a rule's result: among its gradients, as one of them, and as the fitted one


cdef Tensor add_gradients(Tensor a, Tensor b):
    cdef ndarray xa, xb
    cdef Tensor spare = None
    if thread_state().modes & NO_GRAD and type(a.array) is ndarray and type(b.array) is ndarray and not (
            (a.flags | b.flags) & DISPATCHES or thread_state().dispatching):
        if is_unshared(a, 1):
            spare = a
        elif is_unshared(b, HELD_BY_RUN):
            spare = b
        xa = <ndarray>a.array
        xb = <ndarray>b.array
        if PyArray_TYPE(xa) == PyArray_TYPE(xb) and PyArray_SAMESHAPE(xa, xb):
            if spare is not None:
                add_arrays(xa, xb, <ndarray>spare.array)
                return spare
            return wrap_in_mode(add_arrays(xa, xb, None))
    if gpu_forms.is_sparse(a.array) or gpu_forms.is_sparse(b.array):
        return b + a if gpu_forms.is_sparse(a.array) else a + b     # a sparse tensor takes no dense one as second operand
    return lookup("add").entry(a, b)


cdef ndarray add_arrays(ndarray a, ndarray b, ndarray out):
    global _add
    if _add is None:
        _add = lookup("add")
    return _add.ufunc.call2(a, b, out)
