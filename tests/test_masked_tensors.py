"""Masked tensors; `tests/oracle/ops/test_masked_tensors.py` compares them with PyTorch."""

import warnings

import pytest

import cygrad as torch
from cygrad.masked import as_masked_tensor, masked_tensor
from helpers import fails

X = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]
KEPT = [[True, False, True], [True, True, False]]
pytestmark = [
    pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors"),
    pytest.mark.leaks_ok("classes that take over calls are kept"),
]


@pytest.fixture
def mx():
    return masked_tensor(torch.tensor(X), torch.tensor(KEPT), requires_grad=True)


def test_making_one_warns():
    with pytest.warns(UserWarning, match="prototype stage"):
        masked_tensor(torch.ones(2), torch.tensor([True, False]))
    with pytest.warns(UserWarning, match="not recommended to create a MaskedTensor with a tensor that requires_grad"):
        masked_tensor(torch.ones(2, requires_grad=True), torch.tensor([True, False]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_masked_tensor(torch.ones(2), torch.tensor([True, False]))


def test_parts(mx):
    assert mx.get_data().tolist() == X and mx.get_mask().tolist() == KEPT
    assert mx.to_tensor(0).tolist() == [[1, 0, 3], [4, 5, 0]]
    assert mx.shape == (2, 3) and mx.dtype is torch.float32 and mx.is_leaf
    assert torch.masked.is_masked_tensor(mx) and not torch.masked.is_masked_tensor(mx.get_data())


def test_elementwise_functions_keep_the_mask(mx):
    for found, wanted in ((mx.exp(), torch.tensor(X).exp()), (mx * 2 + 1, torch.tensor(X) * 2 + 1)):
        assert torch.equal(found.get_data(), wanted) and found.get_mask().tolist() == KEPT
    x = mx.detach()
    assert x.mul_(2) is x and x.to_tensor(0).tolist() == [[2, 0, 6], [8, 10, 0]]


def test_views_treat_data_and_mask_alike(mx):
    for view in (lambda x: x[0], lambda x: x.t(), lambda x: x.view(6), lambda x: torch.cat([x, x]), lambda x: x[:, 1:]):
        found = view(mx)
        assert torch.equal(found.get_data(), view(torch.tensor(X)))
        assert torch.equal(found.get_mask(), view(torch.tensor(KEPT)))


def test_reductions(mx):
    assert mx.sum().item() == 13 and mx.mean(1).to_tensor(0).tolist() == [2, 4.5]
    assert mx.amax(0).to_tensor(0).tolist() == [4, 5, 3]
    nothing = masked_tensor(torch.ones(2, 2), torch.tensor([[False, False], [True, False]])).sum(1)
    assert nothing.get_mask().tolist() == [False, True]
    with fails(ValueError, "__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor"):
        nothing[0].item()


def test_gradients_are_masked(mx):
    (mx * mx).sum().backward()
    assert mx.grad.to_tensor(0).tolist() == [[2, 0, 6], [8, 10, 0]] and mx.grad.get_mask().tolist() == KEPT
    a = torch.tensor([1.0, 0.0], requires_grad=True)
    kept = a != 0
    (as_masked_tensor(a, kept) / as_masked_tensor(a, kept)).sum().backward()
    assert a.grad.to_tensor(-1).tolist() == [0, -1]


def test_where_leaves_out_the_gradient_of_what_was_not_taken():
    x = torch.tensor([-2.0, 3.0])
    mx, my = masked_tensor(x, x < 0, requires_grad=True), masked_tensor(x, x >= 0, requires_grad=True)
    y = torch.where(x < 0, mx.exp(), my)
    y.sum().backward()
    assert y.get_mask().all() and mx.grad.get_mask().tolist() == [True, False]
    assert my.grad.get_mask().tolist() == [False, True]


def test_softmax(mx):
    shares = mx.softmax(1)
    assert shares.sum(1).to_tensor(0).tolist() == pytest.approx([1, 1]) and shares.get_mask().tolist() == KEPT
    (shares * mx.detach()).sum().backward()
    plain = torch.tensor(X, requires_grad=True)
    kept = torch.tensor(KEPT)
    (torch.masked.softmax(plain, 1, mask=kept) * torch.where(kept, torch.tensor(X), 0.0)).sum().backward()
    assert torch.allclose(mx.grad.to_tensor(0), torch.where(kept, plain.grad, 0.0), atol=1e-6)


def test_functions_with_masks_take_the_own_mask(mx):
    assert torch.masked.mean(mx, 1).tolist() == [2, 4.5]
    assert torch.masked.sum(mx).item() == 13


def test_sparse_layouts(mx):
    x = mx.detach()
    for sparse in (x.to_sparse(), x.to_sparse_csr()):
        assert sparse.is_sparse and (sparse * 2).to_dense().to_tensor(0).tolist() == [[2, 0, 6], [8, 10, 0]]
        assert sparse.sum().item() == 13


def test_what_is_refused(mx):
    ones, kept = torch.ones(2), torch.tensor([True, False])
    for args, kind, text in (
        ((1, kept), TypeError, "data must be a Tensor"),
        ((ones, [True, False]), TypeError, "mask must be a Tensor"),
        ((ones, ones), TypeError, "mask must have dtype bool."),
        ((ones, kept[None]), ValueError, "data.dim() must equal mask.dim()"),
        ((ones, kept[:1]), ValueError, "data.size() must equal mask.size()"),
        ((ones.to(torch.complex64), kept), TypeError, "torch.complex64 is not supported in MaskedTensor."),
        ((ones.to_sparse(), kept), TypeError, "data and mask must have the same layout."),
    ):
        with fails(kind, text):
            masked_tensor(*args)
    other = masked_tensor(torch.tensor(X), ~torch.tensor(KEPT))
    with fails(ValueError, "Input masks must match. If you need support for this, please open an issue on Github."):
        mx + other
    with (
        pytest.warns(UserWarning, match="cumsum is not implemented"),
        fails(TypeError, "Multiple dispatch failed for 'torch._ops.aten.cumsum.default'; all __torch_dispatch__..."),
    ):
        mx.cumsum(0)


def test_text(mx):
    assert (
        repr(mx)
        == "MaskedTensor(\n  [\n    [  1.0000,       --,   3.0000],\n    [  4.0000,   5.0000,       --]\n  ]\n)"
    )
    assert repr(masked_tensor(torch.tensor(2), torch.tensor(False))) == "MaskedTensor(--, False)"
