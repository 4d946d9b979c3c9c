"""Traced functions and modules: what they compute, what they look like, and what is refused."""

import copy
import warnings

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.jit import TracerWarning, TracingCheckError


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.linear = self.tied = nn.Linear(36, 2)
        self.register_buffer("shift", torch.ones(2), persistent=False)

    def forward(self, x):
        flat = self.conv(x).flatten(1).view(x.size(0), 4, -1).reshape(x.shape[0], -1)
        return self.tied(flat) / x.shape[0] + self.shift


def test_module():
    model, x = Model().eval(), torch.randn(2, 3, 5, 5)
    traced = torch.jit.trace(model, x)
    assert isinstance(traced, torch.jit.TopLevelTracedModule) and isinstance(traced, torch.jit.ScriptModule)
    assert isinstance(getattr(traced.conv, "0"), torch.jit.TracedModule) and traced.original_name == "Model"
    assert list(traced.state_dict()) == list(model.state_dict()) and traced.linear.weight is model.linear.weight
    assert dict(traced.named_buffers()).keys() == dict(model.named_buffers()).keys()
    for batch in (1, 2, 7):
        x = torch.randn(batch, 3, 5, 5)
        assert traced(x).equal(model(x)) and traced.forward(x).equal(model(x))
    assert not traced.training and traced.train().training and getattr(traced.conv, "1").training
    assert "(conv): Sequential(\n    original_name=Sequential" in repr(traced)
    with pytest.raises(NotImplementedError, match="a part of a traced module"):
        traced.linear(torch.ones(1, 36))
    with pytest.raises(AttributeError, match="has no attribute 'foo'"):
        traced.foo  # noqa: B018


def test_gradients_reach_parameters_and_inputs():
    model, x = Model().eval(), torch.randn(2, 3, 5, 5)
    traced = torch.jit.trace(model, x)
    found, expected = [], []
    for function, kept in ((traced, found), (model, expected)):
        y = x.clone().requires_grad_()
        model.zero_grad()
        function(y).square().sum().backward()
        kept += [y.grad, *(p.grad.clone() for p in model.parameters())]
    assert all(a.equal(b) for a, b in zip(found, expected))


def test_code_and_graph():
    traced = torch.jit.trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.ones(1, 3))
    assert traced.code.split("\n") == [
        "def forward(self, input: Tensor) -> Tensor:",
        '  linear = torch.nn.functional.linear(input, getattr(self, "0").weight, getattr(self, "0").bias)',
        "  relu = torch.nn.functional.relu(linear, inplace=False)",
        "  return relu",
        "",
    ]
    assert [node.kind() for node in traced.graph.nodes()] == ["aten::linear", "aten::relu"]
    lines = str(traced.graph).split("\n")
    assert lines[0].startswith("graph(%self : __torch__.Sequential,") and lines[-2] == "  return (%relu)"
    assert traced.graph.inputs() == ["self", "input"] and traced.graph.outputs() == ["relu"]
    shown = torch.jit.trace(lambda x: x[:, 1:, None] + torch.ones(1), torch.ones(2, 3))
    assert "x[:, 1:, None]" in shown.code and isinstance(shown, torch.jit.ScriptFunction)
    assert shown.graph.inputs() == ["x"]


def test_function_with_nested_arguments_and_results():
    def function(x, pair, named):
        return {"sum": x + pair[0] - pair[1], "rest": (named["a"] * 2, [x])}

    args = torch.ones(2), (torch.ones(2), torch.zeros(2)), {"a": torch.ones(3)}
    traced = torch.jit.trace(function, args, strict=False)
    found = traced(torch.zeros(2), args[1], named={"a": torch.zeros(3)})
    assert found["sum"].tolist() == [1, 1] and found["rest"][0].tolist() == [0, 0, 0]
    assert isinstance(found["rest"][1], list)
    with pytest.raises(RuntimeError, match=r"function\(\) is missing value for argument 'named'"):
        traced(*args[:2])
    with pytest.raises(RuntimeError, match=r"function\(\) expected at most 3 argument\(s\) but received 4"):
        traced(*args, 1)
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'other' for operator 'function'"):
        traced(*args, other=1)
    with pytest.raises(
        RuntimeError, match="Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"
    ):
        traced(1, *args[1:])


def test_sizes_follow_each_dimension():
    def function(x, y):
        rows, columns = x.shape
        grown = x.view(1, rows * columns).expand(2, rows * columns).reshape(2 * rows, columns)
        return grown / columns + torch.arange(columns) + torch.zeros(rows, 1).repeat(2, 1) + y.sum() * rows**-0.5

    traced = torch.jit.trace(function, (torch.randn(3, 4), torch.randn(3)))
    for rows, columns, others in ((3, 4, 3), (1, 6, 2), (5, 2, 5)):
        args = torch.randn(rows, columns), torch.randn(others)
        torch.testing.assert_close(traced(*args), function(*args))


def test_sizes_that_vary_together():
    def function(x, y):
        return (x + y).view(x.size(0), 1) * y.size(0)

    traced = torch.jit.trace(function, (torch.randn(3), torch.randn(3)))
    args = torch.randn(5), torch.randn(5)
    assert traced(*args).equal(function(*args))


def test_a_number_without_a_formula_is_a_constant_and_a_warning():
    with pytest.warns(TracerWarning, match=r"mul, at .*follows no formula.*treated as a constant"):
        traced = torch.jit.trace(lambda x: x * (x.size(0) % 3), torch.ones(4))
    assert traced(torch.ones(5)).tolist() == [1] * 5


def test_changes_in_place_and_views():
    def function(x):
        y = x.clone()
        y[:, 0] = 5
        y.T.add_(1)
        part = y[1:]
        part *= 2
        return y, part

    x = torch.randn(3, 2)
    traced = torch.jit.trace(function, x)
    for t in (x, torch.randn(4, 2)):
        assert all(a.equal(b) for a, b in zip(traced(t), function(t)))
    changing = torch.jit.trace(lambda x: x.add_(1), torch.zeros(2))
    t = torch.zeros(2)
    assert changing(t) is t and t.tolist() == [1, 1]


def test_example_inputs_stay_as_they_are():
    x = torch.zeros(2)
    torch.jit.trace(lambda x: x.add_(1), x)
    model = nn.BatchNorm1d(2)
    torch.jit.trace(model, torch.randn(4, 2))
    assert x.tolist() == [0, 0] and model.num_batches_tracked == 1  # as one call


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (lambda x: x.sum() > 0 and 1, "Python boolean"),
        (lambda x: int(x.sum()), "Python integer"),
        (lambda x: float(x.sum()), "Python float"),
        (lambda x: x.sum().item(), "Python number"),
        (lambda x: x.tolist(), "Python list"),
        (lambda x: x.numpy(), "NumPy array"),
        (lambda x: [0, 1, 2, 3][x.sum().long()], "Python index"),
    ],
)
def test_values_read_as_numbers_cause_a_warning(read, kind):
    def function(x):
        if read(x) is not None:
            return x + 1
        return x

    with pytest.warns(TracerWarning) as caught:
        torch.jit.trace(function, torch.ones(2))
    assert [str(each.message).partition(" might")[0] for each in caught] == [f"Converting a tensor to a {kind}"]
    assert caught[0].filename == __file__


def test_tensors_of_values_are_constants():
    with pytest.warns(TracerWarning, match=r"torch.tensor results are registered as constants in the trace"):
        traced = torch.jit.trace(lambda x: x + torch.tensor([1.0, 2.0]), torch.zeros(2))
    assert traced(torch.zeros(2)).tolist() == [1, 2] and "CONSTANTS.constant" in traced.code


def test_random_numbers_are_drawn_anew():
    with pytest.warns(TracerWarning, match="Trace had nondeterministic nodes. Did you forget call .eval"):
        traced = torch.jit.trace(nn.Dropout(), torch.ones(100))
    torch.manual_seed(1)
    first = traced(torch.ones(100))
    assert not first.equal(traced(torch.ones(100)))
    torch.manual_seed(1)
    assert first.equal(nn.functional.dropout(torch.ones(100)))


def test_programs_that_differ_between_runs():
    calls = []

    def function(x):
        calls.append(x)
        return x + 1 if len(calls) % 2 else x * 2

    with pytest.raises(TracingCheckError, match="Graphs differed across invocations!\n(.*\n)*.*aten::mul"):
        torch.jit.trace(function, torch.ones(2))
    numbers = iter(range(100))

    def counting(x):
        return x + torch.full((1,), float(next(numbers)))

    with pytest.raises(TracingCheckError, match="Graphs differed"):
        torch.jit.trace(counting, torch.ones(2))
    with pytest.warns(TracerWarning, match="full, at .*follows no formula"):
        traced = torch.jit.trace(counting, torch.ones(2), check_trace=False)
    assert traced(torch.zeros(1)).item() == traced(torch.zeros(1)).item()


def test_checks_with_other_inputs():
    def function(x):
        return x + 1 if x.sum() > 0 else x - 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.trace(function, torch.ones(2), check_inputs=[(torch.ones(2),), (-torch.ones(2),)])
    assert "Output nr 1. of the traced function does not match" in str(caught[-1].message)


def test_what_is_refused():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"Type 'Tuple\[Tensor, int\]' cannot be traced. Only Tensors"):
        torch.jit.trace(lambda x, n: x * n, (x, 2))
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        torch.jit.trace(lambda x: x, 3)
    with pytest.raises(RuntimeError, match="Only tensors, lists, tuples of tensors, or dictionary of tensors"):
        torch.jit.trace(lambda x: 1, x)
    with pytest.raises(RuntimeError, match="Encountering a dict at the output of the tracer"):
        torch.jit.trace(lambda x: {"a": x}, x)
    with pytest.warns(TracerWarning, match="Encountering a list at the output of the tracer"):
        torch.jit.trace(lambda x: [x + 1], x)
    weight = nn.Parameter(x)
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad as a constant"):
        torch.jit.trace(lambda x: x * weight, x)
    with pytest.raises(RuntimeError, match="example_inputs or example_kwarg_inputs"):
        torch.jit.trace(lambda x: x)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        torch.jit.trace(lambda x: x, ())


def test_several_methods():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.weight

        def other(self, x, y):
            return x * self.weight - y

    model = Two()
    traced = torch.jit.trace_module(model, {"forward": torch.ones(2), "other": (torch.ones(2), torch.ones(2))})
    assert traced(torch.ones(2)).tolist() == [1, 1] and traced.other(torch.ones(2), torch.ones(2)).tolist() == [0, 0]
    bound = torch.jit.trace(model.forward, torch.ones(2))
    assert isinstance(bound, torch.jit.TopLevelTracedModule)
    with pytest.raises(AttributeError, match="expected a dictionary"):
        torch.jit.trace_module(model, torch.ones(2))
    with pytest.raises(AttributeError, match="third"):
        torch.jit.trace_module(model, {"third": torch.ones(2)})
    named = torch.jit.trace(model, example_kwarg_inputs={"x": torch.ones(2)})
    assert named(x=torch.zeros(2)).tolist() == [0, 0]


def test_traces_of_traces_and_copies():
    model = nn.Linear(2, 2)
    traced = torch.jit.trace(model, torch.ones(1, 2))
    with pytest.warns(UserWarning, match="already a ScriptModule, tracing it is a no-op"):
        assert torch.jit.trace(traced, torch.ones(1, 2)) is traced
    outer = torch.jit.trace(nn.Sequential(traced, nn.ReLU()), torch.ones(1, 2))
    assert outer(torch.ones(3, 2)).equal(model(torch.ones(3, 2)).relu())
    other = copy.deepcopy(traced)
    with torch.no_grad():
        other.weight.zero_()
    assert not other(torch.ones(1, 2)).equal(traced(torch.ones(1, 2)))


def test_while_tracing():
    seen = []
    torch.jit.trace(lambda x: (seen.append(torch.jit.is_tracing()), x + 1)[1], torch.ones(1), check_trace=False)
    assert seen[0] and not torch.jit.is_tracing()


def test_custom_functions_are_recorded_by_what_they_do():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    traced = torch.jit.trace(lambda x: Double.apply(x) + 1, torch.ones(2))
    assert traced(torch.full((2,), 3.0)).tolist() == [7, 7]
