"""Capturable optimizers: the same as on the CPU, in a few launches, whether or not a graph replays them."""

import cupy_standin
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
from cygrad import optim

pytestmark = [runs_kernels, pytest.mark.usefixtures("captures")]
OPTIONS = {
    "Adadelta": {},
    "Adamax": {"betas": (0.8, 0.9)},
    "ASGD": {"t0": 2, "lambd": 0.1, "lr": 0.1},
    "NAdam": {"momentum_decay": 0.1},
    "RAdam": {"betas": (0.8, 0.9)},
    "RMSprop": {"momentum": 0.5, "centered": True, "eps": 0.1},
    "Rprop": {"step_sizes": (1e-3, 0.5)},
}
DECAYS = {"weight_decay": 0.1, "maximize": True}
DECOUPLED = {"weight_decay": 0.1, "decoupled_weight_decay": True}
CASES = [
    *((name, {}) for name in OPTIONS),
    *((name, DECAYS if name != "Rprop" else {"maximize": True}) for name in OPTIONS),
    *((name, DECOUPLED) for name in ("NAdam", "RAdam")),
]
SHAPES = (3,), (2, 5), (), (70, 300)


def parameters(device, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype).to(device).requires_grad_() for shape in SHAPES]


def step(weights, optimizer):
    optimizer.zero_grad()
    sum((w.sin() * (i + 1)).sum() for i, w in enumerate(weights)).backward()
    optimizer.step()


def trained(name, device, dtype, steps=8, **more):
    weights = parameters(device, dtype)
    optimizer = getattr(optim, name)(weights, **{**OPTIONS[name], **more})
    for _ in range(steps):  # RAdam's steps are rectified from the sixth on
        step(weights, optimizer)
    return weights, optimizer


@pytest.mark.parametrize("name, more", CASES, ids=str)
def test_as_on_the_cpu(name, more):
    found, optimizer = trained(name, "cuda", torch.float32, capturable=True, **more)
    wanted, other = trained(name, "cpu", torch.float32, **more)
    near = {"rtol": 1e-5, "atol": 1e-4 if name == "RMSprop" else 1e-5}  # it takes roots of differences that cancel
    for own, expected in zip(found, wanted):
        torch.testing.assert_close(own.detach().cpu(), expected.detach(), **near)
        state, of_cpu = optimizer.state[own], other.state[expected]
        assert state["step"].device.type == "cuda" and state["step"].item() == 8
        for key, value in of_cpu.items():
            torch.testing.assert_close(state[key].cpu(), value, **near)


@pytest.mark.parametrize("name", OPTIONS)
def test_steps_are_few_launches(name):
    weights, optimizer = trained(name, "cuda", torch.float32, 1, capturable=True)
    with cupy_standin.watch() as seen:
        optimizer.step()
    if cupy_standin.is_installed():
        assert seen.launches == [f"settle_{name.lower()}", f"counted_{name.lower()}"]
    weights.append(torch.ones(3, device="cuda", dtype=torch.float64, requires_grad=True))
    optimizer.add_param_group({"params": weights[-1:]})
    step(weights, optimizer)
    with cupy_standin.watch() as seen:
        optimizer.step()
    if cupy_standin.is_installed():
        assert len(seen.launches) == 4  # for each type of elements


@pytest.mark.parametrize("name", OPTIONS)
def test_graphs_go_on_counting_and_read_the_learning_rate(name):
    rate = torch.tensor(0.1, device="cuda")
    weights, optimizer = trained(name, "cuda", torch.float32, 2, capturable=True, lr=rate)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(weights, optimizer)
    graph.replay()
    rate.fill_(0.2)
    graph.replay()
    graph.replay()
    wanted, other = trained(name, "cpu", torch.float32, 2, lr=0.1)
    for lr in (0.1, 0.2, 0.2):
        other.param_groups[0]["lr"] = lr
        step(wanted, other)
    for own, expected in zip(weights, wanted):
        assert optimizer.state[own]["step"].item() == 5
        torch.testing.assert_close(own.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64", "complex64"])
def test_other_types(kind):
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype = getattr(torch, kind)

    def last(device, **more):
        torch.manual_seed(0)
        w = torch.randn(4, 6).to(dtype).to(device).t().requires_grad_()  # not contiguous
        optimizer = optim.NAdam([w], lr=0.1, **more)
        for _ in range(3):
            w.grad = (w.detach() * 0.5).clone()
            optimizer.step()
        return w.detach().cpu()

    near = {"rtol": 2e-2, "atol": 2e-2} if dtype.itemsize == 2 else {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(last("cuda", capturable=True), last("cpu"), **near)


def test_a_scaler_skips_steps_with_infinite_gradients():
    w = torch.ones(3, device="cuda", requires_grad=True)
    optimizer, scaler = optim.NAdam([w], capturable=True), torch.amp.GradScaler("cuda")
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(optimizer)
    assert w.tolist() == [1, 1, 1]
