"""nn.init: distributions by their moments and bounds, structured matrices exactly."""

import math

import numpy as np
import pytest

import cygrad as torch
from cygrad.nn import init
from helpers import fails


def filled(function, *shape, **options):
    """A parameter filled in place by `function`, as an array."""
    tensor = torch.full(shape, math.nan, dtype=torch.float64, requires_grad=True)
    assert function(tensor, **options) is tensor
    assert tensor.is_leaf and tensor.requires_grad, "filling is not recorded"
    return tensor.detach().numpy()


def check_uniform(values, bound):
    assert np.abs(values).max() <= bound
    assert np.abs(values).max() > 0.99 * bound
    assert abs(values.mean()) < 0.05 * bound
    assert abs(values.std() / (bound / math.sqrt(3)) - 1) < 0.03


def check_normal(values, std, mean=0.0):
    assert abs(values.mean() - mean) < 0.05 * std
    assert abs(values.std() / std - 1) < 0.03
    assert abs((np.abs(values - mean) > 2 * std).mean() - 0.0455) < 0.01


# ------------------------------------------------------------------ simple initializers


def test_constants():
    assert (filled(init.constant_, 2, 3, val=0.5) == 0.5).all()
    assert (filled(init.ones_, 2, 3) == 1).all()
    assert (filled(init.zeros_, 2, 3) == 0).all()
    np.testing.assert_array_equal(filled(init.eye_, 2, 3), np.eye(2, 3))


def test_plain_distributions():
    values = filled(init.uniform_, 100, 100, a=2.0, b=4.0)
    check_uniform(values - 3, 1.0)
    check_normal(filled(init.normal_, 100, 100, mean=3.0, std=0.5), 0.5, mean=3.0)


@pytest.mark.parametrize(("a", "b"), [(-2.0, 2.0), (-0.5, 0.1), (1.0, 8.0), (5.0, 6.0), (-40.0, -30.0), (-9.0, 9.0)])
def test_truncated_normal_has_the_right_distribution(a, b):
    scipy = pytest.importorskip("scipy.stats", reason="SciPy knows the distribution")
    values = filled(init.trunc_normal_, 4000, mean=0.0, std=1.0, a=a, b=b)
    assert a <= values.min() and values.max() <= b
    assert scipy.kstest(values, scipy.truncnorm(a, b).cdf).pvalue > 1e-3


def test_truncated_normal_scales_and_shifts():
    values = filled(init.trunc_normal_, 20_000, mean=10.0, std=2.0, a=8.0, b=12.0)
    assert 8 <= values.min() and values.max() <= 12
    assert abs(values.mean() - 10) < 0.05 and abs(values.std() - 1.079) < 0.02
    assert filled(init.trunc_normal_, 3, mean=1.0, std=1e-9, a=-2.0, b=2.0) == pytest.approx(1.0)


def test_generators_make_it_repeatable():
    for function in (
        init.uniform_,
        init.normal_,
        init.trunc_normal_,
        init.xavier_uniform_,
        init.xavier_normal_,
        init.kaiming_uniform_,
        init.kaiming_normal_,
        init.orthogonal_,
    ):
        draws = [filled(function, 4, 5, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
        assert (draws[0] == draws[1]).all() and (draws[0] != draws[2]).any()


# ------------------------------------------------------------------ variances


def test_gains():
    gains = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": 2**0.5, "selu": 0.75}
    assert {name: init.calculate_gain(name) for name in gains} == gains
    assert init.calculate_gain("leaky_relu", 0.5) == math.sqrt(1.6)
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / 1.0001)
    with fails(ValueError, "Unsupported nonlinearity x"):
        init.calculate_gain("x")
    with fails(ValueError, "negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)


def test_xavier():
    check_uniform(filled(init.xavier_uniform_, 60, 200, gain=2.0), 2 * math.sqrt(6 / 260))
    check_normal(filled(init.xavier_normal_, 60, 40, 5), math.sqrt(2 / 500))


@pytest.mark.parametrize(("mode", "fan"), [("fan_in", 200), ("fan_out", 100)])
def test_kaiming(mode, fan):
    options = {"mode": mode, "nonlinearity": "relu"}
    check_uniform(filled(init.kaiming_uniform_, 100, 200, **options), math.sqrt(6 / fan))
    check_normal(filled(init.kaiming_normal_, 100, 200, **options), math.sqrt(2 / fan))
    check_normal(filled(init.kaiming_normal_, 100, 200, mode=mode, a=1.0), math.sqrt(1 / fan))


@pytest.mark.parametrize(
    "function",
    [init.xavier_uniform_, init.xavier_normal_, init.kaiming_uniform_, init.kaiming_normal_],
)
def test_fans_need_two_dimensions(function):
    line = "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
    with fails(ValueError, line):
        function(torch.ones(3))


def test_bad_modes_and_empty_tensors():
    with fails(ValueError, "Mode x not supported, please use one of ['fan_in', 'fan_out']"):
        init.kaiming_uniform_(torch.ones(2, 2), mode="x")
    for function in (init.kaiming_uniform_, init.kaiming_normal_):
        with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
            function(torch.empty(0, 2))


# ------------------------------------------------------------------ structures


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (4, 4), (3, 2, 5)])
def test_orthogonal(shape):
    matrix = filled(init.orthogonal_, *shape, gain=2.0).reshape(shape[0], -1)
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)
    assert filled(init.orthogonal_, 0, 3).shape == (0, 3)


def test_sparse():
    matrix = filled(init.sparse_, 100, 20, sparsity=0.3, std=2.0)
    assert ((matrix == 0).sum(axis=0) == 30).all()
    assert abs(matrix[matrix != 0].std() - 2) < 0.1


def test_dirac_passes_channels_on():
    weight = filled(init.dirac_, 4, 3, 5)
    expected = np.zeros((4, 3, 5))
    expected[range(3), range(3), 2] = 1
    np.testing.assert_array_equal(weight, expected)
    grouped = filled(init.dirac_, 4, 2, 3, 3, groups=2)
    assert np.argwhere(grouped).tolist() == [[0, 0, 1, 1], [1, 1, 1, 1], [2, 0, 1, 1], [3, 1, 1, 1]]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: init.eye_(torch.ones(3)), "Only tensors with 2 dimensions are supported"),
        (lambda: init.sparse_(torch.ones(3), 0.1), "Only tensors with 2 dimensions are supported"),
        (
            lambda: init.orthogonal_(torch.ones(3)),
            "Only tensors with 2 or more dimensions are supported",
        ),
        (
            lambda: init.dirac_(torch.ones(3, 4)),
            "Only tensors with 3, 4, or 5 dimensions are supported",
        ),
        (lambda: init.dirac_(torch.ones(3, 2, 3), 2), "dim 0 must be divisible by groups"),
    ],
)
def test_wrong_shapes(call, line):
    with fails(ValueError, line):
        call()


@pytest.mark.parametrize("name", [n for n in init.__all__ if n + "_" in init.__all__])
def test_old_names_warn_and_work(name):
    options = {"constant": (3.0,), "sparse": (0.5,)}.get(name, ())
    shape = (2, 2, 2) if name == "dirac" else (2, 2)
    message = f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`."
    with pytest.warns(FutureWarning, match=message.replace(".", r"\.")):
        tensor = getattr(init, name)(torch.full(shape, math.nan), *options)
    assert not np.isnan(tensor.numpy()).any()
