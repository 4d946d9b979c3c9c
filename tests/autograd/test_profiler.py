"""The profiler: which events are recorded, how they nest and link, averages, tables."""

import re

import pytest
from ops.calls import SAMPLES, Call

import cygrad as torch
from cygrad._core.graph.opdef import registry
from cygrad._core.runtime.thread_state import is_observed
from cygrad.autograd import profiler
from cygrad.autograd.profiler import profile, record_function
from helpers import fails, in_threads, leaf, line_marked


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


def names(prof):
    return [event.name for event in prof.function_events]


def named(prof, name):
    """The only event with that name."""
    (found,) = [event for event in prof.function_events if event.name == name]
    return found


@pytest.fixture(autouse=True)
def nothing_stays_on():
    yield
    assert not is_observed(), "the profiler is still on"


# ------------------------------------------------------------------ recorded events


@pytest.mark.parametrize("name", [name for name in SAMPLES if name in registry])
def test_every_op_appears_with_its_time(name):
    calls = [Call(name, sample) for sample in SAMPLES[name]]
    with profile() as prof:
        outputs = [call.outputs() for call in calls]
    wanted = "aten::" + name.partition(".")[0]
    events = [event for event in prof.function_events if event.name in (wanted, wanted + "_")]
    assert events
    assert all(event.cpu_time_total >= 0 for event in events)
    assert any(event.cpu_time_total > 0 for event in events)
    nodes = {value.grad_fn for results in outputs for value in results if value.grad_fn is not None}
    with profile() as prof:
        for call, results in zip(calls, outputs):
            if results:
                call.gradients(call.weights(results), results)
    assert {node.name() for node in nodes} <= set(names(prof))


def test_forward_and_backward_of_a_step():
    x = leaf(1.0, 2.0)
    with profile() as prof:
        Cube.apply(x.sin()).sum().backward()
    found = [(event.name, event.cpu_parent and event.cpu_parent.name) for event in prof.function_events]
    assert found == [
        ("aten::sin", None),
        ("Cube", None),
        ("aten::mul", "Cube"),
        ("aten::mul", "Cube"),
        ("aten::sum", None),
        ("SumBackward0", None),
        ("aten::expand", "SumBackward0"),
        ("CubeBackward", None),
        ("aten::mul", "CubeBackward"),
        ("aten::mul", "CubeBackward"),
        ("aten::mul", "CubeBackward"),
        ("SinBackward0", None),
        ("aten::cos", "SinBackward0"),
        ("aten::mul", "SinBackward0"),
        ("torch::autograd::AccumulateGrad", None),
    ]


INDICES = {
    "x[i]": lambda x, i: x[1],
    "x[i:]": lambda x, i: x[1:],
    "x[:, i]": lambda x, i: x[:, 1],
    "x[i, j]": lambda x, i: x[1, 2],
    "x[None, ..., i]": lambda x, i: x[None, ..., 1],
    "x[tensor]": lambda x, i: x[i],
    "x[i:, tensor]": lambda x, i: x[1:, i],
    "x[i:] = 0": lambda x, i: x.__setitem__(slice(1, None), 0),
    "x[tensor] = 0": lambda x, i: x.__setitem__(i, 0),
    "expand": lambda x, i: x.expand(2, 4, 4),
    "select": lambda x, i: x.select(1, 0),
    "narrow": lambda x, i: x.narrow(0, 1, 2),
    "unbind": lambda x, i: x.unbind(),
}


@pytest.mark.parametrize("name", INDICES)
def test_each_step_of_an_index_takes_time(name):
    x, i = leaf(*[[1.0] * 4] * 4) * 1, torch.tensor([0, 2])
    with profile() as prof:
        INDICES[name](x, i)
    assert prof.function_events
    assert all(event.cpu_time_total > 0 for event in prof.function_events)


def test_in_place_ops_and_out_have_names_of_their_own():
    x, y = torch.ones(2), torch.zeros(2)
    with profile() as prof:
        x.add_(1)
        torch.mul(x, x, out=y)
        x[0] = 3
    assert names(prof)[:2] == ["aten::add_", "aten::mul"]
    assert prof.function_events[1].overload_name == "out"


def test_a_node_is_linked_to_the_op_that_made_it():
    x = leaf(1.0)
    with profile() as prof:
        a = x.sin()
        b = Cube.apply(a)
        b.add_(a)
        b.sum().backward()
    for forward, backward in [
        ("aten::sin", "SinBackward0"),
        ("Cube", "CubeBackward"),
        ("aten::add_", "AddBackward0"),
        ("aten::sum", "SumBackward0"),
    ]:
        node = named(prof, backward)
        assert node.forward is named(prof, forward)
        assert node.sequence_nr == node.forward.sequence_nr >= 0
        assert node.scope == 1
        assert node.site == node.forward.site
    assert named(prof, "torch::autograd::AccumulateGrad").forward is None


def test_nodes_of_an_earlier_forward_are_linked_to_nothing():
    y = leaf(1.0).sin()
    with profile() as prof:
        y.tan().backward()
    assert named(prof, "TanBackward0").forward is named(prof, "aten::tan")
    assert named(prof, "SinBackward0").forward is None


def test_sequence_number_is_missing_where_nothing_is_recorded():
    x = leaf(1.0)
    with profile() as prof, torch.no_grad():
        x.sin()
    assert named(prof, "aten::sin").sequence_nr == -1


def test_sites_are_the_users_lines():
    x = leaf(1.0)
    with profile() as prof:
        y = x.sin()  # here
        y.backward()
    for name in ("aten::sin", "SinBackward0"):
        assert re.fullmatch(line_marked("here"), named(prof, name).site)


def test_shapes_memory_and_stack():
    x = torch.ones(3, 5)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        (x @ x.t()).add_(2.0)
    mm, add = named(prof, "aten::mm"), named(prof, "aten::add_")
    assert mm.input_shapes == [[3, 5], [5, 3]]
    assert mm.cpu_memory_usage == mm.self_cpu_memory_usage == 3 * 3 * 4
    assert add.input_shapes == [[3, 3], []]
    assert add.cpu_memory_usage == 0
    assert named(prof, "aten::t").cpu_memory_usage == 0
    assert "test_shapes_memory_and_stack" in mm.stack[0]
    with profile() as prof:
        x @ x.t()
    mm = named(prof, "aten::mm")
    assert (mm.input_shapes, mm.stack, mm.cpu_memory_usage) == ([], [], 0)


def test_bytes_kept_for_backward():
    x = torch.ones(10, requires_grad=True)
    with profile() as prof:
        (x + 1).exp()
        Cube.apply(x)
    assert named(prof, "aten::add").saved_bytes == 0
    assert named(prof, "aten::exp").saved_bytes == 40
    assert named(prof, "Cube").saved_bytes == 40


# ------------------------------------------------------------------ ranges


def test_ranges_hold_what_runs_inside():
    x = torch.ones(2)

    @record_function("a function")
    def double(value):
        return value * 2

    with profile() as prof:
        with record_function("outer"), record_function("inner"):
            x.sin()
        assert double(x).tolist() == [2.0, 2.0]
    tree = [(event.name, event.cpu_parent and event.cpu_parent.name) for event in prof.function_events]
    assert tree == [
        ("outer", None), ("inner", "outer"), ("aten::sin", "inner"), ("a function", None), ("aten::mul", "a function"),
    ]  # fmt: skip
    outer = prof.function_events[0]
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - outer.cpu_children[0].cpu_time_total)
    assert outer.is_user_annotation


def test_an_error_ends_events():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no")

    with profile() as prof:
        with pytest.raises(ZeroDivisionError), record_function("range"):
            raise ZeroDivisionError
        with pytest.raises(ValueError, match="no"):
            Fails.apply(leaf(1.0)).backward()
        torch.ones(1).sin()
    assert named(prof, "aten::sin").cpu_parent is None
    assert named(prof, "FailsBackward").cpu_parent is None


def test_a_range_outlives_the_profiler():
    with record_function("before"):
        prof = profile()
        prof.__enter__()
    inside = record_function("inside")
    inside.__enter__()
    prof.__exit__(None, None, None)
    inside.__exit__(None, None, None)
    assert names(prof) == ["inside"]
    assert prof.function_events[0].cpu_time_total >= 0


def test_names_must_be_text():
    line = "profiler::_record_function_enter_new() Expected a value of type '{}' for argument '{}' but instead found "
    line += "type '{}'."
    with fails(RuntimeError, line.format("str", "name", "int")), record_function(3):
        pass
    for value in (3, 0, []):
        with fails(RuntimeError, line.format("Optional[str]", "args", type(value).__name__)):
            with record_function("a", value):
                pass


# ------------------------------------------------------------------ on and off


def test_off_is_off():
    with profile(enabled=False) as prof:
        torch.ones(1).sin()
    assert prof is None
    prof = profile(enabled=False)
    with prof:
        torch.ones(1).sin()
    assert len(prof.function_events) == 0
    assert str(prof) == prof.table() == prof.line_table() == ""


def test_a_profiler_is_used_once():
    prof = profile()
    with prof:
        pass
    with fails(RuntimeError, "Profiler context manager is not reentrant"):
        prof.__enter__()


def test_profilers_nest():
    x = torch.ones(1)
    with profile() as outer:
        x.sin()
        with profile() as inner:
            x.cos()
        x.tan()
    assert (names(outer), names(inner)) == (["aten::sin", "aten::tan"], ["aten::cos"])


def test_each_thread_has_its_own():
    def work(i):
        def body():
            x = torch.ones(2, requires_grad=True)
            with profile() as prof:
                for _ in range(i):
                    x.sin().sum().backward()
            return names(prof).count("aten::sin"), len({event.thread for event in prof.function_events})

        return body

    with profile() as here:
        assert in_threads([work(i) for i in range(1, 5)]) == [(i, 1) for i in range(1, 5)]
    assert names(here) == []


def test_many_events():
    x = torch.ones(1)
    with profile() as prof:
        for _ in range(5000):
            x.neg()
    starts = [event.time_range.start for event in prof.function_events]
    assert len(starts) == 5000
    assert starts == sorted(starts)


def test_what_makes_tensors_is_noted():
    model = torch.ones(2, 3)
    with profile(profile_memory=True) as prof:
        torch.randn(200, 200)
        torch.arange(4)
        torch.tensor([1.0, 2.0])
        torch.zeros_like(model)
        torch.eye(2, out=torch.empty(2, 2))
        model.new_ones(3)
        torch.randperm(3)
    found = [(event.name, event.cpu_memory_usage) for event in prof.function_events]
    assert found[0][0] == "aten::randn"
    assert found[1:] == [
        ("aten::arange", 32),
        ("aten::tensor", 8),
        ("aten::zeros_like", 24),
        ("aten::empty", 16),
        ("aten::eye", 0),  # does not allocate
        ("aten::new_ones", 12),
        ("aten::randperm", 24),
    ]


def test_what_makes_tensors_began_when_it_was_called():
    with profile() as prof:
        for _ in range(20):
            torch.randn(200, 200)
            torch.arange(4)
    shortest = {
        name: min(event.cpu_time for event in prof.function_events if event.name == name)
        for name in ("aten::randn", "aten::arange")
    }
    # 40,000 draws and four numbers. Whatever interrupts a call adds to its time, and not to each of twenty.
    assert shortest["aten::randn"] > shortest["aten::arange"]


def test_steps_of_optimizers_are_ranges():
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    parameter.grad = torch.ones(2)
    with profile() as prof:
        optimizer.step()
    assert [event.name for event in prof.function_events][0] == "Optimizer.step#SGD.step"
    handle = optimizer.register_step_post_hook(lambda *_: parameter.data.zero_())
    with profile() as prof:
        optimizer.step()
    handle.remove()
    assert "aten::zero_" in [event.name for event in prof.function_events if event.cpu_parent]
    assert parameter.tolist() == [0, 0]


# ------------------------------------------------------------------ averages and tables


def test_the_arguments_can_be_read():
    assert not profile().use_cuda
    assert profile(enabled=False, use_cuda=True).use_cuda


def test_averages():
    x, y = torch.ones(2), torch.ones(4)
    with profile(record_shapes=True, profile_memory=True) as prof:
        for _ in range(3):
            x.sin()
        y.sin()
    by_name = {average.key: average for average in prof.key_averages()}
    assert by_name["aten::sin"].count == 4
    total = sum(event.cpu_time_total for event in prof.function_events)
    assert by_name["aten::sin"].cpu_time_total == pytest.approx(total)
    assert by_name["aten::sin"].cpu_time == pytest.approx(total / 4)
    assert by_name["aten::sin"].self_cpu_memory_usage == 3 * 8 + 16
    for by_shape in (
        prof.key_averages(group_by_input_shape=True),
        prof.function_events.key_averages(group_by_input_shapes=True),
    ):
        assert [(a.count, a.input_shapes) for a in by_shape] == [(3, [[2]]), (1, [[4]])]
    everything = prof.total_average()
    assert (everything.key, everything.count) == ("Total", 4)
    assert everything.self_cpu_time_total == pytest.approx(prof.self_cpu_time_total)


def test_averages_by_stack():
    def one(x):
        return x.sin()

    ones = torch.ones(1)
    with profile(with_stack=True) as prof:
        one(ones)
        ones.sin()
    averages = prof.key_averages(group_by_stack_n=1)
    assert [(a.key, len(a.stack), a.count) for a in averages] == [("aten::sin", 1, 1)] * 2


def test_table():
    x = torch.ones(2)
    with profile() as prof:
        with record_function("a name that is longer than all the others and must be cut somewhere"):
            x.sin()
        for _ in range(3):
            x.cos()
    table = prof.table(sort_by="cpu_time_total", row_limit=2, max_name_column_width=30, header="the title")
    lines = table.splitlines()
    assert lines[1] == "the title"
    rule = lines[2]
    assert rule.split("  ")[:2] == ["-" * 30, "-" * 12]
    assert lines[3].split() == "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls".split()
    assert lines[5].startswith("a name that is longer than ...  ")
    assert lines[7] == rule
    assert lines[8].startswith("Self CPU time total: ")
    assert table.endswith("\n")
    assert set(map(len, lines[2:8])) == {len(rule)} == {len(lines[0]) + 2}
    assert prof.key_averages().table(sort_by="count").splitlines()[3].lstrip().startswith("aten::cos")
    assert "Self CPU Mem" not in table
    assert prof.table(row_limit=None) == prof.table(row_limit=-1)
    assert "aten" not in prof.table(row_limit=0)
    top = prof.table(top_level_events_only=True)
    assert top.splitlines()[1] == "This report only display top-level ops statistics"
    assert "aten::sin" not in top
    assert top.count("aten::cos") == 3


def test_table_takes_known_columns_only():
    with profile() as prof:
        torch.ones(1).sin()
    with fails(AttributeError, "'FunctionEvent' object has no attribute 'foo'"):
        prof.table(sort_by="foo")


@pytest.mark.parametrize(
    ("microseconds", "unit", "text"),
    [
        (0.5, None, "0.500us"),
        (1500, None, "1.500ms"),
        (2.5e6, None, "2.500s"),
        (1500, "us", "1500.000us"),
        (1500, "s", "0.002s"),
    ],
)
def test_times_in_words(microseconds, unit, text):
    from cygrad.autograd._profiler_table import time_text

    assert time_text(microseconds, unit) == text


def test_by_line():
    x = torch.ones(100, requires_grad=True)
    with profile() as prof:
        for _ in range(2):
            y = x.exp().exp()  # twice
            z = y.sum()  # once
        z.backward()
    lines = {line.text.rpartition("# ")[2]: line for line in prof.function_events.by_line()}
    assert lines["twice"].count == 4
    assert lines["twice"].saved_bytes == 4 * 400
    assert lines["once"].saved_bytes == 0
    nodes = [event for event in prof.function_events if event.name == "ExpBackward0"]
    assert lines["twice"].backward == pytest.approx(sum(event.cpu_time_total for event in nodes))
    ops = [event for event in prof.function_events if event.name == "aten::exp"]
    assert lines["twice"].forward == pytest.approx(sum(event.cpu_time_total for event in ops))
    table = prof.line_table(sort_by="saved_bytes", row_limit=1)
    assert "1.56 KB" in table
    assert "... and 2 more lines" in table


def test_what_a_hook_has_packed_is_not_counted():
    with profile() as prof, torch.autograd.graph.saved_tensors_hooks(lambda tensor: 3, lambda number: None):
        y = Cube.apply(leaf(1.0)).exp()
    assert y.requires_grad
    assert (named(prof, "Cube").saved_bytes, named(prof, "aten::exp").saved_bytes) == (0, 0)


def test_events_made_by_hand():
    parent = profiler.FunctionEvent(1, "outer", 7, 0, 10, cpu_memory_usage=64, device_memory_usage=32, flops=5)
    child = profiler.FunctionEvent(2, "inner", 7, 2, 6, is_async=True, node_id=3, input_shapes=[[2]])
    parent.append_cpu_child(child)
    assert (parent.self_cpu_time_total, parent.flops, parent.device_resource_id, parent.trace_name) == (
        6,
        5,
        7,
        "outer",
    )
    assert (child.cpu_parent, child.is_async, child.node_id, child.sequence_nr) == (parent, True, 3, -1)
    assert parent.device_type is profiler.DeviceType.CPU and parent.self_device_memory_usage == 32
    total = profiler.EventList([parent, child]).total_average()
    assert (total.count, total.device_memory_usage, total.cpu_time_total, total.flops) == (2, 32, 14, 5)


def test_algorithms_of_convolutions(tmp_path):
    shapes = (2, 4, 8, 8), (4, 1, 3, 3), (3, 4, 1, 1)
    x, depthwise, product = (torch.rand(*shape, dtype=torch.float64) for shape in shapes)
    conv2d = torch.nn.functional.conv2d
    conv2d(x, product)  # not of an event
    with profile() as profiled:
        y = (x * 2).log_softmax(1)
        conv2d(conv2d(y, depthwise.requires_grad_(), groups=4), product).sum().backward()
    found = [(event.name, event.algorithm) for event in profiled.function_events if event.algorithm]
    assert found == [
        ("aten::convolution", "depthwise"),
        ("aten::convolution", "product"),
        ("aten::convolution", "product"),
        ("aten::filter_gradient", "depthwise"),
    ]
    profiled.export_chrome_trace(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").read_text().count('"Algorithm": "product"') == 2
