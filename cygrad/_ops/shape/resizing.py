"""Resizing of tensors, and the order of their dimensions in memory; none of this has a derivative."""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.inplace import check_resizable
from cygrad._core.graph.internals import array_of, replace_array, tensor_of
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import INFERENCE, get_modes
from cygrad._core.transforms.forward_mode import all_of
from cygrad._core.types.memory_format import memory_format, preserve_format, suggested
from cygrad._kernels.cpu.base.copying import memory_from, on_memory_of
from cygrad._ops.base.arguments import each_integer, require, variadic
from cygrad._ops.base.creation import blank_like, uninitialized
from cygrad._ops.base.views import reshape

# -- size --


def resize_(self, *sizes, memory_format=None, **named):
    """Change the size of this tensor in place and return it; elements beyond its current memory are uninitialized.

    Elements keep their position in memory, not their index. Raises RuntimeError for a tensor that requires grad.

    >>> import cygrad
    >>> cygrad.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    t = require(self, "resize_", "self")
    return _resized(t, variadic(sizes, named, "resize_", "size"), memory_format)


def _resized(t, size, memory_format):
    size = each_integer(tuple(size), "resize_", "size", 1)
    if t.requires_grad and not get_modes() & INFERENCE:
        raise RuntimeError("cannot resize variables that require grad")
    if all_of(t):
        raise RuntimeError("cannot resize variables that has a forward grad")
    if any(n < 0 for n in size):
        raise RuntimeError("numel: integer multiplication overflow")
    array = array_of(t)
    if size == array.shape and memory_format is None:
        return t
    _check_lengths(size, array.itemsize)
    wanted = np.empty(size, array.dtype, like=array)
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    if memory_format is not None:
        wanted = blank_like(tensor_of(wanted), t.dtype, memory_format)
    found = on_memory_of(array, wanted)
    if found is None:
        check_resizable(t)
        memory = memory_from(array) if isinstance(array, np.ndarray) else array.reshape(-1)
        flat = uninitialized(wanted).ravel("K")  # a view, because there are no gaps
        flat[: memory.size] = memory
        found = wanted
    replace_array(t, found, "resize_")
    return t


def _check_lengths(size, itemsize):
    """Raise RuntimeError if the number of elements, a stride or the number of bytes does not fit 64 bits."""
    if math.prod(size) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    if math.prod(max(n, 1) for n in size[1:]) >= 2**63:
        raise RuntimeError("Stride calculation overflowed")
    if math.prod(size) * itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}")


def resize_as_(self, the_template, *, memory_format=None):
    """Change the size of this tensor in place to that of `the_template`; see `resize_`.

    >>> import cygrad
    >>> cygrad.resize_as_(cygrad.arange(4), cygrad.empty(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    t = require(self, "resize_as_", "self")
    if not isinstance(the_template, Tensor):
        raise messages.wrong_type("resize_as_", "the_template", 1, "Tensor", the_template)
    if memory_format is preserve_format:
        memory_format = suggested(array_of(the_template))
    return _resized(t, tuple(the_template.shape), memory_format)


def resize(self, *sizes):
    """Deprecated name of `reshape` for the same number of elements; warns.

    >>> import cygrad, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    warn("non-inplace resize is deprecated")
    return _reshaped(require(self, "resize", "self"), sizes)


def resize_as(self, tensor):
    """Deprecated name of `reshape` to the size of another tensor with the same number of elements; warns.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     print(cygrad.arange(4).resize_as(cygrad.empty(2, 2)).shape)
    torch.Size([2, 2])
    """
    warn("non-inplace resize_as is deprecated")
    return _reshaped(require(self, "resize_as", "self"), tuple(require(tensor, "resize_as", "tensor").shape))


def _reshaped(t, sizes):
    size = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if any(not isinstance(n, int) or n < 0 for n in size) or math.prod(size) != t.numel():
        wanted, own = ("x".join(map(str, lengths)) for lengths in (size, t.shape))
        raise RuntimeError(
            f"requested resize to {wanted} ({math.prod(size)} elements in total), but the given tensor has a size of "
            f"{own} ({t.numel()} elements). autograd's resize can only change the shape of a given tensor, while "
            "preserving the number of elements. "
        )
    return reshape(t, size)


# -- memory order --


def dim_order(self, *, ambiguity_check=False):
    """Return the dimensions in memory order, outermost first.

    With `ambiguity_check`, raises RuntimeError if several orders describe this tensor: if a length is 1, or
    neighbors have equal strides. A list of memory formats allows that if exactly one of them fits.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).t().dim_order()
    (1, 0)
    """
    t = require(self, "dim_order", "self")
    strides = t.stride()
    if ambiguity_check is not False:
        _check_order(t, strides, ambiguity_check)
    order = list(range(t.dim()))
    for i in range(1, len(order)):  # insertion sort: dimensions of stride 0 and length 1 keep their place
        for k in range(i, 0, -1):
            outer, inner = order[k - 1], order[k]
            if strides[outer] == 0 or strides[inner] == 0:
                break
            if strides[outer] > strides[inner] or (
                strides[outer] == strides[inner] and t.shape[outer] >= t.shape[inner]
            ):
                break
            order[k - 1], order[k] = inner, outer
    return tuple(order)


def _check_order(t, strides, check):
    """Raise the errors of `dim_order(ambiguity_check=check)`."""
    formats = [] if check is True else check
    if not isinstance(formats, list) or not all(isinstance(each, memory_format) for each in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if 1 not in t.shape and all(outer != inner for outer, inner in zip(strides, strides[1:])):
        return
    if sum(t.is_contiguous(memory_format=each) for each in formats) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )


methods = {method.__name__: method for method in (resize, resize_, resize_as, resize_as_, dim_order)}
functions = publish(globals(), {"resize_as_": resize_as_})
