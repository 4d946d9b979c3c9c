"""Sums at indices along a dimension: values against NumPy in every order of adding, and how many kernels they take."""

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
from cygrad._kernels.device import cupy_library

pytestmark = runs_kernels
SHAPES = [  # of the tensor, of the index, and the dimension
    ((5,), (40,), 0),
    ((4, 6), (9, 6), 0),
    ((4, 6), (4, 17), 1),
    ((2, 3, 5), (2, 7, 5), 1),
    ((2, 3, 5), (2, 2, 4), 1),  # a smaller index in other dimensions, too
    ((3, 4), (0, 4), 0),
]


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8]
)
@pytest.mark.parametrize(("shape", "index_shape", "dim"), SHAPES, ids=str)
def test_scatter_add(shape, index_shape, dim, dtype, in_order):
    random = np.random.default_rng(0)
    index = random.integers(0, shape[dim], index_shape)
    source = random.integers(-3, 4, index_shape).astype(np.float64)
    expected = np.ones(shape)
    np.add.at(expected, tuple(index if d == dim else own for d, own in enumerate(np.indices(index_shape))), source)
    torch.use_deterministic_algorithms(in_order)
    try:
        given = torch.ones(shape, dtype=dtype, device="cuda")
        found = given.scatter_add(dim, torch.tensor(index).cuda(), torch.tensor(source).to(dtype).cuda())
    finally:
        torch.use_deterministic_algorithms(False)
    assert found.cpu().double().tolist() == expected.tolist() and given.cpu().double().eq(1).all()


def test_indices_that_lie_outside_add_nothing():
    index = torch.tensor([[0, 2**40], [1, 0]]).cuda()
    found = torch.zeros(2, 2, device="cuda").scatter_add(0, index, torch.ones(2, 2, device="cuda"))
    assert found.tolist() == [[1, 1], [1, 0]]


@pytest.mark.skipif(cupy_library.is_available(), reason="the stand-in counts launches")
def test_the_gradient_of_dilated_max_pooling_adds_by_one_kernel():
    x = torch.randn(2, 3, 8, 8, device="cuda", requires_grad=True)
    y = torch.nn.functional.max_pool2d(x, 2, 1, dilation=2)
    with cupy_standin.watch() as seen:
        y.backward(torch.ones_like(y))
    assert seen.launches.count("cygrad_add_along") == 1 and len(seen.launches) <= 4, seen.launches
