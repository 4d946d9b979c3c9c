"""Cholesky factors of Hermitian positive-definite matrices (or stacks of them), and solves and inverses based on them.

Gradients: the factor follows I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10; the others
follow from triangular systems.
"""

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, IN1, OUT0, declare, facts, publish
from cygrad._core.graph.record import record_n, write_into
from cygrad._core.types import return_types
from cygrad._kernels.cpu.linalg import cholesky as kernels
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.arithmetic import add, mul, neg
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.products import matmul
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.linalg.common import (
    LINALG,
    LinAlgError,
    batch_element,
    check_inexact,
    check_kernel,
    check_matrices,
    check_old_system,
    check_square,
    decomposition,
    first_failure,
    of_factors,
    several,
)
from cygrad._ops.linalg.triangular import solve
from cygrad._ops.shape.diagonals import tril, triu

# -- factorization --


@in_parts()
def factor_rule(n, g):
    (upper,) = n.args
    factor = n.saved_result()
    lower, g = (adjoint(factor), adjoint(g)) if upper else (factor, g)
    inner = tril(matmul(adjoint(lower), g))
    inner = add(inner, adjoint(tril(inner, -1)))
    return mul(solve(adjoint(lower), solve(lower, inner, False, False), True), 0.5)


FACTOR = declare(
    "linalg_cholesky_ex",
    factor_rule,
    saves=OUT0,
    flags=LINALG,
    inputs="A",
    outputs="L",
    attributes="upper",
    autocast="float32",
    out_dtype="same",
    batching=decomposition,
)


def factors(A, upper, name):
    """Check the arguments and return (tensor, factor, info)."""
    t = require(A, name)
    check_square(t, "linalg.cholesky")
    check_inexact(t, "linalg.cholesky")
    check_kernel(t, "cholesky_cpu")
    return t, *kernels.factor(array_of(t), bool(upper))


def check_positive(info, shown):
    failure = first_failure(info)
    if failure:
        number, order = failure
        raise LinAlgError(
            f"{shown}: {batch_element(number, info.ndim + 2)}The factorization could not be completed because the "
            f"input is not positive-definite (the leading minor of order {order} is not positive-definite)."
        )


@facts(autocast="float32")
def linalg_cholesky(A, *, upper=False, out=None):
    """Return the lower triangular L with A = L L^H for Hermitian positive-definite A; with `upper`, U with A = U^H U.

    Saves the result. Gradient: I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10, as if
    both triangles of A were used, although only one is read. Raises LinAlgError for a matrix that is not
    positive-definite.

    >>> import cygrad
    >>> cygrad.linalg.cholesky(cygrad.tensor([[4.0, 2.0], [2.0, 10.0]]))
    tensor([[2., 0.],
            [1., 3.]])
    """
    t, found, info = factors(A, upper, "linalg_cholesky")
    check_positive(info, "linalg.cholesky")
    if out is None:
        return record_n(FACTOR, found, (t,), (bool(upper),))
    return write_into(FACTOR, out, found, (t,), (bool(upper),))


def linalg_cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """Like `cholesky`, but return a tuple (L, info) instead of raising for a matrix that is not positive-definite.

    info is an int32 tensor of shape (...): 0, or the order of the first leading minor that is not positive; the factor
    is meaningless from there on. With `check_errors`, raises as `cholesky` does. Saves the result.

    >>> import cygrad
    >>> cygrad.linalg.cholesky_ex(-cygrad.eye(2)).info
    tensor(1, dtype=torch.int32)
    """
    t, found, info = factors(A, upper, "linalg_cholesky_ex")
    if check_errors:
        check_positive(info, "linalg.cholesky_ex")
    return several(FACTOR, return_types.linalg_cholesky_ex, (found, info), (t,), (bool(upper),), out, 1)


CHOLESKY = declare(
    "cholesky",
    factor_rule,
    saves=OUT0,
    inputs="self",
    attributes="upper",
    autocast="float32",
    out_castable="{title} result",
    batching=decomposition,
)


def cholesky(input, upper=False, *, out=None):
    """Return the Cholesky factor; an older form of `linalg.cholesky`, which has the full documentation.

    It is L with A = L L^H; with `upper`, U with A = U^H U.

    Saves the result.

    >>> import cygrad
    >>> cygrad.cholesky(cygrad.tensor([[4.0]]))
    tensor([[2.]])
    """
    t = require(input, "cholesky")
    check_square(t, "cholesky")
    check_kernel(t, "cholesky_cpu")
    found, info = kernels.factor(array_of(t), bool(upper))
    check_positive(info, "cholesky")
    if out is None:
        return record_n(CHOLESKY, found, (t,), (bool(upper),))
    return write_into(CHOLESKY, out, found, (t,), (bool(upper),))


# -- uses of the factor --


def factor_gradient(factor, of_product, upper):
    """Return the gradient of the factor from half the gradient of L L^H (or U^H U); only one triangle is read."""
    return triu(matmul(triu(factor), of_product)) if upper else tril(matmul(of_product, tril(factor)))


@in_parts()
def solve_rule(n, g):
    (upper,) = n.args
    factor = n.saved(1)
    of_b = cholesky_solve(g, factor, upper)
    if not n.needs(1):
        return of_b, None
    twice = matmul(of_b, adjoint(n.saved_result()))
    twice = neg(add(twice, adjoint(twice)))
    return of_b, factor_gradient(factor, twice, upper)


SOLVE = declare(
    "cholesky_solve",
    solve_rule,
    saves=(IN1, IN1 | OUT0),
    inputs="self input2",
    attributes="upper",
    devices="together",
    autocast="float32",
    out_castable="{title} result",
)


def cholesky_solve(input, input2, upper=False, *, out=None):
    """Solve A X = B, where B = `input` of shape (..., n, k) and A is given by its Cholesky factor L = `input2`.

    Stacks broadcast. With `upper`, the factor is U, with A = U^H U. Saves the factor and the result X. Gradients: for
    B, G = A^-1 g; for L, the triangle of -(G X^H + X G^H) L that is read.

    >>> import cygrad
    >>> cygrad.cholesky_solve(cygrad.tensor([[8.0]]), cygrad.tensor([[2.0]]))
    tensor([[2.]])
    """
    b, f = require(input, "cholesky_solve"), require(input2, "cholesky_solve", "input2", 2)
    for t, name in ((b, "b"), (f, "u")):
        if t.dim() < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {t.dim()} dimensions instead")
    check_old_system(b, f, "cholesky_solve")
    broadcast_shape(tuple(b.shape[:-2]), tuple(f.shape[:-2]))
    check_kernel(b, "cholesky_solve_cpu")
    x = kernels.solve_factored(array_of(b), array_of(f), bool(upper))
    if out is None:
        return record_n(SOLVE, x, (b, f), (bool(upper),))
    return write_into(SOLVE, out, x, (b, f), (bool(upper),))


@rule("cholesky_solve")
def _solve_factored(call):
    ndim = call.out.ndim
    b, factor = (call.aligned(x, ndim) for x in call.inputs)
    return call.shaped(cholesky_solve(b, factor, *call.args), call.out.shape)


@in_parts()
def inverse_rule(n, g):
    (upper,) = n.args
    factor, inverse = n.saved(0), n.saved_result()
    twice = matmul(inverse, matmul(add(g, adjoint(g)), inverse))
    return factor_gradient(factor, neg(twice), upper)


INVERSE = declare(
    "cholesky_inverse",
    inverse_rule,
    saves=IN0 | OUT0,
    inputs="self",
    attributes="upper",
    autocast="float32",
    out_castable="{title} result",
    batching=of_factors,
)


def cholesky_inverse(input, upper=False, *, out=None):
    """Return the inverse of A, given its Cholesky factor L = `input`; with `upper`, U with A = U^H U.

    The result is (L L^H)^-1.

    Saves the factor and the result R. Gradient: the triangle of -R (g + g^H) R L that is read. Raises LinAlgError for a
    zero on the diagonal.

    >>> import cygrad
    >>> cygrad.cholesky_inverse(cygrad.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    t = require(input, "cholesky_inverse")
    check_matrices(t, "cholesky_inverse")
    check_square(t, "cholesky_inverse")
    check_kernel(t, "cholesky_inverse_out_cpu")
    inverse, info = kernels.inverse(array_of(t), bool(upper))
    failure = first_failure(info)
    if failure:
        number, pivot = failure
        raise LinAlgError(
            f"cholesky_inverse: {batch_element(number, t.dim())}The diagonal element {pivot} is zero, "
            "the inversion could not be completed because the input matrix is singular."
        )
    if out is None:
        return record_n(INVERSE, inverse, (t,), (bool(upper),))
    return write_into(INVERSE, out, inverse, (t,), (bool(upper),))


composite = {"linalg_cholesky": LINALG}
functions = publish(globals())
