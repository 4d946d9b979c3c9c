"""`vmap` by the private names under which PyTorch keeps the one that autograd maps gradients with.

Libraries that compute Jacobians and Hessians row by row import `_vmap` from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad._core.errors.sites import warn

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return `cygrad.vmap(func, in_dims, out_dims)`, and warn that this is its old name.

    >>> import cygrad, warnings
    >>> from cygrad import _vmap_internals
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     _vmap_internals.vmap(cygrad.sum)(cygrad.ones(2, 3))
    tensor([3., 3.])
    """
    warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Return a function that applies `func` to all samples; a result that is None stays None if that is allowed."""
    if not allow_none_pass_through:
        return cygrad.vmap(func, in_dims, out_dims)

    def mapped(*args: Any) -> Any:
        is_there: list[bool] = []
        is_several = False

        def present(*samples: Any) -> tuple[Any, ...]:
            nonlocal is_several
            results = func(*samples)
            is_several = isinstance(results, tuple)
            results = results if is_several else (results,)
            is_there[:] = [value is not None for value in results]
            return tuple(value for value in results if value is not None)

        found = iter(cygrad.vmap(present, in_dims, out_dims)(*args))
        results = tuple(next(found) if there else None for there in is_there)
        return results if is_several else results[0]

    return mapped
