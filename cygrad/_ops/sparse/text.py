"""The text of sparse tensors, as PyTorch shows it."""

from cygrad._core.tensor.tensor_str import of_parts
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.sparse.array import Compressed, Coordinates
from cygrad._ops.sparse.tensor import array

_NAMES = {
    None: ("indices", "values"),
    True: ("crow_indices", "col_indices", "values"),
    False: ("ccol_indices", "row_indices", "values"),
}


def repr_of(tensor, is_parameter_prefix=False):
    """Return the indices, the values, and what else describes the tensor."""
    a = array(tensor)
    names = _NAMES[a.is_by_row if isinstance(a, Compressed) else None]
    try:
        node = tensor.grad_fn
        name = None if node is None else node.name().rpartition("::")[2]
    except RuntimeError:  # as for dense tensors
        name = "Invalid"
    suffixes = [] if tensor.device.type == "cpu" else [f"device='{tensor.device}'"]
    suffixes += [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    if not _is_implied(tensor.dtype):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={tensor.layout}")
    if name is not None:
        suffixes.append(f"grad_fn=<{name}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    text = of_parts(dict(zip(names, a.parts)), suffixes, isinstance(a, Coordinates))
    return "Parameter containing:\n" + text if is_parameter_prefix else text


def _is_implied(dtype):
    default = get_default_dtype()
    number = "complex128" if default.name == "float64" else "complex64"
    return dtype is default or dtype.name in ("int64", "bool", number)
