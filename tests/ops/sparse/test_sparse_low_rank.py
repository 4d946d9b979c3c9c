"""Singular values and eigenvalues of sparse matrices, which stay sparse."""

import numpy as np
import pytest

import cygrad as torch

pytest.importorskip("scipy")
LAYOUTS = ["to_sparse", "to_sparse_csr", "to_sparse_csc"]


def made(m, n, layout):
    """Return a dense matrix of rank 2 with zeros, and a sparse one with the same elements."""
    torch.manual_seed(0)
    dense = torch.zeros(m, n, dtype=torch.float64)
    dense[::2] = torch.rand(1, n, dtype=torch.float64)
    dense[1, :2] = 3.0
    return dense, getattr(dense, layout)()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(9, 5), (5, 9)])
@pytest.mark.parametrize("shift", [None, "row", "whole", "sparse"])
def test_singular_values(layout, shape, shift):
    dense, matrix = made(*shape, layout)
    shifts = {None: None, "row": dense.mean(0, keepdim=True), "whole": dense * 0.5, "sparse": matrix * 0.5}
    M = shifts[shift]
    u, s, v = torch.svd_lowrank(matrix, 3, M=M)
    expected = dense if M is None else dense - (M if shift != "sparse" else M.to_dense())
    np.testing.assert_allclose((u * s) @ v.mH, expected, atol=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("center", [True, False])
def test_principal_components(layout, center):
    dense, matrix = made(8, 5, layout)
    expected = torch.pca_lowrank(dense, 3, center)
    u, s, v = torch.pca_lowrank(matrix, 3, center)
    np.testing.assert_allclose(s, expected[1], atol=1e-10)
    np.testing.assert_allclose((u * s) @ v.mH, dense - dense.mean(0) if center else dense, atol=1e-10)
    with pytest.raises(ValueError, match="must be non-negative integer and not greater than"):
        torch.pca_lowrank(matrix, 6)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("center", [True, False])
def test_gradients_of_singular_values_have_the_coordinates_of_the_matrix(layout, center):
    dense, matrix = made(6, 4, layout)
    dense.requires_grad_()
    matrix.requires_grad_()
    u, _, vh = torch.linalg.svd(dense.detach() - (dense.detach().mean(0) if center else 0), full_matrices=False)
    torch.pca_lowrank(matrix, 2, center)[1].sum().backward()
    expected = u[:, :2] @ vh[:2]
    expected = (expected - expected.mean(0) if center else expected) * (dense != 0)
    assert matrix.grad.layout is matrix.layout
    np.testing.assert_allclose(matrix.grad.to_dense(), expected.detach(), atol=1e-8)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_eigenvalues(layout):
    dense = torch.diag(torch.arange(1.0, 13, dtype=torch.float64))
    dense[0, 5] = dense[5, 0] = 2.0
    steps = []
    options = {"tol": 1e-9, "tracker": lambda worker: steps.append(worker.ivars["istep"])}
    values, vectors = torch.lobpcg(getattr(dense, layout)(), 2, largest=False, **options)
    np.testing.assert_allclose(values, torch.linalg.eigvalsh(dense)[:2], atol=1e-8)
    np.testing.assert_allclose(dense @ vectors, vectors * values, atol=1e-6)
    assert steps == list(range(len(steps))) and steps
    by_b, _ = torch.lobpcg(getattr(dense, layout)(), 1, (2 * torch.eye(12, dtype=torch.float64)).to_sparse(), tol=1e-9)
    np.testing.assert_allclose(by_b, torch.linalg.eigvalsh(dense)[-1:] / 2, atol=1e-8)
    with pytest.raises(ValueError, match="^lobpcg.backward does not support sparse input"):
        torch.lobpcg(getattr(dense, layout)().requires_grad_(), 1)
