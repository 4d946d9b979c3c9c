"""Every op under a mode of `__torch_dispatch__` that calls it anew: same results, same gradients."""

import numpy as np
import pytest
from ops.calls import SAMPLES, Call, in_memory, is_internal

import cygrad
from cygrad.utils._python_dispatch import TorchDispatchMode
from cygrad.utils._pytree import tree_map

RANDOM = """alpha_dropout bernoulli binomial dropout feature_dropout gumbel_softmax multinomial normal poisson rand
randint randn randperm rrelu
as_strided_copy""".split()  # the last reads memory beside that of its operand, which copies of the operand do not have


class Anew(TorchDispatchMode):
    """Calls each op with other tensor objects, so that what was computed cannot be handed over."""

    def __init__(self):
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func)
        kwargs = kwargs or {}
        if func._opname.endswith("_") or "out" in kwargs or not getattr(func, "runs_anew", True):
            return func(*args, **kwargs)
        args, kwargs = tree_map(lambda t: t.detach() if isinstance(t, cygrad.Tensor) else t, (args, kwargs))
        return func(*args, **kwargs)


def derived(call, outputs):
    weights = [cygrad.ones_like(out).detach() for out in outputs]
    return call.derive(outputs, call.leaves, weights)


def check(found, expected):
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, cygrad.Tensor) and not b.is_sparse:
            assert a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
            arrays = [in_memory(t.detach().resolve_conj().resolve_neg()) for t in (a, b)]
            np.testing.assert_allclose(*arrays, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in RANDOM and not is_internal(name)])
def test_ops_are_what_they_are_shown_as(name):
    for sample in SAMPLES[name][:3]:
        try:
            expected = Call(name, sample).run()
        except Exception:  # samples of errors, and those that are only for other devices
            continue
        call = Call(name, sample)
        with Anew() as mode:
            found = call.run()
        check(found, expected)
        outputs = [out for out in found if getattr(out, "requires_grad", False)]
        if outputs and call.leaves:
            plain = Call(name, sample)
            with Anew():
                gradients = derived(call, outputs)
            check(gradients, derived(plain, plain.outputs()))
        assert all(str(func).count(".") == 2 for func in mode.ops)


def test_most_ops_run_anew():
    missing = []
    for name in SAMPLES:
        if name not in RANDOM and not is_internal(name):
            try:
                with Anew() as mode:
                    Call(name, SAMPLES[name][0], requires_grad=False).run()
            except Exception:
                continue
            if any(not getattr(func, "runs_anew", True) for func in mode.ops):
                missing.append(name)
    assert len(missing) < 95, missing
