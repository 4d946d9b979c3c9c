"""NumPy functions, ufuncs and ufunc methods on tensors record gradients; arrays and tensors share memory."""

import numpy as np
import pytest

import cygrad as torch
from cygrad._core.graph.internals import array_of
from helpers import fails

A = np.linspace(-1.7, 2.3, 12)[[7, 2, 10, 0, 5, 11, 3, 8, 1, 6, 4, 9]].reshape(3, 4)
B = np.linspace(0.4, 2.9, 12)[::-1].reshape(3, 4).copy()
V = np.array([0.5, -1.0, 2.0, 0.3])
S = A[:, :3] @ A[:, :3].T + 4 * np.eye(3)
M = B > 1.5
N = np.eye(3, 4) > 0

# Expressions of `x` (the tensor A) and the arrays; the gradient for x is compared with finite differences.
CALLS = """
np.sin(x)
np.exp2(x)
np.cbrt(x)
np.square(x)
np.fabs(x)
np.degrees(x)
np.radians(x)
np.positive(x)
np.negative(x)
np.conjugate(x)
np.add(B, x)
np.add(x, V)
np.subtract(2.0, x)
np.subtract(np.float64(2), x)
np.add(x, [1, 2, 3, 4])
B * x
B - x
B / x
B ** x
np.float64(1.5) * x
2 ** x
x @ B.T
B.T @ x
V @ x.T
np.maximum(x, 0.5)
np.maximum(0.5, x)
np.fmin(x, B)
np.arctan2(x, B)
np.copysign(1.5, x) * x
np.hypot(x, 2.0)
np.logaddexp(x, B)
np.heaviside(B, 0.5) * x
np.float_power(B, x)
np.ldexp(x, 2)
np.divmod(x, 0.7)[1]
np.modf(x)[0]
np.frexp(x)[0]
np.matmul(B.T, x)
np.vecdot(x, B)
np.add(x, B, dtype=np.float64)
np.add.reduce(x)
np.add.reduce(x, axis=None)
np.add.reduce(x, axis=(0, 1), keepdims=True)
np.add.reduce(x, initial=10)
np.add.reduce(x, where=M, axis=1)
np.multiply.reduce(x, axis=1)
np.multiply.reduce(x, axis=(0, 1))
np.maximum.reduce(x, axis=1)
np.maximum.reduce(x, where=M, initial=-1)
np.subtract.reduce(x, axis=1)
np.hypot.reduce(x, axis=0)
np.logaddexp.reduce(x, axis=None)
np.add.accumulate(x, axis=1)
np.maximum.accumulate(x, axis=1)
np.multiply.accumulate(x)
np.subtract.accumulate(x, axis=1)
np.add.reduceat(x, [0, 1, 0], axis=1)
np.add.outer(x[0], x[1])
np.multiply.outer([1, 2], x)
np.sum(x)
np.sum(x, 1)
np.sum(x, axis=(0, 1), keepdims=True)
np.sum(x, axis=0, where=M)
np.sum(x, dtype=np.float64)
np.prod(x, axis=1)
np.prod(x)
np.max(x)
np.amax(x, axis=1)
np.min(x, axis=0, keepdims=True)
np.max(x, axis=0, initial=0.7)
np.mean(x)
np.mean(x, axis=1, keepdims=True)
np.mean(x, where=M)
np.var(x)
np.std(x, axis=1, ddof=1)
np.var(x, axis=(0, 1), keepdims=True)
np.cumsum(x)
np.cumsum(x, axis=1)
np.cumprod(x, axis=0)
np.nansum(x, axis=1)
np.nanmean(x)
np.median(x)
np.median(x, axis=1)
np.quantile(x, 0.3, axis=1)
np.percentile(x, [20, 50], axis=0)
np.quantile(x, 0.3, axis=(0, 1))
np.ptp(x, axis=0)
np.average(x, axis=1, weights=V)
np.average(x)
np.reshape(x, (4, 3))
np.reshape(x, (4, 3), order="F")
np.ravel(x)
np.ravel(x, order="F")
np.transpose(x)
np.transpose(x[None], (1, 2, 0))
np.squeeze(x[None], axis=0)
np.expand_dims(x, (0, 2))
np.broadcast_to(x, (2, 3, 4))
np.broadcast_arrays(x, V[None])[0]
np.flip(x)
np.flip(x, 1)
np.flip(x, axis=(0, 1))
np.fliplr(x)
np.flipud(x)
np.roll(x, 2)
np.roll(x, 1, axis=1)
np.repeat(x, 2)
np.repeat(x, [1, 2, 0], axis=0)
np.tile(x, 2)
np.tile(x, (2, 1, 2))
np.diagonal(x)
np.diagonal(x, 1)
np.trace(x)
np.trace(x, offset=1)
np.swapaxes(x, 0, 1)
np.moveaxis(x[None], 0, -1)
np.tril(x)
np.triu(x, 1)
np.copy(x)
np.nan_to_num(x)
np.sinc(x)
np.concatenate([B, x])
np.concatenate((x, B), axis=1)
np.concatenate([x, V], axis=None)
np.stack([x, B], axis=-1)
np.hstack([x, B])
np.vstack([V, x])
np.dstack([x, B])
np.column_stack([x, x])
np.append(x, V)
np.append(x, B, axis=0)
np.split(x, 2, axis=1)[1]
np.array_split(x, 2)[0]
np.array_split(x, [1, 3], axis=1)[1]
np.atleast_2d(x[0])
np.atleast_3d(x)
np.atleast_1d(x[0, 0])
np.meshgrid(x[0], V)[0]
np.where(M, x, B)
np.where(M, x, 0)
np.where(x > 0.2, x, -1.0)
np.clip(x, -0.5, 1.0)
np.clip(x, None, B)
np.take(x, [1, 2, 1])
np.take(x, [1, 0], axis=1)
np.take(x, [5, -1], axis=1, mode="clip")
np.take(x, [5, -1], axis=1, mode="wrap")
np.take_along_axis(x, np.array([[0], [1], [-1]]), axis=1)
np.sort(x, axis=0)
np.sort(x, axis=None)
np.select([M, x > 0], [x, B], 1.0)
np.diff(x)
np.diff(x, axis=0, prepend=0.0)
np.trapezoid(x, dx=0.5)
np.trapezoid(x, V, axis=1)
np.dot(x, B.T)
np.dot(x, V)
np.dot(x, 2.0)
np.dot(x[0], V)
np.inner(x, B)
np.outer(x, V)
np.vdot(x, B)
np.tensordot(x, B, axes=([0, 1], [0, 1]))
np.tensordot(x, B.T, axes=1)
np.einsum("ij,kj->ik", x, B)
np.kron(x, B)
np.linalg.norm(x)
np.linalg.norm(x, axis=1)
np.linalg.norm(x[0])
np.linalg.det(x[:, :3] @ x[:, :3].T + np.eye(3))
np.linalg.inv(x[:, :3] @ x[:, :3].T + np.eye(3))
np.linalg.solve(S, x)
np.linalg.slogdet(x[:, :3] @ x[:, :3].T + np.eye(3))[1]
np.linalg.cholesky(x[:, :3] @ x[:, :3].T + np.eye(3))
np.linalg.matrix_power(x[:, :3], 2)
np.round(x, 1) * x
np.real(x)
np.i0(x)
np.fix(x) * x
np.astype(x, np.float64)
np.nan_to_num(x, nan=3.0)
np.take(x, [[0, 1], [2, 3]], axis=1)
np.compress([True, False, True], x, axis=0)
np.extract(M, x)
np.nanprod(np.where(N, np.nan, x))
np.nancumsum(np.where(N, np.nan, x), axis=1)
np.nancumprod(np.where(N, np.nan, x), axis=0)
np.nanmax(np.where(N, np.nan, x), axis=1)
np.nanmin(np.where(N, np.nan, x))
np.nanvar(np.where(N, np.nan, x), axis=1)
np.nanstd(np.where(N, np.nan, x), ddof=1)
np.nanmedian(np.where(N, np.nan, x), axis=0)
np.nanmean(np.where(N, np.nan, x), axis=0)
np.cumulative_sum(x, axis=1, include_initial=True)
np.vsplit(x, 3)[1]
np.hsplit(x, 2)[0]
np.dsplit(x[None], 2)[1]
np.unstack(x, axis=1)[2]
np.matrix_transpose(x)
np.rollaxis(x[None], 2)
np.rot90(x)
np.diag(x[0])
np.diag(x, 1)
np.diagflat(x[0])
np.pad(x, 1)
np.pad(x, ((1, 0), (0, 2)), constant_values=2.0)
np.pad(x, ((1, 0), (0, 2)), constant_values=((2.0, 2.0),))
np.pad(x, ((1, 0), (0, 2)), mode="edge")
np.pad(x, 1, mode="reflect")
np.pad(x, (2, 1), mode="wrap")
np.block([[x, B], [B, x]])
np.block([x[0], V])
np.delete(x, [0, 2], axis=1)
np.delete(x, 1)
np.linalg.norm(x, ord=1, axis=1)
np.linalg.norm(x, ord="nuc")
np.linalg.norm(x, ord=2)
np.linalg.norm(x, axis=(0, 1))
np.linalg.vector_norm(x, axis=1, ord=3)
np.linalg.matrix_norm(x)
np.linalg.cond(x[:, :3] @ x[:, :3].T + np.eye(3))
np.linalg.pinv(x)
np.linalg.qr(x.T)[1][0, 0]
np.linalg.svd(x, compute_uv=False)
np.linalg.svdvals(x)
np.linalg.eigh(x[:, :3] @ x[:, :3].T)[0]
np.linalg.eigvalsh(x[:, :3] @ x[:, :3].T)
np.linalg.trace(x)
np.linalg.diagonal(x, offset=1)
np.linalg.vecdot(x, B)
np.linalg.outer(x[0], V)
np.linalg.matmul(x, B.T)
np.linalg.tensordot(x, B.T, axes=1)
np.linalg.cross(x[:, :3], B[:, :3])
np.cross(x[:, :3], B[:, :3])
np.abs(np.fft.fft(x))
np.fft.rfft(x, axis=0).real
np.fft.irfft(x)
np.abs(np.fft.fft2(x))
np.abs(np.fft.fftn(x, axes=(0, 1)))
np.fft.fftshift(x)
np.angle(x + 1j * B)
np.imag(1j * x)
np.vander(x[0], 3)
np.cov(x)
np.cov(x, B, ddof=0)
np.cov(x, rowvar=False)
np.corrcoef(x)
np.convolve(x[0], V)
np.convolve(V[:2], x[0], "same")
np.convolve(x[0], V[:3], mode="valid")
np.correlate(x[0], V[:3], mode="full")
np.correlate(V[:2], x[0], mode="valid")
np.polyval([1.0, 2.0, x[0, 0]], x)
np.interp(x, [-2.0, 0.1, 3.0], [1.0, 0.5, 2.0])
np.interp([0.3, 0.9], [0.0, 0.5, 1.0], x[:, 0])
"""

# Functions without a gradient.
QUESTIONS = """
np.isnan(x)
np.isfinite(x)
np.signbit(x)
np.sign(x)
np.floor(x)
np.less(x, 0.3)
B > x
np.logical_and(x, M)
np.logical_or.reduce(x > 0.3, axis=1)
np.all(x > -2)
np.any(x > 2, axis=0)
np.argmax(x)
np.argmin(x, axis=1, keepdims=True)
np.argsort(x, axis=1)
np.count_nonzero(x > 0)
np.count_nonzero(x, axis=1)
np.nonzero(x > 0)[1]
np.isclose(x, B)
np.allclose(x, A)
np.array_equal(x, A)
np.shape(x)
np.ndim(x)
np.size(x)
np.zeros_like(x)
np.ones_like(x, dtype=np.int64)
np.full_like(x, 2.5)
np.full_like(x, 7, shape=(2,))
np.iscomplexobj(x)
np.argwhere(x > 0)
np.flatnonzero(x > 0)
np.searchsorted(np.sort(V), x)
"""


def lines(text):
    return text.strip().splitlines()


def value(expression, x):
    given = {"np": np, "torch": torch, "x": x, "A": A, "B": B, "V": V, "S": S, "M": M, "N": N}
    return eval(expression, given)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # since NumPy 2.5
@pytest.mark.parametrize("expression", lines(CALLS))
def test_gives_what_numpy_gives_and_records(expression):
    try:
        value(expression, A)
    except AttributeError:
        pytest.skip("not in this NumPy")
    x = torch.tensor(A, requires_grad=True)
    found, expected = value(expression, x), np.asarray(value(expression, A))
    assert isinstance(found, torch.Tensor) and found.requires_grad
    assert array_of(found).shape == expected.shape and found.dtype is torch.float64
    np.testing.assert_allclose(array_of(found), expected, 1e-9, 1e-12)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, expected.shape)
    (found * torch.from_numpy(weights)).sum().backward()
    np.testing.assert_allclose(array_of(x.grad), differences(expression, weights), 1e-5, 1e-6)


def differences(expression, weights, step=1e-6):
    grad = np.zeros_like(A)
    for index in np.ndindex(A.shape):
        above, below = A.copy(), A.copy()
        above[index] += step
        below[index] -= step
        change = np.asarray(value(expression, above)) - np.asarray(value(expression, below))
        grad[index] = np.sum(change * weights) / (2 * step)
    return grad


@pytest.mark.parametrize("expression", lines(QUESTIONS))
def test_questions(expression):
    x = torch.tensor(A, requires_grad=True)
    found, expected = value(expression, x), value(expression, A)
    if isinstance(found, torch.Tensor):
        found = array_of(found)
        assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)


# --- out=, in place, other operands ------------------------------------------------------------


def test_into_a_tensor_goes_the_history():
    x, out = torch.tensor(V, requires_grad=True), torch.zeros(4, dtype=torch.float64)
    assert np.multiply(x, x, out=out) is out and out.grad_fn is not None
    out.sum().backward()
    np.testing.assert_allclose(array_of(x.grad), 2 * V)
    total = torch.zeros((), dtype=torch.float64)
    assert np.sum(x, out=total) is total and total.requires_grad
    assert np.add(V, V, out=torch.zeros(4)).tolist() == torch.tensor(2 * V).float().tolist()
    masked = np.add(x, 1, out=torch.zeros(4, dtype=torch.float64), where=V > 0)
    assert masked.tolist() == np.where(V > 0, V + 1, 0).tolist() and masked.requires_grad
    fraction, whole = np.modf(x, out=(torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)))
    np.testing.assert_allclose((fraction + whole).detach(), V)


def test_an_array_takes_no_history():
    x, out = torch.tensor(V, requires_grad=True), np.zeros(4)
    for call in (
        lambda: np.add(x, V, out=out),
        lambda: np.sum(x, out=out[0]),
        lambda: np.concatenate([x, V], out=np.zeros(8)),
    ):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            call()
    with fails(RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."):
        out += x
    assert not out.any()
    with torch.no_grad():
        assert np.add(x.detach(), V, out=out) is out
    np.testing.assert_array_equal(out, 2 * V)
    out += torch.tensor(V)
    assert type(out) is np.ndarray and out[0] == 3 * V[0]


def test_at_counts_each_index():
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = torch.zeros(2, 3)
    np.add.at(x, ([0, 0, 1], [1, 1, 2]), values)
    assert x.tolist() == [[0, 3, 0], [0, 0, 3]]
    (x * x).sum().backward()
    assert values.grad.tolist() == [6, 6, 6]
    y = torch.ones(3)
    np.multiply.at(y, [0, 0, 2], [2.0, 3.0, 4.0])
    np.negative.at(y, [0, 0, 1])
    assert y.tolist() == [6, -1, 4]
    a = np.zeros(3)
    np.add.at(a, [0, 0], torch.tensor([1.0, 2.0]))
    assert a.tolist() == [3, 0, 0]
    with pytest.raises(RuntimeError, match="requires grad"):
        np.add.at(a, [0, 0, 1], values)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: np.copyto(x, v),
        lambda x, v: np.copyto(x, v, where=V > 0),
        lambda x, v: np.put(x, [0, -1], v[:2]),
        lambda x, v: np.putmask(x, V > 0, v),
        lambda x, v: np.place(x, V > 0, v[:1]),
        lambda x, v: np.fill_diagonal(x.reshape(2, 2), 3.0),
        lambda x, v: np.add(x, v, out=x),
    ],
)
def test_writing_is_counted_and_recorded(write):
    array = V.copy()
    write(array, B[0])
    leaf = torch.tensor(V, requires_grad=True)
    x, values = leaf * 1, torch.tensor(B[0], requires_grad=True)
    square = x.square()
    write(x, values)
    np.testing.assert_array_equal(x.detach(), array)
    assert x._version >= 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()
    x.sum().backward()
    assert leaf.grad is not None
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad|a view of a leaf"):
        write(leaf, values.detach())


def test_second_derivatives():
    x = torch.tensor(V, requires_grad=True)
    (grad,) = torch.autograd.grad(np.sum(np.power(x, 3) * V), x, create_graph=True)
    np.sum(grad).backward()
    np.testing.assert_allclose(array_of(x.grad), 6 * V * V)


def test_types_are_promoted_as_everywhere():
    x = torch.ones(2)
    assert np.add(x, np.ones(2)).dtype is torch.float64 and (np.ones(2) * x).dtype is torch.float64
    assert np.add(x, np.float64(1)).dtype is (np.float64(1) + x).dtype is torch.float32
    assert np.maximum(x.half(), 0.5).dtype is torch.float16
    assert np.add(torch.tensor([1]), 1.5).dtype is torch.float32
    assert np.sum(torch.ones(2, dtype=torch.bool)).dtype is torch.int64


def test_what_numpy_computes():
    x = torch.tensor(V, requires_grad=True)
    with fails(RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."):
        np.spacing(x)
    with fails(RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."):
        np.histogram(x)
    assert np.spacing(x.detach()).tolist() == np.spacing(V).tolist()
    assert np.histogram(x.detach(), 2)[0].tolist() == np.histogram(V, 2)[0].tolist()
    assert np.array_repr(x) == np.array_repr(V)
    np.testing.assert_allclose(x.detach(), V)


def test_functions_of_scipy():
    special = pytest.importorskip("scipy.special")
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    for name in ("erf", "expit", "gammaln", "i0", "ndtri"):
        if not hasattr(torch.special, name):
            continue
        found = getattr(special, name)(x)
        assert found.requires_grad
        np.testing.assert_allclose(array_of(found), getattr(special, name)(array_of(x)), 1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add(x, object()),
        lambda x: np.add(x, "a"),
        lambda x: np.sin(x, nonsense=1),
        lambda x: np.matmul(x, x, axes=[0]),
        lambda x: np.add.reduce(x, axis=3),
        lambda x: np.sin.reduce(x),
        lambda x: np.maximum.reduce(x, where=V > 0),
        lambda x: np.add(x, np.ones(3)),
        lambda x: np.add(x, 1, out=torch.zeros(3)),
        lambda x: np.add(x, 1, out="a"),
        lambda x: np.add.at(x, [7], 1.0),
        lambda x: np.squeeze(x, axis=0),
        lambda x: np.split(x, 3),
        lambda x: np.concatenate([]),
        lambda x: np.reshape(x, (3,)),
        lambda x: np.take(x, [9]),
        lambda x: np.add.reduceat(x, [9]),
    ],
)
@pytest.mark.leaks_ok("NumPy never lets go of what `reduce` and its kin are given when that raises")
def test_bad_calls_raise(call):
    x = torch.tensor(V)
    with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
        call(x)
    assert x.tolist() == V.tolist() and x._version == 0


@pytest.mark.parametrize("split, shape", [(np.hsplit, ()), (np.vsplit, (2,)), (np.dsplit, (2, 2))])
def test_splits_need_the_dimension(split, shape):
    with pytest.raises(ValueError, match=f"{split.__name__} only works on arrays of"):
        split(torch.ones(shape), 2)


class Other:
    """An operand of another library that handles ufuncs itself."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return "theirs"


def test_other_libraries_may_answer():
    x = torch.ones(2)
    assert np.add(x, Other()) == np.add(Other(), x) == np.multiply(x, Other()) == "theirs"


@pytest.mark.parametrize("ufunc", ["subtract", "divide", "power", "fmod", "copysign", "nextafter", "maximum", "add"])
def test_the_initial_value_comes_first(ufunc):
    array = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = getattr(np, ufunc).reduce(torch.from_numpy(array), initial=2.0)
    np.testing.assert_allclose(found.numpy(), getattr(np, ufunc).reduce(array, initial=2.0))


@pytest.mark.parametrize("ufunc", ["logical_and", "logical_or", "logical_xor"])
def test_truth_values_are_accumulated(ufunc):
    array = np.array([[1.0, 2.0, 0.0], [0.0, 5.0, 6.0]])
    found = getattr(np, ufunc).accumulate(torch.from_numpy(array))
    assert found.dtype is torch.bool and found.tolist() == getattr(np, ufunc).accumulate(array).tolist()


@pytest.mark.parametrize("ufunc", ["hypot", "logaddexp", "logaddexp2", "nextafter", "heaviside"])
def test_integers_become_floats(ufunc):
    a, b = np.array([1, 2, 3]), np.array([3, 2, 0])
    found = getattr(np, ufunc)(torch.from_numpy(a), torch.from_numpy(b))
    np.testing.assert_allclose(found.numpy(), getattr(np, ufunc)(a, b), 1e-6)
    mixed = getattr(np, ufunc)(torch.from_numpy(a * 1.0), torch.from_numpy(b))
    np.testing.assert_allclose(mixed.numpy(), getattr(np, ufunc)(a * 1.0, b), 1e-12)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy asks for no __numpy_dtype__ yet")
def test_dtypes_are_types_of_elements_to_numpy():
    assert np.dtype(torch.float32) == np.float32 and np.zeros(2, dtype=torch.int16).dtype == np.int16
    assert np.promote_types(torch.ones(2).dtype, np.float64) == np.float64


def test_sparse_matrices_of_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    assert sparse.csr_matrix(np.eye(3)).dot(torch.arange(3.0)).tolist() == [0.0, 1.0, 2.0]
    assert not hasattr(torch.float32, "dtype") and not hasattr(
        torch.float32, "kind"
    )  # libraries use these attributes to tell PyTorch's dtypes apart


def test_matplotlib_asks_for_columns_and_mixes_tensors_with_none():
    x = torch.arange(6.0).view(2, 3)
    assert x.to_numpy() is not None and (x.to_numpy() == x.numpy()).all()
    a, none = np.broadcast_arrays(x, None)
    assert (a == x.numpy()).all() and none.shape == (2, 3) and none[0, 0] is None
    text = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    with fails(RuntimeError, text):
        x.requires_grad_().to_numpy()
    with fails(RuntimeError, text):
        np.broadcast_arrays(x, None)


def test_padding_that_only_numpy_knows():
    x = torch.arange(3.0)
    for options in ({"constant_values": (1, 2)}, {"mode": "mean"}, {"mode": "reflect", "reflect_type": "odd"}):
        found = np.pad(x, 2, **options)
        assert isinstance(found, torch.Tensor) and (found.numpy() == np.pad(x.numpy(), 2, **options)).all()
        with pytest.raises(TypeError, match="of a tensor that requires grad does not support mode"):
            np.pad(x.clone().requires_grad_(), 2, **options)
