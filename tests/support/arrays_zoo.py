"""Arrays in every memory layout that users may pass in, for the kernel tests."""

import numpy as np

LENGTHS = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000]


def values(rng, shape, dtype):
    """Random values suited to the dtype; about half of a bool array is true."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        numbers = rng.random(shape) < 0.5
    elif dtype.kind in "iu":
        numbers = rng.integers(0 if dtype.kind == "u" else -50, 100, shape)
    elif dtype.kind == "c":
        numbers = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    else:
        numbers = rng.standard_normal(shape)
    return np.asarray(numbers, dtype)


def unaligned(a):
    """An equal array whose memory is misaligned by one byte."""
    out = np.empty(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out


def layouts(a):
    """Arrays equal to `a` in every kind of memory layout, each with a name."""
    yield "contiguous", np.ascontiguousarray(a).reshape(a.shape)
    yield "fortran", np.asfortranarray(a).reshape(a.shape, order="A")
    yield "reversed", np.ascontiguousarray(a[::-1])[::-1] if a.ndim else a
    if a.ndim:
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1] + 1), a.dtype)
        wide[..., : 2 * a.shape[-1] : 2] = a
        yield "every second", wide[..., : 2 * a.shape[-1] : 2]
        deep = np.zeros((a.shape[0] * 2 + 1, *a.shape[1:]), a.dtype)
        deep[1::2] = a
        yield "offset rows", deep[1::2]
    if a.dtype.itemsize > 1:
        yield "unaligned", unaligned(a)
        yield "swapped", a.astype(a.dtype.newbyteorder())
    frozen = a.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
