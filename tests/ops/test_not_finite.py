"""Infinities, NaN and overflowing numbers raise none of NumPy's warnings."""

import warnings

import numpy as np
import pytest
from ops.calls import SAMPLES, Call

import cygrad

VALUES = (np.inf, np.nan, -np.inf, "largest", 0.0, -1.0)


def with_values(start, single):
    """A function that puts three of the values at the start of an array."""

    def change(array):
        if array.dtype.kind not in "fc" or not array.size:
            return array
        array = array.astype({"f": np.float32, "c": np.complex64}[array.dtype.kind]) if single else array.copy()
        values = [np.finfo(array.dtype).max if v == "largest" else v for v in VALUES[start : start + 3]]
        array.reshape(-1)[: len(values)] = values[: array.size]
        return array

    return change


def run_to_second_order(call):
    outs = call.outputs() if call.leaves else call.run()
    if call.leaves and outs:
        grads = call.gradients([cygrad.ones_like(out) for out in outs], outs, create_graph=True)
        sums = [grad.abs().sum() for grad in grads if grad.requires_grad]
        if sums:
            call.derive(sums, call.leaves, [cygrad.ones_like(one) for one in sums])


@pytest.mark.parametrize("single", [pytest.param(False, marks=pytest.mark.exhaustive), True])
@pytest.mark.parametrize("name", SAMPLES)
def test_numpy_does_not_warn(name, single):
    for sample in SAMPLES[name]:
        for start in range(4):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", RuntimeWarning)
                try:
                    run_to_second_order(Call(name, sample, with_values(start, single)))
                except (RuntimeError, ValueError, IndexError, OverflowError):
                    pass  # such values may be rejected


@pytest.mark.parametrize("function", [cygrad.linspace, cygrad.logspace])
def test_between_ends_that_are_not_finite(function):
    for low, high in ((0, np.inf), (-np.inf, 1.5), (np.nan, 0), (-3e38, 3e38), (-1e308, 1e308)):
        for dtype in (cygrad.float16, cygrad.bfloat16, cygrad.float32, cygrad.float64, cygrad.complex64):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert function(low, high, 5, dtype=dtype).shape == (5,)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_gradient_of_huber_loss_at_nan(is_recorded):
    x = cygrad.tensor([float("nan"), float("inf"), 0.5], requires_grad=True)
    loss = cygrad.nn.functional.huber_loss(x, cygrad.zeros(3), "sum")
    (gradient,) = cygrad.autograd.grad(loss, x, create_graph=is_recorded)
    assert gradient[0].isnan() and gradient[1:].tolist() == [1.0, 0.5]
