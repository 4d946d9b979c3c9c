"""Every op on the device "meta": results and gradients have the shapes and dtypes of the CPU, and nothing is computed.

The samples are those of the generic tests. The fallback that runs a kernel on small arrays in memory is off, so that an
op that passes here works for operands of any size.
"""

import subprocess
import sys

import numpy as np
import pytest
from ops.calls import DIFFERENTIABLE, SAMPLES, Call, Cygrad

import cygrad
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._kernels.device import cupy_library
from cygrad._kernels.meta import running

# The shape of the result, or the result itself, depends on elements
OF_VALUES = set(
    """
    allclose argwhere bincount cpu equal linalg_lstsq lobpcg masked_select nonzero one_hot repeat_interleave unique
    unique_consecutive where.indices
    """.split()
)


class OnMeta(Cygrad):
    """Runs samples on the device "meta"."""

    @staticmethod
    def array(tensor):
        array = array_of(tensor)
        return array if isinstance(array, np.ndarray) else np.zeros(array.shape, array.dtype)

    @staticmethod
    def tensor(array):
        forwards = None if min(array.strides, default=0) < 0 else array.strides
        return tensor_of(cupy_library.meta().ndarray(array.shape, array.dtype, None, forwards))


@pytest.fixture(autouse=True)
def nothing_is_computed(monkeypatch):
    monkeypatch.setattr(running.limits, "elements", -1)


def is_refused(error):
    """Whether this is PyTorch's error for an op that needs elements."""
    text = str(error).partition("\n")[0]
    return isinstance(error, (NotImplementedError, RuntimeError)) and (
        "meta tensor" in text.lower() or "The register_meta function" in text
    )


def check(found, expected, sample):
    assert len(found) == len(expected), sample
    for own, other in zip(found, expected):
        if isinstance(other, cygrad.Tensor) and own is not None:
            assert own.is_meta, sample
            assert (own.shape, own.dtype) == (other.shape, other.dtype), sample


@pytest.mark.parametrize("name", SAMPLES)
def test_shape_and_dtype(name):
    refused = 0
    for sample in SAMPLES[name]:
        call = Call(name, sample, on=OnMeta)
        if not call.takes_tensors:
            continue
        expected = Call(name, sample).run()
        try:
            found = call.run()
        except (NotImplementedError, RuntimeError) as error:
            assert name in OF_VALUES or (name == "index" and has_mask(sample)), sample
            assert is_refused(error), error
            refused += 1
        else:
            check(found, expected, sample)
    assert bool(refused) == (name in OF_VALUES or name == "index")


def has_mask(sample):
    """Whether an index of a sample is a mask."""
    found = [value for given in sample.args for value in (given if isinstance(given, (tuple, list)) else (given,))]
    return any(isinstance(value, np.ndarray) and value.dtype.kind in "b" for value in found) or any(
        isinstance(value, np.ndarray) and value.dtype == np.uint8 for value in found
    )


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name not in OF_VALUES])
def test_gradients(name):
    for sample in SAMPLES[name]:
        call = Call(name, sample)
        outputs = call.outputs()
        if not outputs or (name.startswith("index") and has_mask(sample)):
            continue
        how = {"allow_unused": True}
        expected = cygrad.autograd.grad(outputs, call.leaves, [cygrad.ones_like(out) for out in outputs], **how)
        call = Call(name, sample, on=OnMeta)
        outputs = call.outputs()
        found = cygrad.autograd.grad(outputs, call.leaves, [cygrad.ones_like(out) for out in outputs], **how)
        check(found, expected, sample)


OF_ZEROS = "cumprod index_reduce linalg_det linalg_vander prod prod.dim_int renorm scatter_reduce vander".split()


@pytest.mark.parametrize("name", [name for name in OF_ZEROS if name in SAMPLES])
def test_second_gradients_of_rules_that_look_for_zeros(name):
    for sample in SAMPLES[name]:
        call = Call(name, sample, on=OnMeta)
        outputs = [out for out in call.outputs() if out.is_floating_point()]
        if not outputs or not call.leaves:
            continue
        grads = cygrad.autograd.grad(
            outputs, call.leaves, [cygrad.ones_like(out) for out in outputs], create_graph=True, allow_unused=True
        )
        recorded = [g for g in grads if g is not None and g.requires_grad]
        if recorded:
            ones = [cygrad.ones_like(g) for g in recorded]
            for leaf, second in zip(call.leaves, cygrad.autograd.grad(recorded, call.leaves, ones, allow_unused=True)):
                assert second is None or (second.is_meta and second.shape == leaf.shape), sample


def test_operands_of_any_size():
    a = cygrad.empty(10**6, 10**6, device="meta")
    assert (a @ a.t()).relu_().softmax(1).sum(0, keepdim=True).shape == (1, 10**6)
    assert cygrad.linalg.qr(a).R.shape == a.shape
    assert cygrad.topk(a, 5).indices.shape == (10**6, 5)
    assert cygrad.fft.rfft(a).dtype is cygrad.complex64
    assert a[:, None, ::2].expand(-1, 3, -1).reshape(-1).shape == (15 * 10**11,)


@pytest.mark.parametrize("takes", [cygrad.mul, cygrad.matmul, cygrad.nn.functional.mse_loss])
@pytest.mark.parametrize("first", ["cpu", "meta"])
def test_operands_on_meta_and_elsewhere(takes, first):
    operands = [cygrad.eye(3, device=device) for device in (first, "cpu" if first == "meta" else "meta")]
    with pytest.raises(RuntimeError, match="^Tensor on device .* is not on the expected device"):
        takes(*operands)


@pytest.mark.parametrize("name", ["clamp", "isclose", "_foreach_clamp_min", "maximum"])
def test_shapes_that_do_not_broadcast(name):
    x, y = cygrad.ones(10, 10, device="meta"), cygrad.ones(11, 11, device="meta")
    with pytest.raises(RuntimeError, match=r"^The size of tensor a \(10\) must match the size of tensor b \(11\)"):
        getattr(cygrad, name)(*([x], [y]) if name.startswith("_foreach") else (x, y))


def test_transforms():
    x = cygrad.empty(2, 3, device="meta")
    assert cygrad.vmap(lambda x: x.sum())(x).shape == (2,)
    for jacobian in (cygrad.func.jacrev, cygrad.func.jacfwd):
        found = jacobian(cygrad.sin)(x)
        assert found.is_meta and found.shape == (2, 3, 2, 3)


def test_a_gradient_on_another_device_is_refused():
    with pytest.raises(RuntimeError, match="gradient with device type 'cpu' to a tensor with device type 'meta'"):
        cygrad.empty(2, device="meta", requires_grad=True).grad = cygrad.ones(2)


def test_assert_close_compares_what_is_known():
    cygrad.testing.assert_close(cygrad.empty(2, device="meta"), cygrad.empty(2, device="meta"))
    with pytest.raises(AssertionError, match="'shape' do not match"):
        cygrad.testing.assert_close(cygrad.empty(2, device="meta"), cygrad.empty(3, device="meta"))


@pytest.mark.parametrize(
    "first", ["rand(2)", "randint(3, (2,))", "randperm(2)", "empty(2)", "tensor([1, 2])", "arange(2)"]
)
def test_any_function_may_be_the_first_to_make_such_a_tensor(first):
    code = f"import cygrad as torch\nwith torch.device('meta'):\n    x = torch.{first}\nprint((1 - x).shape)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "torch.Size([2])\n", run.stderr
