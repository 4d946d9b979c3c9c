"""Runs every op on its samples: properties that all ops share, driven by the registry of rows.

Gradients are compared with central differences of the forward pass, second gradients with central differences of the
gradient, all in float64; a complex number counts as two real ones.

With `--device cuda`, everything runs on a GPU or its stand-in and is compared with the results of the CPU, which the
same tests compare with finite differences.
"""

import itertools

import numpy as np
import pytest
from ops.calls import (
    COMPOSITES,
    DIFFERENTIABLE,
    ERRORS,
    SAMPLES,
    Call,
    Cygrad,
    flags_of,
    in_memory,
    inplace_form,
    is_inexact,
    is_internal,
    takes_out,
)

import cygrad
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELEMENTWISE, INPLACE, PRIVATE, registry

STEP = 1e-6


def test_all_have_samples():
    assert [name for name in [*registry, *COMPOSITES] if not SAMPLES.get(name)] == [], "add to tests/ops/samples/"


def test_samples_are_of_something():
    assert [name for name in [*SAMPLES, *ERRORS] if not callable(Cygrad.function(name))] == []


def each_sample(name, on=Cygrad, **limits):
    """The samples of `name` with these attributes; on a GPU, only those whose result is unique."""
    for sample in SAMPLES[name]:
        if all(getattr(sample, key) == value for key, value in limits.items()) and (on is Cygrad or sample.unique):
            yield sample


def assert_near(found, expected, what, tolerance=2e-5):
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        a = in_memory(a) if isinstance(a, cygrad.Tensor) else np.asarray(a)
        b = in_memory(b) if isinstance(b, cygrad.Tensor) else np.asarray(b)
        assert a.shape == b.shape, f"{what} {i}: shape {a.shape}, expected {b.shape}"
        np.testing.assert_allclose(a, b, tolerance, tolerance, err_msg=f"{what} {i}")


# --- Forward -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_forward(name, on):
    for sample in each_sample(name, on):
        if sample.numpy is None:
            continue
        found = Call(name, sample, requires_grad=False, on=on).run()
        with np.errstate(all="ignore"):
            expected = sample.numpy(*sample.args, **sample.kwargs)
        expected = expected if isinstance(expected, (list, tuple)) else (expected,)
        assert_near(found, expected, f"{sample}: result", 1e-6)


@pytest.mark.parametrize("name", [name for name in SAMPLES if not is_internal(name)])
def test_no_result_runs_backwards_through_memory(name, on):
    """PyTorch has no negative strides, and many scripts rely on that."""
    for sample in each_sample(name):
        call = Call(name, sample, on=on)
        outputs = call.outputs()
        grads = call.gradients(call.weights(outputs), outputs) if outputs else []
        for made in [*call.run(), *grads]:
            if isinstance(made, cygrad.Tensor):
                assert min(made.stride(), default=0) >= 0, sample


@pytest.mark.parametrize("name", SAMPLES)
def test_inputs_are_left_alone(name, on):
    for sample in each_sample(name):
        call = Call(name, sample, on=on)
        before = state_of(call)
        outputs = call.outputs()
        if outputs:
            call.gradients(call.weights(outputs), outputs)
        assert state_of(call) == before, sample


def state_of(call):
    """Version, bytes and history of each tensor argument of a call."""
    values = [*call.args, *call.kwargs.values()]
    flat = [x for v in values for x in (v if isinstance(v, (list, tuple)) else (v,))]
    tensors = [x for x in flat if isinstance(x, cygrad.Tensor)]
    return [(t._version, in_memory(t).tobytes(), t.shape, t.grad_fn) for t in tensors]


REFUSALS = (TypeError, ValueError, RuntimeError, IndexError, OverflowError)
# Errors about values, which are not checked on a GPU because that would synchronize; the same in PyTorch
UNSEEN_ON_GPUS = set(
    """
    bernoulli binary_cross_entropy cov cross_entropy div embedding embedding_bag floor_divide gather index_add
    index_copy index_fill index_put index_reduce index_select masked_scatter max_unpool2d multi_margin_loss
    linalg_ldl_solve multilabel_margin_loss nll_loss one_hot poisson put quantile scatter scatter_add scatter_reduce
    searchsorted take take_along_dim
    """.split()
)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_change_nothing(name, on):
    unseen = 0
    for sample in ERRORS[name]:
        call = Call(name, sample, requires_grad=False, on=on)
        before = state_of(call)
        try:
            call.run()
        except REFUSALS:
            pass
        else:
            unseen += 1
        assert state_of(call) == before, sample
    assert bool(unseen) == (on is not Cygrad and name in UNSEEN_ON_GPUS)


@pytest.mark.parametrize("name", SAMPLES)
def test_single_precision_stays(name, on):
    for sample in each_sample(name, on, single=True):
        call, double = Call(name, sample, single, on=on), Call(name, sample, on=on)
        for found, expected in zip(call.run(), double.run()):
            if "dtype" in sample.kwargs or not isinstance(found, cygrad.Tensor):
                continue
            found, expected = in_memory(found), in_memory(expected)
            assert found.dtype == single(expected).dtype, sample
            if is_inexact(found):
                np.testing.assert_allclose(found, expected, 1e-4, 1e-4, err_msg=str(sample))
        outputs = call.outputs()
        if outputs:
            for leaf, grad in zip(call.leaves, call.gradients(call.weights(outputs))):
                assert grad.dtype is leaf.dtype, sample


def single(array):
    return array.astype({"f": np.float32, "c": np.complex64}.get(array.dtype.kind, array.dtype))


# --- Gradients ---------------------------------------------------------------------------------


def project(tensors, weights):
    """Reduce tensors to a real number: the real part of sum(tensor * conj(weight))."""
    pairs = zip(map(array_of, tensors), map(array_of, weights))
    return sum(float(np.sum(a * np.conj(w)).real) for a, w in pairs)


def differences(f, leaves):
    """The gradient of `f()` with respect to the memory of each leaf, by central differences."""
    found = []
    for array in map(array_of, leaves):
        grad = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                at = array[index]
                array[index] = at + unit * STEP
                above = f()
                array[index] = at - unit * STEP
                grad[index] += unit * (above - f()) / (2 * STEP)
                array[index] = at
        found.append(grad)
    return found


# Losses whose node is named after the last of the ops that PyTorch composes them of
NODES_OF_LOSSES = {
    name: {node + "Backward0" for node in ("Mean", "Sum", *last)}
    for name, last in {
        "gaussian_nll_loss": ("Mul", "Add"),
        "hinge_embedding_loss": ("Add",),
        "l1_loss": ("Abs",),
        "margin_ranking_loss": ("ClampMin",),
        "poisson_nll_loss": ("Sub", "Add"),
    }.items()
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_records_its_node(name, on):
    if name == "steps" and on is not Cygrad:
        pytest.skip("nothing is taken by parts on a GPU, whose memory is large")
    for sample in each_sample(name, grad=True):
        call = Call(name, sample, on=on)
        outputs = call.outputs()
        if name in registry:
            assert bool(outputs) == bool(call.leaves), f"{sample}: {len(outputs)} outputs recorded"
            names = {out.grad_fn.name() for out in outputs if out.grad_fn is not None}
            assert names <= {registry[name].node_name} or names <= NODES_OF_LOSSES.get(name, set()), sample


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient(name, on):
    for sample in each_sample(name, on, grad=True, smooth=True):
        on_cpu = None if on is Cygrad else Call(name, sample)
        check_gradient(Call(name, sample, on=on), f"{sample}: gradient", on_cpu)


def check_gradient(call, what, on_cpu=None):
    weights = call.weights(call.outputs())
    if weights:
        if on_cpu is None:
            expected = differences(lambda: project(call.outputs(), weights), call.leaves)
        else:
            expected = on_cpu.gradients(on_cpu.weights(on_cpu.outputs()))
        assert_near(call.gradients(weights), expected, what)


@pytest.mark.parametrize("create_graph", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_of_one_operand_alone(name, create_graph, on):
    """What is saved for a gradient does not depend on which other operands require one."""
    for sample in each_sample(name, grad=True, smooth=True):
        call = Call(name, sample, on=on)
        results = call.run()
        if not all(isinstance(result, cygrad.Tensor) for result in results):
            continue
        weights = call.weights(results)
        for i, leaf in enumerate(call.leaves if len(call.leaves) > 1 else ()):
            expected = derivative(results, weights, leaf)
            for other in call.leaves:
                other.requires_grad_(other is leaf)
            found = derivative(call.run(), weights, leaf, create_graph)
            for other in call.leaves:
                other.requires_grad_()
            assert (found is None) == (expected is None), f"{sample}: operand {i}"
            if found is not None:
                assert_near([found], [expected], f"{sample}: gradient of operand", 1e-9)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float16, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_saved_values_are_unpacked_once(name, dtype, create_graph):
    """A pass calls each unpack hook once per saved value, also for dtypes without a loop. Checkpoints rely on this
    count.
    """
    for sample in each_sample(name, grad=True, smooth=True):
        asked: list[int] = []

        def unpack(packed, asked=asked):
            asked.append(packed[0])
            return packed[1]

        numbers = itertools.count()
        call = Call(name, sample, lambda a: a.astype(dtype) if a.dtype.kind == "f" else a)
        try:
            with cygrad.autograd.graph.saved_tensors_hooks(lambda t, numbers=numbers: (next(numbers), t), unpack):
                outputs = call.outputs()
        except (RuntimeError, NotImplementedError):  # not supported for half precision
            continue
        if outputs:
            call.gradients(call.weights(outputs), outputs, create_graph=create_graph)
            assert len(set(asked)) == len(asked), sample


def derivative(results, weights, leaf, create_graph=False):
    recorded = [(r, w) for r, w in zip(results, weights, strict=True) if getattr(r, "requires_grad", False)]
    if not recorded:
        return None
    outputs, weights = zip(*recorded)
    how = {"retain_graph": True, "create_graph": create_graph, "allow_unused": True}
    return cygrad.autograd.grad(outputs, leaf, weights, **how)[0]


# Each takes a tenth of a second: most are left to `tox -m matrix`.
SECOND = [
    name if place % 3 == 0 else pytest.param(name, marks=pytest.mark.exhaustive)
    for place, name in enumerate(DIFFERENTIABLE)
]


@pytest.mark.parametrize("name", SECOND)
def test_second_gradient(name, on):
    """The gradient of the projected gradient, also with respect to the incoming gradient."""
    for sample in each_sample(name, on, grad=True, smooth=True):
        on_cpu = None if on is Cygrad else Call(name, sample)
        check_second_gradient(Call(name, sample, on=on), f"{sample}: second gradient", on_cpu)


def check_second_gradient(call, what, on_cpu=None):
    incoming, weights = incoming_and_weights(call)
    if incoming:
        if on_cpu is None:
            inputs = [*call.leaves, *incoming]
            expected = differences(lambda: project(call.gradients(incoming), weights), inputs)
        else:
            expected = on_cpu.second_gradients(*incoming_and_weights(on_cpu))
        assert_near(call.second_gradients(incoming, weights), expected, what, 1e-4)


def incoming_and_weights(call):
    return call.weights(call.outputs(), requires_grad=True), call.weights(call.leaves, seed=1)


# --- In place, and with `out` ------------------------------------------------------------------


def test_inplace_forms_are_there():
    names = [name for name, row in registry.items() if row.flags & INPLACE and not row.flags & PRIVATE]
    assert len(names) > 100
    assert [name for name in names if not hasattr(cygrad.Tensor, f"{name}_")] == []


# `bernoulli_` does not read its probabilities from the tensor it overwrites.
WITH_INPLACE = [name for name in SAMPLES if inplace_form(name) and name != "bernoulli"]


@pytest.mark.parametrize("name", WITH_INPLACE)
def test_inplace(name, on):
    """`x.op_(...)` gives x the values of `op(x, ...)`, and the same gradients."""
    tried = 0
    for sample in each_sample(name):
        apart, call = Call(name, sample, on=on), Call(name, sample, on=on)
        if not apart.args or not isinstance(apart.args[0], cygrad.Tensor):
            continue
        expected = apart.run()[0]
        changed = call.args[0].clone()
        if expected.shape != changed.shape or expected.dtype is not changed.dtype:
            continue
        tried += 1
        result = inplace_form(name)(changed, *call.args[1:], **call.kwargs)
        assert result is changed and changed._version == 1
        assert_near([changed], [expected], f"{sample}: in place", 0)
        if expected.requires_grad:
            weights = call.weights([expected])
            found = call.derive([changed], call.leaves, weights)
            wanted = apart.derive([expected], apart.leaves, weights)
            assert_near(found, wanted, f"{sample}: gradient", 0)
    assert tried or not flags_of(name) & INPLACE, "no sample fits the in-place form"


@pytest.mark.parametrize("name", [name for name in SAMPLES if takes_out(name)])
def test_out(name, on):
    for sample in each_sample(name):
        call = Call(name, sample, requires_grad=False, on=on)
        results = call.run()
        if len(results) > 1 or sample.kwargs.get("as_tuple"):
            continue
        out = results[0].clone().fill_(1)
        assert Cygrad.function(name)(*call.args, **call.kwargs, out=out) is out
        assert_near([out], results, f"{sample}: out", 0)


# --- Layouts and shapes ------------------------------------------------------------------------

LAYOUTS = {
    "transposed": lambda a: np.array(a.T, order="C").T,
    "sliced": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "backwards": lambda a: np.array(a[::-1])[::-1] if a.ndim else a,
    "fortran": lambda a: np.asfortranarray(a) if a.ndim > 1 else a,
}
# Those that differ least from others are left to `tox -m matrix`.
TELLING = [None, "transposed", "backwards"]


def layouts(*names):
    """Parameters of tests: the most telling layouts, and the others marked `exhaustive`."""
    return [name if name in TELLING else pytest.param(name, marks=pytest.mark.exhaustive) for name in names]


@pytest.mark.parametrize("layout", layouts(*LAYOUTS))
@pytest.mark.parametrize("name", SAMPLES)
def test_layout_in_memory_does_not_matter(name, layout, on):
    for sample in each_sample(name, any_layout=True):
        plain, strided = Call(name, sample, on=on), Call(name, sample, LAYOUTS[layout], on=on)
        assert_near(strided.run(), plain.run(), f"{sample}: {layout}", 1e-9)
        weights = plain.weights(plain.outputs())
        if weights:
            found, expected = strided.gradients(weights), plain.gradients(weights)
            assert_near(found, expected, f"{sample}: {layout} gradient", 1e-9)


ELEMENTWISE_NAMES = [name for name in SAMPLES if flags_of(name) & ELEMENTWISE]


@pytest.mark.parametrize("layout", layouts(None, *LAYOUTS))
@pytest.mark.parametrize("name", ELEMENTWISE_NAMES)
def test_elementwise_goes_block_by_block(name, layout, monkeypatch):
    """Chunked processing, as for large arrays, gives the same values and, for plain arrays, the same strides."""
    for sample in each_sample(name):
        call = Call(name, sample, LAYOUTS.get(layout))
        whole = call.run()
        with monkeypatch.context() as patch:
            patch.setattr("cygrad._kernels.cpu.base.chunks.SIZE", 3)
            parts = call.run()
        assert_near(parts, whole, f"{sample}: in blocks", 1e-14)
        if layout is None:
            assert [out.stride() for out in parts] == [out.stride() for out in whole]


@pytest.mark.parametrize("shape", [(0,), (2, 0), ()], ids=str)
@pytest.mark.parametrize("name", ELEMENTWISE_NAMES)
def test_elementwise_on_empty_and_0dim(name, shape, on):
    def reshaped(array):
        return np.array(array.reshape(-1)[0]) if shape == () else np.zeros(shape, array.dtype)

    for sample in each_sample(name):
        if any(isinstance(value, np.ndarray) and not value.size for value in sample.args):
            continue
        call = Call(name, sample, reshaped, on=on)
        assert all(out.shape == shape for out in call.run()), sample
        weights = call.weights(call.outputs())
        if weights:
            assert [g.shape for g in call.gradients(weights)] == [shape] * len(call.leaves)


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE_NAMES if not is_internal(name)])
def test_elementwise_broadcasts(name, on):
    """Results and gradients are those of operands expanded explicitly and gradients summed explicitly."""
    for sample in each_sample(name, grad=True):
        operands = [value for value in sample.args if isinstance(value, np.ndarray)]
        if len(operands) < 2 or any(value.size < 2 for value in operands):
            continue
        small = Call(name, sample, Shapes((2, 1), (2,), (1, 2)), on=on)
        large = Call(name, sample, Shapes((2, 1), (2,), (1, 2), expand=(2, 2)), on=on)
        assert_near(small.run(), large.run(), f"{sample}: broadcast", 1e-12)
        weights = small.weights(small.outputs())
        if weights:
            pairs = zip(large.gradients(weights), small.leaves)
            expected = [summed(in_memory(grad), leaf.shape) for grad, leaf in pairs]
            assert_near(small.gradients(weights), expected, f"{sample}: gradient", 1e-9)


class Shapes:
    """Reshapes each array it is called with to the next of these shapes, using two elements."""

    def __init__(self, *shapes, expand=None):
        self.shapes, self.expand = iter(shapes), expand

    def __call__(self, array):
        array = array.reshape(-1)[:2].reshape(next(self.shapes))
        return np.array(array if self.expand is None else np.broadcast_to(array, self.expand))


def summed(array, shape):
    """Sum over the dimensions that broadcasting to `shape` adds or expands."""
    array = array.sum(tuple(range(array.ndim - len(shape))))
    return array.sum(tuple(d for d, n in enumerate(shape) if n == 1), keepdims=True)
