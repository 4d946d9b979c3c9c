"""Fourier transforms: properties that the generic tests do not cover."""

import numpy as np
import pytest

import cygrad
from cygrad._kernels.cpu.signal import fourier


def test_module():
    assert cygrad.fft.fft is not cygrad.fft and callable(cygrad.fft.fft)
    assert "irfftn" in cygrad.fft.__all__ and "fourier" not in cygrad.fft.__all__


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_numbers_stay_whole(dtype):
    x = cygrad.tensor(np.full(7, 3, dtype))
    assert cygrad.fft.fft(x)[0] == cygrad.fft.rfft(x)[0] == cygrad.fft.ifft(x, norm="forward")[0] == 21


@pytest.mark.parametrize("norm", ["backward", "forward", "ortho"])
def test_by_public_functions_of_numpy(norm, monkeypatch):
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    z = x + 1j * x[::-1]

    def all_of_them():
        yield fourier.c2c(x, (0, 2), norm, True)
        yield fourier.c2c(z, (0, 2), norm, False)
        yield fourier.r2c(x, (1, 2), norm, True)
        yield fourier.r2c(x, (1, 0), norm, True)
        yield fourier.c2r(z, (1, 2), norm, 8)
        yield fourier.c2r(z, (2,), norm, 9)

    expected = list(all_of_them())
    monkeypatch.setattr(fourier, "loops", None)
    for found, array in zip(all_of_them(), expected):
        assert found.dtype == array.dtype
        np.testing.assert_allclose(found, array, 1e-5, 1e-5)


def test_along_no_dimension_is_a_copy():
    z = cygrad.tensor([1 + 2j])
    w = cygrad.fft.fftn(z, dim=())
    w.zero_()
    assert z.tolist() == [1 + 2j]


def test_types():
    assert cygrad.fft.fft(cygrad.arange(3)).dtype is cygrad.complex64
    assert cygrad.fft.irfft(cygrad.zeros(3, dtype=cygrad.complex128)).dtype is cygrad.float64
    assert cygrad.fft.fftfreq(3, dtype=cygrad.float64).dtype is cygrad.float64
    freq = cygrad.fft.rfftfreq(3, 2.0, requires_grad=True)
    assert freq.requires_grad and freq.is_leaf
    assert cygrad.fft.fft(cygrad.zeros(0, 3)).shape == (0, 3)
    assert cygrad.fft.irfft2(cygrad.zeros(0, 3, 3)).shape == (0, 3, 4)


@pytest.mark.parametrize("function", [cygrad.fft.fftfreq, cygrad.fft.rfftfreq])
def test_frequencies_into_a_tensor_of_another_length_warn_and_resize(function):
    out = cygrad.ones(7)
    with pytest.warns(UserWarning, match=r"out tensor of shape \[7\] is 7 which does not match .* elements \d"):
        assert function(4, out=out) is out
    np.testing.assert_array_equal(out.numpy(), function(4).numpy())
    assert function(4, out=cygrad.empty(0)).equal(out)  # one without elements takes any


def test_out():
    x = cygrad.tensor([1.0, 2.0, 3.0])
    out = cygrad.zeros(3, dtype=cygrad.complex128)
    assert cygrad.fft.fft(x, out=out) is out and out[0] == 6
    for name in ("fft", "ifft", "rfft", "ihfft", "fft2", "rfftn", "ihfftn"):
        title = name.replace("2", "n")  # as in PyTorch
        with pytest.raises(RuntimeError, match=f"^{title} expects a complex output tensor, but got Float"):
            getattr(cygrad.fft, name)(x.expand(3, 3), out=cygrad.zeros(3, 3))
    with pytest.raises(RuntimeError, match="^irfft expects a floating point output tensor, but got ComplexFloat"):
        cygrad.fft.irfft(x, out=cygrad.zeros(4, dtype=cygrad.complex64))
    with pytest.raises(RuntimeError, match="out=... arguments don't support automatic differentiation"):
        cygrad.fft.fft(x.requires_grad_(), out=out)


def test_frequencies_without_spacing():
    assert np.isnan(cygrad.fft.rfftfreq(0).numpy()).all()
    assert cygrad.fft.fftfreq(0).shape == (0,)
    np.testing.assert_array_equal(cygrad.fft.fftfreq(4, 0).numpy(), [np.nan, np.inf, -np.inf, -np.inf])


def test_signal_and_back():
    x = cygrad.tensor(np.random.default_rng(0).normal(size=(2, 50)), requires_grad=True)
    window = cygrad.hann_window(16, dtype=cygrad.float64)
    spectrum = cygrad.stft(x, 16, 4, window=window, return_complex=True)
    back = cygrad.istft(spectrum, 16, 4, window=window, length=50)
    np.testing.assert_allclose(back.detach().numpy(), x.detach().numpy(), atol=1e-12)
    back.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1, atol=1e-12)
    assert x.stft(16, window=window, return_complex=True).shape == spectrum.shape


def test_warnings_of_short_time_transforms():
    x = cygrad.ones(16)
    with pytest.warns(UserWarning, match="A window was not provided"):
        spectrum = cygrad.stft(x, 8, return_complex=True)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        parts = cygrad.stft(x, 8, window=cygrad.ones(8), return_complex=False)
    assert parts.tolist() == cygrad.view_as_real(spectrum).tolist()
    with pytest.warns(UserWarning, match="The length of signal is shorter"):
        longer = cygrad.istft(spectrum, 8, window=cygrad.ones(8), length=30)
    assert longer.shape == (30,) and longer[-1] == 0


@pytest.mark.parametrize("beta", [0.0, 0.3, 12.0, -12.0, 99.0, 101.0, 500.0])
def test_kaiser_windows_of_many_lengths(beta):
    special = pytest.importorskip("scipy.special")
    for length in (2, 3, 32, 512, 513):
        for periodic in (False, True):
            share = np.arange(length) / (length if periodic else length - 1)
            x = 2 * abs(beta) * np.sqrt(share * (1 - share))
            expected = special.i0e(x) / special.i0e(beta) * np.exp(x - abs(beta))
            found = cygrad.kaiser_window(length, periodic, beta, dtype=cygrad.float64).numpy()
            np.testing.assert_allclose(found, expected, 2e-13)


def test_types_of_windows():
    assert cygrad.hann_window(3, dtype=cygrad.float16).dtype is cygrad.float16
    assert cygrad.kaiser_window(3, requires_grad=True).is_leaf
    for dtype in (cygrad.int64, cygrad.complex64):
        with pytest.raises((RuntimeError, NotImplementedError)):
            cygrad.bartlett_window(3, dtype=dtype)
        with pytest.raises(ValueError, match="^cosine expects float32 or float64 dtypes, got: torch"):
            cygrad.signal.windows.cosine(3, dtype=dtype)


@pytest.mark.parametrize("shape", [(7, 5), (8, 6), (6, 1, 9), (2, 3)])
@pytest.mark.parametrize("forward", [False, True])
def test_real_parts_in_blocks(shape, forward, monkeypatch):
    """Transforms along all dimensions, or all but one, of even and odd lengths."""
    z = np.random.default_rng(0).normal(size=(*shape, 2)).view(complex)[..., 0]
    for dims in (tuple(range(len(shape))), (0,), (len(shape) - 1,)):
        last = z.shape[dims[-1]]
        expected = [fourier.c2c(z, dims, "ortho", forward).real, fourier.r2c(z.real, dims, "ortho", True).real]
        expected += [fourier.c2r(z, dims, "forward", n) for n in (2 * last - 2, 2 * last - 1) if n]
        with monkeypatch.context() as small:
            small.setattr("cygrad._kernels.cpu.base.chunks.SIZE", 1)
            found = [fourier.real_of_c2c(z, dims, "ortho", forward), fourier.real_of_r2c(z.real, dims, "ortho")]
            found += [fourier.c2r(z, dims, "forward", n) for n in (2 * last - 2, 2 * last - 1) if n]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-10, 1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (5, 1001), (1000, 2, 3), (3, 40, 41)], ids=str)
@pytest.mark.parametrize("norm", ["backward", "forward", "ortho"])
def test_second_half_of_real_numbers_mirrors_the_first(shape, norm, monkeypatch):
    x = np.random.default_rng(0).normal(size=shape)
    monkeypatch.setattr(fourier, "FEW", 0)
    for dims in [(d,) for d in range(len(shape))] + [(0, 1), (1, 0)]:
        found = fourier.r2c(x, dims, norm, False)
        np.testing.assert_allclose(found, fourier.c2c(x, dims, norm, True), 1e-12, 1e-12)
        if len(dims) == 1:  # equal bit for bit
            (d,) = dims
            np.testing.assert_array_equal(found, np.conj(np.roll(np.flip(found, d), 1, d)))


@pytest.mark.parametrize("length", [3, 4, 1 << 17])
def test_the_result_of_ihfft_is_a_conjugate_view_along_one_dimension_alone(length):
    x = cygrad.arange(2.0 * length).reshape(2, length)
    assert cygrad.fft.ihfft(x).is_conj() and cygrad.fft.ihfftn(x, dim=0).is_conj()
    for found in (cygrad.fft.ihfft2(x), cygrad.fft.ihfftn(x)):
        assert not found.is_conj()
    np.testing.assert_allclose(found, np.conj(np.fft.rfftn(x.numpy(), norm="forward")), rtol=1e-3, atol=1e-2)


def test_windows_are_strided():
    windows = cygrad.signal.windows
    for name in windows.__all__:
        more = {"a": [0.5, 0.5]} if name == "general_cosine" else {}
        assert getattr(windows, name)(5, layout=cygrad.strided, **more).shape == (5,)
        for layout in (cygrad.sparse_coo, "strided", None):
            with pytest.raises(ValueError, match=rf"\w+ is implemented for strided tensors only, got: {layout}"):
                getattr(windows, name)(5, layout=layout, **more)
