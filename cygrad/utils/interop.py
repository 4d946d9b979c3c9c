"""Accepts tensors of other libraries without importing those libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor

__all__ = ["as_tensor", "is_tensor_like", "on_writable_memory"]


def is_tensor_like(value: Any) -> bool:
    """Whether a state dict may hold this as a tensor: cygrad's and PyTorch's tensors, but not arrays, as in PyTorch.

    >>> import cygrad
    >>> import numpy
    >>> from cygrad.utils.interop import is_tensor_like
    >>> is_tensor_like(cygrad.ones(2)), is_tensor_like("text")
    (True, False)
    """
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def as_tensor(value: Any) -> Tensor:
    """Return `value` as a tensor: a tensor itself, or any library's tensor or array.

    Shares memory if the other library permits it. Tensors with history are detached.

    >>> import numpy
    >>> from cygrad.utils.interop import as_tensor
    >>> as_tensor(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=torch.float64)
    """
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
    return cygrad.from_numpy(np.asarray(value))


def on_writable_memory(tensor: Tensor) -> Tensor:
    """Return the tensor; if its memory is read-only, it refers to a copy of it from now on.

    What optimizers and modules write to may have come in a pickle whose buffers belong to others, and are read-only.

    >>> import cygrad
    >>> import numpy
    >>> from cygrad.utils.interop import on_writable_memory
    >>> array = numpy.ones(2)
    >>> array.flags.writeable = False
    >>> x = on_writable_memory(cygrad.as_tensor(array))
    >>> x.add_(1), array
    (tensor([2., 2.], dtype=torch.float64), array([1., 1.]))
    """
    if tensor.device.type == "cpu" and tensor.layout is cygrad.strided and not _is_writable(tensor):
        tensor.data = tensor.detach().clone()
    return tensor


def _is_writable(tensor: Tensor) -> bool:
    with cygrad.no_grad():
        return bool(tensor.detach().resolve_conj().numpy().flags.writeable)
