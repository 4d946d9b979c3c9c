"""Reductions on GPUs; takes the arguments of `_kernels/cpu/base/reduce.pyx`."""

import math

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.device.gpu_forms import in_float32
from cygrad._kernels.gpu.base.elementwise import choose
from cygrad._kernels.gpu.launch.groups import Later, waits_by
from cygrad._kernels.gpu.launch.program import wide_type
from cygrad._kernels.gpu.launch.reduction_program import folded
from cygrad._kernels.gpu.launch.row_reductions import (
    DEVIATION,
    LARGEST,
    LOGSUMEXP,
    NORMS,
    SMALLEST,
    SUM,
    VARIANCE,
    later,
    reduced,
    total,
    total_later,
)

_FEW = 16  # elements of each number of a reduction that waits: the copy of the results then takes little time
_TYPES: dict = {np.dtype(char).num: np.dtype(char) for char in "?bBhHiIlLqQefdFD"}


def _later(function, a, *how, axes, keepdim, dtype):
    """Return (work, operands) by which a reduction to few numbers may be put off (Note [Groups]), or None."""
    own = range(a.ndim) if axes is None else {axis % a.ndim for axis in axes}
    shape = tuple(1 if d in own else n for d, n in enumerate(a.shape) if keepdim or d not in own)
    return _later_of_shape(function, a, *how, shape=shape, dtype=dtype)


def _later_of_shape(function, a, *how, shape, dtype):
    if a.dtype.kind not in "fV" or dtype != a.dtype or not a.flags.c_contiguous:
        return None
    if math.prod(shape) * _FEW > a.size:
        return None

    def do(array, out):
        out.data.copy_from_device_async(function(array, *how).data, out.nbytes)

    return Later([cupy().empty(shape, a.dtype)], do), (a,)


def _of_all_later(a, axes, keepdim, scale):
    return later(SUM, a, axes, keepdim, scale) or total_later(a, axes, keepdim, scale)


def _of_all(a, axes, keepdim, scale):
    """Return `scale` times sums, where a function that may be joined with others computes them; else None."""
    found = reduced(SUM, a, axes, keepdim, scale)
    return total(a, axes, keepdim, scale) if found is None else found


def _sum_later(a, axes=None, keepdim=False, dtype=None):
    of_type = _type(dtype) or _wide(a)
    found = _of_all_later(a, axes, keepdim, 1.0) if of_type == a.dtype else None
    return found or _later(sum, a, axes, keepdim, dtype, axes=axes, keepdim=keepdim, dtype=of_type)


def _mean_later(a, axes=None, keepdim=False, dtype=None):
    of_type = _type(dtype) or a.dtype
    found = _of_all_later(a, axes, keepdim, 1 / _count(a, axes)) if of_type == a.dtype and a.size else None
    return found or _later(mean, a, axes, keepdim, dtype, axes=axes, keepdim=keepdim, dtype=of_type)


@waits_by(_sum_later)
def sum(a, axes=None, keepdim=False, dtype=None):
    """Sum over `axes`, None for all; integers and booleans are summed as int64."""
    dtype = _type(dtype) or _wide(a)
    found = _of_all(a, axes, keepdim, 1.0) if dtype == a.dtype else None
    if found is None and dtype == _wide(a):
        found = folded(a, axes, "sum", keepdim, dtype)
    return _summed(cupy().sum, a, axes, dtype, keepdim) if found is None else found


def prod(a, axes=None, keepdim=False, dtype=None):
    """Product over `axes`, with the types of `sum`."""
    return _summed(cupy().prod, a, axes, _type(dtype) or _wide(a), keepdim)


def _summed(function, a, axes, dtype, keepdim=False):
    """Accumulate half precision in single: CuPy accumulates float16 in float16 where it uses CUB."""
    if dtype.itemsize == 2 and dtype.kind in "fV":
        return function(a, axes, np.float32, keepdims=keepdim).astype(dtype)
    return function(a, axes, dtype, keepdims=keepdim)


def _type(dtype):
    """Return a dtype that may be given by its number, -1 for none."""
    return _TYPES.get(dtype) if isinstance(dtype, int) else dtype


def _wide(a):
    return np.dtype(np.int64) if a.dtype.kind in "biu" else a.dtype


@waits_by(_mean_later)
def mean(a, axes=None, keepdim=False, dtype=None):
    """Mean over `axes`; NaN if there are no elements."""
    dtype = _type(dtype) or a.dtype
    found = None
    if dtype == a.dtype and a.size:
        share = 1 / _count(a, axes)
        found = _of_all(a, axes, keepdim, share)
        found = folded(a, axes, "sum", keepdim, dtype, share) if found is None else found
    return _summed(cupy().mean, a, axes, dtype, keepdim) if found is None else found


def _count(a, axes):
    """Return the number of elements per result."""
    return math.prod(a.shape if axes is None else [a.shape[axis] for axis in axes])


def _axes_to(a, shape):
    before = a.ndim - len(shape)
    return tuple(range(before)) + tuple(
        before + i for i, length in enumerate(shape) if length == 1 and a.shape[before + i] != 1
    )


def _sum_to_later(a, shape):
    axes = _axes_to(a, shape)
    if not axes:
        return None
    found = later(SUM, a, axes, False, 1.0, kept=shape)
    return found or _later_of_shape(sum_to, a, shape, shape=shape, dtype=a.dtype)


@waits_by(_sum_to_later)
def sum_to(a, shape):
    """Sum over the axes that broadcasting from `shape` to the shape of `a` would add or repeat."""
    axes = _axes_to(a, shape)
    found = reduced(SUM, a, axes, False, 1.0) if axes else a
    found = folded(a, axes, "sum", dtype=a.dtype) if found is None else found
    return (_summed(cupy().sum, a, axes, a.dtype) if found is None else found).reshape(shape)


def _shares(a, axes, correction):
    """Return 1 / the number of elements of each result, and 1 / that minus `correction`."""
    count = _count(a, axes)
    left = max(count - correction, 0)
    return 1 / count, 1 / left if left else math.inf


def _spread_later(function):
    def described(a, axes=None, correction=1, keepdim=False):
        return later(function, a, axes, keepdim, *_shares(a, axes, correction)) if a.size else None

    return described


@waits_by(_spread_later(VARIANCE))
def var(a, axes=None, correction=1, keepdim=False):
    """Sum of squares around the mean, divided by the number of elements minus `correction`."""
    found = reduced(VARIANCE, a, axes, keepdim, *_shares(a, axes, correction)) if a.size else None
    if found is not None:
        return found
    return _spread(a, axes, correction, keepdim).astype(_real_type(a), copy=False)


@waits_by(_spread_later(DEVIATION))
def std(a, axes=None, correction=1, keepdim=False):
    """The square root of `var`, also where that itself would leave the range of the type."""
    found = reduced(DEVIATION, a, axes, keepdim, *_shares(a, axes, correction)) if a.size else None
    if found is not None:
        return found
    return cupy().sqrt(_spread(a, axes, correction, keepdim)).astype(_real_type(a), copy=False)


def _real_type(a):
    return np.dtype(a.dtype.char.lower()) if a.dtype.kind == "c" else a.dtype


def _spread(a, axes, correction, keepdim):
    """The variance in float64."""
    if a.size:
        share, scale = _shares(a, axes, correction)
        middle = folded(a, axes, "sum", True, scale=share)
        if middle is not None:
            found = folded(a, axes, "centred squares", keepdim, np.float64, scale, middle)
            if found is not None:
                return found
    return _spread_by_cupy(a.astype(wide_type(a.dtype), copy=False), axes, correction, keepdim)


def _spread_by_cupy(a, axes, correction, keepdim):
    distance = cupy().abs(a - cupy().mean(a, axes, keepdims=True)).astype(np.float64, copy=False)
    total = cupy().sum(distance * distance, axes, keepdims=keepdim)
    count = a.size // max(total.size, 1)
    return total / max(count - correction, 0)


@waits_by(lambda a, p=2, axes=None, keepdim=False: later(NORMS[p], a, axes, keepdim) if p in NORMS and a.ndim else None)
def norm(a, p=2, axes=None, keepdim=False):
    """(sum |a|^p)^(1/p); the largest or smallest |a| for p = inf or -inf, the nonzero count for p = 0."""
    found = reduced(NORMS[p], a, axes, keepdim) if p in NORMS and a.ndim else None
    if found is not None:
        return found
    how = _OF_NORMS.get(p)
    found = None if how is None else folded(a, axes, how, keepdim, np.float64 if p == 2 else a.dtype)
    if found is None:
        return in_float32(_norm, a, p, axes, keepdim)
    return cupy().sqrt(found).astype(a.dtype, copy=False) if p == 2 else found


_OF_NORMS = {0: "not zero", 1: "sizes", 2: "squares", np.inf: "largest size", -np.inf: "smallest size"}


def _norm(a, p, axes, keepdim):
    size = cupy().abs(a)
    if p == np.inf:
        return amax(size, axes, keepdim)
    if p == -np.inf:
        return amin(size, axes, keepdim)
    if p == 0:
        return cupy().sum(size != 0, axes, size.dtype, keepdims=keepdim)
    if p == 1:
        return cupy().sum(size, axes, size.dtype, keepdims=keepdim)
    dtype, size = size.dtype, size.astype(np.float64, copy=False)  # powers may leave the range of float32
    if p == 2:
        return cupy().sqrt(cupy().sum(size * size, axes, keepdims=keepdim)).astype(dtype, copy=False)
    return (cupy().sum(size**p, axes, keepdims=keepdim) ** (1 / p)).astype(dtype, copy=False)


@waits_by(lambda a, axes=None, keepdim=False: later(LOGSUMEXP, a, axes, keepdim))
def logsumexp(a, axes=None, keepdim=False):
    """log(sum(exp(a))), without overflow."""
    found = reduced(LOGSUMEXP, a, axes, keepdim)
    if found is not None:
        return found
    largest = folded(a, axes, "largest", True)
    if largest is not None:
        largest = choose(cupy().isfinite(largest), largest, largest.dtype.type(0))
        total = folded(a, axes, "exponentials", keepdim, middle=largest)
        if total is not None:
            return (cupy().log(total) + largest.reshape(total.shape)).astype(a.dtype, copy=False)
    return in_float32(_logsumexp, a, axes, keepdim)


def _logsumexp(a, axes, keepdim):
    if not a.size:
        return cupy().log(cupy().sum(a, axes, keepdims=keepdim))
    largest = cupy().amax(a, axes, keepdims=True)
    largest = choose(cupy().isfinite(largest), largest, a.dtype.type(0))
    total = cupy().log(cupy().sum(cupy().exp(a - largest), axes, keepdims=keepdim))
    return total + largest.reshape(total.shape)


@waits_by(lambda a, axes=None, keepdim=False: later(LARGEST, a, axes, keepdim))
def amax(a, axes=None, keepdim=False):
    """The largest element; NaN if there is one."""
    found = reduced(LARGEST, a, axes, keepdim)
    if found is None:
        found = folded(a, axes, "largest", keepdim, a.dtype)
    return cupy().amax(a, axes, keepdims=keepdim) if found is None else found


@waits_by(lambda a, axes=None, keepdim=False: later(SMALLEST, a, axes, keepdim))
def amin(a, axes=None, keepdim=False):
    """The smallest element; NaN if there is one."""
    found = reduced(SMALLEST, a, axes, keepdim)
    if found is None:
        found = folded(a, axes, "smallest", keepdim, a.dtype)
    return cupy().amin(a, axes, keepdims=keepdim) if found is None else found


def all_(a, axes=None, keepdim=False):
    """Whether all elements are nonzero; uint8 stays uint8."""
    return _as_bytes(a, cupy().all(a, axes, keepdims=keepdim))


def any_(a, axes=None, keepdim=False):
    """Whether any element is nonzero; uint8 stays uint8."""
    return _as_bytes(a, cupy().any(a, axes, keepdims=keepdim))


def _as_bytes(a, found):
    return found.astype(a.dtype) if a.dtype == np.uint8 else found
