"""Custom functions: the node that is also the context `ctx`."""

from cygrad._core.graph.node cimport Node

cdef class PyNode(Node):
    cdef tuple needs                        # for each argument of forward, whether it needs a gradient
    cdef public tuple to_save
    "What `save_for_backward` was given, until forward has returned."
    cdef public tuple non_differentiable
    "The outputs that `mark_non_differentiable` was given."
    cdef public tuple dirty_tensors
    "The inputs that `mark_dirty` was given."
    cdef public bint materialize_grads
    "Whether a gradient that did not come is given to backward as zeros; see `set_materialize_grads`."
    cdef list saved                         # tensors or None
    cdef list versions                      # of the saved tensors
    cdef list saved_outputs                 # for each saved tensor: which output it is, or -1
    cdef tuple is_tensor_input              # for each argument of forward
    cdef object freed_by
    cdef bint recorded
    cdef bint in_jvp                        # `saved_tensors` is what `save_for_forward` was given
    cdef dict __dict__

    cdef list kept(self)
    cdef int forget(self) except -1
    cdef tuple materialized(self, tuple grads)
    cdef tuple checked(self, object results)
