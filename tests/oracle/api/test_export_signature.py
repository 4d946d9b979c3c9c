"""Signatures of exported programs, and the lengths that vary, against PyTorch's."""

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

    x = torch.ones(2, 4)
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
