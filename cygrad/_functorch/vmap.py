"""`vmap` by the module of PyTorch that defines it, and the steps that it takes.

Libraries assign steps of their own here, for containers of tensors that know where their samples lie. As soon as one is
not ours, `vmap` goes through `vmap_impl`, which calls all of them as PyTorch does.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from cygrad import Tensor
from cygrad._C._functorch import _add_batch_dim, _remove_batch_dim, is_batchedtensor
from cygrad._core.errors.sites import warn
from cygrad._core.transforms import forward_mode
from cygrad._core.transforms.vmap_levels import Batch, NoBatchingRule
from cygrad._ops.random.generator import Draws
from cygrad._ops.shape.stacking import stack
from cygrad.func import _batching as batching
from cygrad.func import vmap
from cygrad.utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_map_, tree_unflatten

__all__ = ["Tensor", "is_batchedtensor", "tree_flatten", "tree_map_", "tree_unflatten", "vmap", "vmap_impl"]
__all__ += ["_add_batch_dim", "_broadcast_to_and_flatten", "_remove_batch_dim"]


def _get_name(func: Callable[..., Any]) -> str:
    """Return the name of a function for errors."""
    if hasattr(func, "__name__"):
        return str(func.__name__)
    return f"functools.partial({_get_name(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """Return (the number of samples, the dimension of each leaf's samples, the leaves, the structure) of arguments.

    Raises ValueError if they do not fit `in_dims`.
    """
    leaves, dims = batching._batched_inputs(args, batching._Options(_get_name(func), in_dims, 0, "error"))
    return batching._batch_size(leaves, dims), dims, leaves, tree_flatten(args)[1]


def _create_batched_inputs(
    flat_in_dims: list[int | None], flat_args: list[Any], vmap_level: int, args_spec: TreeSpec
) -> Any:
    """Return arguments whose leaves stand for the samples of the given ones."""
    own = [
        x if dim is None else _add_batch_dim(x, dim, vmap_level) for dim, x in zip(flat_in_dims, flat_args, strict=True)
    ]
    return tree_unflatten(own, args_spec)


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


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable[..., Any]
) -> Any:
    """Return the samples that results stand for. Raises ValueError if the results do not fit `out_dims`."""
    name = _get_name(func)
    leaves, form = tree_flatten(batched_outputs)
    dims = batching._dims_of_outputs(batched_outputs, batching._Options(name, 0, out_dims, "error"))
    found = [
        _maybe_remove_batch_dim(name, leaf, vmap_level, batch_size, dim) for leaf, dim in zip(leaves, dims, strict=True)
    ]
    return tree_unflatten(found, form)


_STEPS = _process_batched_inputs, _create_batched_inputs, _unwrap_batched


def are_others() -> bool:
    """Whether a library has replaced a step."""
    return (_process_batched_inputs, _create_batched_inputs, _unwrap_batched) != _STEPS


def vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call the function that `vmap` returns, step by step."""
    size, dims, leaves, form = _process_batched_inputs(in_dims, args, func)
    if chunk_size is None or chunk_size >= size:
        return _flat_vmap(func, size, dims, leaves, form, out_dims, randomness, **kwargs)
    draws, parts = Draws(), []
    for start in range(0, size, chunk_size):
        end = min(start + chunk_size, size)
        part = [x if d is None else x[(slice(None),) * d + (slice(start, end),)] for x, d in zip(leaves, dims)]
        with draws.repeated() if randomness == "same" else contextlib.nullcontext():
            parts.append(_flat_vmap(func, end - start, dims, part, form, out_dims, randomness, **kwargs))
    return batching._joined_chunks(parts, batching._Options(_get_name(func), in_dims, out_dims, randomness))


def _flat_vmap(
    func: Callable[..., Any],
    batch_size: int,
    flat_in_dims: list[int | None],
    flat_args: list[Any],
    args_spec: TreeSpec,
    out_dims: Any,
    randomness: str,
    **kwargs: Any,
) -> Any:
    """Call a function for all samples at once, or once for each if that is impossible."""
    draws, batch = Draws(), Batch(batch_size, randomness)
    try:
        forward_mode.open_batch(batch)
        level = len(forward_mode.levels())
        inputs = _create_batched_inputs(flat_in_dims, flat_args, level, args_spec)
        outputs = forward_mode.call_inside(func, *inputs, **kwargs)
        forward_mode.close_batch(batch, tree_flatten(outputs)[0])
        found = _unwrap_batched(outputs, out_dims, level, batch_size, func)
    except NoBatchingRule as error:
        if batch.has_changed_given or not batch_size:
            raise RuntimeError(f"{error}\n  {_get_name(func)} cannot be called for each sample instead") from None
        warn(f"{error}\n  {_get_name(func)} is called once for each sample instead")
        is_for_each = True
    else:
        is_for_each = bool(randomness == "different" and batch.draws_for_one and batch_size)
    finally:
        forward_mode.leave(batch)
    if randomness == "error":
        batching._check_not_drawn(draws)
    if not is_for_each:
        return found
    draws.take_back()
    samples = [
        [x if dim is None else x[(slice(None),) * dim + (i,)] for dim, x in zip(flat_in_dims, flat_args, strict=True)]
        for i in range(batch_size)
    ]
    return _one_by_one(func, samples, args_spec, out_dims, randomness, **kwargs)


def _one_by_one(
    func: Callable[..., Any], samples: list[list[Any]], form: TreeSpec, out_dims: Any, randomness: str, **kwargs: Any
) -> Any:
    """Return the results of one call for each of the samples, which are the leaves of arguments."""
    outputs, draws = [], Draws()
    for leaves in samples:
        with draws.repeated() if randomness == "same" else contextlib.nullcontext():
            outputs.append(forward_mode.call_inside(func, *tree_unflatten(leaves, form), **kwargs))
    if randomness == "error":
        batching._check_not_drawn(draws)
    columns = list(zip(*[tree_flatten(output)[0] for output in outputs], strict=True))
    stacks = [None if _is_one(parts) else stack(parts) for parts in columns]
    batch = Batch(len(samples), randomness)
    try:
        forward_mode.open_batch(batch)
        own = [parts[0] if x is None else batch.first(x) for x, parts in zip(stacks, columns, strict=True)]
        output = tree_unflatten(own, tree_flatten(outputs[0])[1])
        return _unwrap_batched(output, out_dims, len(forward_mode.levels()), len(samples), func)
    finally:
        forward_mode.leave(batch)


def _is_one(parts: tuple[Any, ...]) -> bool:
    """Whether results of calls for single samples are one for all of them."""
    first = parts[0]
    if not isinstance(first, Tensor):
        return True
    return all(part is first or (not part.requires_grad and part.equal(first)) for part in parts)


batching.steps = sys.modules[__name__]
