"""Matrix exponentials on GPUs, for a whole stack at once."""

import numpy as np

from cygrad._kernels.cpu.linalg.matrix_exponential import THETA, pade
from cygrad._kernels.device.cupy_library import cupy


def matrix_exp(a):
    """e^A; NaN for matrices with NaN or inf. Waits for the GPU once, for the number of squarings."""
    if not a.size:
        return a.copy()
    if a.dtype.char not in "fdFD":
        return matrix_exp(a.astype(np.float32)).astype(a.dtype)
    theta = THETA["f" if a.dtype.char in "fF" else "d"]
    degree = max(theta)
    norms = cupy().abs(a).sum(-2).max(-1)
    finite = cupy().isfinite(norms)
    steps = cupy().ceil(cupy().log2(cupy().maximum(norms / theta[degree], 1)))
    steps = cupy().where(finite, steps, norms.dtype.type(0))
    scale = cupy().exp2(-steps)[..., None, None]
    result = pade(cupy().where(finite[..., None, None], a, a.dtype.type(0)) * scale, degree)
    for i in range(int(steps.max())):
        result = cupy().where((steps > i)[..., None, None], result @ result, result)
    return cupy().where(finite[..., None, None], result, a.dtype.type(np.nan))
