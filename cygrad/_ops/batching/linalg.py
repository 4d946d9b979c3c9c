"""Batching rules of linear algebra ops, which accept any number of leading dimensions (see rules.py)."""

from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.batching.rules import rule
from cygrad._ops.creation.ranges import arange
from cygrad._ops.linalg.ldl import linalg_ldl_factor_ex, linalg_ldl_solve
from cygrad._ops.linalg.least_squares import linalg_lstsq
from cygrad._ops.linalg.lu import linalg_lu, linalg_lu_factor_ex, linalg_lu_solve, lu_unpack, permutation
from cygrad._ops.linalg.solve import linalg_solve, linalg_solve_ex
from cygrad._ops.linalg.svd import linalg_matrix_rank, linalg_pinv

# -- decompositions and systems --


@rule("linalg_inv_ex cholesky linalg_cholesky_ex linalg_eigh linalg_eig linalg_svd linalg_qr slogdet geqrf")
def _decomposition(call):
    named = dict(zip(call.op.attributes, call.args, strict=True))
    found = registry[call.key].entry(call.full(call.inputs[0]), **named)
    if isinstance(found, Tensor):
        return found
    pairs = zip(found, call.outs, strict=False)
    return [part if out.numel() else part.new_zeros((call.size, *out.shape)) for part, out in pairs]


@rule("cholesky_inverse linalg_householder_product")
def _of_factors(call):
    return registry[call.key].entry(*[call.full(x) for x in call.inputs], *call.args)


@rule("linalg_pinv linalg_matrix_rank")
def _of_bounds(call):
    t, (atol, rtol, hermitian) = call.inputs[0], call.args
    ndim = max([t.ndim - 2, *[bound.ndim for bound in (atol, rtol) if isinstance(bound, Tensor)]])
    atol, rtol = (call.aligned(bound, ndim) if isinstance(bound, Tensor) else bound for bound in (atol, rtol))
    x = call.aligned(t, ndim + 2)
    function = linalg_pinv if call.key == "linalg_pinv" else linalg_matrix_rank
    found = function(x, atol=atol, rtol=rtol, hermitian=hermitian)
    return call.shaped(found, call.out.shape)


@rule("cholesky_solve")
def _solve_factored(call):
    ndim = call.out.ndim
    b, factor = (call.aligned(x, ndim) for x in call.inputs)
    return call.shaped(registry["cholesky_solve"].entry(b, factor, *call.args), call.out.shape)


@rule("linalg_solve_ex")
def _solve(call):
    (left, is_vector), (a, b) = call.args, call.inputs
    columns = call.full(b).unsqueeze(-1) if is_vector else call.full(b)
    shapes = a.shape, columns.shape[1:]
    ndim = max(map(len, shapes))
    a, columns = (
        call.shaped(x, (*(1,) * (ndim - len(shape)), *shape))
        for x, shape in zip((call.full(a), columns), shapes, strict=True)
    )
    if len(call.outs) == 1:
        return call.shaped(linalg_solve(a, columns, left=left), call.out.shape)
    found, info = linalg_solve_ex(a, columns, left=left)
    return call.shaped(found, call.out.shape), call.shaped(info, call.outs[1].shape)


@rule("triangular_solve")
def _old_solve_triangular(call):
    ndim = call.out.ndim
    b, a = (call.aligned(x, ndim) for x in call.inputs)
    found, copy = registry["triangular_solve"].entry(b, a, *call.args)
    return call.shaped(found, call.out.shape), call.shaped(copy, call.outs[1].shape)


@rule("linalg_solve_triangular")
def _solve_triangular(call):
    ndim = call.out.ndim
    upper, left, unitriangular = call.args
    a, b = (call.aligned(x, ndim) for x in call.inputs)
    found = registry["linalg_solve_triangular"].entry(a, b, upper=upper, left=left, unitriangular=unitriangular)
    return found


# -- LU and LDL factors, least squares --


@rule("linalg_lu_factor_ex")
def _lu_factor(call):
    if len(call.outs) == 1:
        return _permutation(call)
    return linalg_lu_factor_ex(call.full(call.inputs[0]), check_errors=call.args[1])


def _permutation(call):
    pivots, like = call.inputs[:2]
    return permutation(call.key, call.full(pivots), call.out.shape[-1], like)


@rule("linalg_lu_solve")
def _lu_solve(call):
    left, adjoint = call.args
    factors, pivots, b = _aligned_factors(call)
    return linalg_lu_solve(factors, pivots, b, left=left, adjoint=adjoint)


@rule("linalg_lu")
def _lu(call):
    p, *triangles = linalg_lu(call.full(call.inputs[0]))
    return p if len(call.outs) == 1 else triangles


@rule("lu_unpack")
def _lu_unpack(call):
    x = call.inputs[0]
    if len(call.outs) == 1:
        return _permutation(call) if len(call.inputs) > 1 else x.new_zeros((call.size, 0))
    if not call.args[1]:
        return [x.new_zeros((call.size, 0))] * 2
    return lu_unpack(call.full(x), arange(0, device=x.device), unpack_pivots=False)[1:]


@rule("linalg_ldl_factor_ex")
def _ldl_factor(call):
    hermitian, check_errors = call.args
    return linalg_ldl_factor_ex(call.full(call.inputs[0]), hermitian=hermitian, check_errors=check_errors)


@rule("linalg_ldl_solve")
def _ldl_solve(call):
    factors, pivots, b = _aligned_factors(call)
    return linalg_ldl_solve(factors, pivots, b, hermitian=call.args[0])


def _aligned_factors(call):
    """Return factors, pivots and right-hand sides whose batch dimensions broadcast; the first two share theirs."""
    factors, pivots, b = call.inputs
    ndim = max(factors.ndim, b.ndim)
    if call.has(factors) or call.has(pivots):
        shape = (*(1,) * (ndim - factors.ndim), *factors.shape)
        factors, pivots = call.shaped(call.full(factors), shape), call.shaped(call.full(pivots), shape[:-1])
    return factors, pivots, call.aligned(b, ndim)


@rule("linalg_lstsq")
def _least_squares(call):
    is_vector, rcond, driver = call.args
    a, b = (call.full(x) for x in call.inputs)
    found = linalg_lstsq(a, b.unsqueeze(-1) if is_vector else b, rcond, driver=driver)
    pairs = zip(found, call.outs, strict=True)
    return [
        call.shaped(part, out.shape) if out.numel() else part.new_zeros((call.size, *out.shape)) for part, out in pairs
    ]
