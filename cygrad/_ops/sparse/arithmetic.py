"""Arithmetic on sparse tensors: sums, products with numbers and tensors, and functions that leave zeros zero."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import tensor_of
from cygrad._core.graph.record import result_type
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import by_name
from cygrad._kernels.sparse import coordinates as kernels
from cygrad._kernels.sparse.array import Coordinates
from cygrad._kernels.sparse.errors import not_for
from cygrad._ops.base.slicing import cat
from cygrad._ops.sparse.conversions import add_at, to_dense, to_sparse
from cygrad._ops.sparse.creation import new_zeros_in
from cygrad._ops.sparse.entries import (
    at_coordinates,
    built,
    coalesce,
    elements_of,
    entries,
    one_by_one,
    with_values,
)
from cygrad._ops.sparse.shapes import repeated
from cygrad._ops.sparse.tensor import array, is_sparse
from cygrad._ops.sparse.writing import check_castable, delivered, written

_NUMBERS = (bool, int, float, complex)


def _is_number(value):
    """Whether a value is a number, or a dense tensor without dimensions."""
    if isinstance(value, np.generic):
        return True
    return isinstance(value, _NUMBERS) or isinstance(value, Tensor) and not is_sparse(value) and not value.ndim


# -- sums --


def add(input, other, *, alpha=1, out=None):
    """`input + alpha * other`, where one is sparse: two sparse tensors of one shape, or a dense and a sparse one."""
    return _delivered_sum(out, _add(input, other, alpha))


def _delivered_sum(out, result):
    if out is not None:
        check_castable(result.dtype, out.dtype, "add")
    return delivered(out, result)


def _add(input, other, alpha):
    if is_sparse(input) and not is_sparse(other):
        if input.is_sparse or not isinstance(other, Tensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _dense_sum(_scaled(other, alpha, result_type((input, other))), input, 1)
    if not isinstance(input, Tensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not is_sparse(input):
        return _dense_sum(input, other, alpha)
    _check_same_size(input, other)
    a = array(input)
    if a.layout != array(other).layout:
        other = to_sparse(other, layout=input.layout)
    if not isinstance(a, Coordinates):
        return to_sparse(_add(to_sparse(input), to_sparse(other), alpha), layout=input.layout)
    b = array(other)
    if len(a.indices) != len(b.indices):
        return _sum_with_none(input, other, alpha)
    kind = result_type((input, other))
    first, second = entries(input), _scaled(entries(other), alpha, kind)
    if _same_indices(a.indices, b.indices):
        return built(a.indices, first + second, a.shape, a.is_coalesced and b.is_coalesced)
    indices = np.concatenate([a.indices, b.indices], 1)
    joined = built(indices, cat([first.to(kind), second]), a.shape)
    return coalesce(joined) if a.is_coalesced and b.is_coalesced else joined


def _scaled(values, alpha, kind):
    """Return `alpha * values` in the dtype of the sum: unsigned numbers would wrap around in their own."""
    values = values.to(kind)
    none = values.detach()[:0]
    none.add(none, alpha=alpha)  # raises for numbers that do not fit the dtype
    return values if alpha == 1 else values * alpha


def _sum_with_none(input, other, alpha):
    """Add tensors that differ in their numbers of sparse dimensions, of which one must have no values."""
    a, b = array(input), array(other)
    kind = result_type((input, other))
    if not b.indices.shape[1]:
        return with_values(input, entries(input).to(kind))
    if not a.indices.shape[1]:
        return with_values(other, _scaled(entries(other), alpha, kind))
    raise RuntimeError(
        f"add: expected 'self' and 'other' to have same density, but 'self' has {len(a.indices)} sparse dimensions "
        f"while 'other' has {len(b.indices)} sparse dimensions"
    )


def _same_indices(a, b):
    return a is b or (
        isinstance(a, np.ndarray)
        and isinstance(b, np.ndarray)
        and a.shape == b.shape
        and a.__array_interface__ == b.__array_interface__
    )


def _check_same_size(input, other):
    if input.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(input.shape)} != {list(other.shape)}"
        )


def _check_dense_sum(dense, sparse):
    if dense.shape != sparse.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(dense.shape)} while "
            f"other has size {list(sparse.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )


def _dense_sum(dense, sparse, alpha):
    _check_dense_sum(dense, sparse)
    kind = result_type((dense, sparse))
    return _add_entries(dense.to(kind).clone(), sparse, alpha)


def _add_entries(target, sparse, alpha):
    a, values = array(sparse), entries(sparse)
    places = a.indices if isinstance(a, Coordinates) else elements_of(a)
    if not isinstance(a, Coordinates):
        values = one_by_one(values, a)
    is_plain = type(alpha) is int and alpha == 1
    return add_at(target, places, values if is_plain else _scaled(values, alpha, target.dtype))


def add_(self, other, *, alpha=1):
    """Add a sparse tensor to this one in place."""
    if isinstance(other, Tensor):
        check_castable(result_type((self, other)), self.dtype, "add")
    if is_sparse(self):
        return written(self, _add(self, other, alpha))
    _check_dense_sum(self, other)
    return _add_entries(self, other, alpha)


def sub(input, other, *, alpha=1, out=None):
    """`input - alpha * other`, where one is sparse."""
    return _delivered_sum(out, _add(input, other, -alpha))


def sub_(self, other, *, alpha=1):
    """Subtract a sparse tensor from this one in place."""
    return add_(self, other, alpha=-alpha)


def rsub(self, other):
    """`other - self`."""
    if not isinstance(other, Tensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    return _add(other, self, -1)


# -- products --


def mul(input, other, *, out=None):
    """`input * other`, where one is sparse: the product is sparse."""
    found = _mul(input, other)
    if out is not None:
        check_castable(found.dtype, out.dtype, "mul")
    return delivered(out, found)


def _mul(input, other):
    if not is_sparse(input):
        input, other = other, input
    if _is_number(other):
        return with_values(input, entries(input) * other)
    if not isinstance(other, Tensor):
        raise messages.wrong_type("mul", "other", 2, "Tensor", other)
    if not input.is_sparse:
        return to_sparse(_mul(to_sparse(input), _as_coordinates(other)), layout=input.layout)
    a = array(input)
    if not is_sparse(other):
        return _times_dense(input, other)
    b = array(_as_coordinates(other))
    if input.shape != other.shape or len(a.indices) != len(b.indices):
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse "
            "dimensions, and shape of sparse dimensions"
        )
    if a.is_coalesced < b.is_coalesced or (a.is_coalesced == b.is_coalesced and _same_indices(a.indices, b.indices)):
        return built(a.indices, entries(input) * at_coordinates(other, a.indices), a.shape, a.is_coalesced)
    other = coalesce(_as_coordinates(other))
    places, there = kernels.looked_up(array(other).indices, a.indices, a.shape[: len(a.indices)])
    kept = tensor_of(np.nonzero(there)[0])
    second = entries(other).index_select(0, tensor_of(places[there]))
    return built(a.indices[:, there], entries(input).index_select(0, kept) * second, a.shape, a.is_coalesced)


def _as_coordinates(tensor):
    return to_sparse(tensor) if is_sparse(tensor) else tensor


def _times_dense(input, other):
    a = array(input)
    if other.ndim > input.ndim:
        for _ in range(other.ndim - input.ndim):
            input = input.unsqueeze(0)
        for dim in range(other.ndim - a.ndim):
            input = repeated(input, dim, other.shape[dim])
        return coalesce(_times_dense(input, other))
    try:
        whole = other.expand(input.shape)
    except RuntimeError:
        raise RuntimeError(_mismatch(input.shape, other.shape)) from None
    return built(a.indices, entries(input) * at_coordinates(whole, a.indices), a.shape, a.is_coalesced)


def _mismatch(shape, other):
    for dim in range(1, len(other) + 1):
        if shape[-dim] != other[-dim] and 1 not in (shape[-dim], other[-dim]):
            return (
                f"The size of tensor a ({other[-dim]}) must match the size of tensor b ({shape[-dim]}) at "
                f"non-singleton "
                f"dimension {len(shape) - dim}"
            )
    return (
        f"mul: a sparse tensor of size {list(shape)} is not broadcast to that of a dense one, {list(other)}\n"
        "  expand the dense one, or convert the sparse one by to_dense()"
    )


def mul_(self, other):
    """Multiply this tensor by another in place."""
    if not is_sparse(self):
        return self.mul_(to_dense(other))
    found = _mul(self, other)
    check_castable(found.dtype, self.dtype, "mul")
    return written(self, found)


def _require_divisor(input, other, kind=""):
    if not is_sparse(input) or not _is_number(other):
        shape = list(other.shape) if isinstance(other, Tensor) else []
        raise RuntimeError(
            f"Sparse {kind}division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)"
        )
    if not input.is_sparse:
        raise RuntimeError("unsupported tensor layout: SparseCsr")


def div(input, other, *, rounding_mode=None, out=None):
    """`input / other`, where `other` is a number or has no dimensions."""
    _require_divisor(input, other)
    if rounding_mode is not None:
        input = coalesce(input)
    return delivered(out, with_values(input, entries(input).div(other, rounding_mode=rounding_mode)))


def div_(self, other, *, rounding_mode=None):
    """Divide this tensor by a number in place."""
    return written(self, div(self, other, rounding_mode=rounding_mode))


def floor_divide(input, other, *, out=None):
    """`input / other`, rounded down."""
    _require_divisor(input, other, "floor ")
    return div(input, other, rounding_mode="floor", out=out)


def floor_divide_(self, other):
    """Divide this tensor in place, rounding down."""
    _require_divisor(self, other, "floor ")
    return div_(self, other, rounding_mode="floor")


def pow(input, exponent, *, out=None):
    """`input ** exponent`, where `exponent` is a number other than 0."""
    if not is_sparse(input) or not _is_number(exponent):
        raise not_for("pow.Tensor_Tensor" if isinstance(input, Tensor) else "pow.Scalar", "SparseCPU")
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    if not input.is_sparse:
        raise RuntimeError("unsupported tensor layout: SparseCsr")
    input = coalesce(input)
    return delivered(out, with_values(input, entries(input) ** exponent))


def float_power(input, exponent, *, out=None):
    """`pow` in float64 or complex128."""
    if not is_sparse(input):
        raise not_for("pow.Scalar" if not isinstance(input, Tensor) else "pow.Tensor_Tensor", "SparseCPU")
    names = by_name()
    is_complex = input.is_complex() or isinstance(exponent, complex)
    return pow(input.to(names["complex128" if is_complex else "float64"]), exponent, out=out)


def neg(input, *, out=None):
    """`-input`."""
    return delivered(out, with_values(input, -entries(input)))


def neg_(self):
    """Change the signs in place."""
    return written(self, neg(self))


def positive(input):
    """The tensor itself."""
    return input


# -- functions that map 0 to 0 --

# They apply to the coalesced values, and in place to coalesced tensors only.
_LEAVE_ZERO = (
    "abs absolute angle arcsin arcsinh arctan arctanh asin asinh atan atanh ceil conj_physical deg2rad erf "
    "erfinv expm1 fix "
    "floor frac log1p nan_to_num rad2deg relu round sgn sign sin sinh sqrt tan tanh trunc"
).split()
_PREDICATES = "isinf isnan isneginf isposinf signbit".split()


def _of_values(name):
    def function(input, *args, out=None, **kwargs):
        input = coalesce(input) if input.is_sparse else input
        return delivered(out, with_values(input, getattr(entries(input), name)(*args, **kwargs)))

    function.__name__ = function.__qualname__ = name
    return function


def _in_place(name, title):
    def function(self, *args, **kwargs):
        if self.is_sparse and not array(self).is_coalesced:
            raise RuntimeError(f"{title}_ requires coalesced input")
        return written(self, with_values(self, getattr(entries(self), name)(*args, **kwargs)))

    function.__name__ = function.__qualname__ = name + "_"
    return function


_TITLES = {"absolute": "abs", "fix": "trunc"}
_elementwise = {name: _of_values(name) for name in (*_LEAVE_ZERO, *_PREDICATES)}
_elementwise |= {
    name + "_": _in_place(name, _TITLES.get(name, name.replace("arc", "a") if name.startswith("arc") else name))
    for name in _LEAVE_ZERO
}


_relu = _elementwise["relu"]


def relu(input, inplace=False):
    """`max(input, 0)`, in place if `inplace`."""
    return _elementwise["relu_"](input) if inplace else _relu(input)


_elementwise["relu"] = relu


def square(input, *, out=None):
    """`input ** 2`."""
    return pow(input, 2, out=out)


def conj(input):
    """Return the conjugate numbers."""
    return _elementwise["conj_physical"](input) if input.is_complex() else input


def zero_(self):
    """Set all elements to zero, which leaves no values."""
    a = array(self)
    values = tensor_of(a.values).detach()
    if isinstance(a, Coordinates):
        return written(self, built(a.indices[:, :0], values[:0], a.shape, True))
    return written(self, new_zeros_in(self.layout, a.shape, self.dtype, self.device, False))


def any(input):
    """Whether an element is not zero."""
    return entries(coalesce(input)).any()


def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """Return the norm of all elements as a vector."""
    if dim is not None and (isinstance(dim, int) or sorted(dim) != list(range(input.ndim))):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions "
            "of the input"
        )
    values = entries(coalesce(input) if input.is_sparse else input)
    return (values if dtype is None else values.to(dtype)).reshape(-1).norm(2 if p in ("fro", None) else p)


def reflected_pow(self, base):
    """Raise the error for a number raised to a sparse power."""
    raise array(self).refused("pow.Scalar")


def reflected_floor_divide(self, other):
    """Raise the error for division, rounded down, by a sparse tensor."""
    _require_divisor(other, self, "floor ")


def reflected_div(self, other):
    """Raise the error for division by a sparse tensor."""
    _require_divisor(other, self)


_sums_and_products = {
    "add": add,
    "add_": add_,
    "sub": sub,
    "sub_": sub_,
    "mul": mul,
    "mul_": mul_,
    "div": div,
    "div_": div_,
    "floor_divide": floor_divide,
    "floor_divide_": floor_divide_,
    "pow": pow,
    "neg": neg,
    "neg_": neg_,
}
_ALIASES = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
}
forms = {
    **_sums_and_products,
    **{alias + end: _sums_and_products[name + end] for alias, name in _ALIASES.items() for end in ("", "_")},
    **_elementwise,
    "positive": positive,
    "square": square,
    "float_power": float_power,
    "conj": conj,
    "resolve_conj": positive,
    "resolve_neg": positive,
    "zero_": zero_,
    "any": any,
    "norm": norm,
    "__add__": add,
    "__radd__": lambda self, other: add(other, self),
    "__iadd__": add_,
    "__sub__": sub,
    "__rsub__": rsub,
    "__isub__": sub_,
    "__mul__": mul,
    "__rmul__": mul,
    "__imul__": mul_,
    "__truediv__": div,
    "__rtruediv__": reflected_div,
    "__itruediv__": div_,
    "__floordiv__": floor_divide,
    "__rfloordiv__": reflected_floor_divide,
    "__ifloordiv__": floor_divide_,
    "__pow__": pow,
    "__rpow__": reflected_pow,
    "__neg__": neg,
    "__pos__": positive,
    "__abs__": _elementwise["abs"],
}
