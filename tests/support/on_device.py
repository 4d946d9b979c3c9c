"""Fixtures for `--device`, which run the generic tests on the CPU, on a GPU, or on the stand-in for CuPy."""

import pytest
from ops.calls import Cygrad, on_gpu

import cygrad


@pytest.fixture(scope="module")
def on(request):
    """How samples are run: on the CPU or, with `--device cuda`, on a GPU or its stand-in.

    There sums have a fixed order, so that results of different paths can be compared bit for bit; `tests/gpu` covers
    sums in arbitrary order.
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
    """Make the tensors that tests create themselves default to `--device`."""
    if request.config.getoption("device") == "cpu":
        yield
        return
    cygrad.set_default_device("cuda")
    yield
    cygrad.set_default_device(None)


def pytest_collection_modifyitems(config, items):
    """On a GPU, keep only the tests that use the device; the others would repeat those of the CPU.

    Error tests are left out: they name CPU types, and index values are not checked on a GPU.
    """
    if config.getoption("device") != "cpu":
        of_ops = [item for item in items if {"ops", "transforms"} & set(item.path.parts)]
        left_out = {item for item in of_ops if "on" not in item.fixturenames or item.originalname == "test_errors"}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
