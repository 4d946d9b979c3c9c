"""Saved tensor hooks inside jvp, dual levels and vmap: tangents survive them, and samples are not mixed up."""

import contextlib

import pytest

import cygrad as torch
from cygrad import func
from cygrad.autograd import forward_ad, graph

X = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
V = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64)
UNITS = torch.eye(3, dtype=torch.float64)

HOOKS = {
    "none": contextlib.nullcontext,
    "the tensor": lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "a copy": lambda: graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
    "another value": lambda: graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2),
    "numbers": lambda: graph.saved_tensors_hooks(torch.Tensor.tolist, lambda n: torch.tensor(n, dtype=torch.float64)),
    "cpu": graph.save_on_cpu,
    "mutation": graph.allow_mutation_on_saved_tensors,
}

# saved: an input; a result; both; a result with a saved view
FUNCTIONS = [torch.sin, torch.exp, lambda x: x * x.exp(), lambda x: x.view(3, 1).tanh().t() * x]


@pytest.fixture(params=HOOKS)
def hooks(request):
    return HOOKS[request.param]


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return request.param


def gradient(function, hooks):
    def of(x):
        with hooks():
            return func.grad(lambda x: function(x).sum())(x)

    return of


def second(function):
    return func.jacrev(func.grad(lambda x: function(x).sum()))(X)


def test_tangents(hooks, function):
    expected = second(function) @ V
    assert torch.allclose(func.jvp(gradient(function, hooks), (X,), (V,))[1], expected)
    with forward_ad.dual_level(), hooks():
        x = forward_ad.make_dual(X.clone().requires_grad_(), V)
        (g,) = torch.autograd.grad(function(x).sum(), x)
        assert torch.allclose(forward_ad.unpack_dual(g).tangent, expected)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_samples(hooks, function):
    batch = torch.stack([X, X * 2])
    expected = torch.stack([gradient(function, contextlib.nullcontext)(x) for x in batch])
    assert torch.allclose(torch.vmap(gradient(function, hooks))(batch), expected)
    products = torch.vmap(lambda v: func.jvp(gradient(function, hooks), (X,), (v,))[1])(UNITS)
    assert torch.allclose(products, second(function))
