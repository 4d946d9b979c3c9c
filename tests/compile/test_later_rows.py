"""The samples of ops as compiled functions whose backward pass comes later: gradients have eager's bits."""

import warnings

import pytest
from compile.replays import bits, other_values, tensors_in
from ops.calls import SAMPLES, Call

import cygrad
from cygrad._core.replay.capture import capture
from cygrad._core.replay.program import MISS

PER_ROW = 3
FAMILIES = 8


class Forward:
    """A sample, its arguments, and the gradients of what it returns."""

    def __init__(self, name, sample, change=None):
        self.call = Call(name, sample, change=change)
        self.arguments = tensors_in([*self.call.args, *self.call.kwargs.values()])

    def __call__(self):
        return [each for each in self.call.run() if isinstance(each, cygrad.Tensor)]

    def gradients(self, results):
        outputs = [each for each in results if each.requires_grad]
        weights = [cygrad.linspace(-1, 1, each.numel()).reshape(each.shape).to(each.dtype) for each in outputs]
        return [
            bits(g)
            for g in cygrad.autograd.grad(outputs, self.call.leaves, weights, allow_unused=True)
            if g is not None
        ]


def is_replayed(name, sample):
    """Whether the later backward pass of a sample is replayed; then it has eager's bits."""
    first = Forward(name, sample)
    if not first.call.leaves or not any(each.requires_grad for each in first()):
        return None
    results, program = capture(first, first.arguments, tensors_in, sees_grads=False)
    if not hasattr(program, "replay") or program.history is None:
        return False
    first.gradients(results)  # of the graph that the capture has left
    again = Forward(name, sample)
    _, difference = program.check(again, again.arguments, tensors_in)
    assert difference is None, difference
    for change in (None, other_values):
        state = cygrad.get_rng_state()
        try:
            eager = Forward(name, sample, change)
            expected = eager()
            wanted = [bits(each) for each in expected], eager.gradients(expected)
        except (ArithmeticError, LookupError, RuntimeError, ValueError):
            continue
        other = Forward(name, sample, change)
        cygrad.set_rng_state(state)
        found = program.replay(other.arguments, ((), {}))
        if found is MISS:
            assert change is not None
            continue
        try:
            gradients = other.gradients(found)
        except RuntimeError as error:  # a pass that runs as written; a program alone has no function to call again
            assert "its function is not known" in str(error)
            return False
        assert ([bits(each) for each in found], gradients) == wanted, change
    return True


@pytest.mark.slow  # captures a thousand calls
@pytest.mark.parametrize("part", range(FAMILIES))
def test_gradients_have_the_bits_of_eager_ones(part):
    outcomes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(SAMPLES)[part::FAMILIES]:
            for number, sample in enumerate(SAMPLES[name][:PER_ROW]):
                try:
                    outcomes[name, number] = is_replayed(name, sample)
                except AssertionError as error:
                    raise AssertionError(f"{name}, sample {number}") from error
    tried = [key for key, outcome in outcomes.items() if outcome is not None]
    replayed = [key for key in tried if outcomes[key]]
    assert len(replayed) > 0.5 * len(tried), sorted(set(tried) - set(replayed))
