"""The leading singular values or eigenvalues of large matrices, by random projections and LOBPCG."""

from types import SimpleNamespace

import numpy as np

from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, OUT0, OUT1, declare, publish
from cygrad._core.graph.record import record_outputs
from cygrad._kernels.cpu.linalg.lobpcg import lobpcg as lobpcg_array
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, div, mul, sub
from cygrad._ops.base.checks.common import check_unbatched
from cygrad._ops.base.products import matmul
from cygrad._ops.base.reductions import mean
from cygrad._ops.base.views import expand, transpose, unsqueeze
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.creation.ranges import eye
from cygrad._ops.linalg.eigen import differences, without_diagonal
from cygrad._ops.linalg.qr import linalg_qr
from cygrad._ops.linalg.solve import linalg_solve
from cygrad._ops.linalg.svd import linalg_svd
from cygrad._ops.random.random import randn
from cygrad._ops.shape.diagonals import diag_embed

# -- random projections --


def svd_by_products(times, adjoint_times, shape, q, niter, kind):
    """Approximate the singular values of a matrix that is given by two functions: products with it and its adjoint.

    Orthonormal columns span its range approximately: Halko et al., algorithm 4.4. `kind`: its dtype and device.
    """
    m, n = shape
    if m < n:
        u, s, v = svd_by_products(adjoint_times, times, (n, m), q, niter, kind)
        return v, s, u
    basis = linalg_qr(times(randn(n, q, **kind)))[0]
    for _ in range(niter):
        basis = linalg_qr(adjoint_times(basis))[0]
        basis = linalg_qr(times(basis))[0]
    u, s, vh = linalg_svd(adjoint(adjoint_times(basis)), False)
    return matmul(basis, u), s, adjoint(vh)


def svd_lowrank(A, q=6, niter=2, M=None):
    """Approximate the `q` largest singular values of matrices (..., m, n), with vectors: a tuple (U, S, V).

    A is approximately U diag(S) V^H; with `M`, A - M is. Intended for matrices whose rank is not much above q, by
    N. Halko, P.-G. Martinsson, J. A. Tropp, "Finding structure with randomness" (2009), algorithm 5.1, with `niter`
    steps of subspace iteration. Composed of products, QR and a small `linalg.svd`, and differentiable through them.

    >>> import cygrad
    >>> U, S, V = cygrad.svd_lowrank(cygrad.diag(cygrad.tensor([3.0, 2.0, 0.0, 0.0])), 2)
    >>> S.round(decimals=4)
    tensor([3., 2.])
    """
    a = require(A, "svd_lowrank", "A")
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        a = sub(a, expand(require(M, "svd_lowrank", "M", 4), a.shape))

    def times(x):
        return matmul(a, x)

    def adjoint_times(x):
        return matmul(adjoint(a), x)

    return svd_by_products(times, adjoint_times, a.shape[-2:], q, niter, {"dtype": a.dtype, "device": a.device})


def pca_lowrank(A, q=None, center=True, niter=2):
    """Approximate the first `q` principal components of the rows of matrices (..., m, n): a tuple (U, S, V).

    V (..., n, q) holds the directions, S their singular values. Columns are centered unless `center` is False. q
    defaults to min(6, m, n). See `svd_lowrank`. Raises ValueError for q > min(m, n).

    >>> import cygrad
    >>> U, S, V = cygrad.pca_lowrank(cygrad.tensor([[1.0, 0.0], [3.0, 0.0]]), 1)
    >>> V.abs()
    tensor([[1.],
            [0.]])
    """
    a = require(A, "pca_lowrank", "A")
    q = checked_count(a.shape, q, niter)
    return svd_lowrank(sub(a, mean(a, -2, True)) if center else a, q, niter)


def checked_count(shape, q, niter):
    """Return how many components to compute, or raise ValueError for arguments of `pca_lowrank` that do not fit."""
    m, n = shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return q


# -- LOBPCG --


def lobpcg_rule(n, grads):
    """The rule of `linalg.eigh` within the span of the vectors x_i, plus (E_i - A)^-1 applied outside of it."""
    (general,) = n.args
    if general:
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")
    a, values, x = n.saved(0), n.saved_output(0), n.saved_output(1)
    of_values, of_x = grads
    if of_x is None:
        return matmul(mul(x, unsqueeze(of_values, -2)), adjoint(x))
    inside = matmul(adjoint(x), of_x)
    outside = sub(of_x, matmul(x, inside))
    inside = without_diagonal(div(inside, differences(values)))
    if of_values is not None:
        inside = add(inside, diag_embed(of_values))
    away = 2 * float(np.abs(array_of(values)).max()) + 1  # shifts known eigenvalues, so that no system is singular
    shifted = sub(mul(matmul(x, adjoint(x)), away), a)
    each = unsqueeze(unsqueeze(values, -1), -1)
    systems = add(unsqueeze(shifted, -3), mul(each, eye(a.shape[-1], dtype=a.dtype, device=a.device)))
    turned = linalg_solve(systems, unsqueeze(transpose(outside, -2, -1), -1))[..., 0]
    return matmul(add(matmul(x, inside), transpose(turned, -2, -1)), adjoint(x))


LOBPCG = declare(
    "lobpcg",
    lobpcg_rule,
    engine="a loop until it converges: PyTorch shows the ops of its own steps",
    saves=IN0 | OUT0 | OUT1,
    flags=FUNCTION_ONLY,
    inputs="A",
    outputs="E X",
    attributes="general",
    node="LOBPCGAutogradFunctionBackward",
    devices="together",
    batching=None,
    in_python=True,
    float8="norm_cpu",
)


def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """Find the `k` largest (smallest if not `largest`) eigenvalues of Hermitian matrices (..., m, m), with vectors.

    Returns a tuple (E, X) with A X = X diag(E), or A X = B X diag(E) for a positive-definite B. `X` (..., m, n) is the
    initial guess, random by default; `n` is the number of vectors to iterate, k by default; `iK` is a preconditioner.
    Stops after `niter` steps (1000) or when residuals fall below `tol`, by default sqrt(eps) of the dtype. Both
    `method`s run the same algorithm, that of A. V. Knyazev (2001) with the blocks orthonormalized together, so the
    `ortho_` parameters have no effect. `tracker` is called in each step with an object that has A, B, E, X, R, `ivars`
    and `tvars`.

    Saves A, E and X. Gradient: that of `linalg.eigh`, for a subset of the eigenpairs. Raises ValueError if 3 n > m, and
    in backward if B was given.

    >>> import cygrad
    >>> E, X = cygrad.lobpcg(cygrad.diag(cygrad.arange(1.0, 10.0)), 2)
    >>> E.round()
    tensor([9., 8.])
    """
    t = require(A, "lobpcg", "A")
    k, n = checked_counts(t, k, X, n)
    m = t.shape[-1]
    t = div(add(t, adjoint(t)), 2) if is_recorded(t) else t
    start = randn(*t.shape[:-2], m, n, dtype=t.dtype, device=t.device) if X is None else require(X, "lobpcg", "X", 4)
    check_unbatched("lobpcg", B, start)
    a = array_of(t)
    options = options_of(niter, tol, largest, a.dtype)
    others = tuple(None if other is None else array_of(other) for other in (B, iK))
    arrays = each_lobpcg(a, others, array_of(start), options, watcher(t, B, tracker))
    arrays = arrays[0][..., :k].copy(), arrays[1][..., :k].copy()
    return record_outputs(LOBPCG, arrays, (t, B), (B is not None,), 2)


def checked_counts(t, k, x, n):
    """Return the numbers of wanted pairs and of vectors, or raise an error for a matrix that LOBPCG does not take."""
    if t.dim() < 2 or t.shape[-1] != t.shape[-2]:
        raise AssertionError(f"A must be square, got shape {t.shape}")
    k = (1 if x is None else x.shape[-1]) if k is None else k
    n = (k if x is None else x.shape[-1]) if n is None else n
    if t.shape[-1] < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={t.shape[-1]}) is smaller than 3 x the "
            f"number of requested eigenpairs (={n})"
        )
    return k, n


def options_of(niter, tol, largest, dtype):
    """Return the steps, the tolerance and the end of the spectrum that arguments of `lobpcg` mean."""
    tolerance = np.finfo(dtype).eps ** 0.5 if tol is None else tol
    return 1000 if niter is None or niter < 0 else niter, tolerance, largest is None or bool(largest)


def each_lobpcg(a, matrices, start, options, report):
    """Run LOBPCG on each matrix of a batch."""
    stack, n = a.shape[:-2], start.shape[-1]
    values, vectors = (
        np.empty(shape, dtype, like=a)
        for shape, dtype in (((*stack, n), a.real.dtype), ((*stack, a.shape[-1], n), a.dtype))
    )
    steps, tolerance, largest = options
    b, preconditioner = (np.broadcast_to(o, a.shape) if o is not None else None for o in matrices)
    start = np.broadcast_to(start, vectors.shape)
    for i in np.ndindex(stack):
        others = [None if o is None else o[i] for o in (b, preconditioner)]
        values[i], vectors[i] = lobpcg_array(a[i], others, start[i], steps, tolerance, largest, report)
    return values, vectors


def watcher(t, b, tracker):
    """Return a function that calls the user's tracker in each step."""
    if tracker is None:
        return None

    def report(step, values, x, residuals, relative):
        ivars = {"istep": step}
        parts = {"E": values, "X": x, "R": residuals}
        tensors = {name: tensor_of(array.copy()) for name, array in parts.items()}
        tracker(SimpleNamespace(A=t, B=b, ivars=ivars, tvars={"rerr": tensor_of(relative.copy())}, **tensors))

    return report


# random, so the generic tests leave them out
functions = publish(globals(), {"svd_lowrank": svd_lowrank, "pca_lowrank": pca_lowrank})
