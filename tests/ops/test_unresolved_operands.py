"""Every op on tensors whose memory holds the conjugates, or the negatives, of their elements: as on ordinary ones."""

import numpy as np
import pytest
from ops.calls import SAMPLES, Call, Cygrad, inplace_form, is_inexact, takes_out

import cygrad
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._kernels.device.unresolved import opposite

# They show the bytes in memory, which are not those of the elements; and `is_neg` tells the difference.
APART = {"view_as_real", "view_as_real_copy", "view_as_complex", "view_as_complex_copy", "is_conj", "is_neg"}


class Opposite(Cygrad):
    """Runs samples on tensors that show their memory conjugated or negated."""

    @staticmethod
    def tensor(array):
        array = np.asarray(array)
        return seen_in_opposite(array) if is_inexact(array) else tensor_of(array)


def seen_in_opposite(array):
    return tensor_of(opposite(np.asarray(np.conjugate(array) if array.dtype.kind == "c" else np.negative(array))))


def assert_same(found, expected, what):
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        a, b = (array_of(x) if isinstance(x, cygrad.Tensor) else np.asarray(x) for x in (a, b))
        assert a.shape == b.shape and a.dtype == b.dtype, f"{what} {i}"
        np.testing.assert_allclose(a, b, 1e-9, 1e-9, err_msg=f"{what} {i}")


def both(name):
    """Return (sample, the call on ordinary tensors, the call on unresolved ones) for each sample with such operands."""
    for sample in SAMPLES[name]:
        cygrad.manual_seed(0)
        plain, call = Call(name, sample), Call(name, sample, on=Opposite)
        values = [*call.args, *call.kwargs.values()]
        flat = [x for v in values for x in (v if isinstance(v, (list, tuple)) else (v,))]
        if any(isinstance(x, cygrad.Tensor) and (x.is_conj() or x.is_neg()) for x in flat):
            yield sample, plain, call


def run(call):
    cygrad.manual_seed(0)
    return call.run()


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in APART])
def test_results_and_gradients(name):
    for sample, plain, call in both(name):
        if not sample.unique:
            continue
        expected, found = run(plain), run(call)
        assert_same(found, expected, f"{sample}: result")
        wanted = [x for x in expected if getattr(x, "requires_grad", False)]
        if wanted:
            outputs = [x for x in found if getattr(x, "requires_grad", False)]
            weights, others = plain.weights(wanted), call.weights(wanted)
            assert_same(call.gradients(others, outputs), plain.gradients(weights, wanted), f"{sample}: gradient")


@pytest.mark.parametrize("name", [name for name in SAMPLES if inplace_form(name) and name != "bernoulli"])
def test_in_place(name):
    """`x.conj().op_()` changes x so that its conjugate is the result of `op`, and so do its gradients."""
    for sample, plain, call in both(name):
        if not plain.args or not isinstance(plain.args[0], cygrad.Tensor):
            continue
        x = plain.args[0]
        expected = run(plain)[0]
        if expected.shape != x.shape or expected.dtype is not x.dtype or not (x.is_complex() or x.is_floating_point()):
            continue
        base = call.args[0].clone()
        if x.is_complex():
            base = base.conj_physical()
            changed = base.conj()
        else:
            base = cygrad.complex(cygrad.zeros_like(base), -base)
            changed = base.conj().imag
        cygrad.manual_seed(0)
        result = inplace_form(name)(changed, *call.args[1:], **call.kwargs)
        assert result is changed and changed._version == base._version == 1 and changed._base is base
        seen = base.conj_physical() if x.is_complex() else -base.imag
        assert_same([changed, seen], [expected, expected], f"{sample}: in place")
        if expected.requires_grad and sample.unique:
            weights = call.weights([expected])
            wanted = plain.derive([expected], plain.leaves, plain.weights([expected]))
            assert_same(call.derive([changed], call.leaves, weights), wanted, f"{sample}: gradient")


@pytest.mark.parametrize("name", [name for name in SAMPLES if takes_out(name)])
def test_out(name):
    for sample in SAMPLES[name]:
        call = Call(name, sample, requires_grad=False)
        results = run(call)
        if len(results) > 1 or sample.kwargs.get("as_tuple") or not is_inexact(array_of(results[0])):
            continue
        base = results[0].clone().fill_(1)
        out = seen_in_opposite(array_of(base)) if not base.is_complex() else base.conj()
        cygrad.manual_seed(0)
        assert Cygrad.function(name)(*call.args, **call.kwargs, out=out) is out
        assert_same([out], results, f"{sample}: out")
        if base.is_complex():
            assert_same([base.conj_physical()], results, f"{sample}: base")
