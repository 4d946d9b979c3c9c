"""Memory formats: the orders in which the elements of a tensor are stored."""


class memory_format:
    """An order of elements in memory: `contiguous_format`, `preserve_format`, `channels_last`, `channels_last_3d`.

    >>> import cygrad
    >>> cygrad.channels_last
    torch.channels_last
    """

    __module__ = "cygrad"
    __slots__ = {
        "name": "The name of the memory format, as in the package.",
        "ndim": "The number of dimensions it requires, or None.",
        "order": "The dimensions from the largest steps in memory to the smallest, or None.",
    }

    def __init__(self, name, ndim=None, order=None):
        self.name = name
        self.ndim = ndim
        self.order = order

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name

    def check(self, ndim):
        """Raise RuntimeError if a tensor with `ndim` dimensions cannot have this order.

        >>> import cygrad
        >>> cygrad.channels_last.check(4)
        >>> cygrad.channels_last.check(3)
        Traceback (most recent call last):
            ...
        RuntimeError: required rank 4 tensor to use channels_last format
        """
        if self.ndim not in (None, ndim):
            raise RuntimeError(f"required rank {self.ndim} tensor to use {self.name} format")

    def describes(self, array):
        """Whether `array` is stored in this order, without gaps; False if the number of dimensions differs.

        >>> import cygrad
        >>> x = cygrad.ones(1, 2, 3, 4)
        >>> cygrad.channels_last.describes(x.numpy())
        False
        >>> cygrad.channels_last.describes(x.to(memory_format=cygrad.channels_last).numpy())
        True
        """
        if self.order is None:
            return array.flags.c_contiguous
        return array.ndim == self.ndim and array.transpose(self.order).flags.c_contiguous


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last", 4, (0, 2, 3, 1))
channels_last_3d = memory_format("channels_last_3d", 5, (0, 2, 3, 4, 1))


def order_of(wanted, ndim, function):
    """Return the dimensions of a tensor with `ndim` dimensions in the order of a memory format.

    Raises TypeError for anything but a memory format, and RuntimeError if it does not fit `ndim`.
    """
    if not isinstance(wanted, memory_format):
        raise TypeError(
            f"{function}(): argument 'memory_format' must be torch.memory_format, not {type(wanted).__name__}"
        )
    wanted.check(ndim)
    return wanted.order or tuple(range(ndim))


def suggested(array):
    """Return the memory format that the steps of `array` suggest, even where they leave gaps.

    Dimensions of one element count by their steps: one channel is in `channels_last` only if made so.
    """
    for candidate in (channels_last, channels_last_3d):
        if array.ndim == candidate.ndim and _climbs(array, candidate.order):
            return candidate
    return contiguous_format


def _climbs(array, order):
    """Whether the steps grow from the last dimension of `order` to the first, as PyTorch tells channels last."""
    least = 0
    for dim in (*reversed(order[1:]), order[0]):
        step, length = array.strides[dim], array.shape[dim]
        if length == 0 or step < least or (dim == 0 and least == array.strides[1]):
            return False  # at the end: steps that do not tell the formats apart mean `contiguous_format`
        least = step * length
    return array.strides[1] != 0


functions: dict[str, object] = {
    value.name: value for value in (contiguous_format, preserve_format, channels_last, channels_last_3d)
}
functions["legacy_contiguous_format"] = contiguous_format  # its older name
functions["memory_format"] = memory_format
