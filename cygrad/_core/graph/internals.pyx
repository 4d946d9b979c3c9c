"""What Python code of the package may do to the inside of a tensor."""

cimport cython

import gc

import numpy as np

from cygrad._core.graph.dual cimport is_forward, note_read
from cygrad._core.graph.profiler_events cimport mark_start
from cygrad._core.graph.inplace cimport set_array, set_tangents as give_tangents
from cygrad._core.graph.opdef cimport OpDef, OpNode, is_op_node
from cygrad._core.runtime.thread_state cimport ThreadState, thread_state
from cygrad._core.graph.tensor cimport (
    IS_INFERENCE, IS_VOLATILE, WAS_WRAPPED, Tensor, alias, become, bind_methods, bump, held_array, own_attributes,
    set_leaf_requires_grad, version_of, wrap)
from cygrad._core.diagnostics import graph_errors
from cygrad._kernels.cpu.base.arrays cimport is_read_only


def live_tensors():
    """Number of tensors alive in this process (walks all objects of the collector: for tests)."""
    return sum([1 for value in gc.get_objects() if isinstance(value, Tensor)])


def arrays_for_update(list tensors):
    """The arrays of `tensors`, whose values the caller will change: checks that they are writable, and counts."""
    cdef Tensor t
    cdef list arrays = []
    for t in tensors:
        if is_read_only(t.array):
            raise graph_errors.read_only_error(t)
        arrays.append(t.array)
    for t in tensors:
        if thread_state().on_write != NULL:
            (<object>thread_state().on_write)(t)
        bump(t, "step")
    return arrays


def array_of(Tensor t not None):
    """The array of a tensor, whatever its grad mode: for the layers that compute on arrays."""
    mark_start()
    if is_forward():
        note_read(t)
    return held_array(t)


def with_gradients(list tensors):
    """Those of these tensors that have a gradient, and the arrays of the gradients."""
    cdef Tensor t
    cdef list having = [], grads = []
    for t in tensors:
        grad = t.grad_          # once: another thread may take it away
        if grad is not None:
            having.append(t)
            grads.append(array_of(<Tensor>grad))
    return having, grads


def versions_of(tensors):
    """How often each tensor has changed; None for no tensor, and for those of inference mode, which do not count."""
    return [None if t is None or (<Tensor?>t).flags & IS_INFERENCE else version_of(<Tensor>t) for t in tensors]


def memory_of(Tensor t not None):
    """The array of a tensor, for what asks for no values."""
    return held_array(t)


def is_spare(Tensor g not None):
    """May a rule overwrite the gradient it got, as nobody else has it?"""
    return thread_state().spare == <void*>g


def same_array(Tensor t not None):
    """The same array, and so the same samples in a batch, without history."""
    return alias(t, True)


def identity_of(Tensor t not None):
    """A number that tensors have in common which show the same array."""
    return <size_t><void*>t.array


def tensor_of(array, bint requires_grad=False):
    """A tensor around `array`, not copied, or around the number that NumPy gives in place of a 0-dim array."""
    cdef Tensor t = wrap(np.asarray(array) if isinstance(array, np.generic) else array)
    if requires_grad:
        set_leaf_requires_grad(t, True)
    return t


def of_class(cls, Tensor t not None, bint with_history):
    """A tensor of the Python class `cls` on the memory of `t`; with_history: that of the view `t`."""
    cdef Tensor new = Tensor.__new__(cls)
    if with_history:
        become(new, t)
    else:
        new.array = t.array
        new.flags |= t.flags & (IS_INFERENCE | WAS_WRAPPED)
    return new


def get_tangents(Tensor t not None):
    """{dual level: tangent} of a tensor that is no view, or None."""
    tangents = t.tangents       # read once
    return tangents


def set_tangents(Tensor t not None, dict tangents):
    """Give a tensor its tangents."""
    give_tangents(t, tangents)


def bind(dict methods):
    """Make Python functions and properties attributes of Tensor."""
    bind_methods(methods)


def attributes_of(Tensor t not None):
    """What the user hung onto a tensor, by name."""
    own = dict(getattr(t, "__dict__", ()))
    own.update(t.attributes or {})
    return own


def dictionary_of(Tensor t not None):
    """The dictionary of what the user hung onto a tensor."""
    return own_attributes(t)


def origin_of(Tensor t not None):
    """(kind, op name, code, offset): where the gradient of this tensor was cut."""
    with cython.critical_section(t):
        return t.origin_kind, t.origin_name, t.origin_code, t.origin_lasti


def last_change(Tensor t not None):
    """(op name, code, offset) of the last in-place change of this tensor's memory, or None."""
    if t.counter is None or t.counter.version == 0:
        return None
    with cython.critical_section(t.counter):
        return t.counter.op_name, t.counter.code, t.counter.lasti


def was_made_in_inference_mode(Tensor t not None):
    """Whether this is an inference tensor."""
    return bool(t.flags & IS_INFERENCE)


def make_volatile(Tensor t not None):
    """What is computed from this tensor is not recorded; behind `Variable(volatile=True)`."""
    t.flags |= IS_VOLATILE


def replace_array(Tensor t not None, array, str op_name):
    """Give a tensor other memory, of the same type, and count that as a change."""
    set_array(t, array)
    bump(t, op_name)


def keep_apart(tuple views, tuple arrays, OpDef row):
    """Let views that were just made be the copies `arrays` of what they show, recorded under `row`.

    False, and nothing is changed, if more than their node knows of them.
    """
    cdef ThreadState* state = thread_state()
    cdef Tensor t = views[0]
    cdef Py_ssize_t i
    if not is_op_node(t.grad_fn_) or t.view is None or state.modes or state.events != NULL:
        return False
    (<OpNode>t.grad_fn_).op = row
    for i in range(len(views)):
        t = views[i]
        t.array, t.view, t.counter = arrays[i], None, None
        t.flags &= ~WAS_WRAPPED
    return True


def count_change(Tensor t not None, str op_name):
    """Count a change of a tensor's memory that no op has made."""
    bump(t, op_name)
