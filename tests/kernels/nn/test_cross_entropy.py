"""One-pass cross-entropy: against its formula in double precision, and against the ops it is composed of."""

import numpy as np
import pytest
from arrays_zoo import LENGTHS

import cygrad as torch
from cygrad._kernels.cpu.nn import softmax as kernels

ACCURACY = {np.float32: 2e-6, np.float64: 1e-14}
REDUCTIONS = ["none", "mean", "sum"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def by_formula(x, target, weight, ignored, reduction):
    """(loss, gradient of its sum with respect to x)"""
    x = x.astype("d")
    logs = x - x.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    rows, counted = np.arange(len(x)), target != ignored
    factors = counted * (1.0 if weight is None else weight.astype("d").take(target, mode="clip"))
    losses = -factors * logs[rows, target.clip(0)]
    grad = np.exp(logs)
    grad[rows, target.clip(0)] -= 1
    grad *= factors[:, None]
    if reduction == 0:
        return losses, grad
    total = factors.sum() if reduction == 1 else 1
    return losses.sum() / total, grad / total


@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("reduction", range(3))
def test_cross_entropy_is_its_formula(reduction, dtype, rng):
    for classes in (*LENGTHS[1:], 1000):
        for weight in (None, rng.random(classes).astype(dtype) + 1):
            x = (10 * rng.standard_normal((20, classes))).astype(dtype)
            target = rng.integers(0, classes, 20)
            target[3] = -100
            loss, total, softmax = kernels.cross_entropy(x, target, weight, -100, reduction)
            g = np.ones_like(loss)
            grad = kernels.cross_entropy_backward(g, softmax, target, weight, -100, reduction, total)
            expected = by_formula(x, target, weight, -100, reduction)
            for found, wanted in zip((loss, grad), expected):
                assert found.dtype == dtype
                np.testing.assert_allclose(found, wanted, 10 * ACCURACY[dtype], ACCURACY[dtype] * 50)


def test_extreme_scores():
    x = np.zeros((7, 40), np.float32)
    x[0, 5], x[1, 5], x[2, 5], x[3], x[4, 5], x[5, 5], x[6] = 1e30, -1e30, np.inf, -np.inf, np.nan, 200, -200
    target = np.full(7, 5)
    with np.errstate(all="ignore"):
        expected, gradient = by_formula(x, target, None, -100, 0)
    loss, total, softmax = kernels.cross_entropy(x, target, None, -100, 0)
    np.testing.assert_allclose(loss, expected, 1e-6)
    grad = kernels.cross_entropy_backward(np.ones(7, "f"), softmax, target, None, -100, 0, total)
    np.testing.assert_allclose(grad, gradient, 1e-5, 1e-7)


def test_what_fits_no_row_is_refused(rng):
    x = rng.standard_normal((3, 5))
    for target in ([0, 1, 5], [0, -1, 2], [2**62, 0, 0]):
        with pytest.raises(IndexError, match="out of bounds"):
            kernels.cross_entropy(x, np.array(target), None, -100, 1)
    with pytest.raises(ValueError, match="nll takes"):
        kernels.cross_entropy(x, np.zeros(2, int), None, -100, 1)


def test_threads_do_not_change_a_bit(rng):
    x, target = rng.standard_normal((300, 500), dtype="f"), rng.integers(0, 500, 300)
    former, found = torch.get_num_threads(), []
    for count in (1, 2, 7):
        torch.set_num_threads(count)
        loss, total, softmax = kernels.cross_entropy(x, target, None, -100, 1)
        grad = kernels.cross_entropy_backward(np.ones((), "f"), softmax, target, None, -100, 1, total)
        found.append((loss.tobytes(), softmax.tobytes(), grad.tobytes()))
    torch.set_num_threads(former)
    assert found[0] == found[1] == found[2]


# --- As an op ----------------------------------------------------------------------------------


def in_two_ops(x, target, weight, **how):
    F = torch.nn.functional
    return F.nll_loss(F.log_softmax(x, 1), target, weight, **how)


def derivatives(loss_of, x, target, weight, reduction):
    """(loss, its gradient, gradient of the gradient's squares), and the node's name."""
    x = torch.tensor(x, requires_grad=True)
    loss = loss_of(x, target, weight, reduction=reduction, ignore_index=1)
    spread = torch.arange(1.0, 1 + loss.numel(), dtype=torch.float64).reshape(loss.shape)
    (once,) = torch.autograd.grad((loss * spread).sum(), x, retain_graph=True)
    (grad,) = torch.autograd.grad((loss * spread).sum(), x, create_graph=True)
    (twice,) = torch.autograd.grad((grad * grad).sum(), x)
    return [t.detach().numpy() for t in (loss, once, grad, twice)], loss.grad_fn.name()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fused_op_has_the_derivatives_of_its_parts(weighted, reduction, rng):
    x, target = rng.standard_normal((6, 4)), torch.tensor([0, 3, 1, 2, 2, 1])
    weight = torch.tensor(rng.random(4)) if weighted else None
    fused, name = derivatives(torch.nn.functional.cross_entropy, x, target, weight, reduction)
    parts, same_name = derivatives(in_two_ops, x, target, weight, reduction)
    assert name == same_name == "NllLossBackward0"
    for found, expected in zip(fused, parts):
        np.testing.assert_allclose(found, expected, 1e-12, 1e-14)


def test_scores_may_change_before_backward(rng):
    values = rng.standard_normal((400, 200))
    x = torch.tensor(values, requires_grad=True) * 1
    x.retain_grad()
    loss = torch.nn.functional.cross_entropy(x, torch.zeros(400, dtype=torch.int64))
    x.detach().zero_()
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), by_formula(values, np.zeros(400, int), None, -100, 1)[1], 1e-12, 1e-15)


def test_tangents_and_checks_of_scores(rng):
    target = torch.tensor([0, 3, 1])
    x, tangent = (torch.tensor(rng.standard_normal((3, 4))) for _ in range(2))
    loss, along = torch.func.jvp(lambda x: torch.nn.functional.cross_entropy(x, target), (x,), (tangent,))
    by_hand = by_formula(x.numpy(), target.numpy(), None, -100, 1)
    np.testing.assert_allclose(loss.numpy(), by_hand[0], 1e-12)
    np.testing.assert_allclose(along.numpy(), (by_hand[1] * tangent.numpy()).sum(), 1e-12)
    with pytest.raises(IndexError, match="out of bounds"):
        torch.nn.functional.cross_entropy(x, target + 1)


def test_bad_gradients_are_refused(rng):
    x, target = rng.standard_normal((3, 5)), np.array([0, 1, 4])
    for reduction, count in ((0, 1), (0, 4), (1, 3), (2, 3)):
        _, total, softmax = kernels.cross_entropy(x, target, None, -100, reduction)
        with pytest.raises(ValueError, match="for a loss of 3 rows"):
            kernels.cross_entropy_backward(np.ones(count), softmax, target, None, -100, reduction, total)
    with pytest.raises(IndexError, match="out of bounds"):
        kernels.cross_entropy_backward(np.ones(()), softmax, target + 1, None, -100, 1, total)
    with pytest.raises(ValueError, match="weights of shape"):
        kernels.cross_entropy_backward(np.ones(()), softmax, target, np.ones(4), -100, 1, total)
