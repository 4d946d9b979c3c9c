"""Matrix products."""

cimport numpy as cnp

cpdef cnp.ndarray matmul(cnp.ndarray a, cnp.ndarray b)
cpdef cnp.ndarray dot(cnp.ndarray a, cnp.ndarray b)
cpdef cnp.ndarray outer(cnp.ndarray a, cnp.ndarray b)
cpdef cnp.ndarray addmm(cnp.ndarray bias, cnp.ndarray a, cnp.ndarray b)     # bias + a @ b
