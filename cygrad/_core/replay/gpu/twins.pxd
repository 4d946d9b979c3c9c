"""The parts of a captured step on a GPU. See twins.pyx."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.parts cimport Given

cdef bint is_here(object array, int device) except -1       # whether an array is in the memory of a GPU

cdef class GpuArgument(Given):      # what an argument on a GPU must be like
    cdef object dtype, shape, strides
    cdef str misfit(self, object value, int device)

cdef class Twin:                    # a new tensor of the step, of which each call gets a fresh one
    cdef readonly object array      # the graph's
    cdef readonly object room       # the stretch of the graph's memory that it lies in; None if it has no elements
    cdef Node grad_fn
    cdef int output_nr
    cdef unsigned int flags
    cdef long long version
    cdef tuple origin
    cdef Twin base                  # of a view that may not be changed in place as others may: what it lies in, or None
    cdef tuple made                 # of such a view: creation_meta, code, instruction offset
    cdef Tensor fresh(self, dict memories)
    cdef bint fits(self, Tensor t) except -1

cdef class Rooms:                   # where new tensors lie
    cdef object work
    cdef int device
    cdef dict rooms                 # {address of a block: Room}
    cdef dict bases                 # {id of a tensor that results are views of: its Twin}
    cdef set alone, viewed          # addresses of blocks of which others must not, or views may not, be on
    cdef Twin twin(self, Tensor t)
    cdef Twin alone_twin(self, Tensor t)
    cdef Twin placed(self, Tensor t)
    cdef int enter_base(self, Twin twin, Tensor t) except -1
