"""The row of all ops that are linear along each spatial dimension: averages over windows, interpolation."""

import numpy as np

from cygrad._core.opdef import LINEAR, PRIVATE, declare, publish, variant
from cygrad._core.record import apply_n
from cygrad._kernels import resampling as kernels


def resample_array(a, tables, divisor, back):
    """Through the tables, then divided by `divisor`; or with `back` the transpose of this."""
    first = a.ndim - len(tables)
    if back:
        by = None if divisor is None else divisor.astype(a.dtype)
        return kernels.resample(a, [None if table is None else table.transposed for table in tables], first, by)
    out = kernels.resample(a, tables, first)
    if out is a:
        out = a.copy()
    if divisor is not None:
        if out.dtype.kind in "iu":  # rounded towards zero
            return (np.sign(out) * (np.abs(out) // divisor.astype(out.dtype))).astype(out.dtype)
        out /= divisor.astype(out.dtype)
    return out


def resample_rule(n, g):
    tables, divisor, back = n.args
    return resample(g, tables, divisor, not back)


RESAMPLE = declare("resample", resample_rule, flags=PRIVATE | LINEAR, kernel=resample_array, inputs="self")


def resample(input, tables, divisor=None, back=False, row=RESAMPLE):
    """Map the last dimensions by one table each, and divide by `divisor`. Saves nothing. Gradient: the way back."""
    return apply_n(row, (input,), (tuple(tables), divisor, back))


def resampling(node):
    """The row under another name of its node."""
    return variant(RESAMPLE, node)


functions = publish(globals())
