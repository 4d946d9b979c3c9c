"""Saved values: what nodes keep for their gradients, from saving to release.

Note [Saved slots]
------------------
A node saves values in numbered slots. Those of a built-in op (OpNode) are inputs 0 to 2 and the result, those of a custom
function (PyNode) the arguments of `save_for_backward`. Everything that happens to these values happens here:

    saving      `save_value` stores a tensor with the version of its memory, `save_output` a result of the node itself. A
                result is stored as an alias, because its `grad_fn` is the node and the cycle would keep memory alive until
                the collector runs. Afterwards the recording function calls `ThreadState.on_save`, which may replace
                tensors by the results of a pack hook (`pack_saved`, Packed).
    unpacking   `unpacked` undoes the pack hook, or compares the version; `as_output` makes a saved result an output
                of the node again.
    releasing   `forget` clears the slots once the node has run; `freed_by` is the site of the backward call, for the error
                on a second use.
    traversing  `value_in`, with `n_places` and `output_in` of the node, lists the slots for hooks, the profiler and the
                `_saved_...` attributes (`_core/saved/`). The garbage collector visits them as fields.

The slots are fields of Node. As an object they would be one more allocation that the collector tracks, and these dominate
the time of a recorded op. A class between Node and OpNode that held them has been tried: one more constructor and one more
destructor took 100 instructions of the 3,030 of a recorded product or sum (3%).
"""

cimport cython

from cygrad._core.graph.accumulate_grad cimport AccumulateGrad, keep_leaf
from cygrad._core.graph.node cimport Node, forbid_making
from cygrad._core.graph.tensor cimport (
    REQUIRES_GRAD, Tensor, accumulator_of, alias, grad_fn_of, is_dual, requires_grad, version_of)
from cygrad._core.runtime.thread_state cimport NO_GRAD, ThreadState, thread_state
from cygrad._core import graph_errors
from cygrad._core.errors import messages


cdef int save_output(Node node, Py_ssize_t i, Tensor out) except -1:
    return put(node, i, alias(out), version_of(out))


cdef Tensor as_output(Node node, Tensor kept, int output_nr):
    cdef Tensor t = alias(kept)
    t.tangents = kept.tangents
    t.grad_fn_ = node
    t.output_nr_ = output_nr
    t.flags |= REQUIRES_GRAD
    return t


cdef tuple place_in(Node node, Py_ssize_t i):
    """Return (the value in slot `i` as stored, which output it is or -1, whether the saved values were freed)."""
    if node.freed_by is not None:
        return None, -1, True
    with cython.critical_section(node.lock()):
        if not 0 <= i < node.n_places():
            raise IndexError(f"{node.name()} saves nothing in slot {i}")
        return value_in(node, i), node.output_in(i), False


cdef object read_further(Node node, Py_ssize_t i, long long* version):
    version[0] = 0
    if node.further is None:
        return None
    value, version[0] = node.further[i - N_FIELDS]
    return value


cdef int put_further(Node node, Py_ssize_t i, object value, long long version) except -1:
    if node.further is None:
        node.further = []
    if i - N_FIELDS == len(node.further):
        node.further.append((value, version))
    else:
        node.further[i - N_FIELDS] = value, version
    return 0


cdef int refuse_modified(Node node, Tensor changed, long long version, bint is_result) except -1:
    raise graph_errors.modified_error(changed, node, version, version_of(changed), is_result)


cdef int refuse_inference(Tensor saved) except -1:
    raise graph_errors.inference_saved(saved)


cdef int refuse_freed(Node node) except -1:
    raise graph_errors.freed_error(node, node.freed_by)


# -- values packed by hooks --------------------------------------------------------------------------------

@cython.final
cdef class Packed:
    """Takes the place of a saved tensor in a node: holds the pack hook's result until the unpack hook restores it."""

    cdef Tensor unpacked(self, Node node):
        cdef object value = self.unpack_hook(self.packed)
        if not isinstance(value, Tensor) or (<Tensor>value).array.shape != self.shape or (
                (<Tensor>value).array.dtype != self.dtype):     # kernels trust the shape and dtype of saved tensors
            from cygrad._core.saved.saved_tensor_hooks import unlike  # needed only for errors
            raise unlike(value, self.shape, self.dtype)
        if self.history is None and self.output_nr < 0:
            if requires_grad(<Tensor>value) or is_dual(<Tensor>value):      # else programs may look for the object itself
                value = value.detach()
        else:
            value = joined(<Tensor>value, node if self.history is None else self.history, self.output_nr)
        if self.tangents:
            from cygrad._core.transforms.forward_mode import join_tangents  # needed only for forward mode or vmap
            join_tangents(value, self.tangents)
        return <Tensor>value

forbid_making(Packed)


cdef object any_level = None        # the function of dual.pyx, which imports this module


cdef Packed pack(Node node, Tensor t, int output_nr, object pack_hook, object unpack_hook):
    """Pack `t` for `node`; `output_nr` is which of the node's results it is, or -1 for an input."""
    cdef Packed new = Packed.__new__(Packed)
    cdef long long version = version_of(t)
    global any_level
    if any_level is None:
        from cygrad._core.graph.dual import any_level as found  # which imports this module
        any_level = found
    if any_level():
        from cygrad._core.transforms import forward_mode  # needed only for forward mode or vmap
        new.tangents = forward_mode.of_packed(t) if output_nr < 0 else forward_mode.of_packed_result(node, output_nr)
    if output_nr >= 0:
        t = joined(t, node, output_nr)          # store no history: `node` would own itself
    elif requires_grad(t):
        new.history = grad_fn_of(t)
        output_nr = t.output_nr_
        if new.history is None:
            new.history = t                     # a leaf
    new.output_nr = output_nr
    new.unpack_hook = unpack_hook
    new.shape, new.dtype = t.array.shape, t.array.dtype
    new.packed = pack_hook(t)
    if version_of(t) != version:
        raise RuntimeError(messages.PACK_CHANGED)
    return new


def pack_saved(object pack_hook, object unpack_hook, Node node not None, int place=-1):
    """Pack all tensors that `node` has saved, or only the one in slot `place`, without recording."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes
    cdef Py_ssize_t i
    state.modes |= NO_GRAD
    try:
        for i in range(node.n_places()):
            with cython.critical_section(node.lock()):
                value = value_in(node, i)
            if isinstance(value, Tensor) and (place < 0 or place == i):
                packed = pack(node, <Tensor>value, node.output_in(i), pack_hook, unpack_hook)
                with cython.critical_section(node.lock()):
                    if i < node.n_places():         # the hook may have freed them
                        put(node, i, packed, 0)
    finally:
        state.modes = modes


def replace_saved(Node node not None, int place, tuple indices):
    """Put other indices in the place of those that `node` has saved."""
    with cython.critical_section(node.lock()):
        if node.freed_by is None:
            put(node, place, indices, 0)


cdef Tensor joined(Tensor t, object history, int output_nr):
    """Return a tensor with the memory of `t` and the history of a leaf, or of output `output_nr` of a node."""
    cdef Tensor new = alias(t)
    new.flags |= REQUIRES_GRAD
    if isinstance(history, Tensor):         # accumulating into the new tensor accumulates into the leaf
        new.accumulator = accumulator_of(<Tensor>history)
        keep_leaf(<AccumulateGrad>new.accumulator)
    else:
        new.grad_fn_ = <Node?>history
        new.output_nr_ = output_nr
    return new
