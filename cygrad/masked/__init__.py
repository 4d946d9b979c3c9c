"""Tensors with masks. True in a mask keeps an element.

Reductions and normalizations are functions of a tensor and `mask=`. `MaskedTensor` has a mask of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cygrad.masked._filling import is_masked_tensor as _is_masked_tensor
from cygrad.masked._normalizations import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin
from cygrad.masked._reductions import (
    amax,
    amin,
    argmax,
    argmin,
    logsumexp,
    mean,
    median,
    norm,
    prod,
    std,
    sum,
    var,
)

if TYPE_CHECKING:
    from cygrad.masked.maskedtensor import MaskedTensor, as_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

# What PyTorch's own operations and tests use of its module `_ops`
_PRIVATE = ("_canonical_dim", "_combine_input_and_mask", "_input_mask", "_output_mask", "_reduction_identity", "_where")


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether this is a `MaskedTensor`.

    >>> import cygrad
    >>> cygrad.masked.is_masked_tensor(cygrad.ones(2))
    False
    """
    return _is_masked_tensor(obj)


def __getattr__(name: str) -> Any:
    if name in ("MaskedTensor", "as_masked_tensor", "masked_tensor"):
        # The class makes every call of a function look at its arguments: few programs need it
        globals()[name] = found = getattr(import_module("cygrad.masked.maskedtensor"), name)
        return found
    if name in _PRIVATE:
        return getattr(import_module("cygrad.masked._ops"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
