"""Reductions of masked tensors: of what the mask keeps, with a mask that tells where it keeps anything."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cygrad
from cygrad._core.errors.sites import warn
from cygrad.masked.maskedtensor.core import MaskedTensor, is_masked_tensor, reduced
from cygrad.ops import aten

__all__: list[str] = []

REDUCE_NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()


def _all(data: Any, dim: Any = None, keepdim: bool = False, mask: Any = None, dtype: Any = None) -> Any:
    kept = data if mask is None else data.masked_fill(~mask, True)
    return kept.all() if dim is None else cygrad.all(kept, dim=dim, keepdim=keepdim)


def _function(name: str) -> Callable[..., Any]:
    """Return the function of a tensor and `mask=`."""
    return _all if name == "all" else getattr(cygrad.masked, name)


def _of_all(name: str, input: MaskedTensor) -> MaskedTensor:
    data, mask = input.get_data(), input.get_mask()
    if input.is_sparse:
        if name in ("argmin", "argmax") and input.is_sparse_coo():
            return _place(name, input)
        data, mask = data.values(), mask.values()
    return reduced(_function(name)(data, mask=mask), mask.any())


def _place(name: str, input: MaskedTensor) -> MaskedTensor:
    """Return where an element is among all, in their order, of a tensor that holds some."""
    data, mask = input.get_data(), input.get_mask().values()
    found = _function(name)(data.values(), mask=mask).long()
    place: Any = 0
    for index, length in zip(data.indices()[:, found], data.shape):
        place = place * length + index
    return reduced(place, mask.any())


def _along(
    name: str, input: MaskedTensor, dim: Any, keepdim: bool = False, dtype: Any = None
) -> MaskedTensor | Any:  # fmt: skip
    if input.is_sparse:
        warn(
            f"The sparse version of {name} is not implemented in reductions.\n"
            "  to reduce along a dimension: call to_dense() first"
        )
        return NotImplemented
    data, mask = input.get_data(), input.get_mask()
    found = _function(name)(data, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return reduced(found, _any(mask, dim, keepdim))


def _any(mask: Any, dim: Any, keepdim: bool) -> Any:
    """Return whether a mask keeps anything along one dimension or several."""
    dims = [dim] if isinstance(dim, int) else dim
    for each in sorted((d % max(mask.ndim, 1) for d in dims), reverse=True):
        mask = cygrad.any(mask, dim=each, keepdim=keepdim)
    return mask


def reduce(name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Return the reduction `name` of a masked tensor: over all dimensions if it is the only argument."""
    if "input" in kwargs:
        args = (kwargs.pop("input"), *args)
    if not args or not is_masked_tensor(args[0]):
        raise TypeError("Input to reduce_dim must be a MaskedTensor")
    if len(args) == 1 and not kwargs:
        return _of_all(name, args[0])
    return _along(name, *args, **kwargs)


NATIVE_REDUCE_MAP = {getattr(aten, name): partial(reduce, name) for name in REDUCE_NAMES}
TORCH_REDUCE_MAP = {getattr(cygrad, name): partial(reduce, name) for name in REDUCE_NAMES}
TENSOR_REDUCE_MAP = {getattr(cygrad.Tensor, name): partial(reduce, name) for name in REDUCE_NAMES}
NATIVE_REDUCE_FNS = list(NATIVE_REDUCE_MAP)
TORCH_REDUCE_FNS = list(TORCH_REDUCE_MAP)
TENSOR_REDUCE_FNS = list(TENSOR_REDUCE_MAP)


def answer(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer an op."""
    return reduce(func.__name__, *args, **kwargs)


def _is_reduction(fn: Any) -> bool:
    """Whether this is one of these ops, functions and methods."""
    return fn in NATIVE_REDUCE_MAP or fn in TORCH_REDUCE_MAP or fn in TENSOR_REDUCE_MAP


def _apply_reduction(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Run one of these ops, functions and methods; NotImplemented for others."""
    for functions in (NATIVE_REDUCE_MAP, TORCH_REDUCE_MAP, TENSOR_REDUCE_MAP):
        if fn in functions:
            return functions[fn](*args, **kwargs)
    return NotImplemented
