"""Forms of writing by index that samples do not reach: the old `reduce` of `scatter`, functions that write in place."""

import numpy as np
import pytest

import cygrad
from cygrad import autograd, tensor

INDEX = [[0, 2, 1], [1, 1, 0]]


def operands():
    x = cygrad.arange(12.0).reshape(4, 3).clone().requires_grad_()
    return x, tensor(INDEX), cygrad.full((2, 3), 2.0, requires_grad=True)


def test_scatter_reduces_a_number():
    x, index, _ = operands()
    found = x.scatter(0, index, 2, reduce="multiply")
    assert found.tolist() == [[0, 1, 4], [6, 8, 10], [6, 14, 8], [9, 10, 11]]
    assert x.scatter(0, index, 2, reduce="add").tolist() == [[2, 1, 4], [5, 6, 7], [6, 9, 8], [9, 10, 11]]
    (grad,) = autograd.grad(found.sum(), x)
    assert grad.tolist() == [[2, 1, 2], [2, 2, 2], [1, 2, 1], [1, 1, 1]]


def test_scatter_reduces_a_tensor_with_a_warning():
    x, index, source = operands()
    with pytest.warns(UserWarning, match="The reduce argument of torch.scatter with Tensor src is deprecated"):
        found = x.scatter(0, index, source, reduce="add")
    assert found.tolist() == [[2, 1, 4], [5, 6, 7], [6, 9, 8], [9, 10, 11]]
    assert autograd.grad(found.sum(), source)[0].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_scatter_in_place_on_a_view():
    x = cygrad.zeros(2, 3, requires_grad=True)
    y = x * 1
    source = tensor([[5.0]], requires_grad=True)
    y[1:].scatter_(1, tensor([[2]]), source)
    assert y.tolist() == [[0, 0, 0], [0, 0, 5]]
    grads = autograd.grad((y * tensor([[1.0, 2, 3], [4, 5, 6]])).sum(), (x, source))
    assert [g.tolist() for g in grads] == [[[1, 2, 3], [4, 5, 0]], [[6]]]


def test_index_that_is_changed_before_backward():
    x, index, source = operands()
    y = x.scatter(0, index, source)
    index.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradient_of_complex_scatter_reduce():
    x = tensor([1 + 1j, 2j], requires_grad=True)
    s = tensor([3 - 1j, 1 + 2j], requires_grad=True)
    y = x.scatter_reduce(0, tensor([0, 0]), s, "sum")
    grads = autograd.grad(y, (x, s), tensor([1 + 2j, 3j]))
    assert [g.tolist() for g in grads] == [[1 + 2j, 3j], [1 + 2j, 1 + 2j]]


def test_index_put_as_a_function():
    x = cygrad.zeros(3)
    assert cygrad.index_put_(x, (tensor([1, 1]),), tensor([2.0, 3.0]), accumulate=True) is x
    assert x.tolist() == [0, 5, 0]


@pytest.mark.parametrize("name", ["scatter_", "scatter_add_"])
def test_source_that_shares_memory(name):
    x = cygrad.arange(4.0)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        getattr(x, name)(0, tensor([1, 0, 3, 2]), x.view(4))
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2, 3])
