"""Masked reductions of sparse tensors. What is not stored is left out, as what the mask leaves out is."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor, dtype

__all__ = ["check_layout", "reduced", "sparse_mask", "sparse_where"]

_LAYOUTS = (cygrad.sparse_coo, cygrad.sparse_csr)


def check_layout(name: str, input: Tensor, mask: Tensor | None, keepdim: Any) -> None:
    """Raise ValueError for a layout that the reduction does not take, or if a sparse tensor lacks the mask it needs.

    Raises AssertionError for compressed rows without `keepdim`: their results have rows, too.
    """
    allowed = _LAYOUTS[1:] if name == "mean" else _LAYOUTS
    if input.layout not in allowed:
        listed = "strided or sparse_csr" if name == "mean" else "strided, sparse_coo or sparse_csr"
        raise ValueError(
            f"masked {name} expects {listed} tensor (got {input.layout} tensor)\n"
            f"  call x.to_dense(), and mask.to_dense() if the mask is sparse"
        )
    if mask is None and name != "sum":
        kind = "sparse_csr" if input.layout is cygrad.sparse_csr else "sparse_coo"
        raise ValueError(
            f"masked {name} expects explicit mask for {kind} tensor input\n"
            "  elements that are not stored would count as zeros: pass a mask, or call x.to_dense()"
        )
    if input.layout is cygrad.sparse_csr and not keepdim:
        kind_of_error = RuntimeError if name in ("sum", "prod") else AssertionError
        raise kind_of_error(
            "reduction operations on CSR tensors with keepdim=False is unsupported\n"
            "  pass keepdim=True, or convert by x.to_sparse_coo()"
        )


def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return a mask of any layout, and of the shape of `input`, in the layout of `input`."""
    if input.layout is cygrad.sparse_csr:
        return mask if mask.layout is input.layout else mask.to_sparse_csr()
    if mask.layout is not cygrad.sparse_coo:
        mask = mask.to_sparse(input.sparse_dim()) if mask.layout is cygrad.strided else mask.to_sparse()
    return mask.coalesce()


def sparse_where(mask: Tensor, input: Tensor, fill_value: Any) -> Tensor:
    """Return a sparse tensor of what a mask of the same layout and shape keeps: 0 where `input` stores nothing.

    Elements that are left out are not stored, except in dense dimensions, where they are `fill_value`.
    """
    if input.layout is cygrad.sparse_csr:
        return sparse_where(mask.to_sparse_coo(), input.to_sparse_coo(), fill_value).to_sparse_csr()
    assert mask.dense_dim() == input.dense_dim(), (
        f"mask.dense_dim() must match input.dense_dim(): {mask.dense_dim()} vs {input.dense_dim()}"
    )
    mask = mask.coalesce()
    kept = mask.values()
    rows = kept.reshape(kept.shape[0], -1).any(1) if kept.numel() else kept.new_zeros(kept.shape[0])
    indices, kept = mask.indices()[:, rows], kept[rows]
    pattern = cygrad.sparse_coo_tensor(indices, kept, mask.shape, is_coalesced=True)
    values = input.coalesce().sparse_mask(pattern).coalesce().values()
    if input.dense_dim():
        values = cygrad.where(kept, values, cygrad.as_tensor(fill_value, dtype=values.dtype, device=values.device))
    return cygrad.sparse_coo_tensor(indices, values, input.shape, is_coalesced=True)


def reduced(name: str, input: Tensor, dims: tuple[int, ...], keepdim: bool, wanted: dtype) -> Tensor:
    """Return the reduction `name` over the elements that are stored, in the layout of `input`."""
    if input.layout is cygrad.sparse_csr:
        return reduced(name, input.to_sparse_coo(), dims, keepdim, wanted).to_sparse_csr()
    input = input.coalesce()
    indices, values = input.indices(), input.values().to(wanted)
    n = input.sparse_dim()
    values = _over_dense_dims(name, values, [each + 1 - n for each in dims if n <= each < input.ndim], keepdim)
    gone = [each for each in dims if each < n]
    if gone:
        indices = indices.clone()
        indices[gone] = 0
        indices, group = cygrad.unique(indices, return_inverse=True, dim=1)
        values = _over_groups(name, values, group, indices.shape[1])
        if not keepdim:
            indices = indices[[each for each in range(n) if each not in gone]]
    shape = [1 if i in dims else length for i, length in enumerate(input.shape) if keepdim or i not in dims]
    return cygrad.sparse_coo_tensor(indices, values, shape)


def _over_dense_dims(name: str, values: Tensor, dims: list[int], keepdim: bool) -> Tensor:
    if not dims:
        return values
    if name in ("amax", "amin"):
        return getattr(values, name)(dims, keepdim)
    for each in reversed(dims):
        values = getattr(values, name)(each, keepdim, dtype=values.dtype)
    return values


def _over_groups(name: str, values: Tensor, group: Tensor, count: int) -> Tensor:
    """Return the reductions of rows of values over the groups that they belong to."""
    wide = values.float() if values.dtype in (cygrad.float16, cygrad.bfloat16) else values
    places = group.reshape(-1, *(1,) * (wide.ndim - 1)).expand(wide.shape)
    found = wide.new_zeros((count, *wide.shape[1:]))
    return found.scatter_reduce(0, places, wide, name, include_self=False).to(values.dtype)
