"""The arrays of sparse tensors.

Note [Sparse arrays]
--------------------
A sparse tensor stores the elements that may differ from zero, and where they are. Its array is a `Coordinates` or a
`Compressed`, which holds two or three ordinary arrays, in main memory or on a GPU. It is neither NumPy's nor CuPy's, so
compiled loops, which take exactly these, cannot read it by mistake; and it counts among the arrays that are elsewhere
than in main memory (`cupy_library.is_array`), so code that looks for a GPU finds it, and raises PyTorch's error for an
operation that does not exist for sparse tensors. Shape and dtype can be read as those of any array.

These objects are never changed: an in-place operation gives its tensor a new one. Their parts may be changed, as views
that the user gets from `_values()`.
"""

import math

from cygrad._kernels.device import cupy_library
from cygrad._kernels.sparse.errors import backend, not_for


class _Flags:
    """What code for ordinary arrays asks about memory: it can neither be reused nor taken for contiguous."""

    c_contiguous = f_contiguous = fnc = owndata = False
    writeable = True


class SparseArray:
    """What both kinds of arrays have in common."""

    __slots__ = ("shape", "values")
    __hash__ = None  # type: ignore[assignment]
    flags = _Flags
    strides = ()  # so that no dimension counts as expanded
    base = None
    layout: str

    def __new__(cls, *parts):
        cupy_library.admit_sparse(SparseArray)  # the first one makes programs look out for them
        return super().__new__(cls)

    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    itemsize = property(lambda self: self.values.dtype.itemsize)
    nbytes = property(lambda self: self.refuse("nbytes"))

    def refused(self, function):
        """Return the error for a function that does not take sparse tensors."""
        name = function if isinstance(function, str) else getattr(function, "__name__", "op")
        return not_for(name, backend(self.layout, cupy_library.is_array(self.values)))

    def refuse(self, name, *args, **kwargs):
        """Raise the error for the function of this name."""
        raise self.refused(name)

    def __getattr__(self, name):
        if name.startswith("__"):  # protocols by which libraries find out what an object can do
            raise AttributeError(name)
        raise self.refused("as_strided")  # which needs memory in one piece, as whoever asks for this does

    def __array__(self, dtype=None, copy=None):
        raise self.refused("numpy")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        raise self.refused(ufunc)

    def __array_function__(self, function, types, args, kwargs):
        raise self.refused(function)

    def __len__(self):
        raise self.refused("len")

    def __getitem__(self, index):
        raise self.refused("index")

    def __setitem__(self, index, value):
        raise self.refused("index_put_")

    def __bool__(self):
        raise self.refused("is_nonzero")

    __iter__ = __int__ = __float__ = __complex__ = __index__ = __bool__

    def _operator(self, *others):
        raise self.refused("operator")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _operator
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rmatmul__ = _operator


class Coordinates(SparseArray):
    """Elements by their coordinates: `indices` (sparse dimensions, n) and `values` (n, dense dimensions).

    An element at coordinates that occur several times is the sum of the values there, unless the array `is_coalesced`:
    then coordinates are in order, and occur once. Fewer than two count as such unless `_coalesced_` has denied it.
    """

    __slots__ = ("indices", "is_coalesced")
    layout = "sparse_coo"

    def __init__(self, indices, values, shape, is_coalesced=False):
        self.indices, self.values, self.shape = indices, values, tuple(shape)
        self.is_coalesced = is_coalesced or indices.shape[1] < 2

    parts = property(lambda self: (self.indices, self.values))

    def __reduce__(self):
        return rebuilt, (Coordinates, (self.indices, self.values, self.shape, self.is_coalesced))


class Compressed(SparseArray):
    """Elements by rows (or columns): `plain` holds the columns (rows) of all values, row by row (column by column).

    `bounds` tells where each row begins and ends in `plain` and `values`. In the layouts "sparse_bsr" and "sparse_bsc"
    each value is a block, a matrix. All parts may begin with the same batch dimensions.
    """

    __slots__ = ("bounds", "layout", "plain")

    def __init__(self, bounds, plain, values, shape, layout):
        self.bounds, self.plain, self.values, self.shape, self.layout = bounds, plain, values, tuple(shape), layout

    parts = property(lambda self: (self.bounds, self.plain, self.values))
    is_by_row = property(lambda self: self.layout in ("sparse_csr", "sparse_bsr"))
    n_batch = property(lambda self: self.bounds.ndim - 1)
    n_block = property(lambda self: 2 if self.layout in ("sparse_bsr", "sparse_bsc") else 0)

    def __reduce__(self):
        return rebuilt, (Compressed, (self.bounds, self.plain, self.values, self.shape, self.layout))


def rebuilt(kind, parts):
    """Return the array that was pickled."""
    return kind(*parts)
