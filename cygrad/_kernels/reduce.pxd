"""Reductions. `axes` is None (all) or a tuple of non-negative ints; a full reduction gives a 0-dim array."""

cimport numpy as cnp

# typenum: the type to add or multiply in; -1 for int64 where `a` is bool or integer, else its own.
cpdef cnp.ndarray sum(cnp.ndarray a, tuple axes=*, bint keepdim=*, int typenum=*)
cpdef cnp.ndarray mean(cnp.ndarray a, tuple axes=*, bint keepdim=*, int typenum=*)
cpdef cnp.ndarray prod(cnp.ndarray a, tuple axes=*, bint keepdim=*, int typenum=*)
cpdef cnp.ndarray amax(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray amin(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray var(cnp.ndarray a, tuple axes=*, double correction=*, bint keepdim=*)
cpdef cnp.ndarray norm(cnp.ndarray a, double p=*, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray logsumexp(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray all_(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray any_(cnp.ndarray a, tuple axes=*, bint keepdim=*)
cpdef cnp.ndarray count_nonzero(cnp.ndarray a, tuple axes=*, bint keepdim=*)

# Positions are int64; axis None looks at the array as if it were flat.
cpdef cnp.ndarray argmax(cnp.ndarray a, object axis=*, bint keepdim=*)
cpdef cnp.ndarray argmin(cnp.ndarray a, object axis=*, bint keepdim=*)
cpdef tuple max_with_indices(cnp.ndarray a, int axis, bint keepdim=*)
cpdef tuple min_with_indices(cnp.ndarray a, int axis, bint keepdim=*)

# Undo broadcasting: the sum of `a` over the dimensions in which an array of that shape was repeated.
cpdef cnp.ndarray sum_to(cnp.ndarray a, tuple shape)
cdef cnp.ndarray sum_to_dims(cnp.ndarray a, int ndim, cnp.npy_intp* dims)

# Of float (or double) x in the shape (outer, n, inner): sums over the middle dimension.
cdef void sum_middle(bint is_double, const void* x, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner,
                     void* out) noexcept nogil
