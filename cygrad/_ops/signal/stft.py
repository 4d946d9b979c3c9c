"""Short-time Fourier transform and its inverse, composed of recorded ops of other families."""

import math
from functools import partial

import numpy as np

from cygrad._core.engine.blocked_gradients import is_own, reused
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import IN0, IN1, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.stack_chunks import cut
from cygrad._kernels.cpu.signal.fourier import SCALED_BACK, windowed_r2c
from cygrad._ops.base.arguments import integer, require, wrap_dim
from cygrad._ops.base.arithmetic import div, mul
from cygrad._ops.base.creation import ones
from cygrad._ops.base.pointwise import square
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.slicing import narrow
from cygrad._ops.base.views import reshape, transpose
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.elementwise.complex import view_as_real
from cygrad._ops.shape.padding import pad
from cygrad._ops.shape.unfold import unfold, unfold_backward
from cygrad._ops.signal.fourier import fft_c2c, fft_c2r, fft_r2c

NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other "
    "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress "
    "this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)
TWO_PARTS = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for "
    "all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the "
    "complex output to recover the old return format."
)
LEAST_ENVELOPE = 1e-11


def described(function, signal, **arguments):
    """Return the call as PyTorch's errors show it."""
    array = array_of(signal)
    word = messages.type_word(array) if function == "stft" else f"CPU{signal.dtype.type_name}Type"
    shown = [f"{word}{list(array.shape)}"]
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            value = f"{messages.type_word(array_of(value))}{{{list(value.shape)}}}"
        shown.append(f"{name}={int(value) if isinstance(value, bool) else value}")
    return f"{function}({', '.join(shown)})"


def lengths(function, n_fft, hop_length, win_length, window):
    """Return (frame length, hop between frames, window length)."""
    size = integer(n_fft, function, "n_fft", 2)
    hop = size >> 2 if hop_length is None else integer(hop_length, function, "hop_length", 3)
    width = size if win_length is None else integer(win_length, function, "win_length", 4)
    if window is not None and not isinstance(window, Tensor):
        raise messages.wrong_type(function, "window", 5, "Tensor", window)
    return size, hop, width


def centered(window, width, size, like):
    """Pad the window (ones if None) with zeros on both sides to `size`; None if it has no effect."""
    if width == size:
        return window
    window = ones(width, dtype=like.dtype, device=like.device) if window is None else window
    left = (size - width) // 2
    return pad(window, (left, size - width - left))


SIGNATURE = (
    "Tensor input, int n_fft, int hop_length = None, int win_length = None, Tensor window = None, "
    "bool normalized = False, bool onesided = None, bool return_complex = None, bool align_to_window = None"
)

# -- stft --


@facts(autocast="float32", in_python=True)
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """Compute Fourier transforms of the frames of a signal: (..., length) gives (..., frequencies, frames).

    out[k, t] = sum over j of window[j] * x[t * hop_length + j] * exp(-2j * pi * j * k / n_fft).

    Frames of `n_fft` elements start every `hop_length` (by default n_fft // 4) elements, and are multiplied by `window`
    of `win_length` (by default n_fft) elements, centered in the frame. With `center`, the signal is first padded by
    `n_fft // 2` on both sides in mode `pad_mode`, so that frame t is centered at t * hop_length. A real signal gives
    n_fft // 2 + 1 frequencies unless `onesided` is False, a complex one all. `normalized` divides by sqrt(n_fft). With
    `return_complex=False`, which is deprecated, real and imaginary part form a last dimension.

    Gradients for `input` and `window` follow from padding, product and transform, which save both.
    Raises RuntimeError for invalid lengths.

    >>> import cygrad
    >>> x = cygrad.ones(8)
    >>> cygrad.stft(x, 4, window=cygrad.hann_window(4), center=False, return_complex=True)[:, 0]
    tensor([ 2.+0.j, -1.+0.j,  0.+0.j])
    """
    t = require(input, "stft")
    size, hop, width = lengths("stft", n_fft, hop_length, win_length, window)
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        t = padded(t, size // 2, pad_mode)
    is_complex = t.is_complex() or (window is not None and window.is_complex())
    if window is None:
        warn(NO_WINDOW)
    if return_complex is not None and not isinstance(return_complex, bool):
        raise messages.no_such_call("stft", (t, n_fft), {"return_complex": return_complex}, [SIGNATURE])
    check_output_form(is_complex, return_complex)
    call = partial(
        described,
        "stft",
        t,
        n_fft=size,
        hop_length=hop,
        win_length=width,
        window=window,
        normalized=bool(normalized),
        onesided=onesided,
        return_complex=is_complex if return_complex is None else return_complex,
        align_to_window=align_to_window,
    )
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(f"{call()} : expected a tensor of floating point or complex values")
    if t.dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {t.dtype.type_name}")
    if t.ndim not in (1, 2):
        raise RuntimeError(f"{call()} : expected a 1D or 2D tensor")
    check_sections(call, t.shape[-1], size, hop, width, window)
    if align_to_window and not center:
        t = pad(t, ((size - width) // 2,) * 2)
    return spectra(t, size, hop, centered(window, width, size, t), is_complex, normalized, onesided, return_complex)


def padded(t, count, mode):
    """Pad the signal by `count` on both sides; `pad` requires three dimensions."""
    shape = (1,) * (3 - t.ndim) + tuple(t.shape)
    result = pad(reshape(t, shape), (count, count), mode)
    return reshape(result, result.shape[len(shape) - t.ndim :])


def check_output_form(is_complex, return_complex):
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if return_complex is not None and not return_complex:
        warn(TWO_PARTS)


def check_sections(call, length, size, hop, width, window):
    """Raise unless the signal has at least one frame, and the window fits into it."""
    if not 0 < size <= length:
        raise RuntimeError(f"{call()} : expected 0 < n_fft < {length}, but got n_fft={size}")
    if hop <= 0:
        raise RuntimeError(f"{call()} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= size:
        raise RuntimeError(f"{call()} : expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and tuple(window.shape) != (width,):
        raise RuntimeError(
            f"{call()} : expected a 1D window tensor of size equal to win_length={width}, but got window with size "
            f"{list(window.shape)}"
        )


def spectra(t, size, hop, window, is_complex, normalized, onesided, return_complex):
    """Compute the transforms, after all checks."""
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    half, norm = onesided is None or bool(onesided), "ortho" if normalized else "backward"
    are_alike = window is not None and t.dtype is window.dtype and type(array_of(window)) is np.ndarray
    if half and are_alike and is_own(t) and array_of(t).dtype.char in "fd":
        result = windowed_spectra(t, window, size, hop, norm)
    else:
        sections = unfold(t, -1, size, hop)
        if window is not None:
            sections = mul(sections, window)
        dim = (sections.ndim - 1,)
        result = fft_c2c(sections, dim, norm, True) if is_complex else fft_r2c(sections, dim, norm, half)
    result = transpose(result, -2, -1)
    return result if return_complex is None or return_complex else view_as_real(result)


# -- stft of long signals --


def windowed_spectra_rule(n, g):
    size, hop, _, shape = n.args
    sections = unfold(n.saved(0), -1, size, hop) if n.needs(1) else None
    if array_of(g).size > 2 * chunks.SIZE and isinstance(array_of(g), np.ndarray) and n.may_run_in_parts(g):
        return _gradients_in_parts(n, array_of(g), sections)
    return _gradients(n, g, sections, shape)


def _gradients(n, g, sections, shape):
    """Return the gradients of a signal of that shape and of the window, given that of its spectra."""
    size, hop, norm, _ = n.args
    last = len(shape) - 1
    back = fft_c2r(g, (last + 1,), SCALED_BACK[norm], size, pairs=0.5)
    of_window = total(mul(back, sections), tuple(range(last + 1))) if n.needs(1) else None
    if not n.needs(0):
        return None, of_window
    return unfold_backward(mul(back, n.saved(1), out=reused(back)), shape, last, size, hop), of_window


def _gradients_in_parts(n, array, sections):
    size, hop, _, shape = n.args
    signal, window = (np.zeros(like, array.real.dtype) for like in (shape if n.needs(0) else (0,), (size,)))
    axis = array.ndim - 2 if array.shape[-2] >= len(array) else 0
    step = max(1, array.shape[axis] * 2 * chunks.SIZE // array.size)
    for start in range(0, array.shape[axis], step):
        part = cut(array, slice(start, start + step), axis)
        places = slice(0, (part.shape[-2] - 1) * hop + size)
        some = None if sections is None else tensor_of(cut(array_of(sections), slice(start, start + step), axis))
        of_signal, of_window = _gradients(n, tensor_of(part), some, (*part.shape[:-2], places.stop))
        if of_signal is not None:
            whole = signal[start : start + step] if axis < array.ndim - 2 else signal[..., start * hop :]
            whole[..., places] += array_of(of_signal)
        if of_window is not None:
            window += array_of(of_window)
        del of_signal, of_window, part, some
    return tensor_of(signal) if n.needs(0) else None, tensor_of(window)


WINDOWED_SPECTRA = declare(
    "windowed_spectra",
    windowed_spectra_rule,
    saves=(IN1, IN0),
    flags=PRIVATE,
    node="FftR2CBackward0",
    inputs="self window",
    batching=None,
)


def windowed_spectra(t, window, size, hop, norm):
    """Compute one-sided transforms of the windowed frames of a real signal, without keeping the windowed frames."""
    array = array_of(t)
    spectra = windowed_r2c(array_of(unfold(t.detach(), -1, size, hop)), array_of(window), norm)
    return record_n(WINDOWED_SPECTRA, spectra, (t, window), (size, hop, norm, array.shape))


# -- istft --


def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """Reconstruct a signal from its `stft`: (..., frequencies, frames) gives (..., length).

    x[i] = sum over t of w[j] * frame_t[j] / sum over t of w[j]^2, with j = i - t * hop_length.

    The inverse transforms are multiplied by the window, overlap-added, and divided by the overlap-added squares of the
    window. `length` truncates the signal or zero-pads it; with `return_complex` the result stays complex.

    Gradients for `input` and `window` follow from these steps. Raises RuntimeError for mismatched shapes, and if the
    windows leave a gap.

    >>> import cygrad
    >>> x, window = cygrad.arange(8.0), cygrad.hann_window(4)
    >>> cygrad.istft(cygrad.stft(x, 4, window=window, return_complex=True), 4, window=window)[1:4]
    tensor([1., 2., 3.])
    """
    t = require(input, "istft")
    size, hop, width = lengths("istft", n_fft, hop_length, win_length, window)
    if window is None:
        warn(NO_WINDOW)
    call = partial(
        described,
        "istft",
        t,
        n_fft=size,
        hop_length=hop,
        win_length=width,
        window=window,
        center=bool(center),
        normalized=bool(normalized),
        onesided=onesided,
        length=length,
        return_complex=bool(return_complex),
    )
    if not t.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    wrap_dim(-3, t.ndim + 1)
    half = t.shape[-2] != size if onesided is None else bool(onesided)
    check_spectra(call, t, size, hop, width, window, half, return_complex)
    window = centered(window, width, size, t.real)
    if window is None:
        window = ones(size, dtype=t.dtype if return_complex else t.real.dtype, device=t.device)
    whole = size + hop * (t.shape[-1] - 1)
    start = size // 2 if center else 0
    end = start + integer(length, "istft", "length", 9) if length is not None else whole - (size // 2 if center else 0)
    scale = _scale_of(window)
    if scale != 1:
        window = mul(window, scale)
    least = LEAST_ENVELOPE * scale**2
    y = signals(t, window, size, hop, half, normalized, return_complex, start, min(end, whole), least, call)
    if scale != 1:
        y = mul(y, scale)
    if end > whole:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        y = pad(y, (0, end - whole))
    return y


def _scale_of(window):
    """The power of two by which to multiply a window whose squares leave the range; mostly 1. Always 1 on GPUs."""
    values = values_of(window)
    if not isinstance(values, np.ndarray):
        return 1
    largest = np.abs(values).max().item()
    if not np.isfinite(largest) or largest < float(np.finfo(values.dtype).max) ** 0.25:
        return 1
    return 2.0 ** -math.frexp(largest)[1]


def check_spectra(call, t, size, hop, width, window, half, return_complex):
    """Raise unless the number of frequencies, the hop and the window are valid."""
    if t.numel() == 0:
        raise RuntimeError(f"{call()} : input tensor cannot be empty.")
    if t.ndim not in (2, 3):
        raise RuntimeError(f"{call()} : expected a tensor with 3 or 4 dimensions, but got {t.ndim + 1}")
    frequencies = size // 2 + 1 if half else size
    if t.shape[-2] != frequencies:
        wanted = "n_fft / 2 + 1 when onesided=True" if half else "n_fft when onesided=False"
        raise RuntimeError(
            f"{call()} : expected the frequency dimension (3rd to the last) of the input tensor to match {wanted}, but "
            f"got {t.shape[-2]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{call()} : expected 0 < hop_length <= win_length")
    if not 0 < width <= size:
        raise RuntimeError(f"{call()} : expected 0 < win_length <= n_fft")
    if window is not None and tuple(window.shape) != (width,):
        raise RuntimeError(f"{call()} : Invalid window shape. window has to be 1D and length of `win_length`")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")


@in_steps(2, 1, last=1, node="DivBackward0", linear=(0,))
def signals(t, window, size, hop, half, normalized, return_complex, start, end, least, call):
    y, envelope = overlapped(t, size, hop, window, half, normalized, return_complex)
    return divided(call, y, envelope, start, end, least)


def overlapped(t, size, hop, window, half, normalized, return_complex):
    """Return the overlap-added frames, and the overlap-added squares of their windows."""
    sections = transpose(t, -2, -1)
    dim, norm = (t.ndim - 1,), "ortho" if normalized else "backward"
    if return_complex:
        sections = fft_c2c(sections, dim, norm, False)
    else:
        sections = fft_c2r(sections if half else narrow(sections, -1, 0, size // 2 + 1), dim, norm, size)
    sections = mul(sections, window)
    *batch, count, _ = sections.shape
    whole = size + hop * (count - 1)
    squares = square(window).expand(count, size)
    return (
        unfold_backward(sections, (*batch, whole), len(batch), size, hop),
        unfold_backward(squares, (whole,), 0, size, hop),
    )


def divided(call, y, envelope, start, end, least):
    """Divide the sum by the envelope, from `start` to `end`, which must not be less than `least`."""
    if end <= start:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    envelope = narrow(envelope, 0, start, end - start)
    if not envelope.is_meta and abs(array_of(envelope)).min() < least:
        raise RuntimeError(
            f"{call()} window overlap add min: 1\n  the windows leave a gap in which the signal is unknown"
        )
    return div(narrow(y, -1, start, end - start), envelope)


composite = {"stft": 0, "istft": 0}
functions = publish(globals())
