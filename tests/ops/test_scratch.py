"""No op allocates more than results, saved tensors and bounded scratch memory, except for those listed in memory.py.

The arrays of a sample of each row are repeated until they are large, and the call, its backward pass and its in-place
form run under tracemalloc, which also tracks NumPy's memory.
"""

import gc
import os
import tracemalloc
from functools import partial

import numpy as np
import pytest
from ops.calls import COMPOSITES, DIFFERENTIABLE, SAMPLES, Call, flags_of, inplace_form, is_internal
from ops.memory import BACKWARDS, FORWARDS

import cygrad
from cygrad._core.graph.opdef import ELEMENTWISE

PURE = bool(os.environ.get("CYGRAD_PURE"))
SIZE = 1 << 19  # elements of the largest operand: 2 MB in single precision
MEDIUM = 1 << 17  # for comparing results instead of memory
BLOCK = 1 << 14  # elements of a chunk in these tests
SCRATCH = 2 * SIZE + 1024  # bytes: half of a single-precision operand, plus Python objects for arrays

# Not made large: ops that need a NumPy call per image, sequence or part, and products that are as long as wide
LEFT_OUT = {
    *("ctc_loss", "ctc_loss.reduced", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"),
    *("split_copy", "unbind_copy", "unsafe_split", "linear_cross_entropy", "pinverse"),
}
PUBLIC = [name for name in SAMPLES if not is_internal(name) and name not in LEFT_OUT]

# In-place forms that copy their result into the operand, and why
IS_COPIED = {
    **dict.fromkeys(
        ("bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"),
        "integers: an element may be refused, so that nothing is written before all are computed",
    ),
    "baddbmm": "elements depend on other places",
    "renorm": "the same",
    **dict.fromkeys(
        ("index_reduce", "masked_scatter", "put"),
        "an index may be refused, and the operand may be what is read",
    ),
    **dict.fromkeys(("scatter_reduce", "scatter_reduce.sum"), "the same"),
}


def along_last(array, k, largest):
    return np.repeat(array, k, -1) if array.ndim else array


def along_first(array, k, largest):
    return np.repeat(array, k, 0) if array.ndim else array


def largest_alone(array, k, largest):
    return along_first(array, k, largest) if array.size == largest else array


# Ways to enlarge the arrays of a sample; in ops that are not elementwise, the work should grow as the operands do
WAYS = {True: (along_last, along_first), False: (largest_alone, along_first, along_last)}


def single(array):
    return array.astype({"f": np.float32, "c": np.complex64}.get(array.dtype.kind, array.dtype))


def arrays_of(call):
    values = (v for value in (*call.args, *call.kwargs.values()) for v in (value if type(value) is list else (value,)))
    return [value for value in values if isinstance(value, np.ndarray)]


def large_call(name, sample, ways=None, layout=np.asarray, size=SIZE):
    """The sample with operands of `size` elements, or None if repeating cannot enlarge it."""
    largest = max((array.size for array in arrays_of(sample)), default=0)

    def repeated(way, k):
        return Call(name, sample, lambda a: layout(single(way(np.asarray(a), k, largest))))

    ways = ways or WAYS[bool(flags_of(name) & ELEMENTWISE)]
    for way in ways if largest else ():
        try:
            few, more = (repeated(way, k).run() for k in (8, 16))
            sizes = [sum(out.numel() for out in outs) for outs in (few, more)]
        except (RuntimeError, IndexError, ValueError, TypeError, AttributeError, AssertionError):
            continue
        if sizes[1] <= 2 * sizes[0] and len(few) == len(more):
            return repeated(way, -(-size // largest))
    return None


def call_with_leaves(name, sample, **how):
    """The same for samples whose result has a gradient, otherwise None."""
    call = large_call(name, sample, **how) if sample.grad else None
    return call if call is not None and call.leaves and call.outputs() else None


def scratch(run):
    """The peak of allocated bytes minus those still held at the end."""
    gc.collect()
    tracemalloc.start()
    result = run()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return peak - held


def in_place_call(name, sample):
    """A function without arguments that runs the in-place form on a copy, or None if the result does not fit."""
    form, call = inplace_form(name), large_call(name, sample, WAYS[True])
    if form is None or call is None or not isinstance(call.args[0], cygrad.Tensor):
        return None
    copy = call.args[0].detach().clone()
    result = call.run()[0]
    if result.shape != copy.shape or result.dtype is not copy.dtype:
        return None
    with_same = [copy, *(a.detach() if isinstance(a, cygrad.Tensor) else a for a in call.args[1:])]
    return lambda: form(*with_same, **call.kwargs)


def first(make, name):
    """The first result of `make`, trying samples with the most dimensions (batches, images) first."""
    samples = sorted(SAMPLES[name], key=lambda sample: -max((a.ndim for a in arrays_of(sample)), default=0))
    return next(filter(None, (make(name, sample) for sample in samples)), None)


# What takes memory is seen in large arrays alone, which take long to fill.
pytestmark = pytest.mark.exhaustive
in_loops = pytest.mark.skipif(PURE, reason="NumPy's calls in place of loops take more")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("cygrad._kernels.cpu.base.chunks.SIZE", BLOCK)
    monkeypatch.setattr("cygrad._core.engine.blocked_gradients.SIZE", BLOCK)
    monkeypatch.setattr("cygrad._kernels.cpu.image.window_geometry.SCRATCH", 4 * BLOCK)


def unit(call, results):
    """The size in bytes of the largest operand or result."""
    tensors = [t for t in (*call.args, *call.kwargs.values(), *results) if isinstance(t, cygrad.Tensor)]
    return max(t.numel() * t.element_size() for t in tensors)


def check(name, used, one, exceptions):
    """Check that usage stays within the common limit or the op's own, and that the op's exception is still needed."""
    most, why = exceptions.get(name, (0, ""))
    assert used <= max(SCRATCH, 1.02 * most * one), why
    assert used > SCRATCH or not why, "is no exception any more"


@in_loops
@pytest.mark.parametrize("name", PUBLIC)
def test_forward(name):
    call = first(large_call, name)
    if call is None:
        pytest.skip("no sample of this op can be made large")
    used = scratch(call.run)
    check(name, used, unit(call, call.run()), FORWARDS)


@in_loops
@pytest.mark.parametrize("name", [name for name in PUBLIC if name in DIFFERENTIABLE])
def test_backward(name):
    call = first(call_with_leaves, name)
    if call is None:
        pytest.skip("no sample of this op that has a gradient can be made large")
    outputs = call.outputs()
    weights = call.weights(outputs)
    grad = partial(cygrad.autograd.grad, allow_unused=True, retain_graph=True)
    check(name, scratch(lambda: grad(outputs, call.leaves, weights)), unit(call, outputs), BACKWARDS)


@in_loops
@pytest.mark.parametrize("name", [name for name in SAMPLES if inplace_form(name)])
@cygrad.no_grad()
def test_in_place(name):
    """The in-place form writes directly into the operand, without a temporary."""
    run = first(in_place_call, name)
    if run is None:
        pytest.skip("no sample of this op can be made large")
    assert (scratch(run) > SCRATCH) == (name in IS_COPIED), IS_COPIED.get(name)


# Cases that the first samples do not cover: other orders of norms, leading dimensions, masks
FURTHER = {
    "norm": lambda x: x.norm(3),
    "norm of columns": lambda x: x.norm(2, 0),
    "largest": lambda x: x.norm(float("inf"), 1),
    "count": lambda x: cygrad.linalg.vector_norm(x, 0),
    "var of columns": lambda x: x.var(0),
    "logsumexp of all": lambda x: x.logsumexp((0, 1)),
    "gradient by a mask": lambda x: cygrad.autograd.grad((y := x.detach().requires_grad_())[y > 0.5].sum(), y),
    "gradient of norms": lambda x: cygrad.autograd.grad((y := x.detach().requires_grad_()).norm(3, 0).sum(), y),
    "gradient of cumprod": lambda x: cygrad.autograd.grad((y := x.detach().requires_grad_()).cumprod(0).sum(), y),
}


@in_loops
@pytest.mark.parametrize("what", FURTHER)
def test_further(what, monkeypatch):
    x = cygrad.linspace(0.1, 0.9, SIZE).view(-1, 64)
    used = scratch(lambda: FURTHER[what](x))
    whole = as_a_whole(monkeypatch, FURTHER[what], x)
    assert used <= (SCRATCH if "gradient" not in what else 3 * SCRATCH)
    assert_close(*([found] if isinstance(found, cygrad.Tensor) else found for found in (FURTHER[what](x), whole)))


@in_loops
def test_gradient_of_a_window_alone():
    """The signal's gradient, which is not requested, is not computed."""
    window = cygrad.hann_window(8).requires_grad_()
    spectra = cygrad.stft(cygrad.ones(2 * SIZE), 8, window=window, return_complex=True)
    weights = cygrad.ones_like(spectra)
    assert scratch(lambda: cygrad.autograd.grad(spectra, window, weights, retain_graph=True)) <= SCRATCH


# --- Gradients that are computed in chunks -----------------------------------------------------


def as_a_whole(monkeypatch, function, *args, **kwargs):
    with monkeypatch.context() as whole:
        whole.setattr("cygrad._kernels.cpu.base.chunks.SIZE", 1 << 60)
        whole.setattr("cygrad._core.engine.blocked_gradients.SIZE", 1 << 60)
        return function(*args, **kwargs)


NAIVE = 30 if PURE else 1  # NumPy sums columns of single precision sequentially, so sums of chunks are more accurate


def assert_close(found, expected, times=1):
    for a, b in zip(found, expected, strict=True):
        a, b = (x.detach().resolve_conj().resolve_neg().numpy() for x in (a, b))
        atol = NAIVE * times * 2e-6 * np.abs(b[np.isfinite(b)]).max(initial=0)
        np.testing.assert_allclose(a, b, rtol=NAIVE * 1e-5, atol=atol)


CANCELLING = {"rnn_tanh": 20}  # sums over all steps have terms hundreds of times as large that cancel


@pytest.mark.parametrize("name", PUBLIC)
def test_results_in_parts(name, monkeypatch):
    """Chunked results equal unchunked ones."""
    call = first(partial(large_call, size=MEDIUM), name)
    if call is None:
        pytest.skip("no sample of this op can be made large")
    assert_close(call.run(), as_a_whole(monkeypatch, call.run))


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray])
@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name in PUBLIC or flags_of(name) & ELEMENTWISE])
def test_gradients_in_parts(name, layout, monkeypatch):
    """Chunked gradients equal unchunked ones, whether or not the incoming gradient is shared."""
    call = first(partial(call_with_leaves, layout=layout, size=MEDIUM), name)
    if call is None:
        pytest.skip("no sample of this op that has a gradient can be made large")
    results = call.outputs()
    weights = call.weights(results)
    for outputs in (results, [result * 1.0 for result in results]):
        found = call.gradients(weights, outputs, retain_graph=True)
        whole = as_a_whole(monkeypatch, call.gradients, weights, outputs, retain_graph=True)
        assert_close(found, whole, CANCELLING.get(name, 1))


@pytest.mark.parametrize("name", [name for name in COMPOSITES if name in PUBLIC])
def test_steps_that_take_memory(name, monkeypatch):
    """Reusing the memory of earlier steps, as for large arrays, does not change results or second derivatives."""
    calls = (Call(name, sample) for sample in SAMPLES[name])
    call = next((call for call in calls if call.leaves and call.outputs()), None)
    if call is None:
        pytest.skip("no sample of this op has a gradient")
    found = []
    for large, part in ((0, 2), (1 << 60, 1 << 60)):
        monkeypatch.setattr("cygrad._core.engine.blocked_gradients.LARGE", large)
        monkeypatch.setattr("cygrad._core.engine.blocked_gradients.SIZE", part)
        monkeypatch.setattr("cygrad._kernels.cpu.base.chunks.SIZE", part)
        cygrad.manual_seed(0)
        outputs = call.outputs()
        weights = call.weights(outputs)
        plain = call.gradients(weights, outputs, retain_graph=True)
        grads = call.gradients(weights, outputs, create_graph=True)
        second = [grad.abs().sum() for grad in grads if grad.requires_grad]
        found.append(
            [*outputs, *plain, *grads, *(call.derive(second, call.leaves, call.weights(second)) if second else ())]
        )
    assert_close(*found)


# --- Chunked writes ----------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
def test_operands_that_share_memory(turned):
    """An operand elsewhere in the destination's memory is read before it is overwritten."""
    operands = [
        lambda x, memory: x,
        lambda x, memory: memory[1:2].expand(x.shape),
    ]
    for operand in operands:
        memory = cygrad.linspace(0.1, 0.9, 4 * BLOCK, dtype=cygrad.float64)
        x = memory.view(2, -1).t() if turned else memory
        end = operand(x, memory)
        expected = cygrad.lerp(x.clone(), end.clone(), 0.25)
        assert x.lerp_(end, 0.25).equal(expected)


def test_gradient_of_a_large_write():
    x = cygrad.linspace(0.1, 0.9, 3 * BLOCK + 5, dtype=cygrad.float64, requires_grad=True)
    y = x * 2
    y.sinc_()
    expected = cygrad.sinc(x * 2)
    assert y.equal(expected) and y._version == 1
    (found,) = cygrad.autograd.grad(y.sum(), x)
    assert found.equal(cygrad.autograd.grad(expected.sum(), x)[0])


def test_types_are_converted_block_by_block():
    x = cygrad.linspace(0.1, 0.9, 3 * BLOCK, dtype=cygrad.float64)
    out = cygrad.empty(3 * BLOCK, dtype=cygrad.float32)
    assert cygrad.sinc(x, out=out) is out and out.equal(cygrad.sinc(x).float())
    with pytest.raises(RuntimeError, match="can't be cast"):
        cygrad.sinc(x, out=cygrad.empty(3 * BLOCK, dtype=cygrad.int64))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        cygrad.ones(1, dtype=cygrad.float64).lerp_(x, 0.5)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_write_counts(error, monkeypatch):
    """A half-written tensor must not be used as a saved tensor."""
    x = cygrad.linspace(0.1, 0.9, 4 * BLOCK, dtype=cygrad.float64, requires_grad=True)
    y = x * 2
    z = y.exp() * y
    copyto, calls = np.copyto, []

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise error
        copyto(*args, **kwargs)

    monkeypatch.setattr("cygrad._kernels.cpu.base.chunks.np.copyto", interrupted)
    with pytest.raises(error):
        y.sinc_()
    monkeypatch.undo()
    assert len(calls) == 3 and y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_a_function_is_linear_in_may_change():
    """Parts of a linear operand belong to nodes that do not save them, so it may change; saved tensors are still
    checked.
    """
    spectra = cygrad.linspace(0.1, 0.9, 5 * BLOCK, dtype=cygrad.complex64).view(-1, 5, 8).requires_grad_()
    window = cygrad.ones(8)
    signal = cygrad.istft(t := spectra * 1, 8, window=window)
    t.zero_()
    (found,) = cygrad.autograd.grad(signal.sum(), spectra, retain_graph=True)
    (expected,) = cygrad.autograd.grad(sum(cygrad.istft(s, 8, window=window).sum() for s in spectra), spectra)
    assert_close([found], [expected])
    window.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        signal.sum().backward()
