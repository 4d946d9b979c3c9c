"""The profiler against PyTorch's: schedules, and the functions and nodes of a training step, in order."""

import random
import warnings

import pytest

import cygrad
import cygrad.profiler

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("seed", range(30))
def test_schedules(seed):
    numbers = random.Random(seed)
    names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
    options = {name: numbers.randrange(4) for name in names}
    options["active"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about schedules without warmup
        ours = cygrad.profiler.schedule(**options)
        theirs = torch.profiler.schedule(**options)
    assert [ours(i).name for i in range(40)] == [theirs(i).name for i in range(40)]


def shown(library):
    class Cube(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = library.ones(3, 4, requires_grad=True)
    w = library.ones(4, 2, requires_grad=True)
    with library.autograd.profiler.profile(record_shapes=True) as prof:
        with library.autograd.profiler.record_function("forward"):
            y = Cube.apply((x @ w).sin())
            loss = y.mul_(0.5).exp().sum()
        loss.backward()
    ops = ("forward", "Cube", "aten::sin", "aten::exp", "aten::mul_", "aten::cos")
    kept = [
        (event.name, event.input_shapes[:1] if event.name.startswith("aten::") else None, event.scope)
        for event in prof.function_events
        if event.name in ops or event.name.endswith("Backward0") or event.name.endswith("Backward")
    ]
    numbers = {}
    for event in prof.function_events:
        if event.sequence_nr >= 0 and not event.name.startswith("autograd::engine"):
            numbers.setdefault(event.sequence_nr, []).append(event.name)
    return [(n, s, c) for n, s, c in kept if not n.startswith("autograd::engine")], sorted(numbers.values())


def test_a_training_step():
    (ours, our_links), (theirs, their_links) = shown(cygrad), shown(torch)
    assert [name for name, _, _ in ours] == [name for name, _, _ in theirs]
    assert [shapes for _, shapes, _ in ours] == [shapes for _, shapes, _ in theirs]
    for pair in (["Cube", "CubeBackward"], ["aten::sin", "SinBackward0"], ["aten::exp", "ExpBackward0"]):
        assert pair in our_links
        assert pair in their_links


def fields(library):
    """The public attributes of an event, and of an average."""
    with library.autograd.profiler.profile() as prof:
        library.ones(2).sum()
    return [{name for name in dir(thing[0]) if name[0] != "_"} for thing in (prof.function_events, prof.key_averages())]


def test_events_have_the_fields_of_pytorch():
    for ours, theirs in zip(fields(cygrad), fields(torch)):
        assert theirs - ours == set()


def made(library, **options):
    """Events with times that were made up, as a list of the library's class."""
    util = library.autograd.profiler_util
    stacks = [["a.py(3): f", "b.py(1): <module>"], ["a" * 90 + ".py(3): f"]]
    if options.get("with_flops"):  # PyTorch writes them below the title of the stacks
        stacks = [[], []]
    rows = [
        ("outer", 0, 2.5e6, {"input_shapes": [[2, 3], []], "stack": stacks[0], "cpu_memory_usage": 2048}),
        ("aten::mm", 10, 1510.25, {"input_shapes": [[200, 300], [300, 4]], "stack": stacks[1], "flops": 4_800_000}),
        ("b" * 70, 2.5e6, 2.5e6 + 7, {"flops": 12_000, "cpu_memory_usage": -12, "overload_name": "out"}),
        ("aten::mm", 3e6, 3e6 + 11.5, {"is_async": True}),
    ]
    usual = {"thread": 1, "use_device": None, "device_type": util.DeviceType.CPU, "flops": 0, "overload_name": ""}
    usual |= {"input_shapes": [], "stack": []}
    events = [
        util.FunctionEvent(number, name, start_us=start, end_us=end, **(usual | fields))
        for number, (name, start, end, fields) in enumerate(rows)
    ]
    found = util.EventList(events, **options)
    found._build_tree()
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sort_by": "self_cpu_time_total", "row_limit": 2},
        {"sort_by": "cpu_memory_usage", "time_unit": "ms"},
        {"sort_by": "cuda_time_total", "time_unit": "days"},
        {"row_limit": 0},
        {"row_limit": -1, "max_name_column_width": 12, "max_shapes_column_width": 15, "max_src_column_width": 20},
        {"max_name_column_width": None, "max_shapes_column_width": None, "max_src_column_width": None},
        {"header": "the title", "top_level_events_only": True},
    ],
)
@pytest.mark.parametrize("lists", [{}, {"profile_memory": True}, {"with_flops": True}])
def test_tables(options, lists):
    ours, theirs = made(cygrad, **lists), made(torch, **lists)
    assert ours.table(**options) == theirs.table(**options)
    for groups in ({}, {"group_by_input_shapes": True}, {"group_by_stack_n": 1}, {"group_by_overload_name": True}):
        averages = theirs.key_averages(**groups)
        assert ours.key_averages(**groups).table(**options) == averages.table(**options), groups
    assert repr(ours.total_average()) == repr(theirs.total_average())
    for one, other in zip(ours, theirs):
        assert (one.self_cpu_percent, one.total_cpu_percent) == (other.self_cpu_percent, other.total_cpu_percent)
