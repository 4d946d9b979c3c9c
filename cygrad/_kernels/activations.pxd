"""Elementwise functions of neural networks, and gradients from their results."""

cimport numpy as cnp

cpdef cnp.ndarray sigmoid(cnp.ndarray a)
cpdef cnp.ndarray threshold_backward(cnp.ndarray grad, cnp.ndarray out)
cpdef cnp.ndarray tanh_backward(cnp.ndarray grad, cnp.ndarray out)
cpdef cnp.ndarray sigmoid_backward(cnp.ndarray grad, cnp.ndarray out)
