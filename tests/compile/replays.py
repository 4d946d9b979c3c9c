"""Captures the samples of ops, and replays them with other values."""

import warnings

import numpy as np
from ops.calls import Call

import cygrad
from cygrad._core.graph.internals import array_of
from cygrad._core.replay.capture import capture
from cygrad._core.replay.program import MISS


def tensors_in(value):
    """The tensors in nested lists and tuples."""
    if isinstance(value, cygrad.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in tensors_in(item)]
    return []


def bits(tensor):
    """What tells two tensors apart."""
    array = array_of(tensor)
    return array.dtype.str, array.shape, np.array(array, order="C").tobytes()


def other_values(array):
    """The values of an array in another order: as valid for nearly all ops as the former."""
    if array.size < 2 or array.base is not None:  # a view: its copy would have other strides
        return array
    other = np.empty_like(array)
    other[...] = np.roll(array.ravel(), 1).reshape(array.shape)
    return other


class Step:
    """A sample as a step: the op, and the gradients of its inputs."""

    def __init__(self, name, sample, change=None):
        self.call = Call(name, sample, change=change)
        self.arguments = tensors_in([*self.call.args, *self.call.kwargs.values()])
        self.weights = None

    def __call__(self):
        results = [r for r in self.call.run() if isinstance(r, cygrad.Tensor)]
        outputs = [r for r in results if r.requires_grad]
        grads = []
        if outputs and self.call.leaves:
            if self.weights is None:
                self.weights = self.call.weights(outputs)
            grads = cygrad.autograd.grad(outputs, self.call.leaves, self.weights, allow_unused=True)
        return [r.detach() if r.requires_grad else r for r in results], [g for g in grads if g is not None]

    def given(self):
        return [*self.arguments, *(self.weights or ())]


def refusal(name, sample):
    """Why a sample cannot be replayed; None if replays have the bits of eager calls, also for other values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = Step(name, sample)
        step()
        _, program = capture(step, step.given(), tensors_in)
        if not hasattr(program, "replay"):
            return program.op, program.reason
        _, difference = program.check(step, step.given(), tensors_in)
        assert difference is None, difference
        for change in (None, other_values):
            other = Step(name, sample, change)
            state = cygrad.get_rng_state()
            try:
                want = [bits(t) for t in tensors_in(other())]
            except (ArithmeticError, LookupError, RuntimeError, ValueError):
                assert change is not None and program.replay(other.given()) is MISS  # these values are not valid
                continue
            cygrad.set_rng_state(state)
            found = program.replay(other.given())
            if found is MISS and change is not None and "bounds" in program.why_missed():
                continue  # eager raises for these
            assert found is not MISS, program.why_missed()
            assert [bits(t) for t in found] == want
    return None
