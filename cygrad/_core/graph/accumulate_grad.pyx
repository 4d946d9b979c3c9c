"""AccumulateGrad: the node at which gradients end.

Note [One thread at a leaf]
---------------------------
Adding to `leaf.grad` is a read, a sum and a write, and NumPy's loops release the GIL meanwhile. A thread therefore
claims the node before it adds (`atomic_owner.h`); other threads sleep until the node is free. A thread that already holds
the
claim (because a finalizer runs backward in the middle of the sum) proceeds without claiming again.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from numpy cimport (
    NPY_ARRAY_OWNDATA, NPY_ARRAY_WRITEABLE, PyArray_BASE, PyArray_CHKFLAGS, PyArray_NBYTES,
    PyArray_SAMESHAPE, PyArray_TYPE, ndarray)

import time

import numpy as np

from cygrad._core.graph.inplace cimport check_memory, set_grad
from cygrad._core.graph.node cimport begin_node, forbid_making
from cygrad._core.graph.opdef cimport OpDef, lookup
from cygrad._core.runtime.thread_state cimport INFERENCE, NO_GRAD, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_BACKWARD, IS_INFERENCE, REQUIRES_GRAD, Tensor, bump, cut, held_array, requires_grad, wrap, wrap_in_mode)
from cygrad._core.errors import messages
from cygrad._core.types.hook_handles import check_post_accumulate_result
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.array_ops cimport is_contiguous, typenum_of
from cygrad._kernels.cpu.base.arrays cimport is_on_cpu

cnp.import_array()

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*) noexcept

cdef extern from "atomic_owner.h":
    bint cygrad_claim(unsigned long long* owner, unsigned long long claimant) noexcept
    void cygrad_release(unsigned long long* owner) noexcept
    unsigned long long cygrad_owner(unsigned long long* owner) noexcept

cdef OpDef _add = None


@cython.final
@cython.trashcan(True)
cdef class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds incoming gradients to `variable.grad`."""

    cpdef str name(self):
        """Return PyTorch's name for this kind of node."""
        return "torch::autograd::AccumulateGrad"

    @property
    def variable(self):
        """The leaf tensor."""
        return <Tensor>self.leaf

    @property
    def _metas(self):
        leaf = <Tensor>self.leaf
        return ((leaf.array.shape, leaf.array.dtype.num),)

    cdef bint takes_undefined(self) noexcept:
        return True

    cdef object call(self, object grad):
        cdef Tensor leaf = <Tensor>self.leaf
        cdef unsigned long long thread = <unsigned long long><size_t>thread_state()
        cdef bint claimed
        if not leaf.flags & REQUIRES_GRAD:
            return None
        if grad is not None:
            claimed = claim(self, thread)
            try:
                accumulate(leaf, <Tensor>grad)
            finally:
                if claimed:
                    cygrad_release(&self.busy)
        if self.hooks is not None and self.hooks.post_accumulate:
            for hook in tuple(self.hooks.post_accumulate.values()):
                result = hook(leaf)
                if result is not None:
                    check_post_accumulate_result(hook, result, leaf)
        return None

forbid_making(AccumulateGrad)


cdef bint claim(AccumulateGrad node, unsigned long long thread) except -1:
    """Wait until no other thread adds to this leaf's gradient. Return False if this thread already holds the claim."""
    while not cygrad_claim(&node.busy, thread):
        if cygrad_owner(&node.busy) == thread:
            return False
        time.sleep(2e-5)
    return True


cdef AccumulateGrad new_accumulator(Tensor leaf):
    cdef AccumulateGrad node = AccumulateGrad.__new__(AccumulateGrad)
    begin_node(node, thread_state())
    node.sequence_nr = <unsigned long long>-1       # runs as soon as its gradient is complete
    node.leaf = <void*>leaf
    return node


cdef int keep_leaf(AccumulateGrad node) except -1:
    """Make a node that Python holds keep its leaf alive. This creates a cycle, which the garbage collector frees."""
    node.kept = <Tensor>node.leaf
    return 0


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


cdef enum:
    HELD_BY_RUN = 3             # references to a rule's result: among its gradients, as one of them, and as the fitted one


cdef Tensor add_gradients(Tensor a, Tensor b):
    cdef ndarray xa, xb
    cdef Tensor spare = None
    if thread_state().modes & NO_GRAD and type(a.array) is ndarray and type(b.array) is ndarray:
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
    return lookup("add").entry(a, b)


cdef ndarray add_arrays(ndarray a, ndarray b, ndarray out):
    global _add
    if _add is None:
        _add = lookup("add")
    return _add.ufunc.call2(a, b, out)


cdef inline bint same_layout(Tensor leaf, object array) except -1:
    """Whether a C-contiguous gradient has the memory layout of its leaf."""
    return is_contiguous(leaf.array) or leaf.array.strides == array.strides


cdef Tensor copied_like(Tensor leaf, object array):
    """Copy a gradient into new memory laid out like its leaf."""
    new = np.empty_like(leaf.array, array.dtype)
    new[...] = array
    return wrap(new)


cdef int accumulate(Tensor leaf, Tensor grad) except -1:
    """leaf.grad += grad, as in PyTorch: the first gradient is taken over if nobody else holds it; later ones are added
    in place, or out of place while the backward pass itself is recorded."""
    cdef Tensor present = leaf.grad_, first
    cdef unsigned int modes = thread_state().modes
    cdef bint unshared
    if present is not None and present.flags & IS_INFERENCE and not modes & INFERENCE:
        raise RuntimeError(messages.INFERENCE_INPLACE)
    if not modes & NO_GRAD:
        return set_grad(leaf, lookup("add").entry(present, grad) if present is not None else (
            lookup("copy").entry(wrap(np.empty_like(leaf.array)), grad)))
    if present is None:
        unshared = is_unshared(grad, 1)
        first = grad if unshared and same_layout(leaf, grad.array) else copied_like(leaf, grad.array)
        if modes & INFERENCE:
            first.flags |= IS_INFERENCE
        cut(first, leaf, CUT_BACKWARD, "backward")
        return set_grad(leaf, first)        # only now may others see it
    check_memory(present)
    if typenum_of(present.array) != typenum_of(grad.array):
        return set_grad(leaf, lookup("add").entry(present, grad))
    if is_on_cpu(present.array) and is_on_cpu(grad.array):
        add_arrays(<ndarray>present.array, <ndarray>grad.array, <ndarray>present.array)
    else:
        gpu_forms.run(np.add, (held_array(present), held_array(grad), held_array(present)), ())
    bump(present, "backward")
    return 0
