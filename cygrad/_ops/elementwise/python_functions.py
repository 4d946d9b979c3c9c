"""Elementwise Python callbacks (`apply_`, `map_`), resizing, and memory order of tensors; none has a derivative."""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.inplace import check_resizable
from cygrad._core.graph.internals import array_of, replace_array, tensor_of
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.forward_mode import all_of
from cygrad._core.types.dtypes import dtype as dtype_class
from cygrad._kernels.cpu.base.copying import memory_from, on_memory_of
from cygrad._ops.base.arguments import each_integer, require, variadic
from cygrad._ops.base.creation import blank_like
from cygrad._ops.base.views import reshape

# -- element by element --


def _without_history(function, *tensors):
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(
            f"Can't call {function}() on Variable that requires grad. Use var.detach().{function}() instead."
        )


def _overwrite(target, results):
    """Write Python numbers into a tensor, converted to its dtype."""
    values = np.array(results, object).reshape(target.shape)
    array = array_of(target)
    if array.dtype.kind in "iu":
        values = np.vectorize(int, otypes=[object])(values) if values.size else values
    target.copy_(tensor_of(np.asarray(values.astype(array.dtype))))
    return target


def apply_(self, callable):
    """Replace each element by `callable(element)` in place and return this tensor. Slow: one Python call per element.

    Raises RuntimeError for a tensor that requires grad, TypeError if `callable` returns a non-number.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).apply_(lambda x: x * 10)
    tensor([10., 20.])
    """
    t = require(self, "apply_", "self")
    _without_history("apply_", t)
    return _overwrite(t, [_number(callable(value)) for value in array_of(t).ravel().tolist()])


def _number(value):
    if not isinstance(value, (int, float, complex)):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return value


def map_(self, other, callable):
    """Replace each element by `callable(element, element of other)` in place and return this tensor.

    `other` broadcasts. Raises RuntimeError if either tensor requires grad, TypeError if their dtypes differ.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).map_(cygrad.tensor([3.0, 4.0]), lambda x, y: x * y)
    tensor([3., 8.])
    """
    return _mapped("map_", self, (other,), callable)


def map2_(self, x, y, callable):
    """Replace each element by `callable(element, element of x, element of y)` in place; see `map_`.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> x.map2_(x, x, lambda a, b, c: a + b * c)
    tensor([2., 6.])
    """
    return _mapped("map2_", self, (x, y), callable)


def _mapped(function, self, others, callable):
    t = require(self, function, "self")
    names = ("other",) if len(others) == 1 else ("x", "y")
    for position, (other, name) in enumerate(zip(others, names), 1):
        require(other, function, name, position)
        if other.dtype is not t.dtype:
            raise TypeError(f"{function}: expected {t.type()} for '{name}' (got {other.type()})")
    _without_history(function, t, *others)
    arrays = [array_of(value).ravel().tolist() for value in (t, *(other.expand(t.shape) for other in others))]
    return _overwrite(t, [_number(callable(*values)) for values in zip(*arrays)])


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
    if t.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if all_of(t):
        raise RuntimeError("cannot resize variables that has a forward grad")
    if any(n < 0 for n in size):
        raise RuntimeError("numel: integer multiplication overflow")
    array = array_of(t)
    if size == array.shape and memory_format is None:
        return t
    wanted = np.empty(size, array.dtype, like=array)
    if memory_format is not None:
        wanted = blank_like(tensor_of(wanted), t.dtype, memory_format)
    found = on_memory_of(array, wanted)
    if found is None:
        check_resizable(t)
        memory = memory_from(array) if isinstance(array, np.ndarray) else array.reshape(-1)
        flat = wanted.ravel("K")  # a view, because there are no gaps
        flat[: memory.size] = memory
        found = wanted
    replace_array(t, found, "resize_")
    return t


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

    >>> import cygrad
    >>> cygrad.zeros(2, 3).t().dim_order()
    (1, 0)
    """
    t = require(self, "dim_order", "self")
    strides = t.stride()
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


def to_dense(self, dtype=None, *, masked_grad=None):
    """Return this tensor, which is always dense, converted to `dtype` if given. `masked_grad` is for sparse tensors.

    >>> import cygrad
    >>> cygrad.tensor([1.0, 2.0]).to_dense()
    tensor([1., 2.])
    """
    t = require(self, "to_dense", "self")
    if dtype is None:
        return t
    if not isinstance(dtype, dtype_class):
        raise messages.wrong_type("to_dense", "dtype", 1, "torch.dtype", dtype)
    return t.to(dtype)


methods = {
    method.__name__: method
    for method in (apply_, map_, map2_, resize, resize_, resize_as, resize_as_, dim_order, to_dense)
}
functions = publish(globals(), {"resize_as_": resize_as_})
