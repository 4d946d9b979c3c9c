"""GraphModules: members, code, copies, files; interpreters, transformers, rewriting and passes."""

import copy
import operator
import pickle
import subprocess
import sys

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx.experimental.optimization import fuse, remove_dropout
from cygrad.fx.passes.infra.pass_base import PassBase, PassResult
from cygrad.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from cygrad.fx.passes.shape_prop import ShapeProp


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.inner = nn.Sequential(nn.Tanh(), nn.Linear(2, 2))
        self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))
        self.unused = nn.Linear(1, 1)

    def forward(self, x):
        return self.inner(self.linear(x)) * self.scale + torch.tensor([1.0, 2.0])


@pytest.fixture
def traced():
    return fx.symbolic_trace(Net().eval())


def inner(traced):
    """What the layers of a traced Net compute."""
    return getattr(traced.inner, "1")(getattr(traced.inner, "0")(traced.linear(X)))


X = torch.tensor([[1.0, -2.0, 3.0]])


def test_members_are_those_that_the_graph_uses(traced):
    assert type(traced).__name__ == "Net" and isinstance(traced, fx.GraphModule) and not traced.training
    assert dict(traced.named_children()).keys() == {"linear", "inner"}
    assert "_tensor_constant0" in dict(traced.named_buffers())
    assert type(traced).__mro__[1] is fx.GraphModule
    assert str(traced).startswith("Net(\n  (linear)") and "def forward(self, x):" in str(traced)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies(traced, copied):
    traced.meta["note"] = 1
    other = copied(traced)
    assert type(other).__name__ == "Net" and other.code == traced.code and not other.training
    torch.testing.assert_close(other(X), traced(X), rtol=0, atol=0)
    other.graph.erase_node(other.graph.output_node())
    assert traced.graph.output_node().op == "output" and len(traced.graph.nodes) == len(other.graph.nodes) + 1
    if copied is not copy.copy:
        with torch.no_grad():
            other.scale += 1
        assert traced.scale[0] == 2


def test_copies_get_preserved_attributes(traced):
    traced.meta[fx.graph_module._USER_PRESERVED_ATTRIBUTES_KEY] = {"note": "kept"}
    assert copy.deepcopy(traced).note == "kept" and not hasattr(traced, "note")


def test_state_dict(traced):
    other = fx.symbolic_trace(Net())
    other.load_state_dict(traced.state_dict())
    torch.testing.assert_close(other(X), traced(X))


def test_changes_take_effect_with_recompile(traced):
    (mul,) = traced.graph.find_nodes(op="call_function", target=operator.mul)
    before = traced(X)
    mul.target = operator.sub
    torch.testing.assert_close(traced(X), before)
    code = traced.recompile()
    assert "sub = " not in code.src and " - scale" in code.src
    torch.testing.assert_close(
        traced(X),
        before - inner(traced) * traced.scale + inner(traced) - traced.scale,
    )
    traced.graph = fx.symbolic_trace(lambda x: x + 1).graph
    assert traced(X).tolist() == [[2.0, -1.0, 4.0]]


def test_roots():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.mul, (graph.call_module("a.b", (x,)), graph.get_attr("a.w"))))
    made = fx.GraphModule({"a.b": nn.Identity(), "a.w": torch.tensor(2.0)}, graph, "Made")
    assert made(torch.tensor(3.0)).item() == 6 and type(made).__name__ == "Made"
    assert dict(made.named_buffers()).keys() == {"a.w"}
    with pytest.raises(RuntimeError, match="referenced target a.w but that target was not provided in ``root``!"):
        fx.GraphModule({"a.b": nn.Identity()}, graph)
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'a'"):
        fx.GraphModule(nn.Module(), graph)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        fx.GraphModule(3, graph)


def test_submodules(traced):
    assert traced.add_submodule("deep.er", nn.ReLU()) and isinstance(traced.deep.er, nn.ReLU)
    assert not traced.delete_submodule("none.such") and not traced.delete_submodule("scale")
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "deep") and traced.delete_submodule("inner.1") and len(traced.inner._modules) == 1


def test_readable_code(traced, capsys):
    text = traced.print_readable()
    assert capsys.readouterr().out == text + "\n"
    assert text.startswith("class Net(torch.nn.Module):\n    def forward(self, x):\n        # No stacktrace found")
    assert traced.print_readable(print_output=False) == text


def test_a_folder_is_a_package(traced, tmp_path):
    traced.to_folder(tmp_path / "made", "Made")
    code = (
        "import cygrad as torch, made\nmodule = made.Made().eval()\n"
        f"print(module(torch.tensor({X.tolist()})).tolist() == {traced(X).tolist()})"
    )
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.stdout == "True\n", found.stderr


def test_errors_in_generated_code_show_its_lines():
    import traceback

    traced = fx.symbolic_trace(lambda x: x.nonesuch())
    with pytest.raises(AttributeError) as error:
        traced(X)
    assert "nonesuch = x.nonesuch()" in "".join(traceback.format_exception(error.value))


def test_interpreters(traced):
    class Notes(fx.Interpreter):
        def run_node(self, n):
            notes.append(n.op)
            return super().run_node(n)

    notes: list = []
    found = Notes(traced).run(X)
    torch.testing.assert_close(found, traced(X), rtol=0, atol=0)
    assert notes == [node.op for node in traced.graph.nodes]
    torch.testing.assert_close(fx.Interpreter(traced, garbage_collect_values=False).boxed_run([X]), found)
    first = next(iter(traced.graph.nodes))
    torch.testing.assert_close(fx.Interpreter(traced).run(initial_env={first: X}), found)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x, but one was not passed in!"):
        fx.Interpreter(traced).run()
    with pytest.raises(AttributeError, match="While executing %nonesuch : "):
        fx.Interpreter(fx.symbolic_trace(lambda x: x.nonesuch())).run(X)
    with pytest.raises(RuntimeError, match="Node referenced nonexistent target linear.none"):
        fx.Interpreter(traced).fetch_attr("linear.none")


def test_interpreters_let_values_go():
    class Watch(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            held.append(len(self.env))
            return super().call_function(target, args, kwargs)

    held: list = []
    Watch(fx.symbolic_trace(lambda x: torch.exp(torch.exp(torch.exp(x))))).run(X)
    assert held == [1, 1, 1]


def test_transformers(traced):
    class Doubles(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(operator.add if target is operator.mul else target, args, kwargs)

    made = Doubles(traced).transform()
    layers = inner(traced)
    torch.testing.assert_close(made(X), layers + traced.scale + torch.tensor([1.0, 2.0]))
    assert made.inner is not None and made.scale is traced.scale


def test_patterns_are_replaced():
    def function(x, y):
        return torch.relu(x + y) + 1 + (torch.relu(y) + 1) + torch.relu(y)

    traced = fx.symbolic_trace(function)
    found = fx.replace_pattern(traced, lambda v: torch.relu(v) + 1, lambda v: torch.sigmoid(v))
    assert len(found) == 2 and {match.anchor.name for match in found} == {"add"}
    x, y = torch.tensor([-1.0, 2.0]), torch.tensor([3.0, -4.0])
    torch.testing.assert_close(traced(x, y), torch.sigmoid(x + y) + torch.sigmoid(y) + torch.relu(y))
    traced.graph.lint()


def test_patterns_whose_values_are_used_elsewhere_stay():
    def function(x):
        inner = torch.relu(x)
        return inner + 1, inner

    traced = fx.symbolic_trace(function)
    before = traced.code
    assert fx.replace_pattern(traced, lambda v: torch.relu(v) + 1, lambda v: v) == []
    assert traced.code == before
    chain = fx.symbolic_trace(lambda x: torch.neg(torch.neg(torch.neg(torch.neg(x)))))
    assert len(fx.replace_pattern(chain, lambda v: torch.neg(torch.neg(v)), lambda v: torch.abs(v))) == 2
    assert chain(torch.tensor(-3.0)).item() == 3


def test_literals_and_filters():
    from cygrad.fx.subgraph_rewriter import replace_pattern_with_filters

    traced = fx.symbolic_trace(lambda x: torch.clamp(x, min=1) + torch.clamp(x, min=2))

    def pattern(v):
        return torch.clamp(v, min=5)

    assert fx.replace_pattern(traced, pattern, lambda v: v) == []
    found = replace_pattern_with_filters(
        traced,
        pattern,
        lambda v: torch.neg(v),
        [
            lambda match, graph, pattern: (
                list(match.nodes_map.values())[-1].kwargs.get("min") != 1
                and match.returning_nodes[0].kwargs["min"] == 2
            )
        ],
        ignore_literals=True,
    )
    assert len(found) == 1 and found[0].replacements[0].target is torch.neg
    assert traced(torch.tensor(0.0)).item() == 1


def test_ops_in_patterns_match_with_defaults_and_keywords():
    aten = torch.ops.aten
    traced = fx.symbolic_trace(lambda x: aten.max_pool2d_with_indices.default(x, [2, 2], stride=[2, 2])[0])

    def pattern(x, size, stride):
        return aten.max_pool2d_with_indices.default(x, size, stride, padding=[0, 0])

    def replacement(x, size, stride):
        return aten.max_pool2d_with_indices.default(aten.relu.default(x), size, stride)

    assert len(fx.replace_pattern(traced, pattern, replacement)) == 1
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets[:2] == [aten.relu.default, aten.max_pool2d_with_indices.default]
    assert traced(-torch.ones(1, 1, 4, 4)).tolist() == [[[[0, 0], [0, 0]]]]


def test_modules_in_patterns():
    class Old(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            return self.linear(x)

    class New(nn.Module):
        def __init__(self):
            super().__init__()
            self.new = nn.Linear(3, 2)

        def forward(self, x):
            return self.new(x)

    new = fx.symbolic_trace(New())
    traced = fx.symbolic_trace(Old())
    fx.replace_pattern(traced, fx.symbolic_trace(Old()), new)
    torch.testing.assert_close(traced(X), new(X))
    assert traced.new is new.new and not hasattr(traced, "linear")


def test_shapes(traced):
    result = ShapeProp(traced).propagate(X)
    torch.testing.assert_close(result, traced(X))
    described = {node.name: node.meta["tensor_meta"] for node in traced.graph.nodes}
    assert described["linear"].shape == (1, 2) and described["x"].stride == (3, 1)
    assert described["output"].dtype is torch.float32 and described["output"].requires_grad
    assert described["x"].memory_format is torch.contiguous_format
    pair = fx.symbolic_trace(lambda x: x.chunk(2))
    ShapeProp(pair).propagate(torch.ones(4, 2))
    assert [one.shape for one in pair.graph.find_nodes(op="call_method")[0].meta["tensor_meta"]] == [(2, 2), (2, 2)]


def test_passes(traced):
    class Renames(PassBase):
        def call(self, graph_module):
            old = graph_module.graph.find_nodes(op="call_function", target=operator.mul)
            for node in old:
                node.target = operator.add
            return PassResult(graph_module, bool(old))

    manager = PassManager([Renames()], steps=3)
    checks: list = []
    manager.add_checks(lambda module: checks.append(module))
    assert manager(traced) == (traced, True) and checks == [traced]
    manager.run_checks_after_each_pass = True
    assert manager(traced) == (traced, False) and len(checks) == 3
    with pytest.raises(TypeError, match="should only take in one variable"):
        manager.add_checks(lambda module, other: None)
    manager.add_pass(lambda module: module)
    with pytest.raises(Exception, match="the '<lambda>' pass after the following passes: .'Renames'") as failed:
        manager(traced)
    assert str(failed.value.__cause__).startswith("The result of the pass <lambda> should be type PassResult")


def test_passes_that_return_other_results(traced):
    class Nothing(PassBase):
        def call(self, graph_module):
            return None

    for one in (Nothing(), lambda module: module, lambda module: PassResult(module, False)):
        result = PassManager([pass_result_wrapper(one)])(traced)
        assert result.graph_module is traced


def test_order_of_passes():
    passes = [lambda module, i=i: PassResult(module, False) for i in range(4)]
    manager = PassManager(passes)
    manager.add_constraint(this_before_that_pass_constraint(passes[3], passes[0]))
    manager.add_constraint(this_before_that_pass_constraint(passes[2], passes[3]))
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager.validate_constraints()
    manager.solve_constraints()
    manager.validate_constraints()
    assert [passes.index(one) for one in manager.passes] == [1, 2, 3, 0]
    manager.add_constraint(this_before_that_pass_constraint(passes[0], passes[2]))
    with pytest.raises(RuntimeError, match="^Circular dependency detected within the following passes"):
        manager(None)


def test_checks_whose_errors_are_ignored(traced):
    def fails(module):
        raise ValueError("wrong")

    for is_ignored in (False, True):
        manager = PassManager(suppress_check_failures=is_ignored)
        manager.add_checks(fails)
        if is_ignored:
            assert manager(traced) == (traced, False)
        else:
            with pytest.raises(ValueError, match="wrong"):
                manager(traced)


def test_fusion():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(), nn.Linear(6, 6))
    model(torch.randn(4, 1, 8, 8))
    model.eval()
    x = torch.randn(2, 1, 8, 8)
    fused = fuse(model)
    torch.testing.assert_close(fused(x), model(x), rtol=1e-4, atol=1e-5)
    assert [type(one).__name__ for one in fused.children()] == ["Conv2d", "ReLU", "Dropout", "Linear"]
    assert isinstance(model[1], nn.BatchNorm2d)
    less = remove_dropout(model.train())
    assert not any(isinstance(one, nn.Dropout) for one in less.modules())


def test_hooks_see_changes(traced):
    notes: list = []
    traced._register_create_node_hook(lambda node: notes.append(("new", node.name)))
    traced._register_erase_node_hook(lambda node: notes.append(("gone", node.name)))
    x = next(iter(traced.graph.nodes))
    with traced.graph.inserting_after(x):
        node = traced.graph.call_method("neg", (x,))
    with traced._set_replace_hook(lambda old, new, user: notes.append((old.name, new, user.name))):
        x.replace_all_uses_with(node, lambda user: user is not node)
        node.replace_all_uses_with(x)
    traced.graph.erase_node(node)
    assert notes == [("new", "neg"), ("x", "neg", "linear"), ("neg", "x", "linear"), ("gone", "neg")]


def test_inputs_of_a_pattern_match_numbers():
    traced = fx.symbolic_trace(lambda a, b: torch.add(a, b) + torch.add(b, 3) * torch.add(b, [1.0][0]))
    found = fx.replace_pattern(traced, lambda x, y: torch.add(x, y), lambda x, y: torch.mul(x, y) + 1)
    a, b = torch.tensor([2.0]), torch.tensor([5.0])
    assert len(found) == 3 and list(found[1].nodes_map.values())[-1] == 3
    assert traced(a, b).item() == 2 * 5 + 1 + (5 * 3 + 1) * (5 + 1)
    same = fx.symbolic_trace(lambda a: torch.add(a, a) + torch.add(a, 3))
    assert len(fx.replace_pattern(same, lambda x: torch.add(x, x), lambda x: x * 2)) == 1
    twice = fx.symbolic_trace(lambda a: torch.sub(torch.add(a, 3), 3) + torch.sub(torch.add(a, 3), 4))
    assert len(fx.replace_pattern(twice, lambda x, y: torch.sub(torch.add(x, y), y), lambda x, y: x)) == 1
    assert twice(a).item() == 2 + 2 + 3 - 4
