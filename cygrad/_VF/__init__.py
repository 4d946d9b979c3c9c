"""The functions of the package by PyTorch's private name for them, and those that PyTorch has removed, such as `solve`.

The removed ones raise PyTorch's error, which says what to call.
"""

from __future__ import annotations

from typing import Any

import cygrad

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig", "unique_dim"]


def _removed(name: str, text: str) -> Any:
    def removed(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed.{text}")

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"""Raise RuntimeError: PyTorch has removed this function.

    >>> import cygrad
    >>> cygrad.{name}()
    Traceback (most recent call last):
        ...
    RuntimeError: This function was deprecated since version 1.9 and is now removed...
    """
    return removed


matrix_rank = _removed(
    "matrix_rank",
    "\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in "
    "`torch.linalg.matrix_rank()` to 'hermitian'.",
)
solve = _removed(
    "solve",
    " `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed "
    "and does not return the LU factorization.\n  X = torch.solve(B, A).solution is X = torch.linalg.solve(A, B)",
)
lstsq = _removed(
    "lstsq",
    " `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
    "  X, _ = torch.lstsq(B, A) is X = torch.linalg.lstsq(A, B).solution",
)
eig = _removed(
    "eig",
    " `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking "
    "complex tensors.\n  L, V = torch.eig(A, eigenvectors=True) is L, V = torch.linalg.eig(A)",
)
symeig = _removed(
    "symeig",
    " The default behavior has changed from using the upper triangular portion of the matrix by default to using the "
    "lower triangular portion.\n  L, V = torch.symeig(A, eigenvectors=True) is L, V = torch.linalg.eigh(A, UPLO='U')",
)


def unique_dim(
    input: Any, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Any, Any, Any]:
    """Return (slices, inverse, counts) of `unique`; empty tensors where these were not asked for.

    >>> import cygrad
    >>> cygrad._VF.unique_dim(cygrad.tensor([[2], [1], [2]]), 0, return_counts=True)
    (tensor([[1],
            [2]]), tensor([], dtype=torch.int64), tensor([1, 2]))
    """
    found = cygrad.unique(input, sorted, return_inverse, return_counts, dim=dim)
    found = iter(found if return_inverse or return_counts else (found,))
    none = cygrad.empty(0, dtype=cygrad.int64, device=input.device)
    return next(found), next(found) if return_inverse else none, next(found) if return_counts else none


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not callable(found := getattr(cygrad, name, None)):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return found
