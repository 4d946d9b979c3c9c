"""Tensors as the arrays that engines move and reduce.

Engines take contiguous arrays, and reduce dtypes of NumPy's own only; for those of GPUs, the arrays are tensors. A
tensor that is not so travels as a copy, and a function writes the copy back when the transfer is finished: a `Parcel`
has both.
"""

from typing import Any, NamedTuple

import numpy as np

from cygrad import bool as boolean
from cygrad import cat, float32, strided, uint8
from cygrad.autograd.grad_mode import no_grad
from cygrad.distributed._c10d.reduce_ops import RedOpType, kind_of

__all__ = ["Parcel", "apart", "joined", "moved", "reduced", "reduction"]

_OPS = {
    RedOpType.SUM: "sum", RedOpType.AVG: "sum", RedOpType.PRODUCT: "product", RedOpType.MIN: "min",
    RedOpType.MAX: "max", RedOpType.BAND: "band", RedOpType.BOR: "bor", RedOpType.BXOR: "bxor",
}  # fmt: skip
_OF_BOOLS = {"sum": "bor", "max": "bor", "product": "band", "min": "band"}


class Parcel(NamedTuple):
    """A one-dimensional contiguous array, and what writes it to the tensor; None if they share memory."""

    array: Any
    write: Any


def reduction(op, tensor):
    """The engine's name for a reduction of tensors like this one; for bools, "sum" means "or"."""
    name = _OPS[kind_of(op)]
    return _OF_BOOLS.get(name, name) if tensor.dtype is boolean else name


def _elements(tensor, writes, on_device):
    """The tensor's elements as an array for the engine, and what writes them back; None if they share memory."""
    if tensor.layout is not strided:
        raise ValueError("Tensors must be dense\n  to fix it: call to_dense() before")
    array, back = None, None
    if not (on_device or tensor.is_cuda or tensor.dtype.is_complex or tensor.is_neg()):
        array = tensor.detach().numpy()  # most tensors: their own memory
    if array is None or not array.flags.c_contiguous:
        plain = _dense(tensor, on_device)
        array, back = _array(plain, on_device), _written_back(tensor, plain, writes)
    elif array.ndim != 1:
        array = array.reshape(-1)
    if writes and not _is_writable(array):
        _copy(tensor, tensor)  # raises the error of a tensor that must not be written
    return array, back


def apart(input, output):
    """What is sent, as a copy where it shares memory with what is received, which MPI forbids."""
    if isinstance(input, np.ndarray) and isinstance(output, np.ndarray) and np.may_share_memory(input, output):
        return input.copy()
    return input


def _dense(tensor, on_device):
    """The tensor as a contiguous one on the engine's device, itself where it is so already."""
    plain = tensor.detach()
    if plain.is_cuda and not on_device:
        plain = plain.cpu()
    return plain.resolve_conj().resolve_neg().contiguous()


def _array(tensor, on_device):
    return tensor.reshape(-1) if on_device else tensor.numpy().reshape(-1)


def _bytes_of(array):
    return array.view(np.uint8 if isinstance(array, np.ndarray) else uint8)


def _written_back(tensor, plain, writes):
    """What copies `plain` to the tensor, if it is another one and is written to."""
    if not writes:
        return None
    if plain.data_ptr() == tensor.data_ptr():
        return None
    return lambda: _copy(tensor, plain)


def _copy(target, source):
    """Copy what autograd does not see, as the memory is written from elsewhere."""
    with no_grad():
        target.detach().copy_(source)


def moved(tensor, writes=True, on_device=False):
    """The bytes of a tensor."""
    array, back = _elements(tensor, writes, on_device)
    return Parcel(_bytes_of(array), back)


def _is_writable(array):
    return not isinstance(array, np.ndarray) or array.flags.writeable


def reduced(tensor, op, size, writes=True, on_device=False):
    """A tensor's elements for a reduction over `size` processes: narrow floats as float32, bools as bytes.

    Writing divides first where the mean is asked for.
    """
    array, back = _elements(tensor, writes, on_device)
    if tensor.dtype is boolean:
        return Parcel(_bytes_of(array), back)
    narrow = array
    if on_device and str(array.dtype).startswith("torch.float8"):
        array = array.to(float32)
    elif not on_device and array.dtype.isbuiltin != 1:
        array = array.astype(np.float32)
    is_mean = kind_of(op) is RedOpType.AVG
    if not writes or (back is None and array is narrow and not is_mean):
        return Parcel(array, None)

    def write():
        nonlocal array
        if is_mean:
            array /= size
        if array is not narrow:
            narrow[...] = array
        if back is not None:
            back()

    return Parcel(array, write)


def joined(tensors, into, writes):
    """Parcels of several tensors as one array, made by `into` from each tensor."""
    parcels = [into(tensor, writes) for tensor in tensors]
    if len(parcels) == 1:
        return parcels[0]
    arrays = [parcel.array for parcel in parcels]
    whole = np.concatenate(arrays) if isinstance(arrays[0], np.ndarray) else cat(arrays)
    if not writes:
        return Parcel(whole, None)

    def write():
        begin = 0
        for parcel in parcels:
            parcel.array[...] = whole[begin : begin + len(parcel.array)]
            begin += len(parcel.array)
            if parcel.write is not None:
                parcel.write()

    return Parcel(whole, write)
