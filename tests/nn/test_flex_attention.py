"""`flex_attention` and its block masks, against attention computed query by query in NumPy."""

import numpy as np
import pytest

import cygrad as torch
from cygrad.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)
from helpers import fails


def causal(b, h, q, k):
    return q >= k


def near(b, h, q, k):
    return (q - k).abs() <= 2


def attention(q, k, v, score, sees):
    """Return the output and the logarithm of the sum of exponentials, one query at a time."""
    out, sums = np.zeros(q.shape), np.full(q.shape[:3], -np.inf)
    for b, h, i in np.ndindex(*q.shape[:3]):
        keys = [j for j in range(k.shape[2]) if sees(b, h, i, j)]
        if keys:
            scores = np.array([score(q[b, h, i] @ k[b, h, j] / np.sqrt(q.shape[3]), b, h, i, j) for j in keys])
            weights = np.exp(scores)
            out[b, h, i] = weights @ v[b, h, keys] / weights.sum()
            sums[b, h, i] = np.log(weights.sum())
    return out, sums


@pytest.fixture
def operands():
    torch.manual_seed(2)
    return [torch.randn(2, 3, n, 4, dtype=torch.float64, requires_grad=True) for n in (5, 7, 7)]


def test_scores_and_mask(operands):
    slopes = torch.tensor([0.5, 0.1, 0.0])
    block_mask = create_block_mask(near, None, None, 5, 7)
    out, lse = flex_attention(
        *operands,
        score_mod=lambda score, b, h, q, k: score - slopes[h] * (q - k).abs() + b,
        block_mask=block_mask,
        return_lse=True,
    )
    expected, sums = attention(
        *(t.detach().numpy() for t in operands),
        score=lambda s, b, h, i, j: s - slopes[h].item() * abs(i - j) + b,
        sees=lambda b, h, i, j: abs(i - j) <= 2,
    )
    np.testing.assert_allclose(out.detach(), expected, rtol=1e-10)
    np.testing.assert_allclose(lse.detach(), sums, rtol=1e-10)


def test_masks_of_samples_and_heads(operands):
    lengths = torch.tensor([3, 7])
    block_mask = create_block_mask(lambda b, h, q, k: (k < lengths[b]) & (q >= k - h), 2, 3, 5, 7)
    expected, _ = attention(
        *(t.detach().numpy() for t in operands),
        score=lambda s, *place: s,
        sees=lambda b, h, i, j: j < (3, 7)[b] and i >= j - h,
    )
    np.testing.assert_allclose(flex_attention(*operands, block_mask=block_mask).detach(), expected, rtol=1e-10)


def test_queries_that_see_nothing(operands):
    block_mask = create_block_mask(lambda b, h, q, k: q > k, None, None, 5, 7)
    out, aux = flex_attention(*operands, block_mask=block_mask, return_aux=AuxRequest(lse=True, max_scores=True))
    assert (out[:, :, 0] == 0).all() and (aux.lse[:, :, 0] == -np.inf).all() and aux.max_scores.shape == (2, 3, 5)
    out.sum().backward()
    assert all(t.grad.isfinite().all() for t in operands) and (operands[0].grad[:, :, 0] == 0).all()


def test_gradients(operands):
    block_mask = create_block_mask(near, None, None, 5, 7)
    bias = torch.randn(7, dtype=torch.float64, requires_grad=True)

    def attend(q, k, v, bias):
        return flex_attention(q, k, v, lambda score, b, h, i, j: score.tanh() + bias[j], block_mask)

    assert torch.autograd.gradcheck(attend, (*operands, bias))


def test_grouped_heads():
    q, k = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 6, 8)
    out = flex_attention(q, k, k, enable_gqa=True)
    assert torch.allclose(out, torch.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True), atol=1e-6)
    assert flex_attention(q.half(), q.half(), q.half()).dtype is torch.float16


# --- masks -------------------------------------------------------------------------------------


def test_masks_as_functions():
    both, either = and_masks(causal, near), or_masks(causal, near)
    for b, h, q, k in np.ndindex(1, 1, 6, 6):
        given = tuple(map(torch.tensor, (b, h, q, k)))
        assert both(*given).item() == (q >= k and abs(q - k) <= 2)
        assert either(*given).item() == (q >= k or abs(q - k) <= 2)
    assert noop_mask(*given).item() and create_mask(noop_mask, 2, None, 3, 4).shape == (2, 1, 3, 4)
    changes = create_mask(lambda score, b, h, q, k: score + q * 10 + k, None, None, 2, 3)
    assert changes.tolist() == [[[[0, 1, 2], [10, 11, 12]]]]
    with fails(RuntimeError, "All inputs should be callable mask_mods: ..."):
        and_masks(causal, None)


@pytest.mark.parametrize("size", [1, 3, (2, 4), 16])
@pytest.mark.parametrize("mask", [causal, near])
def test_blocks(size, mask):
    rows, columns = (size, size) if isinstance(size, int) else size
    found = create_block_mask(mask, None, None, 10, 13, BLOCK_SIZE=size)
    dense = create_mask(mask, None, None, 10, 13)[0, 0].numpy()
    parts = [[dense[i : i + rows, j : j + columns] for j in range(0, 13, columns)] for i in range(0, 10, rows)]
    assert found.to_dense()[0, 0].tolist() == [[int(part.any()) for part in row] for row in parts]
    full = [[int(part.sum() == rows * columns) for part in row] for row in parts]
    assert found.full_kv_num_blocks[0, 0].tolist() == [sum(row) for row in full]
    for i, row in enumerate(full):
        places = found.full_kv_indices[0, 0, i, : sum(row)].tolist()
        assert places == [j for j, is_full in enumerate(row) if is_full]
    assert found.full_q_num_blocks[0, 0].tolist() == [sum(column) for column in zip(*full)]
    assert (found.kv_num_blocks + found.full_kv_num_blocks)[0, 0].tolist() == [
        sum(bool(part.any()) for part in row) for row in parts
    ]
    assert found.shape == (1, 1, 10, 13) and found.numel() == 130 and found.BLOCK_SIZE == (rows, columns)


def test_block_masks_as_objects():
    mask = create_block_mask(causal, 2, 2, 512, 512)
    assert mask.sparsity() == 100 * (1 - 10 / 16) and mask[0].shape == (1, 2, 512, 512) and mask[:, 1].shape[1] == 1
    assert repr(mask).startswith("BlockMask(shape=(2, 2, 512, 512), sparsity=37.50%, \n(0, 0)\n██      \n████    \n")
    assert "..." in mask.to_string(limit=1) and mask.to("meta").kv_indices.is_meta
    x = torch.ones(1, 2, 512, 4)
    with fails(RuntimeError, "Cannot use mask_mod from a sliced BlockMask"):
        flex_attention(x, x, x, block_mask=mask[0])
    same = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, mask_mod=causal)
    assert same.seq_lengths == (512, 512) and same.q_num_blocks.equal(mask.q_num_blocks)
    with fails(RuntimeError, "BlockMask must have at least 2 dimensions"):
        BlockMask.from_kv_blocks(torch.ones(()), torch.ones(1))


def test_errors():
    x = torch.ones(1, 2, 3, 4)
    for call, error, line in (
        (lambda: flex_attention(x[0], x, x), NotImplementedError, "NYI: query, key, and value must be 4D tensors"),
        (lambda: flex_attention(x, x[:, :1], x[:, :1]), ValueError, "Expect query and key/value to have the same ..."),
        (lambda: flex_attention(x, x.double(), x), ValueError, "Expected query, key, and value to have the same ..."),
        (lambda: flex_attention(x, x[..., :2], x), ValueError, "Expect query and key/value to have the same emb..."),
        (
            lambda: flex_attention(x, x, x, block_mask=create_block_mask(causal, None, None, 8, 8)),
            ValueError,
            "block_mask was created for block_mask.shape=(1, 1, 8, 8) but got q_len=3 and kv_len=3...",
        ),
    ):
        with fails(error, line):
            call()
