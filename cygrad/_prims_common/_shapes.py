"""Facts of shapes, strides and dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cygrad import Tensor

__all__ = [
    "apply_perm",
    "canonicalize_dim",
    "canonicalize_dims",
    "compute_reduction_output_shape",
    "compute_required_storage_length",
    "extract_dims_from_varargs",
    "extract_shape",
    "extract_shape_from_varargs",
    "infer_size",
    "infer_size_shapes",
    "invert_perm",
    "is_expandable_to",
    "is_same_shape",
    "is_valid_permutation",
    "make_channels_last_strides_for",
    "make_contiguous_strides_for",
    "reduction_dims",
    "set_correction",
    "validate_dim_length",
    "validate_idx",
    "validate_shape",
]


def validate_dim_length(length: int) -> None:
    """Raise RuntimeError for a negative number of elements."""
    if length < 0:
        raise RuntimeError(f"Received an invalid length {length}: a dimension has 0 elements or more")


def validate_shape(shape: Sequence[int]) -> None:
    """Raise RuntimeError for a shape with a negative number."""
    for length in shape:
        validate_dim_length(length)


def validate_idx(rank: int, idx: int) -> None:
    """Raise AssertionError unless `idx` is one of `rank` dimensions; a scalar has one."""
    if not (idx >= 0 and (idx < rank or idx == rank == 0)):
        raise AssertionError(f"idx {idx} is out of bounds for rank {rank}")


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """Return a dimension counted from the front. Raises IndexError for one that a tensor of `rank` does not have.

    >>> from cygrad._prims_common import canonicalize_dim
    >>> canonicalize_dim(3, -1)
    2
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Return one or several dimensions counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, each, wrap_scalar) for each in indices)


def is_valid_permutation(rank: int, perm: Sequence[int]) -> bool:
    """Whether each dimension comes once."""
    return isinstance(perm, Sequence) and sorted(perm) == list(range(rank))


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are equal."""
    return tuple(a) == tuple(b)


def apply_perm(inp: Sequence[Any], perm: Sequence[int]) -> list[Any]:
    """Return the items in another order: the one at `perm[i]` is moved to place i."""
    return [inp[place] for place in perm]


def invert_perm(perm: Sequence[int]) -> list[int]:
    """Return the order that undoes another."""
    return sorted(range(len(perm)), key=perm.__getitem__)


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """Return the dimensions to reduce: all for None. Raises RuntimeError for one that comes twice."""
    if dims is None:
        return tuple(range(len(shape)))
    found = tuple(canonicalize_dim(len(shape), each) for each in dims)
    if len(found) != len(set(found)):
        raise RuntimeError("duplicate value in the list of dims")
    return found


def compute_reduction_output_shape(shape: Sequence[int], dimensions: Sequence[int]) -> tuple[int, ...]:
    """Return the shape without the reduced dimensions, which are counted from the front."""
    for each in dimensions:
        validate_idx(len(shape), each)
    return tuple(length for place, length in enumerate(shape) if place not in dimensions)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Return the strides of elements in the order of rows, or of columns in the last two dimensions.

    >>> from cygrad._prims_common import make_contiguous_strides_for
    >>> make_contiguous_strides_for((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    found = tuple(reversed(strides))
    if row_major or len(shape) < 2:
        return found
    return (*found[:-2], 1, max(shape[-2], 1))


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of images of 1, 2 or 3 dimensions whose channels come last in memory.

    Raises RuntimeError for other numbers of dimensions.
    """
    if not 3 <= len(shape) <= 5:
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    order = (*range(2, len(shape)), 1)
    strides, step = [0] * len(shape), 1
    for place in reversed((0, *order)):
        strides[place] = step
        step *= shape[place]
    return tuple(strides)


def compute_required_storage_length(shape: Sequence[int], strides: Sequence[int], storage_offset: int) -> int:
    """Return how many elements of memory a tensor reaches."""
    if 0 in shape:
        return 0
    return 1 + storage_offset + sum((length - 1) * step for length, step in zip(shape, strides))


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """Return the shape with the number that stands for -1. Raises RuntimeError if the elements do not fit."""
    rest = math.prod(each for each in shape if each != -1)
    if -1 not in shape:
        if rest != numel:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return tuple(shape)
    if list(shape).count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if rest == 0 == numel:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if rest == 0 or numel % rest:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(numel // rest if each == -1 else each for each in shape)


def infer_size_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that two shapes are broadcast to. Raises RuntimeError if they cannot be."""
    ndim, found = max(len(a), len(b)), []
    for place in reversed(range(ndim)):
        x, y = (shape[place - ndim + len(shape)] if place - ndim + len(shape) >= 0 else 1 for shape in (a, b))
        if x != y and 1 not in (x, y):
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-jagged dimension {place}"
            )
        found.append(y if x == 1 else x)
    return tuple(reversed(found))


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Whether a tensor of a shape can be expanded to another."""
    return len(shape) <= len(desired) and all(
        x in (1, y) for x, y in zip(reversed(shape), reversed(desired), strict=False)
    )


def extract_dims_from_varargs(dims: Any) -> Any:
    """Return the dimensions that were passed one by one or as a sequence."""
    return dims[0] if dims and isinstance(dims[0], Sequence) else dims


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> tuple[int, ...]:
    """Return the shape that was passed number by number or as a sequence. Raises RuntimeError for negative numbers."""
    found = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if validate:
        validate_shape(found)
    return tuple(found)


def extract_shape(*args: object, allow_cpu_scalar_tensors: bool) -> Any:
    """Return the shape of the tensors among arguments; None if there is none, or if they have several.

    With `allow_cpu_scalar_tensors`, tensors without dimensions count only if there are no others.
    """
    shapes = [each.shape for each in args if isinstance(each, Tensor)]
    if allow_cpu_scalar_tensors:
        shapes = [each for each in shapes if len(each)] or shapes[:1]
    return shapes[0] if shapes and all(each == shapes[0] for each in shapes) else None


def set_correction(unbiased: bool | None = None, correction: float | None = None) -> float:
    """Return the correction of a variance: 1 by default, and for `unbiased=True`. Raises RuntimeError for both."""
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        return 0.0 if unbiased is False else 1.0
    if not isinstance(correction, (int, float)):
        raise ValueError("correction argument should be integer or float")
    return float(correction)
