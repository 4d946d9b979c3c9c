"""What a backward pass depends on. See schemes.pyx."""

from cygrad._core.engine.run cimport Run
from cygrad._core.graph.node cimport Meta, Node
from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.replay.parts cimport Argument

cdef class Kept:                # a tensor that a node keeps
    cdef Argument argument
    cdef Py_ssize_t piece       # of memory in which it lies; -1: it has no elements
    cdef Py_ssize_t offset      # of its first element

cdef class Spot:                # a node of the graph
    cdef Argument leaf          # of an AccumulateGrad: its tensor; None: a built-in op
    cdef OpDef op
    cdef object arguments       # with a Kept in the place of each tensor
    cdef bint has_tensors       # among them
    cdef int n_edges
    cdef int n_outputs
    cdef Py_ssize_t* ends       # of each edge: the spot (-1: none), and which of its outputs
    cdef Meta meta
    cdef tuple metas
    cdef object saved0, saved1, saved2, saved3      # Kept, numbers or None
    cdef bint needed
    cdef bint captured
    cdef object given           # the Argument of the gradient with which the pass begins here, a list of them, or None
    cdef int free_ends(self) except -1

cdef class Scheme:
    cdef list spots             # in the order in which the engine finds them
    cdef bint selective
    cdef dict captures          # what is asked for, as the run has it
    cdef list made              # spots of ops, the latest first
    cdef list done              # the same in the order in which the engine runs them
    cdef list leaves            # spots that accumulate, in the order in which they do
    cdef readonly list ends     # (spot, output) at which gradients leave the pass
    cdef list sizes             # of the pieces of memory
    cdef list lows              # while it is made: the addresses of the pieces
    cdef char** bases           # of the pieces, in the pass that was compared last
    cdef list owners            # the first array in each piece, and all others
    cdef str misfit(self, Run run)
    cdef str misfit_at(self, Run run, Py_ssize_t i)
    cdef str misfit_of_leaves(self, Run run, list given)
    cdef str misfit_of_values(self, Spot spot, Node node)
    cdef str misfit_of_slot(self, object mine, object value, long long saved_at)
    cdef str misfit_of_memory(self, Kept kept, object value)
    cdef bint is_like(self, object mine, object its) except -1
    cdef list given(self, Run run)
    cdef list memory(self)
    cdef int simulate(self, Run run) except -1

cdef Scheme scheme_of(Run run)          # raises Unfit
cdef Run twin_of(Run run)               # another run over the same graph, which has not begun
