"""Modules that hold the settings of a function return the function's results."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from function_modules import ACTIVATIONS, IN_PLACE, LOSSES, REDUCTIONS, arguments, tensors, with_reduction
from helpers import fails


def same_as_function(made, call):
    names = tensors(cygrad)
    module = eval(f"nn.{made}", {"nn": nn}, names).double()
    settings = {"weight": module.weight} if "weight)" in call else {}
    function, _, rest = call.partition("(")
    expected = eval(f"function({rest}", names | settings | {"function": getattr(nn.functional, function)})
    found = module(*(names[name] for name in arguments(call)))
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


@pytest.mark.parametrize(("made", "call"), ACTIVATIONS)
def test_activation(made, call):
    same_as_function(made, call)


@pytest.mark.filterwarnings("ignore:reduction. .mean. divides")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("made", "call"), LOSSES)
def test_loss(made, call, reduction):
    same_as_function(with_reduction(made, reduction), with_reduction(call, reduction))


@pytest.mark.parametrize("made", IN_PLACE)
def test_inplace_overwrites_the_input(made):
    x = tensors(cygrad)["x"].detach()
    text = f"nn.{made[:-1]}{'' if made.endswith('()') else ','} inplace=True)"
    expected = eval(f"nn.{made}")(x)
    assert eval(text)(x) is x
    np.testing.assert_array_equal(x.numpy(), expected.numpy())


def test_rrelu_draws_slopes_in_training_alone():
    layer, x = nn.RReLU(0.1, 0.3), -cygrad.ones(1000)
    slopes = -layer(x)
    assert 0.1 <= slopes.min() < 0.12 and 0.28 < slopes.max() <= 0.3
    assert cygrad.equal(layer.eval()(x), cygrad.full((1000,), -0.2))


def test_prelu_learns_and_resets():
    layer = nn.PReLU(2, init=0.5)
    layer(-cygrad.ones(3, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [-3.0, -3.0]
    with cygrad.no_grad():
        layer.weight.zero_()
    layer.reset_parameters()
    assert layer.weight.tolist() == [0.5, 0.5]


def test_bad_settings():
    with fails(AssertionError, "max_val (1.0) must be greater than min_val (2.0)"):
        nn.Hardtanh(2.0, 1.0)
    with fails(ValueError, "only p == 1 and p == 2 supported"):
        nn.MultiMarginLoss(3)
    with fails(ValueError, "MultiMarginLoss: expected weight to be None or 1D tensor, got 2D instead"):
        nn.MultiMarginLoss(weight=cygrad.ones(1, 2))
    with fails(ValueError, "TripletMarginLoss: expected margin to be greater than 0, got 0 instead"):
        nn.TripletMarginLoss(0)
    with fails(ValueError, "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got -1 instead"):
        nn.TripletMarginWithDistanceLoss(margin=-1)
    with fails(ValueError, "Softmax2d: expected input to be 3D or 4D, got 2D instead"):
        nn.Softmax2d()(cygrad.ones(2, 2))


def test_old_names_of_bounds_warn():
    with pytest.warns(FutureWarning, match="`min_value` is deprecated and renamed to `min_val`"):
        layer = nn.Hardtanh(min_value=-3.0)
    with pytest.warns(FutureWarning, match="`max_value` is deprecated and renamed to `max_val`") as caught:
        nn.Hardtanh(max_value=3.0)
    assert caught[0].filename == __file__
    assert repr(layer) == "Hardtanh(min_val=-3.0, max_val=1.0)"


@pytest.mark.parametrize("loss", [nn.L1Loss, nn.SmoothL1Loss, nn.MultiMarginLoss])
def test_old_flags_warn_where_they_are_given(loss):
    with pytest.warns(UserWarning, match="please use reduction='sum' instead") as caught:
        assert loss(size_average=False).reduction == "sum"
    assert caught[0].filename == __file__
