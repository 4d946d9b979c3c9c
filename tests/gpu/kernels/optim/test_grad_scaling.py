"""GradScaler on a GPU: the CPU's results, without synchronization, and in a captured graph."""

import pickle

import cupy_standin
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
from cygrad import nn

pytestmark = runs_kernels
FACTORS = [1.0, 1.0, float("inf"), 1.0, float("nan"), 1.0, 1.0, 1.0]  # of the loss in each step
OPTIMIZERS = {
    "SGD": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9),
    "Adam": lambda ps: torch.optim.Adam(ps, lr=0.1, capturable=True),
    "Adam, counted on the CPU": lambda ps: torch.optim.Adam(ps, lr=0.1),
    "RMSprop": lambda ps: torch.optim.RMSprop(ps, lr=0.1),
}


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def parameters(device):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    extra = torch.randn(4, 3).to(torch.float64)  # another dtype, in an order that prevents a single launch
    strided = nn.Parameter(torch.randn(3, 4).to(device).t())
    return [*model.to(device).parameters(), nn.Parameter(extra.to(device)), strided]


def step(params, optimizer, scaler, factor):
    optimizer.zero_grad()
    loss = sum((p.float() ** 2).sum() for p in params) * factor
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def trained(device, kind):
    params = parameters(device)
    optimizer = OPTIMIZERS[kind](params)
    scaler = torch.amp.GradScaler(device, init_scale=16.0, growth_interval=2)
    waits, scales = [], []
    for factor in FACTORS:
        with cupy_standin.watch() as seen:
            step(params, optimizer, scaler, factor)
        waits.append(len(seen.synchronizations))
        scales.append(scaler.get_scale())
    return [p.detach().cpu() for p in params], scales, scaler.state_dict(), waits


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_are_those_of_the_cpu(kind):
    (expected, scales, state, _), (found, scales_there, state_there, waits) = (
        trained(d, kind) for d in ("cpu", "cuda")
    )
    assert scales_there == scales == [16.0, 32.0, 16.0, 16.0, 8.0, 8.0, 16.0, 16.0]
    assert state_there == state
    for a, b in zip(found, expected):
        assert torch.allclose(a, b, rtol=1e-5)
    if torch.cuda.get_device_name().startswith("Stand-in"):
        assert set(waits) == ({0} if kind in ("SGD", "Adam") else {1}), "at most once for each step"


def test_gradients_are_unscaled_for_the_user_and_looked_at():
    weight = nn.Parameter(torch.ones(5, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    scaler.scale(weight.sum() * 3).backward()
    assert weight.grad.tolist() == [24] * 5
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [3] * 5
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [-2] * 5
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()
    weight.grad = torch.full((5,), 2.0, device="cuda")
    weight.grad[3] = -float("inf")
    scaler.scale(weight.sum())
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [-2] * 5
    assert scaler.get_scale() == 4


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_a_captured_step_leaves_itself_out(kind):
    results = []
    for captured in (False, True):
        params = parameters("cuda")[:2]
        optimizer = OPTIMIZERS[kind](params)
        scaler = torch.amp.GradScaler("cuda", init_scale=16.0, growth_interval=2)
        factor = torch.ones((), device="cuda")
        one = step
        if captured:
            stream, g = torch.cuda.Stream(), torch.cuda.CUDAGraph()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                step(params, optimizer, scaler, factor)
            torch.cuda.current_stream().wait_stream(stream)
            with torch.cuda.graph(g):
                step(params, optimizer, scaler, factor)
            one = lambda *args, g=g: g.replay()  # noqa: E731
        else:
            step(params, optimizer, scaler, factor)
        for value in FACTORS:
            factor.fill_(value)
            one(params, optimizer, scaler, factor)
        results.append(([p.tolist() for p in params], scaler.get_scale()))
    assert results[0] == results[1]
