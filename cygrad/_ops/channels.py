"""Reordering channels, and the product of two inputs under a stack of matrices."""

import numpy as np

from cygrad._core.access import array_of
from cygrad._core.opdef import FUNCTION_ONLY, LINEAR, declare, publish
from cygrad._core.record import apply_n
from cygrad._kernels.gpu.library import dense
from cygrad._ops.arguments import integer, require
from cygrad._ops.arithmetic import add
from cygrad._ops.products import matmul
from cygrad._ops.views import permute, reshape, unsqueeze


def shuffled_array(a, groups):
    """Channels 0, n / groups, 2 n / groups, ..., then 1, ..."""
    parts = a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])
    return dense(parts.swapaxes(1, 2)).reshape(a.shape)


def channel_shuffle_rule(n, g):
    return channel_shuffle(g, array_of(g).shape[1] // n.args[0])


CHANNEL_SHUFFLE = declare(
    "channel_shuffle",
    channel_shuffle_rule,
    flags=LINEAR | FUNCTION_ONLY,
    kernel=shuffled_array,
    inputs="self",
    attributes="groups",
    aliases="native_channel_shuffle",
)


def channel_shuffle(input, groups):
    """The channels (dimension 1) of `groups` groups in turn: the first of each, then the second of each, ...

    Saves nothing. Gradient: g, shuffled back. Raises RuntimeError for a number of groups that does not divide them.

    >>> import cygrad
    >>> cygrad.channel_shuffle(cygrad.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    shape = tuple(require(input, "channel_shuffle").shape)
    groups = integer(groups, "channel_shuffle", "groups", 2)
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return apply_n(CHANNEL_SHUFFLE, (input,), (groups,))


def bilinear(input1, input2, weight, bias=None):
    """`input1 @ weight[k] @ input2` for each matrix k of `weight`, plus `bias`.

    Shapes: input1 (..., m), input2 (..., n), weight (o, m, n), bias (o), result (..., o). Raises RuntimeError for
    shapes that do not fit.

    >>> import cygrad
    >>> cygrad.bilinear(cygrad.tensor([[1.0, 2.0]]), cygrad.tensor([[3.0]]), cygrad.ones(1, 2, 1))
    tensor([[9.]])
    """
    a, b = require(input1, "bilinear", "input1"), require(input2, "bilinear", "input2", 2)
    w = require(weight, "bilinear", "weight", 3)
    if a.ndim != b.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {a.ndim} and {b.ndim}")
    for i, (m, n) in enumerate(zip(a.shape[:-1], b.shape[:-1])):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {m} and {n}")
    if w.ndim < 2 or a.shape[-1] != w.shape[1]:
        wanted = w.shape[1] if w.ndim > 1 else 0
        raise RuntimeError(
            f"bilinear(): input1 size does not match weight size: got {a.shape[-1]} but expected {wanted}"
        )
    if w.ndim != 3 or b.shape[-1] != w.shape[2]:
        wanted = w.shape[2] if w.ndim > 2 else 0
        raise RuntimeError(
            f"bilinear(): input2 size does not match weight size: got {b.shape[-1]} but expected {wanted}"
        )
    if bias is not None and require(bias, "bilinear", "bias", 4).shape[0] != w.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {w.shape[0]}"
        )
    o, m, n = w.shape
    batch = tuple(a.shape[:-1])
    count = int(np.prod(batch))
    rows = matmul(reshape(a, (count, m)), reshape(permute(w, 1, 0, 2), (m, o * n)))
    result = matmul(reshape(rows, (count, o, n)), unsqueeze(reshape(b, (count, n)), 2))
    result = reshape(result, (*batch, o))
    return result if bias is None else add(result, bias)


composite = {"bilinear": FUNCTION_ONLY}
functions = publish(globals())
