"""Running backward."""

cdef object run_backward(tuple tensors, tuple gradients, object retain_graph, bint create_graph, object inputs,
                         str caller)
