"""Masked tensors look as PyTorch's do, and have its gradients and errors."""

import importlib

import pytest
from oracle.answers import lines

import cygrad

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.leaks_ok("classes that take over calls are kept"),
]

UNARY = (
    "abs ceil cos erf floor isnan log1p neg positive reciprocal round sigmoid sign sin sqrt square tanh trunc".split()
)
BINARY = "add sub mul div maximum fmin atan2 eq lt ge logaddexp remainder fmod floor_divide greater".split()
REDUCTIONS = "sum mean amin amax argmin argmax prod all var std".split()
CALLS = """
x[0]
x[:, 1:]
x.t()
x.view(6)
x.t().reshape(6)
x.unsqueeze(0).expand(2, 2, 3)
torch.cat([x, x])
torch.stack([x, x])
x[torch.tensor([0, 0])]
torch.split(x, 1)
x.clone()
x.double()
x.int()
x.t().contiguous()
torch.ones_like(x)
torch.where(torch.tensor([True, False, True]), x, x * 2)
x.softmax(1)
x.pow(2)
x.clamp(0, 1)
x.sum().item()
x[0, 1].item()
x < 2
x.cumsum(0)
x.sum(5)
x.mean((0, 1))
x + other
x.add_(1)
x.to_sparse()
x.to_sparse_csr().sin()
x.to_sparse() * 2
x.to_sparse().sum()
x.get_data()
x.to_tensor(7)
torch.isfinite(x)
masked.mean(x, 1, mask=x.get_mask())
masked.softmax(x, 1)
masked.masked_tensor(torch.ones(2), torch.ones(2))
masked.masked_tensor(torch.ones(2), torch.ones(3) > 0)
masked.masked_tensor(3, 4)
"""
CALLS = [
    *lines(CALLS),
    *(f"torch.{name}(x)" for name in UNARY),
    *(f"torch.{name}(x, {other})" for name in BINARY for other in ("2 * x", "torch.ones(3)")),
    "masked.logaddexp(x, other)",
    "masked.logaddexp(x, other.get_data(), other_mask=other.get_mask())",
    "masked.logaddexp(x, x, input_mask=other.get_mask())",
    *(f"torch.{name}(x{rest})" for name in REDUCTIONS for rest in ("", ", 1", ", dim=0, keepdim=True")),
]
GRADIENTS = (
    "x.sin(); x * x; x / 3; x.sum(1); x.mean(0); x.prod(); x.amax(1); x.std(1); x.softmax(1).pow(2); x[0]; x.t() * 2"
)


def shown(library, value):
    if isinstance(value, (tuple, list)):
        return [shown(library, each) for each in value]
    if isinstance(value, library.Tensor):
        return str(value), str(value.dtype), tuple(value.shape), str(value.layout)
    return value


def outcome(library, call, with_gradient=False):
    masked = importlib.import_module(f"{library.__name__}.masked")
    data, kept = library.tensor([[1.0, -2.0, 3.0], [4.0, 5.5, -6.0]]), library.tensor([[1, 0, 1], [1, 1, 0]]) > 0
    x = masked.masked_tensor(data, kept, requires_grad=with_gradient)
    names = {"torch": library, "masked": masked, "x": x, "other": masked.masked_tensor(data, ~kept)}
    try:
        found = eval(call, names)
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), (
            str(error).splitlines()[0]
        )
    if with_gradient:
        found.sum().backward()
        return shown(library, x.grad)
    return shown(library, found)


@pytest.mark.parametrize("call", CALLS)
def test_as_in_pytorch(call):
    assert outcome(cygrad, call) == outcome(torch, call)


@pytest.mark.parametrize("call", GRADIENTS.split("; "))
def test_gradients(call):
    assert outcome(cygrad, call, True) == outcome(torch, call, True)
