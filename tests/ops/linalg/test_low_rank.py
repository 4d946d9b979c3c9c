"""Random projections and LOBPCG, tested by properties that do not depend on the random start."""

import numpy as np
import pytest
from ops.sample import complex_grid, grid

import cygrad as torch


def low_rank(m, n, rank):
    return grid(m, rank) @ grid(rank, n)


@pytest.mark.parametrize("shape", [(9, 6), (6, 9), (2, 9, 6)])
def test_svd_lowrank_of_matrices_of_low_rank(shape):
    a = np.stack([low_rank(*shape[-2:], 3)] * 2)[: shape[0]] if len(shape) == 3 else low_rank(*shape, 3)
    u, s, v = torch.svd_lowrank(torch.tensor(a), 3)
    assert u.shape == (*shape[:-1], 3) and v.shape == (*shape[:-2], shape[-1], 3)
    assert torch.allclose(u * s.unsqueeze(-2) @ v.mT, torch.tensor(a))
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a, compute_uv=False)[..., :3])


def test_svd_lowrank_less_a_mean():
    a, m = torch.tensor(low_rank(8, 5, 2)), torch.tensor(grid(1, 5))
    u, s, v = torch.svd_lowrank(a, 4, M=m)
    assert torch.allclose((u * s) @ v.mT, a - m)


def test_svd_lowrank_gradient():
    """The gradient of all nonzero singular values."""
    x, y = (torch.tensor(low_rank(8, 5, 2) + grid(8, 5) * 0).requires_grad_() for _ in range(2))
    weights = torch.tensor([2.0, 1.0], dtype=torch.float64)
    (torch.svd_lowrank(x, 2, 6)[1] * weights).sum().backward()
    (torch.linalg.svdvals(y)[:2] * weights).sum().backward()
    assert torch.allclose(x.grad, y.grad)


def test_pca_lowrank():
    a = torch.tensor(low_rank(9, 6, 2) + 5.0)
    u, s, v = torch.pca_lowrank(a)
    assert u.shape == (9, 6) and s.shape == (6,) and v.shape == (6, 6)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a.numpy() - a.numpy().mean(0), compute_uv=False), atol=1e-9)
    assert torch.pca_lowrank(a, 2, center=False)[1][0] > s[0]
    with pytest.raises(ValueError, match=r"q\(=7\) must be non-negative integer and not greater than min\(m, n\)=6"):
        torch.pca_lowrank(a, 7)
    with pytest.raises(ValueError, match=r"niter\(=-1\) must be non-negative integer"):
        torch.pca_lowrank(a, niter=-1)


def symmetric(n):
    a = grid(n, n)
    return a + a.T


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_eigenpairs(largest):
    a = symmetric(24)
    e, x = torch.lobpcg(torch.tensor(a), 3, largest=largest)
    expected = np.linalg.eigvalsh(a)
    np.testing.assert_allclose(e.numpy(), expected[::-1][:3] if largest else expected[:3], 1e-6)
    np.testing.assert_allclose(a @ x.numpy(), x.numpy() * e.numpy(), atol=1e-4)
    assert torch.allclose(x.mT @ x, torch.eye(3, dtype=x.dtype), atol=1e-8)


def test_lobpcg_with_another_inner_product_and_a_preconditioner():
    a, b = symmetric(20) + 40 * np.eye(20), np.diag(np.arange(20.0) + 1)
    e, x = torch.lobpcg(torch.tensor(a), 2, B=torch.tensor(b), iK=torch.tensor(np.linalg.inv(a)), largest=False)
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(b, a)).real)[:2]
    np.testing.assert_allclose(e.numpy(), expected, 1e-6)
    assert torch.allclose(x.mT @ torch.tensor(b) @ x, torch.eye(2, dtype=x.dtype), atol=1e-8)


def test_lobpcg_gradients_are_those_of_eigh():
    a, w = symmetric(12), torch.tensor(grid(12, 2))
    found = []
    for pairs in (
        lambda x: torch.lobpcg(x, 2, tol=1e-14),
        lambda x: [part.flip(-1)[..., :2] for part in torch.linalg.eigh((x + x.mT) / 2)],
    ):
        x = torch.tensor(a, requires_grad=True)
        e, v = pairs(x)
        (g,) = torch.autograd.grad((e * w[0]).sum() + (v * v * w).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), x)
        found.append((g.detach(), h))
    for g, h in zip(*found):
        assert torch.allclose(g, h, atol=1e-8)


def test_lobpcg_reports_and_refuses():
    seen = []
    a = torch.tensor(symmetric(9), requires_grad=True)
    b = torch.eye(9, dtype=torch.float64) * 2
    e, x = torch.lobpcg(a, 2, B=b, niter=3, tracker=lambda state: seen.append((state.ivars["istep"], state.X.shape)))
    assert seen[:2] == [(0, (9, 2)), (1, (9, 2))] and len(seen) <= 4
    with pytest.raises(ValueError, match="lobpcg.backward does not support backward with B != I yet"):
        e.sum().backward()
    with pytest.raises(ValueError, match=r"smaller than 3 x the number of requested eigenpairs \(=4\)"):
        torch.lobpcg(a, 4)
    with pytest.raises(AssertionError, match=r"A must be square, got shape torch.Size\(\[3, 4\]\)"):
        torch.lobpcg(torch.ones(3, 4), 1)


def test_lobpcg_of_complex_matrices():
    z = complex_grid(9, 9)
    z = z + z.conj().T
    e, x = torch.lobpcg(torch.tensor(z), 2)
    np.testing.assert_allclose(e.numpy(), np.linalg.eigvalsh(z)[:-3:-1])
    np.testing.assert_allclose(z @ x.numpy(), x.numpy() * e.numpy(), atol=1e-4)


def test_lobpcg_of_stacks():
    a = symmetric(9)
    e, x = torch.lobpcg(torch.tensor(np.stack([a, 2 * a])), 2)
    assert x.shape == (2, 9, 2)
    assert torch.allclose(e[1], 2 * e[0])
