"""Splits tensors at given indices, or into a given number of sections."""

from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import array_of, memory_of
from cygrad._core.graph.opdef import facts, note_facts, publish, registry, variant
from cygrad._core.graph.record import record_outputs
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.dispatch import unseen
from cygrad._ops.base.arguments import dim_argument, integer, integers, is_integer, require
from cygrad._ops.base.batching.views import split_samples
from cygrad._ops.base.copying import clone
from cygrad._ops.base.slicing import chunk, split, split_with_sizes
from cygrad._ops.base.slicing import slice as slice_of


@facts(overloads="")
def tensor_split(input, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    """Split along `dim` into `sections` views whose lengths differ by at most one, or before each of the indices.

    Gradient: each incoming one at its position in zeros. Raises RuntimeError for a 0-dim tensor or less than one
    section.

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
    """Return the views between neighboring bounds, which are clipped like those of a Python slice."""
    start = 0
    views = []
    for bound in (*bounds, length):
        stop = min(max(bound if bound >= 0 else bound + length, 0), length)
        views.append(slice_of(t, dim, start, max(stop - start, 0)))
        start = stop
    return tuple(views)


# -- along a fixed dimension --


def _split_along(name, least, dim, input, indices_or_sections, indices, sections):
    t = require(input, name)
    if t.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {t.ndim} "
            "dimensions!"
        )
    where = next((value for value in (indices_or_sections, indices, sections) if value is not None), None)
    if not is_integer(where) and not isinstance(where, (list, tuple)):
        given = () if where is None else (where,)
        raise messages.no_such_call(name, given, {}, ("int sections", "tuple of ints indices"))
    if is_integer(where):
        count, length = integer(where, name, "sections", 1), array_of(t).shape[dim]
        if count <= 0 or length % count:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {length} is not "
                f"divisible by the split_size {count}!"
            )
    return tensor_split(t, where, dim)


@facts(overloads="", takes_ints=True)
def hsplit(input, indices_or_sections=None, *, indices=None, sections=None):
    """`tensor_split` along the second dimension, or the only one of a vector. Sections must have equal length.

    >>> import cygrad
    >>> cygrad.hsplit(cygrad.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1],
            [3]]), tensor([[2],
            [4]]))
    """
    dim = 0 if require(input, "hsplit").ndim == 1 else 1
    return _split_along("hsplit", 1, dim, input, indices_or_sections, indices, sections)


@facts(overloads="", takes_ints=True)
def vsplit(input, indices_or_sections=None, *, indices=None, sections=None):
    """`tensor_split` along the first dimension of a tensor with at least two. Sections must have equal length.

    >>> import cygrad
    >>> cygrad.vsplit(cygrad.arange(4).reshape(2, 2), 2)
    (tensor([[0, 1]]), tensor([[2, 3]]))
    """
    return _split_along("vsplit", 2, 0, input, indices_or_sections, indices, sections)


@facts(overloads="", takes_ints=True)
def dsplit(input, indices_or_sections=None, *, indices=None, sections=None):
    """`tensor_split` along the third dimension. Sections must have equal length.

    >>> import cygrad
    >>> [part.shape for part in cygrad.dsplit(cygrad.ones(1, 2, 4), [1, 3])]
    [torch.Size([1, 2, 1]), torch.Size([1, 2, 2]), torch.Size([1, 2, 1])]
    """
    return _split_along("dsplit", 3, 2, input, indices_or_sections, indices, sections)


# -- without view tracking --

_UNSAFE = {
    "SplitBackward0": variant(registry["split"], "UnsafeSplitBackward0", name="unsafe_split"),
    "SplitWithSizesBackward0": variant(
        registry["split_with_sizes"], "UnsafeSplitWithSizesBackward0", name="unsafe_split_with_sizes"
    ),
}
for _row in _UNSAFE.values():
    note_facts(_row.name, {"batching": split_samples})


def _unbound(t, parts, given):
    """Return the parts as tensors on the same memory that autograd does not treat as views of one another."""
    node = parts[0].grad_fn if parts else None
    if node is None and parts and is_recorded(parts[0]):  # only by forward mode
        return tuple(map(clone, parts))
    args = None if node is None else node.args
    row = _UNSAFE["SplitBackward0" if node is None else node.name()]
    return record_outputs(row, tuple(memory_of(part) for part in parts), (t,), args, len(parts), given)


def unsafe_split(tensor, split_size, dim=0):
    """Like `split`, but the results are not tracked as views, so they can be modified in place before `backward`.

    They do share memory: after such a change, no other tensor on that memory may be used.

    >>> import cygrad
    >>> cygrad.unsafe_split(cygrad.arange(4), 3)
    (tensor([0, 1, 2]), tensor([3]))
    """
    size = integer(split_size, "unsafe_split", "split_size", 2)
    with unseen():
        parts = split(tensor, size, dim)
    return _unbound(tensor, parts, (size, dim))


def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """Like `split_with_sizes`, but the results are not tracked as views; see `unsafe_split`.

    >>> import cygrad
    >>> cygrad.unsafe_split_with_sizes(cygrad.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """
    with unseen():
        parts = split_with_sizes(input, split_sizes, dim)
    return _unbound(input, parts, (split_sizes, dim))


def unsafe_chunk(input, chunks, dim=0):
    """Like `chunk`, but the results are not tracked as views; see `unsafe_split`.

    >>> import cygrad
    >>> cygrad.unsafe_chunk(cygrad.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    with unseen():
        parts = chunk(input, chunks, dim)
    return _unbound(input, parts, (parts[0].shape[dim] if parts else 1, dim))


composite = dict.fromkeys(
    (
        "tensor_split",
        "hsplit",
        "vsplit",
        "dsplit",
        "unsafe_split",
        "unsafe_split_with_sizes",
        "unsafe_chunk",
    ),
    0,
)
functions = publish(globals())
