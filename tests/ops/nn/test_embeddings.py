"""Embeddings and bags beyond the samples: gradients of padding, half precision, norms, and wrong arguments."""

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn import functional as F
from helpers import fails

WORDS = torch.tensor([1, 1, 2, 3])
BAGS = torch.tensor([0, 2, 3])
BAD = torch.tensor([[np.inf, np.nan], [1.0, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_padding_has_no_gradient_even_of_infinities(by_frequency, create_graph):
    table = torch.ones(4, 2, requires_grad=True)
    found = F.embedding(WORDS, table, padding_idx=1, scale_grad_by_freq=by_frequency)
    coming = torch.cat([BAD[:1], BAD])
    (grad,) = torch.autograd.grad(found, table, coming, create_graph=create_graph)
    assert grad.tolist() == [[0, 0], [0, 0], [1, 1], [1, 2]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_bags_of_padding_have_no_gradient_even_of_infinities(mode, create_graph):
    table = torch.ones(4, 2, requires_grad=True)
    weights = torch.ones(4, requires_grad=True) if mode == "sum" else None
    found = F.embedding_bag(WORDS, table, BAGS, mode=mode, padding_idx=1, per_sample_weights=weights)
    inputs = [table] if weights is None else [table, weights]
    grad, *others = torch.autograd.grad(found, inputs, BAD, create_graph=create_graph)
    assert grad.tolist() == [[0, 0], [0, 0], [1, 1], [1, 2]]
    assert [other.tolist() for other in others] == ([] if weights is None else [[0, 0, 2, 3]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_sparse_gradients_of_bags_have_the_dtype_of_the_table(mode, dtype):
    bag = nn.EmbeddingBag(4, 2, mode=mode, sparse=True, dtype=dtype)
    bag(WORDS, BAGS).sum().backward()
    grad = bag.weight.grad
    assert grad.is_sparse and grad.dtype is dtype
    assert grad.to_dense()[:, 0].tolist() == [0, 2 if mode == "sum" else 1, 1, 1]


def test_the_gradient_of_a_converted_sparse_tensor_is_converted():
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.half()

        @staticmethod
        def backward(ctx, g):
            return torch.eye(2, dtype=torch.float64).to_sparse()

    x = torch.ones(2, 2, requires_grad=True)
    Halved.apply(x).backward(torch.ones(2, 2).half())
    assert x.grad.dtype is torch.float32 and x.grad.to_dense().tolist() == [[1, 0], [0, 1]]


def test_factors_of_long_rows_are_computed_in_float64():
    table = torch.randn(500, 5) * 3
    norms = table.norm(2, 1).double()
    factors = torch.where(norms > 1, 1 / (norms + 1e-7), 1).float()
    expected = table * factors[:, None]
    assert torch.equal(F.embedding(torch.arange(500), table, max_norm=1.0), expected)


@pytest.mark.parametrize(
    "table, words, bags, message",
    [
        ((4, 2), (2, 2, 2), (2,), "input has to be a 1D or 2D Tensor, but got Tensor of dimension 3"),
        ((4, 2), (4,), (2, 2), "offsets has to be a 1D Tensor, but got Tensor of dimension 2"),
        ((4, 2, 2), (4,), (2,), "weight has to be a 2D Tensor, but got Tensor of dimension 3"),
    ],
)
def test_wrong_dimensions_of_bags(table, words, bags, message):
    integers = torch.zeros(words, dtype=torch.int64), torch.zeros(bags, dtype=torch.int64)
    with fails(RuntimeError, message):
        torch.embedding_bag(torch.ones(table), *integers)
