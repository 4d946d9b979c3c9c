"""Every op in a compiled step on a GPU, between elementwise functions that wait: eager's bits, or a reason."""

import gc
import warnings

import pytest
from cupy_standin import compiler
from ops.calls import SAMPLES, Call, on_gpu

import cygrad as torch
from cygrad._core.graph.internals import array_of
from cygrad._core.replay.gpu import steps as gpu_steps
from cygrad._core.replay.parts import Refusal
from cygrad._core.replay.program import MISS
from cygrad._kernels.device import cupy_library, gpu_forms

pytestmark = [
    pytest.mark.skipif(
        compiler.compiler() is None and not cupy_library.is_available(),
        reason="kernels run by a C++ compiler: there is none",
    ),
]

PARTS = 16  # of the registry, tested one by one
COMMON = "add exp matmul sum sigmoid where softmax addmm clone cat layer_norm cumsum index_select gather copy".split()


@pytest.fixture(autouse=True)
def emptied():
    """Give back the workspaces of products, parts of which whatever is cached next would keep from being freed."""
    yield
    gc.collect()
    torch.cuda.empty_cache()


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def waiting(value):
    """A value whose floating-point tensors have just been computed, by functions that wait."""
    if isinstance(value, torch.Tensor):
        return value * 1.0 if value.is_cuda and value.is_floating_point() else value
    return type(value)(map(waiting, value)) if type(value) in (list, tuple) else value


def bits(tensor):
    return tensor.dtype, tensor.shape, array_of(tensor.detach().resolve_conj().resolve_neg().cpu()).tobytes()


class Step:
    """A sample as a step: the op, and the gradients of its inputs."""

    def __init__(self, name, sample, on):
        self.call = Call(name, sample, on=on)
        self.args, self.kwargs = self.call.args, self.call.kwargs

    def __call__(self):
        call = self.call
        call.args = waiting(self.args)
        call.kwargs = {key: waiting(value) for key, value in self.kwargs.items()}
        results = [r for r in call.run() if isinstance(r, torch.Tensor)]
        outputs, grads = [r for r in results if r.requires_grad], []
        call.args, call.kwargs = self.args, self.kwargs
        if outputs and call.leaves:
            weights = [torch.full_like(r, 0.7) * 1.0 for r in outputs]
            grads = torch.autograd.grad(outputs, call.leaves, weights, allow_unused=True)
        found = [*(r.detach() for r in results), *(g for g in grads if g is not None)]
        return [t * 1.0 if t.is_floating_point() or t.is_complex() else t.clone() for t in found]


def refusal(name, sample, on):
    """Why a sample cannot be captured; None if replays have the bits of eager calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            step = Step(name, sample, on)
            step()
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            return str(error)  # not on GPUs, or not of numbers that were computed
        _, program = gpu_steps.capture(step, [], tensors_in)
        if isinstance(program, Refusal):
            return program.reason
        _, difference = program.check(step, [], tensors_in)
        if isinstance(difference, Refusal):
            return difference.reason
        assert difference is None, f"{name} {sample}: {difference}"
        state = torch.cuda.get_rng_state()
        found = program.replay([])
        assert found is not MISS, program.why_missed()
        torch.cuda.set_rng_state(state)
        assert [bits(t) for t in found] == [bits(t) for t in tensors_in(step())], f"{name} {sample}"
        assert not gpu_forms.captures
    return None


@pytest.mark.slow  # compiles a kernel for each kind of sample
@pytest.mark.parametrize("part", range(PARTS))
def test_replays_have_the_bits_of_eager_calls(part, cupy):
    on = on_gpu(cupy)
    for name in sorted(SAMPLES)[part::PARTS]:
        refusal(name, SAMPLES[name][0], on)
        gc.collect()
        torch.cuda.empty_cache()


@pytest.mark.parametrize("name", [name for name in COMMON if name in SAMPLES])
def test_common_ops_can_be_captured(name, cupy):
    outcomes = [refusal(name, sample, on_gpu(cupy)) for sample in SAMPLES[name][:3]]
    assert None in outcomes, outcomes
