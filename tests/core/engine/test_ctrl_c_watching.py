"""Ctrl-C at every point while results are monitored, timed, cast or transformed leaves none of this active."""

import warnings

import numpy as np
import pytest
from core.engine.test_ctrl_c import interrupted_everywhere, nothing_is_left

import cygrad as torch
from cygrad._core.runtime.thread_state import is_observed
from cygrad.autograd import profiler


def nothing_is_watched():
    nothing_is_left()
    assert not torch.is_anomaly_enabled() and not is_observed()
    assert np.isnan(torch.tensor([-1.0]).log().item())  # nan_check would raise
    assert torch.is_autocast_cache_enabled() and torch.get_autocast_dtype("cpu") is torch.bfloat16


def anomaly(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            x.sin().backward()


def nan_check(x):
    with torch.autograd.nan_check(forward=True, inf=True):
        (x.exp() * x).backward()


def profiled(x):
    with profiler.profile(record_shapes=True, profile_memory=True) as found:
        with profiler.record_function("part"):
            x.sin().backward()
    found.key_averages()


def transformed(x):
    function = torch.func
    values = torch.ones(3)
    function.grad(torch.sin)(x.detach())
    function.vmap(function.grad(torch.cos))(values)
    function.jvp(torch.exp, (values,), (values,))
    function.jacrev(torch.sin)(values)
    function.jacfwd(torch.sin)(values)
    function.hessian(lambda v: v.sin().sum())(values)


def functional(x):
    torch.autograd.functional.jacobian(torch.sin, x)
    torch.autograd.functional.hvp(torch.sin, x, x.detach())
    torch.autograd.gradcheck(torch.sin, x.detach().double().requires_grad_())


def autocasting(x):
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
        with torch.autocast("cpu", enabled=False):
            torch.mm(x.expand(1, 1), x.expand(1, 1))
        torch.amp.autocast("cpu", dtype=torch.float16)(torch.cat)([x.expand(1)])


@pytest.mark.parametrize(
    "run",
    [anomaly, nan_check, profiled, pytest.param(transformed, marks=pytest.mark.slow), functional, autocasting],
)
def test_nothing_goes_on(run):
    x = torch.tensor(0.5, requires_grad=True)
    interrupted_everywhere(lambda: run(x), nothing_is_watched)
