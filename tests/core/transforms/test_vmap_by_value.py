"""vmap of ops that branch on values, where the first sample differs from the others."""

import copy
import sys
import textwrap

import numpy as np
import pytest

import cygrad
from cygrad import func
from cygrad._core.graph.internals import array_of
from cygrad._core.transforms.vmap_levels import Batch

NAN = float("nan")
F = cygrad.nn.functional


def values(*rows):
    return cygrad.tensor(rows, dtype=cygrad.float64)


def attend(mask):
    x = cygrad.arange(6.0).view(3, 2)
    return F.scaled_dot_product_attention(x, x, x, mask)


HALF = [[True, False, True], [True, True, True], [False, False, True]]
ROWS = values([1.0, 2.0, 3.0, 4.0], [4.0, NAN, 2.0, 2.0], [2.0, 2.0, 2.0, NAN])
FOUND_IN_OTHERS = {
    "quantile": (lambda x: cygrad.quantile(x, 0.4), ROWS),
    "nanquantile": (lambda x: cygrad.nanquantile(x, 0.4, 0, interpolation="higher"), ROWS),
    "quantile at others": (lambda q: cygrad.quantile(ROWS[0], q), values([0.1, 0.5], [0.0, 1.0], [0.3, 0.9])),
    "gaussian_nll_loss": (
        lambda var: F.gaussian_nll_loss(ROWS[0, :2], ROWS[0, 2:], var, eps=0.5),
        values([1.0, 2.0], [0.1, 1.0], [0.0, 0.0]),
    ),
    "take_along_dim": (
        lambda i: cygrad.take_along_dim(ROWS[0], i, 0),
        cygrad.tensor([[0, 1], [-1, 2], [4, 5]]),
    ),
    "attention": (attend, cygrad.tensor([[HALF[1]] * 3, HALF, [[False] * 3] * 3])),
    "renorm": (lambda x: x.view(2, 2).renorm(2, 0, 1.0), ROWS / 10),
    "label_smoothing": (
        lambda y: F.cross_entropy(ROWS[:1].expand(3, 4), y, ignore_index=0, label_smoothing=0.3),
        cygrad.tensor([[1, 2, 3], [0, 1, 0], [3, 3, 0]]),
    ),
    "multilabel_margin_loss": (
        lambda y: F.multilabel_margin_loss(ROWS[0], y),
        cygrad.tensor([[1, 2, 3, 0], [-1, 0, 0, 0], [2, -1, 1, 1]]),
    ),
    "embedding": (
        lambda i: F.embedding(i, ROWS[:1].view(2, 2), padding_idx=1, scale_grad_by_freq=True),
        cygrad.tensor([[0, 0], [0, 1], [1, 1]]),
    ),
    "fill of integers": (lambda v: cygrad.fill(cygrad.zeros(2, dtype=cygrad.int64), v), cygrad.tensor([3, 1, 2])),
    "pinv": (lambda tol: cygrad.linalg.pinv(ROWS[0].view(2, 2), atol=tol), values(*[0.0, 1.0, 9.0]).view(3)),
    "matrix_rank": (lambda tol: cygrad.linalg.matrix_rank(ROWS[0].view(2, 2), tol), values(0.0, 1.0, 9.0).view(3)),
    "searchsorted": (
        lambda order: cygrad.searchsorted(ROWS[0].flip(0), ROWS[0], sorter=order),
        cygrad.tensor([[3, 2, 1, 0], [3, 1, 2, 0], [2, 3, 0, 1]]),
    ),
    "isin": (lambda tests: cygrad.isin(ROWS[0], tests, invert=True), ROWS),
    "histc": (lambda x: cygrad.histc(x, 3), ROWS[:1] * cygrad.arange(1, 4, dtype=cygrad.float64)[:, None]),
    "bincount": (lambda i: cygrad.bincount(i, minlength=4), cygrad.tensor([[0, 1], [3, 3], [2, 0]])),
}


@pytest.mark.filterwarnings("error:There is a performance drop")
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", FOUND_IN_OTHERS)
def test_each_sample_is_looked_at(name, depth):
    function, x = FOUND_IN_OTHERS[name]
    expected = cygrad.stack([function(sample) for sample in x])
    if depth == 2:
        x, function = x.unsqueeze(0), func.vmap(function)
        expected = expected.unsqueeze(0)
    np.testing.assert_allclose(array_of(func.vmap(function)(x)), array_of(expected), 1e-7, 1e-12)


def losses(x, weights):
    scores = x.view(2, 2)
    return F.multi_margin_loss(scores, cygrad.tensor([0, 1]), weight=weights, p=2) + F.nll_loss(
        scores, cygrad.tensor([1, 0]), weights
    )


DIFFERENTIATED = {
    "quantile": lambda x: cygrad.quantile(x, 0.4, interpolation="midpoint"),
    "nanquantile": lambda x: cygrad.nanquantile(x, 0.7),
    "renorm": lambda x: x.view(2, 2).renorm(2, 0, 1.0).sum(),
    "masked_scatter": lambda x: cygrad.zeros(4, dtype=x.dtype).masked_scatter(x > 2.5, x * x).dot(x),
    "logcumsumexp": lambda x: x.logcumsumexp(0)[1],
    "remainder": lambda x: cygrad.remainder(x.sum(), x).sum(),
    "losses of classes": lambda x: losses(x, x.detach()[:2]),
}


@pytest.mark.filterwarnings("error:There is a performance drop")
@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_of_samples_unlike_the_first(name):
    function, x = DIFFERENTIATED[name], values([4.0, 1.0, 3.0, 2.0], [1.0, 1.0, 4.0, 1.0], [0.1, 0.2, 0.3, 0.1])
    if name in ("nanquantile", "quantile", "renorm"):
        x[1, 0] = NAN
    slopes = func.grad(function)
    for transformed in (slopes, lambda x: func.jvp(function, (x,), (x * 2,))[1], func.jacrev(slopes)):
        found, expected = func.vmap(transformed)(x), cygrad.stack([transformed(sample) for sample in x])
        np.testing.assert_allclose(array_of(found), array_of(expected), 1e-9, 1e-12)


LARGE = {
    "aminmax": lambda x: cygrad.aminmax(x, dim=0).max,
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(0), 1),
    "cov": cygrad.cov,
    "diff": cygrad.diff,
    "normalize": F.normalize,
    "quantile": lambda x: cygrad.quantile(x, 0.3, 1),
    "trapezoid": cygrad.trapezoid,
}


@pytest.mark.filterwarnings("error:There is a performance drop")
@pytest.mark.parametrize("name", LARGE)
def test_large_samples_are_computed_at_once(name):
    function, x = LARGE[name], cygrad.randn(2, 190, 200, dtype=cygrad.float64)
    expected = cygrad.stack([function(sample) for sample in x])
    np.testing.assert_allclose(array_of(func.vmap(function)(x)), array_of(expected), 1e-9, 1e-9)


@pytest.mark.filterwarnings("error:There is a performance drop")
def test_tensors_that_show_their_memory_otherwise():
    """In-place forms of views, and queries about memory layout only."""

    def turned(x):
        y = x.clone()
        y.transpose_(0, 1).unsqueeze_(0).squeeze_(0).mul_(2)
        y.as_strided_((2, 2), (1, 2), 1)
        return y * y.is_contiguous() + y.t().storage_offset()

    x = cygrad.arange(12.0).view(2, 2, 3)
    expected = [turned(sample).tolist() for sample in x]
    assert func.vmap(turned)(x).tolist() == expected
    assert func.vmap(func.vmap(turned))(x[None]).tolist() == [expected]
    slopes = func.vmap(func.grad(lambda x: (x.clone().t_() @ x).sum()))(x)
    assert slopes.tolist() == [func.grad(lambda x: (x.clone().t_() @ x).sum())(sample).tolist() for sample in x]


def test_places_are_found_one_sample_after_the_other():
    x = cygrad.tensor([[1, 0, 2], [0, 3, 4]])
    with pytest.warns(UserWarning, match="batching rule for aten::argwhere"):
        assert func.vmap(cygrad.argwhere)(x).tolist() == [[[0], [2]], [[1], [2]]]
    with pytest.warns(UserWarning, match="batching rule for aten::nonzero_static"):
        found = func.vmap(lambda x: cygrad.nonzero_static(x, size=3))(x)
    assert found.tolist() == [[[0], [2], [-1]], [[1], [2], [-1]]]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        func.vmap(cygrad.argwhere)(cygrad.tensor([[1, 0], [1, 2]]))


def test_tensors_of_samples():
    """`tensor` copies a batched tensor as a whole and does not read its elements."""
    x = cygrad.tensor([[1, 2], [3, 4]])
    for copied in (cygrad.tensor, x[0].new_tensor, lambda x: cygrad.tensor(x, dtype=cygrad.float32)):
        with pytest.warns(UserWarning, match="To copy construct from a tensor"):
            assert func.vmap(copied)(x).tolist() == [[1, 2], [3, 4]]
    for made in (
        lambda x: cygrad.tensor([x[0], x[1]]),
        lambda x: cygrad.Tensor([x[0], 1]),
        lambda x: cygrad.asarray([[x[0]]]),
    ):
        with pytest.raises(RuntimeError, match="vmap: It looks like you're calling .item"):
            func.vmap(made)(x)
    with pytest.raises(RuntimeError, match="please provide an explicit positive num_classes"):
        func.vmap(F.one_hot)(x)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("read", [cygrad.equal, cygrad.allclose])
def test_what_python_is_told_is_told_of_each_sample(read):
    x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = func.vmap(lambda sample: sample * read(sample, x[1]))(x)  # even if the tensor is used again later
    assert found.tolist() == [[0.0, 0.0], [3.0, 4.0]]


WRITES = {
    "inplace arithmetic": lambda t, x: t.mul_(x),
    "index_put_": lambda t, x: t.index_put_((cygrad.tensor([0]),), x[0]),
    "inplace bernoulli": lambda t, x: t.bernoulli_(x / 2),
    "aten::lerp_": lambda t, x: t.lerp_(x, 0.5),
}


@pytest.mark.parametrize("name", WRITES)
def test_who_writes_into_a_tensor_without_samples_is_named(name):
    where = "at level 1" if "::" in name else "in a vmap"
    wanted = rf"vmap: {name}\(self, .* over {where}. Please try to use out-of-place operators instead of {name}\. If"
    with pytest.raises(RuntimeError, match=wanted):
        func.vmap(lambda x: WRITES[name](cygrad.zeros(2), x))(cygrad.ones(3, 2))


READERS = {
    "data_ptr": lambda x: x.data_ptr(),
    "__deepcopy__": copy.deepcopy,
    "repeat_interleave.Tensor": lambda x: x.repeat_interleave(x.long()),
    "fractional_max_pool2d": lambda x: F.fractional_max_pool2d(
        x.view(1, 2, 2), 1, 1, _random_samples=x.view(1, 2, 2)[:, :1]
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_the_warning_names_what_was_called(name):
    with pytest.warns(UserWarning, match=f"batching rule for aten::{name}[.\n]"):
        func.vmap(lambda x: (READERS[name](x), cygrad.ones(1))[1])(cygrad.ones(2, 4))


def test_a_batched_tensor_is_printed_with_all_samples():
    texts = []
    x = cygrad.arange(4.0).view(2, 2)
    func.vmap(lambda row: (texts.append(repr(row)), row)[1])(x)
    assert texts == [f"BatchedTensor(lvl=1, bdim=0, value=\n{textwrap.indent(repr(x), '    ')}\n)"]
    func.vmap(func.vmap(lambda one: (texts.append(repr(one * 2)), one)[1]))(x)
    inner = f"BatchedTensor(lvl=1, bdim=0, value=\n{textwrap.indent(repr(x * 2), '    ')}\n)"
    assert texts[1:] == [f"BatchedTensor(lvl=2, bdim=0, value=\n{textwrap.indent(inner, '    ')}\n)"]


def test_samples_go_with_their_tensor_at_once():
    """No Python function is involved, which Ctrl-C could interrupt: a later array at that address would inherit the
    samples.
    """
    batch, t, calls = Batch(2), cygrad.zeros(1), []
    batch.set_samples(t, cygrad.zeros(2, 1))
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name) if event == "call" else None)
    del t
    sys.setprofile(None)
    assert calls == [] and not batch._samples
