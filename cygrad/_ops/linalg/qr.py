"""QR factorization A = Q R, with batching, and products of the Householder reflectors that Q consists of.

Q has orthonormal columns, R is upper triangular. Gradients of QR: S. Walter, L. Lehmann, "Algorithmic differentiation
of linear algebra functions with application in optimum experimental design" (2010) for matrices with at least as many
rows as columns; J. Roberts, D. Roberts, "QR and LQ decomposition matrix backpropagation algorithms for square, wide,
and deep matrices and their software implementation" (2020) for wide ones.
"""

from typing import Any

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts, reused
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import IN0, IN1, OUT0, OUT1, declare, facts, publish
from cygrad._core.graph.record import record_n, write_into
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg import householder as kernels
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, mul, neg, sub
from cygrad._ops.base.pointwise import conjugate
from cygrad._ops.base.products import matmul
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.slicing import cat
from cygrad._ops.base.views import unsqueeze
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.common.out_argument import given
from cygrad._ops.creation.ranges import eye
from cygrad._ops.linalg.common import (
    LINALG,
    check_inexact,
    check_kernel,
    check_matrices,
    decomposition,
    lengthened,
    of_factors,
    several,
)
from cygrad._ops.linalg.triangular import solve
from cygrad._ops.shape.diagonals import diag_embed, diagonal, tril, triu

# -- QR --


def qr_arrays(a, mode):
    if mode == "r":
        return np.empty(0, a.dtype, like=a), triangular_factor(a)
    return factors_of(a, mode)


@over_stacks(2)
def triangular_factor(a):
    if not kernels.can_factor(a):
        return np.linalg.qr(a, mode="r")
    return in_dtype(kernels.triangle(kernels.packed_factors(a)[0], min(a.shape[-2:])), a.dtype)


@over_stacks(2)
def factors_of(a, mode):
    if not kernels.can_factor(a):
        return tuple(np.linalg.qr(a, mode=mode))
    if mode == "reduced" and kernels.is_tall(a):
        return kernels.tall_factors(a)
    return kernels.factors(a, mode == "complete")


@in_parts()
def qr_rule(n, grads):
    (mode,) = n.args
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    q, r = n.saved_output(0), n.saved_output(1)
    rows, columns = q.shape[-2], r.shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    of_q, of_r = grads
    if columns <= rows:
        return tall_gradient(q, r, of_q, of_r)
    # R = [R1 R2] with R1 square: A1 = Q R1, and R2 = Q^H A2
    first, rest = r[..., :, :rows], r[..., :, rows:]
    of_rest = None
    if of_r is not None:
        of_r, of_r2 = of_r[..., :, :rows], of_r[..., :, rows:]
        of_rest = matmul(q, of_r2)
        through = matmul(q, matmul(rest, adjoint(of_r2)))
        of_q = through if of_q is None else add(of_q, through)
    of_first = tall_gradient(q, first, of_q, of_r)
    return lengthened(of_first, columns, -1) if of_rest is None else cat((of_first, of_rest), -1)


def tall_gradient(q, r, of_q, of_r):
    """Return (gQ + Q S) R^-H, where S is Hermitian with the upper triangle of gR R^H - Q^H gQ."""
    inner = None if of_r is None else matmul(of_r, adjoint(r))
    if of_q is not None:
        of_inner = matmul(adjoint(q), of_q)
        inner = neg(of_inner) if inner is None else sub(inner, of_inner)
    upper = triu(inner)
    both = add(upper, adjoint(upper))  # counts the (real part of the) diagonal twice; half is subtracted below
    both = sub(both, mul(diag_embed(diagonal(both, 0, -2, -1)), 0.5))
    array = array_of(q)
    incoming: Any = None if of_q is None else array_of(of_q)
    if array.ndim > 2 or array.size <= chunks.SIZE or reused(q) is None or not isinstance(array, np.ndarray):
        return rows_of_gradient(q, r, of_q, both)
    out, step = np.empty_like(array), max(1, chunks.SIZE // array.shape[1])
    for start in range(0, len(array), step):
        part = slice(start, start + step)
        of_part = None if of_q is None else tensor_of(incoming[part])
        out[part] = array_of(rows_of_gradient(tensor_of(array[part]), r, of_part, both))
    return tensor_of(out)


def rows_of_gradient(q, r, of_q, both):
    moved = matmul(q, both)
    return solve(adjoint(r), moved if of_q is None else add(moved, of_q, out=reused(moved)), False, False)


QR = declare(
    "linalg_qr",
    qr_rule,
    saves=OUT0 | OUT1,
    flags=LINALG,
    inputs="A",
    outputs="Q R",
    attributes="mode",
    autocast="float32",
    out_dtype="same",
    batching=decomposition,
)


def linalg_qr(A, mode="reduced", *, out=None):
    """Compute the QR factors of matrices (..., m, n): a tuple (Q, R) with A = Q R.

    Q is (..., m, k) and R (..., k, n), k = min(m, n); with mode "complete" k = m; with mode "r" Q is not computed and
    is empty. Saves Q and R. Gradient for m >= n: (gQ + Q S) R^-H with the Hermitian matrix S that has the upper
    triangle of gR R^H - Q^H gQ; NaN if the first k columns of A are linearly dependent. Not differentiable for mode
    "r", nor for mode "complete" if m > n. Raises RuntimeError in these cases and for an unknown mode.

    >>> import cygrad
    >>> Q, R = cygrad.linalg.qr(cygrad.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> R
    tensor([[-5.0000, -2.2000],
            [ 0.0000,  0.4000]])
    """
    return qr_factors(A, mode, return_types.linalg_qr, out)


def qr_factors(A, mode, kind, out):
    t = require(A, "linalg_qr", "A")
    check_matrices(t, "linalg.qr")
    check_inexact(t, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_kernel(t, "geqrf_cpu")
    return several(QR, kind, qr_arrays(array_of(t), mode), (t,), (mode,), out)


@facts(autocast="float32")
def qr(input, some=True, *, out=None):
    """Compute the QR factors, complete ones if not `some`; an older form of `linalg.qr`.

    >>> import cygrad
    >>> cygrad.qr(cygrad.ones(3, 2), some=False).Q.shape
    torch.Size([3, 3])
    """
    t = require(input, "qr")
    messages.check_flag("qr", "some", 2, some)
    return qr_factors(t, "reduced" if some else "complete", return_types.qr, out)


# -- reflectors --


def geqrf_rule(n, grads):
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


GEQRF = declare(
    "geqrf",
    geqrf_rule,
    inputs="self",
    autocast="float32",
    out_castable=("torch.geqrf a", "torch.geqrf tau"),
    batching=decomposition,
)


def geqrf(input, *, out=None):
    """Compute the QR factors as LAPACK stores them: a tuple (a, tau).

    R is on and above the diagonal of a, the Householder vectors are below it; `linalg.householder_product` computes Q
    from them. Not differentiable, as in PyTorch; use `linalg.qr` instead. Saves nothing.

    >>> import cygrad
    >>> cygrad.geqrf(cygrad.tensor([[3.0], [4.0]])).tau
    tensor([1.6000])
    """
    t = require(input, "geqrf")
    if t.dim() < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_kernel(t, "geqrf_cpu")
    return several(GEQRF, return_types.geqrf, kernels.geqrf(array_of(t)), (t,), None, out)


def vectors(a, k):
    """Return the Householder vectors as columns."""
    lower = tril(a[..., :, :k], -1)
    return add(lower, eye(a.shape[-2], k, dtype=a.dtype, device=a.device), out=reused(lower))


def rows_of_vectors(a, k):
    """Return `vectors` in chunks of rows, as (first row, end row, vectors): a list of one chunk, or an iterator.

    It is an iterator if A is tall and the pass is not recorded.
    """
    array = array_of(a)
    if reused(a) is None or not kernels.is_tall(array):
        return [(0, array.shape[-2], vectors(a, k))]
    return _blocks_of_vectors(array, k)


def _blocks_of_vectors(array, k):
    rows, columns = array.shape
    step = max(columns, chunks.SIZE // columns)
    for start in range(0, rows, step):
        part = array[start : start + step]
        yield start, start + len(part), tensor_of(kernels.vectors(part, k, start))


def inner(squares, tau):
    """Return (S, 1 + S D), with S = triu(V^H V, 1) and D = diag(tau): see the docstring of `kernels`."""
    s = triu(squares, 1)
    return s, add(mul(s, unsqueeze(tau, -2)), eye(s.shape[-1], dtype=s.dtype, device=s.device))


@in_parts(saved=(2, 1, 2, 2), inputs=(2, 1))
def product_rule(n, g):
    """Gradient of Q = E - V D W, (1 + S D) W = V1^H, with E from the identity and the first rows V1 of V."""
    a, tau = n.saved(0), n.saved(1)
    columns, k = a.shape[-1], tau.shape[-1]
    squares = products = first = None
    parts = rows_of_vectors(a, k)
    for start, stop, v in parts:
        turned = adjoint(v)
        squares = plus(squares, matmul(turned, v))
        products = plus(products, matmul(turned, g[..., start:stop, :]))
        first = v[..., :columns, :] if first is None else first
    s, m = inner(squares, tau)
    row, column = unsqueeze(tau, -2), unsqueeze(tau, -1)
    w = solve(m, adjoint(first), True, True, True)
    of_y = neg(products)
    of_rhs = solve(adjoint(m), mul(of_y, conjugate(column)), False, True, True)
    of_m = neg(matmul(of_rhs, adjoint(w)))
    of_tau = add(total(mul(of_y, conjugate(w)), -1), total(mul(conjugate(s), of_m), -2))
    if not n.needs(0):
        return None, of_tau
    of_s = triu(mul(of_m, conjugate(row)), 1)
    factors = add(of_s, adjoint(of_s)), adjoint(mul(column, w))
    del v, turned, first
    out = None
    for start, stop, v in parts if type(parts) is list else rows_of_vectors(a, k):
        found = rows_of_product_gradient(v, g[..., start:stop, :], *factors, None if start else adjoint(of_rhs), start)
        if stop - start == a.shape[-2]:
            return lengthened(found, columns, -1), of_tau
        out = np.zeros(a.shape, array_of(found).dtype) if out is None else out
        out[start:stop, :k] = array_of(found)
    return tensor_of(out), of_tau


def plus(total, more):
    return more if total is None else add(total, more)


def rows_of_product_gradient(v, g, of_v, of_g, of_first, start):
    """Return the rows of V's gradient from row `start` on; `of_first` is added to the matrix's first rows."""
    found = matmul(v, of_v)
    found = sub(found, matmul(g, of_g), out=reused(found))
    if of_first is not None and reused(found) is None:
        found = add(found, lengthened(of_first, found.shape[-2], -2))
    elif of_first is not None:
        first = memory_of(found)[..., : of_first.shape[-2], :]
        first += memory_of(of_first)
    return tril(found, start - 1)


PRODUCT = declare(
    "linalg_householder_product",
    product_rule,
    saves=IN0 | IN1,
    flags=LINALG,
    inputs="input tau",
    devices="together",
    autocast="float32",
    out_castable="torch.linalg.householder_product result",
    batching=of_factors,
)


def linalg_householder_product(input, tau, *, out=None):
    """Compute the first n columns of the product of Householder reflectors that `geqrf` stores in a matrix (..., m, n).

    tau is (..., k) with k <= n <= m. Reflector i is 1 - tau_i v v^H, where v has zeros above row i, a one there, and
    below it the elements below the diagonal of column i of `input`. Saves both. Raises RuntimeError for mismatched
    shapes. Gradient: by the product's compact form, R. Schreiber, C. Van Loan, "A storage-efficient WY representation
    for products of Householder transformations" (1989).

    >>> import cygrad
    >>> a, tau = cygrad.geqrf(cygrad.tensor([[3.0], [4.0]]))
    >>> cygrad.linalg.householder_product(a, tau)
    tensor([[-0.6000],
            [-0.8000]])
    """
    a = require(input, "linalg_householder_product")
    b = require(tau, "linalg_householder_product", "tau", 2)
    shown = "torch.linalg.householder_product"
    if a.dim() < 2:
        raise RuntimeError(f"{shown}: input must have at least 2 dimensions.")
    if a.shape[-2] < a.shape[-1]:
        raise RuntimeError(f"{shown}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if b.dim() and a.shape[-1] < b.shape[-1]:
        raise RuntimeError(f"{shown}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_factors(a, b, shown)
    if b.dtype is not a.dtype:
        raise RuntimeError(f"{shown}: tau dtype {b.dtype.type_name} does not match input dtype {a.dtype.type_name}")
    check_kernel(a, "orgqr_cpu")
    array = kernels.product(array_of(a), array_of(b))
    if out is None:
        return record_n(PRODUCT, array, (a, b), None)
    return write_into(PRODUCT, out, array, (a, b), None)


def check_factors(a, tau, shown):
    if tau.dim() != a.dim() - 1:
        raise RuntimeError(
            f"{shown}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.dim()} and "
            f"input.ndim is equal to {a.dim()}"
        )
    if array_of(tau).shape[:-1] != array_of(a).shape[:-2]:
        raise RuntimeError(
            f"{shown}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )


@facts(devices="together", autocast="float32", out_castable="torch.linalg.householder_product result")
def orgqr(input, input2, *, out=None):
    """Compute the columns of Q from the result of `geqrf`; see `linalg.householder_product`.

    >>> import cygrad
    >>> cygrad.orgqr(*cygrad.geqrf(cygrad.tensor([[3.0], [4.0]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return linalg_householder_product(require(input, "orgqr"), require(input2, "orgqr", "input2", 2), out=out)


@facts(
    autocast="float32",
    out_dtype="torch.ormqr: Expected input and result to have the same dtype, but input has dtype{result} and "
    "result has dtype {out}",
)
def ormqr(input, input2, input3, left=True, transpose=False, *, out=None):
    """Compute Q C, or C Q if not `left`, for C = `input3` and the square Q given by `geqrf` as `input`, tau = `input2`.

    With `transpose`, Q^H replaces Q. Q itself is not formed. Raises RuntimeError for mismatched shapes.

    >>> import cygrad
    >>> a, tau = cygrad.geqrf(cygrad.tensor([[3.0], [4.0]]))
    >>> cygrad.ormqr(a, tau, cygrad.tensor([[1.0], [0.0]]))
    tensor([[-0.6000],
            [-0.8000]])
    """
    a, tau, c = require(input, "ormqr"), require(input2, "ormqr", "input2", 2), require(input3, "ormqr", "input3", 3)
    check_multiplied(a, tau, c, left)
    array = None
    if not (is_recorded(a) or is_recorded(tau) or is_recorded(c)):
        array = kernels.multiplied(array_of(a), array_of(tau), array_of(c), bool(left), bool(transpose))
    if array is not None:
        result = tensor_of(array)
    elif left:
        result = multiplied(a, tau, c, transpose)
    else:
        result = adjoint(multiplied(a, tau, adjoint(c), not transpose))
    return given("ormqr", result, out, a, tau, c)


@in_steps(2, 1, 2, last=2, node="SubBackward0")
def multiplied(a, tau, c, turned):
    """Compute C - V D M^-1 V^H C with M = 1 + S D, or C - V (D M^-1)^H V^H C if `turned`."""
    v = vectors(a, tau.shape[-1])
    _, m = inner(matmul(adjoint(v), v), tau)
    column = unsqueeze(tau, -1)
    part = matmul(adjoint(v), c)
    if turned:
        part = solve(adjoint(m), mul(part, conjugate(column)), False, True, True)
    else:
        part = mul(solve(m, part, True, True, True), column)
    return sub(c, matmul(v, part))


def check_multiplied(a, tau, c, left):
    shown, dim = "torch.ormqr", -2 if left else -1
    own, other = array_of(a).shape, array_of(c).shape
    for shape, name in ((own, "input"), (other, "other")):
        if len(shape) < 2:
            raise RuntimeError(f"{shown}: {name} must have at least 2 dimensions.")
    if other[dim] != own[-2]:
        raise RuntimeError(f"{shown}: other.shape[{dim}] must be equal to input.shape[-2]")
    if tau.dim() and tau.size(-1) != min(other[dim], own[-1]):
        raise RuntimeError(f"{shown}: tau.shape[-1] must be equal to min(other.shape[{dim}], input.shape[-1])")
    check_factors(a, tau, shown)
    if len(other) != len(own):
        raise RuntimeError(
            f"{shown}: Expected other to have the same number of dimensions as input, "
            f"but got other.ndim equal to {c.dim()} and input.ndim is equal to {a.dim()}"
        )
    for t, name in ((tau, "tau"), (c, "other")):
        if t.dtype is not a.dtype:
            raise RuntimeError(
                f"{shown}: Expected input and {name} to have the same dtype, but input has "
                f"dtype{a.dtype.type_name} and {name} has dtype {t.dtype.type_name}"
            )
    if other[:-2] != own[:-2]:
        raise RuntimeError(
            f"{shown}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {list(c.shape[:-2])}"
        )
    check_kernel(a, "ormqr_cpu")


composite = {"qr": 0, "orgqr": 0, "ormqr": 0}
functions = publish(globals())
