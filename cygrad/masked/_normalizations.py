"""Functions of the elements that a mask keeps whose result has the shape of the tensor."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor, dtype
from cygrad.masked._filling import dims_of, filled, is_masked_tensor, takes_masked_tensors
from cygrad.masked._reductions import norm

__all__ = ["cumprod", "cumsum", "log_softmax", "logaddexp", "normalize", "softmax", "softmin"]


@takes_masked_tensors
def cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the cumulative sums along `dim` of the elements that `mask` keeps, of the dtype of `input` unless given.

    >>> import cygrad
    >>> cygrad.masked.cumsum(cygrad.tensor([1.0, 7.0, 3.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """
    axis = dims_of(dim, input.ndim)[0]
    return cygrad.cumsum(filled("sum", input, mask), axis, dtype=dtype or input.dtype)


@takes_masked_tensors
def cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the cumulative products along `dim` of the elements that `mask` keeps; see `masked.cumsum` for the dtype.

    >>> import cygrad
    >>> cygrad.masked.cumprod(cygrad.tensor([2.0, 7.0, 3.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor([2., 2., 6.])
    """
    axis = dims_of(dim, input.ndim)[0]
    return cygrad.cumprod(filled("prod", input, mask), axis, dtype=dtype or input.dtype)


@takes_masked_tensors
def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Return softmax along `dim` over the elements that `mask` keeps; 0 for others, NaN where it keeps none.

    exp(x) / sum(exp(x)), where the sum is over the kept elements.

    >>> import cygrad
    >>> cygrad.masked.softmax(cygrad.tensor([1.0, 7.0, 1.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    axis = dims_of(dim, input.ndim)[0]
    return cygrad.nn.functional.softmax(filled("amax", input, mask), axis, dtype=dtype or input.dtype)


@takes_masked_tensors
def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the logarithm of `masked.softmax`; -inf for elements that `mask` leaves out.

    x - log(sum(exp(x))), where the sum is over the kept elements.

    >>> import cygrad
    >>> cygrad.masked.log_softmax(cygrad.tensor([1.0, 7.0, 1.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    axis = dims_of(dim, input.ndim)[0]
    return cygrad.nn.functional.log_softmax(filled("amax", input, mask), axis, dtype=dtype or input.dtype)


@takes_masked_tensors
def softmin(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Return softmin along `dim`, softmax of -x, over the elements that `mask` keeps; 0 for others.

    exp(-x) / sum(exp(-x)), where the sum is over the kept elements.

    >>> import cygrad
    >>> cygrad.masked.softmin(cygrad.tensor([1.0, -7.0, 1.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    axis = dims_of(dim, input.ndim)[0]
    return cygrad.nn.functional.softmin(filled("amin", input, mask), axis, dtype=dtype or input.dtype)


@takes_masked_tensors
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the elements that `mask` keeps, divided by their norm along `dim`, at least `eps`; 0 for others.

    x / max((sum of |x|^ord)^(1/ord), eps), where the sum is over the kept elements.

    >>> import cygrad
    >>> cygrad.masked.normalize(cygrad.tensor([3.0, 4.0, 12.0]), 2, 0, mask=cygrad.tensor([True, True, False]))
    tensor([0.6000, 0.8000, 0.0000])
    """
    values = filled("sum", input, mask)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return values / cygrad.maximum(length, length.new_full((), eps))


def logaddexp(
    input: Any, other: Any, *, dtype: dtype | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return log(exp(x) + exp(y)) of two tensors, each with its mask; -inf where both masks leave out.

    A `MaskedTensor` brings its own mask.

    >>> import cygrad
    >>> x, y = cygrad.tensor([1.0, 2.0]), cygrad.tensor([5.0, 6.0])
    >>> cygrad.masked.logaddexp(x, y, other_mask=cygrad.tensor([False, False]))
    tensor([1., 2.])
    """
    if is_masked_tensor(input):
        input, input_mask = input.get_data(), input.get_mask()
    if is_masked_tensor(other):
        other, other_mask = other.get_data(), other.get_mask()
    found = cygrad.logaddexp(filled("logaddexp", input, input_mask), filled("logaddexp", other, other_mask))
    return found.to(dtype or input.dtype)
