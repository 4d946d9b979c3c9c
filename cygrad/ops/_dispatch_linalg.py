"""Decompositions and linear systems, as `__torch_dispatch__` shows them; see `_dispatch_rules.py`.

PyTorch's ops return what their gradients need and how each matrix fared besides the results; functions that raise call
another op that looks at the latter.
"""

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.registry import dispatch
from cygrad.ops import OpOverload, aten
from cygrad.ops._dispatch_rules import Several, Step, _rule, do, found_by, shortened


def _fares(t: Tensor) -> Tensor:
    """Return that all matrices could be factorized."""
    return cygrad.zeros(t.shape[:-2], dtype=cygrad.int32, device=t.device)


def _checked(done: Any, made: Any, op: OpOverload, api: str, args: Any, named: Any, rest: Any = None) -> Any:
    """Return the steps of a function whose op returns `rest(made)` and how the matrices fared, and that raises."""
    t = done.inputs[0]

    def run() -> Any:
        with dispatch.unseen():
            results = (*(made if rest is None else rest(made)), _fares(t))
        found = found_by(results, op, *args, **named)
        do(aten._linalg_check_errors.default, found[-1], api, is_matrix=t.ndim == 2)
        return tuple(found[: len(made)])

    return Several(run)


@_rule("linalg_inv_ex")
def _inv(done: Any, made: Any) -> Any:
    if len(made) > 1:
        return Step(aten.linalg_inv_ex.default, done.inputs[:1])
    return _checked(done, made, aten.linalg_inv_ex.default, "linalg.inv", done.inputs[:1], {})


def _with_factors(made: tuple[Tensor, ...], t: Tensor, n: int) -> tuple[Tensor, ...]:
    """Return the first `n` results, and the compact LU factors and the pivots of the matrices."""
    return (*made[:n], *cygrad.linalg.lu_factor_ex(t.detach())[:2])


@_rule("linalg_solve_ex")
def _solve(done: Any, made: Any) -> Any:
    a, b = done.inputs[:2]
    named = {} if done.args[0] else {"left": False}
    op = aten._linalg_solve_ex.default
    if len(made) > 1:

        def run() -> Any:
            with dispatch.unseen():
                results = *_with_factors(made, a, 1), made[1]
            found = found_by(results, op, a, b, **named)
            return found[0], found[-1]

        return Several(run)
    return _checked(done, made, op, "torch.linalg.solve", (a, b), named, lambda made: _with_factors(made, a, 1))


@_rule("linalg_lu_factor_ex")
def _lu_factor(done: Any, made: Any) -> Any:
    op = aten.linalg_lu_factor_ex.default
    if len(made) == 1:
        return NotImplemented  # the permutation, in a gradient
    if len(made) > 2:
        return Step(op, done.inputs[:1])
    return _checked(done, made, op, "torch.linalg.lu_factor", done.inputs[:1], {})


@_rule("linalg_cholesky_ex")
def _cholesky(done: Any, made: Any) -> Any:
    named = {"upper": True} if done.args and done.args[0] else {}
    op = aten.linalg_cholesky_ex.default
    if len(made) > 1:
        return Step(op, done.inputs[:1], named)
    return _checked(done, made, op, "linalg.cholesky", done.inputs[:1], named)


@_rule("linalg_ldl_factor_ex")
def _ldl_factor(done: Any, made: Any) -> Any:
    hermitian, check_errors = done.args
    named = {"hermitian": True} if hermitian else {}
    op = aten.linalg_ldl_factor_ex.default
    if len(made) > 2:
        return Step(op, done.inputs[:1], named)
    return _checked(done, made, op, "torch.linalg.ldl_factor", done.inputs[:1], named)


@_rule("det")
def _det(done: Any, made: Any) -> Step:
    t = done.inputs[0]
    return Step(aten._linalg_det.default, (t,), {}, lambda made: _with_factors(made, t, 1))


@_rule("slogdet")
def _slogdet(done: Any, made: Any) -> Step:
    t = done.inputs[0]
    return Step(aten._linalg_slogdet.default, (t,), {}, lambda made: _with_factors(made, t, 2))


@_rule("linalg_svd")
def _svd(done: Any, made: Any) -> Step:
    return Step(aten._linalg_svd.default, (done.inputs[0], *([True] if done.args[0] else [])))


@_rule("linalg_svdvals")
def _svdvals(done: Any, made: Any) -> Any:
    t = done.inputs[0]

    def run() -> Any:
        with dispatch.unseen():
            u, _, vh = cygrad.linalg.svd(t.detach(), False)
        return found_by((u, made[0], vh), aten._linalg_svd.default, t)[1]

    return Several(run)


@_rule("linalg_eigh")
def _eigh(done: Any, made: Any) -> Step:
    return Step(aten._linalg_eigh.default, (done.inputs[0], *shortened(done.args[:1], ("L",))))


@_rule("linalg_eigvalsh")
def _eigvalsh(done: Any, made: Any) -> Any:
    t = done.inputs[0]
    how = shortened(done.hint, ("L",))

    def run() -> Any:
        with dispatch.unseen():
            vectors = cygrad.linalg.eigh(t.detach(), *how)[1]
        return found_by((made[0], vectors), aten._linalg_eigh.default, t, *how)[0]

    return Several(run)


@_rule("linalg_eigvals")
def _eigvals(done: Any, made: Any) -> Any:
    t = done.inputs[0]

    def run() -> Any:
        with dispatch.unseen():
            vectors = cygrad.linalg.eig(t.detach())[1]
        return found_by((made[0], vectors), aten.linalg_eig.default, t)[0]

    return Several(run)


@_rule("linalg_lu")
def _lu(done: Any, made: Any) -> Any:
    if len(made) == 1:
        return None  # shown with the other factors
    p = done.args[0]
    op = aten.linalg_lu.default
    return Several(lambda: found_by((p, *made), op, done.inputs[0])[1:])


@_rule("lu_unpack")
def _lu_unpack(done: Any, made: Any) -> Any:
    if done.hint is None:
        return None  # likewise
    pivots, p, *how = done.hint
    args = done.inputs[0], pivots, *shortened(how, (True, True))
    return Several(lambda: found_by((p, *made), aten.lu_unpack.default, *args)[1:])


@_rule("linalg_lstsq")
def _lstsq(done: Any, made: Any) -> Step:
    _, rcond, driver = done.args
    named = {} if driver in (None, "gelsy") else {"driver": driver}
    return Step(aten.linalg_lstsq.default, (*done.inputs[:2], *shortened([rcond], (None,))), named)


@_rule("linalg_pinv")
def _pinv(done: Any, made: Any) -> Any:
    t, (atol, rtol, hermitian) = done.inputs[0], done.args
    named: dict[str, Any] = {"hermitian": True} if hermitian else {}
    if not any(isinstance(bound, (int, float)) for bound in (atol, rtol)):
        given = {name: bound for name, bound in (("atol", atol), ("rtol", rtol)) if bound is not None}
        return Step(aten.linalg_pinv.atol_rtol_tensor, (t,), {**given, **named})

    def run() -> Any:
        kind = {"dtype": t.real.dtype, "layout": cygrad.strided, "device": t.device}
        bounds = [do(aten.full.default, [], float(bound or 0), **kind) for bound in (atol, rtol)]
        return found_by(made[0], aten.linalg_pinv.atol_rtol_tensor, t, atol=bounds[0], rtol=bounds[1], **named)

    return Several(run)


@_rule("cdist")
def _cdist(done: Any, made: Any) -> Step:
    mode = done.hint[0] if done.hint else None
    return Step(aten._cdist_forward.default, (*done.inputs[:2], done.args[0], mode))


@_rule("pdist")
def _pdist(done: Any, made: Any) -> Step:
    return Step(aten._pdist_forward.default, (done.inputs[0], done.args[0]))


@_rule("trilinear")
def _trilinear(done: Any, made: Any) -> Step:
    a, b, weight = done.inputs[:3]
    return Step(aten._trilinear.default, (a, weight, b, [1, 3], [0], [1, 2], [2, 3]))


@_rule("linalg_vecdot")
def _vecdot(done: Any, made: Any) -> Any:
    a, b = done.inputs[:2]

    def run() -> Any:
        x = do(aten.clone.default, do(aten._conj.default, a)) if a.is_complex() else a
        return found_by(made[0], aten.sum.dim_IntList, do(aten.mul.Tensor, x, b), [done.args[0]])

    return Several(run)


@_rule("linalg_householder_product linalg_matrix_exp")
def _plain(done: Any, made: Any) -> Step:
    return Step(getattr(aten, done.op.name).default, done.inputs)


@_rule("frobenius_norm")
def _frobenius(done: Any, made: Any) -> Any:
    order, dims, keepdim = done.args[:3]
    args = done.inputs[0], order, list(dims or range(done.inputs[0].ndim)), *([True] if keepdim else [])
    return Step(aten.norm.ScalarOpt_dim, args)


@_rule("_grouped_mm")
def _grouped(done: Any, made: Any) -> Step:
    return Step(aten._grouped_mm.default, (*done.inputs[:2], *shortened(done.hint, (None,))))
