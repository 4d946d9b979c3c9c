"""Forward-mode hooks of the recording path, used while a dual level is open."""

from cygrad._core.graph.opdef cimport OpDef, OpNode
from cygrad._core.graph.tensor cimport Tensor

cpdef bint is_forward() noexcept                # whether a level is open
cpdef bint any_level() except -1                 # whether a level is open, even if it is suspended just now
cdef int check_read(Tensor t, bint in_condition) except -1      # before a value is read
cdef int note_read(Tensor t) except -1                          # before the array is accessed
cpdef bint is_recorded(Tensor t)                # whether results computed from it get a history or a tangent
cpdef int keep(Tensor result, int slot, object value) except -1     # for the rule of the op that just made `result`
cdef int leave_to_base(Tensor out) except -1    # `out` has become a view
cpdef int spread(Tensor t, Tensor blank) except -1      # give `blank`, which was made like `t`, samples if `t` has them
cpdef Tensor record_same(OpDef op, Tensor a, tuple args)    # the same memory with one more node

# Called by begin_write; `keep_written` comes between it and end_write.
cdef bint concerns_tangents(OpDef op, tuple inputs, Tensor out) except -1
cdef int keep_samples(Tensor t, Tensor copy) except -1  # gives a copy made before `t` is changed its samples
cdef int begin_carrying(OpDef op, Tensor out, Tensor original, tuple inputs, tuple args) except -1
cdef int keep_written(OpNode node, object kept) except -1
