"""Graphs of exported programs: names of inputs, kinds of arguments, and the state of the module afterwards."""

import io
from collections import OrderedDict, defaultdict, namedtuple

import pytest

import cygrad as torch
from cygrad import nn
from cygrad._dynamo.exc import UserError
from cygrad.nn import functional
from cygrad.ops import OpOverload

Pair = namedtuple("Pair", "a b")


def module(forward, **attributes):
    made = type("Made", (nn.Module,), {"forward": forward})()
    for name, value in attributes.items():
        if name.startswith("buffer_"):
            made.register_buffer(name[7:], value)
        else:
            setattr(made, name, value)
    return made


def reloaded(program):
    stream = io.BytesIO()
    torch.export.save(program, stream)
    stream.seek(0)
    return torch.export.load(stream)


def input_names(program):
    return [node.name for node in program.graph.nodes if node.op == "placeholder"]


def ones():
    return nn.Parameter(torch.ones(2))


# -- names -------------------------------------------------------------------------------------------------


def twice_named():
    inner = nn.Module()
    inner.b = ones()
    return module(lambda self, x: self.a.b * 2 + self.a_b * x, a=inner, a_b=ones())


x = torch.tensor([[1.0, -2.0], [3.0, 5.0]])
NAMES = {
    "layer-1": (
        module(lambda self, x: self.d["layer-1"](x), d=nn.ModuleDict({"layer-1": nn.Linear(2, 2, bias=False)})),
        (x,),
        ["p_d_layer_1_weight", "x"],
    ),
    "a b": (module(lambda self, x: self.d["a b"] * x, d=nn.ParameterDict({"a b": ones()})), (x,), ["p_d_a_b", "x"]),
    "a.b and a_b": (twice_named(), (x,), ["p_a_b", "p_a_b_1", "x"]),
    "p_w": (module(lambda self, p_w, y: self.w * p_w - y, w=ones()), (x, x + 1), ["p_w_1", "p_w", "y"]),
    "d_a": (module(lambda self, d, d_a: d["a"] - d_a), ({"a": x}, x + 1), ["d_a", "d_a_1"]),
    "upper": (module(lambda self, X, x: X - x), (x, x + 1), ["x", "x_1"]),
    "self": (module(lambda me, self: self - 1), (x,), ["self_1"]),
    "self_": (module(lambda self, self_: self_ - 1), (x,), ["self_"]),
    "keys": (module(lambda self, d: d["1 a"] - d[""]), ({"1 a": x, "": x + 1},), ["d_1_a", "d_"]),
    "args": (module(lambda self, x, *args: x - args[1]), (x, x + 1, x + 2), ["x", "args_0", "args_1"]),
    "args_0": (module(lambda self, args_0, *args: args_0 - args[0]), (x, x + 1), ["args_0", "args_0_1"]),
    "tuple": (module(lambda self, n: n.a - n.b), (Pair(x, x + 1),), ["n_a", "n_b"]),
    "constants": (module(lambda self, n, k: n[0] * n[1] * k), ([x, 3], 2), ["n_0", "n_1", "k"]),
    "attribute": (module(lambda self, x: x - self.x, x=torch.ones(2)), (x,), ["c_x", "x"]),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMES)
def test_names_of_inputs(case):
    model, args, names = NAMES[case]
    program = torch.export.export(model, args)
    for each in (program, reloaded(program)):
        assert input_names(each) == names
        assert [spec.arg.name for spec in each.graph_signature.input_specs] == names
        assert str(each.graph_signature) in str(each).replace("\n    ", "\n")
        state = dict(each.named_parameters())
        values = [state[target] for target in each.graph_signature.inputs_to_parameters.values()]
        given = [value for each in args for value in flat(each)]
        assert each.graph_module(*values, *each.constants.values(), *given)[0].equal(model(*args))


def flat(value):
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("name", ["class", "1a"])
def test_keywords_that_are_no_names(name):
    program = torch.export.export(module(lambda self, **kwargs: kwargs[name] - 1), (), {name: x})
    assert input_names(program) == [{"class": "class_1", "1a": "_1a"}[name]]
    assert program.graph_module(x)[0].equal(x - 1)


def test_names_of_constants_in_files():
    inner = nn.Module()
    inner.k = torch.ones(2)
    model = module(lambda self, x: x * self.c + self.inner.k + torch.tensor(3.0), c=2 * torch.ones(2), inner=inner)
    program = torch.export.export(model, (x,))
    assert list(program.constants) == ["c", "inner.k", "lifted_tensor_0"]
    assert list(reloaded(program).constants) == list(program.constants)
    assert str(reloaded(program).graph) == str(program.graph)


# -- arguments ---------------------------------------------------------------------------------------------


class Listed(list):
    pass


CONTAINERS = {
    "named tuple": (Pair, lambda self, n: n.a - n.b),
    "OrderedDict": (lambda a, b: OrderedDict(a=a, b=b), lambda self, n: n["a"] - n["b"]),
    "defaultdict": (lambda a, b: defaultdict(list, a=a, b=b), lambda self, n: n["a"] - n["b"]),
    "list": (lambda a, b: Listed([a, b]), lambda self, n: n[0] - n[1]),
    "return type": (lambda a, b: torch.return_types.max((a, b)), lambda self, n: n.values - n.indices),
    "nested": (lambda a, b: [Pair(a, {"b": Pair(b, 2)})], lambda self, n: n[0].a - n[0].b["b"].a),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_tensors_in_containers_are_arguments(kind):
    make, forward = CONTAINERS[kind]
    model = module(forward)
    program = torch.export.export(model, (make(x, 2 * x),))
    assert program.constants == {}
    assert program.module()(make(5 * x, x)).equal(4 * x)
    assert reloaded(program).module()(make(5 * x, x)).equal(4 * x)
    assert str(reloaded(program).graph) == str(program.graph)


@pytest.mark.parametrize("kind", [kind for kind in CONTAINERS if kind != "nested"])  # which holds a number
def test_tensors_in_containers_are_arguments_of_traces(kind):
    make, forward = CONTAINERS[kind]
    assert torch.jit.trace(module(forward), (make(x, 2 * x),))(make(5 * x, x)).equal(4 * x)


def test_lengths_of_tensors_in_named_tuples():
    shapes = torch.export.ShapesCollection()
    pair = Pair(torch.ones(3), torch.ones(2))
    shapes[pair.a] = {0: torch.export.Dim("batch")}
    program = torch.export.export(module(lambda self, n: n.a.sum() - n.b.sum()), (pair,), dynamic_shapes=shapes)
    assert program.module()(Pair(torch.ones(5), torch.ones(2))).item() == 3
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(Pair(torch.ones(5), torch.ones(3)))


def test_a_parameter_named_as_the_module():
    for forward in (lambda me, self: self - 1, lambda self, self_: self_ - 1, lambda self, _self, self_: _self - self_):
        args = (x, x + 1)[: forward.__code__.co_argcount - 1]
        assert torch.jit.trace(module(forward), args)(*args).equal(module(forward)(*args))


def test_padding_of_embeddings():
    def loss(graph_module, weight, *args):
        weight = weight.detach().clone().requires_grad_()
        graph_module(*args[:1], weight, *args[1:])[0].sum().backward()
        return weight.grad

    indices, weight = torch.tensor([0, 4, 4]), torch.randn(5, 2)
    for padding in (-1, -5, 4, None):
        model = module(lambda self, i, w, padding=padding: functional.embedding(i, w, padding))
        program = torch.export.export(model, (indices, weight))
        expected = torch.zeros(5, 2)
        for i in (0, 4, 4):
            if padding is None or i != padding % 5:
                expected[i] += 1
        assert loss(program.graph_module, weight, indices).equal(expected)
    program = torch.export.export(nn.Embedding(5, 2, padding_idx=-2), (indices,))
    (call,) = [node for node in program.graph.nodes if node.op == "call_function"]
    assert call.target is torch.ops.aten.embedding.default and call.args[2] == 3


IN_PLACE = {
    "elu": lambda f, x: f.elu(x, 0.5, True),
    "leaky_relu": lambda f, x: f.leaky_relu(x, 0.1, True),
    "relu": lambda f, x: f.relu(x, True),
    "silu": lambda f, x: f.silu(x, True),
    "hardtanh": lambda f, x: f.hardtanh(x, -1.5, 1.5, True),
    "celu": lambda f, x: f.celu(x, 0.5, inplace=True),
    "threshold": lambda f, x: f.threshold(x, 1.0, 2.0, inplace=True),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_activations_in_place(name):
    model = module(lambda self, x: (IN_PLACE[name](functional, y := x * 1), y))
    program = torch.export.export(model, (x,))
    call = list(program.graph.nodes)[2]
    if isinstance(call.target, OpOverload):  # of PyTorch's library, which has no argument `inplace`
        assert call.name == f"{name}_" and not any(value is True for value in call.args)
    for found, expected in zip(program.graph_module(x), model(x), strict=True):
        assert found.equal(expected)


def test_overloads():
    """Ops whose overload depends on the kinds of their arguments compute what the functions do."""

    def forward(self, x, y):
        several = (x > 0).any((0, 1)), (x > 0).all([0]), x[None].squeeze([0]), x.squeeze(0)
        scaled = torch.rsub(x, y, alpha=3), torch.rsub(x, 2, alpha=3), torch.subtract(x, y, alpha=3), x // 2, x // y
        images = functional.adaptive_avg_pool2d(x[None], 1), functional.adaptive_avg_pool2d(x[None], (2, 1))
        kernel = y[None, None]
        wide = functional.conv_transpose2d(x[None, None], kernel, None, 2, 1, 1)
        return *several, *scaled, *images, wide, functional.conv_transpose1d(x[:, None], kernel[0], dilation=2)

    args = x, torch.tensor([[2.0, 1.0], [0.5, -1.0]])
    program = torch.export.export(module(forward), args)
    for found, expected in zip(program.graph_module(*args), module(forward)(*args), strict=True):
        assert found.equal(expected) and found.dtype is expected.dtype
    written = {str(node.target) for node in program.graph.nodes}
    ops = "any.dims all.dims squeeze.dims squeeze.dim rsub.Tensor rsub.Scalar floor_divide.default"
    assert {f"aten.{name}" for name in [*ops.split(), "conv_transpose2d.input", "conv_transpose1d.default"]} <= written


# -- the module afterwards ---------------------------------------------------------------------------------


def count(self, x):
    self.n = self.n + 1
    return x * self.n


def test_buffers_that_are_set():
    model = module(count, buffer_n=torch.zeros(()))
    before = model.n
    program = torch.export.export(model, (x,))
    assert model.n is before and before.item() == 0
    last = list(program.graph.nodes)[-2]
    assert last.target == torch.ops.aten.copy_.default and last.args[0].name == "b_n"
    loaded = reloaded(program).module()
    assert loaded(x).equal(x) and loaded(x).equal(2 * x) and loaded.n.item() == 2
    run = program.module()
    assert run(x).equal(x) and run(x).equal(2 * x)
    assert model.n is before and before.item() == 2  # shared with the program
    program = torch.export.export(model, (x,), dynamic_shapes=({0: "batch"},))
    assert before.item() == 2
    assert program.module()(torch.ones(5, 2)).equal(3 * torch.ones(5, 2))


def test_buffers_that_are_one_tensor():
    def forward(self, x):
        self.n, self.m = x + 1, x + 2
        return x * 1

    shared = torch.zeros(2, 2)
    with pytest.raises(UserError, match="the buffer 'm' is set to another tensor"):
        torch.export.export(module(forward, buffer_n=shared, buffer_m=shared), (x,))


def test_buffers_that_are_set_to_themselves():
    def forward(self, x):
        self.n = self.n.detach()
        return x + self.n

    model = module(forward, buffer_n=torch.ones(()))
    assert [node.name for node in torch.export.export(model, (x,)).graph.nodes][-2] == "add"


def return_former(self, x):
    former = self.n
    self.n = self.n + 1
    return former


def swap(self, x):
    self.n, self.m = self.m, self.n
    return x


def grow(self, x):
    self.n = self.n.new_zeros(3)
    return x


def forget(self, x):
    self.n = None
    return x


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (return_former, "its former one is still in use"),
        (swap, "its former one is still in use"),
        (grow, "a tensor of another shape"),
        (forget, "None"),
    ],
)
def test_buffers_that_cannot_be_set(forward, message):
    model = module(forward, buffer_n=torch.zeros(2), buffer_m=torch.ones(2))
    before = model.n, model.m
    with pytest.raises(UserError, match=f"the module cannot be exported: the buffer 'n' is set to .*{message}"):
        torch.export.export(model, (x,))
    assert all(a is b for a, b in zip((model.n, model.m), before))


def test_exporting_leaves_the_module_as_it_was():
    def forward(self, x):
        self.calls += 1
        self.cache = x + 1
        self.plain.add_(1)
        with torch.no_grad():
            self.w.add_(1)
        self.v.data.add_(1)
        return x * self.w + self.v + self.unknown.sum() * 0 + self.plain

    unknown = torch.full((2,), float("nan"))
    model = module(
        forward, calls=0, cache=None, plain=torch.ones(2), w=ones(), v=ones(), buffer_unknown=unknown,
        buffer_small=unknown.to(torch.float8_e4m3fn), buffer_complex=torch.ones(2, dtype=torch.complex64).conj(),
        buffer_strided=torch.ones(2, 3)[:, 1], buffer_sparse=torch.eye(2).to_sparse(),
    )  # fmt: skip
    versions = {name: buffer._version for name, buffer in model.named_buffers()}
    attributes = dict(vars(model))
    torch.manual_seed(0)
    torch.export.export(model, (x,), dynamic_shapes=({0: "batch"},))
    assert (model.calls, model.cache) == (0, None) and vars(model).keys() == attributes.keys()
    assert all(each.equal(torch.ones(2)) for each in (model.plain, model.w, model.v))
    assert {name: buffer._version for name, buffer in model.named_buffers()} == versions


def test_exporting_draws_no_numbers():
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    torch.export.export(nn.Dropout(), (x,))
    assert torch.rand(2).equal(expected)


def test_modules_without_memory():
    model = nn.BatchNorm1d(2, device="meta")
    program = torch.export.export(model, (x.to("meta"),))
    assert program.graph.find_nodes(op="call_function", target=torch.ops.aten.batch_norm.default)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        torch.export.export(model, (torch.ones(2, 3, device="meta"),))
