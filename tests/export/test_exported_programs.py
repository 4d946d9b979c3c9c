"""`torch.export`: programs of modules, with lengths that vary or not, and their files."""

import io

import pytest

import cygrad as torch
from cygrad import nn
from cygrad._dynamo.exc import UserError
from cygrad.export import Dim


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, *, k=1):
        return (self.linear(x) * k + self.shift).view(x.size(0), 2, 2) / x.size(0)


def exported(dims=None):
    model = Model()
    return model, torch.export.export(model, (torch.ones(2, 3),), {"k": 2}, dynamic_shapes=dims)


def test_module():
    model, program = exported()
    assert program.module()(torch.ones(2, 3), k=2).equal(model(torch.ones(2, 3), k=2))
    assert program.module().linear.weight is model.linear.weight
    assert list(program.state_dict) == list(model.state_dict())
    assert [name for name, _ in program.named_parameters()] == ["linear.weight", "linear.bias"]
    assert [name for name, _ in program.named_buffers()] == ["shift"]
    assert program.run_decompositions() is program and program.constants == {}
    assert repr(program).startswith("ExportedProgram:\ndef forward(self, x: Tensor, k: int) -> Tensor:\n")
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(2, 3))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 2"):
        program.module()(torch.ones(5, 3), k=2)
    with pytest.raises(AssertionError, match=r"Guard failed: x.dtype == torch.float32"):
        program.module()(torch.ones(2, 3).double(), k=2)
    with pytest.raises(AssertionError, match=r"Guard failed: x.dim\(\) == 2"):
        program.module()(torch.ones(3), k=2)
    with pytest.raises(RuntimeError, match="the value 2, with which it was recorded"):
        program.module()(torch.ones(2, 3), k=3)


@pytest.mark.parametrize("dims", [{"x": {0: Dim("b")}}, ({0: Dim.DYNAMIC},), [("b", None)]])
def test_lengths_that_vary(dims):
    model, program = exported(dims)
    x = torch.randn(7, 3)
    assert program.module()(x, k=2).equal(model(x, k=2))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[1\] == 3"):
        program.module()(torch.ones(7, 4), k=2)


class Nested(nn.Module):
    def forward(self, x, pair, *, scale=None):
        return x.sum() + pair[0].sum() * pair[1]["b"].sum() + (0 if scale is None else scale)


def test_lengths_by_tensors():
    x, a, b = torch.ones(3, 2), torch.ones(3), torch.ones(4)
    shapes = torch.export.ShapesCollection()
    batch = Dim("batch")
    shapes[x] = {0: batch}
    shapes[a][0] = batch  # an entry that is not there is made
    assert len(shapes) == 2
    found = shapes.dynamic_shapes(Nested(), (x, [a, {"b": b}]), {"scale": 2})
    assert found == {"x": {0: batch}, "pair": [{0: batch}, {"b": None}], "scale": None}
    program = torch.export.export(Nested(), (x, [a, {"b": b}]), dynamic_shapes=shapes)
    assert program.module()(torch.ones(5, 2), [torch.ones(5), {"b": b}]).item() == 30
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.ones(5, 2), [torch.ones(5), {"b": torch.ones(5)}])


def test_lengths_that_vary_in_further_inputs():
    more = torch.export.AdditionalInputs()
    more.add((torch.ones(5, 2), [torch.ones(3), {"b": torch.ones(4)}]))
    more.add((torch.ones(4, 2), [torch.ones(3), {"b": torch.ones(6)}]), {})
    args = torch.ones(3, 2), [torch.ones(3), {"b": torch.ones(4)}]
    varies = Dim.DYNAMIC
    assert more.dynamic_shapes(Nested(), args) == {"x": (varies, None), "pair": [(None,), {"b": (varies,)}]}
    program = torch.export.export(Nested(), args, dynamic_shapes=more)
    more.verify(program)
    assert program.module()(torch.ones(7, 2), [torch.ones(3), {"b": torch.ones(8)}]).item() == 38
    more.add((torch.ones(3, 3), [torch.ones(3), {"b": torch.ones(4)}]))
    with pytest.raises(RuntimeError, match=r"^Expected input at \*args\[0\].shape\[1\] to be equal to 2, but"):
        more.verify(program)


def test_further_inputs_of_another_structure():
    more = torch.export.AdditionalInputs()
    more.add((torch.ones(5, 2), (torch.ones(3), {"b": torch.ones(4)})))
    with pytest.raises(ValueError, match="differ in their structure"):
        torch.export.export(Nested(), (torch.ones(3, 2), [torch.ones(3), {"b": torch.ones(4)}]), dynamic_shapes=more)


def test_graph_module():
    model, program = exported({"x": {0: "batch"}})
    module = program.graph_module
    assert isinstance(module, torch.fx.GraphModule) and module.linear.weight is model.linear.weight
    x = torch.randn(5, 3)
    assert module(x).equal(model(x, k=2))
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets[0] is torch.nn.functional.linear


def test_files():
    model, program = exported({"x": {0: "batch"}})
    stream = io.BytesIO()
    torch.export.save(program, stream, extra_files={"a": "b"})
    stream.seek(0)
    extra = {"a": ""}
    loaded = torch.export.load(stream, extra_files=extra)
    x = torch.randn(5, 3)
    assert loaded.module()(x, k=2).equal(model(x, k=2)) and extra == {"a": b"b"}
    assert loaded.graph_module(x).equal(model(x, k=2))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[1\] == 3"):
        loaded.module()(torch.ones(5, 4), k=2)
    stream.seek(0)
    with pytest.raises(RuntimeError, match="a program of the kind 'exported', not module or function"):
        torch.jit.load(stream)
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram', got 'int' instead"):
        torch.export.save(3, stream)


def test_what_is_refused():
    with pytest.raises(
        ValueError, match="Expected `mod` to be an instance of `torch.nn.Module`, got <class 'function'>"
    ):
        torch.export.export(lambda x: x, (torch.ones(1),))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple of example positional inputs"):
        torch.export.export(Model(), torch.ones(2, 3))

    class Fixed(nn.Module):
        def forward(self, x):
            return x.view(2, -1)

    with pytest.raises(UserError, match="dimension 0 of 'x' cannot vary"):
        torch.export.export(Fixed(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim("b")},))
    with pytest.raises(RuntimeError, match="torch.export.export makes exported programs"):
        torch.export.ExportedProgram()
    with pytest.raises(RuntimeError, match="ExportedProgram.module"):
        torch.export.unflatten(None)
