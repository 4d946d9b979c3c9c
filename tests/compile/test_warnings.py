"""Steps in which the package warns: replays warn as eager steps do, by Python's filters, and at the same line."""

import warnings

import pytest

import cygrad
from cygrad import nn

F = nn.functional


def warning(x):
    return F.kl_div(x.log(), x)


def run(function, action, times=8):
    """What calls warn of, and what they return or raise."""
    found = []
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter(action)
        for i in range(times):
            try:
                found.append(function(cygrad.arange(1.0, 4.0) + i).item())
            except UserWarning as error:
                found.append(str(error))
    return found, [(str(w.message), w.category, w.filename, w.lineno) for w in issued]


@pytest.mark.parametrize("action", ["always", "default", "ignore"])
def test_warnings(action):
    compiled = cygrad.compile(warning)
    found = run(compiled, action)
    assert found == run(warning, action)
    assert compiled.explain().replays >= 4, compiled.explain()
    assert len(found[1]) == {"always": 8, "default": 1, "ignore": 0}[action]


def test_warnings_that_become_errors():
    compiled = cygrad.compile(warning)
    run(compiled, "ignore")
    before = compiled.explain().replays
    assert before >= 4
    assert run(compiled, "error", 3) == run(warning, "error", 3)
    assert compiled.explain().replays == before
    assert run(compiled, "always", 2) == run(warning, "always", 2)


def test_a_function_that_is_called_once_more_does_not_warn_again():
    weight = cygrad.ones(3, requires_grad=True)
    compiled = cygrad.compile(lambda x: F.kl_div((x * weight).log(), x).square())
    counts = []
    for function in (compiled, compiled.__wrapped__):
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            for _ in range(6):
                (slope,) = cygrad.autograd.grad(function(cygrad.arange(1.0, 4.0)), weight, create_graph=True)
                slope.sum().backward()
        counts.append(len(issued))
    assert counts == [6, 6]
    assert compiled.explain().replays >= 2
