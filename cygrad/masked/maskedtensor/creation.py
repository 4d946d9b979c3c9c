"""Functions that make masked tensors."""

from __future__ import annotations

from typing import Any

from cygrad.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """Return a masked tensor without history, with copies of `data` and of `mask`, a tensor of bools of its shape.

    Raises as `MaskedTensor` does.

    >>> import cygrad
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> cygrad.masked.masked_tensor(cygrad.tensor([[1, 2], [3, 4]]), cygrad.tensor([[True, False], [True, True]]))
    MaskedTensor(
      [
        [1,       --],
        [3, 4]
      ]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """Return a masked tensor with the history of `data`: gradients flow to it.

    Raises as `MaskedTensor` does.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> cygrad.masked.as_masked_tensor(x, cygrad.tensor([True, False])).sum().backward()
    >>> x.grad
    MaskedTensor(
      [  1.0000,       --]
    )
    """
    return MaskedTensor._from_values(data, mask)
