"""`utils.swap_tensors`."""

import copy
import weakref

import pytest

import cygrad as torch
from cygrad.utils import swap_tensors


def test_everything_is_exchanged():
    a = torch.ones(2, requires_grad=True)
    (a * 3).sum().backward()
    b = torch.zeros(3, dtype=torch.int64)
    b.name_of_mine, first, second = "b", a, b
    b.add_(1)
    swap_tensors(a, b)
    assert a is first and b is second
    assert a.tolist() == [1, 1, 1] and a.dtype is torch.int64 and a.grad is None and not a.requires_grad
    assert b.tolist() == [1, 1] and b.requires_grad and b.grad.tolist() == [3, 3]
    assert a.name_of_mine == "b" and not hasattr(b, "name_of_mine")
    assert (a._version, b._version) == (1, 0)


def test_history_goes_along():
    x = torch.tensor([2.0], requires_grad=True)
    product, other = x * x, torch.zeros(4)
    swap_tensors(product, other)
    assert product.grad_fn is None and other.grad_fn.name() == "MulBackward0"
    other.backward()
    assert x.grad.item() == 4


def test_parameters():
    layer = torch.nn.Linear(2, 1, bias=False)
    held, new = layer.weight, torch.nn.Parameter(torch.ones(1, 2))
    swap_tensors(layer.weight, new)
    assert layer.weight is held and layer(torch.ones(1, 2)).item() == 2
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1]] and new.grad is None
    torch.optim.SGD([held], 0.5).step()
    assert layer.weight.tolist() == [[0.5, 0.5]]


def test_attributes_of_subclasses():
    class Own(torch.Tensor):
        pass

    a, b = torch.ones(1).as_subclass(Own), torch.zeros(2).as_subclass(Own)
    a.mark = 1
    swap_tensors(a, b)
    assert b.mark == 1 and not hasattr(a, "mark") and a.shape == (2,)


def test_classes_are_exchanged():
    class Own(torch.Tensor):
        pass

    class Other(torch.Tensor):
        _results_keep_class = False

    a, b = torch.ones(1).as_subclass(Own), torch.zeros(2).as_subclass(Other)
    swap_tensors(a, b)
    assert type(a) is Other and type(b) is Own and a.shape == (2,)
    assert type(a + 1) is torch.Tensor and type(b + 1) is Own


def test_views_keep_their_memory():
    base = torch.arange(4.0)
    part, other = base[1:], torch.zeros(2)
    swap_tensors(part, other)
    other.add_(1)
    assert base.tolist() == [0, 2, 3, 4] and part.tolist() == [0, 0]
    swap_tensors(base, part)
    other.add_(1)
    assert other.tolist() == [3, 4, 5]


def test_what_cannot_be_swapped():
    a, b = torch.ones(1), torch.zeros(1)
    watch = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref associated with it"):
        swap_tensors(a, b)
    with pytest.raises(RuntimeError, match="Cannot swap t2"):
        swap_tensors(b, a)
    assert watch() is a and a.item() == 1
    del watch
    with pytest.raises(RuntimeError, match="Cannot swap t1 and t2 if they have different slots"):
        swap_tensors(a, torch.nn.Parameter(torch.ones(1)))
    with pytest.raises(TypeError, match="t2 must be Tensor, not int"):
        swap_tensors(a, 1)


def test_numbers_of_tensors_go_along():
    a, b = torch.ones(1), torch.ones(2)
    first, second = a._cdata, b._cdata
    assert first != second and a.detach()._cdata != first and copy.deepcopy(a)._cdata != first
    a.data = torch.zeros(3)
    assert a._cdata == first
    swap_tensors(a, b)
    assert (a._cdata, b._cdata) == (second, first)
    swap_tensors(a, torch.ones(1))
    assert a._cdata not in (first, second)
