"""Every op on tensors of a GPU that is not the current one: results and gradients are there, and equal the CPU's."""

from contextlib import nullcontext

import pytest
from ops.calls import SAMPLES, Call, is_internal, on_gpu, uploaded

import cygrad as torch
from cygrad import nn
from cygrad._core.graph.internals import tensor_of


@pytest.fixture
def there(cupy, second):
    """Runs samples on the second GPU, while the first one stays the current one."""
    own = on_gpu(cupy)

    class OnSecond(own):
        @staticmethod
        def tensor(array):
            with torch.cuda.device(second):
                return tensor_of(uploaded(cupy, array))

        @staticmethod
        def tensor_within(block, start, array):
            with torch.cuda.device(second):
                return own.tensor_within(block, start, array)

    return OnSecond


def tensors(values):
    return [value for value in values if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("name", SAMPLES)
def test_results_and_gradients_are_on_the_second_gpu(name, there, second):
    for i, sample in enumerate(SAMPLES[name]):
        call = Call(name, sample, on=there)
        with torch.cuda.device(second) if is_internal(name) else nullcontext():  # as the op or rule that calls it
            results = call.run()
        if name == "cpu" or not call.takes_tensors:
            continue
        assert {str(value.device) for value in tensors(results)} <= {second}, f"sample {i}"
        outs = [value for value in tensors(results) if value.requires_grad]
        if outs and sample.unique:
            weights = [weight.to(out.device) for weight, out in zip(call.weights(outs), outs, strict=True)]
            gradients = tensors(call.gradients(weights, outs))
            assert {str(value.device) for value in gradients} <= {second}, f"gradients of sample {i}"
    assert torch.cuda.current_device() == 0


def near(tensor, expected):
    assert torch.allclose(tensor.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)


def test_operators_and_indices(second):
    x = torch.arange(6.0, device=second, requires_grad=True)
    y = x.detach().cpu().requires_grad_()
    rows, mask = torch.tensor([4, 0, 4]), torch.tensor([True, False] * 3)
    for on, rows_on, mask_on in ((x, rows.to(second), mask.to(second)), (y, rows, mask)):
        z = on**2 + 3 / (on + 1) - (-on) % 2 + abs(on)
        z = z.clone()
        z[mask_on] = 1.5
        z[rows_on[:2]] += 2
        z[1:3] *= on.detach()[1:3]
        (z[rows_on].sum() + z[mask_on].sum() + z.view(2, 3)[:, None, -1].sum() + z[3]).backward()
        z.copy_(rows_on.repeat(2))
        assert z.tolist() == [4, 0, 4] * 2 and z[2].item() == 4 and "4., 0., 4." in repr(z)
    assert x.grad.device == x.device
    near(x.grad, y.grad)
    assert torch.cuda.current_device() == 0


def parts():
    torch.manual_seed(0)
    first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    last = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 8), nn.GELU(), nn.Linear(8, 3))
    return first, last


def trained(devices, steps=3):
    """The losses of a model whose two parts are on two devices."""
    first, last = (part.to(device) for part, device in zip(parts(), devices))
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.01)
    x = torch.linspace(-1, 1, 8 * 64).reshape(8, 1, 8, 8).to(devices[0])
    target = (torch.arange(8) % 3).to(devices[1])
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(last(first(x).to(devices[1])), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(last.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("devices", [("cuda:0", "cuda:1"), ("cuda:1", "cuda:0"), ("cuda:1", "cuda:1")])
def test_a_model_on_two_gpus_trains_as_on_the_cpu(devices, second):
    assert trained(devices) == pytest.approx(trained(("cpu", "cpu")), rel=1e-4)
    assert torch.cuda.current_device() == 0


def test_recurrent_layers_attention_and_second_derivatives(second):
    torch.manual_seed(0)
    lstm, attention = nn.LSTM(3, 4, batch_first=True), nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.randn(2, 5, 3)

    def derivatives(device):
        lstm.to(device), attention.to(device)
        given = x.to(device).requires_grad_()
        h = lstm(given)[0]
        y = attention(h, h, h)[0]
        (first,) = torch.autograd.grad(y.square().sum(), given, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), given)
        return first, second

    on_cpu = derivatives("cpu")
    for found, expected in zip(derivatives(second), on_cpu):
        assert str(found.device) == second
        near(found, expected)


def test_errors_restore_the_current_gpu(second):
    x = torch.ones(2, 3, device=second)
    with pytest.raises(RuntimeError):
        torch.linalg.cholesky(x)
    with pytest.raises(RuntimeError):
        x @ x
    y = x.clone().requires_grad_()
    z = y * 2
    z.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        z.sum().backward()
    assert torch.cuda.current_device() == 0 and torch.ones(1, device="cuda").device.index == 0


def test_hooks_and_functions_run_on_the_gpu_of_their_gradients(second):
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(torch.cuda.current_device())
            return g * 2

    x = torch.ones(3, device=second, requires_grad=True)
    Double.apply(x).sum().backward()
    assert seen == [1] and x.grad.tolist() == [2, 2, 2] and torch.cuda.current_device() == 0
