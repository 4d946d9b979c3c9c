"""`split_const_subgraphs`: what does not depend on the inputs is computed once."""

import copy

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx.experimental.const_fold import get_unique_attr_name_in_module, split_const_subgraphs
from cygrad.fx.experimental.proxy_tensor import make_fx
from helpers import fails


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.rand(3)), nn.Parameter(torch.rand(3))
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 2.0]))
        self.layer = nn.Linear(3, 3)

    def forward(self, x, y=1.0):
        scale = self.scale * self.mask
        return self.layer(x) * scale + (self.shift + scale).exp() * y - self.mask, self.layer(self.shift)


@pytest.mark.parametrize("traced", [False, True])
def test_results_and_what_is_left(traced):
    net, x = Net(), torch.rand(2, 3)
    folded = split_const_subgraphs(fx.symbolic_trace(net) if traced else net)
    for _ in range(2):
        for found, expected in zip(folded(x, y=3.0), net(x, 3.0), strict=True):
            torch.testing.assert_close(found, expected)
    targets = [node.target for node in folded.graph.nodes]
    assert "scale" not in targets and "mask" in targets and targets.count("layer") == 1
    assert [p.requires_grad for p in folded._FX_CONST_FOLDED_ATTRS] == [True] * 3
    with fails(AssertionError, "Folding has already been run"):
        folded.run_folding()
    assert "scale" not in dict(folded.named_parameters(recurse=False))


def test_copies_fold_on_their_own():
    net = Net()
    folded = split_const_subgraphs(net)
    copied = copy.deepcopy(folded)
    folded(torch.ones(3))
    assert folded.has_folding_been_run and not copied.has_folding_been_run
    torch.testing.assert_close(copied(torch.ones(3)), net(torch.ones(3)))


def test_one_result():
    class Negated(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2), requires_grad=False)

        def forward(self, x):
            return x * -self.scale

    folded = split_const_subgraphs(Negated())
    assert folded(torch.ones(2)).tolist() == [-1, -1] and folded._FX_CONST_FOLDED_ATTRS.tolist() == [-1, -1]
    assert not folded._FX_CONST_FOLDED_ATTRS.requires_grad
    kept = split_const_subgraphs(Negated(), skip_folding_node_fn=lambda node: node.name == "neg")
    assert kept.const_subgraph_module is None and kept(torch.ones(2)).tolist() == [-1, -1]


def test_what_changes_something_is_not_folded():
    def f(x):
        noise = torch.zeros(2)
        return x + torch.ops.aten.rand.default([2]) + noise.add_(1)

    folded = split_const_subgraphs(make_fx(f)(torch.zeros(2)))
    assert folded.graph.find_nodes(op="call_function", target=torch.ops.aten.rand.default)
    assert not torch.equal(folded(torch.zeros(2)), folded(torch.zeros(2)))


def test_names_that_are_free():
    traced = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    traced.x, traced.x_1, traced.y_7 = 1, 2, 3
    names = [get_unique_attr_name_in_module(traced, name) for name in ("x", "x_1", "y_7", "a.b", "_1")]
    assert names == ["x_2", "x_2", "y_8", "a_b", "_1"]
