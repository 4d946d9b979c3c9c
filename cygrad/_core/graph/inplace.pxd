"""In-place changes and the history of views."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.tensor cimport Tensor

cdef class CopySlices(Node):
    cdef Node fn                    # the node of the op that changed the view
    cdef tuple base_geometry        # (shape, strides in bytes)
    cdef tuple view_geometry        # (shape, strides in bytes, offset in bytes from the base's first element)
    cdef bint splits_base, splits_view      # one is complex, the other real: its geometry is that of `as_parts`
    cdef bint flips                 # the view shows the base's elements conjugated or negated
    cdef object seen(self, object array)
    cdef Tensor seen_recorded(self, Tensor t)
    cdef tuple run_on_arrays(self, Tensor grad)
    cdef tuple run_recorded(self, Tensor grad)
    cdef tuple grads_of_fn(self, Tensor part)

cdef int check_inplace(Tensor t, str op_name, bint recording) except -1
cdef Tensor out_argument(OpDef op, object out)          # returns `out`, None or a tensor; raises TypeError otherwise
cdef int check_out(OpDef op, Tensor out, unsigned int flags) except -1
cdef Tensor old_value(Tensor t)                         # a copy with the same history
cdef int check_memory(Tensor t, bint may_overlap=*) except -1
cpdef int check_apart(Tensor out, object operand) except -1
cpdef int check_operand_memory(Tensor out, object operand) except -1
cdef int check_result(OpDef op, int place, object array, Tensor out, bint keeps) except -1
cdef bint keeps_shape(OpDef op, Tensor out, tuple inputs)
cpdef int check_resizable(Tensor t) except -1
cdef int take_shape(Tensor out, object array, bint warns) except -1
cdef int give_history(Tensor t, Node node) except -1    # of `t` only
cdef int rebase_history(Tensor t, Node node) except -1
cdef int regenerate(Tensor t) except -1
cdef int set_array(Tensor t, object array) except -1    # safe if other threads may read `t`: Note [Former values]
cdef int set_grad(Tensor t, Tensor grad) except -1      # the same (the Note is in deferred_decref.h)
cdef int set_history(Tensor t, Node node, int output_nr) except -1
cdef int set_tangents(Tensor t, dict tangents) except -1
cdef int let_go(object former, size_t bytes) except -1
