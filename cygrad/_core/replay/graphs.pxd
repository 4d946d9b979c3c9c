"""The graph of what a captured step returns. See graphs.pyx."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor

cdef class Witness(Node):           # stands for a node in errors
    cdef str named

cdef class Graph:                   # down to what existed before the step
    cdef list nodes                 # from the last one on
    cdef list edges                 # (True, number of an argument), (False, leaf)
    cdef list kept(self)

cdef Witness witness_of(Node node)
cdef list tensors_in(object value)
cdef object layout_of(object grad)
cdef Tensor placeholder(Tensor output, object strides, double first)
cdef object edge_of(bint is_argument, object which, list arguments)
cdef tuple inner_gradients(list outputs, tuple grads, list edges, list arguments, unsigned long long unwanted,
                           bint retain, bint create)
