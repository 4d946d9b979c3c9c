"""`vmap` by the module of PyTorch that defines it, and the functions that libraries treat their containers with.

A library that assigns functions of its own here, for its containers, need not: `cygrad.func` takes apart and makes the
classes that `utils._pytree` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad import Tensor
from cygrad._C._functorch import _add_batch_dim, _remove_batch_dim, is_batchedtensor
from cygrad.func import vmap
from cygrad.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map_, tree_unflatten

__all__ = ["Tensor", "is_batchedtensor", "tree_flatten", "tree_map_", "tree_unflatten", "vmap"]
__all__ += ["_add_batch_dim", "_broadcast_to_and_flatten", "_remove_batch_dim"]


def _get_name(func: Callable[..., Any]) -> str:
    """Return the name of a function for errors."""
    return getattr(func, "__name__", repr(func))


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: Any) -> Any:
    """Return the samples of a result of `vmap`'s function along a dimension, or a result for all samples as it is.

    Raises ValueError if `out_dim` is None for a result that differs between samples, and for results other than
    tensors.
    """
    if out_dim is None:
        if isinstance(batched_output, Tensor) and is_batchedtensor(batched_output):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did you mean to "
            "set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
