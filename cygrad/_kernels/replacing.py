"""Copies of arrays, in the same order of memory, with other values in one part."""

from cygrad._kernels.copying import copy, copy_into


def at_view(array, part, view):
    """With `part` where `view(copy)` looks."""
    out = copy(array)
    copy_into(view(out), part)
    return out


def at_index(array, part, axis, index):
    """With `part` at an index of the axis."""
    return at_view(array, part, lambda out: out[(slice(None),) * axis + (index, ...)])


def at_slice(array, part, axis, start, stop, step):
    """With `part` in the slice of the axis."""
    return at_view(array, part, lambda out: out[(slice(None),) * axis + (slice(start, stop, step),)])
