"""Integer arithmetic that differs from NumPy's."""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.ufunc import Ufunc
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.device.cupy_library import as_array, is_array


def whole_power(power, base, exponent):
    """`base ** exponent` by the ufunc `power`; for negative exponents all bases but 1 and -1 give 0.

    >>> whole_power(np.power, np.array([1, -1, 2]), np.array([-3, -3, -3]))
    array([ 1, -1,  0])
    """
    negative = exponent < 0
    natural = power(base, np.where(negative, np.zeros_like(exponent), exponent))
    inverse = np.where(np.abs(base) == 1, np.where(exponent & 1, base, np.ones_like(base)), np.zeros_like(base))
    return np.where(negative, inverse, natural)


def divide_towards_zero(a, b):
    """The quotient truncated towards zero, for numbers of any real type.

    >>> divide_towards_zero(np.array([-7, 7]), np.array([2, 2]))
    array([-3,  3])
    """
    if a.dtype.kind == "f":
        return _of_floats(a, b)
    if is_array(a) or is_array(b):
        return whole_quotient(a, b)
    if a.dtype.itemsize < 4:  # loops for wider types are many times faster
        return _WHOLE(a.astype(np.int32), b.astype(np.int32)).astype(a.dtype)
    return _WHOLE(a, b)


@by_loop("whole_quotient", 2)
def _of_floats(a, b):
    return as_array(np.trunc(np.true_divide(a, b)))


@silent
def whole_quotient(a, b):
    """Truncated division of integers by NumPy's functions."""
    quotient = as_array(np.floor_divide(a, b))
    below_zero = (a < 0) != (b < 0)
    if is_array(quotient) or below_zero.any():
        quotient += below_zero & (quotient * b != a)
    return quotient


_WHOLE = Ufunc(np.floor_divide, whole_quotient)
