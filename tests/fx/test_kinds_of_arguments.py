"""Arguments of traced functions and of nodes: literals of many classes, placeholder values, notes that are kept."""

import copy
import enum
import typing
from dataclasses import dataclass
from typing import NamedTuple

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx._pytree import register_pytree_flatten_spec
from cygrad.fx._symbolic_trace import PHWithMeta
from cygrad.fx.immutable_collections import immutable_dict, immutable_list
from cygrad.utils import _pytree as pytree


class Kind(enum.Enum):
    SUM = 1


@dataclass
class Both:
    first: torch.Tensor
    second: torch.Tensor


class Pair(NamedTuple):
    x: object
    y: object


class Plain:
    def __init__(self, value):
        self.value = value


class Held(Plain, metaclass=fx.ProxyableClassMeta):
    pass


def leaf(*args):
    found = args[0]
    return found.x * found.y if isinstance(found, Pair) else args


fx.wrap("leaf")


def beside(value):
    return lambda x: leaf(x, value)


X = torch.tensor([1.0, 2.0])


def target_of(traced):
    return [node for node in traced.graph.nodes if node.op == "call_function"][-1]


def test_literals_of_nodes():
    for value in (Kind.SUM, Held(3)):
        traced = fx.symbolic_trace(beside(value))
        assert traced(X)[1] is value


def test_dataclasses_are_made_by_nodes():
    found = fx.symbolic_trace(lambda x: Both(x + 1, Both(x, x)))(X)
    assert type(found) is Both and found.first.tolist() == [2, 3] and found.second.first is X


def test_named_tuples_of_nodes():
    traced = fx.symbolic_trace(lambda x: leaf(Pair(x, 2.0)))
    call = target_of(traced)
    call.update_arg(0, Pair(next(iter(traced.graph.nodes)), 3.0))
    traced.recompile()
    assert traced(X).tolist() == [3, 6] and "args = (Pair(x=%x, y=3.0),)" in call.format_node()


def test_modules_are_attributes():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ReLU()

        def forward(self, x):
            return leaf(x, self.inner)

    net = Net()
    traced = fx.symbolic_trace(net)
    assert traced(X)[1] is net.inner and target_of(traced).args[1].target == "inner"


def test_attributes_of_placeholder_values_are_those_of_nodes():
    traced = fx.symbolic_trace(lambda a, b: a["f"] + b, {"a": {"f": PHWithMeta("f")}, "b": PHWithMeta(ph_key="b")})
    inputs = [node for node in traced.graph.nodes if node.op == "placeholder"]
    assert [node.ph_key for node in inputs] == ["f", "b"] and traced({"f": X}, X).tolist() == [2, 4]


def test_values_for_any_number_of_arguments():
    class Sum(nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + args[1]

    assert fx.symbolic_trace(Sum(), (fx.PH, fx.PH))(X, X).tolist() == [2, 4]


def test_methods_that_a_module_lacks():
    tracer = fx.Tracer()
    tracer.traced_func_name = "other"
    with pytest.raises(AssertionError, match="traced_func_name=other doesn't exist in ReLU"):
        tracer.trace(nn.ReLU())


def test_mutable_operations_are_refused_on_demand():
    class Functional(fx.Tracer):
        check_mutable_operations = True

    for function in (lambda x: torch.sigmoid(x, out=torch.empty_like(x)), lambda x: torch.relu_(x)):
        with pytest.raises(RuntimeError, match=r"^Tried to trace mutable operation aten::(sigmoid.out|relu_)"):
            Functional().trace(function)
        fx.Tracer().trace(function)


def test_copies_of_tracers_and_proxies():
    tracer = fx.Tracer()
    before = copy.deepcopy(tracer)
    tracer.trace(lambda x: x.relu())
    after = copy.deepcopy(tracer)
    assert not hasattr(before, "graph") and str(after.graph) == str(tracer.graph) and after.graph is not tracer.graph
    proxy = fx.Proxy(next(iter(tracer.graph.nodes)), tracer)
    copied = copy.deepcopy(proxy)
    assert copied.node is not proxy.node and copied.node.name == "x" and copied.tracer is not tracer


def test_a_copy_whose_notes_refer_to_the_module():
    traced = fx.symbolic_trace(lambda x: x + 1)
    traced.meta["self"] = traced
    assert (copied := copy.deepcopy(traced)).meta["self"] is copied


def test_transformers_keep_the_notes_of_nodes():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(lambda x: x * 2)
    traced = fx.GraphModule(tracer.root, graph)
    target_of(traced).meta["custom"] = {"stage": 1}
    new = target_of(fx.Transformer(traced).transform())
    assert new.meta["custom"] == {"stage": 1} and __file__ in new.stack_trace


def test_arguments_of_nodes_are_trees():
    items = immutable_list([3, immutable_list([X]), immutable_dict(a=4)])
    leaves, spec = pytree.tree_flatten(items)
    assert leaves[0] == 3 and leaves[1] is X and leaves[2] == 4
    again = pytree.tree_unflatten(leaves, spec)
    assert type(again) is immutable_list and type(again[2]) is immutable_dict


def test_classes_taken_apart_by_a_function_of_the_program():
    pytree.register_pytree_node(Plain, lambda plain: ([plain.value], None), lambda values, _: Plain(*values))
    try:
        register_pytree_flatten_spec(Plain, lambda plain, spec: [plain.value])
        traced = fx.symbolic_trace(lambda h: h.value + 1, {"h": Plain(fx.PH)})
        assert traced(Plain(X)).tolist() == [2, 3]
    finally:
        del pytree.SUPPORTED_NODES[Plain]
    assert fx.symbolic_trace(lambda x: 5, {"x": []})([]) == 5


def test_named_tuples_taken_apart():
    traced = fx.symbolic_trace(lambda pair: pair.x + pair.y, {"pair": Pair(fx.PH, fx.PH)})
    assert traced(Pair(X, X)).tolist() == [2, 4]
    assert fx.symbolic_trace(traced)(Pair(X, X)).tolist() == [2, 4]


def test_generators_of_older_programs():
    class Listed(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, args){maybe_return_annotation}:\n    {', '.join(free_vars)} = args"

        def generate_output(self, output_args):
            return f"return [{output_args!r}]"

    traced = fx.symbolic_trace(lambda x, y: x + y)
    traced.graph.set_codegen(Listed())
    traced.recompile()
    assert [found.tolist() for found in traced([X, X])] == [[2, 4]]


def test_code_tells_types_and_origin():
    def function(x: typing.List[str], y: list[str]) -> typing.Tuple[str]:  # noqa: UP006 - the code shows which
        return x

    traced = fx.symbolic_trace(function)
    assert "(self, x : typing_List[str], y : list[str]) -> typing_Tuple[str]:" in traced.code
    assert f"from {__file__}:" in traced.forward.__code__.co_filename


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.cat([x, x]),
        lambda x: torch.stack((x, x + 1)).sum(0),
        lambda x: x[[0, 1]] + x.view(torch.Size([4])).view(2, 2) + x.new_zeros(size=torch.Size((2, 2))),
        lambda x: torch.einsum("ij,jk->ik", *[x, x]),
    ],
)
def test_containers_go_through_transformers(f):
    """Arguments of nodes are immutable lists, which a transformer gives to its tracer with proxies in them."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    traced = fx.symbolic_trace(f)
    for module in (traced, fx.Transformer(traced).transform()):
        assert torch.equal(module(x), f(x)) and "Proxy" not in module.code and "Size" not in module.code
