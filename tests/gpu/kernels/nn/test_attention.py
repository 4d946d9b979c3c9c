"""Tiled attention: every tile shape against the formula, in each dtype."""

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad
from cygrad._kernels.gpu.nn import attention, attention_streams
from cygrad._kernels.gpu.runtime.matmul_precision import Precision

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
    ("float16", 70, 33, 60, 36),
    ("bfloat16", 65, 70, 20, 24),
]


# The same for copies that are under way: partial and several tiles, each padded width, and twice the queries for a warp
STREAMED = [
    ("bfloat16", 65, 70, 24, 32),
    ("bfloat16", 600, 70, 64, 40),
    ("float16", 130, 40, 64, 56),
    ("float16", 40, 150, 32, 32),
    ("float16", 70, 33, 128, 72),
    ("float32", 65, 70, 24, 32),
    ("float32", 70, 70, 64, 64),
    ("float32", 33, 70, 100, 128),
]
STREAM_TOLERANCES = {"float16": 1e-2, "bfloat16": 7e-2, "float32": 3e-2}


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


def check(case, how, tolerances, launched):
    """Compare an attention with the formula."""
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
        assert set(launched) <= set(seen.launches)
    for a, b in zip(found, formula(*arrays, mask, 0.3, is_causal, grad)):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerances[name])


@pytest.fixture
def in_tf32(monkeypatch):
    monkeypatch.setattr(Precision, "matmul", "high")


def named(case):
    return "-".join(map(str, case))


@pytest.mark.parametrize("how", ["plain", "masked", "causal"])
@pytest.mark.parametrize("case", CASES, ids=named)
def test_each_tile_gives_what_the_formula_gives(cupy, case, how):
    check(case, how, TOLERANCES, ("attention_forward", "attention_backward"))


@pytest.mark.parametrize("how", ["plain", "masked", "causal"])
@pytest.mark.parametrize("case", STREAMED, ids=named)
def test_streams_give_what_the_formula_gives(cupy, in_tf32, case, how):
    check(case, how, STREAM_TOLERANCES, ("attention_stream", "attention_stream_backward"))


@pytest.mark.parametrize("how", ["plain", "masked", "causal"])
@pytest.mark.parametrize("case", [case for case in STREAMED if case[0] == "float32"], ids=named)
def test_streams_of_single_precision_without_tf32(cupy, case, how):
    check(case, how, TOLERANCES, ("attention_stream", "attention_stream_backward"))


@pytest.mark.parametrize("queries, keys", [(5, 200), (200, 5), (64, 64)])
def test_causal_streams_of_other_lengths(cupy, queries, keys):
    check(("float16", queries, keys, 32, 32), "causal", STREAM_TOLERANCES, ("attention_stream",))


def streamed(query, key, value, **how):
    """The result and the names of the kernels that made it."""
    with cupy_standin.watch() as seen:
        out = F.scaled_dot_product_attention(query, key, value, **how)
    return out, set(seen.launches) & {"attention_stream", "attention_forward"}


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_streams_pass_on_nan_and_infinity(cupy, kind):
    dtype = getattr(cygrad, kind)
    query, key, value = (cygrad.randn(1, 1, 70, 32, device="cuda", dtype=dtype) for _ in range(3))
    key[0, 0, 3], key[0, 0, 40] = float("nan"), 0
    out, names = streamed(query, key, value, is_causal=True)
    assert names == {"attention_stream"}
    assert not out[0, 0, :3].isnan().any() and out[0, 0, 3:].isnan().all()
    key[0, 0, 3] = 0
    hidden = cygrad.zeros(70, 70, device="cuda", dtype=cygrad.bool)  # hides all
    hidden[4:] = True
    out, _ = streamed(query.requires_grad_(), key.requires_grad_(), value.requires_grad_(), attn_mask=hidden)
    assert (out[0, 0, :4] == 0).all() and not out.isnan().any()
    grads = cygrad.autograd.grad(out.float().square().sum(), (query, key, value))
    assert (grads[0][0, 0, :4] == 0).all() and not any(grad.isnan().any() for grad in grads)
    mask = cygrad.zeros(70, 70, device="cuda", dtype=dtype)
    mask[2, 1] = float("inf")
    out, _ = streamed(query, key, value, attn_mask=mask)
    assert out[0, 0, 2].isnan().all() and not out[0, 0, 3:].isnan().any()
    if kind == "float32":
        return  # an infinite number is the sum of infinity and 0, whose product with infinity is NaN
    query.data[:, :, :, 0] = 1
    key.data[0, 0, 5, 0] = -float("inf")  # nobody looks there
    hidden[:, :] = True
    hidden[:, 5] = False
    found, wanted = (streamed(query, key, value, attn_mask=m)[0] for m in (None, hidden))
    cygrad.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


def test_few_heads_are_cut_into_more_blocks_with_the_same_bits(cupy, monkeypatch):
    query, key, value = (cygrad.randn(1, 2, 130, 64, device="cuda", dtype=cygrad.float16) for _ in range(3))
    found = []
    for count in (1, 1000):
        monkeypatch.setattr(attention_streams, "multiprocessors", lambda count=count: count)
        found.append(streamed(query, key, value, is_causal=True)[0].cpu())
    assert cygrad.equal(*found)


def test_which_arrays_are_streamed(cupy, monkeypatch):
    def names(change=lambda x: x, dtype=cygrad.float16, width=32):
        x = change(cygrad.randn(2, 2, 9, width, device="cuda", dtype=dtype))
        return streamed(x, x, x)[1]

    assert names() == names(lambda x: x.transpose(1, 2)) == {"attention_stream"}
    assert names(lambda x: x.mT.contiguous().mT) == {"attention_stream"}  # copied to rows
    assert names(width=20) == names(width=136) == {"attention_forward"}  # no chunks; too wide
    assert names(lambda x: x.flatten()[4:1028].view(2, 2, 8, 32)) == {"attention_forward"}  # no multiple of 16 bytes
    assert names(dtype=cygrad.float32) == {"attention_stream"}
    assert names(dtype=cygrad.float64) == names(dtype=cygrad.float32, width=30) == {"attention_forward"}
    monkeypatch.setattr(cupy.cuda.runtime, "deviceGetAttribute", lambda attribute, device: 48 << 10)
    assert names(dtype=cygrad.float16) == {"attention_stream"}
    assert not attention_streams.fits((), np.dtype("float16"), 128)
    monkeypatch.setattr(attention_streams.tensor_cores, "takes", lambda dtype: False)
    assert names() == {"attention_forward"}


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
