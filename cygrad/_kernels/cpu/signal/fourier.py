"""Discrete Fourier transforms by NumPy's loops, in the precision of the input.

`norm` is the name of the scaling in NumPy and PyTorch: "backward" scales the inverse transform by 1/n, "forward" the
forward one, "ortho" both by 1/sqrt(n).

We call the loops directly if they can be found. `numpy.fft` passes them the scale 1 as an integer, which makes them
compute in double precision through buffers, and take five times as long for complex64.
"""

import math
from typing import Any

import numpy as np

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.elementary import MULTIPLY
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.stack_chunks import cut, parts_of
from cygrad._kernels.device.cupy_library import module_of
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

SCALED_BACK = {"backward": "forward", "forward": "backward", "ortho": "ortho"}  # scaling of the adjoint
FEW = 1 << 12  # real numbers; for fewer, computing all frequencies is faster than computing half and mirroring
loops: Any = getattr(np.fft, "_pocketfft_umath", None)


# -- along one dimension --


def _along(loop, a, factor, dim, out):
    """Apply a NumPy loop along a dimension. For the last one, omitting `axes` halves the time."""
    if dim == a.ndim - 1:
        return loop(a, factor, out=out)
    return loop(a, factor, axes=[(dim,), (), (dim,)], out=out)


@silent
def _fft(a, dim, factor, forward, out):
    """Forward or inverse complex transform, times `factor`, into `out`, which may be `a`."""
    if loops is None:
        return np.fft.fft(a, axis=dim) * factor if forward else np.fft.ifft(a, axis=dim, norm="forward") * factor
    loop = loops.fft if forward else loops.ifft
    return _along(loop, a, factor, dim, out)


@silent
def _rfft(a, dim, factor, out=None):
    """One-sided transform of real numbers, times `factor`."""
    if loops is None:
        return np.multiply(np.fft.rfft(a, axis=dim), factor, out=out)
    length = a.shape[dim]
    loop = loops.rfft_n_odd if length % 2 else loops.rfft_n_even
    out = np.empty(_resized(a.shape, dim, length // 2 + 1), _complex(a.dtype)) if out is None else out
    return _along(loop, a, factor, dim, out)


@silent
def _irfft(a, dim, factor, out):
    """The real inverse of `_rfft`, times `factor`, into `out`."""
    if loops is None:
        out[...] = np.fft.irfft(a, out.shape[dim], dim, "forward") * factor
        return
    is_apart = not out.flags.c_contiguous and out.strides[dim] != out.itemsize and out.size > out.shape[dim]
    found = np.empty(out.shape, out.dtype) if is_apart else out  # large strides along columns are slow
    _along(loops.irfft, a, factor, dim, found)
    if is_apart:
        out[...] = found


_COMPLEX = {real: np.dtype(kind) for real, kind in zip("fFdD", "FFDD")}
_REAL = {np.dtype(kind): np.dtype(real) for real, kind in zip("fd", "FD")}


def _resized(shape, dim, length):
    return (*shape[:dim], length, *shape[dim + 1 :])


def _complex(dtype):
    return _COMPLEX.get(dtype.char) or np.result_type(dtype, np.complex64)


def _factor(norm, forward, points, dtype):
    """The scale factor, in the type of the real parts."""
    if norm == "ortho":
        return dtype.type(1 / math.sqrt(points))
    return dtype.type(1 if (norm == "backward") == forward else 1 / points)


# -- along several --


def c2c(a, dims, norm, forward, is_own=False):
    """Complex transform along `dims`, or its inverse. May overwrite `a` if `is_own`."""
    kind = _complex(a.dtype)
    if a.dtype is not kind or not dims:
        a = out = a.astype(kind, order="C")
    else:
        out = a if is_own and loops is not None else np.empty(a.shape, kind)
    factor = _factor(norm, forward, math.prod([a.shape[d] for d in dims]), _REAL[kind])
    for dim in reversed(dims):
        a, factor = _fft(a, dim, factor, forward, out), type(factor)(1)
    return a


def r2c(a, dims, norm, onesided):
    """Transform of real numbers; `onesided` keeps only the first half of the last dimension."""
    if not onesided and (a.size <= FEW or not dims):
        return c2c(a, dims, norm, True)
    factor = _factor(norm, True, math.prod(a.shape[d] for d in dims), a.dtype)
    found = _rfft(a, dims[-1], factor) if onesided else _both_halves(a, dims[-1], factor)
    for dim in reversed(dims[:-1]):
        found = _fft(found, dim, type(factor)(1), True, found)
    return found


def _both_halves(a, dim, factor):
    """Transform of real numbers; the second half mirrors the first."""
    length = a.shape[dim]
    out = np.empty(a.shape, _complex(a.dtype))
    _rfft(a, dim, factor, cut(out, slice(0, length // 2 + 1), dim))
    if length > 2:
        mirrored = cut(out, slice((length - 1) // 2, 0, -1), dim)
        np.conjugate(mirrored, out=cut(out, slice(length // 2 + 1, None), dim))
    return out


def conjugate_of_r2c(a, dims, norm, onesided, length):
    """The conjugate of `r2c`."""
    found = r2c(a, dims, norm, onesided)
    return np.conjugate(found, out=found)


def from_conjugate_of_r2c(g, dims, norm, onesided, length):
    """The transpose of `conjugate_of_r2c`: real numbers from complex ones."""
    if onesided:
        return c2r(g, dims, SCALED_BACK[norm], length, 0.5, True)
    return real_of_c2c(g, dims, norm, True)


@noted
def windowed_r2c(sections, window, norm):
    """One-sided transforms of sections along the last dimension, times a window, a chunk of sections at a time."""
    dim = sections.ndim - 1
    if not isinstance(sections, np.ndarray):
        return r2c(sections * window, (dim,), norm, True)
    length = sections.shape[dim]
    factor = _factor(norm, True, length, sections.dtype)
    out = np.empty(_resized(sections.shape, dim, length // 2 + 1), _complex(sections.dtype))
    for index in _beside(sections, (dim,)):
        _rfft(MULTIPLY(sections[index], window), dim, factor, out[index])
    return out


def c2r(a, dims, norm, length, pairs=1, of_conjugate=False):
    """The real inverse of the one-sided transform; `length` is the output length of the last of `dims`.

    Frequencies that represent a conjugate pair are multiplied by `pairs`. `of_conjugate` transforms the conjugate of
    `a`.
    """
    factor = _factor(norm, False, math.prod(a.shape[d] for d in dims[:-1]) * length, a.real.dtype)
    out = np.empty(_resized(a.shape, dims[-1], length), a.real.dtype)
    for index in _beside(a, dims):
        _c2r(a[index], dims, factor, length, pairs, of_conjugate, out[index])
    return out


def _c2r(a, dims, factor, length, pairs, of_conjugate, out):
    *before, last = dims
    if before and a.size > chunks.SIZE:
        for here in _steps(a.shape[last], a.size):
            part = a[_at(last, here)]
            part = c2c(np.conjugate(part) if of_conjugate else part, before, "forward", False, of_conjugate)
            if pairs != 1:
                part *= halved(length, pairs, a, last, a.real.dtype)[_at(last, here)]
            _put(part, here, last, out)
            del part  # free it before the next is allocated
        return _to_real(out, last, factor)
    if of_conjugate:
        a = np.conjugate(a)
        a = c2c(a, before, "forward", False, True) if before else a
    else:
        a = c2c(a, before, "forward", False) if before else a.astype(_complex(a.dtype), copy=pairs != 1)
    if pairs != 1:
        of_pairs(a, last, length)[...] *= pairs
    return _irfft(a, last, factor, out)


# -- real parts --
#
# Real arrays have conjugate-symmetric spectra, so half the spectrum takes as much memory as the array: real parts are
# stored at their own positions, imaginary parts at those of the conjugates. The transform therefore runs within the
# output array, chunk by chunk.


@noted
def real_of_c2c(a, dims, norm, forward):
    """The real part of `c2c`."""
    factor = _factor(norm, forward, math.prod(a.shape[d] for d in dims), a.real.dtype)
    out = np.empty(a.shape, a.real.dtype)
    for index in _beside(a, dims, 4 * chunks.SIZE):
        part = a[index]
        if part.size > 4 * chunks.SIZE:
            _real(part, dims, factor, forward, out[index])
        else:
            out[index] = c2c(part, dims, norm, forward).real
    return out


@noted
def real_of_r2c(a, dims, norm):
    """The real part of the one-sided `r2c`."""
    *before, last = dims
    factor = _factor(norm, True, math.prod(a.shape[d] for d in dims), a.dtype)
    out = np.empty(_resized(a.shape, last, a.shape[last] // 2 + 1), a.dtype)
    for index in _beside(a, dims, 4 * chunks.SIZE):
        part = a[index]
        if part.size > 4 * chunks.SIZE and before:
            _real(part, before, factor, True, out[index], last)
        else:
            out[index] = r2c(part, dims, norm, True).real
    return out


def _real(a, dims, factor, forward, out, last=None):
    """Real part of a large transform, after a one-sided transform of real numbers along `last` if that is given."""
    dim = max(dims, key=a.shape.__getitem__)
    length = a.shape[dim]
    others = [d for d in dims if d != dim]
    for here in _steps(length // 2 + 1, a.size // 2):
        part, opposite = a[_at(dim, here)], _opposite(a, dim, here)
        if last is not None:
            part, opposite = (_rfft(one, last, one.dtype.type(1)) for one in (part, opposite))
        for d in others:
            opposite = _opposite(opposite, d, slice(0, a.shape[d]))
        opposite = np.conjugate(opposite)
        opposite += part
        if forward:
            np.conjugate(opposite, out=opposite)
        _put(c2c(opposite, others, "forward", False, True) if others else opposite, here, dim, out)
    _to_real(out, dim, factor / 2)


def _opposite(a, dim, here):
    """The frequencies opposite to `here` along a dimension."""
    n = a.shape[dim]
    rest = a[_at(dim, slice(n - max(here.start, 1), n - here.stop, -1))]
    return rest if here.start else np.concatenate([a[_at(dim, slice(1))], rest], dim)


def _put(part, here, dim, out):
    """Store the frequencies `here` of a half spectrum along `dim` at their own and the opposite positions of `out`."""
    length = out.shape[dim]
    out[_at(dim, here)] = part.real
    start, stop = max(here.start, 1), min(here.stop, (length + 1) // 2)
    if start < stop:
        out[_at(dim, slice(length - start, length - stop, -1))] = part.imag[
            _at(dim, slice(start - here.start, stop - here.start))
        ]


def _to_real(out, dim, factor):
    """Apply the inverse real transform, in place, to the half spectrum stored by `_put`."""
    length = out.shape[dim]
    for index in _beside(out, (dim,)):
        place = out[index]
        half = np.zeros(_resized(place.shape, dim, length // 2 + 1), _complex(out.dtype))
        half.real = place[_at(dim, slice(length // 2 + 1))]
        of_pairs(half, dim, length).imag[...] = place[_at(dim, slice(None, length // 2, -1))]
        _irfft(half, dim, out.dtype.type(factor), place)


def _beside(a, dims, size=0):
    """Indices of chunks along the dimensions that are not transformed, if the array has more than `size` elements."""
    if a.size <= max(size, chunks.SIZE):
        return [()]
    lengths = np.array(a.shape)
    lengths[list(dims)] = 1
    return parts_of([slice(None)] * a.ndim, lengths, a.size)


def _steps(length, size):
    """Slices of a dimension of that length, one chunk each, for an array of `size` elements."""
    step = max(1, length * chunks.SIZE // size)
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def _at(dim, index):
    return (*(slice(None),) * dim, index)


@noted
def halved(length, by, beside, dim, dtype):
    """Weights to multiply `beside`: `by` for one-sided frequencies that represent a conjugate pair, 1 for others."""
    weights = module_of(beside).ones(length // 2 + 1, dtype)
    of_pairs(weights, 0, length)[...] = by
    return weights.reshape([-1 if i == dim else 1 for i in range(beside.ndim)])


@noted
def of_pairs(a, dim, length):
    """The frequencies that represent a pair, along a dimension of a one-sided transform of that length."""
    return a[(slice(None),) * dim + (slice(1, (length + 1) // 2),)]


@noted
def lengthened(a, dim, length):
    """Pad with zeros at the end of a dimension."""
    shape = list(a.shape)
    shape[dim] = length
    result = np.zeros(shape, a.dtype, like=a)
    result[(slice(None),) * dim + (slice(a.shape[dim]),)] = a
    return result


def frequencies(library, length, spacing, onesided):
    """The frequencies of a transform, in cycles per unit of `spacing`."""
    if onesided:
        steps = library.arange(length // 2 + 1)
    else:
        steps = library.arange(length)
        steps[(length + 1) // 2 :] -= length
    with np.errstate(all="ignore"):
        return steps * (np.float64(1) / np.float64(length * spacing))


dispatching(globals(), "r2c")
