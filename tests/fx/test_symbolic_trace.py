"""Tracing: the graph, the generated code and its values, and what cannot be traced."""

import copy
import math
import operator
import pickle

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import fx, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x, y=None, *, factor=2.0):
        z = F.relu(self.linear(x) * self.scale + 1).clamp(min=0.5)
        z = torch.cat([z, -z], dim=1)[:, :4]
        z = z.view(z.size(0), z.shape[1])
        first, second = z.chunk(2, 1)
        z = self.layers(z) + self.shift
        if y is not None:
            z = z + y
        return {"out": z / factor, "parts": (first, second), "less": 2 - z}


def test_a_traced_module_computes_the_same():
    net, x = Net(), torch.randn(5, 3)
    traced = fx.symbolic_trace(net, concrete_args={"y": None})
    for found, expected in zip(traced(x).values(), net(x).values(), strict=True):
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for one, other in pairs:
            torch.testing.assert_close(one, other, rtol=0, atol=0)
    traced(x)["out"].sum().backward()
    assert net.scale.grad is not None  # parameters are shared
    assert list(traced.state_dict()) == [
        "scale",
        "shift",
        *(f"{n}.{p}" for n in ("linear",) for p in ("weight", "bias")),
        "layers.1.weight",
        "layers.1.bias",
    ]
    with pytest.raises(AssertionError, match="y has been specialized to have value None"):
        traced(x, torch.ones(2))


def test_fixed_values_decide_control_flow():
    def function(x, flag: bool, power=2):
        return x**power if flag else x

    traced = fx.symbolic_trace(function, concrete_args={"flag": True})
    assert traced(torch.tensor(3.0), True).item() == 9
    assert [node.op for node in traced.graph.nodes][-2:] == ["call_function", "output"]
    with pytest.raises(AssertionError, match="flag has been specialized to have value True but got another value"):
        traced(torch.tensor(3.0), False)
    kept = fx.symbolic_trace(function, concrete_args={"flag": False, "power": fx.PH})
    assert kept(torch.tensor(3.0), False).item() == 3


def code_of(function):
    return fx.symbolic_trace(function).code.strip().split("\n")[1:]


@pytest.mark.parametrize(
    "function, lines",
    [
        (lambda x: x + 1, ["add = x + 1;  x = None", "return add"]),
        (lambda x: 1 - x, ["sub = 1 - x;  x = None", "return sub"]),
        (lambda x: abs(x), ["abs_1 = _operator_abs(x);  x = None", "return abs_1"]),
        (lambda x: x.sum(dim=0), ["sum_1 = x.sum(dim = 0);  x = None", "return sum_1"]),
        (
            lambda x: x.shape[0],
            ["getattr_1 = x.shape;  x = None", "getitem = getattr_1[0];  getattr_1 = None", "return getitem"],
        ),
        (lambda x: torch.exp(x), ["exp = torch.exp(x);  x = None", "return exp"]),
        (lambda x: F.gelu(x), ["gelu = torch.nn.functional.gelu(x);  x = None", "return gelu"]),
        (
            lambda x: F.dropout(x, 0.1),
            [
                "dropout = torch.nn.functional.dropout(x, p = 0.1, training = True, inplace = False);  x = None",
                "return dropout",
            ],
        ),
        (
            lambda x: torch.zeros(x.size(0), 2),
            ["size = x.size(0);  x = None", "zeros = torch.zeros(size, 2);  size = None", "return zeros"],
        ),
        (lambda x: math.sqrt(x), ["sqrt = math_sqrt(x);  x = None", "return sqrt"]),
        (lambda x: [x, (x,), {"a": x}, slice(x, None)], ["return [x, (x,), {'a': x}, slice(x, None, None)]"]),
        (lambda x: x.to(torch.float64), ["to = x.to(torch.float64);  x = None", "return to"]),
        (lambda x: torch.clamp(x, max=float("inf")), ["clamp = torch.clamp(x, max = inf);  x = None", "return clamp"]),
    ],
)
def test_code(function, lines):
    assert [line.strip() for line in code_of(function)] == lines


def unpacks(x):
    a, b = x
    return a * b


def loops(x):
    for _ in x:
        pass


@pytest.mark.parametrize(
    "function, error, text",
    [
        (lambda x: x if x.sum() > 0 else -x, fx.proxy.TraceError, "symbolically traced variables cannot be used as"),
        (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing by default"),
        (loops, fx.proxy.TraceError, "Proxy object cannot be iterated"),
        (lambda x: loops(*x), fx.proxy.TraceError, "Proxy object cannot be iterated"),
        (lambda x: int(x), TypeError, "int\\(\\) argument must be"),
        (lambda x: {x: 1}, RuntimeError, "Keys for dictionaries used as an argument cannot contain a Node"),
        (lambda x: torch.exp(object()) + x, TypeError, "must be Tensor"),
        (lambda x: x.relu(object()), NotImplementedError, "argument of type: <class 'object'>"),
    ],
)
def test_what_cannot_be_traced(function, error, text):
    with pytest.raises(error, match=text):
        fx.symbolic_trace(function)
    assert not fx._symbolic_trace.is_fx_tracing()
    assert nn.Linear(2, 2)(torch.ones(1, 2)).shape == (1, 2)  # modules are as before


def test_unpacking_indexes():
    traced = fx.symbolic_trace(unpacks)
    assert traced(torch.tensor([3.0, 4.0])).item() == 12
    assert [node.target for node in traced.graph.nodes][1:3] == [operator.getitem] * 2


def test_any_number_of_arguments():
    def function(x, *args, **kwargs):
        return x + args[0] * kwargs["y"]

    traced = fx.symbolic_trace(function)
    assert traced(torch.tensor(1.0), torch.tensor(2.0), y=torch.tensor(3.0)).item() == 7


def test_constants_become_attributes():
    weight = torch.tensor([1.0, 2.0])
    traced = fx.symbolic_trace(lambda x: x * weight + (weight + x))
    assert traced._tensor_constant0 is weight
    assert traced(torch.ones(2)).tolist() == [3.0, 5.0]


def undecided(x):
    return x + 1 if x.sum() > 0 else x


fx.wrap("undecided")


@fx.wrap
def decorated(x, n):
    return x * n


def test_wrapped_functions_are_nodes():
    traced = fx.symbolic_trace(lambda x: decorated(undecided(x), 3))
    assert [node.name for node in traced.graph.nodes] == ["x", "undecided", "decorated", "output"]
    assert traced(torch.ones(2)).tolist() == [6.0, 6.0]
    assert undecided(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        fx.wrap(3)
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        fx.wrap("undecided")


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(self.inner(x))


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return x * self.weight


def test_tracers_decide_what_is_a_leaf():
    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Inner)

    module = Custom()
    tracer = Leaves()
    graph = tracer.trace(module)
    assert [(node.op, node.target) for node in graph.nodes][1:3] == [("call_module", "inner")] * 2
    assert graph.find_nodes(op="call_module")[0].meta["nn_module_stack"] == {"inner": ("inner", Inner)}
    plain = fx.Tracer().trace(module)
    assert [node.op for node in plain.nodes] == ["placeholder", "get_attr", "call_function", "call_function", "output"]
    assert fx.GraphModule(module, plain)(torch.tensor(3.0)).item() == 12
    with pytest.raises(NameError, match="module is not installed as a submodule"):
        tracer.path_of_module(nn.ReLU())


def test_tracers_see_parameters():
    class Names(fx.Tracer):
        def getattr(self, attr, attr_val, parameter_proxy_cache):
            names.append(attr)
            return super().getattr(attr, attr_val, parameter_proxy_cache)

    names: list = []
    Names().trace(Inner())
    assert names == ["weight"]
    constant = fx.Tracer(param_shapes_constant=True)

    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 2))

        def forward(self, x):
            return x + 1 if self.weight.shape[0] == 3 else x

    assert fx.GraphModule(Asks(), constant.trace(Asks()))(torch.zeros(1)).item() == 1


def test_stack_traces_are_recorded_on_demand():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(lambda x: torch.relu(x))
    (node,) = graph.find_nodes(op="call_function")
    assert "test_symbolic_trace.py" in node.stack_trace and "torch.relu(x)" in node.stack_trace


def test_classes_of_proxyable_objects():
    class Pair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

    traced = fx.symbolic_trace(lambda x: Pair(x, 1).left)
    assert traced.graph.find_nodes(op="call_function")[0].target is Pair
    assert Pair(1, 2).right == 2


def of_dicts(x, factor=2):
    return {"sum": x["a"] + x["b"][0], "difference": (x["a"] - x["b"][1]) * factor}


NESTED = {"x": {"a": fx.PH, "b": [fx.PH, fx.PH]}}


def test_nested_arguments():
    one = torch.ones(1)
    traced = fx.symbolic_trace(of_dicts, concrete_args=NESTED)
    assert [node.name for node in traced.graph.find_nodes(op="placeholder")] == ["x_1", "x_2", "x_3", "factor"]
    assert "fx_pytree.tree_flatten_spec([x, factor], self._in_spec)" in traced.code
    for run in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), fx.Interpreter(traced).run):
        found = run({"a": one, "b": [one, 3 * one]}, 2)
        assert found == {"sum": torch.tensor([2.0]), "difference": torch.tensor([-4.0])}
    assert traced({"a": one, "b": [one, one]})["difference"].item() == 0
    with pytest.raises(ValueError, match="Node arity mismatch; expected 2, but got 1."):
        traced({"a": one})
    with pytest.raises(ValueError, match="Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."):
        traced({"a": one, "b": (one, one)})


def test_parts_of_arguments_with_fixed_values():
    traced = fx.symbolic_trace(lambda x, y: (x[0] + y, x[1]), concrete_args={"x": (fx.PH, 3), "y": 2})
    assert traced((torch.ones(1), 3), 2) == (torch.tensor([3.0]), 3)
    for args in (((torch.ones(1), 4), 2), ((torch.ones(1), 3), 1)):
        with pytest.raises(AssertionError, match="has been specialized to have value . but got another value"):
            traced(*args)
    names = [node.name for node in traced.graph.find_nodes(op="placeholder")]
    assert names == ["x_1", "x_2", "y_1"]  # numbered for each argument
    with pytest.warns(UserWarning, match="Was not able to add assertion to guarantee correct input o"):
        fx.symbolic_trace(lambda x, o: x + 1, concrete_args={"o": object()})


def test_assertions_are_traced():
    traced = fx.symbolic_trace(lambda x: torch._assert(x.sum() > 0, "too small"))
    assert "torch._assert(gt, 'too small')" in traced.code
    assert traced(torch.ones(1)) is None
    with pytest.raises(AssertionError, match="too small"):
        traced(-torch.ones(1))


def test_names_are_those_of_pytorch():
    traced = fx.symbolic_trace(lambda x: torch.einsum("ij->ji", torch.split(x, 1)[0]))
    assert "torch.functional.split(x, 1)" in traced.code and "torch.functional.einsum('ij->ji'" in traced.code
    assert torch.overrides.resolve_name(torch.norm) == "torch.functional.norm"
