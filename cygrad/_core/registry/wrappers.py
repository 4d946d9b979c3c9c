"""Tensors without elements of their own, whose class has `__torch_dispatch__` and holds other tensors."""

from cygrad._core.graph.internals import of_class, own_array, tensor_of
from cygrad._core.types.device import check_device
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.device.cupy_library import is_meta, meta


def make(cls, size, strides, storage_offset, memory_format, dtype, device, requires_grad):
    """Implements `Tensor._make_wrapper_subclass`."""
    if getattr(cls, "_results_keep_class", True) != "dispatches":
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__\n"
            "  the tensor has no elements: a class without it could not answer any op"
        )
    dtype = get_default_dtype() if dtype is None else dtype
    size = tuple(map(int, size))
    meta()  # makes known what its arrays are
    from cygrad._kernels.meta.array import Outline  # needed only for such tensors

    kind = dtype.numpy
    in_bytes = None if strides is None else tuple(int(step) * kind.itemsize for step in strides)
    array = Outline(size, kind, None, in_bytes)
    if memory_format is not None and strides is None:
        ordered = tensor_of(array).contiguous(memory_format=memory_format)
        array = Outline(size, kind, None, tuple(step * kind.itemsize for step in ordered.stride()))
    array.shown_device, array.shown_offset = check_device(device), int(storage_offset or 0)
    new = of_class(cls, tensor_of(array), False)
    if requires_grad:
        new.requires_grad_()
    return new


def is_wrapper(t):
    """Whether a tensor has no elements of its own, as its class answers for them."""
    array = own_array(t)
    if not is_meta(array):
        return False
    from cygrad._kernels.meta.array import Outline  # needed only for such tensors

    return isinstance(array, Outline)


def remade(cls, outline, requires_grad, attributes):
    """Return a tensor that was pickled: `outline` holds what `outline_of` returned."""
    new = make(cls, *(*outline, requires_grad))
    for name, value in attributes.items():
        setattr(new, name, value)
    return new


def outline_of(t):
    """Return the arguments of `make` between the class and `requires_grad`."""
    return tuple(t.shape), t.stride(), t.storage_offset(), None, t.dtype, t.device
