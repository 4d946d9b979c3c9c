"""vmap of every op on its samples, against a loop over the batch."""

import functools

import numpy as np
import pytest
from ops.calls import DIFFERENTIABLE, SAMPLES, Cygrad, in_memory, is_inexact, replace
from ops.test_generic import WITH_INPLACE, inplace_form

import cygrad
from cygrad import func
from cygrad._core.graph.internals import array_of
from cygrad._core.transforms.vmap_levels import NoBatchingRule

SIZE = 3
# Ops whose result has a different shape for each sample, which PyTorch rejects
UNKNOWN_SHAPE = ["argwhere", "masked_select", "nonzero", "nonzero_static", "unique", "unique_consecutive"]
UNKNOWN_SHAPE += ["where.indices"]
RANDOM = ["bernoulli", "binomial", "fractional_max_pool2d_with_indices", "fractional_max_pool3d_with_indices"]
RANDOM += ["multinomial", "poisson", "rrelu"]
# Ops for which `another` yields no valid sample: offsets that do not ascend from 0, matrices that are no longer
# singular, losses that do not match the outputs
OTHER_KIND = ["_grouped_mm", "_grouped_mm.ends", "ctc_loss_backward", "embedding_bag", "linalg_cond", "linalg_inv_ex"]
# Internal nodes for large tensors, which are never created in a batch
WITHOUT_LEVELS = ["both_extrema", "gram", "linear_steps", "stacked_grids", "steps", "summed_products", "unit"]
WITHOUT_LEVELS += ["windowed_spectra"]
NAMES = [name for name in SAMPLES if name not in UNKNOWN_SHAPE + RANDOM + OTHER_KIND + WITHOUT_LEVELS]
MAY_BE_MASKS = ["index", "index_backward", "index_put"]
# Ops that loop over the samples, at least for some arguments: their results are Python objects, random, or of variable
# length, or they read their arguments in Python
IN_A_LOOP = ["allclose", "ctc_loss", "ctc_loss.reduced", "equal", "lobpcg", "repeat_interleave"]
# Strides that leave the sample
IN_A_LOOP += ["strided_gather", "strided_scatter", "strided_sum"]


def named(names):
    """Test parameters, each the name of an op; falling back to a loop over the samples is an error unless expected."""
    ignored = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
    return [pytest.param(name, marks=ignored) if name in IN_A_LOOP else name for name in names]


def another(array, i):
    """Another sample of the same kind: numbers of similar range, order and sign."""
    if is_inexact(array):
        return np.where(np.isfinite(array), array, 0).astype(array.dtype) * np.asarray(1 - 0.06 * i, array.dtype)
    return np.roll(array.reshape(-1), i).reshape(array.shape)


class Batched:
    """A sample of an op as a function of its tensors, with a batch for each of them."""

    def __init__(self, name, sample, on=Cygrad):
        self.name, self.sample, self.arrays = name, sample, []
        self._filled(self.arrays.append)
        self.batches = [on.tensor(np.stack([another(a, i) for i in range(SIZE)])) for a in self.arrays]

    def _filled(self, new):
        args = [replace(value, new) for value in self.sample.args]
        return args, {key: replace(value, new) for key, value in self.sample.kwargs.items()}

    def run(self, *tensors):
        """Return the results that are tensors."""
        tensors = iter(tensors)
        args, kwargs = self._filled(lambda _: next(tensors))
        return _tensors_in(Cygrad.function(self.name)(*args, **kwargs))

    def run_and_go_on(self, *tensors):
        """The same, followed by another use of the tensors, which must not hide that their values were read."""
        found = self.run(*tensors)
        for t in tensors:
            t.clone()
        return found

    def run_in_place(self, first, *tensors):
        changed, tensors = first.clone(), iter((None, *tensors))
        args, kwargs = self._filled(lambda _: next(tensors))
        inplace_form(self.name)(changed, *args[1:], **kwargs)
        return (changed,)

    def gradients(self, *tensors, places=None):
        """The gradients of the sum of squares of all results for the tensors at these places, or for all."""
        places = places or [i for i, array in enumerate(self.arrays) if is_inexact(array)]

        def energies(*chosen):
            given = list(tensors)
            for place, t in zip(places, chosen, strict=True):
                given[place] = t
            found = tuple((out * out.conj()).real for out in self.run(*given) if out.requires_grad)
            return found or (cygrad.zeros(()),)  # a constant if no result has a gradient

        outs, product = func.vjp(energies, *[tensors[place] for place in places])
        return product(tuple(out.new_ones(out.shape) for out in outs))

    def tangents(self, *tensors):
        """The tangents of all results along the input tensors themselves."""
        places = [i for i, array in enumerate(self.arrays) if is_inexact(array)]

        def results(*chosen):
            given = list(tensors)
            for place, t in zip(places, chosen, strict=True):
                given[place] = t
            found = tuple(out for out in self.run(*given) if out.is_floating_point() or out.is_complex())
            return found or (cygrad.zeros(()),)

        given = tuple(tensors[place] for place in places)
        return func.jvp(results, given, given)[1]

    def ways(self):
        """Yield (batch dimension of each tensor or None, inputs) for each way to batch."""
        count = len(self.arrays)
        yield (0,) * count, self.batches
        if count > 1:
            yield from map(self.way, range(count))

    def way(self, place):
        """The way in which only one tensor is batched."""
        dims = tuple(0 if i == place else None for i in range(len(self.arrays)))
        return dims, [b if d == 0 else b[0] for b, d in zip(self.batches, dims, strict=True)]


def _tensors_in(value):
    if isinstance(value, (list, tuple)):
        return tuple(t for item in value for t in _tensors_in(item))
    return (value,) if isinstance(value, cygrad.Tensor) else ()


def check(function, case, ways=None):
    """Compare `vmap` of a function with a loop, for each way to batch its inputs."""
    for dims, inputs in ways or case.ways():
        rows = [function(*[x if d is None else x[i] for x, d in zip(inputs, dims, strict=True)]) for i in range(SIZE)]
        if any(len({part.shape for part in column}) > 1 for column in zip(*rows, strict=True)):
            return  # the result's shape depends on the values
        found = cygrad.vmap(function, in_dims=dims)(*inputs)
        for f, column in zip(found, zip(*rows, strict=True), strict=True):
            expected, what = cygrad.stack(column), f"{case.sample} {dims}"
            assert (f.shape, f.dtype) == (expected.shape, expected.dtype), what
            np.testing.assert_allclose(in_memory(f), in_memory(expected), 1e-6, 1e-9, err_msg=what)


def cases(name, on):
    found = [Batched(name, sample, on) for sample in SAMPLES[name]]
    if name in MAY_BE_MASKS:
        found = [case for case in found if not any(array.dtype == bool for array in case.arrays)]
    if name.startswith("as_strided"):  # an explicit offset counts from the base, so it differs in a loop
        found = [case for case in found if len(case.sample.args) < 4 + name.endswith("scatter")]
    if name == "one_hot":  # needs an explicit number of classes
        found = [case for case in found if case.sample.args[1:] not in ((), (-1,)) or case.sample.kwargs]
    if name == "linalg_solve_ex":  # the others are singular, so their solutions are meaningless
        found = [case for case in found if case.sample.grad]
    if on is not Cygrad:  # batched GPU functions may return other signs, and other results for singular matrices
        found = [case for case in found if case.sample.unique and case.sample.oracle_grad]
    return [case for case in found if case.arrays]


@pytest.mark.parametrize("name", named(NAMES))
def test_vmap(name, on):
    if name == "max_unpool2d" and on is not Cygrad:
        pytest.skip("of several values for one place, any is written on a GPU")
    for case in cases(name, on):
        check(case.run_and_go_on, case)


@pytest.mark.parametrize("name", named(name for name in NAMES if name in DIFFERENTIABLE))
def test_gradients_of_samples(name, on):
    if name == "max_unpool2d" and on is not Cygrad:
        pytest.skip("of several values for one place, any is written on a GPU")
    for case in cases(name, on):
        if case.sample.grad and case.sample.smooth and any(map(is_inexact, case.arrays)):
            check(case.gradients, case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", named(name for name in NAMES if name in DIFFERENTIABLE))
def test_tangents_of_samples(name, on):
    for case in cases(name, on):
        if case.sample.grad and case.sample.smooth and any(map(is_inexact, case.arrays)):
            check(case.tangents, case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", named(name for name in NAMES if name in DIFFERENTIABLE))
def test_gradient_of_the_one_input_with_samples(name, on):
    """With only one batched input, nothing batched may be treated as the same for all samples."""
    for case in cases(name, on):
        for place, array in enumerate(case.arrays):
            if len(case.arrays) > 1 and is_inexact(array) and case.sample.grad and case.sample.smooth:
                check(functools.partial(case.gradients, places=[place]), case, [case.way(place)])


@pytest.mark.parametrize("name", named(name for name in WITH_INPLACE if name in NAMES))
def test_vmap_of_inplace(name, on):
    for case in cases(name, on):
        first = case.arrays[0]
        result = case.run(*map(on.tensor, case.arrays))[0]
        if case.sample.args[0] is not first or result.shape != first.shape or in_memory(result).dtype != first.dtype:
            continue
        for dims, inputs in case.ways():
            if dims[0] == 0:
                rows = [
                    case.run_in_place(*[x if d is None else x[i] for x, d in zip(inputs, dims, strict=True)])[0]
                    for i in range(SIZE)
                ]
                found = cygrad.vmap(case.run_in_place, in_dims=dims)(*inputs)[0]
                np.testing.assert_allclose(in_memory(found), in_memory(cygrad.stack(rows)), 1e-6, 1e-9)


def normalized(x, mean, variance, weight):
    return cygrad.nn.functional.batch_norm(x, mean, variance, weight)


def losses(log_probs):
    targets = cygrad.tensor([[1, 2], [2, 2]])
    return cygrad.nn.functional.ctc_loss(log_probs, targets, (4, 3), (2, 1), reduction="none")


def recurrent(x, h, w, v):
    return cygrad.gru(x, h, [w, v], False, 1, 0.0, False, False, False)


def _with_a_part_doubled(x):
    y = x * 1
    y.as_strided((2,), (4,)).mul_(2)
    return y


def values(*shape):
    return cygrad.randn(*shape, dtype=cygrad.float64)


SITUATIONS = {
    "statistics of all": (normalized, (0, None, None, None), (values(3, 5, 2, 4), *values(2, 2).exp(), values(2))),
    "statistics of each": (normalized, (None, 0, 0, 0), (values(5, 2, 4), *values(3, 3, 2).exp().unbind(1))),
    "ctc": (losses, (0,), (values(3, 4, 2, 3).log_softmax(-1),)),
    "ctc, not the first dimension": (losses, (2,), (values(4, 2, 3, 3).log_softmax(-1),)),
    "recurrent": (
        recurrent,
        (0, 0, None, None),
        (values(3, 4, 2, 5), values(3, 1, 2, 6), values(18, 5), values(18, 6)),
    ),
    "recurrent, with own weights": (
        recurrent,
        (0, None, 0, None),
        (values(3, 4, 2, 5), values(1, 2, 6), values(3, 18, 5), values(18, 6)),
    ),
    "strides of a contiguous sample": (lambda x: x.as_strided((2, 3), (3, 1)).sin(), (0,), (values(3, 8),)),
    "changing what strides show": (_with_a_part_doubled, (0,), (values(3, 8),)),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_in_one_call(name, monkeypatch):
    """As in a loop, but with a single call of the function; likewise for the gradients outside."""
    function, dims, inputs = SITUATIONS[name]
    monkeypatch.setattr("cygrad.func._batching._one_by_one", _refuse)
    inputs = [x.clone() for x in inputs]
    wanted = [x.requires_grad_() for i, x in enumerate(inputs) if i not in (1, 2) or "statistics" not in name]
    samples = [[x if d is None else x.select(d, i) for x, d in zip(inputs, dims, strict=True)] for i in range(3)]
    rows = [_tensors_in(function(*sample)) for sample in samples]
    found = _tensors_in(cygrad.vmap(function, in_dims=dims)(*inputs))
    expected = [cygrad.stack(column) for column in zip(*rows, strict=True)]
    gradients = [cygrad.autograd.grad(sum(t.square().sum() for t in outs), wanted) for outs in (found, expected)]
    for f, e in zip([*found, *gradients[0]], [*expected, *gradients[1]], strict=True):
        np.testing.assert_allclose(f.detach().numpy(), e.detach().numpy(), 1e-9, 1e-12)


@pytest.mark.parametrize("depth", [1, 2])
def test_gradient_of_ctc_in_one_call(depth, monkeypatch):
    slopes = func.grad(lambda x: losses(x).dot(cygrad.tensor([2.0, 3.0], dtype=x.dtype)))
    x = values(2, 3, 4, 2, 3).log_softmax(-1)
    expected = cygrad.stack([cygrad.stack([slopes(row) for row in rows]) for rows in x])
    monkeypatch.setattr("cygrad.func._batching._one_by_one", _refuse)
    if depth == 2:
        found = cygrad.vmap(cygrad.vmap(slopes))(x)
    else:
        found = cygrad.vmap(slopes)(x.flatten(0, 1)).view(x.shape)
    np.testing.assert_allclose(array_of(found), array_of(expected), 1e-12)


def test_what_is_shown_by_strides_lies_in_the_sample():
    x = cygrad.arange(24.0).reshape(2, 12)
    found = cygrad.vmap(lambda x: x.as_strided((2, 2), (1, 2), 3))(x)
    assert found.tolist() == [[[3, 5], [4, 6]], [[15, 17], [16, 18]]]  # as in PyTorch


def test_statistics_of_all_are_not_changed_by_each():
    mean, variance = cygrad.zeros(4), cygrad.ones(4)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input while the running_mean or runn"):
        cygrad.vmap(lambda x: cygrad.nn.functional.batch_norm(x, mean, variance, training=True))(cygrad.ones(3, 2, 4))
    assert mean.tolist() == [0] * 4


@pytest.mark.parametrize("shape", [(3, 5, 4), (5, 4), (3, 2, 4, 6)])
@pytest.mark.parametrize("momentum", [0.1, 0.5])
def test_statistics_of_each_sample_are_changed_by_it(shape, momentum):
    x = cygrad.randn(shape, generator=cygrad.Generator().manual_seed(0))
    dim = 0 if len(shape) != 2 else None
    means, variances = cygrad.arange(12.0).view(4, 3).t(), cygrad.ones(3, 4)
    expected_means, expected_variances = means.clone(), variances.clone()

    def normalized(x, mean, variance):
        return cygrad.nn.functional.batch_norm(x, mean, variance, training=True, momentum=momentum)

    samples = [x] * 3 if dim is None else x
    expected = [normalized(*each) for each in zip(samples, expected_means, expected_variances)]
    found = cygrad.vmap(normalized, in_dims=(dim, 0, 0))(x, means, variances)
    assert cygrad.allclose(found, cygrad.stack(expected), atol=1e-6)
    assert cygrad.allclose(means, expected_means) and cygrad.allclose(variances, expected_variances)


def test_statistics_of_each_sample_in_two_batches():
    x = cygrad.randn(2, 3, 5, 4, generator=cygrad.Generator().manual_seed(0))
    means, variances = cygrad.zeros(2, 3, 4), cygrad.ones(2, 3, 4)

    def normalized(x, mean, variance):
        return cygrad.nn.functional.batch_norm(x, mean, variance, training=True)

    cygrad.vmap(cygrad.vmap(normalized))(x, means, variances)
    assert cygrad.allclose(means, 0.1 * x.mean(2)) and cygrad.allclose(variances, 0.9 + 0.1 * x.var(2))


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("dims", [(0, 0, 0, 0), (None, 0, 0, None), (None, 0, None, None), (0, None, None, 0)])
def test_gradients_with_statistics_of_each_sample(place, dims):
    inputs = [values(3, 5, 2, 4), values(3, 2), values(3, 2).exp(), values(3, 2)]
    given = [x if d == 0 else x[0] for x, d in zip(inputs, dims, strict=True)]
    gradient = func.grad(lambda *given: normalized(*given).square().sum(), argnums=place)
    expected = [gradient(*[x[i] if d == 0 else x for x, d in zip(given, dims, strict=True)]) for i in range(3)]
    assert cygrad.allclose(cygrad.vmap(gradient, in_dims=dims)(*given), cygrad.stack(expected))


def test_a_gradient_has_the_statistics_of_its_forward_pass():
    means, variances, ones = values(3, 2), values(3, 2).exp(), values(5, 2) * 0 + 1

    def gradient(mean, variance):
        weight = cygrad.ones(2, dtype=cygrad.float64)
        out, product = func.vjp(lambda weight: normalized(ones, mean, variance, weight), weight)
        mean.add_(1)
        return product(out.new_ones(out.shape))[0]

    expected = 5 * (1 - means) * (variances + 1e-5).rsqrt()
    assert cygrad.allclose(cygrad.vmap(gradient)(means, variances), expected)


def _refuse(*args):
    raise AssertionError("called once for each sample")


# Functions whose gradients differ if elements are equal, 0 or large
BY_VALUE = {
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "amax": lambda x: x.amax(),
    "median": lambda x: x.median(),
    "prod": lambda x: x.prod(),
    "prod.dim_int": lambda x: x.prod(0),
    "cumprod": lambda x: x.cumprod(0).sum(),
    "scatter_reduce": lambda x: x.scatter_reduce(0, cygrad.tensor([1, 1, 0]), x, "prod").sum(),
    "det": lambda x: func.vmap(lambda a: a * x)(x).det(),
    "renorm": lambda x: x.reshape(-1, 1).renorm(2, 0, 1.5).sum(),
    "cosine_similarity": lambda x: cygrad.cosine_similarity(x, x.flip(0), 0),
    "norm": lambda x: x.norm(float("inf")) + x.norm(3),
}
SAMPLES_APART = [[1.0, 2.0, 3.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, -1.0]]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", BY_VALUE)
def test_samples_of_other_values_have_their_own_gradients(name, turned):
    x = cygrad.tensor(SAMPLES_APART[::-1] if turned else SAMPLES_APART, dtype=cygrad.float64)
    function = BY_VALUE[name]
    directions = cygrad.ones(3, dtype=cygrad.float64)

    def tangent(sample):
        return func.jvp(function, (sample,), (directions,))[1]

    for transformed in (func.grad(function), tangent, func.jacrev(func.grad(function))):
        found = func.vmap(transformed)(x)
        expected = cygrad.stack([transformed(sample) for sample in x])
        np.testing.assert_allclose(array_of(found), array_of(expected), 1e-12, 1e-12)


def test_unknown_shapes_are_refused():
    x = cygrad.tensor([[1.0, 0.0], [2.0, 3.0]])
    for function in (cygrad.nonzero, cygrad.unique, lambda x: x[x > 0], lambda x: cygrad.masked_select(x, x > 0)):
        with pytest.raises(RuntimeError, match="vmap: We do not support batching operators that can .* dynamic shape"):
            cygrad.vmap(function)(x)


def test_a_mask_of_all_samples_gives_one_shape(monkeypatch):
    monkeypatch.setattr("cygrad.func._batching._one_by_one", _refuse)
    mask = cygrad.tensor([True, False, True])
    x = cygrad.arange(6.0).view(2, 3).requires_grad_()
    found = cygrad.vmap(lambda x: x.masked_select(mask))(x)
    assert found.tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert cygrad.autograd.grad(found.sum(), x)[0].tolist() == [[1.0, 0.0, 1.0]] * 2
    assert cygrad.vmap(lambda x: x.masked_select(mask))(x[0].detach()).tolist() == [[0.0] * 2, [1.0] * 2, [2.0] * 2]


def test_missing_rule_names_the_op():
    assert "aten::some_op" in str(NoBatchingRule("some_op"))


@pytest.mark.parametrize("dtype", [cygrad.int64, cygrad.float32, cygrad.float64])
def test_views_as_another_dtype_have_the_bits_of_each_sample(dtype):
    x = cygrad.randn(3, 2, 4, dtype=cygrad.float64)
    expected = cygrad.stack([each.view(dtype) for each in x])
    assert cygrad.vmap(lambda t: t.view(dtype))(x).equal(expected)
    assert cygrad.vmap(cygrad.vmap(lambda t: t.view(dtype)))(x).equal(expected)

    def through_the_view(t):
        copy = t.clone()
        copy.view(dtype).zero_()
        return copy

    assert not cygrad.vmap(through_the_view)(x).any()
