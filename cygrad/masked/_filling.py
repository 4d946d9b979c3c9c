"""Fills the elements that a mask leaves out with what does not change the result of an operation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from math import inf, nan
from typing import Any, TypeVar

import cygrad
from cygrad import Tensor
from cygrad.masked._sparse import sparse_mask, sparse_where

F = TypeVar("F", bound=Callable[..., Any])
_LOWEST, _HIGHEST = -inf, inf  # for integers: those of the dtype
_NEUTRAL = {
    "amax": _LOWEST,
    "amin": _HIGHEST,
    "argmax": _LOWEST,
    "argmin": _HIGHEST,
    "logaddexp": _LOWEST,
    "logsumexp": _LOWEST,
    "mean": nan,
    "median": nan,
    "norm": 0,
    "prod": 1,
    "sum": 0,
}


def takes_masked_tensors(function: F) -> F:
    """Decorate a function of a tensor and `mask=` to take a `MaskedTensor`, whose own mask counts."""

    @wraps(function)
    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        if is_masked_tensor(input):
            input, kwargs["mask"] = input.get_data(), input.get_mask()
        return function(input, *args, **kwargs)

    return call  # type: ignore[return-value]


def is_masked_tensor(value: Any, /) -> bool:
    """Whether this is a `MaskedTensor`. There are none before their module is imported."""
    core = sys.modules.get("cygrad.masked.maskedtensor.core")
    return core is not None and isinstance(value, core.MaskedTensor)


def require_dense(name: str, *tensors: Tensor) -> None:
    """Raise ValueError for sparse tensors."""
    for tensor in tensors:
        if tensor.layout is not cygrad.strided:
            raise ValueError(
                f"masked {name} expects strided tensor (got {tensor.layout} tensor)\n"
                f"  call x.to_dense(), and mask.to_dense() if the mask is sparse"
            )


def canonical_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return a mask as bools in the shape and layout of `input`. Raises IndexError if it has more dimensions."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)\n"
            f"  the mask has the shape {tuple(mask.shape)}, the input {tuple(input.shape)}"
        )
    if mask.shape != input.shape or input.layout is cygrad.strided:
        if mask.layout is not cygrad.strided:
            mask = mask.to_dense()
        mask = cygrad.broadcast_to(mask, tuple(input.shape))
    if input.layout is not cygrad.strided:
        mask = sparse_mask(input, mask)
    return mask.to(cygrad.bool)


def neutral(name: str, input: Tensor, order: Any = None) -> Any:
    """Return the number that does not change the result of the operation `name`; `order` is that of a norm.

    Raises NotImplementedError for bools where there is none, TypeError for complex numbers.
    """
    number = inf if name == "norm" and order == -inf else _NEUTRAL[name]
    if name == "norm" and order == -inf and not input.is_floating_point():
        raise AssertionError(f"input must be floating point, got {input.dtype}")
    if number not in (_LOWEST, _HIGHEST) or input.is_floating_point():
        return number
    if input.is_complex() and name == "logsumexp":
        return complex(number, 0)
    if input.dtype is cygrad.bool:
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    limits = cygrad.iinfo(input.dtype)
    return limits.min if number == _LOWEST else limits.max


def filled(name: str, input: Tensor, mask: Tensor | None, order: Any = None) -> Tensor:
    """Return `input` with the neutral number of an operation where `mask` is False."""
    require_dense(name, input)
    return combined(name, input, mask, order)


def combined(name: str, input: Tensor, mask: Tensor | None, order: Any = None) -> Tensor:
    """Return what `filled` does; of a sparse tensor, a sparse one that stores what the mask keeps."""
    if mask is None:
        return input
    kept = canonical_mask(input, mask)
    if input.layout is not cygrad.strided:
        return sparse_where(kept, input, neutral(name, input, order))
    return cygrad.where(kept, input, input.new_tensor(neutral(name, input, order)))


def dims_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the dimensions to reduce, ascending; all for None and ().

    Raises IndexError for one out of range, RuntimeError for one that comes twice.
    """
    if dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    limit = max(ndim, 1)
    for each in (dim,) if isinstance(dim, int) else dim:
        if not -limit <= each < limit:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {each})"
            )
        if each % limit in found:
            raise RuntimeError(f"dim={each} appears multiple times in the list of dims")
        found.append(each % limit)
    return tuple(sorted(found))
