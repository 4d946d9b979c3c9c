"""Index parts that are neither ints, slices nor tensors, and the errors for invalid indices."""

import numpy as np

from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.forward_mode import has_samples
from cygrad._core.types.dtypes import dtype_by_num
from cygrad._kernels.cpu.indexing import indexing, scatter
from cygrad._kernels.device import gpu_forms
from cygrad._ops.base.arguments import type_name
from cygrad._ops.base.checks.common import explanation as explanation
from cygrad._ops.base.creation import from_values

BOOLEAN_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with "
    "a boolean mask.\n  each sample may select a different number of elements: use torch.where, or multiply by the mask"
)

TYPES = ("int64", "int32", "bool", "uint8")

# -- reading --


def is_batched(index):
    """Whether this scalar index differs between the samples of a batch. Raises RuntimeError if it is also boolean."""
    if not has_samples(index):
        return False
    if index.dtype.name in ("bool", "uint8"):
        raise RuntimeError(BOOLEAN_MASK)
    return True


def unusual_part(part):
    """Convert a part of an index to an int or a tensor, if it is none of int, slice, None, Ellipsis and tensor."""
    if isinstance(part, np.ndarray):  # of any dtype, unlike a tensor; fractions are truncated
        return tensor_of(part if part.dtype.name in TYPES else part.astype(np.int64))
    if isinstance(part, str):
        raise TypeError("new(): invalid data type 'str'")
    if is_sequence(part):
        index = from_values(list(part), None, False, "index")
        return index if array_of(index).dtype.kind in "bi" else index.long()
    if hasattr(part, "__index__") and not isinstance(part, np.bool_):
        return part.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type_name(part)})"
    )


def is_sequence(value):
    return not isinstance(value, (dict, Tensor, np.generic)) and (
        hasattr(type(value), "__getitem__") and hasattr(type(value), "__len__")
    )


def is_like_tuple(index):
    """Whether PyTorch treats this list as a tuple, because its elements are not numbers."""
    if not is_sequence(index) or len(index) >= 32:
        return False
    if not any(part is None or part is ... or isinstance(part, (Tensor, slice)) or is_sequence(part) for part in index):
        return False
    warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; "
        "use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
        "x[torch.tensor(seq)], which will result either in an error or a different result"
    )
    return True


def put_indices(t, indices):
    """Check the index tensors given to `index_put` and return them."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"index_put(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    count = 0
    for i, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(index).__name__}")
        if index.dtype.name not in TYPES:
            raise wrong_type()
        is_mask = index.dtype.name in ("bool", "uint8")
        if is_mask and index.ndim == 0:
            raise IndexError("index_put(): a mask must have dimensions")
        count += index.ndim if is_mask else 1
    if count > t.ndim:
        raise IndexError(f"too many indices for tensor of dimension {t.ndim} (got {count})")
    if count == 0:
        raise RuntimeError("index_put(): at least one index is needed")
    return tuple(indices)


# -- errors --


def too_many(index, ndim):
    """Return the error for more indices than dimensions."""
    if ndim == 0 and type(index) is slice:
        return IndexError("slice() cannot be applied to a 0-dim tensor.")
    if ndim == 0 and not isinstance(index, (Tensor, tuple)) and hasattr(index, "__index__"):
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    return IndexError(f"too many indices for tensor of dimension {ndim}")


def out_of_bounds(i, position, length):
    """Return the error for an int that is out of bounds."""
    return IndexError(f"index {i} is out of bounds for dimension {position} with size {length}")


def backwards():
    """Return the error for a slice with a negative step."""
    return ValueError(
        "step must be greater than zero\n  tensors cannot be sliced backwards: use `x.flip(dim)`, which copies"
    )


def wrong_type():
    """Return the error for an index tensor with an unsupported dtype."""
    return IndexError("tensors used as indices must be long, int, byte or bool tensors")


def warn_of_bytes():
    """Warn about a uint8 mask."""
    warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")


def warn_of_expanded(name):
    """Warn about a write to memory that several elements share."""
    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing, as in `tensor[mask] = value`"
    )


def check_mask(mask, shape, dim):
    """Raise IndexError if the shape of a mask differs from the dimensions that it covers, from `dim` on."""
    for i, (length, wanted) in enumerate(zip(mask, shape[dim:])):
        if length != wanted:
            raise IndexError(
                f"The shape of the mask {list(mask)} at index {i} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {dim + i}"
            )


def check_joined(indices):
    """Return the indices, with masks on a GPU converted to indices. Raises IndexError if they do not broadcast."""
    plain, dims = scatter.one_index_each(indices)
    if any(map(gpu_forms.is_array, plain)):  # convert masks here, so that the GPU is waited for only once
        indices = [dict(zip(dims, plain)).get(d) for d in range(dims[-1] + 1)]
    shapes = [index.shape for index in plain]
    if len(set(shapes)) == 1:
        return indices
    try:
        np.broadcast_shapes(*shapes)
        return indices
    except ValueError:
        text = ", ".join(str(list(shape)) for shape in shapes)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {text}"
        ) from None


def index_error(shape, indices):
    """Return the error that explains why fancy indexing failed."""
    plain, dims = scatter.one_index_each(indices)
    for place, (index, dim) in enumerate(zip(plain, dims)):
        wrong = index[(index < -shape[dim]) | (index >= shape[dim])]
        if shape[dim] == 0 and index.size:
            return IndexError("index is out of bounds for dimension with size 0")
        if wrong.size:
            return IndexError(
                f"index {wrong.flat[0]} is out of bounds for dimension {place} with size {shape[dim]}\n"
                f"  dimension {dim} of a tensor of shape {list(shape)}"
            )
    return IndexError("index out of range in self\n  an index was changed while it was used, perhaps by another thread")


def values_error(array, indices, values):
    """Return the error for values that do not broadcast to the shape of the indexing result."""
    result = array[indexing.fancy(indices)].shape
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing "
        f"result of shape {list(result)}"
    )


def check_devices(array, indices, values):
    """Raise RuntimeError for indices or values on another device than the array, where the array's library does."""
    if not gpu_forms.is_array(array) and any(map(gpu_forms.is_array, indices)):
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    if gpu_forms.is_array(array) or gpu_forms.is_array(values):
        gpu_forms.device_of([array, values])


def check_values(array, indices, values, accumulate):
    """Raise if the shape of `values` does not broadcast or its dtype differs; one value under one mask is cast."""
    try:
        result = array[indexing.fancy(indices)].shape
    except IndexError:
        raise index_error(array.shape, indices) from None
    try:
        fits = np.broadcast_shapes(values.shape, result) == result
    except ValueError:
        fits = False
    if not fits:
        raise values_error(array, indices, values)
    own, other = dtype_by_num(array.dtype.num).type_name, values.dtype.type_name
    kinds = [index.dtype.kind for index in indices if index is not None]
    if own != other and (accumulate or values.numel() != 1 or kinds != ["b"]):
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{own} for the destination and {other} for the source."
        )
