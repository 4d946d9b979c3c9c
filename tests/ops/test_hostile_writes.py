"""Hostile writes: `out=` and in-place forms of every op on memory that is not writable or that is also read.

Read-only memory, and memory in which elements overlap, is rejected without any change. If an operand shares memory
with the destination, the result is either right or an error.
"""

from functools import partial

import numpy as np
import pytest
from ops.calls import SAMPLES, Call, Cygrad, flags_of, inplace_form, takes_out

import cygrad
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import VIEW

WITH_OUT = [name for name in SAMPLES if takes_out(name)]
IN_PLACE = [name for name in SAMPLES if inplace_form(name)]
PATTERN = 7  # fills memory before it is written
# In-place forms that change only shape and strides
WRITES_NOTHING = {"swapaxes", *(name for name in IN_PLACE if flags_of(name) & VIEW)}
# Ops that write the same value to all elements and may therefore write to expanded memory
SAME_EVERYWHERE = {"fill", "zero", "masked_fill", "masked_fill.Tensor", "index_put", "index_fill", "index_fill.Tensor"}


def read_only(array):
    """A tensor like the array with read-only memory."""
    array = np.array(array)
    array.flags.writeable = False
    return tensor_of(array)


def overlapping(array):
    """A tensor of the same shape and dtype whose elements all share one address."""
    return tensor_of(np.lib.stride_tricks.as_strided(np.array(array.reshape(-1)[:1]), array.shape, (0,) * array.ndim))


def patterned(array):
    """An array like this one with other elements."""
    return np.full(array.shape, PATTERN, array.dtype)


def results_of(call):
    """Copies of the call's results; None if it cannot write into `out`."""
    results = call.run()
    plain = all(isinstance(one, cygrad.Tensor) for one in results)
    return [np.array(array_of(one)) for one in results] if plain and any(one.numel() for one in results) else None


def call_with_out(call, outs):
    return Cygrad.function(call.name)(*call.args, **call.kwargs, out=outs[0] if len(outs) == 1 else tuple(outs))


def cases(name):
    """Yield (call, results) for the first samples whose function accepts `out`."""
    for sample in SAMPLES[name][:3]:
        if "out" in sample.kwargs:
            continue
        call = Call(name, sample, requires_grad=False)
        expected = results_of(call)
        if expected is None:
            continue
        try:
            call_with_out(call, [tensor_of(patterned(array)) for array in expected])
        except (RuntimeError, TypeError, NotImplementedError):  # this form has no out
            continue
        yield Call(name, sample, requires_grad=False), expected


def refused(run, tensors):
    """Whether the call raises; if so, check that no tensor has changed, nor its version."""
    before = [(t._version, np.array(array_of(t))) for t in tensors]
    try:
        run()
    except (RuntimeError, ValueError, TypeError):
        for t, (version, content) in zip(tensors, before):
            assert t._version == version
            np.testing.assert_array_equal(array_of(t), content)
        return True
    return False


# --- out= ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WITH_OUT)
@pytest.mark.parametrize("kind", [read_only, overlapping])
def test_out_that_can_not_be_written(name, kind):
    """This includes the last of several outputs, in which case the others are not written either."""
    for call, expected in cases(name):
        for hostile in range(len(expected)):
            if expected[hostile].size < 2:
                continue
            outs = [
                kind(a) if i == hostile else tensor_of(patterned(a)) for i, a in enumerate(map(patterned, expected))
            ]
            assert refused(partial(call_with_out, call, outs), outs), (hostile, call.args)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WITH_OUT)
def test_out_that_is_read(name):
    """An operand starts at `out`, or one element before or after it."""
    for call, expected in cases(name):
        if len(expected) > 1:
            continue
        (wanted,) = expected
        for i, operand in enumerate(call.args):
            if not isinstance(operand, cygrad.Tensor) or array_of(operand).dtype != wanted.dtype or wanted.size < 2:
                continue
            held = np.array(array_of(operand), order="C")
            alone = [tensor_of(held.copy()) if k == i else arg for k, arg in enumerate(call.args)]
            wanted = array_of(Cygrad.function(name)(*alone, **call.kwargs))  # sums depend on the memory order
            for step in (-1, 0, 1):
                memory = np.full(max(held.size, wanted.size) + 2, PATTERN, held.dtype)
                shifted = memory[1 : 1 + held.size].reshape(held.shape)
                shifted[...] = held
                out = tensor_of(memory[1 + step : 1 + step + wanted.size].reshape(wanted.shape))
                args = [tensor_of(shifted) if k == i else arg for k, arg in enumerate(call.args)]
                run = partial(Cygrad.function(name), *args, **call.kwargs, out=out)
                if not refused(run, [tensor_of(memory)]) and out.shape == wanted.shape:
                    np.testing.assert_array_equal(array_of(out), wanted, err_msg=f"operand {i}, {step} places apart")


# --- In place ------------------------------------------------------------------------------------


def in_place_cases(name):
    """Yield (call, new value of the first operand) for the first samples that the in-place form accepts."""
    form = inplace_form(name)
    for sample in SAMPLES[name][:3]:
        call = Call(name, sample, requires_grad=False)
        if not call.args or not isinstance(call.args[0], cygrad.Tensor) or call.args[0].numel() < 2:
            continue
        try:
            changed = form(call.args[0].clone(), *call.args[1:], **call.kwargs)
        except (RuntimeError, TypeError, NotImplementedError, IndexError):
            continue
        yield call, np.array(array_of(changed))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("kind", [read_only, overlapping])
def test_operand_that_can_not_be_written(name, kind):
    if name in WRITES_NOTHING or kind is overlapping and name in SAME_EVERYWHERE:
        pytest.skip("as PyTorch's")
    for call, _ in in_place_cases(name):
        x = kind(array_of(call.args[0]))
        assert refused(partial(inplace_form(name), x, *call.args[1:], **call.kwargs), [x]), call.args


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IN_PLACE)
def test_operand_that_is_read_elsewhere(name):
    """Another operand starts one element before or after the first, or at it."""
    for call, _ in in_place_cases(name):
        first = array_of(call.args[0])
        for i, operand in enumerate(call.args[1:], 1):
            if not isinstance(operand, cygrad.Tensor) or array_of(operand).dtype != first.dtype:
                continue
            held = np.array(array_of(operand), order="C")
            alone = [tensor_of(held.copy()) if k == i else arg for k, arg in enumerate(call.args)]
            wanted = array_of(Cygrad.function(name)(*alone, **call.kwargs))  # sums depend on the memory order
            for step in (-1, 0, 1):
                memory = np.full(max(held.size, first.size) + 2, PATTERN, held.dtype)
                memory[1 : 1 + held.size] = held.reshape(-1)
                memory[1 + step : 1 + step + first.size] = first.reshape(-1)
                x = tensor_of(memory[1 + step : 1 + step + first.size].reshape(first.shape))
                other = tensor_of(memory[1 : 1 + held.size].reshape(held.shape))
                args = [other if k == i else arg for k, arg in enumerate(call.args)][1:]
                apart = [other.clone() if k == i else arg for k, arg in enumerate(call.args)][1:]
                try:
                    wanted = array_of(inplace_form(name)(x.clone(), *apart, **call.kwargs))
                except (RuntimeError, ValueError, IndexError):
                    continue
                if not refused(partial(inplace_form(name), x, *args, **call.kwargs), [tensor_of(memory)]):
                    np.testing.assert_array_equal(array_of(x), wanted, err_msg=f"operand {i}, {step} places apart")
