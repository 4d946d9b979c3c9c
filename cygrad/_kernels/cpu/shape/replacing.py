"""Copies of arrays, in the same memory order, with a part replaced."""

from cygrad._kernels.cpu.base.copying import copy, copy_into
from cygrad._kernels.cpu.shape.diagonals import diagonal
from cygrad._kernels.tape.calls import noted


@noted
def at_diagonal(array, part, *where):
    """Replace the diagonals of `diagonals.diagonal` by `part`."""
    out = copy(array)
    copy_into(diagonal(out, *where), part)
    return out


@noted
def at_index(array, part, axis, index):
    """Replace an index of the axis by `part`."""
    return _at(array, part, (slice(None),) * axis + (index, ...))


@noted
def at_slice(array, part, axis, start, stop, step):
    """Replace a slice of the axis by `part`."""
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
