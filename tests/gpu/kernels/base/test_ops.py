"""Every op on the samples of the generic tests, on a GPU or the stand-in: results and gradients equal the CPU's."""

import numpy as np
import pytest
from ops.calls import SAMPLES, Call
from ops.calls import on_gpu as on_a_gpu

import cygrad
from cygrad._core.graph.internals import array_of


def assert_same(on_gpu, found, expected, what, is_moved=False):
    if not isinstance(expected, cygrad.Tensor):
        assert found == pytest.approx(expected, nan_ok=True), what
        return
    assert is_moved or found.device.type == "cuda", f"{what} is on the CPU"
    a, b = on_gpu.array(found), array_of(expected)
    assert (a.shape, a.dtype) == (b.shape, b.dtype), what
    np.testing.assert_allclose(a, b, 2e-5, 2e-5, err_msg=what)


def compare(name, sample, on_gpu, what):
    cygrad.manual_seed(0)
    expected_of, found_of = Call(name, sample), Call(name, sample, on=on_gpu)
    expected, found = expected_of.run(), found_of.run()
    if not sample.unique:
        return
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        # without a device argument, factory functions create tensors on the CPU
        assert_same(on_gpu, a, b, f"{what} result {i}", is_moved=name == "cpu" or not found_of.takes_tensors)
    expected, found = ([out for out in outs if getattr(out, "requires_grad", False)] for outs in (expected, found))
    assert len(found) == len(expected), f"{what}: other results have gradients"
    if not expected:
        return
    weights = [weight.to(out.device) for weight, out in zip(found_of.weights(found), found, strict=True)]
    grads = found_of.gradients(weights, found)
    for i, (a, b) in enumerate(zip(grads, expected_of.gradients(expected_of.weights(expected), expected), strict=True)):
        assert_same(on_gpu, a, b, f"{what} gradient {i}")


@pytest.mark.parametrize("name", SAMPLES)
def test_as_on_the_cpu(name, cupy):
    on_gpu = on_a_gpu(cupy)
    for i, sample in enumerate(SAMPLES[name]):
        compare(name, sample, on_gpu, f"{name} sample {i}")
