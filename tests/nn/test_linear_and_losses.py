"""Layers and losses against their NumPy formulas."""

import math
from typing import get_type_hints

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn
from helpers import fails


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def close(tensor, expected):
    np.testing.assert_allclose(tensor.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------ linear and similar layers


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, bias):
    layer = nn.Linear(4, 5, bias=bias, dtype=torch.float64)
    x = numbers(*shape)
    expected = x @ layer.weight.detach().numpy().T
    if bias:
        expected = expected + layer.bias.detach().numpy()
    close(layer(torch.from_numpy(x)), expected)
    assert layer.weight.shape == (5, 4) and (layer.bias is not None) == bias


def test_linear_gradients():
    layer = nn.Linear(4, 5, dtype=torch.float64)
    x = torch.from_numpy(numbers(3, 4)).requires_grad_()
    g = numbers(3, 5, seed=1)
    layer(x).backward(torch.from_numpy(g))
    close(x.grad, g @ layer.weight.detach().numpy())
    close(layer.weight.grad, g.T @ x.detach().numpy())
    close(layer.bias.grad, g.sum(axis=0))


def test_linear_starts_within_its_bounds():
    layer = nn.Linear(100, 50)
    for tensor in (layer.weight, layer.bias):
        assert 0.08 < tensor.abs().max().item() <= 0.1
    assert repr(nn.Linear(2, 3, bias=False)) == "Linear(in_features=2, out_features=3, bias=False)"
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        assert nn.Linear(0, 3)(torch.ones(2, 0)).shape == (2, 3)


def test_linear_refuses_the_wrong_number_of_features():
    line = "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"
    with fails(RuntimeError, line):
        nn.Linear(4, 5)(torch.ones(2, 3))


@pytest.mark.parametrize(
    ("module", "formula"),
    [
        (nn.Identity(1, two=2), lambda x: x),
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.Tanh(), np.tanh),
        (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
        (nn.Softmax(dim=1), lambda x: softmax(x, 1)),
        (nn.Softmax(-1), lambda x: softmax(x, -1)),
        (nn.LogSoftmax(dim=0), lambda x: np.log(softmax(x, 0))),
        (nn.Flatten(), lambda x: x.reshape(2, 12)),
        (nn.Flatten(0, 1), lambda x: x.reshape(6, 4)),
        (nn.Dropout(0.0), lambda x: x),
        (nn.Dropout(1.0), np.zeros_like),
        (nn.Dropout(0.5).eval(), lambda x: x),
    ],
    ids=lambda value: repr(value) if isinstance(value, nn.Module) else "",
)
def test_module_against_formula(module, formula):
    x = numbers(2, 3, 4)
    close(module(torch.from_numpy(x)), formula(x))


def test_inplace_modules_overwrite_their_input():
    x = torch.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0.0, 2.0]
    assert nn.Dropout(1.0, inplace=True)(x).tolist() == x.tolist() == [0.0, 0.0]
    assert repr(nn.ReLU(True)) == "ReLU(inplace=True)"


def test_dropout_scales_what_it_keeps_and_its_gradient_has_the_same_mask():
    x = torch.ones(10_000, requires_grad=True)
    y = nn.Dropout(0.25)(x)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    np.testing.assert_allclose(np.unique(y.detach().numpy()), [0, 4 / 3], rtol=1e-6)
    assert abs((y == 0).float().mean().item() - 0.25) < 0.02


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_dropout_refuses_what_is_no_probability(p):
    with fails(ValueError, f"dropout probability has to be between 0 and 1, but got {p}"):
        nn.Dropout(p)


# ------------------------------------------------------------------ losses

REDUCE = {"mean": np.mean, "sum": np.sum, "none": np.asarray}


@pytest.mark.parametrize("reduction", REDUCE)
def test_mse(reduction):
    a, b = numbers(3, 4), numbers(3, 4, seed=1)
    x = torch.from_numpy(a).requires_grad_()
    loss = nn.MSELoss(reduction=reduction)(x, torch.from_numpy(b))
    close(loss, REDUCE[reduction]((a - b) ** 2))
    loss.sum().backward()
    close(x.grad, 2 * (a - b) / (a.size if reduction == "mean" else 1))


@pytest.mark.parametrize("reduction", REDUCE)
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_and_nll_of_classes(reduction, weighted):
    scores, classes = numbers(6, 4), np.array([0, 3, 1, 2, 3, 0])
    weight = np.array([0.5, 1.0, 2.0, 0.25]) if weighted else np.ones(4)
    log_p = np.log(softmax(scores, 1))
    counted = np.array([1, 1, 1, 0, 1, 1])  # class 2 is ignored
    each = -log_p[np.arange(6), classes] * weight[classes] * counted
    total = (weight[classes] * counted).sum()
    expected = each.sum() / total if reduction == "mean" else REDUCE[reduction](each)

    options = {"ignore_index": 2, "reduction": reduction}
    if weighted:
        options["weight"] = torch.from_numpy(weight)
    target = torch.from_numpy(classes)
    close(nn.NLLLoss(**options)(torch.from_numpy(log_p), target), expected)
    x = torch.from_numpy(scores).requires_grad_()
    loss = nn.CrossEntropyLoss(**options)(x, target)
    close(loss, expected)

    loss.sum().backward()
    gradient = (np.exp(log_p) - np.eye(4)[classes]) * (weight[classes] * counted)[:, None]
    close(x.grad, gradient / (total if reduction == "mean" else 1))


def test_cross_entropy_of_probabilities_and_smoothing():
    scores, target = numbers(5, 3), softmax(numbers(5, 3, seed=1), 1)
    log_p = np.log(softmax(scores, 1))
    x = torch.from_numpy(scores)
    close(nn.CrossEntropyLoss()(x, torch.from_numpy(target)), -(target * log_p).sum() / 5)
    smooth = 0.9 * target + 0.1 / 3
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(x, torch.from_numpy(target))
    close(loss, -(smooth * log_p).sum() / 5)


@pytest.mark.parametrize("reduction, expected", [("mean", np.nan), ("sum", 0.0), ("none", [0.0] * 4)])
def test_cross_entropy_of_no_classes_smoothed(reduction, expected):
    loss = nn.CrossEntropyLoss(label_smoothing=0.2, reduction=reduction)
    close(loss(torch.zeros(4, 0), torch.zeros(4, 0)), expected)
    assert loss(torch.zeros(4, 0), torch.full((4,), -100)).isnan().all()


def test_cross_entropy_of_images_and_of_one_sample():
    scores, classes = numbers(2, 3, 4, 5), np.arange(40).reshape(2, 4, 5) % 3
    log_p = np.log(softmax(scores, 1))
    expected = -np.take_along_axis(log_p, classes[:, None], axis=1).mean()
    loss = nn.CrossEntropyLoss()
    close(loss(torch.from_numpy(scores), torch.from_numpy(classes)), expected)
    close(loss(torch.from_numpy(scores[0, :, 0, 0]), torch.tensor(1)), -log_p[0, 1, 0, 0])


def test_cross_entropy_does_not_overflow():
    scores = torch.tensor([[1e4, -1e4]], requires_grad=True)
    loss = nn.CrossEntropyLoss()(scores, torch.tensor([1]))
    loss.backward()
    assert loss.item() == 2e4 and scores.grad.tolist() == [[1.0, -1.0]]


def test_class_weights_are_a_buffer():
    loss = nn.CrossEntropyLoss(weight=torch.ones(2))
    assert list(loss.state_dict()) == ["weight"] and not list(loss.parameters())
    line = "cannot assign 'int' object to buffer 'weight' (torch Tensor or None required)"
    with fails(TypeError, line):
        nn.CrossEntropyLoss(weight=3)


@pytest.mark.parametrize(
    ("flags", "meant"),
    [
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": False}, "none"),
        ({"reduce": True, "size_average": False}, "sum"),
    ],
)
def test_old_flags_of_losses(flags, meant):
    with pytest.warns(UserWarning, match=f"please use reduction='{meant}' instead"):
        assert nn.MSELoss(**flags).reduction == meant


@pytest.mark.parametrize("loss", [nn.MSELoss, nn.NLLLoss, nn.CrossEntropyLoss])
def test_unknown_reduction(loss):
    target = torch.ones(1, 2) if loss is nn.MSELoss else torch.tensor([0])
    with fails(ValueError, "x is not a valid value for reduction"):
        loss(reduction="x")(torch.ones(1, 2), target)


def test_a_network_learns_a_curve():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(x), x * x)
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3 and math.isfinite(loss.item())


def test_reductions_by_number_and_by_flags():
    from cygrad.nn import _reduction

    assert [_reduction.get_enum(each) for each in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.warns(UserWarning, match="reduction='elementwise_mean' is deprecated"):
        assert _reduction.get_enum("elementwise_mean") == 1
    with pytest.raises(ValueError, match="max is not a valid value for reduction"):
        _reduction.get_enum("max")
    flags = [(size_average, reduce) for size_average in (None, True, False) for reduce in (None, True, False)]
    assert [_reduction.legacy_get_enum(*each, emit_warning=False) for each in flags] == [1, 1, 0, 1, 1, 0, 2, 2, 0]
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert _reduction.legacy_get_string(False, None) == "sum"


def test_annotations_of_layers_need_no_names_of_their_modules():
    for layer in (torch.nn.MSELoss(), torch.nn.CrossEntropyLoss(), torch.nn.ReLU(), torch.nn.AvgPool2d(2)):
        assert get_type_hints(layer, globalns={"Tensor": torch.Tensor})
