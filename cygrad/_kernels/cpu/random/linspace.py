"""Evenly spaced numbers (arange, linspace). `library` is NumPy, or CuPy for arrays on the current GPU."""

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.loop_table import LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.platform.thresholds import PIECE

SPACED = LOOPS.SPACED
_MOST = 2**31  # numbers that the loop can count


def _by_loop(library, first, second, count, dtype, from_first):
    """Compute by the loop of linspace.h; None if there is none."""
    if library is not np or dtype.char not in "fd" or not 0 < count < _MOST:
        return None
    out = new_array((count,), dtype.num)
    if not loop_table.has_loops(out):
        return None
    loop_table.run(SPACED, (out, np.array((first, second), float)), (count, from_first), 0, count, PIECE)
    return out


def steps_from(library, low, by, count, dtype):
    """`count` numbers low, low + by, ..., each rounded once."""
    found = _by_loop(library, low, by, count, dtype, True)
    return _steps_by_library(library, low, by, count, dtype) if found is None else found


@silent
def _steps_by_library(library, low, by, count, dtype):
    steps = library.arange(count, dtype=np.int64 if dtype.kind in "iu" else np.float64)
    if by != 1:
        steps *= by
    steps += low
    return steps.astype(dtype, copy=False)


def evenly_spaced(library, low, high, count, dtype):
    """Evenly spaced from both ends towards the middle, so that both ends are exact."""
    found = _by_loop(library, low, high, count, dtype, False)
    return _evenly_by_library(library, low, high, count, dtype) if found is None else found


@silent
def _evenly_by_library(library, low, high, count, dtype):
    compute = np.dtype(np.float64 if dtype.kind in "iu" or dtype.itemsize < 4 else dtype)
    array = library.empty(count, compute)
    if count == 0:
        return array.astype(dtype, copy=False)
    low, high = compute.type(low), compute.type(high)
    step = (high - low) / compute.type(count - 1) if count > 1 else compute.type(0)
    half = max(count // 2, 1)
    steps = library.arange(max(half, count - half)).astype(compute)
    steps *= step
    library.add(low, steps[:half], out=array[:half])
    library.subtract(high, steps[: count - half][::-1], out=array[half:])
    return array.astype(dtype, copy=False)
