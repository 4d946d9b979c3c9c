"""Division with a rounded quotient, for `div(rounding_mode=)`. The quotient is a step function: gradients are 0."""

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import ELEMENTWISE, PRIVATE, declare, publish
from cygrad._core.graph.record import apply2
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.elementwise import integers
from cygrad._ops.base.checks.common import require_broadcast
from cygrad._ops.base.copying import zeros_of
from cygrad._ops.elementwise.rounding import NUMBER, check_division


def zero_rule(n, g):
    zeros = zeros_of(g)
    return zeros if n.needs(0) else None, zeros if n.needs(1) else None


def _row(mode, **loop):
    return declare(f"div.{mode}", zero_rule, flags=ELEMENTWISE | PRIVATE, node="DivBackward2", **loop)


_ROWS = {"floor": _row("floor", ufunc="floor_divide"), "trunc": _row("trunc", kernel=integers.divide_towards_zero)}


def divided(input, other, mode, out):
    """Compute `input / other` rounded down ('floor') or towards 0 ('trunc')."""
    if not isinstance(mode, str):
        raise messages.fits_none("div")
    if mode not in _ROWS:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")
    if isinstance(input, Tensor) and isinstance(other, NUMBER):
        check_division(f"div_{mode}_cpu", input, other)
        if isinstance(other, Tensor):
            require_broadcast(input, other)
    elif not isinstance(input, Tensor) and isinstance(other, Tensor):
        check_division(f"div_{mode}_cpu", input, other)
    return apply2(_ROWS[mode], input, other, out)


functions = publish(globals())
