"""Sliding windows of images as matrix columns and back (unfold, fold), and pixel shuffle."""

import math
from functools import lru_cache

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import (
    FUNCTION_ONLY,
    IMAGE,
    IMAGE_GRADIENT,
    LINEAR,
    METHOD_ONLY,
    PRIVATE,
    declare,
    facts,
    publish,
    shown,
)
from cygrad._core.graph.record import apply1_args
from cygrad._kernels.cpu.image import folding as kernels
from cygrad._kernels.cpu.image.window_geometry import geometry
from cygrad._ops.base.arguments import integer, integers, is_integer, require
from cygrad._ops.base.batching.rules import leading, merged

# -- unfold and fold --


def im2col_rule(n, g):
    return col2im(g, *n.args)


def im2col_array(x, size, kernel, dilation, padding, stride):
    where = geometry(size, kernel, blocks(size, kernel, dilation, padding, stride), stride, dilation, padding)
    return kernels.unfold(x, where) if x.ndim == 4 else kernels.unfold(x[None], where)[0]


COLUMNS = {"kernel_size": (1,), "dilation": (2,), "padding": (3,), "stride": (4,)}  # arguments of both nodes

IM2COL = declare(
    "im2col",
    im2col_rule,
    flags=PRIVATE | LINEAR,
    kernel=im2col_array,
    node="Im2ColBackward0",
    inputs="self",
    batching=merged,
    derived={**COLUMNS, "self_sym_argsize_minus_1": ..., "self_sym_argsize_minus_2": ...},
)


def im2col(input, size, kernel, dilation, padding, stride):
    """`unfold` with all arguments as pairs, and the image size. Saves nothing. Gradient: col2im(g)."""
    return apply1_args(IM2COL, input, (size, kernel, dilation, padding, stride), None)


def col2im_rule(n, g):
    return im2col(g, *n.args)


def col2im_array(x, size, kernel, dilation, padding, stride):
    where = geometry(size, kernel, blocks(size, kernel, dilation, padding, stride), stride, dilation, padding)
    return kernels.fold(x, where) if x.ndim == 3 else kernels.fold(x[None], where)[0]


COL2IM = declare(
    "col2im",
    col2im_rule,
    flags=PRIVATE | LINEAR,
    kernel=col2im_array,
    node="Col2ImBackward0",
    inputs="self",
    batching=merged,
    derived=COLUMNS,
)


def col2im(input, size, kernel, dilation, padding, stride):
    """`fold` with all arguments as pairs. Saves nothing. Gradient: im2col(g)."""
    return apply1_args(COL2IM, input, (size, kernel, dilation, padding, stride), None)


@lru_cache(256)
def blocks(size, kernel, dilation, padding, stride):
    """Return the number of windows along each dimension."""
    given = zip(size, kernel, dilation, padding, stride)
    return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in given])


def pair(value, function, name, position):
    """Convert an int or a list of two ints to a pair."""
    if is_integer(value):
        return (integer(value, function, name, position),) * 2
    given = integers(value, function, name, position)
    if len(given) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(given)}")
    return given


def read_windows(function, first, kernel_size, dilation, padding, stride):
    """Parse (kernel, dilation, padding, stride) as pairs; `first` is the position of the first of these arguments."""
    kernel = pair(kernel_size, function, "kernel_size", first)
    dilation = pair(dilation, function, "dilation", first + 1)
    padding = pair(padding, function, "padding", first + 2)
    stride = pair(stride, function, "stride", first + 3)
    return check_windows(kernel, dilation, padding, stride)


@lru_cache(256)
def check_windows(*given):
    """Return the pairs (kernel, dilation, padding, stride); raise if they are not valid windows."""
    kernel, dilation, padding, stride = given
    for name, short, values in (
        ("kernel size", "kernel", kernel),
        ("dilation", "dilation", dilation),
        ("stride", "stride", stride),
    ):
        if min(values) <= 0:
            text = f"{short}_height: {values[0]} {short}_width: {values[1]}"
            raise RuntimeError(f"{name} should be greater than zero, but got {text}")
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    return given


def check_elements(t, kernel):
    if not (t.is_floating_point() or t.is_complex() or t.dtype.type_name == "Bool"):
        raise messages.not_implemented_for(kernel, t.dtype)


@shown
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Arrange the windows of images ([n,] channels, height, width) as columns ([n,] channels * taps, windows).

    There are floor((length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1) windows along each length; their
    numbers multiply.

    `kernel_size` is the size of a window, `dilation` the distance between its elements, `padding` the number of zeros
    added on each side of the image, and `stride` the distance between windows; each is an int or one int per dimension.
    Saves nothing. Gradient: `fold(g)`.

    Raises RuntimeError for windows that do not fit, NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.unfold(cygrad.arange(9.0).reshape(1, 3, 3), 2)
    tensor([[0., 1., 3., 4.],
            [1., 2., 4., 5.],
            [3., 4., 6., 7.],
            [4., 5., 7., 8.]])
    """
    t = require(input, "im2col")
    given = read_windows("im2col", 2, kernel_size, dilation, padding, stride)
    kernel, dilation, padding, stride = given
    shape = list(t.shape)
    if t.dim() not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape}"
        )
    size = tuple(shape[-2:])
    count = blocks(size, *given)
    if min(count) < 1:
        raise RuntimeError(
            f"Given input with spatial size {size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
            f"calculated shape of the array of sliding blocks as {count}, but its components must be at least one."
        )
    check_elements(t, "im2col_out_cpu")
    return im2col(t, size, *given)


@facts(in_python=True)
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sum columns ([n,] channels * taps, windows) at their window positions into images of `output_size`.

    Each element of the image is the sum of the elements of all windows that cover it: the transpose of `unfold`.

    The other arguments are those of `unfold`. Saves nothing. Gradient: `unfold(g)`.

    Raises RuntimeError if the number of columns does not match, NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.fold(cygrad.ones(4, 4), 3, 2)
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    t = require(input, "col2im")
    size = pair(output_size, "col2im", "output_size", 2)
    given = read_windows("col2im", 3, kernel_size, dilation, padding, stride)
    kernel, dilation, padding, stride = given
    if min(size) <= 0:
        raise RuntimeError(f"output_size should be greater than zero, but got {size}")
    shape = list(t.shape)
    if t.dim() not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape}"
        )
    # Like PyTorch's, the messages number dimensions as if there always were a batch dimension.
    if shape[-2] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2]} and kernel_size={kernel}."
        )
    count = blocks(size, *given)
    shown = f"output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}"
    if min(count) < 1:
        raise RuntimeError(
            f"Given {shown}, calculated shape of the array of sliding blocks as ({count[0]}, {count[1]}), which is too "
            "small (non-positive)"
        )
    if math.prod(count) != shape[-1]:
        raise RuntimeError(
            f"Given {shown}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{count[0]} * {count[1]} = {math.prod(count)}, but got input.size(2)={shape[-1]}."
        )
    check_elements(t, "col2im_out_cpu")
    return col2im(t, size, *given)


# -- pixel shuffle --


def shuffle_rule(n, g):
    return pixel_unshuffle(g, *n.args)


PIXEL_SHUFFLE = declare(
    "pixel_shuffle",
    shuffle_rule,
    flags=FUNCTION_ONLY | LINEAR | IMAGE | IMAGE_GRADIENT,
    kernel=kernels.shuffle,
    inputs="self",
    attributes="upscale_factor",
    batching=leading,
)


def shuffle_arguments(op, input, factor, name):
    t, factor = require(input, op.name), integer(factor, op.name, name, 2)
    if t.dim() < 3:
        raise RuntimeError(
            f"{op.name} expects input to have at least 3 dimensions, but got input with {t.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{op.name} expects a positive {name}, but got {factor}")
    return t, factor


def pixel_shuffle(input, upscale_factor):
    """Rearrange (..., channels * r^2, height, width) to images (..., channels, height * r, width * r), r the factor.

    out[c, r i + k, r j + l] = input[r^2 c + r k + l, i, j].

    Saves nothing. Gradient: `pixel_unshuffle(g)`. Raises RuntimeError if channels are not a multiple of r^2.

    >>> import cygrad
    >>> cygrad.pixel_shuffle(cygrad.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    t, factor = shuffle_arguments(PIXEL_SHUFFLE, input, upscale_factor, "upscale_factor")
    if t.shape[-3] % factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={t.shape[-3]} is not divisible by {factor**2}"
        )
    return apply1_args(PIXEL_SHUFFLE, t, (factor,), None)


def unshuffle_rule(n, g):
    return pixel_shuffle(g, *n.args)


PIXEL_UNSHUFFLE = declare(
    "pixel_unshuffle",
    unshuffle_rule,
    flags=FUNCTION_ONLY | LINEAR | IMAGE | IMAGE_GRADIENT,
    kernel=kernels.unshuffle,
    inputs="self",
    attributes="downscale_factor",
    batching=leading,
)


def pixel_unshuffle(input, downscale_factor):
    """Undo `pixel_shuffle`: rearrange (..., channels, height * r, width * r) to (..., channels * r^2, height, width).

    out[r^2 c + r k + l, i, j] = input[c, r i + k, r j + l].

    Saves nothing. Gradient: `pixel_shuffle(g)`. Raises RuntimeError if height or width is not a multiple of r.

    >>> import cygrad
    >>> cygrad.pixel_unshuffle(cygrad.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    t, factor = shuffle_arguments(PIXEL_UNSHUFFLE, input, downscale_factor, "downscale_factor")
    for d, name in ((-2, "height"), (-1, "width")):
        if t.shape[d] % factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({d})={t.shape[d]} "
                f"is not divisible by {factor}"
            )
    return apply1_args(PIXEL_UNSHUFFLE, t, (factor,), None)


# `unfold` is not listed: in the main package, this name is a method with a different meaning
composite = {"fold": FUNCTION_ONLY | METHOD_ONLY}
functions = publish(globals())
