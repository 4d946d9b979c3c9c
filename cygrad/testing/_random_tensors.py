"""Random test tensors."""

from __future__ import annotations

import collections.abc
import math
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.types import Device

__all__ = ["make_tensor"]


def make_tensor(
    *shape: Any,
    dtype: cygrad.dtype,
    device: Device = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: cygrad.memory_format | None = None,
) -> Tensor:
    """Return a tensor of random numbers from `low` (included) to `high` (excluded).

    By default, numbers are in [-9, 9) for floating and complex dtypes, in [-9, 10) for integers, and in [0, 10) for
    uint8. Limits are clipped to the range of the dtype. With `exclude_zero`, zeros become the next larger number.
    `noncontiguous` leaves a gap before each element. On the CPU, the numbers are
    PyTorch's for the same seed.

    Raises ValueError for limits that are NaN or in the wrong order, and for `requires_grad` with a dtype that does not
    support it.

    >>> import cygrad
    >>> x = cygrad.testing.make_tensor((2, 3), dtype=cygrad.float32, device="cpu", low=0, high=1)
    >>> x.shape, bool((x >= 0).all()), bool((x < 1).all())
    (torch.Size([2, 3]), True, True)
    """
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], collections.abc.Sequence) else shape
    has_fractions = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not has_fractions:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    low, high = _limits(dtype, low, high, has_fractions)
    if noncontiguous and math.prod(shape) > 1:
        x = _drawn((*shape[:-1], 2 * shape[-1]), dtype, low, high, has_fractions).to(device)[..., 1::2]
    else:
        x = _drawn(shape, dtype, low, high, has_fractions).to(device)
    if exclude_zero:
        x[x == 0] = cygrad.finfo(dtype).tiny if has_fractions else 1
    if memory_format is not None:
        x = x.contiguous(memory_format=memory_format)
    return x.requires_grad_(requires_grad)


def _limits(dtype, low, high, has_fractions):
    """Return the limits, clipped to the range of the dtype."""
    least: float
    end: float
    if dtype is cygrad.bool:
        least, end, default = 0, 2, (0, 2)
    elif has_fractions:
        least, end, default = -cygrad.finfo(dtype).max, cygrad.finfo(dtype).max, (-9, 9)
    else:
        least, end = cygrad.iinfo(dtype).min, cygrad.iinfo(dtype).max + 1
        default = (max(-9, least), 10)
    low, high = (d if x is None else x for x, d in zip((low, high), default, strict=True))
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and not has_fractions):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if low >= end or high <= least:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{least}, {end})"
        )
    return max(low, least), min(high, end)


def _drawn(shape, dtype, low, high, has_fractions):
    if not has_fractions:
        low, high = -int(-low // 1), -int(-high // 1)
        return cygrad.randint(low, min(high, 2**63 - 1), shape).to(dtype)
    if dtype.is_complex:
        real = cygrad.float64 if dtype is cygrad.complex128 else cygrad.float32
        return cygrad.view_as_complex(_drawn((*shape, 2), real, low, high, True)).to(dtype)
    is_small = dtype.itemsize == 1  # numbers of 8 bits are neither drawn nor compared
    x = cygrad.empty(shape, dtype=cygrad.float32 if is_small else dtype)
    if high - low < cygrad.finfo(x.dtype).max:
        x.uniform_(low, high)
    else:
        x.uniform_(low / 2, high / 2).mul_(2)
    x = x.to(dtype)
    if low == high:
        return x
    is_below = (x.float() if is_small else x) < high
    return cygrad.where(is_below, x, cygrad.tensor(low, dtype=dtype))
