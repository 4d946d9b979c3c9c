"""Undoing broadcasting and promotion, in one place for all rules."""

from cygrad._core.node cimport Node
from cygrad._core.tensor cimport Tensor

cdef Tensor fit_gradient(Tensor grad, object target, int nr, Node source, int index)
