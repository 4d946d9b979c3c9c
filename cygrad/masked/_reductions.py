"""Reductions of the elements that a mask keeps. Where it keeps none, the result is the neutral number, or NaN."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor, dtype
from cygrad.masked._filling import canonical_mask, combined, dims_of, filled, require_dense, takes_masked_tensors
from cygrad.masked._sparse import check_layout, reduced

__all__ = ["amax", "amin", "argmax", "argmin", "logsumexp", "mean", "median", "norm", "prod", "std", "sum", "var"]

Dims = int | tuple[int, ...] | list[int] | None


def _summed_in(input: Tensor, wanted: dtype | None) -> dtype:
    """Return the dtype of sums and products: int64 for integers and bools, unless another is wanted."""
    if wanted is not None:
        return wanted
    return input.dtype if input.is_floating_point() or input.is_complex() else cygrad.int64


def _sparse(
    name: str, input: Tensor, dim: Dims, keepdim: bool | None, into: dtype, mask: Tensor | None
) -> Tensor:  # fmt: skip
    """Return a reduction of a sparse tensor."""
    check_layout(name, input, mask, keepdim)
    return reduced(name, combined(name, input, mask), dims_of(dim, input.ndim), bool(keepdim), into)


@takes_masked_tensors
def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the sum over `dim`, or over all dimensions, of the elements that `mask` keeps; 0 where it keeps none.

    `mask` is broadcast to the shape of `input` and may not have more dimensions, which is an IndexError. The result is
    of `dtype`; by default of that of `input`, or int64 for integers and bools.

    Of a sparse tensor (COO or CSR), only stored elements count, and the result is sparse. Compressed rows need
    `keepdim=True`, or a RuntimeError is raised. Other reductions of sparse tensors need a mask, or raise a ValueError.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cygrad.masked.sum(x, 1, mask=cygrad.tensor([[True, False], [False, False]]))
    tensor([1., 0.])
    """
    if input.layout is not cygrad.strided:
        return _sparse("sum", input, dim, keepdim, _summed_in(input, dtype), mask)
    axes = dims_of(dim, input.ndim)
    return cygrad.sum(filled("sum", input, mask), axes, bool(keepdim), dtype=_summed_in(input, dtype))


@takes_masked_tensors
def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the product over `dim`, one or several, of the elements that `mask` keeps; 1 where it keeps none.

    dtypes and errors are those of `masked.sum`.

    >>> import cygrad
    >>> cygrad.masked.prod(cygrad.tensor([2.0, 3.0, 5.0]), mask=cygrad.tensor([True, False, True]))
    tensor(10.)
    """
    if input.layout is not cygrad.strided:
        return _sparse("prod", input, dim, keepdim, _summed_in(input, dtype), mask)
    axes = dims_of(dim, input.ndim)
    result = filled("prod", input, mask).to(_summed_in(input, dtype))
    for each in reversed(axes):
        result = result.prod(each, bool(keepdim))
    return result


@takes_masked_tensors
def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the largest over `dim` of the elements that `mask` keeps; -inf, or the least integer, where it keeps none.

    >>> import cygrad
    >>> cygrad.masked.amax(cygrad.tensor([1, 7, 3]), 0, mask=cygrad.tensor([True, False, True]))
    tensor(3)
    """
    if input.layout is not cygrad.strided:
        return _sparse("amax", input, dim, keepdim, dtype or input.dtype, mask)
    found = cygrad.amax(filled("amax", input, mask), dims_of(dim, input.ndim), bool(keepdim))
    return found.to(dtype or input.dtype)


@takes_masked_tensors
def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the smallest over `dim` of the elements that `mask` keeps; inf, or the largest integer, if it keeps none.

    >>> import cygrad
    >>> cygrad.masked.amin(cygrad.tensor([1.0, 7.0]), 0, mask=cygrad.tensor([False, True]))
    tensor(7.)
    """
    if input.layout is not cygrad.strided:
        return _sparse("amin", input, dim, keepdim, dtype or input.dtype, mask)
    found = cygrad.amin(filled("amin", input, mask), dims_of(dim, input.ndim), bool(keepdim))
    return found.to(dtype or input.dtype)


@takes_masked_tensors
def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the place of the largest element that `mask` keeps, in `dtype`; in that of `input` by default.

    >>> import cygrad
    >>> cygrad.masked.argmax(cygrad.tensor([1, 7, 3]), 0, mask=cygrad.tensor([True, False, True]))
    tensor(2)
    """
    return cygrad.argmax(filled("argmax", input, mask), dim, bool(keepdim)).to(dtype or input.dtype)


@takes_masked_tensors
def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the place of the smallest element that `mask` keeps, in `dtype`; in that of `input` by default.

    >>> import cygrad
    >>> cygrad.masked.argmin(cygrad.tensor([1, 7, 3]), 0, mask=cygrad.tensor([False, True, True]))
    tensor(2)
    """
    return cygrad.argmin(filled("argmin", input, mask), dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """Return how many elements a mask keeps."""
    if mask is not None:
        return canonical_mask(input, mask).sum(dim, keepdim)
    return cygrad.ones_like(input, dtype=cygrad.bool).sum(dims_of(dim, input.ndim), keepdim)


@takes_masked_tensors
def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean over `dim` of the elements that `mask` keeps; NaN where it keeps none.

    The mean is their sum divided by their number. Of sparse tensors it takes CSR only, with `keepdim=True`.

    Raises ValueError for integers and bools, unless `dtype` is that of floating-point or complex numbers.

    >>> import cygrad
    >>> cygrad.masked.mean(cygrad.tensor([1.0, 7.0, 3.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor(2.)
    """
    into = dtype or input.dtype
    if not (into.is_floating_point or into.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {into}"
        )
    if input.layout is not cygrad.strided:
        return _sparse("mean", input, dim, keepdim, into, mask)
    count = _count(input, dim, bool(keepdim), mask)
    return sum(input, dim, keepdim=keepdim, dtype=into, mask=mask) / count


@takes_masked_tensors
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the median over `dim` of the elements that `mask` keeps; NaN where it keeps none.

    Of an even number of elements it is the smaller one in the middle. Raises ValueError where none is kept of integers.

    >>> import cygrad
    >>> cygrad.masked.median(cygrad.tensor([1.0, 7.0, 3.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor(1.)
    """
    axis = dims_of(dim, input.ndim)[0]
    is_float = input.is_floating_point()
    found = cygrad.nanmedian(filled("median", input if is_float else input.float(), mask), axis, keepdim).values
    if is_float:
        return found
    if found.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype or input.dtype)


@takes_masked_tensors
def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return log(sum(exp(x))) over `dim` of the elements that `mask` keeps; -inf where it keeps none.

    >>> import cygrad
    >>> cygrad.masked.logsumexp(cygrad.tensor([1.0, 7.0]), 0, mask=cygrad.tensor([True, False]))
    tensor(1.)
    """
    axes = dims_of(dim, input.ndim)
    found = cygrad.logsumexp(filled("logsumexp", input, mask), axes, keepdim)
    return found.to(dtype or input.dtype)


@takes_masked_tensors
def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool | None = False,
    dtype: dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the vector norm of order `ord` over `dim` of the elements that `mask` keeps: `linalg.vector_norm`.

    Where it keeps none the norm is 0; inf if the order is -inf.

    >>> import cygrad
    >>> cygrad.masked.norm(cygrad.tensor([3.0, 4.0, 12.0]), 2, 0, mask=cygrad.tensor([True, True, False]))
    tensor(5.)
    """
    order: Any = ord
    values = filled("norm", input, mask, order)
    axes = dims_of(dim, input.ndim)
    return cygrad.linalg.vector_norm(values, order, axes, bool(keepdim), dtype=dtype or input.dtype)


def _variance(
    input: Tensor, dim: Dims, correction: float, keepdim: bool | None, dtype: dtype | None, mask: Tensor | None
) -> Tensor:
    """Return the sum of squared distances from the mean, divided by the count less `correction`, but at least by 0."""
    is_inexact = input.is_floating_point() or input.is_complex()
    into = dtype or (input.dtype if is_inexact else cygrad.float32)
    computed = into if into.is_floating_point or into.is_complex else cygrad.float32
    count = _count(input, dim, True, mask)
    x = input - sum(input, dim, keepdim=True, dtype=into, mask=mask) / count
    total = sum(x * x.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction:
        count = (count.to(total.real.dtype if computed.is_complex else computed) - correction).clamp(min=0)
    return (total / count).to(into)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is not None:
        return float(correction)
    return 0.0 if unbiased is False else 1.0


@takes_masked_tensors
def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the variance over `dim` of the elements that `mask` keeps; NaN where it keeps too few.

    sum(|x - mean|^2) / (count - correction) of the kept elements.

    The sum of squares is divided by the count less `correction`, which is 1, or 0 with `unbiased=False`. Raises
    AssertionError if both are passed.

    >>> import cygrad
    >>> cygrad.masked.var(cygrad.tensor([1.0, 9.0, 3.0]), 0, mask=cygrad.tensor([True, False, True]))
    tensor(2.)
    """
    require_dense("std/var", input)
    return _variance(input, dim, _correction(unbiased, correction), keepdim, dtype, mask)


@takes_masked_tensors
def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the standard deviation over `dim` of the elements that `mask` keeps: the root of `masked.var`.

    sqrt(sum(|x - mean|^2) / (count - correction)) of the kept elements.

    >>> import cygrad
    >>> cygrad.masked.std(cygrad.tensor([1.0, 9.0, 3.0]), 0, False, mask=cygrad.tensor([True, False, True]))
    tensor(1.)
    """
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()
