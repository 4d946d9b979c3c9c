"""Reductions and normalizations that leave out elements by a mask, as functions of a tensor and `mask=`.

True in the mask keeps an element. `MaskedTensor`, PyTorch's tensor with a mask of its own, is a name only.
"""

from __future__ import annotations

from typing import Any, NoReturn

from cygrad import Tensor
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


class MaskedTensor(Tensor):
    """PyTorch's tensor with a mask of its own. There are none: making one raises NotImplementedError.

    >>> import cygrad
    >>> cygrad.masked.MaskedTensor(cygrad.ones(2), cygrad.tensor([True, False]))
    Traceback (most recent call last):
        ...
    NotImplementedError: torch.masked.MaskedTensor: cygrad has no tensors with masks of their own...
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "torch.masked.MaskedTensor: cygrad has no tensors with masks of their own\n"
            "  pass the mask to a function, as in masked.sum(x, 0, mask=mask)"
        )


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """Raise NotImplementedError: there are no tensors with masks of their own.

    >>> import cygrad
    >>> cygrad.masked.masked_tensor(cygrad.ones(2), cygrad.tensor([True, False]))
    Traceback (most recent call last):
        ...
    NotImplementedError: torch.masked.MaskedTensor: cygrad has no tensors with masks of their own...
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """Raise NotImplementedError: there are no tensors with masks of their own.

    >>> import cygrad
    >>> cygrad.masked.as_masked_tensor(cygrad.ones(2), cygrad.tensor([True, False]))
    Traceback (most recent call last):
        ...
    NotImplementedError: torch.masked.MaskedTensor: cygrad has no tensors with masks of their own...
    """
    return MaskedTensor(data, mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether this is a `MaskedTensor`: never.

    >>> import cygrad
    >>> cygrad.masked.is_masked_tensor(cygrad.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)
