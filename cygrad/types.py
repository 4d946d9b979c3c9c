"""Type aliases for annotations."""

import builtins
from typing import TypeAlias

from cygrad import Size, Tensor, device, dtype

__all__ = ["Device", "Number"]

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = device | str | builtins.int | None
_dtype, _device, _size, _int, _float, _bool = dtype, device, Size | list | tuple, int, float, bool
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]
