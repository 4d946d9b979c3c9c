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


def test_coordinates_are_refused():
    x = torch.eye(4).to_sparse()
    with fails(NotImplementedError, "Could not run 'aten::normal_' with arguments from the 'SparseCPU' backend..."):
        torch.randn_like(x)


def test_result_type(x):
    for sparse in (x, torch.eye(2).to_sparse()):
        assert torch.result_type(sparse.to(torch.float32), 1.5) is torch.float32
        assert torch.result_type(torch.ones(2, dtype=torch.float64), sparse) is torch.float64
        assert torch.result_type(sparse, torch.tensor(1.0, dtype=torch.float64)) is torch.float32
