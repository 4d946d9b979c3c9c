"""Declares Tensor, VersionCounter and ViewMeta, their flags, and the accessors the core uses."""

cimport numpy as cnp
from cpython.object cimport PyObject

from cygrad._core.types.dtypes cimport dtype
from cygrad._core.graph.node cimport Node

cdef enum:                      # Tensor.flags
    REQUIRES_GRAD = 1           # a leaf that collects a gradient, or the result of a recorded op
    RETAINS_GRAD = 2            # retain_grad() was called on a non-leaf
    IS_INFERENCE = 4            # made in inference mode
    IS_VOLATILE = 8             # Variable(volatile=True), or computed from one
    WAS_WRAPPED = 16            # shares memory that somebody else owns (from_numpy)
    KEEPS_CLASS = 32            # instance of a subclass of Tensor; its results keep that class
    DISPATCHES = 64             # instance of a class with `__torch_dispatch__`, which KEEPS_CLASS as well
    # The upper half is `grad_dtype` where that was set: GRAD_DTYPE_ANY for None, or NumPy's type number, plus 1.
    GRAD_DTYPE_SHIFT = 16
    GRAD_DTYPE_ANY = 0xFFFF

cdef enum:                      # ViewMeta.creation_meta: may this view be changed in place?
    VIEW_DEFAULT = 0
    VIEW_NO_GRAD = 1            # made in no_grad mode
    VIEW_MULTI_OUTPUT = 2       # one of several views that one op returned
    VIEW_INFERENCE = 3          # made in inference mode
    VIEW_CUSTOM_FUNCTION = 4    # returned by a custom Function

cdef enum:                      # Tensor.origin_kind: how the gradient was cut
    CUT_NONE = 0
    CUT_NO_GRAD = 1
    CUT_DETACH = 2
    CUT_DATA = 3
    CUT_INFERENCE = 4
    CUT_NON_DIFFERENTIABLE = 5  # an integer, boolean or otherwise non-differentiable op
    CUT_BACKWARD = 6            # a gradient computed by a backward pass that was not recorded

cdef class VersionCounter:
    """Counts the in-place changes to one piece of memory and records the latest one."""
    cdef long long version
    cdef object op_name         # of the latest change
    cdef object code            # its site
    cdef int lasti

cdef class ViewMeta:
    cdef Tensor base            # never itself a view
    cdef int creation_meta
    cdef long long attr_version      # version at which `grad_fn` was last up to date
    cdef object code            # site of the op that made the view
    cdef int lasti

cdef class Tensor:
    cdef object array           # numpy.ndarray or cupy.ndarray
    cdef object grad_           # Tensor or None
    cdef Node grad_fn_          # node that computed this, or None
    cdef int output_nr_         # index of this tensor among the outputs of that node
    cdef unsigned int flags
    cdef VersionCounter counter  # None until the memory is shared or changed in place
    cdef ViewMeta view          # None unless a differentiable view
    cdef Node accumulator       # AccumulateGrad of a leaf; None until first requested
    cdef dict tangents          # {dual level: tangent}; a view's tangents are parts of its base's
    cdef object origin_code     # site where the gradient was cut
    cdef object origin_name     # and the op that cut it
    cdef int origin_lasti
    cdef int origin_kind
    cdef object __weakref__
    cdef dict attributes        # attributes set by users; see __setattr__

cdef inline bint is_tensor(object value) noexcept:
    """isinstance(value, Tensor), with a fast path that avoids the base-class walk for common numbers."""
    return type(value) is Tensor or (
        type(value) is not float and type(value) is not int and isinstance(value, Tensor))

cdef inline bint requires_grad(Tensor t) noexcept:
    return t.flags & REQUIRES_GRAD or (t.view is not None and t.view.base.flags & REQUIRES_GRAD)

cdef inline int num_of_grad(Tensor t) except -2:
    """The type number that the gradients of a leaf must have, or -1 for any: its own, unless `grad_dtype` was set."""
    cdef unsigned int chosen = t.flags >> GRAD_DTYPE_SHIFT
    if not chosen:
        return t.array.dtype.num
    return -1 if chosen == GRAD_DTYPE_ANY else <int>chosen - 1

cdef inline bint is_dual(Tensor t) noexcept:
    """Whether the tensor or its base has, or once had, a tangent."""
    return t.tangents is not None or (t.view is not None and t.view.base.tangents is not None)

cdef inline object held_array(Tensor t):
    """Return the array, reading the field exactly once. In some contexts (after `return`, in a tuple, before `if`) Cython
    reads a field twice, once to count the reference and once to use it, and another thread could replace it in between."""
    cdef PyObject* array = <PyObject*>t.array
    return <object>array

cdef inline long long version_of(Tensor t) noexcept:
    return 0 if t.counter is None else t.counter.version

cdef Tensor wrap(object array)                          # a fresh tensor around an array
cdef Tensor wrap_as(Tensor like, object array)          # the same, in the class of `like`; plain inside a backward pass
cdef Tensor wrap_in_mode(object array)                  # the same; an inference tensor in inference mode
cdef dict own_attributes(Tensor t)                      # made if missing
cdef VersionCounter counter_of(Tensor t)                # made if missing
cdef int bump(Tensor t, object op_name) except -1       # count an in-place change and record its site
cdef Node grad_fn_of(Tensor t)                          # up to date for views; None for leaves
cdef Node accumulator_of(Tensor t)                      # the AccumulateGrad of a leaf, made if missing
cdef dtype dtype_of(Tensor t)
cdef Tensor alias(Tensor t, bint keep_class=*)          # same memory and counter, no history
cdef object dispatched_call(str name, Tensor t, object out)      # what modes and classes make of `detach`, `item`, ...
cdef int cut(Tensor out, Tensor source, int kind, object name) except -1
cdef int bind_methods(dict methods) except -1
cdef int become(Tensor new, Tensor view) except -1
cdef int set_leaf_requires_grad(Tensor t, bint value) except -1
cdef int become_volatile(Tensor out) except -1

cdef inline Tensor wrap_like(Tensor like, object array):
    """Wrap an array in a fresh tensor of the class that results computed from `like` have."""
    return wrap(array) if not like.flags & KEEPS_CLASS else wrap_as(like, array)
