"""The profiler's device times, and ranges for NVIDIA's tools."""

import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import nn
from cygrad.autograd import profiler

pytestmark = runs_kernels
CPU, CUDA = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def step():
    x = torch.ones(8, 4, device="cuda", requires_grad=True)
    with profiler.record_function("forward"):
        y = (x * 2).exp().sum()
    y.backward()
    return x


def test_rows_have_device_times():
    step()
    with profiler.profile(use_cuda=True) as prof:
        x = step()
        on_cpu = torch.ones(3) + 1
    assert x.grad is not None and on_cpu.tolist() == [2, 2, 2]
    rows = {event.name: event for event in prof.function_events}
    for name in ("aten::mul", "aten::exp", "aten::sum", "ExpBackward0", "MulBackward0", "forward"):
        assert rows[name].device_time_total > 0 and rows[name].use_device == "cuda", name
        assert len(rows[name].kernels) == 1 and rows[name].kernels[0].device == 0
    assert rows["aten::add"].device_time_total == 0
    forward = rows["forward"]
    inside = sum(child.device_time_total for child in forward.cpu_children)
    assert 0 < inside <= forward.device_time_total
    assert forward.self_device_time_total == pytest.approx(forward.device_time_total - inside)
    table = prof.key_averages().table(sort_by="self_device_time_total")
    assert all(title in table for title in ("Self CUDA", "Self CUDA %", "CUDA total", "Self CUDA time total:"))


def test_times_wait_for_nothing_before_they_are_asked():
    import cupy_standin

    step()
    with profiler.profile(use_device="cuda") as prof, cupy_standin.watch() as seen:
        step()
    assert not seen.synchronizations
    assert prof.function_events and prof.table().count("CUDA") >= 4


def test_activities():
    step()
    assert torch.profiler.supported_activities() == {CPU, CUDA}
    for how, measured in (({}, True), ({"activities": [CPU]}, False), ({"activities": [CPU, CUDA]}, True),
                          ({"activities": [CUDA]}, True), ({"use_cuda": False}, False)):  # fmt: skip
        with torch.profiler.profile(**how) as prof:
            step()
        times = [event.device_time_total for event in prof.events() if event.name == "aten::exp"]
        assert len(times) == 1 and (times[0] > 0) is measured, how


def test_a_capture_is_not_measured():
    x, g = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
    with profiler.profile(use_cuda=True) as prof:
        with torch.cuda.graph(g):
            y = x.exp()
        g.replay()
    assert y.tolist() == pytest.approx([2.7182817] * 4)
    assert [e.device_time_total for e in prof.function_events if e.name == "aten::exp"] == [0]


def noted(monkeypatch, gpu):
    """The texts of ranges, each with its nesting depth."""
    texts, depth = [], [0]

    def push(message, id_color=-1):
        texts.append((depth[0], message))
        depth[0] += 1

    def pop():
        depth[0] -= 1

    monkeypatch.setattr(gpu.cuda.nvtx, "RangePush", push)
    monkeypatch.setattr(gpu.cuda.nvtx, "RangePop", pop)
    return texts, depth


def test_ranges_of_nvtx(monkeypatch, gpu):
    texts, depth = noted(monkeypatch, gpu)
    x = torch.ones(3, device="cuda", requires_grad=True)
    with profiler.emit_nvtx():
        with profiler.record_function("mine"):
            y = x * 2
        z = y.exp().sum()
        z.backward()
    assert depth == [0]
    number = y.grad_fn._sequence_nr()
    assert texts[:3] == [
        (0, "mine"),
        (1, f"aten::mul, seq = {number}"),
        (0, f"aten::exp, seq = {number + 1}"),
    ]
    outer = [text for at, text in texts if at == 0]
    assert outer[-4:-1] == [f"SumBackward0, seq = {number + 2}", f"ExpBackward0, seq = {number + 1}",
                            f"MulBackward0, seq = {number}"]  # fmt: skip
    inner = [text for at, text in texts if at == 1]
    assert "aten::mul" in inner  # inside a rule, where nothing is recorded
    before = len(texts)
    x * 2
    assert len(texts) == before


def test_ranges_with_sizes_and_failures(monkeypatch, gpu):
    texts, depth = noted(monkeypatch, gpu)
    x = torch.ones(2, 3, device="cuda")
    with profiler.emit_nvtx(record_shapes=True) as marks:
        with torch.no_grad():
            F.relu(x + x)
        with pytest.raises(RuntimeError, match="not reentrant"):
            marks.__enter__()
        with pytest.raises(RuntimeError, match="[Ss]hape|size"):
            x + torch.ones(4, device="cuda")
    assert depth == [0] and (0, "aten::add, sizes = [[2, 3], [2, 3]]") in texts
    assert any(text.startswith("aten::relu") for _, text in texts)
    model = nn.Linear(3, 2).cuda()
    with profiler.emit_nvtx(enabled=False):
        before = len(texts)
        model(x)
        assert len(texts) == before
