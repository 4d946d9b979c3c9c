"""Average pooling: with fixed window sizes, with a given number of windows (adaptive), and by a norm (lp_pool)."""

import math
from functools import lru_cache

import numpy as np

from cygrad._core.engine.blocked_gradients import owned
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import array_of, memory_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, METHOD_ONLY, facts, publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.dispatch import is_asked
from cygrad._kernels.cpu.base.reduce import are_in_range
from cygrad._kernels.cpu.image.resampling import Table
from cygrad._ops.base.arguments import require, wrap_dim
from cygrad._ops.base.arithmetic import div, mul, pow
from cygrad._ops.base.pointwise import abs
from cygrad._ops.base.reductions import mean
from cygrad._ops.base.views import squeeze, unsqueeze
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.elementwise.selection import where
from cygrad._ops.image.pooling_common import adaptive_spans, check_elements, numbers, output_size, results, windows
from cygrad._ops.image.resampling import resample, resampling

ELSEWHERE = FUNCTION_ONLY | METHOD_ONLY  # found in nn.functional

# -- fixed window sizes --


@lru_cache(maxsize=256)
def window_table(image, kernel, stride, padding, size):
    """Return the table of sums over the windows along one dimension."""
    starts = np.arange(size) * stride - padding
    first, last = np.maximum(starts, 0), np.minimum(starts + kernel, image)
    width = int((last - first).max())
    return Table(image, first[:, None] + np.arange(width), last - first)


@lru_cache(maxsize=256)
def window_lengths(image, kernel, stride, padding, size, with_padding):
    """Return the number of elements in each window along one dimension."""
    starts = np.arange(size) * stride - padding
    if with_padding:
        return np.minimum(starts + kernel, image + padding) - starts
    return np.minimum(starts + kernel, image) - np.maximum(starts, 0)


AVERAGE = {2: resampling("AvgPool2DBackward0"), 3: resampling("AvgPool3DBackward0", 0)}


def _refuse_image(shape):
    if not shape:
        raise messages.no_dimensions(-3)
    if len(shape) < 3:
        wrap_dim(-3, len(shape))  # raises with PyTorch's message
    raise RuntimeError(
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but "
        f"got:{list(shape)}\n  the last two dimensions are the image: flatten the leading dimensions into one"
    )


def average(function, dims, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    t = require(input, function)
    shape = array_of(t).shape
    if dims == 2 and len(shape) not in (3, 4):
        _refuse_image(shape)
    where = windows(t, function, kernel_size, stride, padding, 1, ceil_mode, dims)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    check_elements(t, function if dims == 2 else "avg_pool3d_out_frame")
    tables, divisor = tables_of(where, bool(count_include_pad))
    if divisor_override is not None:
        divisor = np.asarray(float(divisor_override))
    how = where.given[0], where.given[1], where.given[2], bool(ceil_mode), bool(count_include_pad), divisor_override
    return resample(t, tables, divisor, row=AVERAGE[dims], hint=(f"avg_pool{dims}d", *how))


@lru_cache(256)
def tables_of(where, with_padding):
    """Return (the tables of all dimensions, the number of elements per window)."""
    each = list(zip(where.image, where.kernel, where.stride, where.low, where.size))
    return tuple([window_table(*one) for one in each]), places_of([window_lengths(*one, with_padding) for one in each])


def places_of(lengths):
    """Return the number of elements per window, given those along each dimension; length 1 where they are all equal."""
    divisor = np.ones(())
    for one in lengths:
        divisor = divisor[..., None] * (one[:1] if (one == one[:1]).all() else one)
    return divisor


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Average over windows of `kernel_size` elements of a sequence ([n,] channels, length); see `avg_pool2d`.

    >>> import cygrad
    >>> cygrad.avg_pool1d(cygrad.tensor([[1.0, 2.0, 4.0, 6.0]]), 2)
    tensor([[1.5000, 5.0000]])
    """
    t = require(input, "avg_pool1d")
    if t.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {t.dim()}-dimensional tensor for argument #1 'self' (while checking "
            "arguments for avg_pool1d)"
        )
    where = windows(t, "avg_pool1d", kernel_size, stride, padding, 1, ceil_mode, 1, results_of_rows)
    if not (is_recorded(t) or is_asked((t,), {})):  # nothing observes that this is a single op
        check_elements(t, "avg_pool2d")
        tables, divisor = tables_of(where, bool(count_include_pad))
        return resample(t, tables, divisor, row=AVERAGE[2])
    kernel, stride, padding, _ = where.given
    given = ((1, *kernel), (1, *stride), (0, *padding), ceil_mode, count_include_pad, None)
    return squeeze(average("avg_pool2d", 2, unsqueeze(t, -2), *given), -2)


def results_of_rows(shape, kernel, stride, padding, dilation, ceil_mode, dims):
    """Return the number of windows along a sequence, treated as an image with one row."""
    given = (1, *kernel), (1, *stride), (0, *padding), (1, *dilation)
    return results((*shape[:-1], 1, shape[-1]), *given, ceil_mode, 2)[1:]


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Average over the windows of images ([n,] channels, height, width).

    out[i, j] = sum of input[i * stride - padding + k, j * stride - padding + l] over k, l < kernel_size, divided by the
    number of elements of the window. The result has floor((height + 2 padding - kernel_size) / stride + 1) rows; the
    number of columns is analogous.

    `kernel_size` is the size of a window, `stride` the distance between windows (by default their size), and `padding`
    the number of zeros added on each side of the image, at most half a window; each is an int or one int per dimension.
    With `ceil_mode`, windows at the end may extend beyond the padding. Without `count_include_pad`, only elements of
    the image count. `divisor_override` replaces the number of elements as the divisor. Averages of integers are rounded
    towards zero.

    Saves nothing. Gradient: g / divisor at every element of the window. Raises RuntimeError for windows that do not
    fit.

    >>> import cygrad
    >>> cygrad.nn.functional.avg_pool2d(cygrad.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    return average("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@facts(autocast="float32")
def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Average over the windows of volumes ([n,] channels, depth, height, width); see `avg_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.avg_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    return average("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


# -- a given number of windows --


@lru_cache(256)
def adaptive_tables(image, size):
    """Return (the tables of all dimensions, the number of elements per window)."""
    tables, lengths = zip(*map(adaptive_table, image, size))
    return tables, places_of(lengths)


@lru_cache(maxsize=256)
def adaptive_table(image, size):
    first, last = adaptive_spans(image, size)
    width = int((last - first).max(initial=0))
    return Table(image, first[:, None] + np.arange(width), last - first), last - first


ADAPTIVE = {2: resampling("AdaptiveAvgPool2DBackward0"), 3: resampling("AdaptiveAvgPool3DBackward0", 0)}


def adaptive_average(dims, input, size):
    function = f"adaptive_avg_pool{dims}d"
    t = require(input, function)
    shape = array_of(t).shape
    size = output_size(size, t, function, dims)
    if len(size) != dims:
        raise RuntimeError(f"{function}: output_size must be {dims}")
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{function}(): Expected {dims + 1}D or {dims + 2}D tensor, but got {list(shape)}")
    if min(size) < 0:
        raise RuntimeError(
            f"{function}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, size))}}}"
        )
    if set(size) == {1}:
        return mean(t, tuple(range(-1, -dims - 1, -1)), True)
    image = shape[len(shape) - dims :]
    if 0 in image:
        raise RuntimeError(
            f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)} with dimension {len(shape) - dims + image.index(0)} being empty"
        )
    check_elements(t, function, integers=False)
    tables, divisor = adaptive_tables(image, size)
    return resample(t, tables, divisor, row=ADAPTIVE[dims], hint=(f"_adaptive_avg_pool{dims}d", size))


def adaptive_avg_pool1d(input, output_size):
    """Average over `output_size` windows that cover a sequence ([n,] channels, length); see `adaptive_avg_pool2d`.

    >>> import cygrad
    >>> cygrad.adaptive_avg_pool1d(cygrad.tensor([[1.0, 2.0, 4.0]]), 2)
    tensor([[1.5000, 3.0000]])
    """
    t = require(input, "adaptive_avg_pool1d")
    if t.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {t.dim()}-dimensional tensor for argument #1 'self' (while checking "
            "arguments for adaptive_avg_pool1d)"
        )
    (size,) = numbers(output_size, "adaptive_avg_pool1d", "output_size", 2, 1)
    return squeeze(adaptive_average(2, unsqueeze(t, -2), (1, size)), -2)


@facts(in_python=True)
def adaptive_avg_pool2d(input, output_size):
    """Average over `output_size` windows that cover images ([n,] channels, height, width).

    `output_size` is (rows, columns) of the result, or an int for both; None keeps the size of the input. Along a
    dimension of length n, window i of m extends from floor(i n / m) to ceil((i + 1) n / m). Saves nothing. Gradient: g
    / (window size) at every element of the window. Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_avg_pool2d(cygrad.arange(9.0).reshape(1, 3, 3), 2)
    tensor([[[2., 3.],
             [5., 6.]]])
    """
    return adaptive_average(2, input, output_size)


@facts(autocast="float32", in_python=True)
def adaptive_avg_pool3d(input, output_size):
    """Average over `output_size` windows that cover volumes ([n,] channels, depth, height, width).

    See `adaptive_avg_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_avg_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), (2, 1, 1))
    tensor([[[[1.5000]],
    <BLANKLINE>
             [[5.5000]]]])
    """
    return adaptive_average(3, input, output_size)


# -- by a norm --


def norms(function, pool, dims, input, norm_type, kernel_size, stride, ceil_mode):
    t = require(input, function)
    kernel = numbers(kernel_size, function, "kernel_size", 3, dims)
    if isinstance(norm_type, (int, float)) and math.isinf(norm_type):
        from cygrad._ops.image import max_pooling  # imported late: it imports this module

        largest = getattr(max_pooling, f"max_pool{dims}d")
        sign_of = math.copysign(1, norm_type)  # the smallest magnitude is minus the largest of the negated ones
        return mul(largest(mul(abs(t), sign_of), kernel, stride, 0, 1, ceil_mode), sign_of)
    if isinstance(norm_type, (int, float)):
        return _BY_DIMS[dims](t, pool, kernel, stride, ceil_mode, norm_type)
    return _norms(t, pool, kernel, stride, ceil_mode, norm_type)


def _norms(t, pool, kernel, stride, ceil_mode, norm_type):
    kind = sum_type(t)
    if kind is not t.dtype:
        return _norms(t.to(kind), pool, kernel, stride, ceil_mode, norm_type).to(t.dtype)
    means = pool(pow(t, norm_type), kernel, stride, 0, ceil_mode)
    scale = _scale_of_powers(memory_of(t), memory_of(means), norm_type)
    if scale != 1:
        return div(_norms(mul(t, scale), pool, kernel, stride, ceil_mode, norm_type), scale)
    sums = where(means == 0, 0.0, means)  # makes the gradient 0 there
    return pow(mul(sums, math.prod(kernel), out=owned(sums)), 1.0 / norm_type)


def _scale_of_powers(a, means, norm_type):
    """The power of two by which to multiply numbers whose powers leave the range; mostly 1. Always 1 on GPUs."""
    if type(a) is not np.ndarray or a.dtype.kind != "f" or isinstance(norm_type, Tensor) or not means.size:
        return 1
    if are_in_range(means):
        return 1
    largest = float(np.abs(a).max())
    if not 0 < largest < math.inf or 1e-3 < largest < 1e3:
        return 1
    return 2.0 ** -math.frexp(largest)[1]


_BY_DIMS = {dims: in_steps(dims, last=dims, node="PowBackward0")(_norms) for dims in (1, 2, 3)}


@facts(in_python=True)
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """`norm_type`-norm over the windows of a sequence; see `lp_pool2d`. Gradient: 0 where the sum is not positive.

    >>> import cygrad
    >>> cygrad.nn.functional.lp_pool1d(cygrad.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return norms("lp_pool1d", avg_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


@facts(in_python=True)
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """`(sum of input^norm_type)^(1 / norm_type)` over each window of images; windows are defined as in `avg_pool2d`.

    For inf, the result is the largest magnitude, for -inf the smallest. The gradient is 0 where the sum is not
    positive; for inf and -inf it goes to the first of equal magnitudes.

    >>> import cygrad
    >>> cygrad.nn.functional.lp_pool2d(cygrad.tensor([[[3.0, 0.0], [0.0, 4.0]]]), 2, 2)
    tensor([[[5.]]])
    """
    return norms("lp_pool2d", avg_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


@facts(autocast="float32", in_python=True)
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """`norm_type`-norm over the windows of volumes; see `lp_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.lp_pool3d(cygrad.ones(1, 2, 2, 2), 3, 2)
    tensor([[[[2.]]]])
    """
    return norms("lp_pool3d", avg_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)


composite = {
    **dict.fromkeys(("avg_pool1d", "adaptive_avg_pool1d"), FUNCTION_ONLY),
    **dict.fromkeys(
        (
            "avg_pool2d",
            "avg_pool3d",
            "adaptive_avg_pool2d",
            "adaptive_avg_pool3d",
            "lp_pool1d",
            "lp_pool2d",
            "lp_pool3d",
        ),
        ELSEWHERE,
    ),
}
functions = publish(globals())
