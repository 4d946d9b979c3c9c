"""The frequencies that a discrete Fourier transform returns, and their order."""

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import ELSEWHERE, publish
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.cpu.signal import fourier as kernels
from cygrad._kernels.device.cupy_library import made
from cygrad._kernels.tape.tape import noted_data
from cygrad._ops.base.arguments import integer, require, wrap_dim
from cygrad._ops.base.creation import check_place, only_strided, type_of_new
from cygrad._ops.creation.ranges import delivered_range
from cygrad._ops.shape.flip_roll import roll
from cygrad._ops.signal.fourier import listed


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Return the frequencies of `fft` of length n, in the order of its output, in cycles per unit of the spacing `d`.

    They are [0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (n d).

    >>> import cygrad
    >>> cygrad.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    only_strided(layout, "fftfreq", out, device)
    place = check_place(device, pin_memory)
    return frequencies("fftfreq", n, d, False, out, dtype, requires_grad, place)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Return the frequencies of `rfft` of length n, in cycles per unit of the spacing `d`.

    They are [0, 1, ..., n // 2] / (n d).

    >>> import cygrad
    >>> cygrad.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    only_strided(layout, "rfftfreq", out, device)
    place = check_place(device, pin_memory)
    return frequencies("rfftfreq", n, d, True, out, dtype, requires_grad, place)


def frequencies(function, n, d, onesided, out, dtype, requires_grad, place):
    n = integer(n, f"fft_{function}", "n", 1)
    if not isinstance(d, (int, float)):
        raise messages.wrong_type(f"fft_{function}", "d", 2, "float", d)
    wanted = type_of_new(dtype, out, get_default_dtype(), f"fft_{function}")
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(f"{function} requires a floating point or complex dtype")
    if wanted.is_complex:
        raise messages.not_implemented_for("arange_cpu", wanted)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    checked_lengths((n,))
    array = noted_data(made(place, kernels.frequencies, n, d, onesided).astype(wanted.numpy))
    return delivered_range(array, out, requires_grad, f"fft_{function}")


def fftshift(input, dim=None):
    """Rotate `dim` (default: all dimensions) by half its length, which moves frequency 0 to the center.

    Gradient: g, rotated back.

    >>> import cygrad
    >>> cygrad.fft.fftshift(cygrad.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return shifted("fftshift", input, dim, 0)


def ifftshift(input, dim=None):
    """Inverse of `fftshift`.

    >>> import cygrad
    >>> cygrad.fft.ifftshift(cygrad.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
    return shifted("ifftshift", input, dim, 1)


def shifted(function, input, dim, extra):
    t = require(input, f"fft_{function}")
    dims = listed(dim, function, "dim", 2)
    dims = tuple(range(t.ndim)) if dims is None else tuple(wrap_dim(d, t.ndim) for d in dims)
    return roll(t, [(t.size(d) + extra) // 2 for d in dims], dims)


composite = dict.fromkeys("fftfreq rfftfreq fftshift ifftshift".split(), ELSEWHERE)
functions = publish(globals())
