"""Running backward."""

cdef object run_backward(tuple tensors, tuple gradients, object retain_graph, object create_graph, object inputs,
                         str caller)
