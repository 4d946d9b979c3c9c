"""Signatures of exported programs, and the lengths that vary, against PyTorch's."""

import collections
import importlib

import pytest
from oracle.programs import compare

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def modules(torch):
    nn = torch.nn

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.unused = nn.Linear(4, 3), nn.Parameter(torch.ones(2))
            self.register_buffer("kept", torch.ones(3))
            self.register_buffer("dropped", torch.ones(()), persistent=False)

        def forward(self, x, n=2, *, flag=True):
            z = self.lin(x) * n + self.kept
            return z.relu(), {"total": z.sum() + self.dropped}, n, None

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x, y):
            return {"out": self.norm(x + y)}

    yield Both().eval(), (torch.ones(2, 4),), {}
    yield Both().eval(), (torch.ones(2, 4), 3), {"flag": False}
    yield Norm().eval(), (torch.ones(2, 3), torch.ones(3)), {}


NAMES = """parameters buffers non_persistent_buffers lifted_tensor_constants user_inputs user_outputs
inputs_to_parameters
inputs_to_buffers inputs_to_lifted_tensor_constants buffers_to_mutate user_inputs_to_mutate backward_signature
assertion_dep_token input_specs output_specs""".split()


def test_signatures():
    def program(torch, say):
        export = importlib.import_module(f"{torch.__name__}.export")
        for module, args, kwargs in modules(torch):
            signature = export.export(module, args, kwargs).graph_signature
            say(str(signature))
            say(str([getattr(signature, name) for name in NAMES]))
        say(
            [
                (kind.name, kind.value)
                for kind in (*export.graph_signature.InputKind, *export.graph_signature.OutputKind)
            ]
        )

    compare(program)


def test_ranges():
    def program(torch, say):
        export = importlib.import_module(f"{torch.__name__}.export")
        x = torch.ones(3, 4)
        dims = [
            {0: export.Dim("batch", min=2, max=16)}, {0: export.Dim("batch")}, {0: export.Dim.AUTO}, {}, None,
            {0: export.Dim("batch", max=8)},
        ]  # fmt: skip
        for dim in dims:
            ranges = export.export(torch.nn.Linear(4, 3), (x,), dynamic_shapes=None if dim is None else (dim,))
            say([(str(each), int(each.lower)) for each in ranges.range_constraints.values()])

    compare(program)


def graphs(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Attributes(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.norm, self.shift = nn.Linear(4, 3), nn.BatchNorm1d(3), torch.ones(3)
            self.register_buffer("scale", torch.ones(3))

        def forward(self, x, y=None):
            return (torch.relu(self.norm(self.lin(x))) * self.scale + self.shift).sum(1)

    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.lin = nn.Conv2d(1, 2, 3, padding=1), nn.Linear(18, 2)

        def forward(self, x):
            x = functional.max_pool2d(functional.relu(self.conv(x)), 2)
            return self.lin(x.flatten(1)).softmax(-1)

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))

        def forward(self, x):
            self.n.add_(1)
            return x + self.n

    class Nested(nn.Module):
        def forward(self, pair, parts, k):
            return {"a": pair["x"] + parts[0], "b": (1 - parts[1] * k,)}

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.norm, self.drop = nn.Embedding(5, 4), nn.LayerNorm(4), nn.Dropout(0.1)
            self.out = nn.Linear(4, 5, bias=False)
            self.out.weight = self.tokens.weight

        def forward(self, i):
            return functional.log_softmax(self.out(self.drop(self.norm(self.tokens(i)))), dim=-1)

    class Shapes(nn.Module):
        def forward(self, x):
            y = x.view(1, 2, 4).transpose(1, 2).permute(2, 0, 1).reshape(-1, 4).unsqueeze(0).expand(3, 2, 4)
            parts = torch.cat([y, y], dim=1).split(2, dim=1)
            z = torch.stack([parts[0], parts[1]]).mean(1, keepdim=True) / 2 - 1
            return z.pow(2), x[0], x[:, 1], x[1:], x[None], x > 0, x.max(1)[0], x @ x.t(), x.to(torch.float64)

    class Names(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleDict({"layer-1": nn.Linear(4, 4)})
            self.weights = nn.ParameterDict({"a b": nn.Parameter(torch.ones(4)), "a--b": nn.Parameter(torch.ones(4))})
            self.a, self.a_b, self.self_w = nn.Module(), nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
            self.a.b, self.w = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
            self.a.c, self.a_c, self.y, self.constant = (torch.ones(4) for _ in range(4))

        def forward(self, p_w, d, d_a, X, y, *args):
            total = self.layers["layer-1"](p_w) + d["a"] + d_a + X + y + args[0] + args[1]
            for each in (*self.weights.values(), self.a.b, self.a_b, self.w, self.self_w):
                total = total + each.clone()
            return total + self.a.c + self.a_c + self.y + self.constant

    class Containers(nn.Module):
        def forward(self, named, ordered, default, self_):
            total = named.first - named.second[0] - ordered["b"] - ordered["a"]
            return total - default["c"][0] - self_

    class Arguments(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.kernel = nn.Embedding(5, 4, padding_idx=-1), nn.Parameter(torch.ones(4, 3, 3, 3))

        def forward(self, i, x):
            y = self.tokens(i)
            yield from (functional.elu(y), functional.elu(y, 0.5), functional.elu(y.clone(), 0.5, True))
            yield from (functional.leaky_relu(y), functional.leaky_relu(y, 0.3), functional.relu(y.clone(), True))
            yield from (functional.silu(y.clone(), True), functional.hardswish(y.clone(), inplace=True), y // 2)
            yield from ((y > 0).any((0, 1)), (y > 0).all([0]), (y > 0).any(0), y.unsqueeze(0).squeeze([0]))
            yield from (
                functional.adaptive_avg_pool2d(x, 1),
                functional.adaptive_avg_pool2d(x, (2, 1)),
                torch.rsub(y, 2),
            )
            yield from (
                functional.conv_transpose2d(x, self.kernel),
                torch.rsub(y, y, alpha=3),
                torch.rsub(y, 2, alpha=3),
            )
            yield from (functional.conv_transpose2d(x, self.kernel, None, 2, 1, 1), functional.silu(y))
            yield functional.conv_transpose2d(x, self.kernel, stride=(2, 1), dilation=2)

    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.arguments = Arguments()

        def forward(self, i, x):
            return tuple(self.arguments.forward(i, x))

    Named = collections.namedtuple("Named", "first second")
    x = torch.ones(2, 4)
    more = [x + n for n in range(10)]
    yield Names(), (more[0], {"a": more[1]}, more[2], more[3], more[4], more[5], more[6])
    containers = [collections.OrderedDict(b=more[2], a=more[3]), collections.defaultdict(list, c=[more[4]]), more[5]]
    yield Containers(), (Named(more[0], (more[1],)), *containers)
    yield Listed(), (torch.tensor([1, 4]), torch.ones(1, 4, 5, 5))
    yield Attributes().eval(), (x,)
    yield Attributes().train(), (x,)
    yield nn.Linear(4, 3), (x,)
    yield Images(), (torch.ones(1, 1, 6, 6),)
    yield Counting(), (x,)
    yield Nested(), ({"x": x}, [x + 1, x + 2], 3)
    yield Tied(), (torch.tensor([[1, 2]]),)
    yield Shapes(), (x,)


def test_graphs():
    """Names, ops and arguments of nodes; but for the checks of dtypes that PyTorch adds before conversions."""

    def program(torch, say):
        export = importlib.import_module(f"{torch.__name__}.export")
        for module, args in graphs(torch):
            exported = export.export(module, args)
            say(str(exported.graph_signature))
            say(list(exported.state_dict))
            say(list(exported.constants))
            for node in exported.graph.nodes:
                if "_assert_tensor_metadata" not in node.name:
                    target = getattr(node.target, "__name__", node.target)
                    say(f"{node.op} {node.name} {target} {node.args} {node.kwargs}")
                    value = node.meta.get("val") if node.op != "output" else None
                    say(tuple(value.shape) if isinstance(value, torch.Tensor) else None)
            say(tuple(module.state_dict()))

    compare(program)
