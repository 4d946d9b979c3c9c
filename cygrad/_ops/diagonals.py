"""Diagonals and triangles of matrices. All ops are linear and save nothing but shapes."""

from cygrad._core import messages
from cygrad._core.access import array_of
from cygrad._core.opdef import INPLACE, LINEAR, PRIVATE, VIEW, declare, publish
from cygrad._core.record import apply1_args, record_view
from cygrad._kernels import diagonals as kernels
from cygrad._ops.arguments import dim_argument, integer, require

# -- diagonal ----------------------------------------------------------------------------------------------


def diagonal_rule(n, g):
    return diagonal_backward(g, *n.args)


DIAGONAL = declare(
    "diagonal",
    diagonal_rule,
    flags=VIEW | LINEAR,
    kernel=kernels.diagonal,
    attributes="self_sym_sizes offset dim1 dim2",
)


def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonals of the matrices in dimensions `dim1` and `dim2`, as a new last dimension.

    `offset` > 0 takes a diagonal above the main one, < 0 below. Gradient: g at its place in zeros. Raises IndexError
    for a dimension that is not there, RuntimeError if both are the same.

    >>> import cygrad
    >>> cygrad.diagonal(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    array = array_of(require(input, "diagonal"))
    where = (
        integer(offset, "diagonal", "offset", 1),
        dim_argument(dim1, array.ndim, "diagonal", "dim1", 2),
        dim_argument(dim2, array.ndim, "diagonal", "dim2", 3),
    )
    if where[1] == where[2]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return record_view(DIAGONAL, kernels.diagonal(array, *where), input, (array.shape, *where))


def diagonal_backward_rule(n, g):
    _, offset, dim1, dim2 = n.args
    return diagonal(g, offset, dim1, dim2)


DIAGONAL_BACKWARD = declare(
    "diagonal_backward", diagonal_backward_rule, flags=LINEAR | PRIVATE, kernel=kernels.on_diagonal
)


def diagonal_backward(input, shape, offset, dim1, dim2):
    """Zeros of `shape` with `input` on the diagonals."""
    return apply1_args(DIAGONAL_BACKWARD, input, (shape, offset, dim1, dim2), None)


# -- triangles ---------------------------------------------------------------------------------------------


def tril_rule(n, g):
    return tril(g, n.args[0])


TRIL = declare("tril", tril_rule, flags=LINEAR | INPLACE, kernel=kernels.tril, attributes="diagonal")


def tril(input, diagonal=0, *, out=None):
    """Matrices (the last two dimensions) with zeros above a diagonal. Gradient: the same of g.

    `diagonal` counts from the main one upwards. Raises RuntimeError for less than 2 dimensions.

    >>> import cygrad
    >>> cygrad.tril(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """
    return _triangle(TRIL, require(input, "tril"), diagonal, out)


def triu_rule(n, g):
    return triu(g, n.args[0])


TRIU = declare("triu", triu_rule, flags=LINEAR | INPLACE, kernel=kernels.triu, attributes="diagonal")


def triu(input, diagonal=0, *, out=None):
    """Matrices (the last two dimensions) with zeros below a diagonal. Gradient: the same of g.

    `diagonal` counts from the main one upwards. Raises RuntimeError for less than 2 dimensions.

    >>> import cygrad
    >>> cygrad.triu(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """
    return _triangle(TRIU, require(input, "triu"), diagonal, out)


def _triangle(op, t, diagonal, out):
    shift = integer(diagonal, op.name, "diagonal", 1)
    if t.ndim < 2:
        raise RuntimeError(f"{op.name}: input tensor must have at least 2 dimensions")
    if out is not None:
        messages.check_out_type(array_of(t), out)
    return apply1_args(op, t, (shift,), out)


functions = publish(globals())
