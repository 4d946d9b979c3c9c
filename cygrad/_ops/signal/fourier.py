"""Discrete Fourier transforms: the functions of `cygrad.fft`.

All are composed of three ops, evaluated by NumPy: complex to complex, real to complex, and complex to real. They are
linear, and the gradient of each is its adjoint: the transform in the opposite direction with the same scale. One-sided
transforms of real numbers keep half of the frequencies; a kept frequency that represents two counts twice.

Integers are first converted to the default float dtype. Nothing is saved.
"""

from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import ELSEWHERE, LINEAR, PRIVATE, declare, facts, publish, variant
from cygrad._core.graph.record import apply_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.cpu.signal import fourier as kernels
from cygrad._kernels.cpu.signal.fourier import SCALED_BACK
from cygrad._ops.base.arguments import each_integer, integer, is_integer, require, wrap_dim
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.batching.rules import shifting
from cygrad._ops.base.pointwise import conj_physical
from cygrad._ops.base.slicing import narrow
from cygrad._ops.common.blocked_composites import LINEAR_STEPS, is_own_number, linear_steps
from cygrad._ops.common.out_argument import given
from cygrad._ops.elementwise.complex import conj

# -- the ops --


def fft_c2c_rule(n, g):
    dims, norm, forward = n.args
    if is_of_reals(n, g):
        return tensor_of(kernels.real_of_c2c(memory_of(g), dims, SCALED_BACK[norm], not forward))
    return fft_c2c(g, dims, SCALED_BACK[norm], not forward)


def is_of_reals(n, g):
    """Whether only the real part is needed, of many elements, in a pass that is not recorded."""
    return n.may_run_in_parts(g) and not n.expected_gradients()[0][1]


FFT_C2C = declare(
    "fft_c2c",
    fft_c2c_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.c2c,
    inputs="self",
    node="FftC2CBackward0",
    attributes="dim normalization forward",
    batching=shifting("D.."),
)


def fft_c2c(input, dims, norm, forward, out=None):
    """Transform a complex tensor, or compute the inverse. Gradient: the transform of g in the opposite direction."""
    return apply_n(FFT_C2C, (input,), (dims, norm, forward), out)


def fft_r2c_rule(n, g):
    dims, norm, onesided, length = n.args
    if onesided:
        return fft_c2r(g, dims, SCALED_BACK[norm], length, pairs=0.5)
    if is_of_reals(n, g):
        return tensor_of(kernels.real_of_c2c(memory_of(g), dims, SCALED_BACK[norm], False))
    return fft_c2c(g, dims, SCALED_BACK[norm], False)  # the engine takes the real part


FFT_R2C = declare(
    "fft_r2c",
    fft_r2c_rule,
    flags=LINEAR | PRIVATE,
    kernel=lambda a, dims, norm, onesided, length: kernels.r2c(a, dims, norm, onesided),
    inputs="self",
    node="FftR2CBackward0",
    attributes="dim normalization onesided",
    batching=shifting("D..."),
)


def fft_r2c(input, dims, norm, onesided, out=None):
    """Transform a real tensor; `onesided` keeps the first half of the last dimension.

    Gradient: the transform of g back to real numbers, with half the weight for frequencies that represent two.
    """
    return apply_n(FFT_R2C, (input,), (dims, norm, onesided, array_of(input).shape[dims[-1]]), out)


def fft_c2r_rule(n, g):
    dims, norm, length, pairs = n.args
    if is_of_reals(n, g):
        real = kernels.real_of_r2c(memory_of(g), dims, SCALED_BACK[norm])
        kernels.of_pairs(real, dims[-1], length)[...] *= 2 * pairs
        return tensor_of(real)
    spectrum = fft_r2c(g, dims, SCALED_BACK[norm], True)
    if pairs == 0.5:
        return spectrum
    if reused(spectrum) is None:
        weights = kernels.halved(length, 2 * pairs, array_of(spectrum), dims[-1], spectrum.dtype.to_real().numpy)
        return mul(spectrum, tensor_of(weights))
    kernels.of_pairs(memory_of(spectrum), dims[-1], length)[...] *= 2 * pairs
    return spectrum


FFT_C2R = declare(
    "fft_c2r",
    fft_c2r_rule,
    engine="pairs of frequencies may have other weights: PyTorch transforms with zeros in the place of the second ones",
    flags=LINEAR | PRIVATE,
    kernel=kernels.c2r,
    inputs="self",
    node="FftC2RBackward0",
    attributes="dim normalization last_dim_size",
    batching=shifting("D..."),
)


def fft_c2r(input, dims, norm, length, out=None, pairs=1):
    """Invert the one-sided transform; the real result has length `length` in the last dimension.

    Frequencies that represent two are first multiplied by `pairs`. Gradient: the one-sided transform of g, with twice
    that weight for frequencies that represent two.
    """
    return apply_n(FFT_C2R, (input,), (dims, norm, length, pairs), out)


def lengthened_rule(n, g):
    dim, _, length = n.args
    return narrow(g, dim, 0, length)


LENGTHENED = declare(
    "lengthened",
    lengthened_rule,
    flags=LINEAR | PRIVATE,
    kernel=lambda a, dim, length, _: kernels.lengthened(a, dim, length),
    inputs="self",
    node="ConstantPadNdBackward0",
    batching=shifting("d.."),
)


def lengthened(input, dim, length):
    """Pad a dimension with zeros at the end. Gradient: g without the padding."""
    return apply_n(LENGTHENED, (input,), (dim, length, input.shape[dim]))


# -- arguments --


def prepared(input, function, only_real=None):
    """Convert `input` to a floating-point or complex tensor; `only_real` is the error message for a complex one."""
    t = require(input, f"fft_{function}")
    dtype = t.dtype
    if only_real and dtype.is_complex:
        raise RuntimeError(only_real.format(dtype.type_name))
    if not (dtype.is_floating_point or dtype.is_complex):
        t = t.to(get_default_dtype())
    if t.dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {t.dtype.type_name}")
    return t


def normalization(norm, function, inverse=False):
    """Return the scaling mode of the underlying transform; `inverse` for functions that use the opposite direction."""
    if norm is None:
        norm = "backward"
    if not isinstance(norm, str):
        raise messages.wrong_type(f"fft_{function}", "norm", 4, "str", norm)
    if norm not in SCALED_BACK:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return SCALED_BACK[norm] if inverse else norm


def one_dim(t, n, dim, function, default=None):
    """Return (dimension, length) of a transform along one dimension; `default` computes the length if none is given."""
    dim = integer(dim, f"fft_{function}", "dim", 3)
    if t.ndim == 0:
        raise messages.no_dimensions(dim)
    dim = wrap_dim(dim, t.ndim)
    length = array_of(t).shape[dim]
    length = length if default is None else default(length)
    if n is not None:
        length = integer(n, f"fft_{function}", "n", 2)
    checked([length])
    return dim, length


def several_dims(input, s, dim, function, last=None):
    """Return (dimensions, lengths) of a transform along several; `last` computes the last length if none is given."""
    t = require(input, f"fft_{function}")
    s, dim = listed(s, function, "s", 2), listed(dim, function, "dim", 3)
    if dim is not None:
        for d in dim:
            if t.ndim == 0:
                raise messages.no_dimensions(d)
        dims = tuple(wrap_dim(d, t.ndim) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is not None:
        if dim is not None and len(dim) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > t.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {t.ndim} dimensions.")
    if dim is None:
        dims = tuple(range(t.ndim - (t.ndim if s is None else len(s)), t.ndim))
    if last is not None and not dims:
        raise RuntimeError(f"{function.replace('2', 'n')} must transform at least one axis")
    s = (-1,) * len(dims) if s is None else s
    shape = array_of(t).shape
    lengths = checked([shape[d] if given == -1 else given for given, d in zip(s, dims)])
    if last is not None and s[-1] == -1:
        lengths[-1] = last(lengths[-1])
    return dims, checked(lengths)


def checked(lengths):
    """Raise if the transform would have no elements."""
    for length in lengths:
        if length < 1:
            raise RuntimeError(f"Invalid number of data points ({length}) specified")
    return lengths


def listed(values, function, name, position):
    """Convert None, an int, or a sequence of ints to None or a tuple of ints."""
    if values is None:
        return None
    if is_integer(values):
        values = (values,)
    if not isinstance(values, (list, tuple)):
        raise messages.wrong_type(f"fft_{function}", name, position, "tuple of ints", values)
    return each_integer(tuple(values), f"fft_{function}", name, position)


def resized(t, dims, lengths):
    """Truncate or zero-pad each dimension to the given length."""
    shape = array_of(t).shape
    for dim, length in zip(dims, lengths):
        if length < shape[dim]:
            t = narrow(t, dim, 0, length)
        elif length > shape[dim]:
            checked_lengths((*shape[:dim], length, *shape[dim + 1 :]))
            t = lengthened(t, dim, length)
    return t


def check_out(out, function, is_complex):
    """Raise unless `out` can hold the result."""
    if out is None or not isinstance(out, Tensor):
        return
    function = "fftn" if function in ("fft2", "ifft2", "ifftn") else function.replace("2", "n")
    if is_complex and not out.is_complex():
        raise RuntimeError(f"{function} expects a complex output tensor, but got {out.dtype.type_name}")
    if not is_complex and not out.is_floating_point():
        raise RuntimeError(f"{function} expects a floating point output tensor, but got {out.dtype.type_name}")


def to_complex(function, input, dims, lengths, norm, forward, out):
    """Compute a transform whose result is complex and has all frequencies."""
    check_out(out, function, True)
    norm = normalization(norm, function)
    return fft_c2c(resized(input, dims, lengths), dims, norm, forward, out)


def half_to_real(function, input, dims, lengths, norm, out):
    """Transform half of the frequencies to a real result, whose last of `dims` has the last of `lengths`."""
    check_out(out, function, False)
    halves = [*lengths[:-1], lengths[-1] // 2 + 1]
    return fft_c2r(resized(input, dims, halves), dims, norm, lengths[-1], out)


def twice(length):
    """Return the length of the real signal with this many frequencies."""
    return 2 * (length - 1)


# -- along one dimension --


@facts(autocast="float32")
def fft(input, n=None, dim=-1, norm=None, *, out=None):
    """Discrete Fourier transform along `dim`: y[k] = sum of x[j] * exp(-2j * pi * j * k / n) over j.

    The dimension is first truncated or zero-padded to length `n`. `norm` selects the scale: "backward" (none, the
    default), "forward" (1/n), or "ortho" (1/sqrt(n)). Saves nothing. Gradient: the inverse transform of g with the same
    scale; its real part for a real tensor.

    Raises RuntimeError for a length below 1 and an unknown `norm`.

    >>> import cygrad
    >>> cygrad.fft.fft(cygrad.tensor([1.0, 2.0, 3.0, 2.0]))
    tensor([ 8.+0.j, -2.+0.j,  0.+0.j, -2.+0.j])
    """
    t = prepared(input, "fft")
    dim, length = one_dim(t, n, dim, "fft")
    check_out(out, "fft", True)
    if t.is_complex():
        return to_complex("fft", t, (dim,), (length,), norm, True, out)
    return fft_r2c(resized(t, (dim,), (length,)), (dim,), normalization(norm, "fft"), False, out)


@facts(autocast="float32")
def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    """Inverse of `fft`: "backward" scales by 1/n, "forward" does not. Arguments and errors are those of `fft`.

    x[j] = 1 / n * sum of y[k] * exp(2j * pi * j * k / n) over k.

    >>> import cygrad
    >>> cygrad.fft.ifft(cygrad.tensor([8.0 + 0j, -2, 0, -2]))
    tensor([1.+0.j, 2.+0.j, 3.+0.j, 2.+0.j])
    """
    t = prepared(input, "ifft")
    dim, length = one_dim(t, n, dim, "ifft")
    check_out(out, "ifft", True)
    if t.is_complex():
        return to_complex("ifft", t, (dim,), (length,), norm, False, out)
    norm = normalization(norm, "ifft", inverse=True)
    return conjugate_of_reals(resized(t, (dim,), (length,)), (dim,), norm, False, out)


def conjugate_of_reals(t, dims, norm, onesided, out=None):
    """Conjugate the transform of a real tensor: by a view along one dimension, as in PyTorch."""
    if len(dims) == 1 and out is None:
        return conj(fft_r2c(t, dims, norm, onesided))
    if len(dims) == 1:  # here `out` must have exactly this dtype, as in PyTorch
        return conj_physical(fft_r2c(t, dims, norm, onesided), out=out)
    args = dims, norm, onesided, array_of(t).shape[dims[-1]]
    if out is not None:
        return given("ihfftn", _conjugate_of_reals(t, *args), out)
    if not is_own_number(t):
        return _conjugate_of_reals(t, *args)
    function = _conjugate_of_reals, kernels.conjugate_of_r2c, kernels.from_conjugate_of_r2c
    return linear_steps(*function, t, args, CONJUGATE_OF_REALS)


def _conjugate_of_reals(t, dims, norm, onesided, length):
    """Conjugate the transform along the last dimension, then transform the others."""
    result = conj_physical(fft_r2c(t, dims[-1:], norm, onesided))
    return fft_c2c(result, dims[:-1], SCALED_BACK[norm], False)


CONJUGATE_OF_REALS = variant(LINEAR_STEPS, "FftC2CBackward0")


@facts(autocast="float32")
def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    """Transform of real numbers: the first n // 2 + 1 elements of `fft`; the others are their conjugates.

    y[k] = sum of x[j] * exp(-2j * pi * j * k / n) over j, for k = 0, ..., n // 2.

    Gradient: the transform of g back to real numbers, with the same scale. Raises RuntimeError for a complex tensor,
    and the errors of `fft`.

    >>> import cygrad
    >>> cygrad.fft.rfft(cygrad.tensor([1.0, 2.0, 3.0, 2.0]))
    tensor([ 8.+0.j, -2.+0.j,  0.+0.j])
    """
    t = prepared(input, "rfft", "rfft expects a real input tensor, but got {}")
    dim, length = one_dim(t, n, dim, "rfft")
    check_out(out, "rfft", True)
    return fft_r2c(resized(t, (dim,), (length,)), (dim,), normalization(norm, "rfft"), True, out)


@facts(autocast="float32")
def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    """Inverse of `rfft`: n real numbers from n // 2 + 1 frequencies; n defaults to 2 * (m - 1) for m frequencies.

    x[j] = 1 / n * sum of y[k] * exp(2j * pi * j * k / n) over all k, where y[n - k] = conj(y[k]).

    The imaginary part of the first frequency is ignored, and for even n also that of the last. Gradient: `rfft` of g
    with the same scale, doubled for frequencies that represent two.

    >>> import cygrad
    >>> cygrad.fft.irfft(cygrad.tensor([8.0 + 0j, -2, 0]))
    tensor([1., 2., 3., 2.])
    """
    t = prepared(input, "irfft")
    dim, length = one_dim(t, n, dim, "irfft", twice)
    return half_to_real("irfft", t, (dim,), (length,), normalization(norm, "irfft"), out)


@facts(autocast="float32")
def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    """Transform of n numbers with Hermitian symmetry (x[j] = conj(x[n - j])), of which only one half is given.

    y[k] = sum of x[j] * exp(-2j * pi * j * k / n) over all j.

    The result is real. Same as `irfft` of the conjugate, with the scale of `fft`.

    >>> import cygrad
    >>> cygrad.fft.hfft(cygrad.tensor([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    t = prepared(input, "hfft")
    dim, length = one_dim(t, n, dim, "hfft", twice)
    norm = normalization(norm, "hfft", inverse=True)
    return half_to_real("hfft", conj(t), (dim,), (length,), norm, out)


@facts(autocast="float32")
def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    """Inverse of `hfft`: the conjugate of `rfft`, with the scale of `ifft`.

    x[j] = 1 / n * sum of y[k] * exp(2j * pi * j * k / n) over k, for j = 0, ..., n // 2.

    >>> import cygrad
    >>> cygrad.fft.ihfft(cygrad.tensor([8.0, -2.0, 0.0, -2.0]))
    tensor([1.-0.j, 2.-0.j, 3.-0.j])
    """
    t = prepared(input, "ihfft", "ihfft expects a real input tensor, but got {}")
    dim, length = one_dim(t, n, dim, "ihfft")
    check_out(out, "ihfft", True)
    norm = normalization(norm, "ihfft", inverse=True)
    return conjugate_of_reals(resized(t, (dim,), (length,)), (dim,), norm, True, out)


# -- along several dimensions --


@facts(autocast="float32")
def fftn(input, s=None, dim=None, norm=None, *, out=None):
    """`fft` along the dimensions `dim`, with lengths `s`, where -1 keeps the length of the input.

    y[k, l, ...] = sum of x[m, n, ...] * exp(-2j * pi * (k m / M + l n / N + ...)) over m, n, ...

    Without `dim`, the last `len(s)` dimensions are transformed; without both, all. The scale is based on the product of
    the lengths. Raises RuntimeError for duplicate dimensions, and if `s` and `dim` differ in length.

    >>> import cygrad
    >>> cygrad.fft.fftn(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """
    return transform_several("fftn", input, s, dim, norm, True, out)


def transform_several(function, input, s, dim, norm, forward, out):
    dims, lengths = several_dims(input, s, dim, function)
    t = prepared(input, function)
    return to_complex(function, t, dims, lengths, norm, forward, out)


@facts(autocast="float32")
def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    """`ifft` along several dimensions; see `fftn`.

    x[m, n, ...] = 1 / (M N ...) * sum of y[k, l, ...] * exp(2j * pi * (k m / M + l n / N + ...)) over k, l, ...

    >>> import cygrad
    >>> cygrad.fft.ifftn(cygrad.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return transform_several("ifftn", input, s, dim, norm, False, out)


@facts(autocast="float32")
def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    """`rfft` along the last of several dimensions, `fft` along the others; see `fftn`.

    >>> import cygrad
    >>> cygrad.fft.rfftn(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return real_of_several("rfftn", input, s, dim, norm, out)


def real_of_several(function, input, s, dim, norm, out):
    dims, lengths = several_dims(input, s, dim, function, int)
    t = prepared(input, function, "rfftn expects a real-valued input tensor, but got {}")
    check_out(out, function, True)
    return fft_r2c(resized(t, dims, lengths), dims, normalization(norm, function), True, out)


@facts(autocast="float32")
def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    """Inverse of `rfftn`; the last length is that of the result. See `irfft`.

    >>> import cygrad
    >>> cygrad.fft.irfftn(cygrad.ones(2, 2))
    tensor([[1., 0.],
            [0., 0.]])
    """
    return several_to_real("irfftn", input, s, dim, norm, out)


def several_to_real(function, input, s, dim, norm, out):
    dims, lengths = several_dims(input, s, dim, function, twice)
    t = prepared(input, function)
    return half_to_real(function, t, dims, lengths, normalization(norm, function), out)


def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    """`hfft` along the last of several dimensions, `fft` along the others; see `fftn`.

    >>> import cygrad
    >>> cygrad.fft.hfftn(cygrad.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]])
    """
    return hermitian_of_several("hfftn", input, s, dim, norm, out)


def hermitian_of_several(function, input, s, dim, norm, out):
    dims, lengths = several_dims(input, s, dim, function, twice)
    t = prepared(input, function)
    norm = normalization(norm, function, inverse=True)
    return half_to_real(function, conj(t), dims, lengths, norm, out)


def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    """Inverse of `hfftn`: the conjugate of `rfftn`, with the scale of `ifftn`.

    >>> import cygrad
    >>> cygrad.fft.ihfftn(cygrad.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.+0.j, 0.+0.j]])
    """
    return inverse_hermitian_of_several("ihfftn", input, s, dim, norm, out)


def inverse_hermitian_of_several(function, input, s, dim, norm, out):
    dims, lengths = several_dims(input, s, dim, function, int)
    t = prepared(input, function, "Only supports floating-point dtypes, but found: {}")
    check_out(out, function, True)
    norm = normalization(norm, function, inverse=True)
    return conjugate_of_reals(resized(t, dims, lengths), dims, norm, True, out)


# -- along two dimensions --


@facts(autocast="float32")
def fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """`fftn` along two dimensions, by default the last two.

    `y[k, l] = sum_mn x[m, n] * exp(-2 pi i (k m / M + l n / N))`; `s` crops or pads to (M, N).

    >>> import cygrad
    >>> cygrad.fft.fft2(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return transform_several("fft2", input, s, pair(dim, "fft2"), norm, True, out)


def pair(dim, function):
    """Check `dim` of a transform along two dimensions, which must not be None."""
    if dim is None:
        raise messages.wrong_type(f"fft_{function}", "dim", 3, "tuple of ints", None)
    return dim


@facts(autocast="float32")
def ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """`ifftn` along two dimensions, by default the last two.

    >>> import cygrad
    >>> cygrad.fft.ifft2(cygrad.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return transform_several("ifft2", input, s, pair(dim, "ifft2"), norm, False, out)


@facts(autocast="float32")
def rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """`rfftn` along two dimensions, by default the last two.

    >>> import cygrad
    >>> cygrad.fft.rfft2(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return real_of_several("rfft2", input, s, pair(dim, "rfft2"), norm, out)


@facts(autocast="float32")
def irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """`irfftn` along two dimensions, by default the last two.

    >>> import cygrad
    >>> cygrad.fft.irfft2(cygrad.ones(2, 2))
    tensor([[1., 0.],
            [0., 0.]])
    """
    return several_to_real("irfft2", input, s, pair(dim, "irfft2"), norm, out)


def hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """`hfftn` along two dimensions, by default the last two.

    >>> import cygrad
    >>> cygrad.fft.hfft2(cygrad.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]])
    """
    return hermitian_of_several("hfft2", input, s, pair(dim, "hfft2"), norm, out)


def ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """`ihfftn` along two dimensions, by default the last two.

    >>> import cygrad
    >>> cygrad.fft.ihfft2(cygrad.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.+0.j, 0.+0.j]])
    """
    return inverse_hermitian_of_several("ihfft2", input, s, pair(dim, "ihfft2"), norm, out)


composite = dict.fromkeys(
    "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn".split(),
    ELSEWHERE,
)
functions = publish(globals())
