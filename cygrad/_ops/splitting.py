"""Splitting tensors at given indices, or into a given number of parts."""

from cygrad._core.access import array_of
from cygrad._core.opdef import publish
from cygrad._core.tensor import Tensor
from cygrad._ops.arguments import dim_argument, integer, integers, require
from cygrad._ops.parts import slice as slice_of


def tensor_split(input, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    """`sections` parts along `dim`, of lengths that differ by at most one; or parts that end before each index.

    Gradient: each incoming one at its place in zeros. Raises RuntimeError for a 0-dim tensor or less than one section.

    >>> import cygrad
    >>> cygrad.tensor_split(cygrad.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> cygrad.tensor_split(cygrad.arange(5), (1, 4))
    (tensor([0]), tensor([1, 2, 3]), tensor([4]))
    """
    shape = array_of(require(input, "tensor_split")).shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = dim_argument(dim, len(shape), "tensor_split", "dim", 2)
    where = next((value for value in (indices_or_sections, indices, sections) if value is not None), None)
    if isinstance(where, Tensor):
        where = _tensor_as_ints(where)
    if hasattr(where, "__index__"):
        bounds = _even_bounds(shape[d], integer(where, "tensor_split", "sections", 1))
    else:
        bounds = integers(where, "tensor_split", "indices", 1)
    return _parts_between(input, bounds, d, shape[d])


def _tensor_as_ints(t):
    if array_of(t).dtype != "int64":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {t.dtype.type_name}"
        )
    if t.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {t.ndim} dims"
        )
    return t.tolist()


def _even_bounds(length, sections):
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    size, longer = divmod(length, sections)
    return tuple(i * size + min(i, longer) for i in range(1, sections))


def _parts_between(t, bounds, dim, length):
    """The parts between neighbouring bounds, which count as those of a Python slice do."""
    start = 0
    views = []
    for bound in (*bounds, length):
        stop = min(max(bound if bound >= 0 else bound + length, 0), length)
        views.append(slice_of(t, dim, start, max(stop - start, 0)))
        start = stop
    return tuple(views)


composite = {"tensor_split": 0}
functions = publish(globals())
