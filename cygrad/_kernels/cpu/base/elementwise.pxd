"""Elementwise functions for which NumPy has no ufunc, one that differs from PyTorch's, or a slow one."""

from numpy cimport ndarray

cpdef ndarray relu(ndarray a)
cpdef ndarray rsqrt(ndarray a)
cpdef ndarray power(ndarray a, double exponent)
cpdef ndarray clamp(ndarray a, object low, object high, ndarray out=*)
