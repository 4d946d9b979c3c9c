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
    cdef list saved                         # tensors or None
    cdef list versions                      # of the saved tensors
    cdef list saved_outputs                 # for each saved tensor: which output it is, or -1
    cdef tuple is_tensor_input              # for each argument of forward
    cdef object freed_by
    cdef bint recorded
    cdef bint in_jvp                        # `saved_tensors` returns the arguments of `save_for_forward`
    cdef dict __dict__

    cdef list kept(self)
    cdef int forget(self) except -1
    cdef tuple materialized(self, tuple grads)
    cdef tuple checked(self, object results)
