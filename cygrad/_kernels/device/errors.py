"""Error messages that kernels share on all devices."""


def broadcast_failure(*shapes):
    """The error message for shapes that do not broadcast, in PyTorch's words."""
    joined: tuple[int, ...] = ()
    for shape in shapes:
        ndim = max(len(joined), len(shape))
        left = (1,) * (ndim - len(joined)) + joined
        right = (1,) * (ndim - len(shape)) + shape
        for dim in reversed(range(ndim)):
            if left[dim] != right[dim] and left[dim] != 1 and right[dim] != 1:
                return (
                    f"The size of tensor a ({left[dim]}) must match the size of tensor b ({right[dim]}) "
                    f"at non-singleton dimension {dim}\n  the operands have shapes {' and '.join(map(str, shapes))}: "
                    "counted from the last dimension, sizes must be equal, or one of them 1"
                )
        joined = tuple(n if m == 1 else m for m, n in zip(left, right))
    return f"The shapes {', '.join(str(list(shape)) for shape in shapes)} do not broadcast"
