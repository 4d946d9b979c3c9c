"""Declares the entry point of backward passes."""

from cygrad._core.engine.run cimport Run

ctypedef bint (*follower_t)(Run) except -1

cdef int carry_out(Run run, bint create_graph) except -1
cdef void follow_passes(follower_t by) noexcept     # `by` is asked before each pass, and returns whether it did it
cdef object run_backward(tuple tensors, tuple gradients, object retain_graph, object create_graph, object inputs,
                         str caller)
cdef tuple gradients_up_to(set ends, tuple outputs, tuple gradients, tuple inputs, bint retain_graph, bint create_graph)
cpdef tuple run_grad(tuple outputs, tuple gradients, tuple inputs, bint retain_graph, bint create_graph,
                     bint allow_unused)
