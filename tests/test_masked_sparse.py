"""Masked reductions of sparse tensors agree with those of dense ones where the mask keeps something."""

import pytest

import cygrad as torch
from cygrad import masked
from helpers import fails

X = [[1.0, 0.0, 3.0, 0.0], [0.0, 5.0, 6.0, 0.0], [0.0, 0.0, 0.0, 7.0]]
KEPT = [[True, True, False, False], [False, True, True, False], [False, False, False, False]]
DIMS = [0, 1, (0, 1), None]


def result(name, x, dim, keepdim, kept):
    return getattr(masked, name)(x, dim, keepdim=keepdim, mask=kept)


def agree(found, name, dim, keepdim):
    """Whether a result is that of dense tensors, and stores just what the mask keeps something for."""
    dense, kept = torch.tensor(X), torch.tensor(KEPT)
    stored = kept
    for each in reversed([dim] if isinstance(dim, int) else [0, 1]):
        stored = stored.any(each, keepdim)
    wanted = torch.where(stored, result(name, dense, dim, keepdim, kept), torch.tensor(0.0))
    assert found.shape == wanted.shape and found._nnz() == stored.sum()
    torch.testing.assert_close(found.to_dense(), wanted)


@pytest.mark.parametrize("layout", ["dense", "coo", "csr"])  # of the mask
@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_compressed_rows(name, dim, layout):
    kept = torch.tensor(KEPT)
    kept = {"dense": kept, "coo": kept.to_sparse(), "csr": kept.to_sparse_csr()}[layout]
    found = result(name, torch.tensor(X).to_sparse_csr(), dim, True, kept)
    assert found.layout is torch.sparse_csr
    agree(found, name, dim, True)


@pytest.mark.parametrize("sparse_dims", [1, 2])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
def test_coordinates(name, dim, keepdim, sparse_dims):
    found = result(name, torch.tensor(X).to_sparse(sparse_dims), dim, keepdim, torch.tensor(KEPT))
    assert found.layout is torch.sparse_coo
    if sparse_dims == 2:
        agree(found, name, dim, keepdim)
        return
    stored = torch.tensor(KEPT)  # a dense dimension has all its elements: these are neutral where none is kept
    for each in reversed([dim] if isinstance(dim, int) else [0, 1]):
        stored = stored.any(each, keepdim)
    dense = result(name, torch.tensor(X), dim, keepdim, torch.tensor(KEPT))
    zero = torch.tensor(0.0)
    torch.testing.assert_close(torch.where(stored, found.to_dense(), zero), torch.where(stored, dense, zero))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "bool", "complex64"])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_dtypes(name, dtype):
    x = torch.tensor(X).to(getattr(torch, dtype))
    kept = torch.tensor(KEPT[0])  # broadcast
    found = result(name, x.to_sparse(), 0, False, kept)
    assert found.dtype is result(name, x, 0, False, kept).dtype
    values = torch.where(kept, result(name, x, 0, False, kept), torch.zeros((), dtype=found.dtype))
    assert found.to_dense().tolist() == values.tolist()


def test_without_dimensions():
    x = torch.tensor(3.0).to_sparse()
    assert masked.sum(x, 0).to_dense().tolist() == 3
    assert masked.amax(x, 0, mask=torch.tensor(True)).to_dense().tolist() == 3


@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
@pytest.mark.parametrize("name", ["sum", "prod", "amax"])
def test_gradients(name, convert):
    kept = torch.tensor(KEPT)
    gradients = []
    for change in (convert, lambda x: x):
        x = torch.tensor(X, requires_grad=True)
        found = result(name, change(x), 1, True, kept)
        found.to_dense()[:2].square().sum().backward()  # the mask keeps nothing of the last row
        gradients.append(x.grad)
    stored = torch.tensor(X) != 0
    torch.testing.assert_close(gradients[0][stored], gradients[1][stored])


def test_refusals():
    kept = torch.tensor(KEPT)
    coo, csr = torch.tensor(X).to_sparse(), torch.tensor(X).to_sparse_csr()
    for name in ("prod", "amax", "amin"):
        for x in (coo, csr):
            with fails(ValueError, f"masked {name} expects explicit mask for {str(x.layout)[6:]} tensor input"):
                getattr(masked, name)(x, 0, keepdim=True)
    with fails(ValueError, "masked mean expects strided or sparse_csr tensor (got torch.sparse_coo tensor)"):
        masked.mean(coo, 0, mask=kept)
    for name, kind in (("sum", RuntimeError), ("prod", RuntimeError), ("amax", AssertionError)):
        with fails(kind, "reduction operations on CSR tensors with keepdim=False is unsupported"):
            result(name, csr, 0, False, kept)
    with fails(AssertionError, "mask.dense_dim() must match input.dense_dim(): 1 vs 0"):
        masked.sum(coo, 0, mask=kept.to_sparse(1))


def test_helpers_of_pytorch():
    x, kept = torch.tensor(X), torch.tensor(KEPT)
    assert masked._output_mask(masked.sum, x, 1, mask=kept).tolist() == [True, True, False]
    assert masked._output_mask(masked.norm, x, 2, 0, keepdim=True, mask=kept).tolist() == [[True, True, True, False]]
    assert masked._output_mask(masked.softmax, x, 0, mask=kept[0]).tolist() == [KEPT[0]] * 3
    assert masked._input_mask(x.to_sparse_csr(), mask=kept).layout is torch.sparse_csr
    assert masked._where(kept.to_sparse(), x.to_sparse(), torch.tensor(9.0)).values().tolist() == [1, 0, 5, 6]
    assert masked._combine_input_and_mask(masked.amax, x, kept)[2].tolist() == [-torch.inf] * 4
    for name, number in {"prod": 1, "masked.cumsum": 0, "masked.amin": torch.inf, "norm": 0}.items():
        assert masked._reduction_identity(name, x).item() == number
    assert masked._reduction_identity("median", x.long()).isnan() and masked._reduction_identity("var", x) is None
    assert masked._canonical_dim(-1, 2) == (1,)
    with fails(NotImplementedError, "identity of add on torch.float32 input"):
        masked._reduction_identity("add", x)
    for failing in (lambda: masked._input_mask(x), lambda: masked._output_mask(torch.add, x, mask=kept)):
        with pytest.raises(ValueError):
            failing()
