"""Special functions on GPUs, by those that CuPy has under SciPy's names."""

import numpy as np

from cygrad._kernels.gpu.library import as_number, is_array


def special_function(name, function, arrays, which=None):
    """`cupyx.scipy.special.<name>` in float64, or float32 for float32; for the op `function`.

    `which` is the one to take of several results. Raises RuntimeError where CuPy has no such function.
    """
    from cupyx.scipy import special

    found = getattr(special, name, None)
    if found is None:
        raise RuntimeError(
            f"cygrad.{function} can not be computed on a GPU: CuPy has no {name}\n"
            "  move the tensors first, as in x.cpu()"
        )
    dtype = np.result_type(*(a.dtype for a in arrays if is_array(a) or isinstance(a, np.ndarray)))
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    values = found(*(a.astype(wide, copy=False) if is_array(a) else as_number(a) for a in arrays))
    return (values if which is None else values[which]).astype(dtype, copy=False)
