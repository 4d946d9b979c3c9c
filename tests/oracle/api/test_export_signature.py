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
