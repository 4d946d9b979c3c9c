"""AccumulateGrad: the node at which gradients end.

Note [One thread at a leaf]
---------------------------
Adding to `leaf.grad` is a read, a sum and a write, and NumPy's loops release the GIL meanwhile. A thread therefore
claims the node before it adds (`atomic_owner.h`); other threads sleep until the node is free. A thread that already holds
the claim (because a finalizer runs backward in the middle of the sum) proceeds without claiming again.
"""

cimport cython
cimport numpy as cnp
from numpy cimport ndarray

import time

import numpy as np

from cygrad._core.graph.inplace cimport check_memory, set_grad
from cygrad._core.graph.node cimport begin_node, forbid_making
from cygrad._core.graph.opdef cimport lookup
from cygrad._core.graph.spent_gradients cimport add_arrays, is_unshared
from cygrad._core.runtime.thread_state cimport INFERENCE, NO_GRAD, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_BACKWARD, DISPATCHES, IS_INFERENCE, REQUIRES_GRAD, Tensor, bump, cut, held_array, wrap)
from cygrad._core.errors import messages
from cygrad._core.types.hook_handles import check_post_accumulate_result
from cygrad._kernels.device import cupy_library, gpu_forms
from cygrad._kernels.array_ops cimport is_contiguous, typenum_of
from cygrad._kernels.cpu.base.arrays cimport copy_array, is_on_cpu
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._kernels.device.unresolved cimport behind, is_unresolved, resolved
from cygrad._kernels.device.waiting cimport any_waits, settle
from cygrad._library import later

gpu_arrays = later("cygrad._kernels.gpu.base.arrays")      # needed only for GPU arrays

cnp.import_array()

cdef extern from "atomic_owner.h":
    bint cygrad_claim(unsigned long long* owner, unsigned long long claimant) noexcept
    void cygrad_release(unsigned long long* owner) noexcept
    unsigned long long cygrad_owner(unsigned long long* owner) noexcept


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


cdef inline bint same_layout(Tensor leaf, object array) except -1:
    """Whether a C-contiguous gradient has the memory layout of its leaf."""
    return is_contiguous(leaf.array) or leaf.array.strides == array.strides


cdef Tensor copied_like(Tensor leaf, object array):
    """Copy a gradient into new memory laid out like its leaf."""
    if any_waits and type(array) is cupy_library.gpu_class() and is_contiguous(array) and is_contiguous(leaf.array):
        return wrap(gpu_arrays.copied(array, "C"))      # with what waits
    settle()
    new = np.empty_like(behind(leaf.array), array.dtype)
    if tape_open and is_on_cpu(new) and is_on_cpu(array):
        copy_array(<ndarray>new, <ndarray>array)        # which the tape knows
    else:
        new[...] = array
    return wrap(new)


cdef bint is_sparse(Tensor t) except -1:
    return not is_on_cpu(t.array) and gpu_forms.is_sparse(t.array)


cdef int accumulate_sparse(Tensor leaf, Tensor present, Tensor grad, unsigned int modes) except -1:
    """The same where the leaf, its gradient so far or the one to add is sparse: sparse gradients stay sparse until a dense
    one is added."""
    cdef Tensor total
    if present is None:
        total = grad._as_gradient() if is_sparse(grad) else grad.clone()
        cut(total, leaf, CUT_BACKWARD, "backward")
        return set_grad(leaf, total)
    if not modes & NO_GRAD or is_sparse(present) and not is_sparse(grad):
        return set_grad(leaf, grad + present if is_sparse(present) else present + grad)
    present.add_(grad)
    return 0


cdef int accumulate_dispatched(Tensor leaf, Tensor present, Tensor grad, unsigned int modes) except -1:
    """The same by ops, as modes and classes of `__torch_dispatch__` see it."""
    if present is not None:
        if modes & NO_GRAD:
            present.add_(grad)
            return 0
        return set_grad(leaf, present + grad)
    cdef Tensor first = grad.detach() if modes & NO_GRAD else grad.clone()
    cut(first, leaf, CUT_BACKWARD, "backward")
    return set_grad(leaf, first)


cdef int accumulate(Tensor leaf, Tensor grad) except -1:
    """leaf.grad += grad, as in PyTorch: the first gradient is taken over if nobody else holds it (Note [Spent gradients] in
    spent_gradients.pyx); later ones are added in place, or out of place while the backward pass itself is recorded."""
    cdef Tensor present = leaf.grad_, first
    cdef unsigned int modes = thread_state().modes
    cdef bint unshared
    if present is not None and present.flags & IS_INFERENCE and not modes & INFERENCE:
        raise RuntimeError(messages.INFERENCE_INPLACE)
    if not (is_on_cpu(grad.array) and is_on_cpu(leaf.array)) and (
            is_sparse(grad) or is_sparse(leaf)) or present is not None and is_sparse(present):
        return accumulate_sparse(leaf, present, grad, modes)
    if (leaf.flags | grad.flags) & DISPATCHES or thread_state().dispatching:
        return accumulate_dispatched(leaf, present, grad, modes)
    if not modes & NO_GRAD:
        return set_grad(leaf, lookup("add").entry(present, grad) if present is not None else (
            lookup("copy").entry(wrap(np.empty_like(behind(leaf.array), grad.array.dtype)), grad)))
    if is_unresolved(grad.array):
        return accumulate(leaf, wrap(resolved(grad.array)))     # assigning to `grad` would take a reference
    if present is None:
        unshared = is_unshared(grad, 1)
        first = grad if unshared and same_layout(leaf, grad.array) else copied_like(leaf, grad.array)
        if modes & INFERENCE:
            first.flags |= IS_INFERENCE
        cut(first, leaf, CUT_BACKWARD, "backward")
        return set_grad(leaf, first)        # only now may others see it
    check_memory(present)
    if typenum_of(present.array) != typenum_of(grad.array) or is_unresolved(present.array):
        return set_grad(leaf, lookup("add").entry(present, grad))
    if is_on_cpu(present.array) and is_on_cpu(grad.array):
        add_arrays(<ndarray>present.array, <ndarray>grad.array, <ndarray>present.array)
    else:
        gpu_forms.run(np.add, (held_array(present), held_array(grad), held_array(present)), ())
    bump(present, "backward")
    return 0
