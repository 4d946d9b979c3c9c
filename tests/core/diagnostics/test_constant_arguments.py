"""Tensors that require grad, passed where a plain number is meant: an error instead of a gradient lost silently."""

import pytest

import cygrad as torch
import cygrad.nn.functional as F

X = torch.tensor([[0.1, 0.4], [0.3, 0.2]])


def number(value=0.5, requires_grad=True):
    return torch.tensor(value, requires_grad=requires_grad)


CALLS = {
    "leaky_relu": lambda a: F.leaky_relu(X, a),
    "dropout": lambda a: F.dropout(X, a),
    "softplus": lambda a: F.softplus(X, a),
    "hardshrink": lambda a: F.hardshrink(X, a),
    "layer_norm": lambda a: F.layer_norm(X, (2,), eps=a),
    "group_norm": lambda a: F.group_norm(X, 1, eps=a),
    "cdist": lambda a: torch.cdist(X, X, a),
    "smooth_l1_loss": lambda a: F.smooth_l1_loss(X, X, beta=a),
    "pad": lambda a: F.pad(X, (1, 1), value=a),
    "nan_to_num": lambda a: torch.nan_to_num(X, a),
    "addcmul": lambda a: torch.addcmul(X, X, X, value=a),
    "add": lambda a: torch.add(X, X, alpha=a),
    "sub_": lambda a: X.clone().sub_(X, alpha=a),
    "full": lambda a: torch.full((2,), a),
    "new_full": lambda a: X.new_full((2,), a),
    "isclose": lambda a: torch.isclose(X, X, a, a),
    "exponential_": lambda a: X.clone().exponential_(a),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_number_that_requires_grad_is_refused(name):
    CALLS[name](number(requires_grad=False))
    with pytest.raises(TypeError, match=r"\(\): argument '\w+'( \(position \d\))? must be (float|Number), not Tensor"):
        CALLS[name](number())


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True")
def test_new_leaves_take_the_value():
    a = number()
    assert torch.linspace(0, a, 2).tolist() == [0, 0.5]
    with pytest.warns(UserWarning, match="sourceTensor"):
        assert torch.tensor(a).item() == 0.5
    assert torch.tensor([[a, a]]).tolist() == [[0.5, 0.5]]


def test_numbers_in_tuples():
    images = torch.ones(1, 1, 2, 2)
    assert F.interpolate(images, scale_factor=(number(2.0, False), 2.0)).shape == (1, 1, 4, 4)
    with pytest.raises(TypeError, match=r"argument 'scale_factor' \(position 3\) must be tuple of floats"):
        F.interpolate(images, scale_factor=(number(2.0), 2.0))


def test_tolerances_of_a_pseudoinverse():
    torch.linalg.pinv(X, rtol=number(requires_grad=False))
    with pytest.raises(RuntimeError, match="'linalg_pinv' is not differentiable with respect to argument 'rtol'"):
        torch.linalg.pinv(X, rtol=number())


def test_parameters_of_windows():
    assert torch.signal.windows.kaiser(3, beta=number(1.0)).equal(torch.signal.windows.kaiser(3, beta=1.0))


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True")
def test_modules_and_losses_may_read_a_value():
    a, b = number(), number()
    optimizer = torch.optim.LBFGS([a, b])
    optimizer.step(lambda: (a * b).exp())
    assert F.mse_loss(a, b).item() >= 0
