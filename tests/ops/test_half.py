"""Every op in half precision: the dtype is preserved, and values are those of single precision, rounded."""

import re

import numpy as np
import pytest
from ops.calls import SAMPLES, Call, in_memory, is_inexact

import cygrad

KINDS = ["float16", "bfloat16"]
# Errors that PyTorch raises, too.
REFUSED = re.compile(
    "not implemented for|Low precision dtypes not supported|must be either float or double|only supported for half|"
    "only supports float|no complex dtype has|Unsupported dtype|Expected both inputs to be|"
    "[Ee]xpected .*float|handle types other than float and double|Unsupported input type"
)
# Ops whose results depend on the precision, in PyTorch as well.
OTHER_VALUES = {"nextafter", "mvlgamma", "normalize", "unit"}
OTHER_TYPES = {"bincount"}  # single precision is preserved, all other dtypes give double


def rounded(kind, to):
    """A change to a sample's arrays: round to half precision, then convert to `to`."""
    return lambda array: array.astype(kind).astype(to) if array.dtype.kind == "f" else array


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SAMPLES)
def test_half_precision_stays(name, kind, on):
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
    half = getattr(cygrad, kind)
    for sample in SAMPLES[name]:
        arrays = [value for value in sample.args if is_inexact(value)]
        if not arrays or not sample.single or "dtype" in sample.kwargs or any(a.dtype.kind == "c" for a in arrays):
            continue
        try:
            expected = Call(name, sample, rounded(half.numpy, np.float32), on=on).run()
            call = Call(name, sample, rounded(half.numpy, half.numpy), on=on)
            results = call.run()
        except (RuntimeError, NotImplementedError) as error:
            assert REFUSED.search(str(error)), f"{sample}: {error}"
            continue
        for found, wanted in zip(results, expected):
            if isinstance(wanted, cygrad.Tensor):
                check(found, wanted, half, sample, name)
        outputs = [out for out in results if isinstance(out, cygrad.Tensor) and out.requires_grad]
        if outputs and call.leaves:
            grads = call.gradients([cygrad.ones_like(out) for out in outputs], outputs)
            assert all(grad.dtype is leaf.dtype for grad, leaf in zip(grads, call.leaves)), sample


def check(found, wanted, half, sample, name):
    if name in OTHER_TYPES:
        return
    assert found.dtype is (half if wanted.dtype is cygrad.float32 else wanted.dtype), sample
    assert found.shape == wanted.shape
    if wanted.dtype is not cygrad.float32 or name in OTHER_VALUES:
        return
    a, b = in_memory(found).astype(np.float64), in_memory(wanted).astype(np.float64)
    limit = cygrad.finfo(half).max
    known = np.isfinite(b) & (abs(b) < limit)
    np.testing.assert_allclose(a[known], b[known], 0.06, 0.06, err_msg=str(sample))


def changed_views(a):
    """Strided views, and views that are modified in place."""
    x = a * 1
    x[1:3, ::2].mul_(2)
    x.t()[0].add_(x[0, 0])
    x.as_strided((2, 2), (1, 2), 3).mul_(3)
    return x.as_strided((3, 2, 2), (1, 3, 1), 1) * 2


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_strided_views(kind):
    """The geometry is in bytes, and half-precision elements have fewer."""
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
    found = []
    for dtype in (getattr(cygrad, kind), cygrad.float32):
        x = cygrad.arange(12).reshape(4, 3).to(dtype).requires_grad_()
        result = changed_views(x)
        weights = (cygrad.arange(12).reshape(3, 2, 2) % 3).to(dtype)
        (gradient,) = cygrad.autograd.grad(result, x, weights)
        _, tangent = cygrad.func.jvp(changed_views, (x.detach(),), (cygrad.ones(4, 3, dtype=dtype),))
        found.append((gradient.tolist(), tangent.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", [cygrad.float16, cygrad.bfloat16], ids=str)
@pytest.mark.parametrize("lies", [lambda t: t, lambda t: t[::3], lambda t: t.view(3, -1).t(), lambda t: t[5]])
def test_numbers_in_products_and_quotients_are_not_rounded(dtype, lies):
    x = lies(cygrad.linspace(-3, 3, 1500).to(dtype))
    wide = x.float()
    assert cygrad.equal(x * 0.1, (wide * 0.1).to(dtype)) and cygrad.equal(0.1 * x, (wide * 0.1).to(dtype))
    assert cygrad.equal(x / 0.3, (wide / 0.3).to(dtype)) and cygrad.equal(0.3 / x, x.reciprocal() * 0.3)
    assert cygrad.equal(x.clone().mul_(0.1), (wide * 0.1).to(dtype))
    assert cygrad.equal(x.clone().div_(0.3), (wide / 0.3).to(dtype))
    leaf = x.clone().requires_grad_()
    (leaf * 0.1).sum().backward()
    assert cygrad.equal(leaf.grad, cygrad.full_like(x, 0.1))
