"""Dividing by a norm: that of neighbouring channels, or that of the whole along a dimension."""

from cygrad._core.access import array_of
from cygrad._core.gradients_in_blocks import owned
from cygrad._core.opdef import ELSEWHERE, PRIVATE, declare, publish
from cygrad._core.record import record_n
from cygrad._kernels import normalizing as kernels
from cygrad._ops.arguments import require
from cygrad._ops.arithmetic import add, div, mul
from cygrad._ops.arithmetic import pow as power
from cygrad._ops.pointwise import square
from cygrad._ops.selection import clamp_min
from cygrad._ops.vector_norms import linalg_vector_norm


def channel_window_rule(n, g):
    size, before = n.args
    return channel_window(g, size, size - 1 - before)


CHANNEL_WINDOW = declare(
    "channel_window", channel_window_rule, flags=PRIVATE, kernel=kernels.window_sums, inputs="self"
)


def channel_window(input, size, before):
    """The sum over windows of channels: the element, `before` ones before it, others after it."""
    return record_n(CHANNEL_WINDOW, kernels.window_sums(array_of(input), size, before), (input,), (size, before))


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """`input / (k + alpha * average)^beta`, the average of squares over `size` neighbouring channels.

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
    if x.numel() == 0:
        return x
    squares = channel_window(square(x), size, size // 2)
    squares = mul(squares, alpha / size, out=owned(squares))
    return div(x, power(add(squares, k, out=owned(squares)), beta))


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """`input / max(norm, eps)`, the p-norm over dimension(s) `dim`.

    >>> import cygrad
    >>> cygrad.nn.functional.normalize(cygrad.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    size = linalg_vector_norm(require(input, "normalize"), p, dim, keepdim=True)
    return div(input, clamp_min(size, eps), out=out)


composite = dict.fromkeys(("local_response_norm", "normalize"), ELSEWHERE)
functions = publish(globals())
