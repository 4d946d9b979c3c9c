"""Sums of half precision: terms are added up in float32, and each sum is rounded once.

In its own type a sum of ones stops growing at 2048 in float16, and at 256 in bfloat16.
"""

import numpy as np

from cygrad._kernels.cpu.base.arrays import cast
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import as_array

_FLOAT = np.dtype(np.float32)
FEW = 4  # rows of the target for each row that is added: with more of them, only the rows that change are widened


def is_half(a):
    """Whether this is an array in memory with elements of half precision. bfloat16 is the only type of kind "V"."""
    return a.itemsize == 2 and a.dtype.kind in "fV" and isinstance(a, np.ndarray)


def sum_type(dtype):
    """The type in which elements of `dtype` are added up and counted."""
    return _FLOAT if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def widened(a):
    """Convert an array of half precision to float32; return other values as they are."""
    return cast(a, _FLOAT.num) if isinstance(a, np.ndarray) and is_half(a) else a


@silent
def in_float32(kernel, a, *args):
    """Return `kernel(a, *args)` for `a` of half precision: computed in float32, and rounded once."""
    return cast(as_array(kernel(widened(a), *map(widened, args))), a.dtype.num)


@silent
def within_float32(change, out, *args):
    """Run `change(out, *args)`, which changes `out`, of half precision: in float32, and round once."""
    sums = widened(out)
    change(sums, *map(widened, args))
    out[...] = cast(sums, out.dtype.num)


@silent
def rows_in_float32(add, out, index, *args):
    """Run `add(out, index, *args)`, which adds to the rows `index` of a matrix of half precision: as `within_float32`.

    Raises IndexError if `out` has no such row (negative ones are invalid).
    """
    if len(index) * FEW > len(out):
        within_float32(add, out, index, *args)
        return
    changed, index = np.unique(index, return_inverse=True)
    if len(changed) and not 0 <= changed[0] <= changed[-1] < len(out):
        raise IndexError("index out of range in self")
    sums = widened(out[changed])
    add(sums, index, *map(widened, args))
    out[changed] = cast(sums, out.dtype.num)
