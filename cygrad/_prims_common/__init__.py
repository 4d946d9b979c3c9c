"""Facts of shapes and dtypes that PyTorch's reference implementations ask for, and libraries with them.

The names for annotations (`TensorLikeType`, `ShapeType`, ...) are those types.
"""

from collections.abc import Sequence
from typing import TypeAlias

import cygrad
from cygrad import Tensor
from cygrad._prims_common._dtypes import *  # noqa: F403
from cygrad._prims_common._shapes import *  # noqa: F403

TensorLike: TypeAlias = Tensor
TensorLikeType: TypeAlias = Tensor
TensorSequenceType: TypeAlias = list[Tensor] | tuple[Tensor, ...]
ShapeType: TypeAlias = cygrad.Size | list[int] | tuple[int, ...]
StrideType: TypeAlias = list[int] | tuple[int, ...]
Dim: TypeAlias = int
DimsSequenceType: TypeAlias = list[int] | tuple[int, ...]
DimsType: TypeAlias = int | list[int] | tuple[int, ...]
Number: TypeAlias = bool | int | float | complex
NumberType: TypeAlias = bool | int | float | complex
NumberTypeType: TypeAlias = type[bool] | type[int] | type[float] | type[complex]
RealNumberType: TypeAlias = bool | int | float
TensorOrNumberLikeType: TypeAlias = Tensor | bool | int | float | complex
DeviceLikeType: TypeAlias = str | cygrad.device | int
IntLike = (int, cygrad.SymInt)
FloatLike = (float, cygrad.SymFloat)
BoolLike = (bool, cygrad.SymBool)


def is_contiguous(a: Tensor, false_if_dde: bool = False) -> bool:
    """Whether the elements lie one after the other in memory."""
    return a.is_contiguous()


def is_cpu_scalar_tensor(a: object) -> bool:
    """Whether this is a tensor on the CPU without dimensions."""
    return isinstance(a, Tensor) and a.ndim == 0 and a.device.type == "cpu"


def suggest_memory_format(x: Tensor) -> cygrad.memory_format:
    """Return the memory format that the elements lie in: contiguous, or with channels last."""
    for found in (cygrad.contiguous_format, cygrad.channels_last, cygrad.channels_last_3d):
        if found.ndim in (None, x.ndim) and x.is_contiguous(memory_format=found):
            return found
    return cygrad.contiguous_format


def canonicalize_device(device: DeviceLikeType) -> cygrad.device:
    """Return a device for its name."""
    return device if isinstance(device, cygrad.device) else cygrad.device(device)


def device_or_default(device: DeviceLikeType | None) -> DeviceLikeType:
    """Return the device, or the default one for None."""
    return cygrad.get_default_device() if device is None else device


def check_same_device(*args: object, allow_cpu_scalar_tensors: bool) -> None:
    """Raise RuntimeError if tensors are on several devices."""
    tensors = [each for each in args if isinstance(each, Tensor)]
    if allow_cpu_scalar_tensors:
        tensors = [each for each in tensors if not is_cpu_scalar_tensor(each)]
    for each in tensors[1:]:
        if each.device != tensors[0].device:
            raise RuntimeError(
                f"Tensor on device {each.device} is not on the expected device {tensors[0].device}!"
                "\n  move one, as in x.to(y.device)"
            )


def check_same_shape(*args: object, allow_cpu_scalar_tensors: bool) -> None:
    """Raise RuntimeError if tensors have several shapes."""
    tensors = [each for each in args if isinstance(each, Tensor)]
    if allow_cpu_scalar_tensors:
        tensors = [each for each in tensors if not is_cpu_scalar_tensor(each)]
    for each in tensors[1:]:
        if each.shape != tensors[0].shape:
            raise RuntimeError(f"Shape {each.shape} is not the expected shape {tensors[0].shape}!")


def mask_tensor(mask: Tensor, t: Tensor) -> Tensor:
    """Return `t` with 0, or False, where `mask` is False."""
    return mask.logical_and(t) if t.dtype is cygrad.bool else cygrad.where(mask, t, 0)


def prod(xs: Sequence[int]) -> int:
    """Return the product of numbers, 1 for none."""
    result = 1
    for each in xs:
        result *= each
    return result
