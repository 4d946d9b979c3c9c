"""`flex_attention` and block masks against PyTorch."""

import importlib

import pytest

torch = pytest.importorskip("torch")
import cygrad  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

FLEX = [importlib.import_module(f"{name}.nn.attention.flex_attention") for name in ("cygrad", "torch")]
MASKS = {
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q - k < 40) & (q >= k),
    "heads": lambda b, h, q, k: (q + h * 50) >= k + b,
    "nothing": lambda b, h, q, k: q < k - 1000,
}
PARTS = "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices q_num_blocks q_indices full_q_num_blocks".split()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("size", [128, 32, (64, 16)])
def test_block_masks(mask, size):
    ours, theirs = (flex.create_block_mask(MASKS[mask], 2, 2, 200, 160, "cpu", size) for flex in FLEX)
    assert [getattr(ours, part).tolist() for part in PARTS] == [getattr(theirs, part).tolist() for part in PARTS]
    assert ours.sparsity() == pytest.approx(theirs.sparsity()) and ours.shape == theirs.shape
    assert ours.to_dense().tolist() == theirs.to_dense().tolist()


@pytest.mark.parametrize("mask", MASKS)
def test_attention(mask):
    torch.manual_seed(0)
    given = [torch.randn(2, 2, n, 8) for n in (48, 64, 64)]
    results = []
    for flex, module in zip(FLEX, (cygrad, torch)):
        q, k, v = (module.tensor(t.numpy()) for t in given)
        block_mask = flex.create_block_mask(MASKS[mask], 2, 2, 48, 64, "cpu", 16)
        out, lse = flex.flex_attention(
            q, k, v, lambda score, b, h, i, j: score + 0.1 * (i - j) * h, block_mask, return_lse=True
        )
        results.append([out, lse])  # PyTorch has no gradients of it on the CPU
    for ours, theirs in zip(*results):
        assert torch.allclose(torch.tensor(ours.tolist()), theirs, atol=1e-5)
