"""Sums of half precision: every op that adds up many terms does so in at least float32, and rounds once.

In its own type a sum of ones stops growing at 2048 in float16, and at 256 in bfloat16. Expected is what the same call
gives in float64, for operands rounded to half precision; `sums.py` has the calls.
"""

import numpy as np
import pytest
from ops.calls import COMPOSITES, SAMPLES, Call, flags_of, in_memory, is_inexact, is_internal
from ops.sums import NO_SUMS, Sum, cases
from ops.test_half import REFUSED, rounded

import cygrad
from cygrad._core.graph.opdef import ELEMENTWISE, VIEW, registry

HALVES = {"float16": 2.0**-24, "bfloat16": 1e-37}  # the smallest numbers
NAMES = list(cases(16, 0.25))
FEW, MANY = (5000, 1.0), (70000, 0.25)


def results(call, v, operand, on):
    """Return the results and gradients of a call in float64; `operand` makes a tensor of an array of float64."""
    tensors = [operand(a) if a.dtype.kind == "f" else on.tensor(a) for a in map(np.asarray, call.operands)]
    leaves = [t.requires_grad_() for t in tensors if t.is_floating_point() and call.grad]
    found = call.function(*tensors)
    outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    made = [out for out in outputs if out.requires_grad]
    if made:
        given = [cygrad.full_like(out, v if call.gradient is None else call.gradient) for out in made]
        outputs += [g for g in cygrad.autograd.grad(made, leaves, given, allow_unused=True) if g is not None]
    return [in_memory(out.detach()).astype(np.float64) for out in outputs]


def check(call, v, kind, on):
    half = getattr(cygrad, kind)
    found = results(call, v, lambda a: on.tensor(a.astype(half.numpy)), on)
    expected = results(call, v, lambda a: on.tensor(a.astype(half.numpy).astype(np.float64)), on)
    for a, b in zip(found, expected, strict=True):
        unit = np.maximum(abs(b) * cygrad.finfo(half).eps, HALVES[kind])
        with np.errstate(invalid="ignore"):
            is_near = (abs(a - b) <= call.units * unit) | (a == b) | (np.isinf(a) & (abs(b) > cygrad.finfo(half).max))
        assert is_near.all(), (a[~is_near][:3], b[~is_near][:3])


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("name", NAMES)
def test_thousands_of_terms(name, kind, on):
    pytest.importorskip("ml_dtypes")
    for call in cases(*FEW)[name]:
        check(call, FEW[1], kind, on)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("name", NAMES)
def test_more_terms_than_float16_counts(name, kind, on):
    pytest.importorskip("ml_dtypes")
    for call in cases(*MANY)[name]:
        if call.most >= MANY[0]:
            check(call, MANY[1], kind, on)


TIES = ("max", "min", "aminmax", "median", "nanmedian", "amax", "amin", "linalg_vector_norm", "nanmean", "nll_loss")


@pytest.mark.parametrize("name", TIES)
def test_counts_beyond_float16(name, on):
    """70000 equal elements, or rows, share the gradient; float16 ends at 65504."""
    for call in cases(*MANY)[name]:
        check(call, MANY[1], "float16", on)


def elements(name):
    """Return two calls of an elementwise op, with one element each of the first and of the second operand repeated."""
    for sample in SAMPLES[name]:
        arrays = [a for a in sample.args if is_inexact(a)]
        if len(arrays) > 1 and sample.smooth and sample.grad and all(a.size and a.dtype.kind == "f" for a in arrays):
            break
    else:
        return []
    calls = []
    for i in range(len(arrays)):
        single = iter(np.full(1 if k == i else 300, a.flat[0]) for k, a in enumerate(arrays))
        calls.append([next(single) if is_inexact(a) else a for a in sample.args])
    return [(arguments, sample.kwargs) for arguments in calls]


def takes_half(name):
    """Whether a function takes a sample with real operands in half precision."""
    for sample in SAMPLES[name]:
        flat = [v for value in sample.args for v in (value if isinstance(value, (list, tuple)) else [value])]
        kinds = {v.dtype.kind for v in flat if is_inexact(v)}
        if kinds == {"f"}:
            try:
                Call(name, sample, rounded(np.float16, np.float16)).run()
            except (RuntimeError, NotImplementedError, TypeError) as error:
                assert REFUSED.search(str(error)) or "unsupported in linalg" in str(error), name
            else:
                return True
    return False


def has_pairs(name):
    """Whether this is an elementwise op of several operands whose gradients are sums if one of them broadcasts."""
    row = registry[name]
    return row.flags & ELEMENTWISE and row.differentiable and not is_internal(name) and name not in NAMES


PAIRS = [name for name in registry if has_pairs(name) and elements(name) and takes_half(name)]


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("name", PAIRS)
def test_gradients_of_broadcast_operands(name, kind, on):
    pytest.importorskip("ml_dtypes")
    for arguments, kwargs in elements(name):
        places = [i for i, a in enumerate(arguments) if is_inexact(a)]

        def function(*tensors, arguments=arguments, places=places, kwargs=kwargs):
            given = list(arguments)
            for i, t in zip(places, tensors):
                given[i] = t
            given = [on.tensor(a) if isinstance(a, np.ndarray) else a for a in given]
            return on.function(name)(*given, **kwargs)

        check(Sum(function, *(arguments[i] for i in places), units=12, gradient=1 / 256), 1.0, kind, on)


def test_no_op_is_forgotten():
    """An op of half precision has a call in `sums.py`, or stands there with what it does instead."""
    known = [name for names in NO_SUMS.values() for name in names.split()]
    assert len(known) == len(set(known)) and not set(known) & set(NAMES)
    names = [*registry, *COMPOSITES]
    assert not set(known) - set(names) and not set(NAMES) - set(names) - set(SAMPLES)
    by_elements = [name for name in names if flags_of(name) & (ELEMENTWISE | VIEW)]
    left = set(names) - set(known) - set(NAMES) - set(by_elements)
    assert not [name for name in sorted(left) if takes_half(name)]
