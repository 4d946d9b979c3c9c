"""Norms, variances, normalizations and distances whose squares leave the range, against values computed by hand."""

import numpy as np
import pytest
from ops.calls import in_memory, on_gpu

import cygrad
import cygrad.nn.functional as F

SCALES = {
    "float32": (1e-30, 1e-20, 1e20, 1e30, 1e38),
    "bfloat16": (1e-30, 1e30),
    "float64": (1e-300, 1e-200, 1e200, 1e300),
}
CASES = [(kind, scale) for kind, scales in SCALES.items() for scale in scales]


def tensor(values, kind, scale, **how):
    return cygrad.tensor([v * scale for v in values], dtype=getattr(cygrad, kind), **how)


def near(found, expected, kind, scale=1.0):
    tolerance = {"float32": 1e-5, "bfloat16": 2e-2, "float64": 1e-13}[kind]
    found = np.asarray(found.detach().double().tolist()) / scale
    np.testing.assert_allclose(found, expected, tolerance)


@pytest.mark.parametrize(("kind", "scale"), CASES)
@pytest.mark.parametrize("strides", [1, 2])
def test_norms(kind, scale, strides):
    wide = cygrad.zeros(2 * strides, dtype=getattr(cygrad, kind))
    x = wide[::strides]
    x.copy_(tensor([0.3, -0.4], kind, scale))
    x.requires_grad_()
    norm = cygrad.linalg.norm(x)
    near(norm, 0.5, kind, scale)
    near(cygrad.autograd.grad(norm, x)[0], [0.6, -0.8], kind)
    near(cygrad.linalg.vector_norm(x, 3), (0.3**3 + 0.4**3) ** (1 / 3), kind, scale)
    near(cygrad.linalg.vector_norm(x, -2), (0.3**-2 + 0.4**-2) ** -0.5, kind, scale)
    near(cygrad.dist(x, cygrad.zeros_like(x)), 0.5, kind, scale)
    near(F.pairwise_distance(x, cygrad.zeros_like(x), eps=0), 0.5, kind, scale)


@pytest.mark.parametrize(("kind", "scale"), CASES)
@pytest.mark.parametrize("axis", [0, 1])
def test_standard_deviations(kind, scale, axis):
    rows = [[0.1, 0.2, 0.6], [0.25, 0.25, 0.25]]  # deviations .2646 and 0
    x = cygrad.tensor([[v * scale for v in row] for row in rows], dtype=getattr(cygrad, kind))
    x = (x.t().contiguous() if axis == 0 else x).requires_grad_()
    std = x.std(axis)
    near(std[0], 0.07**0.5, kind, scale)
    assert 0 <= std[1] <= 1e-6 * scale  # the mean of equal numbers may be rounded
    (grad,) = cygrad.autograd.grad(std[0], x)
    expected = np.array([-0.2, -0.1, 0.3]) / (2 * 0.07**0.5)  # (x - mean) / (2 std)
    near(grad[:, 0] if axis == 0 else grad[0], expected, kind)
    near(cygrad.std_mean(x, axis)[0][0], 0.07**0.5, kind, scale)


def test_one_huge_element():
    x = cygrad.tensor([1e20, 1.0, 1.0], requires_grad=True)
    norm = cygrad.linalg.norm(x)
    (grad,) = cygrad.autograd.grad(norm, x)
    near(norm, 1.0, "float32", 1e20)
    np.testing.assert_allclose(grad.tolist(), [1, 1e-20, 1e-20], 1e-6)


def test_what_is_not_finite_or_not_there_stays():
    inf, nan = float("inf"), float("nan")
    x = cygrad.tensor([[inf, 1.0], [nan, 1.0], [1e30, 1.0], [0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(x.norm(dim=1).tolist(), [inf, nan, 1e30, 0, 5], 1e-6)
    assert cygrad.zeros(0).norm() == 0 and cygrad.zeros(2, 0).norm(dim=1).tolist() == [0, 0]
    assert cygrad.tensor(-1e30).norm() == cygrad.tensor(1e30)
    assert cygrad.tensor([[1.0, inf], [2.0, 2.0]]).std(1).isnan().tolist() == [True, False]


NORMALIZED = [0.1690308509457033, -1.1832159566199232, 1.5212776585113297, -0.50709255283711]
NORMALIZATIONS = {
    "layer_norm": lambda x: F.layer_norm(x[None], (4,), eps=1e-5),
    "layer_norm of long rows": lambda x: F.layer_norm(x.repeat(30000)[None], (120000,))[:, :4],
    "group_norm": lambda x: F.group_norm(x[None, :, None], 1),
    "instance_norm": lambda x: F.instance_norm(x[None, None]),
    "batch_norm of columns": lambda x: F.batch_norm(x[:, None], None, None, training=True),
    "batch_norm of runs": lambda x: F.batch_norm(x[None, None].expand(2, 1, 4), None, None, training=True)[0],
    "by NumPy": lambda x: F.batch_norm(x[None, None].double().to(x.dtype).expand(1, 1, 4), None, None, training=True),
}


@pytest.mark.parametrize("how", NORMALIZATIONS)
@pytest.mark.parametrize(("kind", "scale"), [case for case in CASES if case[1] > 1])
def test_normalizations_of_large_numbers(how, kind, scale):
    """(x - mean) / deviation for [1, -1, 3, 0] is that of the small numbers, and gradients scale back."""
    weights = cygrad.tensor([1.0, 2.0, -1.0, 0.5], dtype=getattr(cygrad, kind))
    if "long" in how and scale in (1e38, 1e300):
        scale /= 1e6  # so that the sum of all numbers, which the mean needs, is in range
    for create_graph in (False, True):
        scale_in_range = scale / 10
        x = tensor([1, -1, 3, 0], kind, scale_in_range, requires_grad=True)
        result = NORMALIZATIONS[how](x)
        near(result.flatten(), NORMALIZED, kind)
        (grad,) = cygrad.autograd.grad((result.flatten() * weights).sum(), x, create_graph=create_graph)
        x = cygrad.tensor([1.0, -1.0, 3.0, 0.0], dtype=cygrad.float64, requires_grad=True)
        small = (x - x.mean()) / x.var(correction=0).sqrt()
        if "long" in how:
            continue  # there the mean gradient of 120000 elements differs
        (expected,) = cygrad.autograd.grad((small * weights.double()).sum(), x)
        error = (grad.detach().double() * scale_in_range - expected).abs().max()
        assert error < {"float32": 1e-5, "bfloat16": 0.05, "float64": 1e-13}[kind]


def test_rms_norm_and_normalize_of_small_numbers():
    x = cygrad.tensor([[3e-30, 4e-30]], requires_grad=True)
    near(F.rms_norm(x, (2,), eps=0.0)[0], [0.6 * 2**0.5, 0.8 * 2**0.5], "float32")
    near(F.normalize(x, eps=0.0)[0], [0.6, 0.8], "float32")
    near(F.cosine_similarity(x, x * 1e30, eps=1e-37), [1.0], "float32")
    near(F.cosine_similarity(x * 1e30 * 1e20, x * 1e30 * 1e30), [1.0], "float32")


@pytest.mark.parametrize("columns", [3, 40])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_distances_of_near_points_far_from_zero(columns, kind):
    random = np.random.default_rng(0)
    a = (1000 + random.normal(size=(30, columns)) * 0.01).astype(kind)
    a[7] = a[3]
    x = cygrad.tensor(a)
    wide = a.astype(np.longdouble)
    expected = np.sqrt(((wide[:, None] - wide) ** 2).sum(-1)).astype(np.float64)
    for mode in ("use_mm_for_euclid_dist", "use_mm_for_euclid_dist_if_necessary", "donot_use_mm_for_euclid_dist"):
        found = cygrad.cdist(x, x, 2.0, mode)
        assert (found.diagonal() == 0).all() and found[3, 7] == 0
        np.testing.assert_allclose(found.numpy(), expected, 20 * np.finfo(kind).eps)
    pairs = cygrad.cdist(x[None].expand(2, 30, columns), x[5:])
    np.testing.assert_allclose(pairs[1].numpy(), expected[:, 5:], 20 * np.finfo(kind).eps)


@pytest.mark.parametrize("columns", [2, 40])
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_distances_in_the_whole_range(columns, scale):
    a = np.random.default_rng(1).normal(size=(40, columns)).astype(np.float32)
    x = (cygrad.tensor(a) * scale).requires_grad_()
    wide = x.detach().double().numpy()
    expected = np.sqrt(((wide[:, None] - wide) ** 2).sum(-1))
    for p, found in ((2.0, cygrad.cdist(x, x)), (3.0, cygrad.cdist(x, x, 3.0)), (2.0, cygrad.pdist(x))):
        wanted = expected if p == 2 else (np.abs(wide[:, None] - wide) / scale) ** p
        wanted = wanted if p == 2 else wanted.sum(-1) ** (1 / p) * scale
        wanted = wanted[np.triu_indices(40, 1)] if found.ndim == 1 else wanted
        np.testing.assert_allclose(found.detach().numpy(), wanted, 1e-5)
    (grad,) = cygrad.autograd.grad(cygrad.pdist(x).sum(), x)
    pull = (wide[:, None] - wide) / np.where(expected == 0, 1, expected)[..., None]
    np.testing.assert_allclose(grad.numpy(), pull.sum(1), 1e-4, 1e-4)


def test_elementwise_gradients_without_squares():
    x = cygrad.tensor([3e20, 3e-30], requires_grad=True)
    y = cygrad.tensor([4e20, 4e-30], requires_grad=True)
    grads = cygrad.autograd.grad(cygrad.atan2(y, x).sum(), (x, y))
    np.testing.assert_allclose(grads[0].tolist(), [-0.16e-20, -0.16e30], 1e-5)
    np.testing.assert_allclose(grads[1].tolist(), [0.12e-20, 0.12e30], 1e-5)
    z = cygrad.complex(x, y).detach().requires_grad_()
    (grad,) = cygrad.autograd.grad(z.angle().sum(), z)
    np.testing.assert_allclose(grad.real.tolist(), [-0.16e-20, -0.16e30], 1e-5)
    np.testing.assert_allclose(grad.imag.tolist(), [0.12e-20, 0.12e30], 1e-5)
    (grad,) = cygrad.autograd.grad(x.asinh().sum(), x)
    np.testing.assert_allclose(grad.tolist(), [1 / 3e20, 1], 1e-6)


def test_correlations_of_any_scale():
    x = cygrad.tensor([[1e30, 2e30, 4e30], [1e-30, 3e-30, 2e-30]])
    expected = np.corrcoef(x.double().numpy() / np.array([[1e30], [1e-30]]))
    np.testing.assert_allclose(cygrad.corrcoef(x).numpy(), expected, 1e-5)


def test_power_pooling_of_any_scale():
    x = cygrad.tensor([[3.0, 4.0, 0.0, 0.0]])
    for scale in (1e-30, 1e30):
        found = F.lp_pool1d(x * scale, 2, 2) / scale
        np.testing.assert_allclose(found.tolist(), [[5.0, 0.0]], 1e-6)


ON_GPUS = {
    "norm": lambda x: x.norm(dim=1),
    "norm of order 3": lambda x: cygrad.linalg.vector_norm(x, 3, 1),
    "std": lambda x: x.std(1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "rms_norm": lambda x: F.rms_norm(x, (4,), eps=0.0),
    "group_norm": lambda x: F.group_norm(x[:, :, None].expand(3, 4, 3), 1),
    "instance_norm": lambda x: F.instance_norm(x[:, None]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "normalize": lambda x: F.normalize(x, eps=0.0),
    "cdist": lambda x: cygrad.cdist(x, x.flip(0) * 3, 2.0, "donot_use_mm_for_euclid_dist"),
    "cdist by products": lambda x: cygrad.cdist(x, x.flip(0) * 3, 2.0, "use_mm_for_euclid_dist"),
    "pdist": cygrad.pdist,
    "renorm": lambda x: x.renorm(2, 0, 1.0),
}


WITH_EPS = "layer_norm", "group_norm", "instance_norm", "batch_norm"  # beside which small numbers are 0


@pytest.mark.parametrize(
    ("how", "scale"), [(how, scale) for scale in (1e-30, 1e30) for how in ON_GPUS if scale > 1 or how not in WITH_EPS]
)
def test_gpus_agree(how, scale, cupy):
    on = on_gpu(cupy)
    found = []
    for make in (cygrad.tensor, lambda values: on.tensor(np.array(values, np.float32))):
        x = make(
            [[1 * scale, -scale, 3 * scale, 0.0], [2 * scale, scale, -scale, 4 * scale], [0.5 * scale] * 3 + [scale]]
        ).requires_grad_()
        result = ON_GPUS[how](x)
        weights = cygrad.arange(1.0, result.numel() + 1).reshape(result.shape).to(result.device)
        (grad,) = cygrad.autograd.grad(result, x, weights)
        found.append((in_memory(result), in_memory(grad)))
    (result, grad), (here, there) = found[1], found[0]
    np.testing.assert_allclose(result, here, 1e-4, 1e-5 * np.abs(here).max())
    np.testing.assert_allclose(grad, there, 1e-3, 1e-4 * np.abs(there).max())
