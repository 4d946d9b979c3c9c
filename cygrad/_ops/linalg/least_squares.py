"""Least squares: the X that minimizes |A X - B|, for A of any shape and rank."""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, IN1, declare, publish
from cygrad._core.graph.record import record_outputs
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.linalg import least_squares as kernels
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.arithmetic import add, mul, sub
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.products import matmul
from cygrad._ops.base.views import expand, squeeze, unsqueeze
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.common.out_argument import write_several
from cygrad._ops.linalg.common import LINALG, LinAlgError, batch_element, first_failure
from cygrad._ops.linalg.svd import check_finite, linalg_pinv, pinv_gradient

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def own_dims(n):
    """Number of matrix or vector dimensions of B and the result."""
    return 1 if n.args[0] else 2


@in_parts(lambda n: (own_dims(n), 1), lambda n: (2, own_dims(n), 2, 2), inputs=lambda n: (2, own_dims(n)))
def lstsq_rule(n, grads):
    """Gradient of X = P B, P the pseudoinverse, and of |R|^2, where R = B - A X is orthogonal to the range of A."""
    is_vector = n.args[0]
    of_x, of_squares = grads
    a, b = n.saved(0), n.saved(1)
    columns = unsqueeze(b, -1) if is_vector else b
    of_a = of_b = None
    p = linalg_pinv(a)
    if of_x is not None:
        of_x = unsqueeze(of_x, -1) if is_vector else of_x
        of_b = matmul(adjoint(p), of_x)
        if n.needs(0):
            of_a = pinv_gradient(matmul(of_x, adjoint(columns)), a, p)
    if of_squares is not None and of_squares.numel():
        x = matmul(p, columns)
        twice = mul(mul(sub(columns, matmul(a, x)), unsqueeze(of_squares, -2)), 2.0)
        of_b = twice if of_b is None else add(of_b, twice)
        if n.needs(0):
            through = matmul(mul(twice, -1.0), adjoint(x))
            of_a = through if of_a is None else add(of_a, through)
    if of_b is not None and is_vector:
        of_b = squeeze(of_b, -1)
    return of_a, of_b


LSTSQ = declare(
    "linalg_lstsq",
    lstsq_rule,
    saves=IN0 | IN1,
    flags=LINALG,
    inputs="self b",
    attributes="_ _ _",
    devices="together",
    autocast="float32",
    out_castable=(
        "torch.linalg.lstsq solution",
        "torch.linalg.lstsq solution",
        "torch.linalg.lstsq rank",
        "torch.linalg.lstsq singular_values",
    ),
)


def linalg_lstsq(input, b, rcond=None, *, driver=None, out=None):
    """Compute the least squares solution of A X = B: a tuple (solution, residuals, rank, singular_values).

    The solution minimizes sum(|A X - B|^2).

    A = `input` is (..., m, n); B = `b` is (..., m, k), or vectors of shape (..., m). The solution is (..., n, k), the
    one of minimum norm if there are several. The residuals are the squared norms of the columns of A X - B if m > n and
    all matrices have rank n, else they are empty; the default driver "gelsy" never computes them. "gels" assumes that A
    has full rank and does not compute it; "gelsd" and "gelss", which are the same here, also return singular values.
    Those up to `rcond` (eps * max(m, n)) times the largest count as 0; "gelsd" ignores an `rcond` of 1 or more. Saves A
    and B. Gradients, for a rank that is locally constant: of B, P^H g with the pseudoinverse P; of A, that of
    `linalg.pinv` for g B^H. Raises RuntimeError for mismatched shapes, LinAlgError if "gels" finds A rank-deficient.

    >>> import cygrad
    >>> A, B = cygrad.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), cygrad.tensor([[1.0], [3.0], [5.0]])
    >>> cygrad.linalg.lstsq(A, B).solution
    tensor([[1.0000],
            [2.0000]])
    """
    t, other = require(input, "linalg_lstsq"), require(b, "linalg_lstsq", "b", 2)
    is_vector, batch = check_call(t, other, driver)
    if t.dim() > other.dim() and not is_vector:  # several matrices share one B
        batch = broadcast_shape(batch, tuple(other.shape[:-2]))
        other = expand(other, (*batch, *other.shape[-2:]))
        t = expand(t, (*batch, *t.shape[-2:]))
    driver, given_rcond = driver or "gelsy", rcond
    a, columns = array_of(t), array_of(other)
    columns = columns[..., None] if is_vector else columns
    m, n = a.shape[-2:]
    if driver == "gels":
        rcond = None
    elif rcond is None or driver == "gelsd" and rcond >= 1:  # where LAPACK takes its default
        rcond = np.finfo(a.dtype).eps * max(m, n)
    x, rank, values, info = kernels.lstsq(a, columns, rcond, driver in ("gelsd", "gelss"))
    check_rank(info, t.dim())
    nothing = np.empty(0, values.dtype, like=values)
    squares = nothing
    if m > n and driver != "gelsy" and (rank == n).all():
        squares = kernels.residuals(a, columns, x)
    x = x[..., 0] if is_vector else x
    own = tuple(slice(None if length > 1 else 1) for length in array_of(input).shape[:-2])  # without broadcasting
    rank, values = rank[own], values[own]
    rank = np.empty(0, np.int64, like=values) if driver == "gels" else in_dtype(as_array(rank), np.int64)
    values = values if driver in ("gelsd", "gelss") else nothing
    args = (is_vector, given_rcond, driver)
    arrays = x, squares, rank, values
    if out is not None:
        return return_types.linalg_lstsq(write_several(LSTSQ, out, arrays, (t, other), args))
    return return_types.linalg_lstsq(record_outputs(LSTSQ, arrays, (t, other), args, 2))


@rule("linalg_lstsq")
def _least_squares(call):
    is_vector, rcond, driver = call.args
    a, b = (call.full(x) for x in call.inputs)
    found = linalg_lstsq(a, b.unsqueeze(-1) if is_vector else b, rcond, driver=driver)
    pairs = zip(found, call.outs, strict=True)
    return [
        call.shaped(part, out.shape) if out.numel() else part.new_zeros((call.size, *out.shape)) for part, out in pairs
    ]


def check_rank(info, ndim):
    failure = first_failure(info)
    if failure:
        number, column = failure
        raise LinAlgError(
            f"torch.linalg.lstsq: {batch_element(number, ndim)}The least squares solution could not be computed "
            f"because the input matrix does not have full rank (error code: {column})."
        )


def check_call(t, other, driver):
    """Return whether B holds vectors, and the batch shape. Raises PyTorch's errors."""
    shown = "torch.linalg.lstsq"
    if t.dim() < 2:
        raise RuntimeError(f"{shown}: input must have at least 2 dimensions.")
    if other.dim() < 1:
        raise RuntimeError(f"{shown}: other must have at least 1 dimension.")
    if t.dtype is not other.dtype:
        raise RuntimeError(
            f"{shown}: Expected input and other to have the same dtype, but got input's dtype "
            f"{t.dtype.type_name} and other's dtype {other.dtype.type_name}"
        )
    has_less = t.dim() - 1 == other.dim()
    if not has_less and t.dim() != other.dim():
        raise RuntimeError(
            f"{shown}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    is_vector = has_less and (other.dim() == 1 or tuple(t.shape[:-1]) == tuple(other.shape))
    dim = -1 if is_vector else -2
    if t.shape[-2] != other.shape[dim]:
        raise RuntimeError(f"{shown}: input.size(-2) should match other.size({dim})")
    if array_of(t).dtype.char not in "fdFD":
        raise RuntimeError("This function doesn't handle types other than float and double")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(f"{shown}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    batch = broadcast_shape(tuple(t.shape[:-2]), tuple(other.shape[: -1 if has_less else -2]))
    check_finite(t)
    return is_vector, batch


functions = publish(globals())
