"""Work in several streams: backward runs in the streams of forward, and streams wait for each other's results.

The stand-in fails if a stream uses another stream's results without an event in between, or if memory is reused while
another stream may still read it.
"""

import cupy_standin
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import nn
from cygrad._kernels.gpu.runtime import allocator

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


class Noted(torch.autograd.Function):
    """Identity that records the streams of forward and backward."""

    streams: list = []

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        Noted.streams.append(torch.cuda.current_stream())
        return grad * 2


def waiting(first, second):
    """Make these streams wait for the current one."""
    for stream in (first, second):
        stream.wait_stream(torch.cuda.current_stream())


def test_the_standin_sees_a_race(gpu):
    if not cupy_standin.is_installed():
        pytest.skip("only the stand-in does")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(4, device="cuda")
    with pytest.raises(AssertionError, match="without waiting for it"):
        x * 2
    torch.cuda.current_stream().wait_stream(stream)
    assert (x * 2).tolist() == [2, 2, 2, 2]
    y = torch.ones(7, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        z = y * 3
    del y
    with pytest.raises(AssertionError, match="may still use"):
        torch.ones(7, device="cuda")
    torch.cuda.synchronize()
    assert z.tolist() == [3] * 7


def test_a_rule_runs_in_the_stream_of_its_op():
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    waiting(first, second)
    Noted.streams.clear()
    with torch.cuda.stream(first):
        a = Noted.apply(x) * 3
    with torch.cuda.stream(second):
        b = Noted.apply(x).exp()
    torch.cuda.current_stream().wait_stream(first)
    torch.cuda.current_stream().wait_stream(second)
    c = Noted.apply((a + b).sum())
    here = torch.cuda.current_stream()
    for _ in range(3):
        c.backward(retain_graph=True)
        assert torch.cuda.current_stream() == here
        assert Noted.streams == [here, second, first]
        Noted.streams.clear()
    assert x.grad.tolist() == pytest.approx([3 * 4 * (3 + v) for v in torch.arange(4.0).exp().tolist()])


def test_backward_in_another_stream_than_forward():
    stream = torch.cuda.Stream()
    x = torch.ones(5, device="cuda", requires_grad=True)
    y = (Noted.apply(x) * x).sum()
    stream.wait_stream(torch.cuda.current_stream())
    Noted.streams.clear()
    with torch.cuda.stream(stream):
        y.backward()
        assert torch.cuda.current_stream() == stream
        doubled = x.grad * 2
    assert Noted.streams == [torch.cuda.default_stream()]
    torch.cuda.current_stream().wait_stream(stream)
    assert doubled.tolist() == [6] * 5


@pytest.mark.parametrize("times", [1, 2])
def test_branches_in_streams_train_as_in_one(times):
    losses = []
    for streams in (None, (torch.cuda.Stream(), torch.cuda.Stream())):
        torch.manual_seed(0)
        left, right, last = nn.Linear(6, 8).cuda(), nn.Linear(6, 8).cuda(), nn.Linear(8, 3).cuda()
        parameters = [*left.parameters(), *right.parameters(), *last.parameters()]
        stepper = torch.optim.Adam(parameters, lr=0.1)
        x = torch.randn(4, 6).cuda()
        found = []
        for _ in range(3):
            stepper.zero_grad()
            parts = [x]
            if streams is not None:
                waiting(*streams)
            for _ in range(times):
                for i, branch in enumerate((left, right)):
                    with torch.cuda.stream(streams[i] if streams else None):
                        parts.append(branch(x).tanh())
            for stream in streams or ():
                torch.cuda.current_stream().wait_stream(stream)
            loss = last(sum(parts[2:], parts[1])).square().mean()
            with cupy_standin.watch() as seen:
                loss.backward()
                stepper.step()
            assert not seen.synchronizations
            found.append(loss.item())
        losses.append(found)
    assert losses[1] == losses[0]


def test_gradients_asked_for_and_failures_leave_the_stream_as_it_was():
    stream = torch.cuda.Stream()
    x = torch.ones(3, device="cuda", requires_grad=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = (x * 2).exp().sum()
    here = torch.cuda.current_stream()
    here.wait_stream(stream)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    assert x.grad.tolist() == pytest.approx([4 * 7.389056] * 3, rel=1e-5)
    y.grad_fn.register_prehook(lambda grads: 1 / 0)
    with torch.cuda.stream(stream):
        z = (x * 2).sum()
    here.wait_stream(stream)
    z.grad_fn.register_prehook(lambda grads: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        z.backward()
    assert torch.cuda.current_stream() == here
    assert (x * 2).sum().grad_fn is not None


def test_gradients_of_what_another_stream_made_are_waited_for():
    stream = torch.cuda.Stream()
    x = torch.ones(3, device="cuda", requires_grad=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        a = x * 2
        y = a.exp().sum()
    torch.cuda.current_stream().wait_stream(stream)
    (g,) = torch.autograd.grad(y, a)
    assert (g * 1).tolist() == pytest.approx([7.389056] * 3)


def test_branches_in_a_captured_graph():
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.ones(4, device="cuda", requires_grad=True)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        waiting(first, second)
        parts = []
        for stream, factor in ((first, 2), (second, 3)):
            with torch.cuda.stream(stream):
                parts.append((x * factor).exp())
        for stream in (first, second):
            torch.cuda.current_stream().wait_stream(stream)
        x.grad = None
        (parts[0] + parts[1]).sum().backward()
    g.replay()
    expected = 2 * torch.tensor(2.0).exp().item() + 3 * torch.tensor(3.0).exp().item()
    assert x.grad.tolist() == pytest.approx([expected] * 4, rel=1e-5)


def test_memory_that_another_stream_reads_is_handed_on_after_that():
    allocator._take_back()
    stream = torch.cuda.Stream()
    x = torch.ones(7, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    x.record_stream(stream)
    with torch.cuda.stream(stream):
        y = x[2:] * 2
    view = x[1:]
    del x
    torch.ones(3, device="cuda")
    assert len(allocator._lent) == 1, "a view holds the memory"
    with torch.cuda.stream(stream):
        z = view * 3  # later uses count, too
    del view
    torch.zeros(7, device="cuda")  # the stand-in fails if this reuses the memory without a wait
    stream.synchronize()
    torch.zeros(7, device="cuda")
    assert not allocator._lent
    torch.cuda.current_stream().wait_stream(stream)
    assert y.tolist() == [2] * 5
    assert z.tolist() == [3] * 6


def test_what_is_lent_comes_back_before_memory_is_said_to_be_full():
    allocator._take_back()
    stream = torch.cuda.Stream()
    x = torch.ones(1 << 20, device="cuda")
    x.record_stream(stream)
    del x
    allocator._take_back(wait=True)
    assert not allocator._lent


def test_memory_of_the_cpu_has_no_streams():
    with pytest.raises(NotImplementedError, match="Could not run 'aten::record_stream'"):
        torch.ones(2).record_stream(torch.cuda.current_stream())


def test_a_capture_keeps_what_it_lends():
    stream, x, g = torch.cuda.Stream(), torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        x.record_stream(stream)
        y = x * 2
    assert not allocator._lent
    g.replay()
    assert y.tolist() == [2] * 4


def test_events_belong_to_the_device_of_their_stream(second):
    with torch.cuda.device(1):
        stream = torch.cuda.Stream()
    event = stream.record_event()
    torch.cuda.current_stream().wait_event(event)
    with torch.cuda.device(1):
        other = torch.cuda.Event(enable_timing=True)
    other.record()
    assert event.query()
    assert other.query()


def test_what_kernels_keep_is_made_in_each_stream():
    """Cached buffers must not be shared: on the stand-in, using another stream's results without waiting is an
    error.
    """
    x = torch.randn(2, 3, 8, 8, device="cuda")
    scores = torch.randn(5, 2, 4, device="cuda").log_softmax(-1)
    target = torch.ones(2, 3, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    found = []
    for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            resized, pooled = F.interpolate(x, size=(5, 11), mode="bilinear"), F.adaptive_max_pool2d(x, 3)
            loss = F.ctc_loss(scores, target, torch.tensor([5, 5]), torch.tensor([3, 2]))
            found.append((resized, pooled, loss))
    torch.cuda.synchronize()
    for one, other in zip(*found):
        assert torch.equal(one, other)


def test_streams_of_any_device(cupy):
    stream, event = torch.Stream("cuda"), torch.Event("cuda", enable_timing=True)
    assert type(stream) is torch.cuda.Stream and isinstance(stream, torch.Stream) and stream.device_type == 1
    assert type(event) is torch.cuda.Event and isinstance(event, torch.Event) and event.device is None
    before = torch.cuda.current_stream()
    with stream:
        assert torch.cuda.current_stream() == stream
        event.record()
    assert torch.cuda.current_stream() == before and event.device == stream.device
    event.synchronize()
    assert event.query() and stream.query() and stream.stream_id == stream.cuda_stream


def test_the_accelerator(cupy):
    accelerator = torch.accelerator
    assert accelerator.is_available() and accelerator.current_accelerator() == torch.device("cuda")
    assert torch.get_device_module() is torch.cuda and accelerator.device_count() == torch.cuda.device_count()
    with accelerator.device_index(0):
        assert accelerator.current_device_index() == 0
    assert accelerator.current_stream() == torch.cuda.current_stream()
    accelerator.synchronize()
    x = torch.cuda.FloatTensor([1.0, 2.0])
    assert x.is_cuda and x.tolist() == [1, 2] and isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.FloatTensor | torch.cuda.HalfTensor)
    assert accelerator.memory_allocated() > 0 and list(accelerator.memory_stats()) == sorted(torch.cuda.memory_stats())
    assert torch.cuda._initialized and len(torch.cuda.default_generators) == torch.cuda.device_count()
    assert torch.float32 in accelerator.get_device_capability()["supported_dtypes"]


def test_fork_rng_of_gpus(cupy):
    torch.manual_seed(1)
    torch.rand(2, device="cuda")
    state = torch.cuda.get_rng_state()
    with torch.random.fork_rng(devices=[0]):
        torch.rand(2, device="cuda")
    assert torch.cuda.get_rng_state().equal(state)
    with torch.random.fork_rng():
        torch.rand(2, device="cuda")
    assert torch.cuda.get_rng_state().equal(state)
