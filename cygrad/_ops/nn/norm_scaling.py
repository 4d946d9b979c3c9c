"""Division by a norm: local response normalization over channels, and normalization along dimensions."""

import numpy as np

from cygrad._core.engine.blocked_gradients import beside, in_slices, is_own, owned, reused
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELSEWHERE, IN0, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import by_name
from cygrad._kernels.cpu.base.elementary import DIVIDE
from cygrad._kernels.cpu.base.reduce import are_in_range
from cygrad._kernels.cpu.nn import normalization as kernels
from cygrad._kernels.cpu.reduction.non_finite import are_finite
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import is_integer, require, wrap_dim
from cygrad._ops.base.arithmetic import add, div, mul, sub
from cygrad._ops.base.arithmetic import pow as power
from cygrad._ops.base.batching.rules import merged
from cygrad._ops.base.pointwise import square
from cygrad._ops.base.views import reshape
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.elementwise.selection import clamp_min, where
from cygrad._ops.linalg.summed_products import sum_of_products
from cygrad._ops.linalg.vector_norms import linalg_vector_norm, norm_array


def channel_window_rule(n, g):
    size, before = n.args
    return channel_window(g, size, size - 1 - before)


CHANNEL_WINDOW = declare(
    "channel_window",
    channel_window_rule,
    flags=PRIVATE,
    kernel=kernels.window_sums,
    inputs="self",
    batching=merged,
    engine="sums of windows of channels: PyTorch averages, of tensors that it pads and reshapes",
)


def channel_window(input, size, before):
    """Sum over windows of channels: each element, `before` elements before it, and the others after it."""
    return record_n(CHANNEL_WINDOW, kernels.window_sums(array_of(input), size, before), (input,), (size, before))


@facts(in_python=True)
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Compute `input / (k + alpha * average)^beta`, with the average of squares over `size` neighboring channels.

    Raises ValueError for fewer than three dimensions.

    >>> import cygrad
    >>> cygrad.nn.functional.local_response_norm(cygrad.ones(1, 3, 1), 3, alpha=3.0, beta=1.0).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """
    x = require(input, "local_response_norm")
    if x.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {x.ndim} dimensions)"
        )
    return _over_responses(x, size, alpha, beta, k) if x.numel() else x


@in_steps(-1, last=-1, node="DivBackward0")
def _over_responses(x, size, alpha, beta, k):
    squares = channel_window(square(x), size, size // 2)
    if x.dtype.itemsize < 8 and _leave_the_range(squares, k):
        return _over_responses(x.to(by_name()["float64"]), size, alpha, beta, k).to(x.dtype)
    squares = mul(squares, alpha / size, out=owned(squares))
    return div(x, power(add(squares, k, out=owned(squares)), beta))


def _leave_the_range(squares, k):
    """Whether sums of squares are infinite, or too small where nothing is added to them. Always no on GPUs."""
    values = values_of(squares)
    return isinstance(values, np.ndarray) and not (_are_finite(values) if k else _are_in_range(values))


_are_finite, _are_in_range = noted(are_finite), noted(are_in_range)


# -- division by the 2-norm --


@in_slices(beside)
def unit_rule(n, g):
    dim, eps, is_bounded = n.args
    x = n.saved(0)
    norm = linalg_vector_norm(x, 2, dim, True)
    divisor = clamp_min(norm, eps)
    direction = div(x, where(norm == 0, 1.0, norm))
    along = sum_of_products(g, direction, dim)
    along = reshape(along, tuple(norm.shape))
    along = where(norm >= eps, along, 0.0 if is_bounded else mul(along, div(norm, divisor)))
    direction = mul(direction, along, out=reused(direction))
    grad = sub(g, direction, out=reused(direction))
    return div(grad, divisor, out=reused(grad))


UNIT = declare(
    "unit",
    unit_rule,
    saves=IN0,
    flags=PRIVATE,
    node="DivBackward0",
    inputs="self",
    attributes="dim eps is_bounded",
    batching=None,
)


def unit(input, dim, eps, is_bounded):
    """Divide `input` by max(2-norm along `dim`, eps). The gradient ignores the bound unless `is_bounded`."""
    x = array_of(input)
    norm = norm_array(x, 2.0, (dim,), True)
    if eps > 0 and x.dtype == np.float16:
        eps = max(eps, float(np.finfo(x.dtype).smallest_subnormal))
    divisor = np.maximum(norm, x.dtype.type(eps), out=norm)
    array = DIVIDE(x, divisor) if isinstance(x, np.ndarray) else x / divisor
    return record_n(UNIT, array, (input,), (dim, eps, is_bounded))


def may_be_unit(t):
    """Whether `unit` supports the tensor and is faster than the ops it replaces."""
    return isinstance(t, Tensor) and is_own(t) and array_of(t).dtype.char in "fd" and array_of(t).flags.c_contiguous


# -- normalize --


@facts(autocast_gpu="float32", in_python=True)
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Compute `input / max(norm, eps)`, with the p-norm over dimension(s) `dim`.

    The norm is (sum of |x|^p)^(1/p).

    >>> import cygrad
    >>> cygrad.nn.functional.normalize(cygrad.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if p == 2 and out is None and is_integer(dim) and may_be_unit(input):
        return unit(input, wrap_dim(dim, input.ndim), eps, True)
    size = linalg_vector_norm(require(input, "normalize"), p, dim, keepdim=True)
    if size.dtype.itemsize == 2 and eps > 0:
        eps = max(eps, float(np.finfo(size.dtype.numpy).smallest_subnormal) if size.dtype.name == "float16" else eps)
    return div(input, clamp_min(size, eps), out=out)


composite = dict.fromkeys(("local_response_norm", "normalize"), ELSEWHERE)
functions = publish(globals())
