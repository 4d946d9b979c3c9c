"""Reductions: properties of individual ops that the generic tests do not cover."""

import math
import pickle

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, leaf

NAN, INF = math.nan, math.inf


def gradient(function, values):
    """The gradient of `function` at a leaf with these values."""
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(function(x), x)[0].tolist()


# --- Subgradient conventions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (torch.max, [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
        (torch.min, [2.0, 1.0, 1.0, 1.0], [0.0, 1 / 3, 1 / 3, 1 / 3]),
        (torch.max, [NAN, 1.0, NAN], [0.5, 0.0, 0.5]),
        (torch.amax, [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
        (lambda x: x.max(0).values, [2.0, 1.0, 2.0], [1.0, 0.0, 0.0]),
        (lambda x: x.min(0).values, [1.0, NAN, NAN], [0.0, 1.0, 0.0]),
        (torch.std, [1.0, 1.0], [0.0, 0.0]),
        *((lambda x, p=p: x.norm(p), [0.0, 0.0], [0.0, 0.0]) for p in (0.5, 1, 1.5, 2, 3, INF, -INF)),
        (lambda x: x.norm(INF), [3.0, -3.0, 1.0], [0.5, -0.5, 0.0]),
    ],
)
def test_gradient_at_kinks(function, at, expected):
    assert gradient(function, at) == pytest.approx(expected)


@pytest.mark.parametrize("p", [2, 1, 3, INF])
def test_second_gradient_of_a_norm_at_zero_is_no_nan(p):
    x = torch.zeros(2, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(x.norm(p, dim=1).sum(), x, create_graph=True)
    assert torch.autograd.grad((grad + x).sum(), x)[0].tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_hessian_of_a_product_with_zeros(zeros):
    values = np.array([2.0, 3.0, -1.5, 0.5])
    values[:zeros] = 0
    x = torch.tensor(values, requires_grad=True)
    (grad,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    hessian = [torch.autograd.grad(part, x, retain_graph=True)[0].tolist() for part in grad]
    others = [[np.prod(np.delete(values, [i, j])) if i != j else 0.0 for j in range(4)] for i in range(4)]
    assert np.allclose(grad.tolist(), [np.prod(np.delete(values, i)) for i in range(4)])
    assert np.allclose(hessian, others)


# --- Named results -----------------------------------------------------------------------------


def test_max_along_a_dimension_has_names():
    result = torch.tensor([[1.0, 5.0], [3.0, 2.0]]).max(dim=1)
    values, indices = result
    assert result.values is values is result[0] and result.indices is indices
    assert repr(result) == "torch.return_types.max(\nvalues=tensor([5., 3.]),\nindices=tensor([1, 0]))"
    assert type(result) is torch.return_types.max and isinstance(result, tuple)
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result) and again.indices.tolist() == [1, 0]
    with pytest.raises(TypeError, match="takes a 2-sequence"):
        torch.return_types.max((values,))


def test_indices_have_no_history_but_are_watched():
    x = leaf(1.0, 3.0, 2.0)
    values, indices = x.max(0, keepdim=True)
    assert values.grad_fn._saved_indices is indices and not indices.requires_grad
    indices.zero_()
    line = "one of the variables needed for gradient computation has been modified by an inplace operation: ..."
    with fails(RuntimeError, line):
        values.backward()


def test_max_writes_into_two_tensors():
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    result = torch.max(torch.tensor([[1.0, 5.0], [3.0, 2.0]]), 0, out=(values, indices))
    assert result.values is values and values.tolist() == [3.0, 5.0]
    assert result.indices is indices and indices.tolist() == [1, 0]


def test_first_of_equal_elements_is_found():
    x = torch.tensor([1.0, 3.0, 3.0, NAN, NAN])
    assert x[:3].argmax().item() == 1 and x.argmax().item() == 3 and x.argmin().item() == 3
    assert x[:3].max(0).indices.item() == 1 and x.min(0).indices.item() == 3


# --- Arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "argmax", "all", "any", "std", "var"])
def test_numpy_names_of_arguments(name):
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    by_numpy = getattr(x, name)(axis=1, keepdims=True)
    assert by_numpy.tolist() == getattr(x, name)(dim=1, keepdim=True).tolist()
    assert by_numpy.shape == (2, 1)


def test_second_dimension_in_place_of_keepdim():
    with fails(TypeError, "sum(): argument 'keepdim' (position 3) must be bool, not int"):
        torch.sum(torch.ones(2, 3), 0, 1)


def test_words_for_the_correction():
    x = torch.tensor([1.0, 2.0, 4.0])
    assert x.var(False).item() == x.var(unbiased=False).item() == x.var(correction=0).item()
    assert x.std(0, True).item() == x.std().item() == pytest.approx(math.sqrt(7 / 3))
    line = "var() received an invalid combination of arguments - got (Tensor, int, bool, correction=int), ..."
    with fails(TypeError, line):
        torch.var(x, 0, True, correction=1)


@pytest.mark.parametrize("name", ["var", "std"])
def test_too_few_elements_for_the_correction_warn(name):
    x = leaf(1.0)
    with pytest.warns(UserWarning, match=rf"{name}\(\): degrees of freedom is <= 0. Correction should be"):
        result = getattr(x, name)()
    assert math.isnan(result.item())
    with pytest.warns(UserWarning, match=rf"{name}_mean\(\): degrees of freedom is <= 0. Correction should be"):
        spread, mean = getattr(torch, f"{name}_mean")(x)
    assert math.isnan(spread.item()) and mean.item() == 1


def test_cov_warns_of_too_few_observations():
    line = r"cov\(\): degrees of freedom is <= 0. Correction should be strictly less than the number of observations"
    with pytest.warns(UserWarning, match=line):
        assert torch.cov(torch.ones(2, 1)).isnan().all()
    with pytest.warns(UserWarning, match=line):
        torch.cov(torch.ones(2, 3), fweights=torch.tensor([1, 0, 0]))


# --- Types -------------------------------------------------------------------------------------


def test_types_of_sums():
    for dtype in (torch.bool, torch.uint8, torch.int32):
        x = torch.ones(3, dtype=dtype)
        assert {y.dtype for y in (x.sum(), x.sum(0), x.prod(), x.cumsum(0))} == {torch.int64}
    half = torch.full((3000,), 1.0, dtype=torch.float16)
    assert half.sum().dtype is torch.float16 and half.sum().item() == 3000
    assert half.mean().item() == 1 and half.sum(dtype=torch.float64).dtype is torch.float64
    with fails(RuntimeError, "Autograd not support dtype: Long"):
        leaf(1.0).sum(dtype=torch.int64)


def test_gradient_of_a_sum_in_another_type_comes_back_in_the_first():
    x = leaf(1.0, 2.0)
    x.sum(dtype=torch.float64).backward()
    assert x.grad.dtype is torch.float32


def test_gradients_of_sums_can_be_changed():
    x = torch.ones(2, 3, requires_grad=True)
    (x.sum() + x.mean(0).sum()).backward()
    x.grad.mul_(2)
    assert x.grad.tolist() == [[3.0] * 3] * 2


def test_large_sums_are_accurate():
    x = torch.full((1_000_001,), 0.1)
    assert x.sum().item() == pytest.approx(100_000.1, rel=1e-6)
    assert x.mean().item() == pytest.approx(0.1, rel=1e-6)
    assert x.norm().item() == pytest.approx(math.sqrt(10_000.01), rel=1e-6)


def test_logsumexp_does_not_overflow():
    x = torch.tensor([[1000.0, 1000.0], [-1000.0, -INF]])
    assert x.logsumexp(1).tolist() == pytest.approx([1000 + math.log(2), -1000])


def test_msort_in_inference_mode():
    with torch.inference_mode():
        found = torch.msort(torch.tensor([3.0, 1.0, 2.0]))
    assert found.is_inference()
    assert found.tolist() == [1.0, 2.0, 3.0]
    half = torch.msort(torch.tensor([3.0, 1.0], dtype=torch.float16))
    assert half.dtype is torch.float16
    assert not half.is_inference()
    rows = torch.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert torch.func.vmap(torch.msort)(rows).tolist() == [[1.0, 3.0], [2.0, 4.0]]


@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_keepdim_needs_a_dimension(name):
    x = torch.ones(2, 3)
    for call in (getattr(x, name), lambda **options: getattr(torch, name)(x, **options)):
        with pytest.raises(TypeError, match=rf"^{name}\(\) received an invalid combination of arguments"):
            call(keepdim=True)
    if name != "prod":
        assert getattr(x, name)(None, True).shape == getattr(x, name)(axis=None, keepdims=True).shape == (1, 1)


def test_out_decides_the_type_of_sums():
    """Elements are converted before they are added; with an explicit dtype, the sum is computed in that dtype."""
    x = torch.tensor([1.75, 1.75])
    whole = torch.zeros((), dtype=torch.int64)
    assert torch.sum(x, 0, out=whole).item() == 2 and torch.prod(x, 0, out=whole).item() == 1
    large = torch.full((2,), 3e38)
    assert torch.sum(large, 0, out=torch.zeros((), dtype=torch.float64)).item() == pytest.approx(6e38)


def test_absolute_values_of_complex_numbers_in_out():
    z = torch.tensor([3 + 4j])
    for kind in (torch.float32, torch.float64, torch.complex64):
        assert torch.abs(z, out=torch.zeros(1, dtype=kind)).tolist() == [5]
    with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
        torch.abs(z, out=torch.zeros(1, dtype=torch.int64))


# --- Derivatives within the range --------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_second_derivatives_of_products_divide_by_nothing(dtype):
    x = torch.tensor([0.03, 1.0, 1.0, 1.0], dtype=dtype)
    found = torch.autograd.functional.hessian(lambda x: 4000.0 * x.prod(), x)
    others = 4000 * x[0].item()
    for i in range(4):
        for j in range(4):
            expected = 0 if i == j else 4000 if 0 in (i, j) else others
            assert found[i, j].item() == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("name", ["prod", "cumprod"])
@pytest.mark.parametrize("values", [[1e-30, 1e30, 1.0, 2.0], [0.0, 3.0, 0.0, 2.0], [2.0, -3.0, 0.5, 4.0]])
def test_hessians_of_products(name, values):
    """The second derivative with respect to two factors is the product of the others."""
    found = torch.autograd.functional.hessian(lambda x: getattr(x, name)(0).sum(), torch.tensor(values))
    lengths = [4] if name == "prod" else [1, 2, 3, 4]
    for i in range(4):
        for j in range(4):
            others = [[v for k, v in enumerate(values[:n]) if k not in (i, j)] for n in lengths if max(i, j) < n]
            expected = 0 if i == j else sum(math.prod(each) for each in others)
            assert found[i, j].item() == pytest.approx(expected, rel=1e-5)


def test_gradients_of_products_that_underflow():
    assert gradient(torch.prod, [1e-200, 1e-200, 3.0]) == pytest.approx([3e-200, 3e-200, 0.0], rel=1e-12)
    x = torch.tensor([[1e-30, 1e-30, 3.0]], requires_grad=True)
    (grad,) = torch.autograd.grad(x.prod(1), x)
    torch.testing.assert_close(grad, torch.tensor([[3e-30, 3e-30, 0.0]]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-INF, -INF, -INF], [1 / 3, 1 / 3, 1 / 3]),
        ([INF, 0.0, -INF], [1.0, 0.0, 0.0]),
        ([INF, 0.0, INF], [0.5, 0.0, 0.5]),
        ([-INF, 0.0, 0.0], [0.0, 0.5, 0.5]),
    ],
)
def test_equal_infinities_share_the_gradient_of_logsumexp(values, expected):
    assert gradient(lambda x: x.logsumexp(0), values) == expected
    x = torch.tensor([values, [0.0, 0.0, 0.0]], requires_grad=True)
    (grad,) = torch.autograd.grad(x.logsumexp(1).sum(), x, create_graph=True)
    torch.testing.assert_close(grad.detach(), torch.tensor([expected, [1 / 3] * 3]))
    (second,) = torch.autograd.grad(grad[:, 0].sum(), x)
    assert second.isfinite().all() and second[1].tolist() == pytest.approx([2 / 9, -1 / 9, -1 / 9])


def test_gradient_of_logsumexp_of_one_infinite_number():
    for value in (-INF, INF):
        assert gradient(lambda x: x.logsumexp(0), value) == 1
    assert math.isnan(gradient(lambda x: x.logsumexp(0), [NAN, 0.0])[0])


def test_gradients_of_logcumsumexp_are_finite_at_infinities():
    assert gradient(lambda x: x.logcumsumexp(0).sum(), [-INF, -INF, 0.0]) == [0, 0, 1]


@pytest.mark.parametrize(
    "numbers, expected",
    [
        ([complex(-INF, 4), complex(-INF, 1), 1.5 + 2j], [complex(-INF, 0), complex(-INF, 0), 1.5 + 2j]),
        ([complex(INF, 1), complex(INF, 2), 1.0], [complex(INF, 1), complex(INF, NAN), complex(NAN, NAN)]),
        ([complex(INF, 0), complex(INF, 1)], [complex(INF, 0), complex(INF, math.pi / 4)]),
        ([complex(INF, NAN), 1.0], [complex(NAN, NAN)] * 2),
        ([complex(NAN, 2), 1.0], [complex(NAN, NAN)] * 2),
        ([1e10 + 1e20j, 1.0], [1e10 + 1e20j] * 2),
    ],
)
def test_logcumsumexp_of_infinite_complex_numbers(numbers, expected):
    """As log(exp(x) + exp(y)) of IEEE numbers: the directions of two infinite ones matter."""
    found = torch.tensor(numbers, dtype=torch.complex128).logcumsumexp(0)
    np.testing.assert_array_equal(torch.view_as_real(found), [[z.real, z.imag] for z in expected])


def test_histograms_of_points_without_dimensions():
    for named in ({}, {"weight": torch.ones(3)}):
        hist, edges = torch.histogramdd(torch.ones(3, 0), [], **named)
        assert hist.tolist() == 0 and hist.shape == () and edges == ()
    assert torch.histogramdd(torch.ones(3, 0), 2, density=True).hist.isnan().item()


def test_a_wrong_range_of_histc_is_told_before_a_wrong_dtype():
    with pytest.raises(RuntimeError, match=r"torch\.histc: max must be larger than min"):
        torch.histc(torch.tensor([1, 2]), bins=3, min=5, max=2)


def test_second_derivative_of_a_renormalized_zero():
    """x / sqrt(x^2 + 9): the second derivative in both numbers, at x = 0 and y = 3, is -1 / 9."""
    x = torch.tensor([[0.0, 3.0]], dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(x.renorm(2, 0, 1.0)[0, 0], x, create_graph=True)
    (second,) = torch.autograd.grad(grad[0, 0], x, retain_graph=True)
    (mixed,) = torch.autograd.grad(grad[0, 1], x)
    assert [second[0, 1].item(), mixed[0, 0].item()] == pytest.approx([-1 / 9, -1 / 9], rel=1e-6)
    (grad,) = torch.autograd.grad(x.renorm(2, 0, 1.0)[0, 1], x, create_graph=True)
    (second,) = torch.autograd.grad(grad[0, 0], x)
    assert second.tolist() == [[pytest.approx(-1 / 9, rel=1e-6), 0]]


def test_hashes_are_those_of_pytorch():
    whole = torch.arange(6).reshape(2, 3)
    assert torch.hash_tensor(whole).dtype is torch.uint64
    assert torch.hash_tensor(whole, 1).tolist() == [3, 2]
    assert torch.hash_tensor(whole, (0,), keepdim=True).tolist() == [[3, 5, 7]]
    assert torch.hash_tensor(whole.double()).item() == whole.double().hash_tensor().item() == 4610560118520545280
    mixed = torch.tensor([-3, 1, 2, -7])
    for dtype, hashed in (
        (torch.bool, 0),
        (torch.uint8, 7),
        (torch.int8, 7),
        (torch.int64, 7),
        (torch.float16, 9215490737506877440),
        (torch.float64, 9215490737506877440),
    ):
        assert mixed.to(dtype).hash_tensor().item() == hashed
    assert torch.hash_tensor(torch.ones(3, 0), 0).shape == (0,)
    with fails(IndexError, "hash_tensor: Expected reduction dim 1 to have non-zero size."):
        torch.hash_tensor(torch.ones(3, 0), 1)
    with fails(RuntimeError, "Expected result to be of dtype uint64, but got Long"):
        torch.hash_tensor(whole, out=torch.zeros((), dtype=torch.int64))
    assert torch.hash_tensor(torch.tensor(5)).item() == 5
    with fails(RuntimeError, "Unknown hash_tensor mode: 1"):
        torch.hash_tensor(whole, mode=1)
    with fails(NotImplementedError, "\"xor_sum_cpu\" not implemented for 'ComplexFloat'"):
        torch.hash_tensor(torch.ones(2, dtype=torch.complex64))
    with fails(RuntimeError, "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. ..."):
        torch.hash_tensor(torch.ones(0))


def test_the_indices_of_nonzero_elements_as_a_tuple_are_not_written():
    out = torch.zeros(0, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="^nonzero does not support the out kwarg when as_tuple is True"):
        torch.nonzero(torch.eye(2), as_tuple=True, out=out)
    assert torch.nonzero(torch.eye(2), out=out) is out
