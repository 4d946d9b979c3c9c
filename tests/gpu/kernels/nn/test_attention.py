"""Tiled attention: every tile shape against the formula, in each dtype."""

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad
from cygrad._kernels.gpu.nn import attention

F = cygrad.nn.functional
pytestmark = runs_kernels
TOLERANCES = {"float64": 1e-12, "float32": 5e-5, "float16": 2e-2, "bfloat16": 1.5e-1}
# dtype, queries, keys, key width, value width: partial tiles, several tiles, and each tile width
CASES = [
    ("float64", 7, 5, 3, 2),
    ("float64", 65, 70, 20, 24),
    ("float32", 33, 40, 33, 64),
    ("float32", 17, 18, 200, 256),
    ("float16", 65, 70, 20, 24),
    ("float16", 70, 33, 64, 40),
    ("bfloat16", 65, 70, 20, 24),
]


def formula(query, key, value, mask, scale, is_causal, grad):
    """Return (result, gradients of query, key and value) in double precision; fully masked rows are 0."""
    scores = query @ key.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = scores + mask
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    parts = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = parts.sum(-1, keepdims=True)
    weights = parts / np.where(total == 0, 1, total)
    slopes = grad @ value.swapaxes(-1, -2)
    slopes = weights * (slopes - (slopes * weights).sum(-1, keepdims=True)) * scale
    return weights @ value, slopes @ key, slopes.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ grad


def drawn(dtype, *shape):
    """Random values rounded to a dtype, in double precision."""
    return cygrad.randn(*shape).to(dtype).double().numpy()


def attended(arrays, mask, grad, dtype, **how):
    """The same from the op on the GPU; in memory, heads come after positions, as in layers."""
    on_gpu = {"dtype": dtype, "device": "cuda"}
    query, key, value = (cygrad.tensor(a.swapaxes(1, 2), **on_gpu).transpose(1, 2).requires_grad_() for a in arrays)
    out = F.scaled_dot_product_attention(
        query, key, value, None if mask is None else cygrad.tensor(mask, **on_gpu), **how
    )
    grads = cygrad.autograd.grad(out, (query, key, value), cygrad.tensor(grad, **on_gpu))
    return [found.double().cpu().numpy() for found in (out.detach(), *grads)]


@pytest.mark.parametrize("how", ["plain", "masked", "causal"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_each_tile_gives_what_the_formula_gives(cupy, case, how):
    name, queries, keys, size, width = case
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype, mask = getattr(cygrad, name), None
    arrays = [drawn(dtype, 2, 2, *shape) for shape in ((queries, size), (keys, size), (keys, width))]
    grad = drawn(dtype, 2, 2, queries, width)
    if how == "masked":
        mask = drawn(dtype, 2, queries, keys)
        mask[mask < -0.8] = -np.inf
        mask[:, 3] = -np.inf
    is_causal = how == "causal"
    with cupy_standin.watch() as seen:
        found = attended(arrays, mask, grad, dtype, is_causal=is_causal, scale=0.3)
    if cygrad.cuda.get_device_name().startswith("Stand-in"):
        assert {"attention_forward", "attention_backward"} <= set(seen.launches)
    for a, b in zip(found, formula(*arrays, mask, 0.3, is_causal, grad)):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCES[name])


def test_tiles_fit_into_shared_memory(cupy, monkeypatch):
    runtime = cupy.cuda.runtime
    for name, most in (("float32", 256), ("float64", 256), ("float16", 256)):
        assert attention._tiles(np.dtype(name), most)[0]["D"] == most
    assert attention._tiles(np.dtype("float32"), 257) is None
    assert attention._tiles(np.dtype("int32"), 8) is None
    monkeypatch.setattr(runtime, "deviceGetAttribute", lambda attribute, device: 64 << 10)  # as on older devices
    assert attention._tiles(np.dtype("float32"), 128) is None
    assert attention._tiles(np.dtype("float16"), 128)[0]["TENSOR"]


def test_wide_heads_are_made_of_ops(cupy):
    arrays, grad = [drawn(cygrad.float64, 1, 2, 3, 300) for _ in range(3)], drawn(cygrad.float64, 1, 2, 3, 300)
    found = attended(arrays, None, grad, cygrad.float64, scale=0.1)
    for a, b in zip(found, formula(*arrays, None, 0.1, False, grad)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
