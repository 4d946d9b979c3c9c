"""Element repetition on GPUs; see `_kernels/cpu/shape/rearranging.py`."""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.reduction.searching import searchsorted


def repeated_indices(counts, total):
    """Repeat each index of a vector of counts as often as its count. Waits for the GPU if `total` is None."""
    if not counts.size:
        return cupy().zeros(0, counts.dtype)
    ends = cupy().cumsum(counts, dtype=np.int64)
    places = cupy().arange(int(ends[-1]) if total is None else total)
    return searchsorted(ends, places, "right").astype(counts.dtype, copy=False)
