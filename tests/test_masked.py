"""Reductions and normalizations with masks; `tests/oracle/ops/test_masked.py` compares them with PyTorch."""

import math

import pytest

import cygrad as torch
from cygrad import masked
from helpers import fails

X = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]
KEPT = [[True, False, True], [True, True, False]]


@pytest.fixture
def x():
    return torch.tensor(X, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def kept():
    return torch.tensor(KEPT)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("sum", [4, 9]),
        ("prod", [3, 20]),
        ("amax", [3, 5]),
        ("amin", [1, 4]),
        ("argmax", [2, 1]),
        ("argmin", [0, 0]),
        ("mean", [2, 4.5]),
        ("median", [1, 4]),
        ("var", [2, 0.5]),
        ("std", [math.sqrt(2), math.sqrt(0.5)]),
        ("logsumexp", [math.log(math.exp(1) + math.exp(3)), math.log(math.exp(4) + math.exp(5))]),
    ],
)
def test_only_what_is_kept_counts(x, kept, name, wanted):
    found = getattr(masked, name)(x, 1, mask=kept)
    assert found.tolist() == pytest.approx(wanted)
    other = torch.where(kept, x, 1e3)
    assert getattr(masked, name)(other, 1, mask=kept).tolist() == pytest.approx(wanted)


def test_where_nothing_is_kept(x):
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    assert masked.sum(x, 1, mask=nothing).tolist() == [0, 0] and masked.prod(x, 1, mask=nothing).tolist() == [1, 1]
    assert masked.amax(x, 1, mask=nothing).tolist() == [-math.inf] * 2
    assert masked.amin(x.long(), 1, mask=nothing).tolist() == [2**63 - 1] * 2
    for name in ("mean", "median", "var", "softmax"):
        assert getattr(masked, name)(x, 1, mask=nothing).isnan().all()
    with fails(ValueError, "masked median expects no fully masked out rows if dtype is not floating point"):
        masked.median(x.long(), 1, mask=nothing)


def test_shape_is_kept(x, kept):
    shares = masked.softmax(x, 1, mask=kept)
    assert shares.sum(1).tolist() == pytest.approx([1, 1]) and (shares[~kept] == 0).all()
    assert masked.log_softmax(x, 1, mask=kept)[kept].exp().allclose(shares[kept])
    assert masked.softmin(-x, 1, mask=kept).allclose(shares)
    assert masked.cumsum(x, 1, mask=kept).tolist() == [[1, 1, 4], [4, 9, 9]]
    assert masked.cumprod(x, 1, mask=kept).tolist() == [[1, 1, 3], [4, 20, 20]]
    assert masked.normalize(x, 1, 1, mask=kept).tolist() == [[0.25, 0, 0.75], pytest.approx([4 / 9, 5 / 9, 0])]
    assert masked.logaddexp(x, x, input_mask=kept)[~kept].equal(x[~kept])


@pytest.mark.parametrize("name", "sum prod amax mean var std logsumexp norm softmax cumsum".split())
def test_gradients(x, kept, name):
    args = (2.0, 1) if name == "norm" else (1,)
    assert torch.autograd.gradcheck(lambda x: getattr(masked, name)(x, *args, mask=kept), x)
    getattr(masked, name)(x, *args, mask=kept).sum().backward()
    assert (x.grad[~kept] == 0).all()


def test_masks_are_broadcast(x):
    assert masked.sum(x, 0, mask=torch.tensor([True, False, True])).tolist() == [5, 0, -3]
    assert masked.sum(x, mask=torch.tensor(True)).item() == 5
    assert masked.sum(x, mask=torch.tensor([1, 0, 2])).item() == 2
    with fails(
        IndexError, "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
    ):
        masked.sum(x, mask=torch.ones(1, 2, 3, dtype=torch.bool))


def test_what_is_refused(x, kept):
    with fails(ValueError, "masked norm expects strided tensor (got torch.sparse_coo tensor)"):
        masked.norm(x.detach().to_sparse(), 2, 1, mask=kept)
    with fails(RuntimeError, "dim=1 appears multiple times in the list of dims"):
        masked.sum(x, (1, 1))
    with fails(ValueError, "mean(): Could not infer output dtype. Input dtype must be either a floating point..."):
        masked.mean(x.long())
    with fails(AssertionError, "Only one of unbiased and correction may be given"):
        masked.var(x, 1, True, correction=0)
    with fails(NotImplementedError, "identity of amax on torch.bool input"):
        masked.amax(kept, 1, mask=kept)
    assert not masked.is_masked_tensor(x)
