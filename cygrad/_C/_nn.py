"""The functions of `torch._C._nn`: those of `ops.aten`, where reductions are codes, and of `nn.functional`."""

from typing import Any

import cygrad
from cygrad.nn import functional as F
from cygrad.nn.utils.rnn import pad_sequence
from cygrad.ops._aten import functions

__all__ = ["_parse_to", "flatten_dense_tensors", "pad_sequence", "unflatten_dense_tensors"]


def _parse_to(
    device: Any = None, dtype: Any = None, non_blocking: bool = False, copy: bool = False, *, memory_format: Any = None
) -> tuple[Any, Any, bool, Any]:
    """Return what the arguments of `Module.to` ask for: (device, dtype, non_blocking, memory_format).

    >>> import cygrad
    >>> cygrad._C._nn._parse_to(cygrad.float16)
    (None, torch.float16, False, None)
    """
    if isinstance(device, cygrad.Tensor):
        device, dtype = device.device, device.dtype
    elif isinstance(device, cygrad.dtype):
        if isinstance(dtype, bool):
            non_blocking = dtype
        device, dtype = None, device
    place = None if device is None else cygrad.device(device)
    return place, dtype, non_blocking, memory_format


def flatten_dense_tensors(tensors: Any) -> Any:
    """Return the elements of tensors one after the other."""
    return cygrad.cat([tensor.reshape(-1) for tensor in tensors])


def unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple[Any, ...]:
    """Return parts of `flat` in the shapes of `tensors`, as views."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors))


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else functions.get(name) or getattr(F, name, None)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
