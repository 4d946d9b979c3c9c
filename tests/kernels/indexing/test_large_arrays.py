"""Kernels with special code for arrays that are large or have certain layouts, against the plain formula."""

import os

import numpy as np
import pytest

import cygrad as torch

PURE = os.environ.get("CYGRAD_PURE") == "1"


def normal(*shape):
    return np.random.default_rng(3).standard_normal(shape)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("length", [4097, 5000, 65536])
def test_long_windows(length, periodic):
    k = 2 * np.pi * np.arange(length) / (length if periodic else length - 1)
    made = torch.blackman_window(length, periodic, dtype=torch.float64)
    np.testing.assert_allclose(made.numpy(), 0.42 - 0.5 * np.cos(k) + 0.08 * np.cos(2 * k), rtol=0, atol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 3, 17, 64])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_products_of_one_element_repeated(count, dim):
    for x in (normal(5), np.arange(-2, 3), normal(5) + 1j * normal(5)):
        shape, axis = ((count, 5), 0) if dim == 0 else ((5, count), 1)
        repeated = np.broadcast_to(x if dim == 0 else x[:, None], shape)
        found = torch.from_numpy(x).unsqueeze(dim).expand(*shape).cumprod(dim).numpy()
        np.testing.assert_allclose(found, np.cumprod(repeated, axis), rtol=1e-12)


def test_sums_of_many_products():
    a, b = normal(7, 150, 3), normal(7, 3, 160)  # six products are a chunk
    found = torch.addbmm(torch.ones(1, dtype=torch.float64), torch.from_numpy(a), torch.from_numpy(b), beta=2)
    np.testing.assert_allclose(found.numpy(), 2 + (a @ b).sum(0))


@pytest.mark.parametrize("last", [1, 2, 8, 9])
def test_copies_along_a_short_last_axis(last):
    x = normal(300, 40)
    t = torch.from_numpy(x)
    repeated = t.unsqueeze(-1).expand(300, 40, last)
    for copy in (repeated.clone(), repeated.contiguous()):
        assert copy.is_contiguous() and (copy.numpy() == x[..., None]).all()
    turned = torch.from_numpy(normal(last, 9000)).t()
    assert turned.contiguous().equal(turned)


@pytest.mark.parametrize("n", [8, 20])
@pytest.mark.parametrize("count", [1, 40])
def test_factors_of_many_matrices(n, count):
    """By LAPACK if SciPy is installed and the matrices are large enough, otherwise by our own elimination."""
    a = normal(count, n, n)
    p, lower, upper = torch.linalg.lu(torch.from_numpy(a))
    np.testing.assert_allclose((p @ lower @ upper).numpy(), a, atol=1e-10)
    symmetric = torch.from_numpy(a + a.swapaxes(1, 2))
    ld, pivots = torch.linalg.ldl_factor(symmetric)
    x = torch.linalg.ldl_solve(ld, pivots, torch.eye(n, dtype=torch.float64).expand(count, n, n))
    np.testing.assert_allclose((symmetric @ x).numpy(), np.broadcast_to(np.eye(n), a.shape), atol=1e-8)


@pytest.mark.parametrize("count", [1, 40000])
def test_exponents_beyond_the_type(count):
    """For integer exponents only the product may overflow, for others also `2 ** other`, as in PyTorch."""
    x = torch.tensor([1e-30, 1.0, 1e30, 3.0]).repeat(count)
    j = torch.tensor([130, 127, -160, -149]).repeat(count)
    found = torch.ldexp(x, j)
    assert found.equal(torch.ldexp(x.double(), j).float())
    assert found[1] == 2.0**127 and found[3] == 3 * 2.0**-149
    found = torch.ldexp(x, j.float())
    assert found[0] == torch.inf and found[2] == 0
    power = 4 * 2.0**-149 if PURE else 0  # NumPy's exp2 may be off by 4 ulps, ours is exact for integers
    np.testing.assert_allclose(found[[1, 3]], [2.0**127, 3 * 2.0**-149], rtol=5e-7 if PURE else 0, atol=3 * power)
    assert torch.ldexp(x[:4], torch.tensor([8])).tolist() == [v * 256 for v in x[:4].tolist()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_products_by_powers_of_2_are_rounded_once(dtype):
    values = [1.0, -1.2345678, 1e-3, 6e4, 5.96e-8, 0.0, -0.0, np.inf, np.nan, 2e-310, 1.7e308]
    with np.errstate(over="ignore"):
        x = np.array(values).astype(str(dtype).removeprefix("torch."))
    j = np.array([0, 1, -1, -24, -25, -149, -150, 300, -301, -1060, 1060, -1074, 2097, -2098, 2**40, -(2**40)])
    found = torch.ldexp(torch.from_numpy(x)[:, None], torch.from_numpy(j)).numpy()
    with np.errstate(all="ignore"):
        expected = np.ldexp(x[:, None], j.clip(-5000, 5000))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("values", [[0.5, 1.5, 2.5], [-1.0, 0.5, 9.0], []])
def test_values_outside_of_a_histogram(values):
    weight = torch.arange(1.0, len(values) + 1)
    found = torch.histogram(torch.tensor(values), 3, range=(0.0, 3.0), weight=weight).hist
    assert found.tolist() == np.histogram(values, 3, (0, 3), weights=weight.numpy())[0].tolist()


def test_factors_of_parts_of_a_stack():
    """Factors are computed in chunks, and each matrix is column-major."""
    x = normal(50_000, 3, 4).astype("f").transpose(2, 0, 1)
    u, _, vh = torch.linalg.svd(torch.from_numpy(x), full_matrices=False)
    assert u.stride() == (150_000, 1, 50_000) and vh.stride() == (9, 1, 3)
