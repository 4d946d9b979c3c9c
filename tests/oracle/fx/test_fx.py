"""Graphs and generated code are those of PyTorch."""

import re

import pytest
from oracle.answers import lines

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle

# Expressions of x (a vector or matrix), w (a tensor) and F
EXPRESSIONS = """
x + 1
1 + x
2 - x
x // 2
2 ** x
x % 3
-x
+x
~(x > 1)
abs(x)
x @ x.T
x[0]
x[:, None, ..., 1:2]
x == 1
x != w
w + x
x - w
w * x
w @ x
w < x
x.sum(dim=0, keepdim=True)
x.view(x.size(0), -1)
x.shape[0]
x.T.foo(1).bar
x.add_(1)
torch.add(x, 1)
torch.add(x, 1, alpha=2)
torch.cat([x, x], dim=1)
torch.stack((x, x))
torch.zeros(x.shape, dtype=torch.float64)
torch.arange(x.size(0))
torch.full((2,), x.sum())
torch.where(x > 0, x, 0.0)
torch.matmul(x, w)
torch.clamp(x, min=float("-inf"))
torch.sum(x, (0, 1))
torch.relu(x)
torch.randn_like(x)
torch.softmax(x, -1)
torch.linalg.inv(x)
torch.reshape(x, (2, -1))
torch.permute(x, (1, 0))
torch.flatten(x, 1)
torch.is_floating_point(x)
x.to(torch.float64)
x.to(device="cpu")
x.new_zeros(2)
F.relu(x)
F.relu(x, inplace=True)
F.relu6(x)
F.dropout(x)
F.dropout(x, 0.3, True)
F.leaky_relu(x, 0.2)
F.elu(x)
F.selu(x)
F.silu(x)
F.mish(x)
F.hardtanh(x, -2)
F.hardswish(x)
F.hardsigmoid(x)
F.softmax(x, dim=1)
F.log_softmax(x, dim=1)
F.softmin(x, 1)
F.tanhshrink(x)
F.softsign(x)
F.glu(x)
F.celu(x)
F.rrelu(x)
F.gumbel_softmax(x)
F.normalize(x)
F.layer_norm(x, (3,))
F.layer_norm(x, (3,), w, eps=1e-3)
F.batch_norm(x, w, w)
F.batch_norm(x, None, None, training=True)
F.group_norm(x, 2)
F.instance_norm(x)
F.local_response_norm(x, 3)
F.rms_norm(x, (3,))
F.mse_loss(x, w)
F.mse_loss(x, w, reduction="sum")
F.smooth_l1_loss(x, w)
F.huber_loss(x, w)
F.cross_entropy(x, w)
F.cross_entropy(x, w, ignore_index=3)
F.nll_loss(x, w)
F.kl_div(x, w)
F.binary_cross_entropy(x, w)
F.binary_cross_entropy_with_logits(x, w)
F.triplet_margin_loss(x, x, w)
F.embedding(x, w)
F.one_hot(x, 3)
F.pad(x, (1, 1))
F.interpolate(x, scale_factor=2)
F.grid_sample(x, w)
F.adaptive_avg_pool2d(x, 2)
F.unfold(x, 2)
F.fold(x, 2, 3)
"""
# PyTorch's names of modules that cygrad does not have
_INNER = re.compile(r"torch\._C\._(nn|linalg|fft|special)\.((linalg|fft|special)_)?")


def answer(library, expression):
    weight = library.ones(3, 3)
    space = {"torch": library, "F": library.nn.functional, "w": weight}
    traced = library.fx.symbolic_trace(eval(f"lambda x: {expression}", space))
    texts = str(traced.graph), traced.code
    return [
        _INNER.sub(lambda match: {"nn": "torch.nn.functional."}.get(match[1], f"torch.{match[1]}."), text)
        for text in texts
    ]


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_same_graph_and_code(expression):
    assert answer(cygrad, expression) == answer(torch, expression)


def made(library):
    nn, F = library.nn, library.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3)
            self.norm = nn.BatchNorm2d(2)
            self.layers = nn.ModuleList([nn.Linear(6, 4), nn.Linear(4, 4)])
            self.gain = nn.Parameter(library.ones(4))
            self.register_buffer("shift", library.zeros(4))

        def forward(self, x, mask=None, *rest, scale: float = 2.0):
            x = F.relu(self.norm(self.conv(x)))
            for layer in self.layers:
                x = layer(x) * self.gain + self.shift
            a, b = x.chunk(2, dim=-1)
            if mask is not None:
                a = a * mask
            return {"a": a / scale, "b": [b, (b.shape, 3)]}

    return Block()


@pytest.mark.parametrize("concrete", [{"mask": None}, {}, {"scale": 1.0}])
def test_same_graph_of_a_module(concrete):
    mine, theirs = (library.fx.symbolic_trace(made(library), concrete) for library in (cygrad, torch))
    assert str(mine.graph) == str(theirs.graph)
    assert mine.code == theirs.code
    assert mine.print_readable(print_output=False) == theirs.print_readable(print_output=False)
    assert str(mine) == str(theirs)


def test_same_changes():
    def changed(library):
        traced = library.fx.symbolic_trace(lambda x, y: library.relu(x + y) * 2 + library.relu(y))
        found = library.fx.replace_pattern(traced, lambda v: library.relu(v), lambda v: library.sigmoid(v).exp())
        graph = traced.graph
        for node in graph.nodes:
            if node.op == "call_method":
                with graph.inserting_after(node):
                    new = graph.call_function(library.neg, (node,))
                node.replace_all_uses_with(new, lambda user, new=new: user is not new)
        traced.recompile()
        graph.eliminate_dead_code()
        return str(graph), traced.code, str(found)

    assert changed(cygrad) == changed(torch)


FAILURES = """
x if x.sum() > 0 else -x
[i for i in x]
len(x)
int(x)
range(x)
1 in x
{x: 1}
f(*x)
f(**x)
"""


@pytest.mark.parametrize("expression", lines(FAILURES))
def test_same_errors(expression):
    def error(library):
        with pytest.raises(Exception) as found:
            library.fx.symbolic_trace(eval(f"lambda x: {expression}", {"torch": library, "f": lambda *args, **kw: 1}))
        return type(found.value).__name__, str(found.value)

    assert error(cygrad) == error(torch)
