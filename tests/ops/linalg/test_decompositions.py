"""Decompositions beyond the samples: phases, equal eigenvalues, saved tensors, results into `out`."""

import itertools

import numpy as np
import pytest
from ops.sample import complex_grid, grid

import cygrad as torch
from cygrad._kernels.cpu.linalg import cholesky
from cygrad._kernels.cpu.linalg.lapack import routine

A = complex_grid(3, 3) + np.diag([1.0, 2.0, 4.0])
HERMITIAN = A @ A.conj().T


def weight(*shape):
    return torch.tensor(np.random.default_rng(3).uniform(0.5, 1.5, shape))


def check(function, array):
    """Check the gradient and second gradient of a real function against central differences."""
    x = torch.tensor(array, requires_grad=True)
    (grad,) = torch.autograd.grad(function(x), x, create_graph=True)
    found = grad.detach().numpy()
    np.testing.assert_allclose(found, differences(lambda a: float(function(torch.tensor(a))), array), 1e-5, 1e-6)
    w = torch.tensor(complex_grid(*array.shape) if array.dtype.kind == "c" else grid(*array.shape))

    def slope(a):
        x = torch.tensor(a, requires_grad=True)
        (g,) = torch.autograd.grad(function(x), x)
        return float((g.conj() * w).real.sum() if g.is_complex() else (g * w).sum())

    projected = (grad.conj() * w).real.sum() if grad.is_complex() else (grad * w).sum()
    (second,) = torch.autograd.grad(projected, x)
    np.testing.assert_allclose(second.numpy(), differences(slope, array), 1e-4, 1e-5)


def differences(function, array, step=1e-6):
    grad = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            above, below = array.copy(), array.copy()
            above[index] += unit * step
            below[index] -= unit * step
            grad[index] += unit * (function(above) - function(below)) / (2 * step)
    return grad


# --- Losses independent of phases --------------------------------------------------------------


def test_complex_eigenvectors():
    check(lambda x: (torch.linalg.eig(x).eigenvectors.abs() * weight(3, 3)).sum(), A)


def test_complex_eigenvectors_of_real_matrices():
    check(lambda x: (torch.linalg.eig(x).eigenvectors.abs() * weight(3, 3)).sum(), grid(3, 3))


def test_complex_hermitian_eigenvectors():
    def loss(x):
        values, vectors = torch.linalg.eigh(x + x.mH)
        return (vectors.abs() * weight(3, 3)).sum() + (values * weight(3)).sum()

    check(loss, A)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3)])
@pytest.mark.parametrize("which", ["U", "Vh", "both"])
def test_complex_singular_vectors(shape, which):
    def loss(x):
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        if which == "both":
            return ((u @ vh).real * weight(*shape)).sum() + (s * weight(*s.shape)).sum()
        return (getattr(torch.linalg.svd(x, False), which).abs() * weight(*(u if which == "U" else vh).shape)).sum()

    check(loss, complex_grid(*shape))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: torch.linalg.eig(x)[1], "linalg_eig_backward: The eigenvectors in the complex case"),
        (lambda x: torch.linalg.eigh(x)[1], "linalg_eigh_backward: The eigenvectors in the complex case"),
        (lambda x: torch.linalg.svd(x)[0], "svd_backward: The singular vectors in the complex case"),
    ],
)
def test_losses_that_depend_on_phases_are_refused(function, text):
    x = torch.tensor(HERMITIAN + 0.1j * np.eye(3) if "eig_" in text else HERMITIAN, requires_grad=True)
    with pytest.raises(RuntimeError, match=text):
        function(x).imag.sum().backward()


# --- Gradients that cover both triangles, though only one is read ------------------------------


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize(
    "function",
    [
        torch.linalg.cholesky,
        torch.cholesky,
        lambda x: torch.linalg.cholesky_ex(x, upper=True).L,
        torch.linalg.eigvalsh,
        lambda x: torch.linalg.eigh(x, "U").eigenvectors.abs(),
        lambda x: torch.linalg.pinv(x, hermitian=True),
    ],
)
def test_of_symmetric_matrices(function, kind):
    def loss(x):
        x = x @ x.mH + torch.eye(3, dtype=x.dtype)
        y = function(x)
        return ((y.real if y.is_complex() else y) * weight(*y.shape)).sum()

    check(loss, A if kind == "complex" else grid(3, 3))


# --- Points without a derivative ---------------------------------------------------------------


@pytest.mark.parametrize("function", [torch.linalg.eigh, torch.linalg.svd, torch.linalg.eig])
def test_equal_values(function):
    """The values have a gradient, the vectors do not."""
    x = torch.eye(2, dtype=torch.float64).requires_grad_()
    results = function(x)
    values = results[1 if function is torch.linalg.svd else 0]
    values.real.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    x.grad = None
    results[-1].abs().sum().backward()
    assert not np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 6, 4), (2, 3, 4, 6), (0, 3), (3, 0), (0, 4, 4)], ids=str)
@pytest.mark.parametrize("kind", "fdFD")
def test_factors_are_those_of_numpy(shape, kind, monkeypatch):
    """The factors agree bit for bit, whether or not LAPACK's loops can be called directly."""
    a = complex_grid(*shape).astype(kind) if kind in "FD" else grid(*shape).astype(kind)
    square = (a @ a.conj().swapaxes(-1, -2) + 8 * np.eye(shape[-2])).astype(kind)
    for direct in (True, False):
        if not direct:
            monkeypatch.setattr("cygrad._kernels.cpu.linalg.lapack._routine", lambda name, code: None)
        monkeypatch.setattr(cholesky, "lapack", cholesky.lapack if direct else None)
        monkeypatch.setattr("cygrad._kernels.cpu.linalg.lapack.loops", np.linalg._umath_linalg if direct else None)
        for mode in ("reduced", "complete"):
            for found, expected in zip(torch.linalg.qr(torch.tensor(a), mode), np.linalg.qr(a, mode), strict=True):
                assert found.numpy().dtype == expected.dtype
                np.testing.assert_array_equal(found.numpy(), expected)
        for name in ("cholesky", "inv", "eigh", "eig", "svd", "solve"):
            operands = (square, a) if name == "solve" else (a if name == "svd" else square,)
            found = getattr(torch.linalg, name)(*map(torch.tensor, operands))
            expected = getattr(np.linalg, name)(*operands)
            for part, wanted in zip(*((pair,) if hasattr(pair, "dtype") else pair for pair in (found, expected))):
                kind = np.result_type(wanted, np.complex64) if name == "eig" else wanted.dtype
                assert part.numpy().dtype == kind
                np.testing.assert_array_equal(part.numpy(), wanted)


def test_qr_without_gradient():
    x = torch.tensor(grid(4, 3), requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        torch.linalg.qr(x, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="derivative of linalg.qr depends on Q"):
        torch.linalg.qr(x, "r").R.sum().backward()
    with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not implemented"):
        torch.geqrf(x).tau.sum().backward()


# --- Saved tensors, results --------------------------------------------------------------------


def test_saved_values_have_pytorchs_names():
    x = torch.tensor(grid(3, 3), requires_grad=True)
    svd, eigh, qr = torch.linalg.svd(x), torch.linalg.eigh(x), torch.linalg.qr(x)
    assert svd.U.grad_fn._saved_Vh.equal(svd.Vh) and svd.U.grad_fn._saved_S.equal(svd.S)
    assert eigh.eigenvalues.grad_fn._saved_eigenvectors.equal(eigh.eigenvectors)
    assert qr.R.grad_fn._saved_Q.equal(qr.Q) and qr.R.grad_fn._saved_mode == "reduced"
    assert {"_saved_U", "_saved_S", "_saved_Vh"} <= set(dir(svd.U.grad_fn))


def test_changed_results_are_noticed():
    x = torch.tensor(grid(3, 3), requires_grad=True)
    u, s, vh = torch.linalg.svd(x)
    with torch.no_grad():
        vh.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        s.sum().backward()


def test_saved_results_are_freed():
    x = torch.tensor(grid(3, 3), requires_grad=True)
    s = torch.linalg.svdvals(x)
    s.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        s.sum().backward()


def test_results_into_out():
    x = torch.tensor(grid(3, 3))
    q, r = torch.empty(0, dtype=torch.float64), torch.empty(3, 3, dtype=torch.float64)
    results = torch.linalg.qr(x, out=(q, r))
    assert results.Q is q and results.R is r and torch.allclose(q @ r, x)
    assert repr(results).startswith("torch.return_types.linalg_qr(\nQ=")
    with pytest.raises(TypeError, match=r"linalg_qr\(\): argument 'out' must be tuple of Tensors, not Tensor"):
        torch.linalg.qr(x, out=q)
    with pytest.raises(TypeError, match="expected tuple of 2 elements but got 1"):
        torch.linalg.qr(x, out=(q,))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        torch.linalg.qr(x, out=(q, torch.empty(0)))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.linalg.qr(x.requires_grad_(), out=(q, r))


# --- With and without LAPACK --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", [(3, 3), (70, 70), (80, 66), (2, 65, 90)])
def test_lu_by_lapack_and_without(kind, shape, monkeypatch):
    a = torch.tensor((grid if kind == "real" else complex_grid)(*shape))
    found = torch.linalg.lu_factor_ex(a)
    monkeypatch.setattr("cygrad._kernels.cpu.linalg.lapack._routine", lambda name, code: None)
    own = torch.linalg.lu_factor_ex(a)
    np.testing.assert_allclose(found.LU.numpy(), own.LU.numpy(), 1e-6, 1e-8)
    assert found.pivots.equal(own.pivots) and found.info.equal(own.info) and found.pivots.dtype is torch.int32
    p, lower, upper = torch.linalg.lu(a)
    assert torch.allclose(p @ lower @ upper, a)


@pytest.mark.parametrize("kind", ["symmetric", "complex symmetric", "hermitian"])
def test_ldl_by_lapack_and_without(kind, monkeypatch):
    a = grid(70, 70) if kind == "symmetric" else complex_grid(70, 70)
    hermitian = kind == "hermitian"
    a = torch.tensor(a + (a.conj().T if hermitian else a.T))
    found = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
    monkeypatch.setattr("cygrad._kernels.cpu.linalg.lapack._routine", lambda name, code: None)
    own = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
    np.testing.assert_allclose(found.LD.numpy(), own.LD.numpy(), 1e-6, 1e-8)
    assert found.pivots.equal(own.pivots) and found.info.equal(own.info)
    b = torch.tensor(grid(70, 3)).to(a.dtype)
    assert torch.allclose(a @ torch.linalg.ldl_solve(*own[:2], b, hermitian=hermitian), b)


def systems(library, a, b, tau):
    """Yield the results for systems with square matrices, their factors and reflectors, with all combinations of
    flags.
    """
    linalg = library.linalg
    for upper, left, unit in itertools.product((False, True), repeat=3):
        flags = {"upper": upper, "left": left, "unitriangular": unit}
        yield linalg.solve_triangular(a, b if left else b.mT, **flags)
        yield library.triangular_solve(b, a, upper, left, unit).solution
    pivots = library.full(a.shape[:-1], a.shape[-1], dtype=library.int32)
    for left, adjoint in itertools.product((False, True), repeat=2):
        yield linalg.lu_solve(a, pivots, b if left else b.mT, left=left, adjoint=adjoint)
    for upper in (False, True):
        yield library.cholesky_solve(b, a, upper)
        yield library.cholesky_inverse(a, upper)
    yield linalg.householder_product(a, tau)
    if a.shape[:-2] == b.shape[:-2]:
        for left, turned in itertools.product((False, True), repeat=2):
            yield library.ormqr(a, tau, b if left else b.mT, left, turned)
        yield from linalg.lstsq(a, b)
        yield linalg.lstsq(a, b, driver="gels").solution
        yield linalg.lstsq(a[..., :2, :], b[..., :2, :]).solution
        yield linalg.lstsq(a[..., :2], b).solution
        yield linalg.lstsq(a[..., :2], b, driver="gels").residuals
    yield linalg.solve(a, b)
    yield linalg.ldl_solve(a, pivots, b)
    yield from library.lu_unpack(a, pivots)


SHAPES = [
    ((5, 5), (5, 3)),
    ((2, 4, 4), (2, 4, 1)),
    ((4, 4), (2, 4, 3)),
    ((2, 1, 4, 4), (3, 4, 2)),
    ((40, 40), (40, 2)),
    ((0, 0), (0, 2)),
    ((2, 3, 3), (2, 3, 0)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("layout", ["rows", "columns", "not aligned", "every second"])
def test_systems_by_lapack_and_without(shapes, kind, layout, monkeypatch):
    """Results agree, whether or not LAPACK can be called, for every memory layout, and the operands are left
    unchanged.
    """

    def laid(array):
        if layout == "columns":
            return array.swapaxes(-1, -2).copy().swapaxes(-1, -2)
        if layout == "not aligned":
            memory = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
            memory[...] = array
            return memory
        return array.repeat(2, -1)[..., ::2] if layout == "every second" else array

    make = complex_grid if kind in "FD" else grid
    a, b = make(*shapes[0]) / 4 + 2 * np.eye(shapes[0][-1]), make(*shapes[1])
    tau = np.full(a.shape[:-1], 0.5)
    arrays = [laid(array.astype(kind)) for array in (a, b)] + [tau.astype(kind)]
    before = [array.copy() for array in arrays]
    found = list(systems(torch, *map(torch.from_numpy, arrays)))
    for array, former in zip(arrays, before):
        np.testing.assert_array_equal(array, former)
    monkeypatch.setattr("cygrad._kernels.cpu.linalg.lapack._routine", lambda name, code: None)
    for number, (one, other) in enumerate(zip(found, systems(torch, *map(torch.from_numpy, before)), strict=True)):
        assert one.dtype is other.dtype and one.shape == other.shape
        bound = 2e-3 if kind in "fF" else 1e-9
        np.testing.assert_allclose(one.numpy(), other.numpy(), bound, bound, err_msg=str(number))


@pytest.mark.parametrize("by_lapack", [True, False])
def test_no_pivots_lead_out_of_the_matrix(by_lapack, monkeypatch):
    """Row numbers out of range raise an error; incomplete 2x2 blocks do not affect the other matrices."""
    if not by_lapack:
        monkeypatch.setattr("cygrad._kernels.cpu.linalg.lapack._routine", lambda name, code: None)
    a, b = torch.tensor(grid(2, 3, 3) + 4 * np.eye(3)), torch.tensor(grid(2, 3, 2))
    for row in (0, 4, -1, 2**31 - 1, -(2**31)):
        pivots = torch.tensor([[1, 2, 3], [1, row, 3]], dtype=torch.int32)
        with pytest.raises(RuntimeError, match="Pivots given to lu_solve"):
            torch.linalg.lu_solve(a, pivots, b)
        with pytest.raises(RuntimeError, match="pivots passed to lu_unpack"):
            torch.lu_unpack(a, pivots)
    for halves in ([1, 2, -3], [-1, 2, 3], [-2, -2, -3], [1, -3, 3], [-1, -2, -3]):
        pivots = torch.tensor([[1, 2, 3], halves], dtype=torch.int32)
        found = torch.linalg.ldl_solve(a, pivots, b)
        assert torch.allclose(found[0], torch.linalg.ldl_solve(a[0], pivots[0], b[0]))


@pytest.mark.parametrize("kind", "fd")
def test_subnormal_numbers(kind):
    """Subnormal pivots and divisors work, although their reciprocals may overflow."""
    tiny = np.finfo(kind).smallest_normal
    for shape in ((4, 4), (3, 5, 5)):
        a, number = (grid(*shape) * tiny / 64).astype(kind), np.arange(shape[-1])
        p, lower, upper = (part.numpy() for part in torch.linalg.lu(torch.tensor(a)))
        assert abs(lower).max() < 1.5
        np.testing.assert_allclose(p @ lower @ upper, a, atol=tiny * np.finfo(kind).eps * 32)
        a[..., number, number] = tiny / 64
        b = torch.tensor(a[..., :2] * 2)
        for upper in (False, True):
            x = torch.linalg.solve_triangular(torch.tensor(np.tril(np.triu(a))), b, upper=upper)
            np.testing.assert_allclose(x.numpy(), a[..., :2] * 2 / a[..., number, number, None])
        pivots = torch.tensor(np.broadcast_to(number + 1, shape[:-1]).astype("i"))
        x = torch.linalg.lu_solve(torch.tensor(np.triu(a) * np.eye(shape[-1])).to(b.dtype), pivots, b)
        np.testing.assert_allclose(x.numpy(), a[..., :2] * 2 / a[..., number, number, None])


def test_nan_among_pivots_spreads():
    a = grid(2, 5, 5)
    a[0, 2, 2] = np.nan
    factors, info = torch.linalg.lu_factor_ex(torch.tensor(a))[::2]
    assert factors.isnan().sum((-2, -1)).tolist() == [7, 0]
    assert factors[0, -1].isnan().any() and not info.any()


@pytest.mark.skipif(routine("gels", np.empty(0)) is None, reason="LAPACK's functions can not be called")
def test_lstsq_of_no_full_rank():
    """A column of zeros stays exactly zero in every LAPACK; of equal columns, rounding may leave a nonzero pivot."""
    ones = torch.ones(2, 3, 3, dtype=torch.float64)
    a = torch.diag(torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)).expand(2, 3, 3)
    with pytest.raises(
        torch.linalg.LinAlgError, match=r"lstsq: \(Batch element 0\): The least squares solution could not"
    ):
        torch.linalg.lstsq(a, ones, driver="gels")
    assert torch.linalg.lstsq(a, ones).rank.tolist() == [2, 2]
    assert torch.linalg.lstsq(ones, ones, rcond=1e-10).rank.tolist() == [1, 1]


def test_large_systems_are_solved_by_blocks():
    a = np.triu(grid(150, 150)) + 3 * np.eye(150)
    b = grid(2, 150, 4)
    for upper, matrix in ((True, a), (False, a.T)):
        x = torch.linalg.solve_triangular(torch.tensor(matrix), torch.tensor(b), upper=upper)
        np.testing.assert_allclose(matrix @ x.numpy(), b, atol=1e-9)
    zero = a.copy()
    zero[100, 100] = 0
    x = torch.linalg.solve_triangular(torch.tensor(zero), torch.tensor(b), upper=True).numpy()
    assert np.isfinite(x[:, 101:]).all() and np.isinf(x[:, 100]).all() and np.isnan(x[:, 0]).all()


# --- PyTorch -----------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["eigh", "svd", "eig", "qr"])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_gradients_as_pytorch(name, kind):
    """The losses do not depend on signs and phases."""
    theirs = pytest.importorskip("torch")
    array = A if kind == "complex" else grid(3, 3)
    found = []
    for library in (torch, theirs):
        x = library.tensor(array).requires_grad_()
        parts = getattr(library.linalg, name)(x)
        w = library.tensor(weight(3, 3).numpy())
        loss = sum((part.abs() * (w if part.ndim == 2 else w[0])).sum() for part in parts)
        (grad,) = library.autograd.grad(loss, x, create_graph=True)
        (second,) = library.autograd.grad((grad.abs() ** 2).sum(), x)
        found.append((grad.detach().numpy(), second.numpy()))
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, 1e-6, 1e-6)


def test_least_squares_of_one_b_for_a_stack():
    """If B has one dimension less than A and is no batch of vectors, all matrices share it, as in PyTorch."""
    a = torch.tensor([[[2.0, 1.0], [1.0, 3.0]]], requires_grad=True)
    b = torch.tensor([[1.0, 2.0, 0.0], [3.0, 5.0, 1.0]], requires_grad=True)
    found = torch.linalg.lstsq(a, b).solution
    expected = torch.linalg.solve(a, b).expand(2, 2, 3)
    assert torch.allclose(found, expected, atol=1e-5)
    gradients = [torch.autograd.grad((each * each).sum(), (a, b)) for each in (found, expected)]
    assert all(torch.allclose(x, y, atol=1e-4) for x, y in zip(*gradients, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_values_of_infinite_matrices(dtype):
    good, infinite = torch.eye(2, dtype=dtype), torch.full((2, 2), float("inf"), dtype=dtype)
    values = torch.linalg.svdvals(torch.stack([good, infinite]))
    assert values[0].tolist() == [1, 1] and values[1].isnan().all() and values.dtype is good.real.dtype
    assert torch.linalg.matrix_norm(infinite, "nuc").isnan() and torch.linalg.matrix_norm(infinite, 2).isnan()
    with pytest.raises(torch.linalg.LinAlgError, match="contained non-finite values"):
        torch.linalg.svdvals(torch.full((2, 2), float("nan"), dtype=dtype))


@pytest.mark.parametrize("p", ["nuc", "fro", 1, float("inf")])
def test_condition_numbers_beside_a_singular_matrix(p):
    both = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    found = torch.linalg.cond(both, p)
    assert found[0] == torch.linalg.cond(both[0], p) and found[1].item() == float("inf")


@pytest.mark.parametrize("name", ["rcond", "rtol", "atol"])
def test_complex_tolerances_of_pinv(name):
    line = f"torch.linalg.pinv: {name} tensor of complex type is not supported. Got ComplexFloat"
    with pytest.raises(RuntimeError, match=line):
        torch.linalg.pinv(torch.ones(2, 2), **{name: torch.tensor(1j)})


def test_a_drop_of_all_singular_values_is_ignored_by_the_driver_that_ignores_it():
    a, b = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.ones(2, 1)
    assert torch.linalg.lstsq(a, b, rcond=1.0, driver="gelsd").solution.tolist() == [[0.5], [1.0]]
    assert torch.linalg.lstsq(a, b, rcond=1.0, driver="gelss").solution.tolist() == [[0.0], [0.0]]
    assert torch.linalg.lstsq(a, b, rcond=0.5, driver="gelsd").rank == 1
