"""as_strided, and the ops that gradients of modified views consist of.

See Note [Strided gradients] in cygrad/_kernels/cpu/shape/strided_gradients.py and Note [Views and in-place] in
inplace.pyx.
The geometry of a view is (shape, strides, offset), that of a base (shape, strides), in bytes.
"""

from typing import Any

from cygrad._core.graph.internals import array_of, holding_memory, own_array
from cygrad._core.graph.kernel_call import as_float32
from cygrad._core.graph.opdef import LINEAR, PRIVATE, VIEW, declare, publish, variant
from cygrad._core.graph.record import apply_n, record_n, record_view
from cygrad._core.tensor.predicates import address, memory_of
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.base.view_geometry import restride
from cygrad._kernels.cpu.shape import strided_gradients as kernels
from cygrad._kernels.tape.calls import called
from cygrad._ops.base.arguments import integer, integers, require
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.views import look_otherwise, may_look_otherwise

# -- as_strided --


def as_strided_rule(n, g):
    return strided_sum(g, *n.args)


def _strides_in_elements(n):
    size = n._input_metadata[0].dtype.itemsize
    return tuple(length // size for length in n.args[0][1])


AS_STRIDED = declare(
    "as_strided",
    as_strided_rule,
    flags=VIEW | LINEAR,
    derived={"size": (0, 0), "stride": _strides_in_elements},
)
_LARGEST = 2**63 - 1  # number of bytes

AS_STRIDED_INPLACE = variant(AS_STRIDED, "AsStridedBackward1")


def as_strided(input, size, stride, storage_offset=None):
    """Return a view of the memory that `input` shares with its base, of shape `size` with `stride`, in elements.

    `storage_offset` counts from the base's first element; it defaults to that of `input`. Saves nothing. Gradient: g at
    its position in zeros, summed where elements share memory; memory outside of `input` gets none.

    Raises RuntimeError for negative strides and for a view that exceeds the base's memory.

    >>> import cygrad
    >>> cygrad.as_strided(cygrad.arange(4), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    array = own_array(require(input, "as_strided"))
    view = geometry_wanted(input, size, stride, storage_offset)
    return record_view(AS_STRIDED, restride(array, *view), input, (view, (array.shape, array.strides)))


@rule("as_strided")
def _as_strided(call):
    t, (view, base) = call.inputs[0], call.args
    (shape, strides, offset), _ = _stacked(view, base, call)
    x, size = call.full(t), t.dtype.itemsize
    if x.stride()[1:] != t.stride():
        raise NoBatchingRule("as_strided")
    steps = [step // size for step in strides[1:]]
    return as_strided(x, shape, (x.stride(0), *steps), x.storage_offset() + offset // size)


def _stacked(view, base, call):
    """Return the geometries of a view and its base for all samples, which are consecutive in memory."""
    (shape, strides, offset), (lengths, steps) = view, base
    last, end = _extent(lengths, steps), offset + _extent(shape, strides)
    if min(offset, *strides, *steps, 0) < 0 or end > last and 0 not in shape:
        raise NoBatchingRule(call.key)  # the view shows memory outside the sample
    whole = call.out.dtype.itemsize + max(last, 0)
    return ((call.size, *shape), (whole, *strides), offset), ((call.size, *lengths), (whole, *steps))


def _extent(shape, strides):
    """Return the number of bytes from the first element to the last."""
    return sum((length - 1) * step for length, step in zip(shape, strides, strict=True))


def as_strided_(self, size, stride, storage_offset=None):
    """In-place form of `as_strided`: changes this tensor's shape, strides and offset.

    >>> import cygrad
    >>> cygrad.as_strided_(cygrad.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    may_look_otherwise(require(self, "as_strided_"), "as_strided_")
    array = own_array(self)
    view = geometry_wanted(self, size, stride, storage_offset)
    return look_otherwise(AS_STRIDED_INPLACE, self, restride(array, *view), (view, (array.shape, array.strides)))


def geometry_wanted(t, size, stride, storage_offset):
    """Check the arguments and return shape, strides and offset from the first element of `t`, in bytes."""
    array, base = holding_memory(t), memory_of(t)
    shape = integers(size, "as_strided", "size", 1)
    steps = integers(stride, "as_strided", "stride", 2)
    if storage_offset is None:
        offset = t.storage_offset()
    else:
        offset = integer(storage_offset, "as_strided", "storage_offset", 3)
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(steps, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    if min(shape, default=0) < 0:
        raise _overflow(shape, steps)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    check_memory(base, shape, steps, offset, array.itemsize)
    itemsize = array.itemsize
    if 0 in shape:  # no element is anywhere, so that only NumPy's integers limit the strides
        return shape, tuple([min(step * itemsize, _LARGEST // itemsize * itemsize) for step in steps]), 0
    distance = 0 if base is array else address(array) - address(base)
    return shape, tuple([step * itemsize for step in steps]), offset * itemsize - distance


def _overflow(shape, steps):
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}")


def check_memory(base, shape, steps, offset, itemsize):
    """Raise unless all elements are within the memory of the base. Python's ints do not overflow."""
    _low, high = kernels.extent(base.shape, base.strides, base.itemsize)
    needed = (offset + sum((length - 1) * step for length, step in zip(shape, steps)) + 1) * itemsize
    if 0 in shape:
        return
    if needed > _LARGEST:
        raise _overflow(shape, steps)
    if needed > high:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of size {high}"
        )


# -- gradients --


def _computed(kernel, view, base, *tensors):
    """Run a kernel; half precision is computed in single precision, for which strides and offsets are scaled."""
    wide: list[Any] = [None if t is None else as_float32(array_of(t)) for t in tensors]
    narrow = array_of(tensors[0])
    factor = wide[0].itemsize // narrow.itemsize
    if factor != 1:
        shape, strides, offset = view
        view = shape, tuple(step * factor for step in strides), offset * factor
        base = base[0], tuple(step * factor for step in base[1])
    return in_dtype(called(kernel, *wide, view, base), narrow.dtype)


def strided_sum_rule(n, g):
    return strided_gather(g, *n.args)


STRIDED_SUM = declare(
    "strided_sum",
    strided_sum_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.strided_sum,
    node="AsStridedBackwardBackward0",
    vmap_name="as_strided",
)


def strided_sum(input, view, base):
    """Return the gradient of a tensor in geometry `base`, given that of a view of it in geometry `view`."""
    return record_n(STRIDED_SUM, _computed(kernels.strided_sum, view, base, input), (input,), (view, base))


def strided_gather_rule(n, g):
    return strided_sum(g, *n.args)


STRIDED_GATHER = declare(
    "strided_gather", strided_gather_rule, flags=LINEAR | PRIVATE, kernel=kernels.strided_gather, vmap_name="as_strided"
)


def strided_gather(input, view, base):
    """Gather the elements of `input`, in geometry `base`, for a view in geometry `view`; zeros for missing ones."""
    return record_n(STRIDED_GATHER, _computed(kernels.strided_gather, view, base, input), (input,), (view, base))


def strided_scatter_rule(n, g):
    return (
        strided_scatter(g, None, *n.args) if n.needs(0) else None,
        strided_gather(g, *n.args) if n.needs(1) else None,
    )


STRIDED_SCATTER = declare(
    "strided_scatter",
    strided_scatter_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.strided_scatter,
    inputs="self part",
    vmap_name="as_strided",
)


def strided_scatter(input, part, view, base):
    """Copy `input`, in geometry `base`, and write `part`, or zeros for None, to a view of it in geometry `view`."""
    array = _computed(kernels.strided_scatter, view, base, input, part)
    return record_n(STRIDED_SCATTER, array, (input, part), (view, base))


@rule("strided_sum strided_gather strided_scatter")
def strided(call):
    inputs = tuple(t if t is None else call.full(t) for t in call.inputs)
    view, base = call.args
    return apply_n(call.op, inputs, _stacked(view, base, call))


methods = {"as_strided_": as_strided_}
functions = publish(globals(), methods)
