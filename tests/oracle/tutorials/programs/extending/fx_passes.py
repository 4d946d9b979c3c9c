"""Symbolic traces: graphs, code, passes, interpreters, shape propagation, errors."""

import torch
import torch.nn as nn
from torch import fx
from shared import told


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x, flag: bool = True, *, k=2):
        y = self.a(x).relu() * self.scale
        z = torch.cat([y, y + k], dim=-1)
        return {"z": z[..., 1:], "n": z.shape[0], "t": (y.sum(), -y)}


g = fx.symbolic_trace(Net())
print(g.code)
print(g.graph)
print([(n.op, n.name, str(n.target) if n.op != "call_function" else n.target.__name__) for n in g.graph.nodes])
print(g)
for node in g.graph.find_nodes(op="call_method", target="relu"):
    with g.graph.inserting_after(node):
        new = g.graph.call_function(torch.tanh, (node,))
        node.replace_all_uses_with(new, delete_user_cb=lambda n: n is not new)
g.graph.lint()
g.recompile()
print(g.code)
told(lambda: g.graph.erase_node(next(iter(g.graph.nodes))))
dead = g.graph.call_function(torch.sin, (next(iter(g.graph.nodes)),))
print(g.graph.eliminate_dead_code(), dead.users, dead._erased)


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


told(lambda: fx.symbolic_trace(Branch()))
told(lambda: fx.symbolic_trace(lambda x: [i for i in x]))
told(lambda: fx.symbolic_trace(lambda x: len(x)))
told(lambda: fx.symbolic_trace(lambda x: int(x)))
told(lambda: fx.symbolic_trace(lambda x: range(x.shape[0])))
told(lambda: fx.symbolic_trace(lambda *xs, **kw: xs[0] + kw["a"]).code)
told(lambda: fx.symbolic_trace(Branch(), concrete_args={"x": 3}))


def pattern(x, y):
    return torch.add(x, y)


def replacement(x, y):
    return torch.mul(x, y) + 1


t = fx.symbolic_trace(lambda a, b: torch.add(a, b) + torch.add(b, 3))
print(fx.replace_pattern(t, pattern, replacement), t.code)


class Twice(fx.Transformer):
    def call_function(self, target, args, kwargs):
        if target is torch.sigmoid:
            return torch.tanh(*args, **kwargs)
        return super().call_function(target, args, kwargs)


s = fx.symbolic_trace(lambda x: torch.sigmoid(x) + 1)
print(Twice(s).transform().code)


class Count(fx.Interpreter):
    def run_node(self, n):
        r = super().run_node(n)
        print(n.format_node(), tuple(r.shape) if isinstance(r, torch.Tensor) else r)
        return r


Count(s).run(torch.zeros(2))
told(lambda: fx.Interpreter(s).run())
told(lambda: fx.Interpreter(fx.symbolic_trace(lambda x: x + torch.ones(3))).run(torch.ones(2)))
from torch.fx.passes.shape_prop import ShapeProp

g2 = fx.symbolic_trace(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten()))
ShapeProp(g2).propagate(torch.ones(1, 1, 5, 5))
print([(n.name, n.meta["tensor_meta"].shape, n.meta["tensor_meta"].dtype) for n in g2.graph.nodes])


class Leaf(fx.Tracer):
    def is_leaf_module(self, m, qualname):
        return isinstance(m, nn.Sequential) or super().is_leaf_module(m, qualname)


print(Leaf().trace(nn.ModuleDict({"a": nn.Sequential(nn.ReLU())})["a"]))
graph = fx.Graph()
x = graph.placeholder("x", default_value=3)
c = graph.get_attr("w")
y = graph.call_function(torch.add, (x, c), {"alpha": 2})
graph.output((y, [x]))
root = nn.Module()
root.w = nn.Parameter(torch.ones(2))
gm = fx.GraphModule(root, graph)
print(gm.code, gm(torch.zeros(2)))
told(lambda: graph.get_attr("q"))
told(lambda: graph.create_node("nosuch", "x"))
told(lambda: fx.GraphModule(nn.Module(), graph))
print(y.args, y.kwargs, y.all_input_nodes, x.users, y.next, y.prev)
y.args = (c, x)
print(y.format_node())
import pickle, copy

print(copy.deepcopy(gm).code == gm.code, len(gm.graph.nodes))


@fx.wrap
def helper(x):
    return x * 2 if x.sum() > 0 else x


print(fx.symbolic_trace(lambda x: helper(x)).code)
