"""Functions of the stand-in for CuPy return NumPy's results as device arrays.

Each line is a test; `|` separates two calls in it.
"""

import cupy_standin
import numpy as np
import pytest

CALLS = """
xp.cumsum(x, axis=1) | xp.cumsum(x) | xp.cumprod(x, 1) | xp.cumsum(x, 0, dtype='f') | x.cumsum(1)
xp.clip(x, 0.5, 2) | xp.clip(x, None, 2) | xp.clip(x, 1, None) | x.clip(1, 2) | xp.diff(x, axis=0)
xp.diff(x, n=2, prepend=x[:, :1])
xp.take(x, i, axis=1) | xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1) | xp.moveaxis(c, 0, -1)
xp.swapaxes(c, 0, 1)
xp.concatenate([x, x], axis=1) | xp.concatenate((x, x), -1) | xp.stack([x, x], axis=-1) | xp.hstack([x, x])
xp.vstack((x, x)) | xp.tile(x, (2, 1)) | xp.append(x, x, axis=0)
xp.argsort(x, axis=1) | xp.sort(x, axis=0) | xp.argpartition(x, 1, axis=1).shape | xp.partition(x, 1).shape
xp.argmax(x, axis=1) | xp.argmin(x) | xp.argmax(x, axis=0, keepdims=True)
xp.bincount(i) | xp.bincount(i, weights=xp.ones(3)) | xp.bincount(i, minlength=7) | xp.unique(i)
xp.unique(i, return_inverse=True, return_counts=True) | xp.flatnonzero(x) | xp.nonzero(x) | xp.argwhere(x)
xp.count_nonzero(x) | xp.count_nonzero(x, axis=1)
xp.searchsorted(xp.arange(5.), x) | xp.searchsorted(xp.arange(5.), x, side='right') | xp.digitize(x, xp.arange(3.))
xp.interp(x, xp.arange(3.), xp.arange(3.))
xp.linspace(0, 1, 5) | xp.linspace(0, 1, num=5, endpoint=False, dtype='f') | xp.logspace(0, 1, 3) | xp.eye(3)
xp.eye(3, 4, 1, dtype='f') | xp.identity(3) | xp.tri(3, 4, k=-1, dtype=bool) | xp.arange(3)
xp.arange(1, 7, 2, dtype='f') | xp.arange(5, -1, -1)
xp.tril(x) | xp.triu(x, 1) | xp.tril_indices(3) | xp.triu_indices(3, 1, 4) | xp.diag(x) | xp.diag(x[0], 1)
xp.diagonal(x, 1) | xp.diagflat(x[0]) | xp.trace(x) | x.trace(1) | xp.trace(c, 0, 1, 2)
xp.flip(x, 0) | xp.flip(x) | xp.roll(x, 1, axis=1) | xp.roll(x, (1, 2), (0, 1)) | xp.rot90(x)
xp.rot90(x, 2, (0, 1)) | xp.repeat(x, 2, axis=0) | xp.repeat(x, 2) | xp.repeat(x, [1, 2], axis=0) | x.repeat(3)
xp.pad(x, ((1, 0), (0, 2))) | xp.pad(x, 1, mode='reflect') | xp.pad(x, 1, constant_values=2)
xp.expand_dims(x, (0, 2)) | xp.squeeze(x[None]) | xp.atleast_2d(x[0]) | xp.broadcast_to(x, (2, 2, 3))
xp.broadcast_arrays(x, x[0])
xp.split(x, 3, axis=1) | xp.split(x, [1], 1) | xp.array_split(x, 2, axis=1) | xp.meshgrid(x[0], x[1], indexing='ij')
xp.indices((2, 3)) | xp.ix_(xp.arange(2), xp.arange(3)) | xp.unravel_index(i, (2, 3))
xp.where(x > 1, x, 0) | xp.where(x > 1, 1.0, x) | xp.isnan(x) | xp.isclose(x, x + 1e-9) | xp.allclose(x, x)
xp.array_equal(x, x) | xp.isin(i, xp.array([1, 2])) | xp.nan_to_num(x, nan=1.0, posinf=2.0)
xp.sum(x, axis=(0, 1), keepdims=True) | xp.sum(x, 1, 'f') | x.sum(-1, dtype='f') | xp.mean(x, axis=1, dtype='f')
xp.var(x, axis=1, ddof=1) | x.std(0) | xp.prod(x, axis=0) | xp.max(x, axis=1, keepdims=True) | xp.amin(x)
xp.any(x > 1, axis=0) | xp.all(x) | xp.ptp(x) | xp.median(x, axis=1) | xp.quantile(x, 0.3, axis=1)
xp.percentile(x, 30) | xp.nanmax(x, axis=1) | xp.nanargmin(x, axis=1) | xp.nansum(x) | xp.nanmedian(x)
xp.average(x, axis=1)
xp.matmul(x, x.T) | x @ x.T | xp.dot(x, x.T) | x.dot(x[0]) | xp.einsum('ij,kj->ik', x, x)
xp.tensordot(x, x, axes=([1], [1])) | xp.tensordot(x, x, 2) | xp.inner(x, x) | xp.outer(x[0], x[1]) | xp.vdot(x, x)
xp.kron(x, x) | xp.cross(x, x[::-1])
xp.linalg.norm(x) | xp.linalg.norm(x, axis=1) | xp.linalg.norm(x, 1) | xp.linalg.det(s) | xp.linalg.slogdet(s)
xp.linalg.inv(s) | xp.linalg.solve(s, x.T) | xp.linalg.cholesky(s) | xp.linalg.eigh(s) | xp.linalg.eigvalsh(s)
xp.abs(xp.linalg.qr(s)[1]) | xp.linalg.svd(s, compute_uv=False) | xp.linalg.pinv(s) | xp.linalg.matrix_power(s, 2)
xp.linalg.matrix_rank(s) | xp.linalg.lstsq(s, x.T, rcond=None)[0] | xp.linalg.qr(x.T, mode='r').shape
xp.fft.fft(x) | xp.fft.ifft(x, axis=0) | xp.fft.rfft(x, n=4) | xp.fft.irfft(xp.fft.rfft(x), 3) | xp.fft.fft2(x)
xp.fft.fftn(c, axes=(0, 2)) | xp.fft.fftshift(x) | xp.fft.fftfreq(5) | xp.fft.rfft(x, norm='ortho')
xp.full((2,), 3) | xp.full((2,), 3.5, 'f') | xp.zeros_like(x) | xp.ones_like(x, dtype='i4') | xp.full_like(x, 3)
xp.ones(3, dtype=bool) | xp.zeros((2, 2), 'i1') | xp.ascontiguousarray(x.T) | xp.asfortranarray(x)
xp.asarray(x, dtype='f') | xp.array(x, copy=True) | xp.array([x[0, 0], x[1, 1]]) | xp.asarray([1, 2])
xp.asarray(3.5) | xp.copy(x)
xp.ravel(x.T) | xp.reshape(x, (3, 2)) | x.reshape(-1) | x.reshape(3, 2) | x.reshape((3, -1), order='F')
x.T.reshape(6) | x.transpose(1, 0) | xp.transpose(c, (2, 0, 1)) | c.transpose((1, 0, 2)) | x.flatten() | x.T.ravel()
x.astype('i4') | x.view('i8') | xp.real(x) | xp.imag(z) | z.real | z.conj() | xp.angle(z) | xp.abs(z) | abs(x)
xp.isreal(z) | xp.iscomplexobj(z)
xp.round(x, 1) | x.round() | xp.around(x) | xp.floor(x) | xp.rint(x) | xp.sign(x) | xp.modf(x) | xp.frexp(x)
xp.ldexp(x, i) | xp.divmod(x, 2) | xp.hypot(x, x) | xp.arctan2(x, x) | xp.logaddexp(x, 1) | xp.heaviside(x, 0.5)
xp.sinc(x) | xp.i0(x) | xp.copysign(x, -1) | xp.fmod(x, 2) | xp.float_power(x, 2) | xp.power(x, 3) | x ** 2 | 2 ** x
x // 2 | x % 2 | -x | x > 1 | x == x | ~(x > 1) | (x > 1) & (x < 3) | i << 1 | i ^ i | xp.logical_and(x, x > 1)
xp.maximum(x, 1) | xp.minimum(x, i) | xp.fmax(x, 2.5) | xp.square(x) | xp.reciprocal(x + 1) | xp.cbrt(x)
xp.exp2(x) | xp.gcd(i, 2) | xp.bitwise_or(i, 4) | xp.trunc(x) | xp.deg2rad(x) | xp.nextafter(x, 9) | xp.signbit(x)
xp.add.reduce(x, axis=1) | xp.add.outer(x[0], x[0]) | xp.multiply.outer(x[0], x[0]) | xp.add.accumulate(x, 1)
xp.add.reduceat(x, i[:2], 1)
xp.histogram(x, bins=4) | xp.gradient(x) | xp.trapezoid(x) | xp.convolve(x[0], x[1]) | xp.correlate(x[0], x[1])
xp.polyval(x[0], x) | xp.cov(x) | xp.corrcoef(x) | xp.delete(x, 1, axis=1) | xp.lexsort(x) | xp.packbits(x > 1)
xp.vander(x[0]) | xp.select([x > 1], [x], 0) | xp.choose(i % 2, [i, i]) | xp.extract(x > 1, x)
xp.compress([True, False], x, axis=0) | x.nonzero()
xp.result_type(x, 1.0) | xp.promote_types('f', 'd') | xp.can_cast('f', 'd') | xp.ndim(x) | xp.shape(x) | xp.size(x)
xp.finfo('f').bits | xp.iinfo('i4').max | xp.dtype('f') | xp.broadcast_shapes((2, 1), (3,))
xp.may_share_memory(x, x) | xp.s_[1:] | xp.r_[1:4] | xp.r_[x[0], 2.0] | xp.mgrid[:2, :3]
x[1] | x[1, 2] | x[..., 1] | x[:, None] | x[::-1, ::2] | x[[0, 1], [1, 2]] | x[i[:2] % 2] | x[:, i] | x[x > 1]
x[x[:, 0] > 0] | x[(slice(None), 1)] | c[0, :, i] | x[True] | x[i[:2][:, None] % 2, i]
""".strip().split("\n")

X = np.array([[0.5, 1.5, 2.25], [3.0, 0.25, 1.75]])
GIVEN = {
    "x": X,
    "i": np.array([0, 2, 1]),
    "c": np.arange(24.0).reshape(2, 3, 4),
    "s": X.T @ X + np.eye(3),  # symmetric and positive definite
    "z": X + 1j,
}


def compare(result, expected, device_array):
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected):
            compare(one, other, device_array)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert type(result) is device_array and result.dtype == expected.dtype and result.shape == expected.shape
        np.testing.assert_allclose(result.get(), expected)
    else:
        assert np.all(result.get() if type(result) is device_array else result == expected)


@pytest.mark.parametrize("calls", CALLS)
def test_functions_give_what_numpys_give(calls):
    with cupy_standin.installed() as cupy:
        given = {name: cupy.asarray(value) for name, value in GIVEN.items()}
        for call in calls.split(" | "):
            result = eval(call, {"xp": cupy, **given})
            expected = eval(call, {"xp": np, **{name: value.copy() for name, value in GIVEN.items()}})
            compare(result, expected, cupy.ndarray)
