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
    assert list(program.state_dict) == ["linear.weight", "linear.bias", "shift"]  # parameters first
    assert program.state_dict.keys() == model.state_dict().keys()
    assert [name for name, _ in program.named_parameters()] == ["linear.weight", "linear.bias"]
    assert [name for name, _ in program.named_buffers()] == ["shift"]
    assert program.run_decompositions() is program and program.constants == {}
    assert repr(program).startswith(
        "ExportedProgram:\n    class GraphModule(torch.nn.Module):\n        def forward(self, "
    )
    assert 'linear: "f32[2, 4]" = torch.ops.aten.linear.default(x, p_linear_weight, p_linear_bias)' in repr(program)
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


def lifted(model):
    """The inputs of an exported graph that come before the arguments."""
    return [*model.parameters(), *model.buffers()]


def test_graph_module():
    model, program = exported({"x": {0: "batch"}})
    module = program.graph_module
    assert isinstance(module, torch.fx.GraphModule)
    x = torch.randn(5, 3)
    assert module(*lifted(model), x, 2)[0].equal(model(x, k=2))
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets[0] == torch.ops.aten.linear.default
    first, *_ = program.graph.nodes
    assert first.target == "p_linear_weight" and first.meta["val"].shape == (4, 3)
    assert all(node.op != "get_attr" for node in program.graph.nodes)


class Many(torch.nn.Module):
    """Calls of functions that become ops in exported graphs."""

    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm1d(4), torch.nn.LayerNorm(4), torch.nn.GroupNorm(2, 4)])
        self.conv, self.tokens = torch.nn.Conv1d(2, 2, 3, padding=1), torch.nn.Embedding(3, 4)

    def forward(self, x):
        f = torch.nn.functional
        yield from (norm(x) for norm in self.norms)
        yield from (
            self.conv(x[None]),
            self.tokens(torch.tensor([1])),
            f.conv1d(x[None], self.conv.weight, padding="same"),
        )
        yield from (f.max_pool2d(x[None, None], 2, 1), f.max_pool1d(x[None], 2), f.avg_pool1d(x[None], 2))
        yield from (f.softmax(x, 1), f.log_softmax(x, dim=1, dtype=torch.float64), f.relu(x), f.elu(x, 0.5), f.gelu(x))
        yield from (
            f.leaky_relu(x, 0.2),
            f.mse_loss(x, 2 * x),
            f.mse_loss(x, 2 * x, reduction="sum"),
            f.dropout(x, 0.5, False),
        )
        yield from (1 - x, 2 / x, 2**x, x**2, x**x, x // 2, x % 2, x > 1, x == x, -x, x.add(x, alpha=2), x.clamp(max=1))
        yield from (
            torch.div(x, 2, rounding_mode="floor"),
            x.rsub(1),
            torch.where(x > 1, x, 0.0),
            x.masked_fill(x > 1, 0),
        )
        yield from (
            x.sum(),
            x.sum(1),
            x.sum((0, 1)),
            x.mean(0, True),
            x.std(1),
            x.var(1, unbiased=False),
            x.amax((0, 1)),
        )
        yield from (x.max(), x.max(1)[1], torch.max(x, 2 * x), x.min(0)[0], x.argmax(1), x.norm(dim=1), x.cumsum(1))
        yield from (x[0], x[:, 1], x[1:, None], x[..., 0], x[:, ::2], x[torch.tensor([1, 0])], x[x > 1], x.view(-1))
        yield from (
            x.view(torch.int32),
            x.reshape((4, 2)),
            x.permute(1, 0),
            x.permute([1, 0]),
            x.expand(3, -1, -1),
            x.t(),
        )
        yield from (
            x.to(torch.float64),
            x.to(dtype=torch.int64),
            x.long(),
            x.to("cpu"),
            x.half(),
            x.bool(),
            x.type(torch.int8),
        )
        yield from (
            torch.einsum("ij,kj->ik", x, x),
            torch.bmm(x[None], x.t()[None]),
            torch.arange(3),
            torch.arange(1, 5, 2),
        )
        yield from (
            torch.cat([x, x], 1),
            torch.stack((x, x)),
            *x.split(1),
            *x.chunk(2, 1),
            *torch.split(x, [1, 3], dim=1),
        )
        yield from (
            torch.zeros(2, 3),
            torch.full((2,), 1.5),
            x.new_zeros(2),
            torch.ones_like(x),
            x.repeat(2, 1),
            x.flatten(),
        )


def test_graphs_compute_what_programs_compute():
    class All(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.many = Many()

        def forward(self, x):
            return tuple(self.many.forward(x))

    model, x = All().eval(), torch.rand(2, 4) + 0.5
    program = torch.export.export(model, (x,))
    expected = model(x)
    found = program.graph_module(*lifted(model), *program.constants.values(), x)
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a.dtype is b.dtype and a.equal(b), i
    written = [
        str(node.target) for node in program.graph.nodes if node.name[:7] != "getitem" and node.op == "call_function"
    ]
    assert sum(name.startswith("aten.") for name in written) > 0.8 * len(written)


def test_exporting_leaves_buffers_as_they_are():
    model = torch.nn.BatchNorm1d(3)
    torch.export.export(model, (torch.randn(4, 3),))
    assert model.running_mean.tolist() == [0, 0, 0] and model.num_batches_tracked == 0


def test_files():
    model, program = exported({"x": {0: "batch"}})
    stream = io.BytesIO()
    torch.export.save(program, stream, extra_files={"a": "b"})
    stream.seek(0)
    extra = {"a": ""}
    loaded = torch.export.load(stream, extra_files=extra)
    x = torch.randn(5, 3)
    assert loaded.module()(x, k=2).equal(model(x, k=2)) and extra == {"a": b"b"}
    assert loaded.graph_module(*lifted(model), x, 2)[0].equal(model(x, k=2))
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


def test_ops_that_programs_define():
    @torch.library.custom_op("test_export::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    lib = torch.library.Library("test_export_lib", "DEF")
    lib.define("both(Tensor x, *, int n=2) -> (Tensor, Tensor)")
    lib.impl("both", lambda x, n=2: (x * n, x + n), "CPU")

    class Calls(nn.Module):
        def forward(self, x):
            a, b = torch.ops.test_export_lib.both(scaled(x, 2.0) + 1, n=3)
            return a * b.relu()

    x = torch.arange(3.0)
    program = torch.export.export(Calls(), (x,))
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets[0] is torch.ops.test_export.scaled.default and torch.ops.test_export_lib.both.default in targets
    stream = io.BytesIO()
    torch.export.save(program, stream)
    stream.seek(0)
    loaded = torch.export.load(stream)
    assert loaded.module()(x).equal(Calls()(x)) and str(loaded.graph) == str(program.graph)
    lib._destroy()
    stream.seek(0)
    with pytest.raises(RuntimeError, match="torch.ops.test_export_lib.both.default is not defined"):
        torch.export.load(stream)
