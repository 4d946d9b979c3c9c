"""New tensors with the pattern of a tensor in compressed rows or columns."""

import pytest

import cygrad as torch
from helpers import fails

CONVERSIONS = {
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}
MAKERS = {
    "empty_like": torch.empty_like,
    "full_like": lambda x, **options: torch.full_like(x, 3, **options),
    "ones_like": torch.ones_like,
    "randn_like": torch.randn_like,
}


@pytest.fixture(params=CONVERSIONS)
def x(request):
    return CONVERSIONS[request.param](torch.eye(4) * 5)


@pytest.mark.parametrize("name", MAKERS)
def test_pattern_and_options(name, x):
    found = MAKERS[name](x, dtype=torch.float64, requires_grad=True)
    assert found.layout is x.layout and found.shape == x.shape and found._nnz() == x._nnz()
    assert found.dtype is torch.float64 and found.requires_grad and found.is_leaf
    dense = MAKERS[name](x, layout=torch.strided)
    assert dense.layout is torch.strided and dense.shape == x.shape and dense.dtype is x.dtype
    with fails(RuntimeError, "memory format option is only supported by strided tensors"):
        MAKERS[name](x, memory_format=torch.contiguous_format)


def test_values(x):
    first = torch.randn_like(x, generator=torch.Generator().manual_seed(1)).values()
    assert first.equal(torch.randn_like(x, generator=torch.Generator().manual_seed(1)).values()) and first.any()
    assert x.to_dense().equal(torch.eye(4) * 5)


def test_fill(x):
    for same in (torch.full_like(x, 3), x.clone().fill_(3), torch.ones_like(x) * 3):
        assert same.layout is x.layout and same.to_dense().equal(torch.where(x.to_dense() == 0, 0.0, 3.0)) is (
            x.values().ndim == 1
        )
        assert (same.values() == 3).all()
    assert torch.full_like(x, 2, dtype=torch.int64).values().unique().tolist() == [2]
    with fails(RuntimeError, "value cannot be converted to type float without overflow..."):
        x.fill_(1j)
    with fails(NotImplementedError, "Could not run 'aten::fill_.Tensor' with arguments from the 'SparseCsrCPU'..."):
        x.fill_(torch.tensor(1.0))
    assert x.to_dense().equal(torch.eye(4) * 5)


def test_fill_takes_part_in_gradients(x):
    leaf = x.requires_grad_()
    with fails(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation..."):
        leaf.fill_(2)
    filled = (leaf * 2).fill_(3)
    assert not filled.is_leaf
    filled.to_dense().sum().backward()
    assert not leaf.grad.to_dense().any()


def test_new_zeros():
    for x in (torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csc()):
        for make in (x.new_zeros, x.new_empty):
            found = make((2, 4), dtype=torch.int64)
            assert found.layout is x.layout and found.shape == (2, 4) and found._nnz() == 0
            assert make(2, 4).dtype is torch.float32 and make(size=(2, 4)).shape == (2, 4)
            assert make(2, 4, layout=torch.strided).equal(torch.zeros(2, 4))
            assert make(2, 4, layout=torch.sparse_coo).layout is torch.sparse_coo
        with fails(RuntimeError, "Cannot map DispatchKey SparseCsrCPU to a unique layout..."):
            x.new(2, 4)
    assert torch.eye(3).to_sparse().new_zeros(4).layout is torch.sparse_coo


@pytest.mark.parametrize(
    ("make", "step"),
    [
        (torch.randn_like, "normal_"),
        (torch.ones_like, "fill_.Scalar"),
        (lambda x: torch.full_like(x, 2), "fill_.Scalar"),
        (lambda x: x.fill_(2), "fill_.Scalar"),
    ],
)
def test_coordinates_are_refused(make, step):
    x = torch.eye(4).to_sparse()
    with fails(NotImplementedError, f"Could not run 'aten::{step}' with arguments from the 'SparseCPU' backend..."):
        make(x)


def test_result_type(x):
    for sparse in (x, torch.eye(2).to_sparse()):
        assert torch.result_type(sparse.to(torch.float32), 1.5) is torch.float32
        assert torch.result_type(torch.ones(2, dtype=torch.float64), sparse) is torch.float64
        assert torch.result_type(sparse, torch.tensor(1.0, dtype=torch.float64)) is torch.float32
