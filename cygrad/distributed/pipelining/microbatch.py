"""Cutting the arguments of a step into microbatches, and joining their results."""

from typing import Any

import cygrad
from cygrad import Tensor

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """The dimension along which a tensor is cut.

    >>> from cygrad.distributed.pipelining.microbatch import TensorChunkSpec
    >>> TensorChunkSpec.from_tuple((0, 1))[1].split_dim, TensorChunkSpec.from_dict({"mask": 1})["mask"].split_dim
    (1, 1)
    """

    def __init__(self, split_dim):
        self.split_dim = split_dim

    def __repr__(self):
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self):
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims):
        """A `TensorChunkSpec` for each of these dimensions."""
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims):
        """A `TensorChunkSpec` for each of these dimensions, by name."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """The whole value goes to each microbatch."""


def split_args_kwargs_into_chunks(args, kwargs, chunks, args_chunk_spec=None, kwargs_chunk_spec=None):
    """Cut arguments into `chunks` parts: tensors along the first dimension unless a spec says otherwise.

    Other values are in each part. Raises RuntimeError if a tensor is too short.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining.microbatch import split_args_kwargs_into_chunks
    >>> split_args_kwargs_into_chunks((cygrad.arange(4), "mean"), {"scale": 2}, 2)
    ([(tensor([0, 1]), 'mean'), (tensor([2, 3]), 'mean')], [{'scale': 2}, {'scale': 2}])
    """
    specs = args_chunk_spec or (None,) * len(args)
    if len(specs) != len(args):
        raise ValueError(f"args and args_chunk_spec differ in length: {len(args)} and {len(specs)}")
    named_specs = kwargs_chunk_spec or {}
    parts = [_parts(value, spec, chunks) for value, spec in zip(args, specs, strict=True)]
    named = {name: _parts(value, named_specs.get(name), chunks) for name, value in kwargs.items()}
    return (
        [tuple(part[index] for part in parts) for index in range(chunks)],
        [{name: part[index] for name, part in named.items()} for index in range(chunks)],
    )


def _parts(value, spec, count):
    """A list with as many parts of a value."""
    if isinstance(value, (tuple, list)):
        specs = spec if isinstance(spec, (tuple, list)) else [spec] * len(value)
        parts = [_parts(each, its_spec, count) for each, its_spec in zip(value, specs, strict=True)]
        return [type(value)(part[index] for part in parts) for index in range(count)]
    if isinstance(value, dict):
        specs_by_key = spec if isinstance(spec, dict) else dict.fromkeys(value, spec)
        found = {key: _parts(each, specs_by_key.get(key), count) for key, each in value.items()}
        return [{key: part[index] for key, part in found.items()} for index in range(count)]
    if not isinstance(value, Tensor) or isinstance(spec, _Replicate):
        return [value] * count
    dim = 0 if spec is None else spec.split_dim
    if value.dim() == 0 or value.shape[dim] < count:
        length = value.shape[dim] if value.dim() else 1
        raise RuntimeError(f"a batch of {length} cannot be cut into {count} microbatches")
    return list(value.tensor_split(count, dim))


def merge_chunks(chunks: list[Any], chunk_spec):
    """Join what microbatches have returned: tensors along the first dimension, or that of the spec.

    Of other values, the first one is returned.

    >>> import cygrad
    >>> from cygrad.distributed.pipelining.microbatch import merge_chunks
    >>> merge_chunks([(cygrad.ones(1), 3), (cygrad.zeros(1), 3)], None)
    (tensor([1., 0.]), 3)
    """
    first = chunks[0]
    if isinstance(first, (tuple, list)):
        specs = chunk_spec if isinstance(chunk_spec, (tuple, list)) else [chunk_spec] * len(first)
        return type(first)(merge_chunks(list(each), spec) for each, spec in zip(zip(*chunks, strict=True), specs))
    if isinstance(first, dict):
        by_key = chunk_spec if isinstance(chunk_spec, dict) else dict.fromkeys(first, chunk_spec)
        return {key: merge_chunks([chunk[key] for chunk in chunks], by_key.get(key)) for key in first}
    if not isinstance(first, Tensor):
        return first
    if first.dim() == 0:
        return cygrad.stack(chunks)
    return cygrad.cat(chunks, 0 if chunk_spec is None else chunk_spec.split_dim)
