"""Weight averaging and Muon against their formulas, without PyTorch."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.optim import SGD, Muon
from cygrad.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 1.0])
def test_exponential_average(decay):
    model = nn.Linear(2, 2)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
    expected = None
    for _ in range(4):
        nn.init.normal_(model.weight)
        average.update_parameters(model)
        value = model.weight.detach().numpy()
        expected = value.copy() if expected is None else decay * expected + (1 - decay) * value
    np.testing.assert_allclose(average.module.weight.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_averages_do_not_share_memory_and_leave_the_model_alone():
    model = nn.Linear(2, 2)
    average = AveragedModel(model)
    average.update_parameters(model)
    before = model.weight.detach().clone()
    average.module.weight.data.mul_(3)
    assert bool((model.weight == before).all())
    assert model.weight.grad_fn is None and average.module.weight.is_leaf


def test_update_bn_is_the_mean_over_batches():
    norm = nn.BatchNorm1d(3)
    batches = [cygrad.randn(8, 3) for _ in range(5)]
    update_bn(batches, norm)
    expected = np.mean([b.numpy().mean(0) for b in batches], 0)
    np.testing.assert_allclose(norm.running_mean.numpy(), expected, rtol=1e-4, atol=1e-6)
    assert norm.momentum == 0.1


def test_swalr_arrives_and_stays():
    optimizer = SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    schedule = SWALR(optimizer, 0.2, anneal_epochs=4)
    rates = []
    for _ in range(7):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    cosine = [0.2 + 0.4 * (1 + np.cos(np.pi * t / 4)) for t in (1, 2, 3, 4)]
    np.testing.assert_allclose(rates, [*cosine, 0.2, 0.2, 0.2])


@pytest.mark.parametrize("shape", [(4, 3), (3, 5)])
def test_update_of_muon_has_equal_singular_values(shape):
    param = nn.Parameter(cygrad.zeros(shape, dtype=cygrad.float64))
    options = {"ns_steps": 30, "ns_coefficients": (1.5, -0.5, 0.0), "adjust_lr_fn": "match_rms_adamw"}
    optimizer = Muon([param], lr=1.0, **options)
    param.grad = cygrad.randn(shape, dtype=cygrad.float64)
    optimizer.step()
    singular = np.linalg.svd(param.detach().numpy(), compute_uv=False)
    np.testing.assert_allclose(singular, 0.2 * np.sqrt(max(shape)), rtol=1e-2)  # in the precision of bfloat16
    left, _, right = np.linalg.svd(param.grad.numpy(), full_matrices=False)
    np.testing.assert_allclose(param.detach().numpy(), -0.2 * np.sqrt(max(shape)) * left @ right, atol=1e-2)


@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (7, 7)])
def test_muon_rounds_each_matrix_to_bfloat16(shape):
    param = nn.Parameter(cygrad.zeros(shape))
    optimizer = Muon([param], lr=1.0, adjust_lr_fn="match_rms_adamw")
    param.grad = cygrad.randn(shape)
    optimizer.step()
    x = _to_bfloat16(param.grad.numpy() * (1 - 0.95 + 0.95 * 0.05))
    x = x.T if shape[0] > shape[1] else x
    x = _to_bfloat16(x / _to_bfloat16(np.linalg.norm(x)))
    for _ in range(5):
        square = _to_bfloat16(x @ x.T)
        x = _to_bfloat16(3.4445 * x + _to_bfloat16(-4.775 * square + 2.0315 * (square @ square)) @ x)
    x = x.T if shape[0] > shape[1] else x
    # a sum that lies between two numbers of bfloat16 may be rounded to the other one
    np.testing.assert_allclose(param.detach().numpy(), -0.2 * np.sqrt(max(shape)) * x, atol=2e-2)
    steps = np.abs(param.detach().numpy() / (0.2 * np.sqrt(max(shape))) + x) > 1e-6
    assert steps.mean() < 0.3


def test_muon_keeps_nan():
    param = nn.Parameter(cygrad.zeros(2, 2))
    param.grad = cygrad.tensor([[float("nan"), 1.0], [0.0, 1.0]])
    Muon([param]).step()
    assert bool(param.isnan().all())


def _to_bfloat16(x):
    """Round to 8 binary digits, to even on ties."""
    digits, exponents = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.rint(digits * 256), exponents - 8)
