"""Checks that the parts of a sparse tensor fit together. All raise RuntimeError."""

import math

import numpy as np

from cygrad._kernels.device.cupy_library import is_array


def is_checked(array, wanted):
    """Whether to compare indices with the size: always in main memory; on a GPU, which would wait, on demand."""
    return wanted or not is_array(array)


def check_numel(shape):
    """Refuse sizes of more elements than 64 bits can count: a number could not stand for each coordinate."""
    if math.prod(shape) >= 2**63:
        raise RuntimeError(f"numel: integer multiplication overflow\n  of the size {list(shape)}")


def check_coordinates(indices, values, shape, check):
    """Check `indices` (dimensions, n) and `values` (n, ...) against the shape of the tensor."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    nnz = values.shape[0] if values.ndim else 1
    if not values.ndim or indices.shape[1] != nnz:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from "
            f"values: {nnz}"
        )
    sparse_dim, dense = len(indices), values.shape[1:]
    if len(shape) != sparse_dim + len(dense):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {len(dense)}"
        )
    if tuple(shape[sparse_dim:]) != dense:
        raise RuntimeError(
            f"values has incorrect size, expected {[nnz, *shape[sparse_dim:]]}, got {list(values.shape)}\n"
            "  the last dimensions of the size are those of the values"
        )
    check_numel(shape)
    if check and indices.shape[1]:
        for dim, (row, length) in enumerate(zip(indices, shape)):
            low, high = int(row.min()), int(row.max())
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {dim}")
            if high >= length:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {length} but found index {high}"
                )


_ROWS = "crow_indices", "col_indices", "rows", "nrows", "ncols"
_COLUMNS = "ccol_indices", "row_indices", "columns", "ncols", "nrows"


def check_compressed(a, check):
    """Check the parts of a `Compressed` against each other and its shape."""
    bounds_name, plain_name, words, lines, others = _ROWS if a.is_by_row else _COLUMNS
    if a.bounds.dtype != a.plain.dtype:
        raise RuntimeError(
            f"{bounds_name} and {plain_name} must have the same dtype, bot got {_word(a.bounds)} and {_word(a.plain)}, "
            "respectively"
        )
    if a.bounds.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"{bounds_name} and {plain_name} must be an int32 or int64 type, but got {_word(a.bounds)}")
    if not a.bounds.ndim or not a.plain.ndim:
        raise RuntimeError(
            f"{bounds_name if not a.bounds.ndim else plain_name} must have dimensionality >= 1 but got 0"
        )
    n_batch, n_block = a.n_batch, a.n_block
    dense = a.values.ndim - n_batch - 1 - n_block
    if dense < 0:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={n_batch} + "
            f"{n_block}), but got "
            f"{a.values.ndim}"
        )
    if len(a.shape) != n_batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities (="
            f"{n_batch} + 2 + {dense}) but got {len(a.shape)}"
        )
    if not a.shape[:n_batch] == a.bounds.shape[:-1] == a.plain.shape[:-1] == a.values.shape[:n_batch]:
        raise RuntimeError(
            f"all batch dimensions of {bounds_name} (={list(a.bounds.shape[:-1])}), {plain_name} "
            f"(={list(a.plain.shape[:-1])}), values (={list(a.values.shape[:n_batch])}) and tensor dimensions "
            f"(={list(a.shape[:n_batch])}) must be equal to tensor batch dimensions (={list(a.shape[:n_batch])})"
        )
    sizes = list(a.shape[n_batch : n_batch + 2])
    if n_block:
        block = a.values.shape[n_batch + 1 : n_batch + 3]
        for i in range(2):
            if not block[i] or sizes[i] % block[i]:
                raise RuntimeError(
                    f"tensor shape[{n_batch + i}] (={sizes[i]}) must be divisible with blocksize[{i}] (={block[i]}) as "
                    "defined by values shape"
                )
            sizes[i] //= block[i]
    count, other = sizes if a.is_by_row else sizes[::-1]
    if a.bounds.shape[-1] != count + 1:
        raise RuntimeError(
            f"{bounds_name}.shape[-1] must be equal to the number of {words} + 1 (={count + 1}), but got "
            f"{a.bounds.shape[-1]}"
        )
    nnz = a.values.shape[n_batch]
    if a.plain.shape[-1] != nnz:
        raise RuntimeError(
            f"{plain_name}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{n_batch}], but got "
            f"{a.plain.shape[-1]}"
        )
    if check:
        _check_elements(a, bounds_name, plain_name, lines, others, nnz, other)


def _check_elements(a, bounds_name, plain_name, lines, others, nnz, other):
    if not bool((a.bounds[..., 0] == 0).all()):
        raise RuntimeError(f"`{bounds_name}[..., 0] == 0` is not satisfied.")
    if not bool((a.bounds[..., -1] == nnz).all()):
        raise RuntimeError(f"`{bounds_name}[..., -1] == nnz` is not satisfied.")
    steps = a.bounds[..., 1:] - a.bounds[..., :-1]
    if not bool(((steps >= 0) & (steps <= other)).all()):
        raise RuntimeError(f"`0 <= {bounds_name}[..., 1:] - {bounds_name}[..., :-1] <= {others}` is not satisfied.")
    if not bool(((a.plain >= 0) & (a.plain < other)).all()):
        raise RuntimeError(f"`0 <= {plain_name} < {others}` is not satisfied.")
    bounds = a.bounds.reshape(-1, a.bounds.shape[-1])
    plain = a.plain.reshape(len(bounds), nnz)  # which may have no elements
    for starts, indices in zip(bounds, plain):
        ascends = np.ones(nnz + 1, bool, like=indices)
        ascends[1:-1] = indices[1:] > indices[:-1]
        ascends[starts] = True
        if not bool(ascends.all()):
            raise RuntimeError(
                f"`{plain_name}[..., {bounds_name}[..., i - 1]:{bounds_name}[..., i]] for all i = 1, ..., {lines} are "
                "sorted and distinct along the last dimension values` is not satisfied."
            )


def _word(array):
    words = {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}
    words |= {"float32": "Float", "float64": "Double", "float16": "Half"}
    return words.get(array.dtype.name, array.dtype.name)
