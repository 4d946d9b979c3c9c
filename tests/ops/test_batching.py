"""vmap of every op, on its samples, against a loop over the batch."""

import numpy as np
import pytest
from ops.calls import DIFFERENTIABLE, SAMPLES, Cygrad, is_inexact, replace
from ops.test_generic import WITH_INPLACE, inplace_form

import cygrad
from cygrad import func
from cygrad._core.access import array_of, tensor_of
from cygrad._core.batches import NoBatchingRule

SIZE = 3
# What is of another shape for each sample, which PyTorch refuses
UNKNOWN_SHAPE = ["argwhere", "masked_select", "nonzero", "nonzero_static", "unique", "unique_consecutive"]
UNKNOWN_SHAPE += ["where.indices"]
RANDOM = ["bernoulli", "binomial", "fractional_max_pool2d_with_indices", "fractional_max_pool3d_with_indices"]
RANDOM += ["multinomial", "poisson", "rrelu"]
# Where `another` makes no sample of the kind (offsets that do not begin with 0, matrices that are singular no longer),
# and private ops that take indices as arrays
OTHER_KIND = ["embedding_bag", "linalg_cond", "linalg_inv_ex", "add_columns", "take_columns"]
NAMES = [name for name in SAMPLES if name not in UNKNOWN_SHAPE + RANDOM + OTHER_KIND]
MAY_BE_MASKS = ["index", "index_backward", "index_put"]
WITHOUT_WARNING = """
    abs add addmm amax baddbmm batch_norm bmm cat clamp clone conv1d conv2d conv_transpose2d cos cross_entropy cumsum
    det diagonal div dot einsum embedding exp expand fft flip gather gelu group_norm index index_add index_put
    index_select layer_norm linalg_eigh linalg_inv linalg_norm linear log_softmax logsumexp masked_fill matmul maximum
    mean mm mse_loss mul mv nll_loss outer permute pow relu repeat reshape scaled_dot_product_attention scatter_add
    attention_by_blocks cross_entropy_of_softmax
    select sigmoid slice softmax split sqrt stack std sub sum tanh transpose tril unbind unsqueeze var view where
""".split()

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")


def another(array, i):
    """Another sample of the same kind: numbers of the same range, order and sign."""
    if is_inexact(array):
        return np.where(np.isfinite(array), array, 0).astype(array.dtype) * np.asarray(1 - 0.06 * i, array.dtype)
    return np.roll(array.reshape(-1), i).reshape(array.shape)


class Batched:
    """A sample of an op as a function of its tensors, and a batch for each of them."""

    def __init__(self, name, sample):
        self.name, self.sample, self.arrays = name, sample, []
        self._filled(self.arrays.append)
        self.batches = [tensor_of(np.stack([another(a, i) for i in range(SIZE)])) for a in self.arrays]

    def _filled(self, new):
        args = [replace(value, new) for value in self.sample.args]
        return args, {key: replace(value, new) for key, value in self.sample.kwargs.items()}

    def run(self, *tensors):
        """The results that are tensors."""
        tensors = iter(tensors)
        args, kwargs = self._filled(lambda _: next(tensors))
        return _tensors_in(Cygrad.function(self.name)(*args, **kwargs))

    def run_in_place(self, first, *tensors):
        changed, tensors = first.clone(), iter((None, *tensors))
        args, kwargs = self._filled(lambda _: next(tensors))
        inplace_form(self.name)(changed, *args[1:], **kwargs)
        return (changed,)

    def gradients(self, *tensors):
        """The gradients of the sums of squares of all results for the tensors that can have one."""
        places = [i for i, array in enumerate(self.arrays) if is_inexact(array)]

        def energies(*chosen):
            given = list(tensors)
            for place, t in zip(places, chosen, strict=True):
                given[place] = t
            return tuple((out * out.conj()).real for out in self.run(*given) if out.requires_grad)

        outs, product = func.vjp(energies, *[tensors[place] for place in places])
        return product(tuple(out.new_ones(out.shape) for out in outs))

    def ways(self):
        """For each way to batch: along which dimension each tensor has its samples, or None; and the inputs."""
        count = len(self.arrays)
        ways = [(0,) * count]
        if count > 1:
            ways += [tuple(0 if i == j else None for j in range(count)) for i in range(count)]
        for dims in ways:
            yield dims, [b if d == 0 else b[0] for b, d in zip(self.batches, dims, strict=True)]


def _tensors_in(value):
    if isinstance(value, (list, tuple)):
        return tuple(t for item in value for t in _tensors_in(item))
    return (value,) if isinstance(value, cygrad.Tensor) else ()


def check(function, case):
    """`vmap` of a function against a loop, for each way to batch its inputs."""
    for dims, inputs in case.ways():
        rows = [function(*[x if d is None else x[i] for x, d in zip(inputs, dims, strict=True)]) for i in range(SIZE)]
        if any(len({part.shape for part in column}) > 1 for column in zip(*rows, strict=True)):
            return  # the shape of the result depends on the values
        found = cygrad.vmap(function, in_dims=dims)(*inputs)
        for f, column in zip(found, zip(*rows, strict=True), strict=True):
            expected, what = cygrad.stack(column), f"{case.sample} {dims}"
            assert (f.shape, f.dtype) == (expected.shape, expected.dtype), what
            np.testing.assert_allclose(array_of(f), array_of(expected), 1e-6, 1e-9, err_msg=what)


def cases(name):
    found = [Batched(name, sample) for sample in SAMPLES[name]]
    if name in MAY_BE_MASKS:
        found = [case for case in found if not any(array.dtype == bool for array in case.arrays)]
    return [case for case in found if case.arrays]


@pytest.mark.parametrize("name", NAMES)
def test_vmap(name):
    for case in cases(name):
        check(case.run, case)


@pytest.mark.parametrize("name", [name for name in NAMES if name in DIFFERENTIABLE])
def test_gradients_of_samples(name):
    for case in cases(name):
        if case.sample.grad and case.sample.smooth and any(map(is_inexact, case.arrays)):
            check(case.gradients, case)


@pytest.mark.parametrize("name", [name for name in WITH_INPLACE if name in NAMES])
def test_vmap_of_inplace(name):
    for case in cases(name):
        first = case.arrays[0]
        result = Batched(name, case.sample).run(*map(tensor_of, case.arrays))[0]
        if case.sample.args[0] is not first or result.shape != first.shape or array_of(result).dtype != first.dtype:
            continue
        for dims, inputs in case.ways():
            if dims[0] == 0:
                rows = [
                    case.run_in_place(*[x if d is None else x[i] for x, d in zip(inputs, dims, strict=True)])[0]
                    for i in range(SIZE)
                ]
                found = cygrad.vmap(case.run_in_place, in_dims=dims)(*inputs)[0]
                np.testing.assert_allclose(array_of(found), array_of(cygrad.stack(rows)), 1e-6, 1e-9)


@pytest.mark.parametrize("name", WITHOUT_WARNING)
def test_has_a_rule(name):
    """The first sample, and the gradients there, without the loop over samples."""
    case = cases(name)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cygrad.func.batching._one_by_one", _refuse)
        check(case.run, case)
        check(case.gradients, case)


def _refuse(*args):
    raise AssertionError("called once for each sample")


def test_unknown_shapes_are_refused():
    x = cygrad.tensor([[1.0, 0.0], [2.0, 3.0]])
    for function in (cygrad.nonzero, cygrad.unique, lambda x: x[x > 0], lambda x: cygrad.masked_select(x, x > 0)):
        with pytest.raises(RuntimeError, match="vmap: We do not support batching operators that can .* dynamic shape"):
            cygrad.vmap(function)(x)


def test_missing_rule_names_the_op():
    assert "aten::some_op" in str(NoBatchingRule("some_op"))
