"""Reductions. `axes` is None (all) or a tuple of non-negative ints; a full reduction returns a 0-dim array."""

cimport numpy as cnp

# typenum: the accumulation type; -1 means int64 for bool and integers, else the type of `a`.
cpdef cnp.ndarray sum(cnp.ndarray a, tuple axes=*, bint keepdim=*, int typenum=*)
cpdef cnp.ndarray mean(cnp.ndarray a, tuple axes=*, bint keepdim=*, int typenum=*)
cpdef cnp.ndarray prod(cnp.ndarray a, tuple axes=*, bint keepdim=*, int typenum=*)
cpdef cnp.ndarray amax(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray amin(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef bint are_in_range(cnp.ndarray sums) except -1
cpdef cnp.ndarray var(cnp.ndarray a, tuple axes=*, double correction=*, bint keepdim=*)
cpdef cnp.ndarray std(cnp.ndarray a, tuple axes=*, double correction=*, bint keepdim=*)
cpdef cnp.ndarray norm(cnp.ndarray a, double p=*, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray logsumexp(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray all_(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray any_(cnp.ndarray a, tuple axes=*, bint keepdim=*)

# Undo broadcasting: sum `a` over the dimensions along which an array of that shape was repeated.
cpdef cnp.ndarray sum_to(cnp.ndarray a, tuple shape)
cdef cnp.ndarray sum_to_dims(cnp.ndarray a, int ndim, cnp.npy_intp* dims)

# Sum x, of shape (outer, n, inner) and type float (or double), over the middle dimension.
cdef void sum_middle(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
                     void* out) noexcept nogil
