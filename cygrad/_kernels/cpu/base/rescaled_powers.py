"""Norms and variances of numbers whose powers leave the range of their type.

Note [Sums of powers]
---------------------
The square of a float32 beyond 1e19 is infinite and that of one below 1e-19 loses digits or is 0, although the norm or
the standard deviation is a number like any other. Kernels nevertheless add up plain squares, which is fastest, and look
at the sums, of which there are few: one that is infinite, NaN or tiny sends the call here. Here, numbers are first
divided by the power of two next to the largest, which is exact, and the result is multiplied by it.
"""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import as_array


def exponents(sizes):
    """For each size, the exponent by which `ldexp` brings it between 1/2 and 1; 0 if it is 0 or not finite."""
    _, exponent = np.frexp(sizes)
    return np.where(np.isfinite(sizes), -exponent, 0).astype(np.int32)


@silent
def norm(a, p, axes, keepdim):
    """The p-norm over `axes`, for any p except 0 and infinities. Small numbers decide if p is negative."""
    size = as_array(np.abs(a))
    if not size.size:
        return as_array(np.power(size.sum(axes, size.dtype, keepdims=keepdim), 1 / p))
    extreme = size.max(axes, keepdims=True) if p > 0 else size.min(axes, keepdims=True)
    exponent = exponents(extreme)
    size = as_array(np.ldexp(size, exponent))
    powers = np.square(size, out=size) if p == 2 else np.power(size, p, out=size)
    total = powers.sum(axes, keepdims=True)
    total = np.sqrt(total) if p == 2 else np.power(total, 1 / p)
    return _restored(total, -exponent, axes, keepdim)


@silent
def spread(a, center, axes, freedom, keepdim, is_root):
    """The sum of squared distances from `center`, divided by `freedom`, or the root of that."""
    distance = as_array(np.abs(a - center))
    if not distance.size:
        total = distance.sum(axes, distance.dtype, keepdims=True)
        return _restored(total / total.dtype.type(freedom), 0, axes, keepdim)
    exponent = exponents(distance.max(axes, keepdims=True))
    distance = as_array(np.ldexp(distance, exponent))
    total = np.square(distance, out=distance).sum(axes, keepdims=True)
    total = total / total.dtype.type(freedom)
    return (
        _restored(np.sqrt(total), -exponent, axes, keepdim)
        if is_root
        else _restored(total, -2 * exponent, axes, keepdim)
    )


def _restored(total, exponent, axes, keepdim):
    """Scale back; drop the reduced axes unless they are kept."""
    found = as_array(np.ldexp(total, exponent))
    return found if keepdim else as_array(np.squeeze(found, axes))
