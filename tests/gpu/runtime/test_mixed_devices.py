"""Operands on two devices: PyTorch's error from every op, and the cases PyTorch allows, on a GPU or the stand-in."""

import re

import numpy as np
import pytest
from ops.calls import SAMPLES, Call, Cygrad

import cygrad as torch
from cygrad import nn
from cygrad._core.graph.internals import tensor_of
from cygrad.nn import functional as F

REFUSED = (
    "^Expected all tensors to be on the same device, but found at least two devices, "
    "|^Input and (hidden|parameter) tensors are not at the same device, found input tensor at "
)
# Internal ops, whose callers have checked the devices of the operands.
OF_RULES = {
    "masked_scatter_backward",
    "put_back",
    "value_selecting_reduction",
    "summed_products",
    "windowed_spectra",
    "strided_scatter",
}

# Ops that accept operands on two devices, as in PyTorch, or that are internal.
ALLOWED = {
    "atleast_3d": "views of each operand",
    "broadcast_tensors": "views of each operand",
    "expand_as": "asks for a shape",
    "reshape_as": "asks for a shape",
    "view_as": "asks for a shape",
    "type_as": "moves",
    "copy": "moves",
    "tied": "called by rules alone, and asks for a history",
    "fill.Tensor": "takes a number from anywhere",
    **dict.fromkeys(("_grouped_mm", "_grouped_mm.ends"), "reads the ends of the groups, wherever they are"),
    "index": "indices may be on the CPU; the other way is refused in other words",
    "index_put": "as index",
    "cat": "passes over an empty vector",
    "ctc_loss_backward": "called by rules alone, on what ctc_loss has checked",
    "index_backward": "called by rules alone, after index",
    "nll_loss_backward": "called by rules alone, after nll_loss",
}


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def mixed(name, sample, cupy, chosen, rest_on_gpu):
    """A call in which one tensor is on another device than the rest, and the dims of all tensors."""
    dims = []

    class Mixed(Cygrad):
        @staticmethod
        def tensor(array):
            is_on_gpu = (len(dims) == chosen) != rest_on_gpu
            dims.append(np.ndim(array))
            return tensor_of(cupy.array(array) if is_on_gpu else array)

    return Call(name, sample, on=Mixed), dims


@pytest.mark.parametrize("rest_on_gpu", [True, False])
@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ALLOWED])
def test_an_operand_on_another_device(name, rest_on_gpu, cupy):
    for sample in SAMPLES[name]:
        count = len(mixed(name, sample, cupy, 0, rest_on_gpu)[1])
        for chosen in range(count if count > 1 else 0):
            call, dims = mixed(name, sample, cupy, chosen, rest_on_gpu)
            on_cpu = [d for i, d in enumerate(dims) if (i == chosen) == rest_on_gpu]
            try:
                call.run()
            except RuntimeError as error:
                assert re.match(REFUSED, str(error)), f"operand {chosen}"
            except (TypeError, ValueError, DeprecationWarning):  # NumPy 2.0 first warns about CuPy's `__array__`
                assert name in OF_RULES, f"operand {chosen}"
            else:  # CuPy accepts an index in CPU memory
                assert not any(on_cpu) or name in OF_RULES, f"operand {chosen} of {dims} was taken"


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_the_exceptions_are_exceptions(name, cupy):
    taken = 0
    for sample in SAMPLES[name]:
        for rest_on_gpu in (True, False):
            for chosen in range(len(mixed(name, sample, cupy, 0, rest_on_gpu)[1])):
                try:
                    mixed(name, sample, cupy, chosen, rest_on_gpu)[0].run()
                    taken += 1
                except (RuntimeError, TypeError):
                    pass
    assert taken, "is refused as all others, and has to leave the list"


def test_a_result_on_another_device():
    x = torch.ones(3, 3, device="cuda")
    for call in (
        lambda out: torch.add(x, x, out=out),
        lambda out: torch.exp(x, out=out),
        lambda out: torch.mm(x, x, out=out),
        lambda out: torch.cat([x], out=out),
        lambda out: torch.where(x > 0, x, x, out=out),
        lambda out: torch.linalg.inv(x + torch.eye(3, device="cuda"), out=out),
        lambda out: torch.sort(x, out=(out, torch.empty(3, 3, dtype=torch.int64))),
    ):
        with pytest.raises(RuntimeError, match="^Expected out tensor to have device cuda:0, but got cpu instead"):
            call(torch.zeros(3, 3))
    with pytest.raises(RuntimeError, match="^Expected out tensor to have device cpu, but got cuda:0 instead"):
        torch.exp(torch.ones(3, 3), out=x)


def test_what_may_come_from_the_cpu():
    x, mask = torch.arange(4.0, device="cuda"), torch.tensor([True, False, True, False])
    number = torch.tensor(7.0, requires_grad=True)
    assert x[torch.tensor([1, 2])].tolist() == [1, 2]
    assert x[mask].tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="^indices should be either on cpu or on the same device"):
        torch.arange(4.0)[mask.cuda()]
    for found in (
        torch.where(x > 1, x, number),
        x.masked_fill(x <= 1, number),
        x.clamp(min=number) - 7 + x.clamp(max=1) * 0 + torch.tensor([7.0, 7, 2, 3], device="cuda"),
        x.index_fill(0, torch.tensor([0, 1], device="cuda"), number),
    ):
        assert found.is_cuda
        assert found.tolist() == [7, 7, 2, 3]
    torch.where(x > 1, x, number).sum().backward()
    assert not number.grad.is_cuda
    assert number.grad == 2
    y = torch.zeros(4)
    assert y.copy_(x) is y
    assert y.tolist() == x.tolist()
    assert x.copy_(torch.ones(4)).tolist() == [1, 1, 1, 1]
    y.copy_(x, non_blocking=True)
    y[:2] = x[:2] * 5
    assert y.tolist() == [5, 5, 1, 1]
    with pytest.raises(RuntimeError, match=REFUSED):
        x.masked_fill(mask, 1)
    with pytest.raises(RuntimeError, match=REFUSED):
        torch.tensor(1.0).masked_fill(mask.cuda(), 2)


MODULES = {
    "Linear": ((3, 2), (4, 3)),
    "Bilinear": ((3, 3, 2), (4, 3)),
    "Conv1d": ((3, 2, 1), (2, 3, 4)),
    "Conv2d": ((3, 2, 1), (2, 3, 4, 4)),
    "ConvTranspose2d": ((3, 2, 1), (2, 3, 4, 4)),
    "BatchNorm1d": ((3,), (4, 3)),
    "BatchNorm2d": ((3,), (2, 3, 4, 4)),
    "LayerNorm": ((3,), (4, 3)),
    "RMSNorm": ((3,), (4, 3)),
    "GroupNorm": ((1, 3), (4, 3, 2)),
    "InstanceNorm1d": ((3, 1e-5, 0.1, True, True), (4, 3, 2)),
    "PReLU": ((3,), (4, 3)),
    "RNN": ((3, 2), (5, 4, 3)),
    "LSTM": ((3, 2), (5, 4, 3)),
    "GRU": ((3, 2), (5, 4, 3)),
    "RNNCell": ((3, 2), (4, 3)),
    "LSTMCell": ((3, 2), (4, 3)),
    "GRUCell": ((3, 2), (4, 3)),
    "TransformerEncoderLayer": ((4, 2, 8), (5, 2, 4)),
    "Embedding": ((5, 3), None),
    "EmbeddingBag": ((5, 3), None),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(("of_module", "of_input"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_a_module_and_its_input(name, of_module, of_input):
    arguments, shape = MODULES[name]
    module = getattr(nn, name)(*arguments).to(of_module)
    x = torch.zeros(2, 3, dtype=torch.int64) if shape is None else torch.ones(shape)
    given = (x.to(of_input),) * (2 if name == "Bilinear" else 1)
    with pytest.raises(RuntimeError, match=REFUSED):
        module(*given)
    module(*(value.to(of_module) for value in given))


LOSSES = "MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss PoissonNLLLoss SoftMarginLoss".split()


@pytest.mark.parametrize("name", [*LOSSES, "CrossEntropyLoss", "NLLLoss"])
def test_a_loss_and_its_target(name):
    x = torch.full((4, 3), 0.5, device="cuda", requires_grad=True)
    target = torch.full((4, 3), 0.25) if name in LOSSES else torch.tensor([0, 1, 2, 1])
    with pytest.raises(RuntimeError, match=REFUSED):
        getattr(nn, name)()(x, target)
    getattr(nn, name)()(x, target.cuda()).backward()
    with pytest.raises(RuntimeError, match=REFUSED):
        F.cross_entropy(x, torch.tensor([0, 1, 2, 1], device="cuda"), torch.ones(3))


def test_gradients_are_where_their_tensors_are():
    x = torch.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="^attempting to assign a gradient with device type 'cpu'"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0 but got cpu"):
        (x * 2).backward(torch.ones(3))
    x.sum().backward(torch.tensor(2.0))  # a 0-dim gradient may come from the CPU
    assert x.grad.is_cuda
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_an_optimizer_of_parameters_on_two_devices(name):
    parameters = [nn.Parameter(torch.ones(3, device=place)) for place in ("cuda", "cpu")]
    stepper = getattr(torch.optim, name)(parameters, lr=0.1)
    for _ in range(2):
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 0.5)
        stepper.step()
    np.testing.assert_allclose(parameters[0].detach().cpu().numpy(), parameters[1].detach().numpy(), 1e-6)
