"""Replaced slices and copied views: cases left out of the samples, which are also run on PyTorch."""

import pytest

import cygrad
from cygrad import autograd, tensor

X = [[1 + 1j, 2j], [3 - 1j, 1]]
PART = [1j, 2 + 0j]


@pytest.mark.parametrize(
    "replace",
    [
        lambda x, part: x.select_scatter(part, 0, 1),
        lambda x, part: x.diagonal_scatter(part),
        lambda x, part: x.slice_scatter(part.reshape(1, 2), 0, 1),
        lambda x, part: x.as_strided_scatter(part, (2,), (2,)),
    ],
)
def test_gradients_of_complex_parts(replace):
    x, part = tensor(X, requires_grad=True), tensor(PART, requires_grad=True)
    weight = tensor([[1 + 2j, 3j], [4 + 0j, 5 - 1j]])
    found = replace(x, part)
    own, sent = autograd.grad(found, (x, part), weight)
    written = replace(cygrad.zeros(2, 2), cygrad.ones(2)) == 1
    assert own.tolist() == weight.masked_fill(written, 0).tolist()
    assert sent.tolist() == weight[written].tolist()


def test_gradient_of_view_as_complex_copy():
    x = tensor([[1.0, 2.0]], requires_grad=True)
    (grad,) = autograd.grad(cygrad.view_as_complex_copy(x), x, tensor([3 + 4j]))
    assert grad.tolist() == [[3, 4]]


def test_copies_are_apart():
    x = cygrad.zeros(2, 3)
    for copy in (cygrad.alias_copy(x), *cygrad.unbind_copy(x), cygrad.expand_copy(x, (2, 2, 3))):
        copy.fill_(1)
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]] and x._version == 0


def test_copies_into_several_need_one_for_each():
    x, outs = cygrad.ones(2, 3), [cygrad.zeros(3)]
    with pytest.raises(RuntimeError, match="expected an out= argument of size 2, got size 1"):
        cygrad.unbind_copy(x, out=outs)
    assert outs[0].tolist() == [0, 0, 0]


def test_padding_of_complex_tensors():
    x = tensor([[1j, 2 + 0j]], requires_grad=True)
    (grad,) = autograd.grad(cygrad.nn.functional.pad(x, (1, 0), "reflect"), x, tensor([[1j, 2j, 3 + 0j]]))
    assert grad.tolist() == [[2j, 3 + 1j]]


def test_out_of_an_op_without_derivative():
    x, out = tensor([1.0, 0.0], requires_grad=True), cygrad.zeros(2, dtype=cygrad.bool)
    assert cygrad.eq(x, x, out=out) is out and out.tolist() == [True, True]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        cygrad.sin(x, out=cygrad.zeros(2))
