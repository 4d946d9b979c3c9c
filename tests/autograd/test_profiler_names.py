"""What tools for PyTorch's profiler look for: formats, trees of events, and the switch without a block."""

import pytest

import cygrad as torch
from cygrad.autograd import profiler_legacy, profiler_util
from helpers import fails


def event(number, name, start, end, **more):
    return profiler_util.FunctionEvent(number, name, more.pop("thread", 0), start, end, **more)


@pytest.fixture
def events():
    return profiler_util.EventList(
        [
            event(0, "a", 0, 100),
            event(1, "b", 10, 50),
            event(2, "b", 60, 80),
            event(3, "c", 12, 20),
            event(4, "d", 0, 10, thread=1),
            event(5, "e", 10, 50, is_async=True),
        ],
        use_device=None,
        with_flops=False,
    )


def test_formats():
    assert [profiler_util._format_time(t) for t in (0, 999.9, 1000, 2.5e6)] == [
        "0.000us",
        "999.900us",
        "1.000ms",
        "2.500s",
    ]
    assert [profiler_util._format_memory(n) for n in (10, 1024, 1 << 20, -2048)] == [
        "10 B",
        "1.00 KB",
        "1.00 MB",
        "-2.00 KB",
    ]
    assert profiler_util._format_time_share(1, 2) == "50.00%" and profiler_util._format_time_share(0, 0) == "NaN"
    with fails(AssertionError, "Expected time_us == 0 but got 1"):
        profiler_util._format_time_share(1, 0)


def test_names_that_are_left_out_or_put_together():
    left_out = [name for name in ("aten::add", "aten::is_leaf", "[memory]") if profiler_util._filter_name(name)]
    assert left_out == ["aten::is_leaf", profiler_util.MEMORY_EVENT_NAME]
    assert profiler_util._rewrite_name("ProfilerStep#3", with_wildcard=True) == "ProfilerStep*"
    assert profiler_util._rewrite_name("ProfilerStep#3") == "ProfilerStep#3"
    assert profiler_util._filter_stack_entry("x.py(3): f")
    assert not profiler_util._filter_stack_entry("torch/autograd/__init__.py(1): backward")


def test_events_that_ran_inside_others(events):
    events._build_tree()
    assert [(e.name, e.cpu_parent and e.cpu_parent.name) for e in events] == [
        ("a", None), ("b", "a"), ("b", "a"), ("c", "b"), ("d", None), ("e", None)
    ]  # fmt: skip
    assert [e.self_cpu_time_total for e in events] == [40, 32, 20, 8, 10, 0]
    averages = {average.key: average for average in events.key_averages()}
    assert (averages["b"].count, averages["b"].cpu_time_total, averages["b"].self_cpu_time_total) == (2, 60, 52)
    with fails(AssertionError, "There is already a CPU parent event for b"):
        events._build_tree()
    assert len(events[0].cpu_children) == 2


def test_events_that_repeat_their_parent_are_dropped():
    repeated = profiler_util.EventList(
        [event(0, "a", 0, 9), event(1, "a", 0, 9), event(2, "a", 0, 9), event(3, "b", 1, 2)]
    )
    repeated._build_tree()
    assert [(e.id, e.cpu_parent and e.cpu_parent.id) for e in repeated] == [(0, None), (3, 0)]


def test_sums_take_events_of_one_name(events):
    total = profiler_util.FunctionEventAvg().add(events[1])
    total += events[2]
    assert (total.key, total.count, total.cpu_time) == ("b", 2, 30)
    with fails(AssertionError, "Expected keys to match, but got a vs b"):
        total.add(events[0])
    with fails(AssertionError, "Expected other to be a FunctionEvent or FunctionEventAvg"):
        total.add(3)
    assert events.total_average().count == 6


def test_switch():
    autograd = torch.autograd
    config = autograd.ProfilerConfig(autograd.ProfilerState.KINETO, True, False, False, False, False, None)
    activities = {autograd.ProfilerActivity.CPU}
    autograd._prepare_profiler(config, activities)
    autograd._enable_profiler(config, activities)
    assert autograd._profiler_enabled()
    with fails(RuntimeError, "Profiler is already enabled on this thread."):
        autograd._enable_profiler(config, activities)
    torch.ones(2).sum()
    result = autograd._disable_profiler()
    assert [each.name() for each in result.events()] == ["aten::ones", "aten::sum"]
    assert all(each.start_ns() <= each.end_ns() == each.start_ns() + each.duration_ns() for each in result.events())
    assert result.trace_start_ns() == result.events()[0].start_ns() and not autograd._profiler_enabled()
    with pytest.warns(UserWarning, match="disableProfiler called but no active profiling session found"):
        assert autograd._disable_profiler().events() == []


def test_other_modules():
    with profiler_legacy.profile(record_shapes=True) as found:
        torch.ones(2).sum()
    assert [each.name for each in found.function_events] == ["aten::ones", "aten::sum"]
    assert torch.profiler.profiler.profile is torch.profiler.profile
    assert not torch.profiler.itt.is_available()
    for function in (torch.profiler.itt.mark, torch.profiler.itt.range_push):
        with fails(RuntimeError, "ITT functions not installed. Are you sure you have a ITT build?"):
            function("x")
    with fails(RuntimeError, "ITT functions not installed. Are you sure you have a ITT build?"):
        with torch.profiler.itt.range("x"):
            pass
