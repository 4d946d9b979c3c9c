"""Conversions between complex arrays and the real arrays of their parts, on the same memory."""

import numpy as np

from cygrad._kernels.cpu.base.arrays import copy_array
from cygrad._kernels.cpu.base.elementary import COS, MULTIPLY, SIN, arctan2
from cygrad._kernels.cpu.base.view_geometry import restride
from cygrad._kernels.device.cupy_library import as_array, is_array
from cygrad._kernels.tape.calls import noted

_REAL = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_COMPLEX: dict = {real: of_parts for of_parts, real in _REAL.items()}


def real_type(dtype):
    """The type of the parts of a complex type."""
    return _REAL[dtype]


def as_parts(a):
    """View a complex array as real, with a last dimension of length 2 for real and imaginary part."""
    return restride(a.real, (*a.shape, 2), (*a.strides, a.itemsize // 2), 0)


@noted
def from_parts(a):
    """The inverse of `as_parts`; the two parts must be adjacent in memory."""
    dtype = _COMPLEX[a.dtype]
    return a.view(dtype)[..., 0] if a.size else np.empty(a.shape[:-1], dtype, like=a)


def angle(a):
    """The angle of complex numbers; for real ones 0 or pi."""
    if a.dtype.kind == "c":
        return arctan2(a.imag, a.real)
    angles = as_array((a < 0) * a.dtype.type(np.pi))
    np.copyto(angles, a, where=np.isnan(a))
    return angles


def joined(real, imag):
    """A complex array from its parts, which broadcast."""
    result = _blank(real, imag)
    if is_array(result):
        result.real = real
        result.imag = imag
    else:
        copy_array(result.real, np.asarray(real))
        copy_array(result.imag, np.asarray(imag))
    return result


def _blank(real, imag):
    """An uninitialized complex array for these parts."""
    shape = real.shape
    if imag.shape != shape:
        shape = np.broadcast_shapes(shape, imag.shape)
    elif type(real) is np.ndarray:
        return np.empty_like(real, _COMPLEX[real.dtype])  # in its memory order
    return np.empty(shape, _COMPLEX[real.dtype], like=real if is_array(real) else imag)


def polar(size, angle):
    """A complex array from its absolute values and angles, which broadcast."""
    if type(size) is type(angle) is np.ndarray:
        result, part = _blank(size, angle), COS(angle)
        MULTIPLY(size, part, out=result.real)
        MULTIPLY(size, SIN(angle, out=part), out=result.imag)
        return result
    return joined(size * np.cos(angle), size * np.sin(angle))
