"""Tensors created on GPUs: their device, random numbers, and their view from other libraries and files."""

import copy
import pickle

import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad
from cygrad._core.graph.internals import array_of
from cygrad._kernels.device.dispatch import Kernel
from cygrad.distributions import Beta, Dirichlet, Gamma

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


@pytest.mark.parametrize(
    "text",
    [
        "arange(5, {})",
        "arange(0.0, 1.0, 0.25, {})",
        "linspace(0, 1, 5, {})",
        "logspace(0, 2, 3, {})",
        "eye(3, 2, {})",
        "hann_window(5000, {})",
        "kaiser_window(5, {})",
        "signal.windows.exponential(5, {})",
        "fft.fftfreq(5, {})",
        "tril_indices(3, 3, {})",
        "full((2,), 3, {})",
        "full((), 65536.0, {})",
        "scalar_tensor(2, {})",
        "as_tensor([1, 2], {})",
    ],
)
def test_functions_that_make_tensors_make_them_where_they_are_told(text):
    made, expected = (eval("cygrad." + text.format(place)) for place in ("device='cuda'", "device='cpu'"))
    assert made.is_cuda
    assert made.dtype is expected.dtype
    np.testing.assert_allclose(made.cpu().numpy(), expected.numpy(), 1e-6, 1e-6)


def test_the_default_device_is_that_of_the_block():
    with cygrad.device("cuda"):
        assert cygrad.zeros(2).is_cuda
        assert cygrad.get_default_device() == cygrad.device("cuda:0")
        assert not cygrad.zeros(2, device="cpu").is_cuda
    assert not cygrad.zeros(2).is_cuda


def test_streams_of_gpus_begin_anew_with_their_seed_and_state():
    generator = cygrad.Generator("cuda").manual_seed(5)
    first, state = cygrad.rand(7, device="cuda", generator=generator), generator.get_state()
    second = cygrad.rand(7, device="cuda", generator=generator)
    generator.set_state(state)
    assert state.shape == (16,)
    assert cygrad.rand(7, device="cuda", generator=generator).tolist() == second.tolist() != first.tolist()
    assert cygrad.rand(7, device="cuda", generator=generator.manual_seed(5)).tolist() == first.tolist()
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        cygrad.rand(2, generator=generator)
    cygrad.manual_seed(1)
    drawn = cygrad.randn(4, device="cuda").tolist()
    cygrad.manual_seed(1)
    assert cygrad.randn(4, device="cuda").tolist() == drawn


@pytest.mark.parametrize(
    ("draw", "mean", "std"),
    [
        (lambda n: cygrad.rand(n, device="cuda"), 0.5, 0.2887),
        (lambda n: cygrad.randn(n, device="cuda", dtype=cygrad.float64), 0, 1),
        (lambda n: cygrad.randint(-3, 10, (n,), device="cuda"), 3, 3.742),
        (lambda n: cygrad.empty(n, device="cuda").exponential_(2), 0.5, 0.5),
        (lambda n: cygrad.empty(n, device="cuda").geometric_(0.3), 3.333, 2.789),
        (lambda n: cygrad.poisson(cygrad.full((n,), 3.0, device="cuda")), 3, 1.732),
        (lambda n: cygrad.poisson(cygrad.full((n,), 30.0, device="cuda")), 30, 5.477),
        (lambda n: cygrad.binomial(*(cygrad.full((n,), v, device="cuda") for v in (100.0, 0.6))), 60, 4.899),
        (lambda n: Gamma(cygrad.full((n,), 0.5, device="cuda"), 2.0).sample(), 0.25, 0.3536),
        (lambda n: Beta(cygrad.full((n,), 2.0, device="cuda"), 2.0).sample(), 0.5, 0.2236),
        (lambda n: cygrad.multinomial(cygrad.tensor([1.0, 2, 3, 0], device="cuda"), n, True), 1.3333, 0.7454),
    ],
)
def test_numbers_have_the_mean_and_the_spread_of_their_distribution(draw, mean, std):
    cygrad.manual_seed(3)
    drawn = draw(20000).cpu().double()
    assert abs(drawn.mean().item() - mean) < 0.03 * std
    assert abs(drawn.std().item() - std) < 0.03 * std


def test_samples_of_gamma_and_dirichlet_distributions_have_gradients_there():
    a = cygrad.tensor([0.5, 2.0, 7.0], device="cuda", requires_grad=True)
    for kind in (lambda a: Gamma(a, 1.0), Dirichlet):
        x = kind(a).rsample()
        (found,) = cygrad.autograd.grad(x[0], a)
        assert found.is_cuda and found.isfinite().all()
        assert found[0] > 0


def test_pickles_and_copies_stay_on_their_gpu(second):
    x = cygrad.arange(3.0, device=second)
    restored = pickle.loads(pickle.dumps(x))
    assert restored.device == x.device
    assert restored.tolist() == x.tolist()
    whole, part = copy.deepcopy([x, x[1:]])
    part.fill_(7)
    assert whole.tolist() == [0, 7, 7]
    assert x.tolist() == [0, 1, 2]


def test_memory_is_shared_with_cupy(cupy):
    array = cupy.arange(3.0)
    for tensor in (cygrad.from_dlpack(array), cygrad.as_tensor(array)):
        tensor += 1
    assert array.get().tolist() == [2, 3, 4]
    assert cupy.from_dlpack(tensor).data.ptr == tensor.data_ptr() == tensor.__cuda_array_interface__["data"][0]
    assert cygrad.tensor(array).data_ptr() != tensor.data_ptr()


@pytest.mark.parametrize("n", [3, 40])
def test_factors_multiply_to_the_matrix(n):
    a = np.random.default_rng(0).standard_normal((2, n, n))
    x = cygrad.tensor(a, device="cuda")
    lu, pivots, info = cygrad.linalg.lu_factor_ex(x)
    p, lower, upper = cygrad.lu_unpack(lu, pivots)
    assert info.tolist() == [0, 0]
    np.testing.assert_allclose((p @ lower @ upper).cpu().numpy(), a, 1e-9, 1e-9)
    np.testing.assert_allclose((cygrad.linalg.solve(x, x)).cpu().numpy(), np.broadcast_to(np.eye(n), a.shape), 0, 1e-9)
    square = x @ x.mT
    factor, info = cygrad.linalg.cholesky_ex(square)
    assert info.tolist() == [0, 0]
    np.testing.assert_allclose((factor @ factor.mT).cpu().numpy(), square.cpu().numpy(), 1e-9, 1e-9)
    assert cygrad.linalg.cholesky_ex(-square).info.tolist() == [1, 1]


def test_a_kernel_that_has_no_form_for_gpus_says_so():
    compiled = Kernel(len, "length", "cygrad._kernels.cpu.base.matmul")
    with pytest.raises(RuntimeError, match="length cannot be computed on a GPU"):
        compiled(array_of(cygrad.eye(2, device="cuda")))
