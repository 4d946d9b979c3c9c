"""Window functions of `cygrad` and of `cygrad.signal.windows`. They are not recorded.

Those of `cygrad` are periodic by default: the window of length n + 1 without its last element. Those of
`cygrad.signal.windows` are symmetric unless `sym=False`. The other keyword arguments are described in creation.pyx.
"""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import FUNCTION_ONLY, facts, publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.tensor.predicates import strided
from cygrad._core.types.dtypes import by_name, get_default_dtype
from cygrad._kernels.cpu.signal import window_functions as kernels
from cygrad._kernels.device.cupy_library import made
from cygrad._kernels.tape.tape import noted_data
from cygrad._ops.base.arguments import integer
from cygrad._ops.base.checks.common import number_argument
from cygrad._ops.base.creation import check_place, delivered, is_sparse_layout, type_of_new

HANN = (0.5, 0.5)
BLACKMAN = (0.42, 0.5, 0.08)
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)

# -- cygrad --


def window(function, kernel, length, periodic, more, dtype, layout, device, pin_memory, requires_grad):
    """Check the arguments and return the window computed by `kernel`."""
    if layout is not None and is_sparse_layout(layout, function):
        raise RuntimeError(
            f"{function} is not implemented for sparse types, got: TensorOptions(layout={layout})\n"
            "  make the window, and convert it: window.to_sparse()"
        )
    place = check_place(device, pin_memory)
    length = integer(length, function, "window_length", 1)
    if type(periodic) is not bool:
        raise messages.wrong_type(function, "periodic", 2, "bool", periodic)
    wanted = type_of_new(dtype, None, get_default_dtype(), function)
    if wanted.is_complex:
        raise messages.not_implemented_for("arange_cpu", wanted)
    if not wanted.is_floating_point:
        raise RuntimeError(
            f"{function} expects floating point dtypes, got: TensorOptions(dtype={messages.c_name(wanted)}, "
            f"device=cpu, layout=Strided (default), requires_grad={str(requires_grad).lower()} (default), "
            "pinned_memory=false, memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{function} requires non-negative window_length, got window_length={length}")
    checked_lengths((length,))
    array = made(place, kernel, length, not periodic, *more)
    return delivered(noted_data(array.astype(wanted.numpy)), None, requires_grad, function)


@facts(overloads="17")
def hann_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Hann window: `(1 - cos(2 pi k / n)) / 2` for element k of n. Raises RuntimeError for a negative length.

    >>> import cygrad
    >>> cygrad.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    place = (dtype, layout, device, pin_memory, requires_grad)
    return window("hann_window", kernels.cosines, window_length, periodic, (HANN,), *place)


@facts(overloads="1")
def hamming_window(
    window_length,
    periodic=True,
    alpha=0.54,
    beta=0.46,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Hamming window: `alpha - beta * cos(2 pi k / n)` for element k of n. Raises RuntimeError for a negative length.

    >>> import cygrad
    >>> cygrad.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    place = (dtype, layout, device, pin_memory, requires_grad)
    return window("hamming_window", kernels.cosines, window_length, periodic, ((alpha, beta),), *place)


@facts(overloads="17")
def blackman_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Blackman window: `0.42 - 0.5 * cos(2 pi k / n) + 0.08 * cos(4 pi k / n)` for element k of n.

    >>> import cygrad
    >>> cygrad.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    place = (dtype, layout, device, pin_memory, requires_grad)
    return window("blackman_window", kernels.cosines, window_length, periodic, (BLACKMAN,), *place)


@facts(overloads="17")
def bartlett_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """Bartlett (triangular) window: `1 - abs(2 k / n - 1)` for element k of n.

    >>> import cygrad
    >>> cygrad.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    place = (dtype, layout, device, pin_memory, requires_grad)
    return window("bartlett_window", kernels.triangle, window_length, periodic, (), *place)


@facts(overloads="18")
def kaiser_window(
    window_length,
    periodic=True,
    beta=12.0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Kaiser window: `i0(beta * sqrt(1 - (2 k / n - 1)^2)) / i0(beta)` for element k of n. Does not need SciPy.

    >>> import cygrad
    >>> cygrad.kaiser_window(4, beta=1.0)
    tensor([0.7898, 0.9450, 1.0000, 0.9450])
    """
    place = (dtype, layout, device, pin_memory, requires_grad)
    beta = number_argument(beta, "kaiser_window", "beta", 3, "float")
    return window("kaiser_window", kernels.kaiser, window_length, periodic, (beta,), *place)


# -- signal.windows --


def shaped(function, kernel, length, more, sym, dtype, layout, device, requires_grad):
    """Check the arguments and return the window of `cygrad.signal.windows` computed by `kernel`."""
    place = check_place(device, False)
    if isinstance(length, (bool, float, np.generic)) and length in (0, 1):  # for these PyTorch checks nothing else
        length = int(length)
    length = integer(length, function, "M", 1)
    if length < 0:
        raise ValueError(f"{function} requires non-negative window length, got M={length}")
    wanted = get_default_dtype() if dtype is None else dtype
    if wanted not in (by_name()["float32"], by_name()["float64"]):
        raise ValueError(f"{function} expects float32 or float64 dtypes, got: {wanted}")
    if layout is not strided:
        raise ValueError(f"{function} is implemented for strided tensors only, got: {layout}")
    checked_lengths((length,))
    more = tuple(value.detach().item() if isinstance(value, Tensor) else value for value in more)
    array = made(place, kernel, length, bool(sym), *more)
    return delivered(noted_data(array.astype(wanted.numpy)), None, requires_grad, function)


@facts(in_python=True)
def bartlett(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Bartlett (triangular) window: `1 - abs(2 k / (M - 1) - 1)` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return shaped("bartlett", kernels.triangle, M, (), sym, dtype, layout, device, requires_grad)


@facts(in_python=True)
def blackman(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Blackman window: `0.42 - 0.5 * cos(2 pi k / (M - 1)) + 0.08 * cos(4 pi k / (M - 1))` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return shaped("blackman", kernels.cosines, M, (BLACKMAN,), sym, dtype, layout, device, requires_grad)


@facts(in_python=True)
def cosine(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Cosine window, half a period of a sine: `sin(pi * (k + 1/2) / M)` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.cosine(5)
    tensor([0.3090, 0.8090, 1.0000, 0.8090, 0.3090])
    """
    return shaped("cosine", kernels.half_sine, M, (), sym, dtype, layout, device, requires_grad)


@facts(in_python=True)
def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Exponential window: `exp(-abs(k - center) / tau)` for element k. Raises ValueError for `sym` and a center.

    >>> import cygrad
    >>> cygrad.signal.windows.exponential(5)
    tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return shaped("exponential", kernels.exponential, M, (center, tau), sym, dtype, layout, device, requires_grad)


@facts(in_python=True)
def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Gaussian window: `exp(-((k - (M - 1) / 2) / std)^2 / 2)` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.gaussian(5)
    tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return shaped("gaussian", kernels.gaussian, M, (std,), sym, dtype, layout, device, requires_grad)


@facts(in_python=True)
def general_cosine(M, *, a, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """General cosine window: the sum over i of (-1)^i * a[i] * cos(2 pi i k / (M - 1)) for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.general_cosine(5, a=[0.46, 0.23, 0.31])
    tensor([0.5400, 0.1500, 1.0000, 0.1500, 0.5400])
    """
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return shaped("general_cosine", kernels.cosines, M, (tuple(a),), sym, dtype, layout, device, requires_grad)


@facts(in_python=True)
def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """General Hamming window: `alpha - (1 - alpha) * cos(2 pi k / (M - 1))` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.general_hamming(5, alpha=0.5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    kind = {"sym": sym, "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return general_cosine(M, a=[alpha, 1.0 - alpha], **kind)


@facts(in_python=True)
def hamming(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Hamming window: `0.54 - 0.46 * cos(2 pi k / (M - 1))` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.hamming(5)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


@facts(in_python=True)
def hann(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Hann window: `(1 - cos(2 pi k / (M - 1))) / 2` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


@facts(in_python=True)
def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Kaiser window: `i0(beta * sqrt(1 - (2 k / (M - 1) - 1)^2)) / i0(beta)` for element k.

    >>> import cygrad
    >>> cygrad.signal.windows.kaiser(5, beta=1.0)
    tensor([0.7898, 0.9450, 1.0000, 0.9450, 0.7898])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return shaped("kaiser", kernels.kaiser, M, (beta,), sym, dtype, layout, device, requires_grad)


@facts(in_python=True)
def nuttall(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Nuttall window: a sum of four cosines with minimal side lobes.

    Element k is the sum over i of (-1)^i * a[i] * cos(2 pi i k / (M - 1)), where
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411].

    >>> import cygrad
    >>> cygrad.signal.windows.nuttall(5)[1:4]
    tensor([0.2270, 1.0000, 0.2270])
    """
    return general_cosine(M, a=NUTTALL, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


composite = dict.fromkeys(
    ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"), FUNCTION_ONLY
)
functions = publish(globals())
