"""Copies of arrays, in the same order of memory, with other values in one part."""

from cygrad._kernels.cpu.base.copying import copy, copy_into
from cygrad._kernels.cpu.shape.diagonals import diagonal


def at_diagonal(array, part, *where):
    """With `part` on the diagonals of `diagonals.diagonal`."""
    out = copy(array)
    copy_into(diagonal(out, *where), part)
    return out


def at_index(array, part, axis, index):
    """With `part` at an index of the axis."""
    return _at(array, part, (slice(None),) * axis + (index, ...))


def at_slice(array, part, axis, start, stop, step):
    """With `part` in the slice of the axis."""
    where = slice(start, stop, step)
    if axis or part.dtype is not array.dtype:
        return _at(array, part, (*(slice(None),) * axis, where))
    out = copy(array)
    out[where] = part
    return out


def _at(array, part, where):
    out = copy(array)
    if part.dtype is out.dtype:
        out[where] = part
    else:
        copy_into(out[where], part)
    return out
