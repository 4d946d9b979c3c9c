"""The row of all ops that are linear along each spatial dimension: averages over windows, interpolation."""

from cygrad._core.graph.opdef import LINEAR, PRIVATE, declare, publish, variant
from cygrad._core.graph.record import apply_n
from cygrad._kernels.cpu.image import resampling as kernels


def resample_rule(n, g):
    tables, divisor, back = n.args
    return resample(g, tables, divisor, not back)


RESAMPLE = declare("resample", resample_rule, flags=PRIVATE | LINEAR, kernel=kernels.mapped, inputs="self")


def resample(input, tables, divisor=None, back=False, row=RESAMPLE):
    """Map the last dimensions by one table each, and divide by `divisor`. Saves nothing. Gradient: the way back."""
    return apply_n(row, (input,), (tables, divisor, back))


def resampling(node):
    """The row under another name of its node."""
    return variant(RESAMPLE, node)


functions = publish(globals())
