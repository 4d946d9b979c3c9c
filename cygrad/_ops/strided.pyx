"""Views by strides, and what gradients of changed views are made of.

See Note [Strided gradients] in cygrad/_kernels/strided_gradients.py and Note [Views and in-place] in inplace.pyx.
"""

from cygrad._core.opdef cimport LINEAR, PRIVATE, VIEW, OpDef, OpNode, op, variant
from cygrad._core.opdef import publish
from cygrad._core.record cimport record1, record_n, record_view
from cygrad._core.tensor cimport Tensor
from cygrad._kernels import strided_gradients as kernels
from cygrad._kernels.strided cimport Geometry, distance, geometry_of, restride
from cygrad._ops.arguments cimport integer, integers, require
from cygrad._ops.views cimport look_otherwise, may_look_otherwise


# -- as_strided --------------------------------------------------------------------------------------------

cdef object as_strided_rule(OpNode n, object g):
    return strided_sum(g, n.args[0], n.args[1])

cdef OpDef AS_STRIDED = op("as_strided", as_strided_rule).row(flags=VIEW | LINEAR)
cdef OpDef AS_STRIDED_INPLACE = variant(AS_STRIDED, "AsStridedBackward1")


def as_strided(input, size, stride, storage_offset=None):
    """A view of the memory that `input` shares with its base, of shape `size` with steps `stride`, in elements.

    `storage_offset` counts from the base's first element; left out it is that of `input`. Gradient: g, summed where
    several elements are the same memory, at its place in zeros; what `input` does not show gets none.

    Raises RuntimeError for negative steps and for a view that would leave the base's memory.

    >>> import cygrad
    >>> cygrad.as_strided(cygrad.arange(4), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    cdef Tensor t = require(input, "as_strided")
    view = geometry_wanted(t, size, stride, storage_offset)
    return record_view(AS_STRIDED, view_at(t, view), t, (view, (t.array.shape, t.array.strides)))


def as_strided_(self, size, stride, storage_offset=None):
    """In-place form of `as_strided`: this tensor shows that part of its memory from now on."""
    cdef Tensor t = require(self, "as_strided_")
    may_look_otherwise(t, "as_strided_")
    cdef Geometry g
    view = geometry_wanted(t, size, stride, storage_offset)
    base = (t.array.shape, t.array.strides)
    geometry_of(view_at(t, view), &g)
    g.offset = view[2]
    return look_otherwise(AS_STRIDED_INPLACE, t, &g, (view, base))


cdef object view_at(Tensor t, tuple geometry):
    shape, strides, offset = geometry
    return restride(t.array, shape, strides, offset)


cdef tuple geometry_wanted(Tensor t, object size, object stride, object storage_offset):
    """Shape, strides and offset from the first element of `t`, in bytes, after all checks."""
    cdef Py_ssize_t itemsize = t.array.itemsize
    cdef Tensor base = t if t.view is None else t.view.base
    shape = integers(size, "as_strided", "size", 1)
    steps = integers(stride, "as_strided", "stride", 2)
    offset = t.storage_offset() if storage_offset is None else integer(
        storage_offset, "as_strided", "storage_offset", 3)
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any([step < 0 for step in steps]):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    if any([length < 0 for length in shape]):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    check_memory(base, shape, steps, offset, itemsize)
    if 0 in shape:
        return shape, (itemsize,) * len(shape), 0
    return (shape, tuple([step * itemsize for step in steps]),
            offset * itemsize - distance(t.array, base.array))


cdef int check_memory(Tensor base, tuple shape, tuple steps, object offset, Py_ssize_t itemsize) except -1:
    """Raise unless all elements lie between the first and the last byte of the base. Python's ints do not overflow."""
    array = base.array
    _low, high = kernels.extent(array.shape, array.strides, array.itemsize)
    needed = (offset + sum([(length - 1) * step for length, step in zip(shape, steps)]) + 1) * itemsize
    if needed > high and 0 not in shape:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of size {high}")
    return 0


# -- its gradients -----------------------------------------------------------------------------------------

cdef object strided_sum_rule(OpNode n, object g):
    return strided_gather(g, n.args[0], n.args[1])

cdef OpDef STRIDED_SUM = op("strided_sum", strided_sum_rule).row(
    flags=LINEAR | PRIVATE, kernel=kernels.strided_sum, node="AsStridedBackwardBackward0")

cpdef Tensor strided_sum(object input, tuple view, tuple base):
    """The gradient of a tensor in geometry `base`, of which `g` is the gradient of a view in geometry `view`."""
    cdef Tensor g = require(input, "strided_sum")
    return record1(STRIDED_SUM, STRIDED_SUM.kernel(g.array, view, base), g, (view, base))


cdef object strided_gather_rule(OpNode n, object g):
    return strided_sum(g, n.args[0], n.args[1])

cdef OpDef STRIDED_GATHER = op("strided_gather", strided_gather_rule).row(
    flags=LINEAR | PRIVATE, kernel=kernels.strided_gather)

cpdef Tensor strided_gather(object input, tuple view, tuple base):
    """What a view in geometry `view` shows of `t`, laid out in geometry `base`; zeros where it shows none of it."""
    cdef Tensor t = require(input, "strided_gather")
    return record1(STRIDED_GATHER, STRIDED_GATHER.kernel(t.array, view, base), t, (view, base))


cdef object strided_scatter_rule(OpNode n, object g):
    view, base = n.args
    return (strided_scatter(g, None, view, base) if n.needs(0) else None,
            strided_gather(g, view, base) if n.needs(1) else None)

cdef OpDef STRIDED_SCATTER = op("strided_scatter", strided_scatter_rule).row(
    flags=LINEAR | PRIVATE, kernel=kernels.strided_scatter, inputs="self part")

cpdef Tensor strided_scatter(object input, object part, tuple view, tuple base):
    """A copy of `t`, laid out in geometry `base`, in which a view in geometry `view` shows `part`; None: zeros."""
    cdef Tensor t = require(input, "strided_scatter")
    array = STRIDED_SCATTER.kernel(t.array, None if part is None else (<Tensor>part).array, view, base)
    return record_n(STRIDED_SCATTER, array, (t, part), (view, base))


methods = {"as_strided_": as_strided_}
functions = publish(globals())
