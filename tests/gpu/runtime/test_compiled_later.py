"""Compiled functions on a GPU that return views, or results whose backward pass comes later.

All that holds for those in main memory is tested here, too, with the same tests.
"""

import itertools
import weakref

import pytest
from compile import test_later_backward as later
from compile import test_views as views
from cupy_standin import compiler

import cygrad as torch
from cygrad import nn
from cygrad._core.replay.parts import pass_over
from cygrad._kernels.device import cupy_library, gpu_forms

pytestmark = pytest.mark.skipif(
    compiler.compiler() is None and not cupy_library.is_available(),
    reason="kernels run by a C++ compiler: there is none",
)

on_cpu = later.bits
MAKERS = ("rand", "randn", "ones", "full", "zeros", "tensor")


def bits(tensor):
    """What tells two tensors apart."""
    return tensor.device, tensor.shape, on_cpu(tensor.detach().cpu())


class OnGpu:
    """The package, with a GPU as the place where tensors are made and random numbers drawn."""

    def __init__(self):
        self.get_rng_state, self.set_rng_state = torch.cuda.get_rng_state, torch.cuda.set_rng_state

    def __getattr__(self, name):
        found = getattr(torch, name)
        return (lambda *args, **kwargs: found(*args, device="cuda", **kwargs)) if name in MAKERS else found


class GpuPair(later.Pair):
    def __init__(self, make=later.network, optimizer="SGD"):
        super().__init__(lambda: make().cuda(), optimizer)


@pytest.fixture(autouse=True)
def gpu(cupy, monkeypatch):
    monkeypatch.setattr(later, "Pair", GpuPair)
    for module in (later, views):
        monkeypatch.setattr(module, "cygrad", OnGpu())
        monkeypatch.setattr(module, "bits", bits)
    yield cupy
    torch.compiler.reset()
    assert not gpu_forms.captures


def cases():
    """All tests of functions in main memory, with their parameters."""
    for name, function in [*vars(later).items(), *vars(views).items()]:
        if not name.startswith("test_"):
            continue
        marks = [mark.args[:2] for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
        for values in itertools.product(*(list(found) for _, found in marks)):
            given = dict(zip((key for key, _ in marks), values))
            yield pytest.param(function, given, id="-".join([name, *(getattr(v, "__name__", str(v)) for v in values)]))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "given"), list(cases()))
def test_as_in_main_memory(function, given):
    function(**given)


QUICK = [
    later.test_gradients_accumulate,
    later.test_double_backward,
    later.test_hooks,
    later.test_the_error_names_the_change,
]


@pytest.mark.parametrize("function", QUICK)
def test_some_as_in_main_memory(function):
    function()


@pytest.mark.parametrize("name", ["plain", "norms", "dropout"])
def test_training_as_in_main_memory(name):
    later.test_training(name, "SGD")


# --- What only holds for graphs ----------------------------------------------------------------


def backward(out):
    """A pass with a dense gradient, which is captured at once."""
    out.backward(torch.ones(out.shape, device="cuda"))


def gradients_of_two_calls(compiled, eager):
    """Whether passes that come in another order than their calls have eager's gradients."""
    found = []
    for call in (compiled, eager):
        first, second = (torch.full((3,), value, device="cuda", requires_grad=True) for value in (1.0, 2.0))
        one, two = call(first), call(second)
        backward(one)
        backward(two)
        found.append((bits(first.grad), bits(second.grad)))
    return found[0] == found[1]


def function_of(x):
    return (x * 2).sin().exp()


def test_the_values_of_an_earlier_call_are_copied_in():
    compiled = torch.compile(function_of)
    for _ in range(6):
        assert gradients_of_two_calls(compiled, function_of)
    assert compiled._cygrad_step.replays() > 4
    pass_over({"the values of an earlier call are not copied in"})
    try:
        assert not gradients_of_two_calls(compiled, function_of)
    finally:
        pass_over(None)


def test_values_of_calls_without_a_pass_are_not_kept():
    compiled = torch.compile(function_of)
    for _ in range(6):
        backward(compiled(torch.ones(3, device="cuda", requires_grad=True)))
    memory = compiled._cygrad_step.plans.plans[0].program.history.memory_of_graph
    assert memory.inner
    out = compiled(torch.ones(3, device="cuda", requires_grad=True))
    node = weakref.ref(out.grad_fn)
    del out
    assert node() is None
    x = torch.full((3,), 2.0, device="cuda", requires_grad=True)
    backward(compiled(x))
    assert bits(x.grad) == bits(torch.autograd.grad(function_of(x).sum(), x)[0])


@pytest.mark.parametrize("what", ["argument", "result"])
def test_what_the_user_changes_behind_the_versions_is_read_anew(what):
    compiled = torch.compile(lambda x: (x.sin() * x).exp())
    for i in range(7):
        found = []
        for call in (compiled, lambda x: (x.sin() * x).exp()):
            x = torch.full((3,), 0.5 + i, device="cuda", requires_grad=True)
            out = call(x)
            (x if what == "argument" else out).data.fill_(0.25)
            backward(out)
            found.append(bits(x.grad))
        assert found[0] == found[1]
    assert compiled._cygrad_step.replays() > 2


def test_passes_in_other_streams():
    compiled = torch.compile(function_of)
    for i in range(8):
        x = torch.full((3,), 0.5 + i, device="cuda", requires_grad=True)
        out = compiled(x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            (found,) = torch.autograd.grad(out, x, torch.ones(3, device="cuda"))
        torch.cuda.current_stream().wait_stream(side)
        assert bits(found) == bits(torch.autograd.grad(function_of(x).sum(), x)[0])
    assert compiled._cygrad_step.replays() > 2


def test_explanations_tell_of_passes():
    compiled = torch.compile(nn.Sequential(nn.Linear(3, 3), nn.Tanh()).cuda())
    for _ in range(6):
        backward(compiled(torch.ones(2, 3, device="cuda")))
    plan = later.step_of(compiled).plans.plans[0]
    assert any("replays a backward pass" in text for text in plan.program.effects)
    assert plan.program.memory > 0
