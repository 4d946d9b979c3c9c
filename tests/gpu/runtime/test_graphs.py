"""Captured graphs: the results of each replay, what cannot be captured, and memory ownership."""

import gc
import weakref

import cupy_standin
import pytest
from cuda_kernels import runs_kernels
from cupy_standin import blas

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import nn, optim

pytestmark = [runs_kernels, pytest.mark.usefixtures("captures")]


def zeros(*shape, **how):
    return torch.zeros(*shape, device="cuda", **how)


# --- Capture and replay ------------------------------------------------------------------------


def test_a_replay_computes_anew_from_the_same_memory():
    x, g = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        assert torch.cuda.is_current_stream_capturing()
        y = (x * 2 + 1).exp().sum()
    assert not torch.cuda.is_current_stream_capturing()
    for value in (0.0, 1.0):
        x.fill_(value)
        g.replay()
        assert y.item() == pytest.approx((torch.full((4,), value) * 2 + 1).exp().sum().item(), rel=1e-6)


def test_nothing_runs_in_the_capture():
    x = zeros(3)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x += 1
    assert x.tolist() == [0, 0, 0]


def test_begin_and_end_by_hand():
    g, stream, x = torch.cuda.CUDAGraph(), torch.cuda.Stream(), zeros(2)
    with pytest.raises(RuntimeError, match="^CUDA graphs must be captured on a non-default stream"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="^Called CUDAGraph::replay without a preceding successful capture"):
        g.replay()
    with torch.cuda.stream(stream):
        g.capture_begin()
        x += 2
        g.capture_end()
    g.replay()
    g.replay()
    assert x.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="already owns a captured graph"), torch.cuda.graph(g):
        pass
    g.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        g.replay()


def test_a_function_is_warmed_up_captured_and_replayed():
    x, calls = zeros(2), []

    def step():
        calls.append(1)
        x.add_(1)
        return x * 10

    replay = torch.cuda.graph(step, warmup=2)
    assert len(calls) == 3 and x.tolist() == [2, 2]
    assert replay().tolist() == [30, 30] and replay().tolist() == [40, 40] and len(calls) == 3


def test_a_captured_function_keeps_its_tensors():
    def made():
        x = torch.ones(1000, device="cuda")
        return torch.cuda.graph(lambda: x + 1)

    replay = made()
    others = [torch.zeros(1000, device="cuda") for _ in range(3)]
    assert replay().sum().item() == 2000 and all(o.sum().item() == 0 for o in others)


def test_the_memory_of_a_graph_is_nobody_elses_and_goes_with_it():
    x, g = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = (x + 1) * 2
    others = [torch.full((1000,), 7.0, device="cuda") for _ in range(4)]
    g.replay()
    assert y.sum().item() == 4000 and all(o.sum().item() == 7000 for o in others)
    pool, reserved = weakref.ref(g._pool), torch.cuda.memory_reserved()
    del y
    g.reset()
    gc.collect()
    assert pool() is None and torch.cuda.memory_reserved() <= reserved - 8000


def test_graphs_may_share_memory():
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    x = torch.ones(8, device="cuda")
    with torch.cuda.graph(first):
        y = x * 2
    with torch.cuda.graph(second, pool=first.pool()):
        z = y + 1
    assert first.pool() == second.pool() != torch.cuda.graph_pool_handle()
    x.fill_(5)
    first.replay()
    second.replay()
    assert z.tolist() == [11] * 8


def test_constants_of_kernels_are_copied_at_once_and_kept():
    x = torch.arange(16.0, device="cuda").reshape(1, 1, 4, 4)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = F.interpolate(x, scale_factor=2, mode="bilinear")
        z = x * torch.tensor(3.0)
    g.replay()
    assert y.cpu().tolist() == F.interpolate(x.cpu(), scale_factor=2, mode="bilinear").tolist()
    assert z.tolist() == (x * 3).tolist()


# --- Random numbers ----------------------------------------------------------------------------


def test_random_numbers_go_on_from_replay_to_replay():
    torch.cuda.manual_seed(3)
    expected = [[torch.rand(5, device="cuda"), torch.randn(3, device="cuda")] for _ in range(3)]
    torch.cuda.manual_seed(3)
    first = torch.rand(5, device="cuda"), torch.randn(3, device="cuda")
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        a, b = torch.rand(5, device="cuda"), torch.randn(3, device="cuda")
        with pytest.raises(RuntimeError, match="set_current_seed during CUDA graph capture"):
            torch.cuda.manual_seed(1)
    assert [v.tolist() for v in first] == [v.tolist() for v in expected[0]]
    for i in (1, 2):
        g.replay()
        assert [a.tolist(), b.tolist()] == [v.tolist() for v in expected[i]]
    torch.cuda.manual_seed(3)
    g.replay()
    assert a.tolist() == expected[0][0].tolist()
    assert torch.rand(5, device="cuda").tolist() == expected[1][0].tolist()


def test_dropout_in_a_graph_drops_others_each_time():
    x, g = torch.ones(200, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = F.dropout(x, 0.5)
    seen = set()
    for _ in range(3):
        g.replay()
        seen.add(tuple(y.tolist()))
    assert len(seen) == 3 and all(set(s) == {0.0, 2.0} for s in seen)


# --- Invalid captures --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wait", "name"),
    [
        (lambda x: x.sum().item(), "item"),
        (lambda x: x.cpu(), "cpu"),
        (lambda x: x.nonzero(), "nonzero"),
        (lambda x: bool(x.any()), "__bool__"),
        (lambda x: x[x > 0], "__getitem__"),
        (lambda x: torch.ones(3).cuda(), "cuda"),
        (lambda x: torch.cuda.synchronize(), "synchronize"),
    ],
    ids=["item", "cpu", "nonzero", "bool", "mask", "copy", "synchronize"],
)
def test_what_waits_is_refused_by_its_line(wait, name):
    x = torch.ones(3, device="cuda")
    g = torch.cuda.CUDAGraph()
    with pytest.raises(torch.errors.CaptureError) as caught, torch.cuda.graph(g):
        wait(x * 2)
    first, second = str(caught.value).splitlines()[:2]
    assert first == "CUDA error: operation not permitted when stream is capturing"
    assert f"`{name}` has to wait" in second and "test_graphs.py" in second
    assert caught.value.sites["called"].line == wait.__code__.co_firstlineno
    assert not torch.cuda.is_current_stream_capturing() and x.sum().item() == 3
    with torch.cuda.graph(torch.cuda.CUDAGraph()) as _:  # the next capture is unaffected
        x * 2


def test_other_errors_pass_and_end_the_capture():
    g = torch.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), torch.cuda.graph(g):
        zeros(2) + 1 / 0
    assert not torch.cuda.is_current_stream_capturing() and zeros(2).tolist() == [0, 0]


def test_memory_that_runs_out_in_a_capture():
    x, g, former = zeros(3), torch.cuda.CUDAGraph(), torch.cuda.get_memory_limit()
    torch.cuda.set_per_process_memory_fraction(1e-4)
    try:
        with pytest.raises(torch.OutOfMemoryError, match="^CUDA out of memory. Tried to allocate"), torch.cuda.graph(g):
            x.expand(10**9, 3) * 2
    finally:
        torch.cuda.set_memory_limit(former)
    assert not torch.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    with torch.cuda.graph(g):
        y = x + 1
    g.replay()
    assert y.tolist() == [1, 1, 1]


def test_a_capture_on_a_stream_of_another_gpu(second):
    x, g = zeros(3), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, stream=torch.cuda.Stream(device=second)):
        y = x + 1
    g.replay()
    assert y.device == x.device and y.tolist() == [1, 1, 1] and torch.cuda.current_device() == 0


def test_an_optimizer_that_counts_on_the_cpu_is_refused():
    p = zeros(3, requires_grad=True)
    p.grad = torch.ones(3, device="cuda")
    for name in ("Adam", "RMSprop", "NAdam"):
        stepper = getattr(optim, name)([p])
        stepper.step()
        with pytest.raises(RuntimeError, match=f"instance of {name} but param_groups' capturable is False"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                stepper.step()


# --- Whole training steps ----------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": {"momentum": 0.9},
    "Adam": {"amsgrad": True, "capturable": True, "weight_decay": 0.01},
    "AdamW": {"capturable": True},
    "NAdam": {"capturable": True},
    "RAdam": {"capturable": True},
    "Adamax": {"capturable": True},
    "Adadelta": {"capturable": True},
    "RMSprop": {"capturable": True, "momentum": 0.5},
    "Rprop": {"capturable": True},
    "ASGD": {"capturable": True, "t0": 2},
}


def make(name):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 5)).cuda()
    columns = torch.randn(4, 3).t().cuda().requires_grad_()  # column-major
    return model, columns, getattr(optim, name)([*model.parameters(), columns], lr=0.01, **OPTIMIZERS[name])


def batches():
    torch.manual_seed(1)
    return [(torch.randn(4, 6).cuda(), torch.randint(0, 5, (4,)).cuda()) for _ in range(9)]


def trained(model, columns, stepper, x, y):
    stepper.zero_grad()
    loss = F.cross_entropy(model(x), y) + (columns * columns).sum()
    loss.backward()
    stepper.step()
    return loss


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_in_a_graph_is_that_of_ops(name):
    given = batches()
    plain = make(name)
    expected = [trained(*plain, x, y).item() for x, y in given]
    own = make(name)
    x, y = (t.clone() for t in given[0])
    found = []

    def step():
        return trained(*own, x, y)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(3):
            x.copy_(given[i][0])
            y.copy_(given[i][1])
            found.append(step().item())
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        loss = step()
    with cupy_standin.watch() as seen:
        losses = []
        for i in range(3, len(given)):
            x.copy_(given[i][0])
            y.copy_(given[i][1])
            g.replay()
            losses.append(loss.clone())
    assert not seen.synchronizations
    found += [one.item() for one in losses]
    assert found == pytest.approx(expected, rel=2e-5)
    for a, b in zip(own[0].parameters(), plain[0].parameters()):
        assert (a - b).abs().max().item() < 1e-5


def test_a_learning_rate_on_the_gpu_is_read_at_each_replay():
    p = zeros(4, requires_grad=True)
    rate = torch.tensor(0.5, device="cuda")
    stepper = optim.Adam([p], lr=rate, capturable=True)
    p.grad = torch.ones(4, device="cuda")
    stepper.step()
    assert stepper.state[p]["step"].is_cuda and p.tolist() == pytest.approx([-0.5] * 4)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        stepper.step()
    rate.fill_(0.25)
    g.replay()
    assert p.tolist() == pytest.approx([-0.75] * 4) and stepper.state[p]["step"].item() == 2


def test_a_loaded_count_goes_to_the_gpu():
    p = torch.ones(2, device="cuda", requires_grad=True)
    p.grad = torch.ones(2, device="cuda")
    plain, own = optim.Adam([p]), optim.Adam([p], capturable=True)
    plain.step()
    state = plain.state_dict()
    state["param_groups"][0]["capturable"] = True
    own.load_state_dict(state)
    assert own.state[p]["step"].is_cuda and own.state[p]["step"].item() == 1
    own.step()
    assert own.state[p]["step"].item() == 2


# --- Callables ---------------------------------------------------------------------------------


def test_graphed_callables_train_as_the_plain_ones():
    def model():
        torch.manual_seed(0)
        return nn.Linear(6, 8).cuda(), nn.Sequential(nn.Tanh(), nn.Linear(8, 5)).cuda()

    results = []
    for graphed in (False, True):
        first, second = model()
        stepper = optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        if graphed:
            samples = (torch.randn(4, 6, device="cuda"),), (torch.randn(4, 8, device="cuda", requires_grad=True),)
            first, second = torch.cuda.make_graphed_callables((first, second), samples)
        losses = []
        for x, y in batches()[:4]:
            stepper.zero_grad()
            loss = F.cross_entropy(second(first(x)), y)
            loss.backward()
            stepper.step()
            losses.append(loss.item())
        results.append(losses)
        second.eval()
        second(torch.randn(3, 8, device="cuda"))  # another size: no replay
    assert results[1] == pytest.approx(results[0], rel=1e-5)


def test_a_graphed_function():
    w = torch.ones(3, device="cuda", requires_grad=True)
    f = torch.cuda.make_graphed_callables(lambda x: (x * x, x.sum() * 2), (w,))
    x = torch.tensor([1.0, 2.0, 3.0], device="cuda", requires_grad=True)
    squares, total = f(x)
    assert squares.tolist() == [1, 4, 9] and total.item() == 12
    (squares.sum() + total).backward()
    assert x.grad.tolist() == [4, 6, 8] and w.grad is None
    with pytest.raises(TypeError, match="must contain only Tensors"):
        torch.cuda.make_graphed_callables(lambda x: x, (1,))
    hooked = nn.Linear(1, 1)
    hooked.register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="^Modules must not have hooks"):
        torch.cuda.make_graphed_callables(hooked, (w,))


# --- Inspection of a graph ---------------------------------------------------------------------


def test_a_graph_is_dumped_and_its_handle_given(tmp_path):
    x, g = zeros(3), torch.cuda.CUDAGraph(keep_graph=True)
    with pytest.raises(RuntimeError, match="^capture_end"):
        g.instantiate()
    with pytest.raises(RuntimeError, match="^You cannot access the raw cudaGraph_t"):
        g.raw_cuda_graph()
    with pytest.warns(UserWarning, match="debug not enabled"):
        g.debug_dump(str(tmp_path / "graph"))
    g.enable_debug_mode()
    with torch.cuda.graph(g):
        x += 1
    g.instantiate()
    g.replay()
    assert x.tolist() == [1, 1, 1]
    assert g.raw_cuda_graph() > 0
    g.debug_dump(str(tmp_path / "graph"))
    assert (tmp_path / "graph").read_text().startswith("digraph")
    plain = torch.cuda.CUDAGraph()
    with torch.cuda.graph(plain):
        x += 1
    with pytest.raises(RuntimeError, match="only when keep_graph=true"):
        plain.instantiate()


def test_numbers_of_a_registered_generator_go_on():
    generator, g = torch.Generator("cuda").manual_seed(5), torch.cuda.CUDAGraph()
    expected = [torch.rand(3, device="cuda", generator=generator).tolist() for _ in range(2)]
    generator.manual_seed(5)
    g.register_generator_state(generator)
    with torch.cuda.graph(g):
        found = torch.rand(3, device="cuda", generator=generator)
    for numbers in expected:
        g.replay()
        assert found.tolist() == numbers
    with pytest.raises(RuntimeError, match="^Expected a 'cuda' device type"):
        g.register_generator_state(torch.Generator())
    with pytest.raises(TypeError):
        g.register_generator_state(3)


def test_streams_of_a_capture_have_workspaces_of_their_own():
    a, b = (torch.randn(8, 8, device="cuda") for _ in range(2))
    expected = a @ b, b @ a
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    blas.Library.workspaces.clear()
    with torch.cuda.graph(graph):
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            first = a @ b
        second = b @ a
        here.wait_stream(side)
    graph.replay()
    for found, wanted in zip((first, second), expected):
        torch.testing.assert_close(found, wanted)
    if cupy_standin.is_installed():
        given = dict(blas.Library.workspaces)
        assert len(given) == len(set(given.values())) == 2
