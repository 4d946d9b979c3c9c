"""Devices, streams, events, memory and moves, on a GPU or the stand-in."""

import pytest

import cygrad as torch
from cygrad._kernels.device import cupy_library
from cygrad.utils.checkpoint import DefaultDeviceType, checkpoint, get_device_states, set_device_states


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def test_what_is_known_of_a_gpu():
    assert torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.device_count() >= 1
    properties = torch.cuda.get_device_properties(0)
    assert properties.name == torch.cuda.get_device_name("cuda:0") and properties.total_memory > 2**20
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor)
    with pytest.raises(RuntimeError, match="^CUDA error: invalid device ordinal\n.*numbered from 0"):
        torch.zeros(1, device="cuda:77")
    with pytest.raises(ValueError, match="^Expected a cuda device, but got: cpu"):
        torch.cuda.synchronize("cpu")


def test_tensors_move_and_gradients_move_back():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.cuda()
    assert y.device == torch.device("cuda:0") and y.is_cuda and not x.is_cuda
    assert y.cuda() is y and y.to("cuda") is y and x.cpu() is x
    (y * y).sum().cpu().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [2, 4]
    assert repr(y.detach()) == "tensor([1., 2.], device='cuda:0')"
    assert y.double().to(torch.zeros(1)).dtype == torch.float32
    with pytest.raises(TypeError, match="^can't convert cuda:0 device type tensor to numpy"):
        y.detach().numpy()


def test_a_leaf_on_a_gpu_collects_its_gradient():
    x = torch.ones(3, device="cuda", requires_grad=True)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.is_cuda and x.grad.tolist() == [5, 5, 5]


def test_gradients_share_no_memory():
    x, z = (torch.ones(4, device="cuda", requires_grad=True) for _ in range(2))
    g = torch.ones(2, 2, device="cuda")
    (x.view(2, 2) + z.view(2, 2)).backward(g)
    (x * 2).sum().backward()  # accumulated in place
    assert x.grad.tolist() == [3, 3, 3, 3] and z.grad.tolist() == [1, 1, 1, 1] and g.tolist() == [[1, 1], [1, 1]]


def test_views_in_place_and_versions():
    x = torch.zeros(2, 3, device="cuda", requires_grad=True)
    y = x * 1
    view = y[0]
    view.add_(2)
    view.mul_(view.detach().clone())
    assert y.tolist() == [[4, 4, 4], [0, 0, 0]] and y._version == 2
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [1, 1, 1]]
    a = torch.ones(3, device="cuda", requires_grad=True)
    b = a.exp()
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()


def test_operands_on_two_devices_are_refused():
    x = torch.ones(3, device="cuda")
    for call in (lambda: x + torch.ones(3), lambda: torch.ones(3) @ x, lambda: torch.cat([x, torch.ones(3)])):
        with pytest.raises(
            RuntimeError, match="^Expected all tensors to be on the same device, but found at least two"
        ):
            call()
    assert (x + torch.tensor(2.0)).tolist() == [3, 3, 3]  # a 0-dim tensor may be on the CPU


def test_two_gpus(second):
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device.index == 1
    assert torch.cuda.current_device() == 0
    x = torch.ones(2, device="cuda:1")
    assert (x * 3).exp().device.index == 1 and x.to("cuda:0").device.index == 0
    with pytest.raises(RuntimeError, match="cuda:1 and cuda:0!\n.*move one of them"):
        x + torch.ones(2, device="cuda:0")


def test_streams_and_events():
    stream = torch.cuda.Stream()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        start.record()
        x = torch.ones(4, device="cuda") * 2
        end.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != stream
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    assert stream.query() and end.query() and start.elapsed_time(end) >= 0 and x.tolist() == [2, 2, 2, 2]
    with pytest.raises(ValueError, match="enable_timing=True"):
        torch.cuda.Event().elapsed_time(end)


def test_memory_is_counted():
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 18, device="cuda")
    assert torch.cuda.memory_allocated() - before == x.nbytes
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    del x
    assert torch.cuda.memory_allocated() == before
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_reserved() == torch.cuda.memory_reserved()
    assert "in use" in torch.cuda.memory_summary()


def test_a_small_network_trains_as_on_the_cpu():
    losses = []
    for place in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(place)
        x = torch.linspace(-1, 1, 20).reshape(5, 4).to(place)
        y = torch.tensor([0, 1, 2, 0, 1]).to(place)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[0] < 1.2


def test_seeds_and_states_of_a_gpu():
    torch.cuda.manual_seed(5)
    state, first = torch.cuda.get_rng_state(), torch.rand(3, device="cuda")
    assert torch.cuda.initial_seed() == 5
    second = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.rand(3, device="cuda").tolist() == first.tolist() != second.tolist()
    torch.cuda.manual_seed_all(5)
    assert torch.rand(3, device="cuda").tolist() == first.tolist()
    assert len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()


def test_mixed_precision():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).cuda()
    x = torch.rand(3, 4, device="cuda")
    on_cpu = torch.nn.functional.linear(x.cpu(), model.weight.cpu(), model.bias.cpu())
    with torch.autocast("cuda"):
        y = model(x)
        assert y.dtype == torch.float16
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32  # not affected: the CPU has its own switch
    assert (y.float().cpu() - on_cpu).abs().max() < 5e-3
    scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.bias.tolist()
    with torch.autocast("cuda"):
        loss = model(x).float().sum()
    scaler.scale(loss).backward()
    assert model.weight.grad.dtype == torch.float32
    scaler.step(optimizer)
    scaler.update()
    assert model.bias.tolist() == pytest.approx([b - 0.3 for b in before], rel=1e-5) and scaler.is_enabled()


@pytest.mark.parametrize("pin", [False, True])
def test_what_is_saved_may_wait_on_the_cpu(pin):
    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=pin):
        y = (x * 3).exp()
    y.sum().backward()
    assert x.grad.is_cuda and x.grad.tolist() == pytest.approx([60.2566] * 3, rel=1e-4)
    device, kept = torch.autograd.graph.save_on_cpu(pin_memory=pin).pack_hook(y)
    assert device == y.device and kept.is_cpu and kept.is_pinned() == pin and kept.tolist() == y.tolist()


def test_a_view_that_grows_takes_the_memory_behind_it():
    whole = torch.zeros(4, device="cuda")
    part = whole[1:2]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(3, device="cuda"), 1, out=part)
    assert whole.tolist() == [0, 2, 2, 2]


def test_a_lost_gpu_is_told(cupy, monkeypatch):
    error = cupy.cuda.runtime.CUDARuntimeError

    def fail(*args, **kwargs):
        raise error(700)

    x = torch.ones(3, device="cuda")
    monkeypatch.setattr(cupy.ndarray, "get", fail)
    monkeypatch.setattr(cupy.ndarray, "item", fail)
    with pytest.raises(RuntimeError, match=r"(?s)^CUDA error: cudaErrorIllegalAddress.*process has lost the GPU"):
        x.cpu()
    for read in (x.tolist, x[0].item, lambda: float(x[0]), lambda: bool(x[0] > 0), lambda: repr(x), x[0].tolist):
        with pytest.raises(RuntimeError, match=r"(?s)^CUDA error: cudaErrorIllegalAddress.*process has lost the GPU"):
            read()
    monkeypatch.setattr(cupy, "cumprod", fail)
    with pytest.raises(RuntimeError, match="restart the process"):
        x.cumprod(0)
    monkeypatch.setattr(cupy, "cumprod", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        x.cumprod(0)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution on the device",
        "cudaErrorNoKernelImageForDevice: no kernel image is available for execution on the device",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with an unsupported toolchain.",
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver / cuda driver combination",
        "nvrtc: error: invalid value for --gpu-architecture (-arch)",
        "NVRTC_ERROR_INVALID_OPTION (5)",
        'Failure finding "libnvrtc.so.12": No such file: libnvrtc.so.12',
        "Failed to find CUDA headers. Please install CUDA toolkit headers",
    ],
)
@pytest.mark.parametrize("kind", [RuntimeError, type("CompileException", (Exception,), {})])
def test_versions_that_do_not_go_together_are_told(cupy, monkeypatch, text, kind):
    def fail(*args, **kwargs):
        raise kind(text)

    x = torch.ones(3, device="cuda")
    monkeypatch.setattr(cupy, "cumprod", fail)
    with pytest.raises(RuntimeError, match=r"(?s)^CUDA error: .*install cupy-cuda12x\[ctk\] or cupy-cuda13x") as caught:
        x.cumprod(0)
    assert text in str(caught.value)


def test_an_old_cupy_is_refused(cupy, monkeypatch):
    monkeypatch.setattr(cupy_library, "_found", None)
    monkeypatch.setattr(cupy, "__version__", "13.6.0")
    with pytest.raises(RuntimeError, match=r"(?s)^No CUDA GPUs are available.*CuPy 13.6.0 is too old: 14"):
        torch.ones(1, device="cuda")


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_draw_the_same_numbers_again_and_cast_as_before(reentrant):
    types = []

    def function(x):
        types.append((x @ x).dtype)
        return torch.nn.functional.dropout(x, 0.5) * torch.rand(4, 4, device="cuda")

    x = torch.rand(4, 4, device="cuda").requires_grad_()
    with torch.autocast("cuda"):
        y = checkpoint(function, x, use_reentrant=reentrant)
    before = torch.cuda.get_rng_state()
    y.sum().backward()
    assert torch.allclose(x.grad * x, y)  # the same elements were dropped, with the same factors
    assert types == [torch.float16] * 2 and not torch.is_autocast_enabled("cuda")
    assert torch.cuda.get_rng_state().equal(before)
    devices, (state,) = get_device_states(x, [torch.ones(2), "text"])
    assert devices == [0] and state.equal(before)
    torch.rand(3, device="cuda")
    set_device_states(devices, [state])
    assert torch.cuda.get_rng_state().equal(before)
    assert DefaultDeviceType.get_device_type() == "cuda"
