"""Declares the entry point of backward passes."""

cdef object run_backward(tuple tensors, tuple gradients, object retain_graph, object create_graph, object inputs,
                         str caller)
cpdef tuple run_grad(tuple outputs, tuple gradients, tuple inputs, bint retain_graph, bint create_graph,
                     bint allow_unused)
