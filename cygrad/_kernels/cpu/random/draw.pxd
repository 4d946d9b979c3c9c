"""Declares what fills arrays with random numbers."""

cimport numpy as cnp

cpdef cnp.ndarray draw(object numbers, cnp.ndarray out, int what, object a=*, object b=*)
