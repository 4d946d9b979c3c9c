"""Sums of products, which for large operands do not store the products."""

from cygrad._core.engine.blocked_gradients import is_own
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, IN1, PRIVATE, declare, publish
from cygrad._core.graph.record import record_n
from cygrad._kernels.cpu.base import stack_chunks
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.reductions import restored
from cygrad._ops.base.reductions import sum as total


def summed_products_rule(n, g):
    axes, shape = n.args
    g = restored(g, shape, axes, False)
    return mul(g, n.saved(1)) if n.needs(0) else None, mul(g, n.saved(0)) if n.needs(1) else None


SUMMED = declare(
    "summed_products",
    summed_products_rule,
    saves=(IN1, IN0),
    flags=PRIVATE,
    node="SumBackward1",
    inputs="self other",
    batching=None,
)


def summed_products(a, b, axes):
    """Sum a * b over axes, None for all, as one op; for real CPU tensors of one shape and dtype."""
    x, y = array_of(a), array_of(b)
    found = stack_chunks.sum_of_products(x, y, axes)
    found = found.reshape(()) if axes is None else found.squeeze(axes)
    return record_n(SUMMED, found, (a, b), (axes, x.shape))


def sum_of_products(a, b, dim=None):
    """Compute `sum(a * b, dim)`."""
    x, y = array_of(a), array_of(b)
    if is_own(a) and is_own(b) and x.dtype == y.dtype and x.dtype.char in "fd" and x.shape == y.shape:
        return summed_products(a, b, None if dim is None else (dim % x.ndim,))
    return total(mul(a, b), dim)


functions = publish(globals())
