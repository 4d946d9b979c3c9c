"""Channel shuffle, and the bilinear product of two inputs with a stack of matrices."""

import math
from typing import Any

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import (
    FUNCTION_ONLY,
    IMAGE,
    IMAGE_GRADIENT,
    IN0,
    IN1,
    IN2,
    LINEAR,
    PRIVATE,
    declare,
    facts,
    publish,
)
from cygrad._core.graph.record import apply_n
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.copying import contiguous
from cygrad._kernels.cpu.base.matmul import matmul as matmul_arrays
from cygrad._kernels.device.cupy_library import dense
from cygrad._ops.base.arguments import integer, require
from cygrad._ops.base.arithmetic import add, mul
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.pointwise import conj_physical
from cygrad._ops.base.products import matmul
from cygrad._ops.base.views import permute, reshape, squeeze, transpose, unsqueeze


def shuffled_array(a, groups):
    """Reorder the channels to 0, n / groups, 2 n / groups, ..., then 1, ..."""
    parts = a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])
    found = dense(parts.swapaxes(1, 2)).reshape(a.shape)
    return contiguous(found) if groups in (1, a.shape[1]) else found  # `found` may be a view of `a`


def channel_shuffle_rule(n, g):
    return channel_shuffle(g, array_of(g).shape[1] // n.args[0])


CHANNEL_SHUFFLE = declare(
    "channel_shuffle",
    channel_shuffle_rule,
    flags=LINEAR | FUNCTION_ONLY | IMAGE | IMAGE_GRADIENT,
    kernel=shuffled_array,
    inputs="self",
    attributes="groups",
    aliases="native_channel_shuffle",
)


def channel_shuffle(input, groups):
    """Interleave the channels (dimension 1) of `groups` groups: the first of each, then the second of each, ...

    Saves nothing. Gradient: g, shuffled back. Raises RuntimeError if `groups` does not divide the number of channels.

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


@rule("channel_shuffle")
def _channel_shuffle(call):
    return call.shaped(apply_n(call.op, (call.full(call.inputs[0]).flatten(0, 1),), call.args), call.out.shape)


# -- bilinear product --


def by_products(a, b, weight):
    """Return `a[..., c, :] @ weight[..., k, :, :] @ b[..., c, :]` for each c and k, composed of ops."""
    o, _, n = weight.shape[-3:]
    rows = matmul(a, _columns(weight))
    return squeeze(matmul(reshape(rows, (*rows.shape[:-1], o, n)), unsqueeze(b, -1)), -1)


def _columns(weight):
    """Return all matrices side by side."""
    o, m, n = weight.shape[-3:]
    return reshape(transpose(weight, -3, -2), (*weight.shape[:-3], m, o * n))


def trilinear_array(a, b, weight, shape):
    """Array version of `by_products`, which processes a chunk of the matrices at a time."""
    product = matmul_arrays if isinstance(a, np.ndarray) else np.matmul
    out = np.empty((len(a), len(weight)), a.dtype, like=a)
    for here in _blocks(len(a), *shape):
        part = weight[here]
        rows = product(a, dense(part.swapaxes(0, 1)).reshape(a.shape[1], -1))
        out[:, here] = product(rows.reshape(len(a), len(part), b.shape[1]), b[:, :, None])[..., 0]
    return out


def _blocks(count, o, m, n):
    """Return slices of the matrices for which products and copies take no more than a few chunks of memory."""
    step = max(1, 4 * chunks.SIZE // max(max(count, m) * n, 1))
    return [slice(start, start + step) for start in range(0, o, step)]


def trilinear_rule(n, g):
    inputs = n.saved(0), n.saved(1), n.saved(2)
    shape = n.args[0]
    parts = _blocks(g.shape[0], *shape) if n.may_run_in_parts((g, *(x for x in inputs if x is not None))) else ()
    if len(parts) < 2:
        return _gradients(n, g, *inputs, shape)
    a, b, weight = inputs
    totals: list[Any] = [None, None, np.empty(shape, array_of(g).dtype) if n.needs(2) else None]
    for here in parts:
        g_here, own = tensor_of(array_of(g)[:, here]), None if weight is None else tensor_of(array_of(weight)[here])
        found = _gradients(n, g_here, a, b, own, (g_here.shape[1], *shape[1:]))
        for i in (0, 1):
            if found[i] is not None:
                totals[i] = array_of(found[i]) if totals[i] is None else np.add(totals[i], array_of(found[i]))
        if found[2] is not None:
            totals[2][here] = array_of(found[2])
        del found  # before the next chunk is computed
    return tuple([None if total is None else tensor_of(total) for total in totals])


def _gradients(n, g, a, b, weight, shape):
    (o, m, k), count = shape, g.shape[0]
    of_a = of_b = of_weight = None
    if n.needs(0) or n.needs(2):
        rows = reshape(mul(unsqueeze(g, 2), unsqueeze(conj_physical(b), 1)), (count, o * k))
    if n.needs(0) or n.needs(1):
        columns = _columns(conj_physical(weight))
    if n.needs(0):
        of_a = matmul(rows, transpose(columns, 0, 1))
    if n.needs(2):
        of_weight = permute(reshape(matmul(transpose(conj_physical(a), 0, 1), rows), (m, o, k)), 1, 0, 2)
        del rows
    if n.needs(1):
        others = reshape(matmul(conj_physical(a), columns), (count, o, k))
        of_b = squeeze(matmul(unsqueeze(g, 1), others), 1)
    return of_a, of_b, of_weight


TRILINEAR = declare(
    "trilinear",
    trilinear_rule,
    saves=(IN1 | IN2, IN0 | IN2, IN0 | IN1),
    flags=PRIVATE,
    kernel=trilinear_array,
    inputs="i1 i2 i3",
    attributes="_",
    derived={
        "expand1": lambda n: (1, 3),
        "expand2": lambda n: (0,),
        "expand3": lambda n: (1, 2),
        "sumdim": lambda n: (2, 3),
    },
)


def trilinear(a, b, weight):
    """Return the product of `a` (count, m), `b` (count, n), and `weight` (o, m, n): (count, o). Saves all three.

    Gradients: the products of g with the other two.
    """
    return apply_n(TRILINEAR, (a, b, weight), (tuple(weight.shape),))


@rule("trilinear")
def _trilinear(call):
    return call.shaped(by_products(*map(call.near, call.inputs)), call.out.shape)


@facts(autocast="float32", autocast_gpu="widest")
def bilinear(input1, input2, weight, bias=None):
    """`input1 @ weight[k] @ input2` for each matrix k of `weight`, plus `bias`. Saves both inputs and the weight.

    Shapes: input1 (..., m), input2 (..., n), weight (o, m, n), bias (o), result (..., o). Gradients: the products of g
    with two of the three; g summed over the batch for `bias`. Raises RuntimeError for incompatible shapes.

    >>> import cygrad
    >>> cygrad.bilinear(cygrad.tensor([[1.0, 2.0]]), cygrad.tensor([[3.0]]), cygrad.ones(1, 2, 1))
    tensor([[9.]])
    """
    a, b = require(input1, "bilinear", "input1"), require(input2, "bilinear", "input2", 2)
    w = require(weight, "bilinear", "weight", 3)
    given = {"input1": a, "input2": b, "weight": w}
    if bias is not None:
        given["bias"] = require(bias, "bilinear", "bias", 4)
    if len({each.dtype for each in given.values()}) > 1:
        kinds = ", ".join(f"{name}: {messages.c_name(each.dtype)}" for name, each in given.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {kinds}")
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
    if bias is not None and bias.shape[0] != w.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {w.shape[0]}"
        )
    o, m, n = w.shape
    batch = tuple(a.shape[:-1])
    count = math.prod(batch)
    rows, others = reshape(a, (count, m)), reshape(b, (count, n))
    result = reshape(trilinear(rows, others, w), (*batch, o))
    return result if bias is None else add(result, bias)


composite = {"bilinear": FUNCTION_ONLY}
functions = publish(globals())
