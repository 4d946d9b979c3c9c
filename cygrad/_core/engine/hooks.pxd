"""Calls hooks during a backward pass."""

from cygrad._core.graph.node cimport Node

cdef object run_tensor_pre_hooks(Node node, object grad)
cdef object run_pre_hooks(Node node, object grad)
cdef tuple run_post_hooks(Node node, tuple grads, object grad)
