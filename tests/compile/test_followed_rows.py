"""The samples of ops in functions that run as they are written: replayed backward passes have eager's bits."""

import warnings

import pytest
from compile.replays import other_values
from compile.test_later_rows import Forward
from ops.calls import SAMPLES

from cygrad._core.replay.calls.following import Follower, following

PER_ROW = 3
PARTS = 8


def outcome(name, sample, change):
    """The gradients of a sample, or the class of the error that there is instead."""
    try:
        forward = Forward(name, sample, change)
        return forward.gradients(forward())
    except (ArithmeticError, LookupError, RuntimeError, ValueError) as error:
        return type(error)


def is_replayed(name, sample):
    """Whether the backward pass of a sample is replayed; None if it has none. All gradients have eager's bits."""
    first = Forward(name, sample)
    if not first.call.leaves or not any(each.requires_grad for each in first()):
        return None
    follower = Follower(least=0)
    for change in (None, None, None, None, other_values, None):
        wanted = outcome(name, sample, change)
        with following(follower):
            assert outcome(name, sample, change) == wanted, change
    return follower.replays > 0


@pytest.mark.slow  # captures a thousand calls
@pytest.mark.parametrize("part", range(PARTS))
def test_gradients_have_the_bits_of_eager_ones(part):
    outcomes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(SAMPLES)[part::PARTS]:
            for number, sample in enumerate(SAMPLES[name][:PER_ROW]):
                try:
                    outcomes[name, number] = is_replayed(name, sample)
                except AssertionError as error:
                    raise AssertionError(f"{name}, sample {number}") from error
    tried = [key for key, found in outcomes.items() if found is not None]
    replayed = [key for key in tried if outcomes[key]]
    assert len(replayed) > 0.5 * len(tried), sorted(set(tried) - set(replayed))


@pytest.mark.parametrize("name", ["add", "exp", "matmul", "sum", "sigmoid", "where", "softmax", "addmm", "clone"])
def test_common_ops(name):
    assert True in [is_replayed(name, sample) for sample in SAMPLES[name]]
