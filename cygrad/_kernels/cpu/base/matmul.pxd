"""Matrix products."""

cimport numpy as cnp

from cygrad._kernels.cpu.base.nditer cimport Loop

cdef Loop* matmul_loop(int t) noexcept      # the matmul loop for a type; its function is NULL with CYGRAD_PURE

cpdef cnp.ndarray matmul(cnp.ndarray a, cnp.ndarray b)
cpdef cnp.ndarray dot(cnp.ndarray a, cnp.ndarray b)
cpdef cnp.ndarray outer(cnp.ndarray a, cnp.ndarray b)
cpdef cnp.ndarray addmm(cnp.ndarray bias, cnp.ndarray a, cnp.ndarray b)     # bias + a @ b
