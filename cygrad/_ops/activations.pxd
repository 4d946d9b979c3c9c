"""Nonlinearities of neural networks."""

from cygrad._core.tensor cimport Tensor

cpdef Tensor logsigmoid(object input)
cpdef Tensor dropped(Tensor t, object p, bint training, bint inplace)
