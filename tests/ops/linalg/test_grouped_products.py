"""Products of groups of matrices, and of float8 matrices with scales."""

import numpy as np
import pytest

import cygrad as torch
from cygrad.nn import functional as F

RNG = np.random.default_rng(0)
A2, A3 = RNG.standard_normal((6, 4)).astype(np.float32), RNG.standard_normal((2, 3, 4)).astype(np.float32)
B2, B3 = RNG.standard_normal((4, 5)).astype(np.float32), RNG.standard_normal((2, 4, 5)).astype(np.float32)


def grouped(a, b, *ends):
    offs = torch.tensor(ends, dtype=torch.int32) if ends else None
    found = F.grouped_mm(torch.tensor(a), torch.tensor(b), offs=offs)
    np.testing.assert_array_equal(torch._grouped_mm(torch.tensor(a), torch.tensor(b), offs).numpy(), found.numpy())
    return found.numpy()


def test_groups():
    np.testing.assert_allclose(grouped(A3, B3), A3 @ B3, rtol=1e-5)
    rows = np.concatenate([A2[:2] @ B3[0], A2[2:5] @ B3[1], np.zeros((1, 5))])
    np.testing.assert_allclose(grouped(A2, B3, 2, 5), rows, rtol=1e-5)
    columns = np.concatenate([A3[0] @ B2[:, :1], A3[1] @ B2[:, 1:4], np.zeros((3, 1))], 1)
    np.testing.assert_allclose(grouped(A3, B2, 1, 4), columns, rtol=1e-5)
    parts = np.stack([A2[:, :1] @ B2[:1], A2[:, 1:1] @ B2[1:1], A2[:, 1:] @ B2[1:]])
    np.testing.assert_allclose(grouped(A2, B2, 1, 1, 4), parts, rtol=1e-5, atol=1e-6)


def test_gradients_of_groups():
    a, b = torch.tensor(A2, requires_grad=True), torch.tensor(B3, requires_grad=True)
    found = F.grouped_mm(a, b, offs=torch.tensor([2, 6], dtype=torch.int32))
    of_a, of_b = torch.autograd.grad(found.sum(), [a, b])
    np.testing.assert_allclose(of_a.numpy(), np.repeat(B3.sum(2), [2, 4], 0), rtol=1e-5)
    np.testing.assert_allclose(of_b[0].numpy(), np.repeat(A2[:2].sum(0)[:, None], 5, 1), rtol=1e-5)


def test_samples_of_groups():
    a, ends = torch.tensor(np.stack([A2, A2 + 1])), torch.tensor([[2, 6], [4, 5]], dtype=torch.int32)

    def product(a, ends):
        return F.grouped_mm(a, torch.tensor(B3), offs=ends)

    found = torch.vmap(lambda a: product(a, ends[0]))(a)
    np.testing.assert_allclose(found.numpy(), [product(one, ends[0]).numpy() for one in a], rtol=1e-5)
    with pytest.warns(UserWarning, match="not yet implemented the batching rule for aten::_grouped_mm"):
        found = torch.vmap(product)(a, ends)
    np.testing.assert_allclose(found.numpy(), [product(*pair).numpy() for pair in zip(a, ends)], rtol=1e-5)


def test_groups_on_meta():
    a, b = torch.tensor(A2).to("meta"), torch.tensor(B3).to("meta").requires_grad_()
    found = F.grouped_mm(a, b, offs=torch.tensor([2, 6], dtype=torch.int32, device="meta"))
    found.sum().backward()
    assert (found.is_meta, found.shape, b.grad.shape) == (True, (6, 5), b.shape)


@pytest.mark.parametrize(
    ("a", "b", "options", "text"),
    [
        (A2, B3, {}, "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"),
        (A3, B3, {"offs": torch.tensor([1, 2], dtype=torch.int32)}, "Have to provide offsets if there is a 2d matrix"),
        (A2, B3, {"offs": torch.tensor([2, 6])}, "Offsets have to be int32"),
        (A3, B3, {"bias": torch.ones(5)}, "Bias not supported yet"),
        (A3, B3, {"out_dtype": torch.float16}, "Grouped gemm output dtype must match `mat_a` dtype"),
        (A3, B3[:, :3], {}, "contraction dimension of mat_a and mat_b must match"),
        (A2, B3, {"offs": torch.tensor([2, 4, 6], dtype=torch.int32)}, "matrix batch sizes have to match"),
        (A3.astype(float), B3, {}, "Expected mat_a to be Float32, BFloat16 or Float16 matrix, got Double"),
        (A2[0], B3, {}, "mat_a has to be 2 or 3d"),
        (A3, B3[:1], {}, "batched dimension has to match"),
        (A2, B3, {"offs": torch.tensor([4, 9], dtype=torch.int32)}, "offs must ascend from 0 to 6 at most"),
        (A2, B3, {"offs": torch.tensor([4, 2], dtype=torch.int32)}, "offs must ascend from 0 to 6 at most"),
    ],
)
def test_wrong_groups(a, b, options, text):
    with pytest.raises(RuntimeError, match=text):
        F.grouped_mm(torch.tensor(a), torch.tensor(b), **options)


@pytest.fixture
def scaled():
    pytest.importorskip("ml_dtypes")
    return torch.tensor(A2).to(torch.float8_e4m3fn), torch.tensor(B2).to(torch.float8_e4m3fn)


def test_scales(scaled):
    a, b = scaled
    product = a.float().numpy() @ b.float().numpy()
    two, half = torch.tensor(2.0), torch.tensor(0.25)
    found = torch._scaled_mm(a, b, two, half, out_dtype=torch.float32)
    np.testing.assert_allclose(found.numpy(), product * 0.5, rtol=1e-5)
    assert torch._scaled_mm(a, b, two, half).dtype is torch.float8_e4m3fn
    rows, columns = torch.arange(1.0, 7).view(6, 1), torch.arange(1.0, 6).view(1, 5)
    found = torch._scaled_mm(a, b, rows, columns, torch.ones(5), None, torch.float32)
    np.testing.assert_allclose(found.numpy(), product * rows.numpy() * columns.numpy() + 1, rtol=1e-5)
    kind = F.ScalingType.TensorWise
    found = F.scaled_mm(a, b, two, kind, [half], [kind], output_dtype=torch.float32)
    np.testing.assert_allclose(found.numpy(), product * 0.5, rtol=1e-5)


def test_wrong_scales(scaled):
    a, b = scaled
    one = torch.tensor(1.0)
    for args in ((a.float(), b.float(), one, one), (a, b, torch.ones(3), one), (a, b, one.double(), one)):
        with pytest.raises(ValueError, match="Invalid scaling configuration."):
            torch._scaled_mm(*args)
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied \(6x4 and 5x4\)"):
        torch._scaled_mm(a, b.t(), one, one)
    with pytest.raises(NotImplementedError, match="scales of blocks are for GPUs"):
        F.scaled_mm(a, b, one, F.ScalingType.BlockWise1x32, one, F.ScalingType.BlockWise1x32)
