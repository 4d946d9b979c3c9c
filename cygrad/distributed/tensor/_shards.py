"""How a dimension is divided over processes, and gathering what they have."""

import cygrad
from cygrad.distributed._c10d.collectives import all_gather_into_tensor

__all__ = ["bounds", "gathered", "local_part"]


def bounds(length, size, rank):
    """The first index along a dimension that a process has, and the one behind its last.

    All have ceil(length / size) indices, but the last ones fewer, or none.
    """
    width = -(-length // size)
    return min(rank * width, length), min((rank + 1) * width, length)


def local_part(tensor, dim, size, rank):
    """A view of the part of a tensor that a process has."""
    first, last = bounds(tensor.shape[dim], size, rank)
    return tensor.narrow(dim, first, last - first)


@cygrad.no_grad()
def gathered(local, dim, shape, group):
    """The whole tensor, of this shape, from the parts of all processes of a group along a dimension."""
    size = group.size()
    if size == 1:
        return local.detach().clone()
    width = -(-shape[dim] // size)
    rows = local.detach().movedim(dim, 0)
    padded = rows.new_zeros((width, *rows.shape[1:]))
    padded[: rows.shape[0]] = rows
    whole = padded.new_empty((width * size, *rows.shape[1:]))
    all_gather_into_tensor(whole, padded, group=group)
    return whole[: shape[dim]].movedim(0, dim).contiguous()
