"""Batch, instance and group norm over contiguous runs of every length: the CPU's results, in few launches."""

import cupy_standin
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F

pytestmark = runs_kernels
SHAPES = {
    "one place": (70, 5),
    "short runs": (3, 6, 5),
    "long runs": (3, 6, 9, 8),
    "some images": (40, 3, 5),
    "many images": (1030, 2, 3),
    "few long runs": (2, 2, 1 << 16),
    "one image": (1, 40, 70),
}


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def results(function, shape, device, dtype, parameters, needs=(True, True, True)):
    torch.manual_seed(0)
    x, g = (torch.randn(shape).to(dtype) * 2 + 3 for _ in range(2))
    weight, bias = torch.linspace(0.5, 2, shape[1]), torch.linspace(-1, 1, shape[1])
    given = [t.to(device) for t in (x, weight.to(parameters), bias.to(parameters))]
    for t, needed in zip(given, needs):
        t.requires_grad_(needed)
    y, *more = function(*given)
    y.backward(g.to(device))
    return [None if t is None else t.detach().cpu().float() for t in (y, *(t.grad for t in given), *more)]


def same(function, shape, dtype=torch.float32, parameters=torch.float32, needs=(True, True, True)):
    found, expected = (results(function, shape, device, dtype, parameters, needs) for device in ("cuda", "cpu"))
    bounds = {"rtol": 2e-2, "atol": 2e-2} if dtype.itemsize == 2 else {"rtol": 2e-4, "atol": 2e-4}
    for mine, other in zip(found, expected):
        assert (mine is None) == (other is None)
        if mine is not None:
            largest = other.abs().max().item()
            torch.testing.assert_close(mine, other, rtol=bounds["rtol"], atol=bounds["atol"] * max(largest, 1.0))


def training(x, weight, bias):
    running = [torch.full((len(weight),), value, dtype=weight.dtype, device=x.device) for value in (2.0, 0.5)]
    return F.batch_norm(x, *running, weight, bias, True, 0.3), *running


def evaluation(x, weight, bias):
    running = [torch.full((len(weight),), value, dtype=weight.dtype, device=x.device) for value in (2.0, 0.5)]
    return F.batch_norm(x, *running, weight, bias), *running


def strided(x, weight, bias):
    running = torch.ones(len(weight), 2, device=x.device)
    return F.batch_norm(x, running[:, 0], running[:, 1], weight, bias, True), running


FORMS = {
    "training": training,
    "evaluation": evaluation,
    "running statistics in steps": strided,
    "no running statistics": lambda x, w, b: (F.batch_norm(x, None, None, w, b, True),),
    "no weight": lambda x, w, b: (F.batch_norm(x, None, None, None, b, True),),
    "no parameters": lambda x, w, b: (F.batch_norm(x, None, None, training=True),),
    "one group": lambda x, w, b: (F.group_norm(x, 1, w, b),),
    "groups": lambda x, w, b: (F.group_norm(x, len(w) // 2 if len(w) % 2 == 0 else len(w), w, b),),
    "groups without parameters": lambda x, w, b: (F.group_norm(x, 1),),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("where", SHAPES)
def test_as_on_the_cpu(name, where):
    if name.startswith("groups") and SHAPES[where] == (70, 5):
        return  # groups have one element
    same(FORMS[name], SHAPES[where])


@pytest.mark.parametrize("name", ["training", "evaluation", "groups"])
@pytest.mark.parametrize("where", ["short runs", "long runs"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("alike", [True, False], ids=["half parameters", "single parameters"])
def test_half_precision(name, where, dtype, alike):
    same(FORMS[name], SHAPES[where], dtype, dtype if alike else torch.float32)


@pytest.mark.parametrize("needs", [(True, False, False), (False, True, False), (False, False, True)])
@pytest.mark.parametrize("name", ["training", "evaluation", "groups"])
@pytest.mark.parametrize("where", ["short runs", "long runs"])
def test_one_gradient_alone(name, where, needs):
    same(FORMS[name], SHAPES[where], needs=needs)


def test_instance_norm_with_running_statistics():
    def function(x, weight, bias):
        running = torch.zeros(6, device=x.device), torch.ones(6, device=x.device)
        return F.instance_norm(x, *running, weight, bias), *running

    same(function, (3, 6, 9))


def test_one_value_for_a_channel_gives_no_running_variance():
    running = torch.zeros(2, device="cuda"), torch.ones(2, device="cuda")
    torch.batch_norm(torch.ones(1, 2, device="cuda"), None, None, *running, True, 0.1, 1e-5, False)
    assert running[0].tolist() == pytest.approx([0.1, 0.1]) and running[1].isnan().all()


def test_momentum_may_be_a_whole_number():
    running = torch.zeros(2, device="cuda"), torch.ones(2, device="cuda")
    F.batch_norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]], device="cuda"), *running, training=True, momentum=1)
    assert running[0].tolist() == [2.0, 4.0] and running[1].tolist() == [2.0, 8.0]


def test_launches():
    layer = torch.nn.BatchNorm2d(8).cuda()
    x = torch.randn(4, 8, 9, 9, device="cuda", requires_grad=True)
    g = torch.ones(4, 8, 9, 9, device="cuda")
    layer(x).backward(g)
    x.grad = layer.weight.grad = layer.bias.grad = None
    with cupy_standin.watch() as seen:
        y = layer(x)
        forward = len(seen.launches)
        y.backward(g)
    if not seen.launches:
        pytest.skip("only the stand-in tells of launches")
    assert seen.launches[forward - 3 : forward] == ["moments", "settle", "scale_long_runs"], seen.launches
    assert seen.launches[forward:] == ["run_sums", "totals", "combine_long_runs"]
