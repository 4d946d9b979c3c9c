"""Views composed of other views, and in-place views, which change a tensor's own shape and strides."""

from functools import lru_cache

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import METHOD_ONLY, facts, publish, registry, variant
from cygrad._ops.base.arguments import dim_argument, integers, require, variadic, wrap_dim, wrap_dims
from cygrad._ops.base.checks.tuples import of_tuple
from cygrad._ops.base.copying import contiguous
from cygrad._ops.base.views import (
    alias,
    expand,
    infer_shape,
    look_otherwise,
    may_look_otherwise,
    permute,
    reshape,
    squeeze,
    t,
    transpose,
    unsqueeze,
    view,
)

# -- shapes --


def view_as(input, other):
    """Return `input.view(other.size())`. Raises RuntimeError like `view`.

    >>> import cygrad
    >>> cygrad.arange(4).view_as(cygrad.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(require(input, "view"), require(other, "view_as", "other").shape)


def reshape_as(input, other):
    """Return `input.reshape(other.size())`. Raises RuntimeError like `reshape`.

    >>> import cygrad
    >>> cygrad.arange(4).reshape_as(cygrad.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(require(input, "reshape"), require(other, "reshape_as", "other").shape)


def expand_as(input, other):
    """Return `input.expand(other.size())`. Raises RuntimeError like `expand`.

    >>> import cygrad
    >>> cygrad.tensor([1, 2]).expand_as(cygrad.ones(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(require(input, "expand_as"), require(other, "expand_as", "other").shape)


def broadcast_to(input, *size, **named):
    """Expand `input` to the shape `size`. Raises RuntimeError like `expand`.

    >>> import cygrad
    >>> cygrad.broadcast_to(cygrad.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(require(input, "broadcast_to"), variadic(size, named, "broadcast_to", "size"))


def ravel(input):
    """Flatten to one contiguous dimension: a view if `input` is contiguous, else a view of a copy.

    >>> import cygrad
    >>> cygrad.ravel(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return view(contiguous(require(input, "ravel")), -1)


def unflatten(input, dim, sizes):
    """Split dimension `dim` into several, of lengths `sizes`, one of which may be -1. The inverse of `flatten`.

    Raises RuntimeError if the product of the lengths differs from the length of `dim`.

    >>> import cygrad
    >>> cygrad.zeros(2, 12).unflatten(1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    shape = tuple(require(input, "unflatten").shape)
    d = dim_argument(dim, len(shape), "unflatten", "dim", 1)
    lengths = integers(sizes, "unflatten", "sizes", 2)
    if not shape:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    if not lengths:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        inferred = infer_shape(lengths, shape[d])
    except RuntimeError as error:
        if not str(error).startswith("shape '"):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(lengths)} don't multiply up to the size of dim {d} ({shape[d]}) in the "
            "input tensor"
        ) from None
    return view(input, shape[:d] + inferred + shape[d + 1 :])


# -- order of dimensions --


@facts(overloads="", spellings={"moveaxis": "moveaxis"})
def movedim(input, source, destination):
    """Move dimensions `source` to positions `destination`, each an int or several; the others keep their order.

    Raises RuntimeError for different numbers of dimensions or a repeated one, IndexError for one out of range.

    >>> import cygrad
    >>> cygrad.movedim(cygrad.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    ndim = require(input, "movedim").ndim
    if isinstance(source, (list, tuple)) != isinstance(destination, (list, tuple)):
        raise messages.fits_none("movedim")
    if type(source) is type(destination) is int:
        sources, targets = (source,), (destination,)
    else:
        sources, targets = (
            integers(value if isinstance(value, (list, tuple)) else (value,), "movedim", name, position)
            for value, name, position in ((source, "source", 1), (destination, "destination", 2))
        )
    if ndim == 0:
        _moved(1, sources, targets)  # checks the arguments
        return alias(input)
    return permute(input, _moved(ndim, sources, targets))


@lru_cache(256)
def _moved(ndim, sources, targets):
    """Return the order of the dimensions after those of `sources` have been moved to `targets`."""
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain the same "
            f"number of dims as destination ({list(targets)} dims)"
        )
    from_dims = [wrap_dim(dim, ndim) for dim in sources]
    to_dims = [wrap_dim(dim, ndim) for dim in targets]
    for name, given, dims in (("source", sources, from_dims), ("destination", targets, to_dims)):
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    others = iter([dim for dim in range(ndim) if dim not in from_dims])
    moved = dict(zip(to_dims, from_dims))
    return tuple([moved[i] if i in moved else next(others) for i in range(ndim)])


moveaxis = movedim


# -- in place --
#
# These change no elements, only the shape and strides with which the tensor views its memory.


T_INPLACE = variant(registry["t"], "TBackward1")
TRANSPOSE_INPLACE = variant(registry["transpose"], "TransposeBackward1")
SQUEEZE_INPLACE = variant(registry["squeeze"], "SqueezeBackward3")
SQUEEZE_DIM_INPLACE = variant(registry["squeeze.dim"], "SqueezeBackward4")
SQUEEZE_DIMS_INPLACE = variant(registry["squeeze.dims"], "SqueezeBackward5")
UNSQUEEZE_INPLACE = variant(registry["unsqueeze"], "UnsqueezeBackward1")


def bare(self, op_name):
    """Check that this tensor may be modified, and return a new tensor on its memory."""
    may_look_otherwise(require(self, op_name), op_name)
    return tensor_of(array_of(self))


def t_(self):
    """In-place form of `t`: transposes this tensor.

    >>> import cygrad
    >>> cygrad.tensor([[1, 2], [3, 4]]).t_()
    tensor([[1, 3],
            [2, 4]])
    """
    x = bare(self, "t_")
    if x.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return look_otherwise(T_INPLACE, self, array_of(t(x)), None)


def transpose_(self, dim0, dim1):
    """In-place form of `transpose`: swaps two dimensions of this tensor.

    >>> import cygrad
    >>> cygrad.tensor([[1, 2], [3, 4]]).transpose_(0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    x = bare(self, "transpose_")
    a = dim_argument(dim0, x.ndim, "transpose_", "dim0", 1)
    b = dim_argument(dim1, x.ndim, "transpose_", "dim1", 2)
    return look_otherwise(TRANSPOSE_INPLACE, self, array_of(transpose(x, a, b)), (a, b))


@facts(takes_ints=True)
def squeeze_(self, dim=...):
    """In-place form of `squeeze`: removes dimensions of length 1 from this tensor.

    >>> import cygrad
    >>> cygrad.ones(1, 3, 1).squeeze_().shape
    torch.Size([3])
    """
    x = bare(self, "squeeze_")
    array = array_of(squeeze(x, dim))
    shape = tuple(x.shape)
    if dim is ...:
        return look_otherwise(SQUEEZE_INPLACE, self, array, (shape,))
    if isinstance(dim, (list, tuple)):
        return look_otherwise(SQUEEZE_DIMS_INPLACE, self, array, (shape, wrap_dims(tuple(dim), x.ndim)))
    return look_otherwise(SQUEEZE_DIM_INPLACE, self, array, (shape, wrap_dim(dim, x.ndim)))


def unsqueeze_(self, dim):
    """In-place form of `unsqueeze`: inserts a dimension of length 1 into this tensor.

    >>> import cygrad
    >>> cygrad.tensor([1, 2]).unsqueeze_(1)
    tensor([[1],
            [2]])
    """
    x = bare(self, "unsqueeze_")
    dim = dim_argument(dim, x.ndim + 1, "unsqueeze", "dim", 1)
    return look_otherwise(UNSQUEEZE_INPLACE, self, array_of(unsqueeze(x, dim)), (dim,))


composite = {
    "ravel": 0,
    "unflatten": 0,
    "movedim": 0,
    "moveaxis": 0,
    "broadcast_to": 0,
    "view_as": METHOD_ONLY,
    "reshape_as": METHOD_ONLY,
    "expand_as": METHOD_ONLY,
}
methods = {
    "t_": t_,
    "transpose_": transpose_,
    "swapaxes_": transpose_,
    "swapdims_": transpose_,
    "squeeze_": squeeze_,
    "unsqueeze_": unsqueeze_,
}
functions = publish(globals(), {"broadcast_to": of_tuple(broadcast_to, "size")})
