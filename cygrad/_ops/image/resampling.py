"""Declares the op that is linear along each spatial dimension, used by average pooling and interpolation."""

from cygrad._core.graph.opdef import IMAGE, IMAGE_GRADIENT, LINEAR, PRIVATE, declare, publish, variant
from cygrad._core.graph.record import apply_n
from cygrad._kernels.cpu.image import resampling as kernels
from cygrad._ops.base.batching.rules import leading


def resample_rule(n, g):
    tables, divisor, back = n.args
    return resample(g, tables, divisor, not back)


RESAMPLE = declare(
    "resample", resample_rule, flags=PRIVATE | LINEAR, kernel=kernels.mapped, inputs="self", batching=leading
)


def resample(input, tables, divisor=None, back=False, row=RESAMPLE, hint=None):
    """Map each of the last dimensions by a table, and divide by `divisor`. Saves nothing. Gradient: the transpose.

    `hint`: PyTorch's name of the op, and its arguments.
    """
    return apply_n(row, (input,), (tables, divisor, back), None, hint)


def resampling(node, flags=IMAGE | IMAGE_GRADIENT):
    """Return the row with another node name; `flags` are those for channels-last images."""
    return variant(RESAMPLE, node, flags)


functions = publish(globals())
