"""`RewritingTracer` keeps assertions and the types of variables; `TensorType` and `annotate` give such types."""

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx.annotate import annotate
from cygrad.fx.experimental.rewriter import AST_Rewriter, RewritingTracer
from cygrad.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise
from helpers import fails


def positive(x, least=0.0, *, more=1):
    """Documented."""
    assert (x > least).all(), "too small"
    y: TensorType[2, Dyn] = x + more
    z: int  # noqa: F842 - which is no statement
    assert y.dim() == 2
    return y


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        assert x.sum() > 0, "negative sum"
        return x * self.weight


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.layers = Inner(), nn.Sequential(nn.ReLU(), Inner())

    def forward(self, x):
        return self.layers(self.inner(x))


def traced(root):
    tracer = RewritingTracer()
    graph = tracer.trace(root)
    return fx.GraphModule(tracer.root, graph)


def test_functions():
    module = traced(positive)
    checks = module.graph.find_nodes(op="call_function", target=torch._assert)
    assert [node.args[1] for node in checks] == ["too small", ""]
    assert [node.type for node in module.graph.nodes if node.name == "add"] == [TensorType((2, Dyn))]
    assert torch.equal(module(torch.ones(2, 3)), torch.full((2, 3), 2.0))
    with fails(AssertionError, "too small"):
        module(-torch.ones(2, 3))
    rewritten = AST_Rewriter().rewrite(positive)
    assert rewritten(torch.ones(2, 1), more=2).tolist() == [[3], [3]] and rewritten.__doc__ == "Documented."
    assert rewritten.__globals__ is globals() and rewritten.__defaults__ == (0.0,)


def test_closures():
    factor = 3

    def scaled(x):
        assert x.sum() > factor
        return x * factor

    assert traced(scaled)(torch.full((2,), 2.0)).tolist() == [6, 6]
    with pytest.raises(AssertionError):
        traced(scaled)(torch.ones(2))


def test_modules_and_those_in_them():
    outer = Outer()
    module = traced(outer)
    assert len(module.graph.find_nodes(op="call_function", target=torch._assert)) == 2
    with fails(AssertionError, "negative sum"):
        module(-torch.ones(2))
    assert module.inner.weight is outer.inner.weight and type(outer.inner) is Inner  # which stays as it is
    module(torch.ones(2)).sum().backward()
    assert outer.inner.weight.grad is not None


def test_annotated_twice():
    with fails(RuntimeError, "Tried to annotate a value that already had a type on it!..."):
        fx.symbolic_trace(lambda x: annotate(annotate(x + 1, int), int))
    assert annotate(3, int) == 3


@pytest.mark.parametrize(
    ("first", "second", "consistent", "precise"),
    [
        (TensorType((1, Dyn)), TensorType((1, 2)), True, False),
        (TensorType((1, 2)), TensorType([1, Dyn]), True, True),
        (TensorType((1, 2)), TensorType((1,)), False, False),
        (TensorType((1, 2)), Dyn, True, True),
        (Dyn, int, True, False),
        (int, int, True, True),
        (int, str, False, False),
    ],
)
def test_types(first, second, consistent, precise):
    assert is_consistent(first, second) is is_consistent(second, first) is consistent
    assert is_more_precise(first, second) is precise
