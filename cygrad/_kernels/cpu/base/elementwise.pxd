"""Elementwise functions for which NumPy has no ufunc, a slow one, or one that differs from PyTorch's."""

from numpy cimport ndarray

cpdef ndarray relu(ndarray a)
cpdef ndarray rsqrt(ndarray a)
cpdef ndarray power(ndarray a, double exponent)
cpdef ndarray clamp(ndarray a, object low, object high, ndarray out=*)
