"""The functions of `masked` by the name of the module in which PyTorch has them, and its private ones about masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.masked._filling import canonical_mask, combined, neutral
from cygrad.masked._filling import dims_of as _canonical_dim
from cygrad.masked._normalizations import *  # noqa: F403
from cygrad.masked._reductions import *  # noqa: F403
from cygrad.masked._sparse import sparse_where

_REDUCTIONS = "sum prod amax amin argmax argmin mean median norm var std logsumexp".split()
_NORMALIZATIONS = "softmax log_softmax softmin normalize cumsum cumprod".split()


def _input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
    """Return a mask as bools, in the shape and the layout of `input`."""
    if input.layout not in (cygrad.strided, cygrad.sparse_coo, cygrad.sparse_csr):
        raise ValueError(f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return canonical_mask(input, mask)


def _output_mask(op: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return which results of a masked operation, called with these arguments, come from elements that are kept."""
    name = getattr(op, "__name__", type(op).__name__)
    mask = _input_mask(input, mask=kwargs.get("mask"))
    if name in _NORMALIZATIONS:
        return mask
    if name not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got {name})")
    given = args[1:] if name == "norm" else args
    for each in reversed(_canonical_dim(given[0] if given else kwargs.get("dim"), input.ndim)):
        mask = mask.any(each, bool(kwargs.get("keepdim", False)))
    return mask


def _where(mask: Tensor, input: Tensor, fill_value: Any) -> Tensor:
    """Return what a mask keeps, and `fill_value` elsewhere; for sparse masks, a sparse tensor of what they keep."""
    if mask.layout is cygrad.strided:
        return cygrad.where(mask, input, fill_value)
    if mask.layout in (cygrad.sparse_coo, cygrad.sparse_csr):
        return sparse_where(mask, input, fill_value)
    raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")


def _combine_input_and_mask(op: Callable[..., Any], input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """Return `input` with what does not change the result of `op` where the mask leaves elements out."""
    return combined(op.__name__, input, mask, *args)


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """Return the number that does not change the result of an operation, as a tensor; None where it depends on others.

    Raises NotImplementedError for names of other operations.
    """
    name = op_name.rpartition(".")[2]
    if name in ("mean", "std", "var"):
        return None
    if name not in _REDUCTIONS and name not in ("cumsum", "cumprod", "logaddexp"):
        raise NotImplementedError(f"identity of {op_name} on {input.dtype} input")
    name = name.removeprefix("cum")
    dtype = cygrad.get_default_dtype() if name == "median" and not input.is_floating_point() else input.dtype
    return cygrad.tensor(neutral(name, input, *args), dtype=dtype, device=input.device)
