"""Elementwise ops of two operands, of which at least one is a masked tensor. If both are, their masks must be equal."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.masked.maskedtensor.core import (
    _masks_match,
    _tensors_match,
    data_of,
    is_masked_tensor,
    masked,
    parts_of,
    with_values,
)
from cygrad.ops import aten

__all__: list[str] = []

BINARY_NAMES = """
    add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide
    fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater
    greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal
""".split()
MORE_NAMES = ["rsub", "hypot"]  # which gradients are made of here
_NEVER_IN_PLACE = "logaddexp logaddexp2 fmin minimum maximum fmax".split()
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES if name not in _NEVER_IN_PLACE]

NATIVE_BINARY_FNS = [getattr(aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(aten, name) for name in INPLACE_BINARY_NAMES]


def _check(args: Any, kwargs: Any) -> None:
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    if any(isinstance(value, Tensor) for value in args[2:]):
        raise TypeError("MaskedTensor binary ops do not support Tensor arguments aside from the lhs and rhs")
    if not _masks_match(*args[:2]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")


def computed(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what an op makes of the data of its operands."""
    _check(args, kwargs)
    first, second, *rest = map(data_of, args)
    if not isinstance(first, Tensor) or first.layout == cygrad.strided:
        return func(first, second, *rest)
    if isinstance(second, Tensor) and second.layout == first.layout:
        kind = "sparse_coo" if first.layout == cygrad.sparse_coo else "sparse_csr"
        if not all(_tensors_match(a, b) for a, b in zip(parts_of(first)[1:], parts_of(second)[1:])):
            raise ValueError(
                f"{kind} indices must match. If you need support for this, please open an issue on Github."
            )
        if first.size() != second.size():
            raise ValueError("input1 and input2 must have the same size for binary functions.")
        second = second.values()
    return with_values(first, func(first.values(), second, *rest))


def binary(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer an op."""
    data = computed(func, args, kwargs)
    mask = next(value for value in args[:2] if is_masked_tensor(value))._masked_mask
    return masked(data, mask.expand_as(data) if data.layout == cygrad.strided else mask)


def binary_(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer an op that writes to its first operand: its data are replaced by others."""
    plain = getattr(aten, func.__name__.removesuffix("_"))
    args[0]._set_data_mask(computed(plain, args, kwargs).to(args[0].dtype), args[0]._masked_mask)
    return args[0]


def _is_native_binary(fn: Any) -> bool:
    """Whether this is one of these ops."""
    return fn in NATIVE_BINARY_FNS or fn in NATIVE_INPLACE_BINARY_FNS


def _apply_native_binary(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Run one of these ops; NotImplemented for others."""
    return fn(*args, **kwargs) if _is_native_binary(fn) else NotImplemented
