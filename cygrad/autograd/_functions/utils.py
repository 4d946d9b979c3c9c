"""Undo expansion: what custom functions with broadcasting need in their backward."""

__all__ = ["maybe_unexpand", "maybe_view"]


def maybe_view(tensor, size, check_same_size=True):
    """Return `tensor` in another shape; with `check_same_size` itself if it has that shape already."""
    if check_same_size and tensor.size() == size:
        return tensor
    return tensor.contiguous().view(size)


def maybe_unexpand(tensor, old_size, check_same_size=True):
    """Return the sum over all that expanding from `old_size` has repeated: the gradient of what was expanded.

    >>> import cygrad
    >>> from cygrad.autograd._functions.utils import maybe_unexpand
    >>> maybe_unexpand(cygrad.ones(2, 3), (1, 3))
    tensor([[2., 2., 2.]])
    """
    if check_same_size and tensor.size() == old_size:
        return tensor
    return tensor.sum_to_size(tuple(old_size))
