"""The fixtures behind `--device`: they run the generic tests on the CPU, on a GPU, or on the stand-in for CuPy."""

import pytest
from ops.calls import Cygrad, on_gpu

import cygrad


@pytest.fixture(scope="module")
def on(request):
    """How a sample is run: on the CPU, or, with `--device cuda`, on a GPU or the stand-in for one.

    There sums have a fixed order, so that two ways to the same values can be compared bit for bit; `tests/gpu` has
    them in any order.
    """
    if request.config.getoption("device") == "cpu":
        yield Cygrad
        return
    how = on_gpu(request.getfixturevalue("cupy"))
    cygrad.use_deterministic_algorithms(True)
    yield how
    cygrad.use_deterministic_algorithms(False)


@pytest.fixture
def by_default(on, request):
    """For tests that make their tensors themselves: these are where `--device` says."""
    if request.config.getoption("device") == "cpu":
        yield
        return
    cygrad.set_default_device("cuda")
    yield
    cygrad.set_default_device(None)


def pytest_collection_modifyitems(config, items):
    """On a GPU only what takes the device: the rest is the same as on the CPU.

    Errors are left out: they name types of the CPU, and what an index says is not looked at on a GPU.
    """
    if config.getoption("device") != "cpu":
        of_ops = [item for item in items if {"ops", "transforms"} & set(item.path.parts)]
        left_out = {item for item in of_ops if "on" not in item.fixturenames or item.originalname == "test_errors"}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
