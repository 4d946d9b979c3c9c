"""Arithmetic of integers where NumPy's is another."""

import numpy as np

from cygrad._kernels.fused import by_loop
from cygrad._kernels.gpu.library import as_array, is_array

EXACT = 1 << 53  # integers below it are float64, and a quotient of two of them is never rounded to the next integer


def whole_power(power, base, exponent):
    """`base ** exponent` by the ufunc `power`; to a negative power all but 1 and -1 become 0.

    >>> whole_power(np.power, np.array([1, -1, 2]), np.array([-3, -3, -3]))
    array([ 1, -1,  0])
    """
    negative = exponent < 0
    natural = power(base, np.where(negative, np.zeros_like(exponent), exponent))
    inverse = np.where(np.abs(base) == 1, np.where(exponent & 1, base, np.ones_like(base)), np.zeros_like(base))
    return np.where(negative, inverse, natural)


@by_loop("whole_quotient", 2)
def divide_towards_zero(a, b):
    """The quotient without what is behind the point, of numbers of any real type.

    >>> divide_towards_zero(np.array([-7, 7]), np.array([2, 2]))
    array([-3,  3])
    """
    with np.errstate(all="ignore"):
        if a.dtype.kind == "f":
            return as_array(np.trunc(np.true_divide(a, b)))
        if (found := _by_doubles(a, b)) is not None:
            return found
        quotient = as_array(np.floor_divide(a, b))
        below_zero = (a < 0) != (b < 0)
        if is_array(quotient) or below_zero.any():
            quotient += below_zero & (quotient * b != a)
        return quotient


def _by_doubles(a, b):
    """The quotients by float64, which are exact up to EXACT; None where they may not be, or are not faster."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.dtype != np.int64 or b.dtype != np.int64:
        return None
    if not a.size or not b.size or min(a.min(), b.min()) <= -EXACT or max(a.max(), b.max()) >= EXACT or not b.all():
        return None
    quotient = np.empty(np.broadcast_shapes(a.shape, b.shape), np.int64)
    return np.true_divide(a, b, out=quotient, casting="unsafe")  # the cast leaves out the fraction
