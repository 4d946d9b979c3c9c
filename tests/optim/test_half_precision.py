"""Steps of parameters in half precision: as in float64, rounded. In float16 the usual `eps` and most squares are 0."""

import pytest

import cygrad as torch

OPTIONS = {
    "Adam": [{}, {"amsgrad": True}, {"weight_decay": 0.1}],
    "AdamW": [{}],
    "NAdam": [{}],
    "RAdam": [{}],
    "Adamax": [{}],
    "Adagrad": [{}],
    "Adadelta": [{"lr": 1.0}],
    "RMSprop": [{}, {"centered": True, "momentum": 0.9}],
    "SGD": [{"lr": 1.0}, {"lr": 1.0, "momentum": 0.9}],
    "ASGD": [{"lr": 1.0}],
    "Rprop": [{"lr": 1e-3}],
}
CASES = [(name, options) for name, each in OPTIONS.items() for options in each]
IDS = [f"{name}-{'-'.join(options)}" for name, options in CASES]
HALVES = [torch.float16, torch.bfloat16]


def after(steps, gradient, name, options, dtype, device="cpu", **more):
    """Return a parameter that began at 0, after steps with a constant gradient."""
    parameter = torch.zeros(2, dtype=dtype, device=device, requires_grad=True)
    if more:  # a recorded step cannot modify a leaf
        parameter = parameter.clone()
    optimizer = getattr(torch.optim, name)([parameter], **{"lr": 1e-3, **options, **more})
    for _ in range(steps):
        parameter.grad = torch.full_like(parameter, gradient)
        optimizer.step()
    return parameter.detach()


def assert_as_in_float64(found, name, options, gradient, steps, **more):
    expected = after(steps, gradient, name, options, torch.float64, **more)
    error = 2 * steps * torch.finfo(found.dtype).eps  # each step rounds the parameter and an average once
    assert torch.allclose(found.double().cpu(), expected.cpu(), error, 1e-7), (found, expected)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
class TestHalfPrecision:
    def test_a_gradient_of_0_changes_nothing(self, name, options, dtype):
        assert after(3, 0.0, name, options, dtype).tolist() == [0, 0]

    @pytest.mark.parametrize("gradient", [1e-4, -3e-3])
    @pytest.mark.parametrize("steps", [1, 12])
    def test_steps(self, name, options, dtype, gradient, steps):
        assert_as_in_float64(after(steps, gradient, name, options, dtype), name, options, gradient, steps)

    def test_steps_on_a_gpu(self, name, options, dtype, cupy):
        assert after(3, 0.0, name, options, dtype, "cuda").tolist() == [0, 0]
        found = after(4, 1e-4, name, options, dtype, "cuda")
        assert_as_in_float64(found, name, options, 1e-4, 4)

    def test_state_from_elsewhere(self, name, options, dtype):
        """PyTorch saves all of the state in half precision."""
        parameter = torch.zeros(2, dtype=dtype, requires_grad=True)
        optimizer = getattr(torch.optim, name)([parameter], **{"lr": 1e-3, **options})
        parameter.grad = torch.full_like(parameter, 1e-2)
        optimizer.step()
        kept = optimizer.state_dict()
        state = {k: v if v.dim() == 0 else v.to(dtype) for k, v in kept["state"].get(0, {}).items()}
        optimizer.load_state_dict({**kept, "state": {0: state}})
        for key, value in optimizer.state_dict()["state"][0].items():
            assert value.dim() == 0 or value.dtype is kept["state"][0][key].dtype
        before = parameter.detach().clone()
        optimizer.step()
        assert bool((parameter.detach() < before).all())


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_recorded_steps(name, options, dtype):
    found = after(3, 0.0, name, options, dtype, differentiable=True)
    assert found.tolist() == [0, 0]
    assert_as_in_float64(after(2, 1e-4, name, options, dtype, differentiable=True), name, options, 1e-4, 2)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_adafactor_lbfgs_and_muon(dtype):
    for shape in ((3,), (3, 2)):
        p = torch.ones(shape, dtype=dtype, requires_grad=True)
        optimizer = torch.optim.Adafactor([p], lr=0.1)
        p.grad = torch.zeros_like(p)
        optimizer.step()
        assert bool((p == 1).all())
        p.grad = torch.full_like(p, 0.01)  # much larger than eps, so that each step is lr in size
        optimizer.step()
        assert torch.allclose(p.detach().float(), torch.full(shape, 0.9), 0.01)

    p = torch.ones(3, dtype=dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([p], lr=1.0)

    def loss():
        optimizer.zero_grad()
        value = 1e-3 * (p.float() ** 2).sum()
        value.backward()
        return value

    optimizer.step(loss)
    assert bool((p.detach().abs() < 0.01).all())

    p = torch.ones(3, 2, dtype=dtype, requires_grad=True)
    optimizer = torch.optim.Muon([p], lr=0.1, weight_decay=0.0)
    p.grad = torch.zeros_like(p)
    optimizer.step()
    assert bool((p == 1).all())
