"""Blocked attention: the loops against the formula, and the op against the ops that it replaces."""

import math

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.cpu.nn import attention as kernels
from cygrad._ops.nn import scaled_dot_product
from helpers import fails

ACCURACY = {np.float32: 2e-5, np.float64: 1e-13}
SIZES = [  # leading dimensions, queries, keys, key size, value size; around the edges of blocks
    ((), 3, 5, 4, 6),
    ((2,), 64, 64, 8, 8),
    ((2, 3), 65, 300, 5, 7),
    ((1, 2), 130, 70, 16, 16),
    ((2, 2), 1, 1, 1, 1),
    ((2, 1), 70, 520, 3, 2),
    ((1, 2), 63, 129, 64, 80),
]
needs_loops = pytest.mark.skipif(not kernels.takes(np.ones(1), np.ones(1)), reason="its loops are switched off")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blocks(monkeypatch):
    """Use blocked attention for every size."""
    monkeypatch.setattr(scaled_dot_product, "LARGE", 0)
    return monkeypatch


def inputs(rng, sizes, dtype=np.float64):
    leading, length, keys, size, width = sizes
    shapes = (length, size), (keys, size), (keys, width), (length, width)
    return [rng.standard_normal((*leading, *shape)).astype(dtype) for shape in shapes]


def masks(rng, sizes, dtype):
    leading, length, keys, *_ = sizes
    hidden = np.where(rng.random((length, keys)) < 0.3, -np.inf, 0)
    hidden[length // 2] = -np.inf
    shapes = (*leading, length, keys), (1, keys), (length, 1), (keys,), (1, 1)
    found = [None, hidden, *(rng.standard_normal(shape) for shape in shapes)]
    return [None if mask is None else mask.astype(dtype) for mask in found]


def by_formula(query, key, value, grad, mask, scale, is_causal):
    """The result and the gradients of query, key and value, in double precision."""
    query, key, value, grad = (a.astype("d") for a in (query, key, value, grad))
    scores = query @ key.swapaxes(-1, -2) * scale + (0 if mask is None else mask)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(most), most, 0))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    slopes = grad @ value.swapaxes(-1, -2)
    slopes = weights * (slopes - (slopes * weights).sum(-1, keepdims=True)) * scale
    return (
        weights @ value,
        slopes @ key,
        slopes.swapaxes(-1, -2) @ query,
        weights.swapaxes(-1, -2) @ grad,
    )


# --- Loops -------------------------------------------------------------------------------------


@needs_loops
@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_blocks_are_the_formula(sizes, is_causal, dtype, rng):
    query, key, value, grad = inputs(rng, sizes, dtype)
    for mask in masks(rng, sizes, dtype):
        out, logs = kernels.attend(query, key, value, mask, 0.3, is_causal)
        grads = kernels.attend_backward(grad, query, key, value, mask, 0.3, is_causal, out, logs)
        expected = by_formula(query, key, value, grad, mask, 0.3, is_causal)
        for found, wanted in zip((out, *grads), expected, strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, wanted, 0, ACCURACY[dtype] * max(1, np.abs(wanted).max()))


@needs_loops
def test_memory_of_any_layout(rng):
    query, key, value, grad = inputs(rng, ((2, 3), 70, 80, 6, 6))
    mask = rng.standard_normal((70, 80))
    expected, logs = kernels.attend(query, key, value, mask, 0.5, False)
    for change in (
        np.asfortranarray,
        lambda a: np.repeat(a, 2, -1)[..., ::2],
        lambda a: np.ascontiguousarray(a[..., ::-1, :])[..., ::-1, :],
        lambda a: np.repeat(a, 2, -2)[..., ::2, :],
        lambda a: np.concatenate([np.zeros(1, np.uint8), a.view(np.uint8).ravel()])[1:].view("d").reshape(a.shape),
    ):
        changed = [change(a) for a in (query, key, value, mask)]
        out, logs = kernels.attend(*changed, 0.5, False)
        np.testing.assert_allclose(out, expected, 1e-12, 1e-13)
        found = kernels.attend_backward(change(grad), *changed, 0.5, False, out, logs)
        for a, b in zip(found, by_formula(query, key, value, grad, mask, 0.5, False)[1:]):
            np.testing.assert_allclose(a, b, 1e-10, 1e-12)


@needs_loops
def test_extreme_scores(rng):
    query, key, value, grad = inputs(rng, ((), 4, 400, 2, 3), np.float32)
    key[300] *= 1e4
    out, _ = kernels.attend(query, key, value, None, 10.0, False)
    np.testing.assert_allclose(out, by_formula(query, key, value, grad, None, 10.0, False)[0], 1e-4, 1e-5)
    query[1, 0] = np.nan
    out, _ = kernels.attend(query, key, value, None, 1.0, False)
    assert np.isnan(out[1]).all()
    assert np.isfinite(out[[0, 2, 3]]).all()


@needs_loops
def test_threads_do_not_change_a_bit(rng):
    query, key, value, grad = inputs(rng, ((2, 3), 200, 200, 16, 16), np.float32)
    former, found = torch.get_num_threads(), []
    for count in (1, 2, 7):
        torch.set_num_threads(count)
        out, logs = kernels.attend(query, key, value, None, 1.0, True)
        grads = kernels.attend_backward(grad, query, key, value, None, 1.0, True, out, logs)
        found.append([a.tobytes() for a in (out, logs, *grads)])
    torch.set_num_threads(former)
    assert found[0] == found[1] == found[2]


@needs_loops
def test_arrays_of_other_shapes_are_refused(rng):
    query, key, value, grad = inputs(rng, ((2,), 5, 6, 3, 4))
    out, logs = kernels.attend(query, key, value, None, 1.0, False)
    for wrong in (
        (query[:1], key, value, None),
        (query, key[..., :2], value, None),
        (query, key, value[:, :5], None),
        (query, key.astype("f"), value, None),
        (query, key, value, np.zeros((5, 5))),
    ):
        with pytest.raises(ValueError):
            kernels.attend(*wrong, 1.0, False)
        with pytest.raises(ValueError):
            kernels.attend_backward(grad, *wrong, 1.0, False, out, logs)


# --- As an op ----------------------------------------------------------------------------------


def function(query, key, value, mask=None, is_causal=False):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, is_causal=is_causal)


def derivatives(arrays, grad, *options):
    """Return (result, gradients, recorded gradients, their gradients; and the node's name)."""
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = function(*leaves, *options)
    once = torch.autograd.grad(out, leaves, torch.tensor(grad), retain_graph=True)
    grads = torch.autograd.grad(out, leaves, torch.tensor(grad), create_graph=True)
    twice = torch.autograd.grad(sum((g * g).sum() for g in grads), leaves)
    return [t.detach().numpy() for t in (out, *once, *grads, *twice)], out.grad_fn.name()


@needs_loops
@pytest.mark.parametrize("options", [(), (None, True), "bool", "float"])
def test_the_op_has_the_derivatives_of_its_parts(options, rng, blocks):
    query, key, value, grad = inputs(rng, ((2, 2), 4, 5, 3, 2))
    if options == "bool":
        options = (torch.tensor(rng.random((4, 5)) < 0.7),)
    elif options == "float":
        options = (torch.tensor(rng.standard_normal((2, 1, 4, 5))),)
    found, name = derivatives((query, key, value), grad, *options)
    assert name == "ScaledDotProductFlashAttentionForCpuBackward0"
    blocks.setattr(scaled_dot_product, "LARGE", math.inf)
    expected, name = derivatives((query, key, value), grad, *options)
    assert name != "ScaledDotProductFlashAttentionForCpuBackward0"
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-10, 1e-12)


@needs_loops
def test_only_some_gradients_and_tangents(rng, blocks):
    query, key, value, grad = inputs(rng, ((2,), 4, 5, 3, 2))
    k = torch.tensor(key, requires_grad=True)
    function(torch.tensor(query), k, torch.tensor(value)).backward(torch.tensor(grad))
    expected = by_formula(query, key, value, grad, None, 3**-0.5, False)
    np.testing.assert_allclose(k.grad.numpy(), expected[2], 1e-10, 1e-12)
    tangent = torch.tensor(rng.standard_normal(key.shape))
    out, along = torch.func.jvp(
        lambda key: function(torch.tensor(query), key, torch.tensor(value)), (k.detach(),), (tangent,)
    )
    np.testing.assert_allclose(out.numpy(), expected[0], 1e-10)
    np.testing.assert_allclose((along * torch.tensor(grad)).sum(), (expected[2] * tangent.numpy()).sum(), 1e-10)


@needs_loops
def test_a_mask_that_changes_before_backward_is_noticed(rng, blocks):
    query, key, value, grad = (torch.tensor(a, requires_grad=True) for a in inputs(rng, ((2,), 4, 5, 3, 2)))
    mask = torch.zeros(4, 5, dtype=torch.float64)
    out = function(query, key, value, mask)
    mask.add_(1)
    with fails(RuntimeError, "one of the variables needed for gradient computation has been modified ..."):
        out.backward(grad.detach())


@needs_loops
def test_no_array_of_all_scores_is_made():
    query, key, value = (torch.randn(1, 2, 2048, 16, requires_grad=True) for _ in range(3))
    torch.reset_peak_memory_stats()
    before = torch.memory_stats()["allocated_bytes.all.current"]
    function(query, key, value).sum().backward()
    assert torch.memory_stats()["allocated_bytes.all.peak"] - before < 2 * 2048 * 2048 * 4 / 4


def test_large_attention_of_any_kind_is_what_small_parts_give(rng):
    query, key, value, _ = (torch.tensor(a) for a in inputs(rng, ((1, 2), 150, 150, 4, 4)))
    whole = function(query, key, value, None, True)
    for i in (0, 63, 64, 149):
        part = function(query[..., i : i + 1, :], key[..., : i + 1, :], value[..., : i + 1, :])
        assert torch.allclose(whole[..., i : i + 1, :], part)
