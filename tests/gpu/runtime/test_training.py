"""Training steps on a GPU, here the stand-in for CuPy, against the CPU."""

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad
import cygrad.nn.functional as F
from cygrad import nn, optim
from cygrad.optim import muon

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy, monkeypatch):
    monkeypatch.setattr(cygrad.backends.cudnn, "allow_tf32", False)  # the CPU has no such products
    return cupy


# --- Models ------------------------------------------------------------------------------------


class OfLastStep(nn.Module):
    def __init__(self, recurrent):
        super().__init__()
        self.recurrent, self.linear = recurrent, nn.Linear(8, 5)

    def forward(self, x):
        return self.linear(self.recurrent(x)[0][:, -1])


class OfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.linear = nn.Embedding(11, 8), nn.Linear(8, 5)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.linear(self.layer(self.words(x)).mean(1))


def mlp():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 5)), cygrad.randn(4, 6)


def conv_net():
    first = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2), nn.GroupNorm(2, 8), nn.SiLU()
    last = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    return nn.Sequential(*first, *second, *last), cygrad.randn(4, 3, 8, 8)


def lstm():
    return OfLastStep(nn.LSTM(6, 8, 2, batch_first=True)), cygrad.randn(4, 7, 6)


def gru():
    return OfLastStep(nn.GRU(6, 8, batch_first=True)), cygrad.randn(4, 7, 6)


def transformer():
    return OfWords(), cygrad.arange(24).reshape(4, 6) % 11


def losses(make, device, optimizer):
    """Return the losses of several steps and the synchronizations in them."""
    cygrad.manual_seed(0)
    model, x = make()
    model, x, y = model.to(device), x.to(device), cygrad.arange(4, device=device)
    stepper = optimizer(model.parameters())
    found = []
    with cupy_standin.watch() as seen:
        for _ in range(7):
            stepper.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            stepper.step()
            found.append(loss)
    return [loss.item() for loss in found], list(seen.synchronizations)


@pytest.mark.parametrize("make", [mlp, conv_net, lstm, gru, transformer])
@pytest.mark.parametrize(
    "optimizer",
    [lambda params: optim.SGD(params, 0.1, momentum=0.9), lambda params: optim.AdamW(params, 0.01)],
    ids=["SGD", "AdamW"],
)
def test_a_training_step_is_that_of_the_cpu_and_never_waits(make, optimizer):
    expected, _ = losses(make, "cpu", optimizer)
    found, waits = losses(make, "cuda", optimizer)
    np.testing.assert_allclose(found, expected, 2e-5)
    assert not waits


# --- Optimizers --------------------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "NAdam": {},
    "RAdam": {},
    "Adamax": {},
    "Adagrad": {},
    "Adadelta": {},
    "RMSprop": {"momentum": 0.5},
    "Rprop": {},
    "ASGD": {},
}
OTHERS = {
    "NAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {"betas": (0.5, 0.99), "weight_decay": 0.1},
    "Adamax": {"maximize": True, "weight_decay": 0.1},
    "Adagrad": {"lr_decay": 0.1, "initial_accumulator_value": 0.2},
    "Adadelta": {"weight_decay": 0.1},
    "RMSprop": {"centered": True, "alpha": 0.9},
    "Rprop": {"step_sizes": (0.04, 0.06)},
    "ASGD": {"t0": 1, "weight_decay": 0.1},
}


def stepped(name, device, how):
    cygrad.manual_seed(0)
    given = cygrad.randn(3, 4), cygrad.randn(5), cygrad.randn(4, 3).t(), cygrad.randn(20000).double()
    images, other, matrix = (cygrad.randn(*shape).to(device) for shape in ((2, 3, 5, 4), (2, 3, 4), (4, 6)))
    strided = images.to(memory_format=cygrad.channels_last), other[:, 1].detach(), matrix[:, ::2].detach()
    complexes = [cygrad.randn(shape, dtype=cygrad.complex64).to(device) for shape in ((), (7,), (4, 3), (3, 4))]
    complexes[-1] = complexes[-1].t()
    params = [p.to(device).requires_grad_() for p in (*given, *strided, *complexes)]
    stepper = getattr(optim, name)(params, lr=0.05, **how)
    with cupy_standin.watch() as seen:
        for _ in range(3):
            stepper.zero_grad()
            for p in params:
                loss = (p * p + p.sin()).sum()
                (loss.abs() if p.is_complex() else loss).backward()
            stepper.step()
    return [p.detach().cpu().numpy() for p in params], list(seen.synchronizations)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_steps_as_on_the_cpu_and_never_waits(name):
    for how in (OPTIMIZERS[name], OTHERS.get(name)):
        if how is not None:
            expected, _ = stepped(name, "cpu", how)
            found, waits = stepped(name, "cuda", how)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, 1e-5, 1e-6)
            assert not waits


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_changes_all_tensors_by_one_launch(name, cupy):
    x = cygrad.ones(8, 6, device="cuda")
    params = [x[:5], x.clone().t(), x.clone()[:, ::2], x.to(cygrad.complex64).t()]
    params = [p.detach().requires_grad_() for p in params]
    assert [p.is_contiguous() for p in params] == [True, False, False, False]
    stepper = getattr(optim, name)(params, lr=0.1, **OPTIMIZERS[name])
    for _ in range(2):  # the first step creates the state
        for p in params:
            p.grad = p.detach() * 0.5
        before = params[0]._version
        with cupy_standin.watch() as seen:
            stepper.step()
    if not cupy_standin.is_installed():
        pytest.skip("only the stand-in tells of launches")
    kernels = [launch for launch in seen.launches if launch != "to device"]
    assert kernels == ["astype", name.lower().removesuffix("w"), "setitem"], "what has gaps is copied"
    assert params[0]._version == before + 1


@pytest.mark.parametrize(
    "name, how", [("Muon", {}), ("Muon", {"nesterov": False}), ("Adafactor", {"weight_decay": 0.1})]
)
def test_optimizers_of_matrices_step_as_on_the_cpu_and_never_wait(name, how):
    found, products = {}, []
    for device in ("cpu", "cuda"):
        cygrad.manual_seed(0)
        given = [cygrad.randn(*shape) for shape in ((4, 6), (4, 6), (6, 4), (4, 6), (3, 3))]
        given += [cygrad.randn(4, 6).double(), *([] if name == "Muon" else [cygrad.randn(5), cygrad.randn(2, 3, 4)])]
        params = [p.to(device).requires_grad_() for p in given]
        stepper = getattr(optim, name)(params, lr=0.05, **how)
        for _ in range(3):
            for p in params:
                p.grad = p.detach().sin()
            with cupy_standin.watch() as seen:
                stepper.step()
            assert not seen.synchronizations
            products = [launch for launch in seen.launches if "matmul" in launch or "gemm" in launch.lower()]
        found[device] = [p.detach().cpu().numpy() for p in params]
    near = 5e-3 if name == "Muon" else 1e-4  # sums in another order may be rounded to the next bfloat16
    for a, b in zip(found["cuda"], found["cpu"], strict=True):
        np.testing.assert_allclose(a, b, near, near)
    expected = 4 * 15 if name == "Muon" and cupy_standin.is_installed() else 0
    assert len(products) == expected, "for each shape and type, three in each of five rounds"


def test_muon_takes_few_launches_with_and_without_bfloat16(monkeypatch):
    def stepped(is_there):
        cygrad.manual_seed(0)
        monkeypatch.setattr(muon, "_has_bfloat16", lambda: is_there)
        params = [cygrad.randn(5, 7).cuda().requires_grad_() for _ in range(3)]
        stepper = optim.Muon(params, lr=0.05)
        for p in params:
            p.grad = p.detach().sin()
        with cupy_standin.watch() as seen:
            stepper.step()
        return len(seen.launches), cygrad.stack(params).detach().cpu()

    pytest.importorskip("ml_dtypes")
    (count, found), (many, wanted) = stepped(True), stepped(False)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), 5e-3, 5e-3)
    if cupy_standin.is_installed():
        assert count <= 39 and many > 4 * count


def test_a_formula_of_somebody_else_is_used():
    class Halved(optim.Adagrad):
        def _change(self, xp, p, g, state, o, t):
            p *= 0.5

    p = cygrad.ones(3, device="cuda", requires_grad=True)
    p.grad = cygrad.ones(3, device="cuda")
    Halved([p]).step()
    assert p.tolist() == [0.5] * 3


# --- Rows of all lengths and dtypes --------------------------------------------------------------

ROWS = {
    "softmax": lambda x: F.softmax(x, -1),
    "softmax of columns": lambda x: F.softmax(x, 0),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "cross_entropy": lambda x: F.cross_entropy(x, cygrad.tensor([1, -100, 0], device=x.device)),
}


@pytest.mark.parametrize("function", ROWS)
@pytest.mark.parametrize("length", [7, 300, 5000, 20000])
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-10), ("float32", 1e-5), ("float16", 4e-3)])
def test_rows_of_any_length_in_any_type(function, length, dtype, bound):
    cygrad.manual_seed(0)
    x = cygrad.randn(3, length).to(getattr(cygrad, dtype))
    wide = x.to(cygrad.float64).clone().requires_grad_()
    own = x.cuda().requires_grad_()
    expected, found = ROWS[function](wide), ROWS[function](own)
    weight = cygrad.randn(tuple(expected.shape))
    (expected * weight).sum().backward()
    (found * weight.to(found.dtype).cuda()).sum().backward()
    for a, b in ((found, expected), (own.grad, wide.grad)):
        largest = b.abs().max().item()
        np.testing.assert_allclose(a.detach().cpu().double().numpy(), b.detach().numpy(), bound, bound * largest)


def test_padded_sequences_stay_on_their_gpu():
    parts = [cygrad.ones(n, 2, device="cuda", requires_grad=True) for n in (1, 3)]
    padded = cygrad.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=-1.0)
    assert padded.is_cuda and padded[0, 1].tolist() == [-1, -1]
    padded.sum().backward()
    assert parts[0].grad.tolist() == [[1, 1]]
