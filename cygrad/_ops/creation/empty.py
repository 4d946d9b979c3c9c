"""New uninitialized tensors with given strides or dimension order.

These are not recorded. The keyword arguments are described in creation.pyx.
"""

import numpy as np

from cygrad._core.graph.opdef import publish
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.device.cupy_library import made
from cygrad._ops.base.arguments import integers
from cygrad._ops.base.creation import (
    check_place,
    check_size,
    filled,
    fresh,
    only_strided,
    place_beside,
    type_of_new,
    uninitialized,
)


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Return an uninitialized tensor of shape `size` with the given strides, in elements.

    Elements may share memory, if the strides imply it. Raises RuntimeError for negative strides and lengths.

    >>> import cygrad
    >>> cygrad.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    only_strided(layout, "empty_strided")
    place = check_place(device, pin_memory)
    return _strided(size, stride, dtype, get_default_dtype(), place, requires_grad, "empty_strided")


def new_empty_strided(
    self, size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Like `empty_strided`, with this tensor's dtype by default.

    >>> import cygrad
    >>> cygrad.zeros(2).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    only_strided(layout, "new_empty_strided")
    place = place_beside(self, device, pin_memory)
    return _strided(size, stride, dtype, self.dtype, place, requires_grad, "new_empty_strided")


def _strided(size, stride, dtype, default, place, requires_grad, function):
    wanted = type_of_new(dtype, None, default, function)
    lengths, steps = integers(size, function, "size", 1), integers(stride, function, "stride", 2)
    if len(lengths) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(lengths)}) must match dimensionality of strides ({len(steps)})"
        )
    shape = check_size(lengths)
    last = 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, steps))
    if any(step < 0 for step in steps) or last * wanted.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}")
    array = made(place, _with_strides, shape, wanted.numpy, last, [n * wanted.itemsize for n in steps])
    return fresh(uninitialized(array), requires_grad, function)


def _with_strides(library, shape, dtype, size, strides):
    memory = library.empty(size, dtype)
    if library is np:
        return np.ndarray(shape, dtype, memory, 0, strides)
    return library.ndarray(shape, dtype, memory.data, strides)


def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Return an uninitialized tensor of shape `size` without gaps, with dimensions in memory order `physical_layout`.

    The outermost dimension comes first. Raises RuntimeError unless it names each dimension once.

    >>> import cygrad
    >>> cygrad.empty_permuted((2, 3, 4), (1, 0, 2)).stride()
    (4, 8, 1)
    """
    only_strided(layout, "empty_permuted")
    place = check_place(device, pin_memory)
    wanted = type_of_new(dtype, None, get_default_dtype(), "empty_permuted")
    lengths = integers(size, "empty_permuted", "size", 1)
    order = integers(physical_layout, "empty_permuted", "physical_layout", 2)
    if len(lengths) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(lengths)} is not equal to len(physical_layout) = {len(order)}"
        )
    for i, dim in enumerate(order):
        if not 0 <= dim < len(order):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(order) - 1}, but got {dim} at index {i}).  "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
        if dim in order[:i]:
            raise RuntimeError("Duplicate dim not allowed")
    array = filled(check_size(tuple(lengths[dim] for dim in order)), None, wanted, place)
    return fresh(
        uninitialized(array).transpose([order.index(dim) for dim in range(len(order))]), requires_grad, "empty_permuted"
    )


methods = {"new_empty_strided": new_empty_strided}
functions = publish(globals(), {"empty_strided": empty_strided, "empty_permuted": empty_permuted})
