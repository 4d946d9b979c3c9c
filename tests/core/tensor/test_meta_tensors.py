"""Tensors on the device "meta": creation, views, changes, copies, and the errors of what needs elements."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as torch
from cygrad._core.graph.internals import array_of

M = torch.device("meta")


def empty(*shape, **options):
    return torch.empty(*shape, device="meta", **options)


def test_the_device():
    assert str(M) == "meta" and M == torch.device("meta") and M.index is None
    assert torch.device("meta:0") != M and torch.device("meta", 0).index == 0
    assert len({M, torch.device("meta"), torch.device("cpu")}) == 2
    assert empty(2).device == torch.empty(2, device="meta:1").device == M
    assert empty(2).is_meta and not empty(2).is_cpu and not empty(2).is_cuda and not torch.empty(2).is_meta
    assert empty(2).type() == "torch.meta.FloatTensor" and empty(2).get_device() == -1


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: torch.zeros(2, 3, **how),
        lambda **how: torch.full((2, 3), 1.5, **how),
        lambda **how: torch.rand(2, 3, **how),
        lambda **how: torch.randint(0, 4, (2, 3), **how),
        lambda **how: torch.randperm(6, **how),
        lambda **how: torch.arange(1, 7, 2, **how),
        lambda **how: torch.linspace(0, 1, 5, **how),
        lambda **how: torch.logspace(0, 1, 5, **how),
        lambda **how: torch.eye(3, 4, **how),
        lambda **how: torch.tril_indices(3, 3, **how),
        lambda **how: torch.tensor([[1, 2]], **how),
        lambda **how: torch.empty_strided((2, 3), (1, 2), **how),
        lambda **how: torch.ones_like(torch.ones(2, 3).t(), **how),
        lambda **how: torch.ones(2, 3).new_zeros(4, **how),
        lambda **how: torch.hann_window(5, **how),
    ],
)
def test_factories(make):
    expected = make()
    for found in (make(device="meta"), make(device=M)):
        assert found.is_meta and found.is_leaf
        assert (found.shape, found.dtype, found.stride()) == (expected.shape, expected.dtype, expected.stride())


def test_default_device():
    with M:
        assert torch.empty(2).is_meta and torch.tensor([1.0]).is_meta and torch.nn.Linear(2, 3).weight.is_meta
    torch.set_default_device("meta")
    try:
        assert torch.rand(2).is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.empty(2).is_meta


def test_repr():
    assert repr(empty(2, 3)) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(empty((), dtype=torch.int64)) == "tensor(..., device='meta', size=(), dtype=torch.int64)"
    assert repr(empty(2, requires_grad=True)) == "tensor(..., device='meta', size=(2,), requires_grad=True)"
    recorded = empty(2, requires_grad=True) * 2
    assert repr(recorded) == "tensor(..., device='meta', size=(2,), grad_fn=<MulBackward0>)"
    assert f"{empty(())}" == "tensor(..., device='meta', size=())"


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t[1],
        lambda t: t[:, 1:, ::2],
        lambda t: t[..., None, -1],
        lambda t: t.transpose(0, 2),
        lambda t: t.permute(2, 0, 1).unsqueeze(1),
        lambda t: t.view(6, 4),
        lambda t: t[:, :1].expand(2, 5, 4),
        lambda t: t.unfold(2, 2, 1),
        lambda t: t.diagonal(0, 1, 2),
        lambda t: t.as_strided((2, 2), (1, 3), 5),
        lambda t: t.detach(),
        lambda t: t[0].narrow(1, 2, 2),
    ],
)
def test_views(view):
    base = empty(2, 3, 4)
    found, expected = view(base), view(torch.empty(2, 3, 4))
    assert (found.shape, found.stride()) == (expected.shape, expected.stride())
    assert found.storage_offset() == expected.storage_offset()
    base.add_(1)
    assert base._version == found._version == 1


def test_changes():
    t = empty(2, 3)
    assert t.add_(1) is t and t.normal_() is t and t.fill_(2) is t and t.copy_(torch.ones(3)) is t
    t[0] = 1.0
    t[t > 0] = 2.0
    t[:, 0] = empty(2)
    assert t._version == 7
    with pytest.raises(RuntimeError):
        t.add_(empty(4))
    with pytest.raises(RuntimeError):
        t[0] = empty(5)
    assert t.resize_(5).shape == (5,)


def test_indexing():
    t, index = empty(4, 5, 6), torch.zeros(2, 3, dtype=torch.int64, device="meta")
    same = torch.zeros(4, 5, 6)[torch.zeros(2, 3, dtype=torch.int64)]
    assert t[index].shape == same.shape
    assert t[:, index].shape == (4, 2, 3, 6)
    assert t[index, :, index].shape == (2, 3, 5)
    assert t[torch.tensor([True, False, True, True])].shape == (3, 5, 6)
    with pytest.raises(IndexError):
        t[5]
    with pytest.raises(NotImplementedError, match="The register_meta function for torch.nonzero"):
        t[t > 0]


def test_history():
    x = empty(3, requires_grad=True)
    y = (x * 2).exp()
    assert y.requires_grad and y.grad_fn.name() == "ExpBackward0"
    y.sum().backward()
    assert x.grad.is_meta and x.grad.shape == (3,)


@pytest.mark.parametrize(
    ("read", "error", "text"),
    [
        (lambda t: t.item(), RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (bool, RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (float, RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (int, RuntimeError, "Tensor.item() cannot be called on meta tensors"),
        (lambda t: t.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda t: t.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda t: t.to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda t: torch.zeros(1).copy_(t), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda t: t.numpy(), TypeError, "can't convert meta device type tensor to numpy."),
        (np.asarray, TypeError, "can't convert meta device type tensor to numpy."),
        (lambda t: t.__dlpack__(), BufferError, "Cannot pack tensors on meta"),
    ],
)
def test_reading_is_an_error(read, error, text):
    with pytest.raises(error) as caught:
        read(empty(1))
    assert str(caught.value).startswith(text)


def test_operands_on_other_devices():
    t = empty(2, 3)
    for mixed in (
        lambda: t + torch.ones(3),
        lambda: torch.cat([t, torch.ones(2, 3)]),
        lambda: torch.where(t > 0, t, torch.ones(3)),
    ):
        with pytest.raises(RuntimeError, match="Tensor on device cpu is not on the expected device meta!"):
            mixed()
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        torch.ones(3) + t
    assert (t + torch.tensor(2.0)).is_meta and (torch.tensor(2.0) * t).shape == (2, 3)
    assert (empty(2, dtype=torch.int64) / 2).dtype is torch.float32


def test_copies():
    t = empty(2, 3).t().requires_grad_()
    for found in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert found.is_meta and found.requires_grad
        assert (found.shape, found.stride(), found.dtype) == (t.shape, t.stride(), t.dtype)
    assert t.clone().stride() == torch.empty(2, 3).t().clone().stride()
    assert torch.ones(2, 3).to("meta").shape == (2, 3)
    assert torch.empty_like(t, device="cpu").is_cpu
    assert torch.zeros_like(torch.ones(2), device="meta").is_meta


def test_too_large():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        empty(2**62, 4)
    assert empty(2**30, 2**28).numel() == 2**58


def test_random_numbers_draw_nothing():
    state = torch.get_rng_state()
    torch.rand(3, device="meta"), torch.nn.init.kaiming_uniform_(empty(3, 3)), empty(3).bernoulli_()
    assert torch.multinomial(empty(2, 5), 3).shape == (2, 3)
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(RuntimeError, match="META device type not an accelerator"):
        torch.Generator("meta")


def test_jacobians():
    x = empty(2)
    assert torch.autograd.functional.jacobian(lambda x: x * x, x).shape == (2, 2)
    assert torch.autograd.functional.hessian(lambda x: (x * x).sum(), x).shape == (2, 2)


def test_a_single_element_of_the_array():
    array = array_of(empty(2, 3))
    array[0, 1], array[1] = 1.0, 2.0  # no memory is touched
    with pytest.raises(ValueError, match="could not broadcast"):
        array[0, 1] = [1.0, 2.0]
