"""Errors for views with an invalid shape or dtype, as PyTorch words them."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of


def no_view(t, shape):
    """Return the error for a shape that strides cannot express."""
    return RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.\n"
        f"  shape {list(t.shape)} with strides {list(t.stride())} to {list(shape)}"
    )


def wrong_length(shape, i):
    """Return the error for a second -1, or another negative length."""
    if shape[i] == -1:
        return RuntimeError("only one dimension can be inferred")
    return RuntimeError(f"invalid shape dimension {shape[i]} at index {i} of shape {list(shape)}")


def wrong_size(shape, numel, infers):
    """Return the error for a shape with a different number of elements."""
    if infers and numel == 0:
        return RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    return RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def check_other_itemsize(t, own, wanted):
    """Check that the bytes of `t` can be viewed as a dtype with another item size."""
    ratio = max(wanted.itemsize // own.itemsize, 1)
    sizes = f"to view {own.type_name} as {wanted.type_name} (different element sizes)"
    if t.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 {sizes}")
    *steps, step = t.stride()
    if step != 1 and t.shape[-1] > 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {sizes}, but got {step}")
    if t.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {sizes}, but got {t.shape[-1]}")
    if t.storage_offset() % ratio:
        raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {sizes}, but got {t.storage_offset()}")
    for dim, step in enumerate(steps):
        if step * own.itemsize % wanted.itemsize:
            raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} {sizes}, but got {step}")


def view_of_unresolved(t):
    """Return the error for viewing the bytes of a tensor whose conjugation or negation is deferred."""
    kind = "conjugate view tensors" if t.is_complex() else "tensors with negative bit set"
    resolve = "resolve_conj" if t.is_complex() else "resolve_neg"
    return RuntimeError(
        f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.\n"
        f"  the memory holds other values than the tensor shows: convert a copy, `x.{resolve}().view(...)`"
    )


def wrong_order(ndim, dims):
    """Return the error for `permute` with the wrong number of dimensions."""
    return RuntimeError(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
    )


def no_expansion(t, wanted):
    """Return the error for a tensor that does not expand to the shape `wanted`."""
    shape = tuple(t.shape)
    added = len(wanted) - len(shape)
    if added < 0:
        return RuntimeError(
            f"expand({messages.type_word(array_of(t))}{{{list(shape)}}}, size={list(wanted)}): the number of sizes "
            f"provided ({len(wanted)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape)})"
        )
    for i in reversed(range(len(wanted))):
        if i < added and wanted[i] < 0:
            return RuntimeError(
                f"The expanded size of the tensor ({wanted[i]}) isn't allowed in a leading, non-existing dimension {i}"
            )
        if i >= added and wanted[i] not in (-1, shape[i - added]) and (shape[i - added] != 1 or wanted[i] < 0):
            break
    return RuntimeError(
        f"The expanded size of the tensor ({wanted[i]}) must match the existing size ({shape[i - added]}) at "
        f"non-singleton dimension {i}.  Target sizes: {list(wanted)}.  Tensor sizes: {list(shape)}"
    )


def with_strides(t):
    """Return the array of an empty tensor with the tensor's strides, which NumPy leaves at 0."""
    array = array_of(t)
    if not isinstance(array, np.ndarray) or any(array.strides):
        return array
    return np.lib.stride_tricks.as_strided(array, strides=[step * array.itemsize for step in t.stride()])
