"""Matrix norms, general norms and condition numbers."""

import math

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, facts, publish
from cygrad._ops.base.arguments import integers, require, wrap_dim
from cygrad._ops.base.arithmetic import div, mul
from cygrad._ops.base.pointwise import abs
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import unsqueeze
from cygrad._ops.common.out_argument import given
from cygrad._ops.elementwise.selection import where
from cygrad._ops.linalg.common import LINALG, check_inexact, check_lengths, check_matrices, check_precision
from cygrad._ops.linalg.solve import linalg_inv_ex
from cygrad._ops.linalg.svd import linalg_svdvals
from cygrad._ops.linalg.vector_norms import (
    axes_of,
    check_order,
    check_real_order,
    converted,
    linalg_vector_norm,
    vector_norm,
)
from cygrad._ops.reduction.extrema import amax, amin
from cygrad._ops.shape.reshaping import movedim

# -- matrix norms --


@facts(
    autocast_gpu="float32",
    takes_dtype=True,
    out_dtype="linalg.matrix_norm expected out tensor dtype {result} but got: {out}",
    overloads="1",
)
def linalg_matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """Compute the norm of the matrices in two dimensions.

    ord="fro" is the Euclidean norm of the elements, `sqrt(sum(|x|^2))`, "nuc" the sum of the singular values; 2 and -2
    are the largest and smallest singular value; 1 and -1 the largest and smallest column sum of absolute values, inf
    and -inf the same of rows. The norm of an empty matrix is 0, except for norms that are a minimum. Gradients are
    those of the sums, extrema and singular values. Raises RuntimeError for another ord.

    >>> import cygrad
    >>> x = cygrad.tensor([[3.0, 0.0], [1.0, 4.0]])
    >>> cygrad.linalg.matrix_norm(x, 1), cygrad.linalg.matrix_norm(x, float("inf"))
    (tensor(4.), tensor(5.))
    """
    t = require(A, "linalg_matrix_norm", "A")
    check_real_order(ord, "matrix")
    if not isinstance(dim, (tuple, list)) or not isinstance(ord, (int, float, str)):
        raise messages.fits_none("linalg_matrix_norm")
    size = None if isinstance(ord, str) else math.fabs(ord)
    if size is None:
        check_supported(ord, ord in ("fro", "nuc"))
    check_matrices(t, "linalg.matrix_norm")
    check_inexact(t, "linalg.matrix_norm")
    if size is not None:
        check_supported(ord, size in (1, 2, math.inf))
    row, column = matrix_dims(t, dim)
    by_values = ord == "nuc" or size == 2
    if by_values:
        check_precision(t, "linalg.matrix_norm")
    t = converted(t, dtype, "linalg.vector_norm" if ord == "fro" else "linalg.matrix_norm")
    if ord == "fro":
        return vector_norm(t, 2, (row, column), keepdim, out)
    result = of_values(t, ord, row, column, keepdim) if by_values else of_sums(t, ord, row, column, keepdim)
    return given("linalg_matrix_norm", result, out, t)


def check_supported(ord, is_supported):
    if not is_supported:
        shown = ord if isinstance(ord, str) else format(ord, "g")
        raise RuntimeError(f"linalg.matrix_norm: Order {shown} not supported.")


def matrix_dims(t, dim):
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    row, column = (wrap_dim(d, t.dim()) for d in integers(dim, "linalg_matrix_norm", "dim", 3))
    if row == column:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({row}, {column})")
    return row, column


def extreme(t, ord, dim, keepdim):
    """Return the maximum (minimum if ord < 0) along a dimension; the maximum of no elements is 0."""
    if ord > 0 and not t.shape[dim]:
        return total(t, dim, keepdim)
    return (amax if ord > 0 else amin)(t, dim, keepdim)


def of_sums(t, ord, row, column, keepdim):
    """Return the largest or smallest sum of |A| over the columns or rows."""
    summed, other = (row, column) if math.fabs(ord) == 1 else (column, row)
    other -= not keepdim and other > summed
    return extreme(total(abs(t), summed, keepdim), ord, other, keepdim)


def of_values(t, ord, row, column, keepdim):
    values = linalg_svdvals(movedim(t, (row, column), (-2, -1)))
    result = total(values, -1, keepdim) if ord == "nuc" else extreme(values, ord, -1, keepdim)
    return movedim(unsqueeze(result, -1), (-2, -1), (row, column)) if keepdim else result


@facts(autocast_gpu="float32", overloads="14")
def nuclear_norm(input, dim=None, keepdim=False, *, out=None):
    """Compute the sum of the singular values of matrices, in the last two dimensions or in `dim`.

    Gradient: g * U V^H. Where singular values are 0 this is one of many subgradients, which depends on U and V.

    >>> import cygrad
    >>> cygrad.nuclear_norm(cygrad.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor(7.)
    """
    t = require(input, "nuclear_norm")
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    return linalg_matrix_norm(t, "nuc", (-2, -1) if dim is None else dim, keepdim, out=out)


# -- general norms --


@facts(autocast_gpu="float32", takes_dtype=True, in_python=True)
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """Compute the p-norm of the elements over `dim`: sum(|x|^p)^(1/p); for p="nuc" the nuclear norm of matrices.

    p=2 (or 'fro') is the Euclidean norm, p=inf and p=-inf the largest and smallest |x|, p=0 the number of nonzero
    elements. Complex input gives a real result. With `dtype` the input is converted first. Saves `input` and the
    result r. Gradient: g * sgn(x) * (|x| / r)^(p - 1); 0 where r is 0; for p=inf shared between equal elements.
    Raises RuntimeError for integers, and for p=inf over no elements.

    >>> import cygrad
    >>> x = cygrad.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> x.norm(dim=1), x.norm(1), x.norm(float("inf"))
    (tensor([ 5., 10.]), tensor(21.), tensor(8.))
    """
    t = require(input, "norm")
    if isinstance(p, str):
        dims = (dim,) if hasattr(dim, "__index__") else dim
        if p != "fro" or dims is not None and len(dims) > 2:
            dims = tuple(range(t.dim())) if dims is None else tuple(dims)
            return linalg_matrix_norm(t, p, dims, keepdim, dtype=dtype, out=out)
        p = 2
    p = 2 if p is None else p
    t = converted(t, dtype, "linalg.vector_norm")
    check_order(p)
    return vector_norm(t, p, axes_of(t, dim), bool(keepdim), out)


@facts(autocast_gpu="float32", takes_dtype=True, overloads="1")
def linalg_norm(input, ord=None, dim=None, keepdim=False, *, dtype=None, out=None):
    """Compute the norm of vectors if `dim` is one dimension, of matrices if it is two; by default `sqrt(sum(|x|^2))`.

    Without `dim`, the input must be a vector or a matrix; without `ord` and `dim`, the Euclidean norm of all elements
    of any tensor is computed. See `linalg.vector_norm` and `linalg.matrix_norm` for the meaning of `ord`.

    >>> import cygrad
    >>> x = cygrad.tensor([[3.0, 0.0], [0.0, 4.0]])
    >>> cygrad.linalg.norm(x), cygrad.linalg.norm(x, 2), cygrad.linalg.norm(x, 2, dim=1)
    (tensor(5.), tensor(4.), tensor([3., 4.]))
    """
    t = require(input, "linalg_norm")
    check_real_order(ord, "matrix" if t.dim() == 2 and dim is None else "vector")
    dims = check_norm_call(t, ord, dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and ord is not None and t.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {t.dim()}D."
        )
    is_matrix = ord is not None and (len(dims) if dims is not None else t.dim()) == 2
    if out is not None and array_of(out).dtype != array_of(t).real.dtype and dtype is None:
        raise RuntimeError(f"linalg.norm expected out tensor dtype {tensor_type(t)} but got: {out.dtype.type_name}")
    if is_matrix or isinstance(ord, str):
        dims = (0, 1) if dims is None and t.dim() == 2 else (-2, -1) if dims is None else dims
        return linalg_matrix_norm(t, ord, dims, keepdim, dtype=dtype, out=out)
    return linalg_vector_norm(t, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)


def tensor_type(t):
    return {"ComplexFloat": "Float", "ComplexDouble": "Double"}.get(t.dtype.type_name, t.dtype.type_name)


def check_norm_call(t, ord, dim):
    """Return the dimensions as a tuple, or None."""
    dims = (dim,) if hasattr(dim, "__index__") and not isinstance(dim, bool) else dim
    if not isinstance(dims, (tuple, list, type(None))) or not isinstance(ord, (int, float, str, type(None))):
        raise messages.fits_none("linalg_norm")
    return None if dims is None else integers(dims, "linalg_norm", "dim", 3)


# -- condition numbers --


@facts(autocast="float32", out_castable="linalg.cond result", overloads="1")
def linalg_cond(input, p=None, *, out=None):
    """Compute the condition number of matrices, norm(A, p) * norm(A^-1, p); inf for singular matrices.

    For p=2, the default, it is the ratio of the largest to the smallest singular value, which non-square matrices have,
    too; for p=-2 the inverse ratio. Gradients are those of the norms.

    >>> import cygrad
    >>> cygrad.linalg.cond(cygrad.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    t = require(input, "linalg_cond")
    if not isinstance(p, (int, float, str, type(None))):
        raise messages.fits_none("linalg_cond")
    check_matrices_of(t)
    if p is None or p in (2, -2):
        result = quotient_of_values(t, p == -2)
    else:
        shown = p if isinstance(p, str) else format(p, "g")
        if p not in ("fro", "nuc", math.inf, -math.inf, 1, -1):
            raise RuntimeError(f"linalg.cond got an invalid norm type: {shown}")
        check_lengths(t, f"linalg.cond(ord={shown}): ")
        inverse, info = linalg_inv_ex(t)
        inverse = where((info > 0)[..., None, None], math.inf, inverse)
        product = mul(linalg_matrix_norm(t, p), linalg_matrix_norm(inverse, p))
        result = where((info > 0) | (product != product), math.inf, product)
    return given("linalg_cond", result, out, t)


def check_matrices_of(t):
    if t.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")


def quotient_of_values(t, inverted):
    values = linalg_svdvals(t)
    if not values.shape[-1]:
        return total(values, -1)
    largest, smallest = values[..., 0], values[..., -1]
    return div(smallest, largest) if inverted else div(largest, smallest)


composite = {
    "norm": 0,
    "nuclear_norm": FUNCTION_ONLY,
    "linalg_matrix_norm": LINALG,
    "linalg_norm": LINALG,
    "linalg_cond": LINALG,
}
functions = publish(globals())
