"""Low-level access to tensors for the package's Python code."""

cimport cython

import gc
import itertools

import numpy as np

from cygrad._core.graph.dual cimport is_forward, note_read
from cygrad._core.graph.observers cimport mark_start
from cygrad._core.graph.inplace cimport set_array, set_grad, set_history, set_tangents as give_tangents
from cygrad._core.graph.opdef cimport OpDef, OpNode, is_op_node
from cygrad._core.runtime.thread_state cimport ThreadState, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_BACKWARD, CUT_DATA, CUT_DETACH, CUT_INFERENCE, CUT_NO_GRAD, CUT_NON_DIFFERENTIABLE, CUT_NONE, IS_INFERENCE,
    IS_VOLATILE, REQUIRES_GRAD, WAS_WRAPPED, Tensor, alias, become, bind_methods, bump, counter_of, held_array,
    own_attributes, set_leaf_requires_grad, version_of, wrap)
from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._kernels.cpu.base.arrays cimport is_read_only
from cygrad._kernels.device.unresolved cimport behind, is_unresolved
from cygrad._kernels.device.waiting cimport settle
from cygrad._kernels.device.unresolved import read_only
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._kernels.tape.tape import look_at_caller


# The kinds of cuts that tensor.pxd defines and `origin_of` returns, for Python modules.
globals().update(
    CUT_NONE=CUT_NONE, CUT_NO_GRAD=CUT_NO_GRAD, CUT_DETACH=CUT_DETACH, CUT_DATA=CUT_DATA, CUT_INFERENCE=CUT_INFERENCE,
    CUT_NON_DIFFERENTIABLE=CUT_NON_DIFFERENTIABLE, CUT_BACKWARD=CUT_BACKWARD)


def live_tensors():
    """Return the number of live tensors in this process. For tests: walks all objects the collector tracks."""
    return sum([1 for value in gc.get_objects() if isinstance(value, Tensor)])


def arrays_for_update(list tensors):
    """Return the arrays of `tensors` for in-place updates: check that all are writable and count the changes."""
    cdef Tensor t
    cdef list arrays = []
    cdef ThreadState* state = thread_state()
    if tape_open:
        look_at_caller()
    for t in tensors:
        array = held_array(t)
        if is_unresolved(array):
            raise messages.no_parts_of_conjugate()
        if is_read_only(array):
            raise graph_errors.read_only_error(t)
        arrays.append(array)
    for t in tensors:
        if state.on_write != NULL:
            (<object>state.on_write)(t)
        bump(t, "step")
    return arrays


def array_of(Tensor t not None):
    """Return the array of a tensor, regardless of its grad mode, for layers that compute on arrays."""
    if tape_open:
        look_at_caller()
    return _array_of(t)


cdef object _array_of(Tensor t):
    settle()
    return _operand_of(t)


def operand_of(Tensor t not None):
    """Return the array of a tensor for callers that only look at its shape and pass it on to kernels.

    On a GPU, what computes it may still wait (Note [Groups] in `_kernels/gpu/launch/groups.py`).
    """
    if tape_open:
        look_at_caller()
    return _operand_of(t)


cdef object _operand_of(Tensor t):
    mark_start()
    if is_forward():
        note_read(t)
    array = held_array(t)
    return read_only(array) if is_unresolved(array) else array


def with_gradients(list tensors):
    """Return the tensors that have a gradient, and the arrays of those gradients."""
    cdef Tensor t
    cdef list having = [], grads = []
    cdef bint notes_reads = is_forward()
    mark_start()
    for t in tensors:
        grad = t.grad_          # read once: another thread may clear it
        if grad is not None:
            having.append(t)
            if notes_reads:
                note_read(<Tensor>grad)
            array = held_array(<Tensor>grad)
            grads.append(read_only(array) if is_unresolved(array) else array)
    return having, grads


def versions_of(tensors):
    """Return each tensor's version; None for None and for inference tensors, which have no counter."""
    return [None if t is None or (<Tensor?>t).flags & IS_INFERENCE else version_of(<Tensor>t) for t in tensors]


def memory_of(Tensor t not None):
    """Return the array of a tensor for callers that do not read its values."""
    settle()
    array = held_array(t)
    return read_only(array) if is_unresolved(array) else array


def own_array(Tensor t not None, bint reads=False):
    """Return the very array object of a tensor, which may be unresolved (Note [Unresolved arrays] in unresolved.pyx).

    `reads`: the caller reads its values, as callers of `array_of` do.
    """
    if tape_open and reads:
        look_at_caller()
    settle()
    if reads and is_forward():
        note_read(t)
    return held_array(t)


def holding_memory(Tensor t not None):
    """Return the array in whose memory the elements are, conjugated or negated if `shows_opposite(t)`."""
    if tape_open:
        look_at_caller()
    settle()
    return behind(held_array(t))


def shows_opposite(Tensor t not None):
    """Whether the elements are the conjugates (of a real tensor: the negatives) of those in memory."""
    return is_unresolved(t.array)


def same_array(Tensor t not None):
    """Return a tensor without history on the same array, and so with the same samples in a batch."""
    return alias(t, True)


def identity_of(Tensor t not None):
    """Return an integer that is equal for tensors that share the same array object."""
    return <size_t><void*>t.array


def tensor_of(array, bint requires_grad=False):
    """Wrap `array` in a tensor without copying; also accepts the scalar that NumPy returns for a 0-dim array."""
    cdef Tensor t = wrap(np.asarray(array) if isinstance(array, np.generic) else array)
    if requires_grad:
        set_leaf_requires_grad(t, True)
    return t


def of_class(cls, Tensor t not None, bint with_history):
    """Return a tensor of class `cls` on the memory of `t`; with_history: take over the history of the view `t`."""
    cdef Tensor new = Tensor.__new__(cls)
    if with_history:
        become(new, t)
    else:
        new.array = t.array
        new.flags |= t.flags & (IS_INFERENCE | WAS_WRAPPED)
    return new


def get_tangents(Tensor t not None):
    """Return {dual level: tangent} of a tensor that is not a view, or None."""
    tangents = t.tangents       # read once
    return tangents


def set_tangents(Tensor t not None, dict tangents):
    """Set the tangents of a tensor."""
    give_tangents(t, tangents)


def bind(dict methods):
    """Add Python functions and properties to Tensor as attributes."""
    bind_methods(methods)


def attributes_of(Tensor t not None):
    """Return a new dictionary of the attributes that users set on a tensor."""
    own = dict(getattr(t, "__dict__", ()))
    own.update(t.attributes or {})
    own.pop("_cdata", None)             # of this tensor alone: see `number_of`
    return own


cdef object _numbers = itertools.count(1)


def number_of(Tensor t not None):
    """Return a number that no other tensor has. `swap` exchanges it with the rest, as PyTorch's address of a tensor."""
    return own_attributes(t).setdefault("_cdata", next(_numbers))


def dictionary_of(Tensor t not None):
    """Return the dictionary that stores the attributes that users set on a tensor."""
    return own_attributes(t)


def swap(Tensor a not None, Tensor b not None):
    """Exchange what two tensors of one class hold: elements, gradient, history and attributes."""
    cdef object array = held_array(a)
    cdef Tensor grad = a.grad_
    with cython.critical_section(a, b):
        set_array(a, held_array(b))
        set_array(b, array)
        set_grad(a, b.grad_)
        set_grad(b, grad)
        a.grad_fn_, b.grad_fn_ = b.grad_fn_, a.grad_fn_
        a.output_nr_, b.output_nr_ = b.output_nr_, a.output_nr_
        a.flags, b.flags = b.flags, a.flags
        a.counter, b.counter = b.counter, a.counter
        a.view, b.view = b.view, a.view
        a.accumulator = b.accumulator = None
        a.tangents, b.tangents = b.tangents, a.tangents
        a.origin_code, b.origin_code = b.origin_code, a.origin_code
        a.origin_name, b.origin_name = b.origin_name, a.origin_name
        a.origin_lasti, b.origin_lasti = b.origin_lasti, a.origin_lasti
        a.origin_kind, b.origin_kind = b.origin_kind, a.origin_kind
    _swap_items(own_attributes(a), own_attributes(b))
    own, other = a.__dict__, b.__dict__
    if own is not own_attributes(a):        # a subclass, whose instances have a dictionary besides
        _swap_items(own, other)


cdef _swap_items(dict a, dict b):
    cdef dict kept = dict(a)
    a.clear()
    a.update(b)
    b.clear()
    b.update(kept)


def origin_of(Tensor t not None):
    """Return (kind, op name, code, offset) of the place where the gradient of this tensor was cut."""
    with cython.critical_section(t):
        return t.origin_kind, t.origin_name, t.origin_code, t.origin_lasti


def last_change(Tensor t not None):
    """Return (op name, code, offset) of the latest in-place change of this tensor's memory, or None."""
    if t.counter is None or t.counter.version == 0:
        return None
    with cython.critical_section(t.counter):
        return t.counter.op_name, t.counter.code, t.counter.lasti


def was_made_in_inference_mode(Tensor t not None):
    """Whether this is an inference tensor."""
    return bool(t.flags & IS_INFERENCE)


def was_wrapped(Tensor t not None):
    """Whether the memory belongs to somebody else, as that of a NumPy array given to `from_numpy` does."""
    return bool(t.flags & WAS_WRAPPED)


def make_volatile(Tensor t not None):
    """Stop recording of anything computed from this tensor; implements `Variable(volatile=True)`."""
    t.flags |= IS_VOLATILE


def replace_array(Tensor t not None, array, str op_name):
    """Replace a tensor's memory by an array of the same dtype, and count that as a change."""
    set_array(t, array)
    bump(t, op_name)


def become_result(Tensor t not None, Tensor result not None, str op_name):
    """Give a tensor the array and the history of a new tensor, which nobody else holds, and count that as a change."""
    set_array(t, result.array)
    set_history(t, result.grad_fn_, result.output_nr_)
    t.flags |= result.flags & REQUIRES_GRAD
    bump(t, op_name)


def keep_apart(tuple views, tuple arrays, OpDef row):
    """Turn views that were just made into the copies `arrays` of their elements, recorded under `row`.

    Return False, without changing anything, if the views may already be referred to from outside their node.
    """
    cdef ThreadState* state = thread_state()
    cdef Tensor t = views[0]
    cdef Py_ssize_t i
    if not is_op_node(t.grad_fn_) or t.view is None or state.modes or state.observers != NULL:
        return False
    (<OpNode>t.grad_fn_).op = row
    for i in range(len(views)):
        t = views[i]
        t.array, t.view, t.counter = arrays[i], None, None
        t.flags &= ~WAS_WRAPPED
    return True


def count_change(Tensor t not None, str op_name):
    """Count a change of a tensor's memory that was not made by an op."""
    bump(t, op_name)


def set_version(Tensor t not None, long long version):
    """Set the count of changes of a tensor's memory. Raises RuntimeError for a negative one."""
    if version < 0:
        raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
    counter_of(t).version = version
