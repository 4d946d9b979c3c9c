"""`split_module`: the parts of a graph compute the same as the whole."""

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx.passes.split_module import split_module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, y=1.0):
        first = self.inner(x) * self.scale
        second = first.exp() + y
        return {"sum": (second - self.shift) / first, "first": first, "scale": self.scale}


def stage(node):
    return {"mul": 0, "exp": 1, "add": 1}.get(node.name, 0 if node.op == "call_module" else 2)


@pytest.mark.parametrize("keeps", [False, True])
def test_parts_compute_the_same(keeps):
    net, x = Net(), torch.rand(5, 3)
    traced, names = fx.symbolic_trace(net), {}
    split = split_module(traced, net, stage, names, keeps, keeps, not keeps, partition_affix="stage" if keeps else None)
    prefix = "submod_stage_" if keeps else "submod_"
    assert [name for name, _ in split.named_children()] == [f"{prefix}{i}" for i in range(3)]
    assert names == {f"{prefix}0.inner_0": "inner.0", f"{prefix}0.inner_1": "inner.1"}
    for found, expected in zip(split(x).values(), net(x).values(), strict=True):
        assert torch.equal(found, expected)
    assert torch.equal(split(x, 2.0)["sum"], net(x, 2.0)["sum"])
    split(x)["sum"].sum().backward()
    assert net.scale.grad is not None and split.scale is net.scale
    inputs = [node.name for node in getattr(split, f"{prefix}2").graph.find_nodes(op="placeholder")]
    assert inputs == (["arg_0", "arg_1", "arg_2"] if keeps else ["add", "shift", "mul"])


def test_a_part_with_several_results():
    traced = fx.symbolic_trace(lambda x: ((x + 1), (x * 2), x - 3))
    split = split_module(traced, traced, lambda node: node.name == "sub", keep_original_node_name=True)
    assert "mul = submod_false[1]" in split.code
    assert [value.item() for value in split(torch.tensor(4.0))] == [5, 8, 1]


def test_order_of_parts():
    traced = fx.symbolic_trace(lambda x: (x + 1) * 2 - x.exp())
    parts = {"add": 2, "mul": 1, "exp": 0, "sub": 3}
    for keeps, expected in ((False, [0, 2, 1, 3]), (True, [2, 1, 0, 3])):
        split = split_module(traced, traced, lambda node: parts[node.name], keep_original_order=keeps)
        called = [node.target for node in split.graph.find_nodes(op="call_module")]
        assert called == [f"submod_{i}" for i in expected]
        assert split(torch.tensor(0.0)).item() == 1


def test_parts_that_need_each_other():
    traced = fx.symbolic_trace(lambda x: ((x + 1) * 2).exp())
    with pytest.raises(AssertionError, match="cycle exists between partitions!"):
        split_module(traced, traced, lambda node: node.name == "mul")
