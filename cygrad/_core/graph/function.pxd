"""Declares PyNode, the node of a custom function, which is also its context `ctx`."""

from cygrad._core.graph.node cimport Node

cdef class PyNode(Node):
    cdef tuple needs                        # for each argument of forward, whether it needs a gradient
    cdef public tuple to_save
    "The arguments of `save_for_backward`, until forward has returned."
    cdef public tuple non_differentiable
    "The outputs passed to `mark_non_differentiable`."
    cdef public tuple dirty_tensors
    "The inputs passed to `mark_dirty`."
    cdef public bint materialize_grads
    "Whether backward receives zeros in place of missing gradients; see `set_materialize_grads`."
    cdef Py_ssize_t n_saved                 # the number of saved values; 0 before forward and once they are freed
    cdef tuple saved_outputs                # for each saved value: which output it is, or -1
    cdef tuple is_tensor_input              # for each argument of forward
    cdef bint recorded
    cdef bint in_jvp                        # `saved_tensors` returns the arguments of `save_for_forward`
    cdef dict __dict__

    cdef int drop_saved(self) except -1
    cdef tuple materialized(self, tuple grads)
    cdef tuple checked(self, object results)
